//! Faults of emulator accounts that strike webhook requests.

use std::time::Duration;

use galley_domain::{
    emulator::faults::{Call, FaultEffect},
    id::WebhookId,
};
use galley_store::Webhook;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    app::App,
    delivery::{PostReport, PostRequest},
};

/// How long a request that is sent after the next one waits for it.
const MAX_REORDER_WAIT: Duration = Duration::from_secs(10);

/// How a webhook request was sent.
pub(super) enum SentRequest {
    /// It was sent once, or twice; this is the first result.
    Posted(PostReport),
    /// A fault has dropped it, or lets it be sent later. For the sender it is delivered.
    Withheld,
}

/// Sends a webhook request about a template of this name, unless a fault strikes it.
pub(super) async fn send(
    app: &App,
    webhook: &Webhook,
    name: Option<&str>,
    request: PostRequest,
) -> SentRequest {
    if !app.emulator().is_on() {
        return SentRequest::Posted(app.webhooks().client.post(request).await);
    }
    let effect = decide(app, webhook, name).await;
    let waits = matches!(effect, Some(FaultEffect::Reorder | FaultEffect::Delay(_)));
    // Without room, a request that would wait is sent at once.
    let room = if waits { app.held_requests().room() } else { None };
    let report = match (effect, room) {
        (Some(FaultEffect::Drop), _) => return SentRequest::Withheld,
        (Some(FaultEffect::Reorder), Some(room)) => {
            hold(app.clone(), webhook.id, request, room);
            return SentRequest::Withheld;
        }
        (Some(FaultEffect::Delay(delay)), Some(room)) => {
            let delay = Duration::try_from(delay).unwrap_or_default();
            send_later(app.clone(), request, delay, room);
            return SentRequest::Withheld;
        }
        (Some(FaultEffect::Duplicate), _) => {
            let report = app.webhooks().client.post(request.clone()).await;
            app.webhooks().client.post(request).await;
            report
        }
        _ => app.webhooks().client.post(request).await,
    };
    // They waited for this one. Their results do not matter: the sender has moved on.
    for held in app.held_requests().take(webhook.id) {
        app.webhooks().client.post(held).await;
    }
    SentRequest::Posted(report)
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
fn hold(app: App, endpoint: WebhookId, request: PostRequest, room: OwnedSemaphorePermit) {
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
fn send_later(app: App, request: PostRequest, delay: Duration, room: OwnedSemaphorePermit) {
    tokio::spawn(async move {
        let _room = room;
        tokio::time::sleep(delay).await;
        app.webhooks().client.post(request).await;
    });
}
