//! The deliveries of an endpoint, and their replay.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    document::{Document, MAX_SAFE_INTEGER},
    webhook::{self, delivery::DeliveryStatus},
};
use galley_store::{DeliveryQuery, Replay, ReplayOutcome};

use crate::{
    api::{
        auth::{Caller, Webhooks},
        body::JsonBody,
        json,
        problem::{Problem, ProblemKind},
        query::{Parameters, parse_digits},
        view::{self, Paging},
    },
    app::App,
};

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["status", "limit", "after"])?;
    let limit = parameters.limit()?;
    let statuses = format!("one of {}", DeliveryStatus::VALUES.join(", "));
    let query = DeliveryQuery {
        status: parameters.parse("status", statuses, DeliveryStatus::parse)?,
        before: parameters.parse("after", "the `seq` of an event", seq)?,
        limit: limit + 1,
    };
    let found = app.store().deliveries(caller.account.id, caller.webhook_id()?, query).await?;
    let mut found = found.ok_or(Problem::of(ProblemKind::WebhookUnknown))?;
    let more = found.len() > limit;
    found.truncate(limit);
    let after = found.last().map(|delivery| delivery.seq.to_string());
    let next = after.as_deref().filter(|_| more).map(|after| parameters.next_page(after));
    Ok(json(StatusCode::OK, view::deliveries(&found, &Paging { after, next })))
}

/// Parses the number of an event, which need not exist.
fn seq(text: &str) -> Option<u64> {
    parse_digits(text).filter(|seq| (1..=MAX_SAFE_INTEGER).contains(seq))
}

pub(super) async fn replay(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    body: JsonBody,
) -> Result<Response, Problem> {
    let read =
        |bytes| webhook::Replay::read(&Document::parse(bytes)?).map_err(Problem::invalid_webhook);
    let selection = match body.process(&app, read).await? {
        webhook::Replay::Event(seq) => Replay::One(seq),
        webhook::Replay::Since(start) => Replay::Since(start),
    };
    let (account, id, at) = (caller.account.id, caller.webhook_id()?, app.clock().now());
    match app.store().replay(account, id, selection, at).await? {
        ReplayOutcome::Queued(events) => {
            Ok(json(StatusCode::ACCEPTED, format!("{{\"events\":{events}}}")))
        }
        ReplayOutcome::NoEvent => Err(Problem::of(ProblemKind::EventUnknown)),
        ReplayOutcome::Expired(oldest) => Err(Problem::events_expired(oldest)),
        ReplayOutcome::NoWebhook => Err(Problem::of(ProblemKind::WebhookUnknown)),
    }
}
