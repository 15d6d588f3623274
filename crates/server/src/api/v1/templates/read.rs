//! Reading one template and its versions.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use galley_domain::document::MAX_SAFE_INTEGER;
use galley_store::StoredTemplate;

use super::template_response;
use crate::{
    api::{
        auth::{Caller, Read},
        conditional::{IfNoneMatch, etag},
        json,
        problem::{Problem, ProblemKind},
        query::{Parameters, parse_digits},
        view::{self, Paging},
    },
    app::App,
};

pub(super) async fn show(
    State(app): State<App>,
    caller: Caller<Read>,
    parameters: Parameters,
    known: IfNoneMatch,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["version"])?;
    let number = parameters.parse("version", VERSION_NUMBER, version_number)?;
    let stored = app.store().template(caller.account.id, caller.template_id()?).await?;
    let stored = stored.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
    let stored = match number {
        Some(number) => {
            let version = at_version(&app, &caller, stored, number).await?;
            version.ok_or(Problem::of(ProblemKind::VersionUnknown))?
        }
        None => stored,
    };
    // The state at a provider changes without the revision.
    if known.contains(stored.revision) && !caller.account.is_connected {
        let tag = [(header::ETAG, etag(stored.revision))];
        return Ok((StatusCode::NOT_MODIFIED, tag).into_response());
    }
    template_response(&app, &caller.account, &stored).await
}

/// The template with the content of one of its versions; `None` if there is no such version.
pub(super) async fn at_version<S>(
    app: &App,
    caller: &Caller<S>,
    stored: Arc<StoredTemplate>,
    number: u64,
) -> Result<Option<Arc<StoredTemplate>>, Problem> {
    if number == stored.state.version {
        return Ok(Some(stored));
    }
    let version = app.store().version(caller.account.id, stored.id, number).await?;
    Ok(version.map(|version| Arc::new(stored.at_version(version))))
}

pub(super) async fn versions(
    State(app): State<App>,
    caller: Caller<Read>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["limit", "after"])?;
    let limit = parameters.limit()?;
    let after = parameters.parse("after", VERSION_NUMBER, version_number)?;
    let id = caller.template_id()?;
    let versions = app.store().versions(caller.account.id, id, after, limit + 1).await?;
    let mut versions = versions.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
    let more = versions.len() > limit;
    versions.truncate(limit);
    let after = versions.last().map(|version| version.number.to_string());
    let next = after.as_deref().filter(|_| more).map(|after| parameters.next_page(after));
    Ok(json(StatusCode::OK, view::versions(&versions, &Paging { after, next })))
}

/// What [`version_number`] accepts, for messages.
pub(super) const VERSION_NUMBER: &str = "the number of a version, 1 or greater";

/// Parses the number of a version, which need not exist.
pub(super) fn version_number(text: &str) -> Option<u64> {
    parse_digits(text).filter(|number| (1..=MAX_SAFE_INTEGER).contains(number))
}
