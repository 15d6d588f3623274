//! Samples in the headers of documents. A document may refer to a sample by its URL instead of its
//! handle; the file of a handle must exist and have a suitable type.

use galley_domain::{document::Document, id::AccountId, template::sample, violation::Violations};

use super::body::invalid;
use crate::{
    api::{problem::Problem, samples},
    app::App,
};

/// A document in which the URLs of samples are replaced with their handles, so that a client can send
/// back a document that it has read.
pub(super) fn with_handles<'b>(app: &App, mut document: Document<'b>) -> Document<'b> {
    samples::replace_urls(app, document.root_mut());
    document
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
    let checked = samples::checked(app, account, &references, read).await?;
    checked.map_err(|violations| invalid(violations, document))
}
