//! What has become of the events on their way to an endpoint, and sending them once more.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    delivery::DeliveryStatus,
    json::{Document, LARGEST_NUMBER},
    webhook,
};
use galley_store::{Deliveries, Replay, Replayed};

use crate::{
    App,
    http::{
        body::JsonBody,
        caller::{Caller, Webhooks},
        json,
        problem::{Kind, Problem},
        query::{Parameters, whole},
        view::{self, Paging},
    },
};

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["status", "limit", "after"])?;
    let limit = parameters.limit()?;
    let words = format!("one of {}", DeliveryStatus::WORDS.join(", "));
    let wanted = Deliveries {
        status: parameters.read("status", words, DeliveryStatus::named)?,
        before: parameters.read("after", "the `seq` of an event", seq)?,
        limit: limit + 1,
    };
    let found = app.store().deliveries(caller.account.id, caller.webhook()?, wanted).await?;
    let mut found = found.ok_or(Problem::of(Kind::WebhookUnknown))?;
    let more = found.len() > limit;
    found.truncate(limit);
    let after = found.last().map(|delivery| delivery.seq.to_string());
    let next = after.as_deref().filter(|_| more).map(|after| parameters.next_page(after));
    Ok(json(StatusCode::OK, view::deliveries(&found, &Paging { after, next })))
}

/// The number of an event, whether there is one or not.
fn seq(text: &str) -> Option<u64> {
    whole(text).filter(|seq| (1..=LARGEST_NUMBER).contains(seq))
}

pub(super) async fn replay(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let read = webhook::Replay::read(&Document::parse(&body)?);
    let what = match read.map_err(Problem::invalid_webhook)? {
        webhook::Replay::Event(seq) => Replay::One(seq),
        webhook::Replay::Since(moment) => Replay::Since(moment),
    };
    let (account, id, at) = (caller.account.id, caller.webhook()?, app.clock().now());
    match app.store().replay(account, id, what, at).await? {
        Replayed::Queued(events) => {
            Ok(json(StatusCode::ACCEPTED, format!("{{\"events\":{events}}}")))
        }
        Replayed::NoEvent => Err(Problem::of(Kind::EventUnknown)),
        Replayed::Forgotten(oldest) => Err(Problem::forgotten(oldest)),
        Replayed::NoWebhook => Err(Problem::of(Kind::WebhookUnknown)),
    }
}
