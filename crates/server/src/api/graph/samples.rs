//! Samples in the headers of documents. A document may refer to a sample by its URL instead of its
//! handle; the file of a handle must exist and have a suitable type.

use galley_domain::{
    document::{Document, Json},
    id::AccountId,
    template::sample,
    violation::Violations,
};

use super::body::{GraphBody, invalid};
use crate::{
    api::{media_url, problem::Problem, samples},
    app::App,
};

/// The member of a header's example that contains handles.
const HANDLES: &str = "header_handle";

/// The document of a body, in which the URLs of samples are replaced with their handles, so that a
/// client can send back a document that it has read.
pub(super) fn document_with_handles<'b>(
    app: &App,
    body: &'b mut GraphBody,
) -> Result<Document<'b>, Problem> {
    let mut document = body.document()?;
    replace_urls(app, document.root_mut());
    Ok(document)
}

/// Replaces all URLs of samples with handles.
fn replace_urls(app: &App, value: &mut Json<'_>) {
    match value {
        Json::Array(items) => {
            for item in items {
                replace_urls(app, item);
            }
        }
        Json::Object(members) => {
            for member in members {
                match &mut member.value {
                    Json::Array(handles) if member.key == HANDLES => {
                        for handle in handles {
                            replace_url(app, handle);
                        }
                    }
                    handle @ Json::String(_) if member.key == HANDLES => replace_url(app, handle),
                    other => replace_urls(app, other),
                }
            }
        }
        _ => {}
    }
}

fn replace_url(app: &App, value: &mut Json<'_>) {
    let name = value.as_str().and_then(|url| media_url::sample_name(app, url));
    if let Some(handle) = name.map(sample::handle) {
        *value = Json::String(handle.into());
    }
}

/// Checks the samples of a document that was read as `read`. Returns what was read, or all
/// violations of both.
pub(super) async fn checked<T>(
    app: &App,
    account: AccountId,
    document: &Document<'_>,
    read: Result<T, Violations>,
) -> Result<T, Problem> {
    let references = sample::references(document.root());
    let of_samples = samples::violations(app, account, &references).await?;
    let violations = match read {
        Ok(read) => match Violations::new(of_samples) {
            None => return Ok(read),
            Some(violations) => violations,
        },
        Err(violations) => violations.with(of_samples),
    };
    Err(invalid(violations, document))
}
