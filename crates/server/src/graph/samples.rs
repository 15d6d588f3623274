//! Samples that documents name in their headers: an address where one is served means its handle
//! again, and a handle that was given out here leads to a file that is there and fits.

use galley_domain::{
    id::AccountId,
    json::{Document, Json},
    sample::{self, Mention},
    violation::{MOST_TOLD, Rule, Violation, Violations},
};
use galley_store::UNUSED_DAYS;

use super::{body::invalid, media, view};
use crate::{App, http::problem::Problem};

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
        Json::List(items) => {
            for item in items {
                put |= put_handles(app, item);
            }
        }
        Json::Object(members) => {
            for member in members {
                put |= match &mut member.value {
                    Json::List(handles) if member.key == HANDLES => {
                        handles.iter_mut().fold(false, |put, handle| put | put_handle(app, handle))
                    }
                    handle @ Json::Text(_) if member.key == HANDLES => put_handle(app, handle),
                    other => put_handles(app, other),
                };
            }
        }
        _ => {}
    }
    put
}

fn put_handle(app: &App, value: &mut Json<'_>) -> bool {
    let name = value.as_text().and_then(|address| media::name_at(app, address));
    let Some(handle) = name.map(sample::handle) else { return false };
    *value = Json::Text(handle.into());
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
    let others = violations(app, account, &mentions).await?;
    let violations = match read {
        Ok(read) => match Violations::of(others) {
            None => return Ok(read),
            Some(violations) => violations,
        },
        Err(violations) => violations.and(others),
    };
    Err(invalid(violations, &Document::parse(body)?))
}

/// What is wrong with the samples that a document names, as many of them as are told. Handles from
/// elsewhere are taken as they are: nobody here knows what stands behind them.
pub(crate) async fn violations(
    app: &App,
    account: AccountId,
    mentions: &[Mention],
) -> Result<Vec<Violation>, Problem> {
    let mut found = Vec::new();
    for mention in mentions.iter().take(MOST_TOLD) {
        let Mention { pointer, handle, format } = mention;
        let name = sample::name(handle).or_else(|| media::name_at(app, handle));
        if name.is_none() && !sample::is_ours(handle) {
            continue;
        }
        let media = match name {
            Some(name) => app.store().sample(account, name, app.clock().now()).await?,
            None => None,
        };
        let violation = |rule, message: String, hint: String| Violation {
            pointer: pointer.clone(),
            rule,
            message,
            hint: Some(hint),
            span: None,
        };
        let Some(media) = media else {
            let hint = format!(
                "upload the file and use the `h` of that; one that no template names is kept for {UNUSED_DAYS} days"
            );
            let message = "names no file that the account has uploaded".to_owned();
            found.push(violation(Rule::SampleUnknown, message, hint));
            continue;
        };
        let types = sample::types(format);
        if !types.is_empty() && !types.contains(&&*media.file_type) {
            let message = format!("is a file of the type {}", media.file_type);
            let hint = format!("{format} takes {}", types.join(" or "));
            found.push(violation(Rule::SampleUnfit, message, hint));
        }
    }
    Ok(found)
}
