//! Reading one template and its versions.

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use galley_domain::json::LARGEST_NUMBER;
use galley_store::StoredTemplate;

use super::shown;
use crate::{
    App,
    http::{
        caller::{Caller, Item, Read},
        json,
        preconditions::{IfNoneMatch, etag},
        problem::{Kind, Problem},
        query::{Parameters, whole},
        view::{self, Paging},
    },
};

pub(super) async fn show(
    State(app): State<App>,
    caller: Caller<Read>,
    Item(id): Item,
    parameters: Parameters,
    known: IfNoneMatch,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["version"])?;
    let number = parameters.read("version", "a whole number from 1", number)?;
    let stored = app.store().template(caller.account.id, id).await?;
    let stored = stored.ok_or(Problem::of(Kind::TemplateUnknown))?;
    let stored = match number {
        Some(number) => in_version(&app, &caller, stored, number).await?,
        None => stored,
    };
    if known.has(stored.revision) {
        let tag = [(header::ETAG, etag(stored.revision))];
        return Ok((StatusCode::NOT_MODIFIED, tag).into_response());
    }
    Ok(shown(&stored))
}

/// The template as it is in one of its versions.
pub(super) async fn in_version<S>(
    app: &App,
    caller: &Caller<S>,
    stored: StoredTemplate,
    number: u64,
) -> Result<StoredTemplate, Problem> {
    if number == stored.state.version {
        return Ok(stored);
    }
    let version = app.store().version(caller.account.id, stored.id, number).await?;
    Ok(stored.showing(version.ok_or(Problem::of(Kind::VersionUnknown))?))
}

pub(super) async fn versions(
    State(app): State<App>,
    caller: Caller<Read>,
    Item(id): Item,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["limit", "after"])?;
    let limit = parameters.limit()?;
    let after = parameters.read("after", "the number of a version", number)?;
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
    whole(text).filter(|number| (1..=LARGEST_NUMBER).contains(number))
}
