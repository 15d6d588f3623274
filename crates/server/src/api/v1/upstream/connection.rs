//! The connection of an account, and its operations.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::document::MAX_SAFE_INTEGER;
use galley_store::MirrorFilter;

use super::{ConnectedCaller, not_connected};
use crate::{
    api::{
        json,
        problem::Problem,
        query::{Parameters, parse_digits},
        view,
    },
    app::App,
};

/// How many of the templates that a sweep did not see are listed.
const MAX_UNSEEN: usize = 20;

pub(super) async fn show(
    State(app): State<App>,
    ConnectedCaller(caller): ConnectedCaller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let connection = app.store().connection(caller.account.id).await?;
    let connection = connection.ok_or_else(not_connected)?;
    let mut unseen = None;
    if connection.suspicious_at.is_some() {
        let (store, account) = (app.store(), caller.account.id);
        let first = store.mirrored(account, MirrorFilter::Unseen, None, MAX_UNSEEN).await?;
        unseen = Some((store.mirror_counts(account).await?.unseen, first));
    }
    Ok(json(StatusCode::OK, view::connection(&connection, unseen.as_ref())))
}

pub(super) async fn operations(
    State(app): State<App>,
    ConnectedCaller(caller): ConnectedCaller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["before", "limit"])?;
    let before = parameters.parse("before", "the id of an operation", |text| {
        parse_digits(text).filter(|number| (1..=MAX_SAFE_INTEGER).contains(number))
    })?;
    let limit = parameters.limit()?;
    // One more than the page, to know whether another page follows.
    let mut operations = app.store().operations(caller.account.id, before, limit + 1).await?;
    let has_more = operations.len() > limit;
    operations.truncate(limit);
    let last = operations.last().filter(|_| has_more);
    let next = last.map(|last| parameters.next_page_with("before", &last.id.to_string()));
    Ok(json(StatusCode::OK, view::operations(&operations, next.as_deref())))
}
