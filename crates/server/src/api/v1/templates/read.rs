//! Reading one template and its versions.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use galley_domain::document::MAX_SAFE_INTEGER;
use galley_store::StoredTemplate;

use super::shown;
use crate::{
    api::{
        auth::{Caller, Read},
        conditional::{IfNoneMatch, etag},
        json,
        problem::{Kind, Problem},
        query::{Parameters, whole},
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
    let number = parameters.read("version", "a whole number from 1", number)?;
    let stored = app.store().template(caller.account.id, caller.item()?).await?;
    let stored = stored.ok_or(Problem::of(Kind::TemplateUnknown))?;
    let stored = match number {
        Some(number) => {
            let shown = in_version(&app, &caller, stored, number).await?;
            shown.ok_or(Problem::of(Kind::VersionUnknown))?
        }
        None => stored,
    };
    if known.has(stored.revision) {
        let tag = [(header::ETAG, etag(stored.revision))];
        return Ok((StatusCode::NOT_MODIFIED, tag).into_response());
    }
    Ok(shown(&stored))
}

/// The template as it is in one of its versions, if there is such a one.
pub(super) async fn in_version<S>(
    app: &App,
    caller: &Caller<S>,
    stored: Arc<StoredTemplate>,
    number: u64,
) -> Result<Option<Arc<StoredTemplate>>, Problem> {
    if number == stored.state.version {
        return Ok(Some(stored));
    }
    let version = app.store().version(caller.account.id, stored.id, number).await?;
    Ok(version.map(|version| Arc::new(stored.showing(version))))
}

pub(super) async fn versions(
    State(app): State<App>,
    caller: Caller<Read>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["limit", "after"])?;
    let limit = parameters.limit()?;
    let after = parameters.read("after", "the number of a version", number)?;
    let id = caller.item()?;
    let versions = app.store().versions(caller.account.id, id, after, limit + 1).await?;
    let mut versions = versions.ok_or(Problem::of(Kind::TemplateUnknown))?;
    let more = versions.len() > limit;
    versions.truncate(limit);
    let after = versions.last().map(|version| version.number.to_string());
    let next = after.as_deref().filter(|_| more).map(|after| parameters.next_page(after));
    Ok(json(StatusCode::OK, view::versions(&versions, &Paging { after, next })))
}

/// The number of a version, whether there is one or not.
fn number(text: &str) -> Option<u64> {
    whole(text).filter(|number| (1..=MAX_SAFE_INTEGER).contains(number))
}
