//! Samples that documents name in their headers: an address where one is served means its handle
//! again, and a handle that was given out here leads to a file that is there and fits.

use galley_domain::{
    document::{Document, Json},
    id::AccountId,
    template::sample,
    violation::Violations,
};

use super::{body::invalid, view};
use crate::{
    api::{media_url, problem::Problem, samples},
    app::App,
};

/// The member of a header's example that names files.
const HANDLES: &str = "header_handle";

/// A document as it was read before, with the addresses of samples, becomes one with their handles.
pub(super) fn with_handles(app: &App, body: Vec<u8>) -> Vec<u8> {
    let may_name = |text: &str| text.contains(HANDLES) && text.contains("media");
    if !str::from_utf8(&body).is_ok_and(may_name) {
        return body;
    }
    let Ok(document) = Document::parse(&body) else { return body };
    let mut root = document.root().clone();
    if !put_handles(app, &mut root) {
        return body;
    }
    let mut out = String::with_capacity(body.len());
    view::write_json(&mut out, &root, None);
    out.into_bytes()
}

/// Whether there was an address to put a handle in the place of.
fn put_handles(app: &App, value: &mut Json<'_>) -> bool {
    let mut put = false;
    match value {
        Json::Array(items) => {
            for item in items {
                put |= put_handles(app, item);
            }
        }
        Json::Object(members) => {
            for member in members {
                put |= match &mut member.value {
                    Json::Array(handles) if member.key == HANDLES => {
                        handles.iter_mut().fold(false, |put, handle| put | put_handle(app, handle))
                    }
                    handle @ Json::String(_) if member.key == HANDLES => put_handle(app, handle),
                    other => put_handles(app, other),
                };
            }
        }
        _ => {}
    }
    put
}

fn put_handle(app: &App, value: &mut Json<'_>) -> bool {
    let name = value.as_str().and_then(|address| media_url::name_at(app, address));
    let Some(handle) = name.map(sample::handle) else { return false };
    *value = Json::String(handle.into());
    true
}

/// What is read of a document, if the samples that the document names are there and fit; otherwise
/// everything that is wrong with it at once.
pub(super) async fn judged<T>(
    app: &App,
    account: AccountId,
    body: &[u8],
    read: impl FnOnce(&Document<'_>) -> Result<T, Violations>,
) -> Result<T, Problem> {
    let (read, mentions) = {
        let document = Document::parse(body)?;
        (read(&document), sample::mentions(document.root()))
    };
    let others = samples::violations(app, account, &mentions).await?;
    let violations = match read {
        Ok(read) => match Violations::of(others) {
            None => return Ok(read),
            Some(violations) => violations,
        },
        Err(violations) => violations.and(others),
    };
    Err(invalid(violations, &Document::parse(body)?))
}
