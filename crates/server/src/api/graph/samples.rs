//! Samples in the headers of documents. A document may refer to a sample by its URL instead of its
//! handle; the file of a handle must exist and have a suitable type.

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

/// The member of a header's example that contains handles.
const HANDLES: &str = "header_handle";

/// Replaces the URLs of samples with their handles, so that a client can send back a document that
/// it has read.
pub(super) fn with_handles(app: &App, body: Vec<u8>) -> Vec<u8> {
    let may_contain_url = |text: &str| text.contains(HANDLES) && text.contains("media");
    if !str::from_utf8(&body).is_ok_and(may_contain_url) {
        return body;
    }
    let Ok(document) = Document::parse(&body) else { return body };
    let mut root = document.root().clone();
    if !replace_urls(app, &mut root) {
        return body;
    }
    let mut out = String::with_capacity(body.len());
    view::write_json(&mut out, &root, None);
    out.into_bytes()
}

/// Replaces all URLs of samples with handles; returns whether there were any.
fn replace_urls(app: &App, value: &mut Json<'_>) -> bool {
    let mut replaced = false;
    match value {
        Json::Array(items) => {
            for item in items {
                replaced |= replace_urls(app, item);
            }
        }
        Json::Object(members) => {
            for member in members {
                replaced |= match &mut member.value {
                    Json::Array(handles) if member.key == HANDLES => handles
                        .iter_mut()
                        .fold(false, |replaced, handle| replaced | replace_url(app, handle)),
                    handle @ Json::String(_) if member.key == HANDLES => replace_url(app, handle),
                    other => replace_urls(app, other),
                };
            }
        }
        _ => {}
    }
    replaced
}

fn replace_url(app: &App, value: &mut Json<'_>) -> bool {
    let name = value.as_str().and_then(|url| media_url::sample_name(app, url));
    let Some(handle) = name.map(sample::handle) else { return false };
    *value = Json::String(handle.into());
    true
}

/// Reads a document and checks its samples. Returns the result of `read`, or all violations of both.
pub(super) async fn read_checked<T>(
    app: &App,
    account: AccountId,
    body: &[u8],
    read: impl FnOnce(&Document<'_>) -> Result<T, Violations>,
) -> Result<T, Problem> {
    let (read, mentions) = {
        let document = Document::parse(body)?;
        (read(&document), sample::references(document.root()))
    };
    let of_samples = samples::violations(app, account, &mentions).await?;
    let violations = match read {
        Ok(read) => match Violations::new(of_samples) {
            None => return Ok(read),
            Some(violations) => violations,
        },
        Err(violations) => violations.with(of_samples),
    };
    Err(invalid(violations, &Document::parse(body)?))
}
