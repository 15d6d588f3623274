//! Faults of emulator accounts that strike webhook requests.

use std::time::Duration;

use galley_domain::{
    emulator::faults::{Call, FaultEffect},
    id::{AccountId, WebhookId},
};
use galley_store::{FairSlot, Webhook};

use crate::{
    app::App,
    delivery::{PostOutcome, PostReport, PostRequest},
};

/// How long a request that is sent after the next one waits for it.
const MAX_REORDER_WAIT: Duration = Duration::from_secs(10);

/// What became of a webhook request.
pub(super) struct SentRequest {
    /// The result; `None` if a fault has dropped the request, or lets it be sent later. For the sender
    /// it is delivered then.
    pub(super) report: Option<PostReport>,
    /// The requests to send with [`send_followers`] once the result is recorded.
    pub(super) followers: Vec<PostRequest>,
}

impl SentRequest {
    fn withheld() -> Self {
        Self { report: None, followers: Vec::new() }
    }
}

/// A request without a fault.
impl From<PostReport> for SentRequest {
    fn from(report: PostReport) -> Self {
        Self { report: Some(report), followers: Vec::new() }
    }
}

/// Sends a webhook request of an emulator account about a template of this name, unless a fault
/// strikes it.
pub(super) async fn send(
    app: &App,
    webhook: &Webhook,
    name: Option<&str>,
    request: PostRequest,
) -> SentRequest {
    if !app.emulator().is_on() {
        return app.webhooks().client.post(request).await.into();
    }
    let effect = decide(app, webhook, name).await;
    let waits = matches!(effect, Some(FaultEffect::Reorder | FaultEffect::Delay(_)));
    // Without room, a request that would wait is sent at once.
    let room = if waits { app.held_requests().room(webhook.account) } else { None };
    match (effect, room) {
        (Some(FaultEffect::Drop), _) => return SentRequest::withheld(),
        (Some(FaultEffect::Reorder), Some(room)) => {
            hold(app.clone(), webhook.id, request, room);
            return SentRequest::withheld();
        }
        (Some(FaultEffect::Delay(delay)), Some(room)) => {
            let delay = Duration::try_from(delay).unwrap_or_default();
            send_later(app.clone(), request, delay, room);
            return SentRequest::withheld();
        }
        _ => {}
    }
    let copy = (effect == Some(FaultEffect::Duplicate)).then(|| request.clone());
    let report = app.webhooks().client.post(request).await;
    let followers = match report.outcome {
        // There is nothing to follow yet.
        PostOutcome::NotSent => Vec::new(),
        _ => copy.into_iter().chain(app.held_requests().take(webhook.id)).collect(),
    };
    SentRequest { report: Some(report), followers }
}

/// Sends the second copy of a request, and those that waited for it. The lease of the request does not
/// last for them, so its result is recorded before. Their own results do not matter.
pub(super) async fn send_followers(app: &App, followers: Vec<PostRequest>) {
    for request in followers {
        app.webhooks().client.post(request).await;
    }
}

async fn decide(app: &App, webhook: &Webhook, name: Option<&str>) -> Option<FaultEffect> {
    let Webhook { account, id, .. } = webhook;
    app.store().decide_fault(*account, Call::Webhook, name).await.unwrap_or_else(|error| {
        tracing::warn!(%account, webhook = %id, %error, "the faults of webhooks could not be read");
        None
    })
}

/// Holds a request back until the next one to the endpoint was sent, or until none has followed for
/// some time.
fn hold(app: App, endpoint: WebhookId, request: PostRequest, room: FairSlot<AccountId>) {
    let number = app.held_requests().hold(endpoint, request);
    tokio::spawn(async move {
        let _room = room;
        tokio::time::sleep(MAX_REORDER_WAIT).await;
        if let Some(request) = app.held_requests().take_one(endpoint, number) {
            app.webhooks().client.post(request).await;
        }
    });
}

/// Sends a request late. The sender does not wait: the request would outlast its lease.
fn send_later(app: App, request: PostRequest, delay: Duration, room: FairSlot<AccountId>) {
    tokio::spawn(async move {
        let _room = room;
        tokio::time::sleep(delay).await;
        app.webhooks().client.post(request).await;
    });
}
