//! The messages that the sandbox of an emulator account has accepted.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::document::MAX_SAFE_INTEGER;

use super::EmulatorCaller;
use crate::{
    api::{
        json,
        problem::Problem,
        query::{Parameters, parse_digits},
        view,
    },
    app::App,
};

pub(super) async fn list(
    State(app): State<App>,
    caller: EmulatorCaller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["after", "limit"])?;
    let before = parameters.parse("after", "a cursor from `next`", |text| {
        parse_digits(text).filter(|number| (1..=MAX_SAFE_INTEGER).contains(number))
    })?;
    let limit = parameters.limit()?;
    // One more than the page, to know whether another page follows.
    let at = app.clock().now();
    let mut messages = app.store().messages(caller.account, before, limit + 1, at).await?;
    let has_more = messages.len() > limit;
    messages.truncate(limit);
    let last = messages.last().filter(|_| has_more);
    let next = last.map(|message| parameters.next_page(&message.id.number.to_string()));
    Ok(json(StatusCode::OK, view::messages(&messages, next.as_deref())))
}
