//! One step of the status sender: leases the due statuses of sandbox messages for an endpoint, sends
//! them in order, and records how far the endpoint has got them.

use std::time::Duration;

use galley_domain::{
    emulator::messages::{MAX_STATUSES_PER_REQUEST, MessageStatus},
    id::WebhookId,
};
use galley_store::{
    DueStatus, DueStatuses, Fenced, StatusCursor, StatusLease, StoreError, Webhook, origin,
};
use jiff::Timestamp;

use super::{
    delivery::{LEASE_MARGIN, longest_attempt, record_during_lease, saturating_add},
    endpoint_pace::EndpointPace,
    webhook_faults::{self, SentRequest},
};
use crate::{
    app::App,
    delivery::{DecryptError, PostOutcome, PostRequest, status_payload},
};

/// Maximum number of statuses that one step leases.
const MAX_LEASED: usize = 1_000;

/// How long one step begins requests. The lease outlasts the last of them and its recording, but not by
/// much: if the process dies, another one waits for its end.
const MAX_SENDING_TIME: Duration = Duration::from_secs(5);

/// Up to this number of due statuses, each gets a request of its own. Many receivers read only the
/// first status of a request; at Meta they notice that only under load.
const MAX_SINGLE_STATUSES: usize = 10;

/// The outcome of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusStepOutcome {
    /// No status is due. The next one may be due at this time, if any.
    Idle(Option<Timestamp>),
    /// The endpoint got so many statuses.
    Sent(usize),
    /// A request failed. The statuses before it were sent.
    Failed,
    /// The lease has expired, so another worker may send the same statuses.
    LeaseLost,
    /// The stored secret cannot be decrypted, so nothing can be signed. The operator has to act.
    SigningFailed,
}

/// Sends the due statuses of an endpoint that got no request for some time.
pub async fn send_statuses(
    app: &App,
    endpoint: WebhookId,
) -> Result<StatusStepOutcome, StoreError> {
    send_paced(app, endpoint, &mut EndpointPace::rested(app.webhooks().per_second)).await
}

/// Sends the due statuses of an endpoint, as fast as its pace permits.
pub(super) async fn send_paced(
    app: &App,
    endpoint: WebhookId,
    pace: &mut EndpointPace,
) -> Result<StatusStepOutcome, StoreError> {
    let now = app.clock().now();
    let sending_until = saturating_add(now, MAX_SENDING_TIME);
    let lease_until = saturating_add(sending_until, longest_attempt(app) + LEASE_MARGIN);
    let due = match app.store().lease_statuses(endpoint, MAX_LEASED, now..lease_until).await? {
        StatusLease::Due(due) => due,
        StatusLease::NothingDue(next) => return Ok(StatusStepOutcome::Idle(next)),
    };
    let DueStatuses { webhook, statuses } = &*due;
    let Some(first) = statuses.first() else { return Ok(StatusStepOutcome::Idle(None)) };
    let size = if statuses.len() > MAX_SINGLE_STATUSES { MAX_STATUSES_PER_REQUEST } else { 1 };
    let mut through = cursor_before(first);
    let mut sent = 0;
    let mut outcome = None;
    let mut followers = Vec::new();
    for batch in statuses.chunks(size) {
        pace.acquire().await;
        let now = app.clock().now();
        // The next step leases what is left.
        if app.is_draining() || now > sending_until {
            pace.refund();
            break;
        }
        let result = send_batch(app, webhook, batch, now).await;
        followers = result.followers;
        if result.failure.is_some() {
            outcome = result.failure;
            break;
        }
        sent += batch.len();
        through = batch.last().map_or(through, |last| last.cursor);
        // They come before the next batch, and what was sent is recorded before them.
        if !followers.is_empty() {
            break;
        }
    }
    let record = || app.store().record_statuses(endpoint, lease_until, through);
    let recorded = record_during_lease(app, lease_until, record).await;
    webhook_faults::send_followers(app, followers).await;
    match recorded? {
        Fenced::Done(()) => Ok(outcome.unwrap_or(StatusStepOutcome::Sent(sent))),
        Fenced::LeaseLost => Ok(StatusStepOutcome::LeaseLost),
    }
}

/// The result of one request.
struct BatchResult {
    /// The outcome of the step, if the request failed.
    failure: Option<StatusStepOutcome>,
    /// The requests to send after it.
    followers: Vec<PostRequest>,
}

/// Sends one request.
async fn send_batch(
    app: &App,
    webhook: &Webhook,
    batch: &[DueStatus],
    now: Timestamp,
) -> BatchResult {
    let Webhook { account, id, url, .. } = webhook;
    let request = match build_request(app, webhook, batch, now) {
        Ok(request) => request,
        Err(error) => {
            tracing::error!(%account, webhook = %id, %error, "statuses cannot be signed");
            let failure = Some(StatusStepOutcome::SigningFailed);
            return BatchResult { failure, followers: Vec::new() };
        }
    };
    // Only emulator accounts have statuses.
    let SentRequest { report, followers } = webhook_faults::send(app, webhook, None, request).await;
    let reason = match report.map(|it| it.outcome) {
        None | Some(PostOutcome::Responded { status: 200..=299, .. }) => {
            app.failure_log().end_outage(*id);
            return BatchResult { failure: None, followers };
        }
        Some(PostOutcome::Responded { status, .. }) => format!("it responded with {status}"),
        Some(PostOutcome::Failed(failure)) => failure.to_string(),
        Some(PostOutcome::NotSent) => "Galley had no slot for the lookup of the name".to_owned(),
    };
    // The rest of a URL is often a secret.
    let origin = origin(url);
    if app.failure_log().is_first(*id, app.clock().monotonic()) {
        tracing::warn!(
            %account, webhook = %id, origin, reason,
            "statuses could not be sent; further failures of this outage are logged at the level debug"
        );
    } else {
        tracing::debug!(%account, webhook = %id, origin, reason, "statuses could not be sent");
    }
    BatchResult { failure: Some(StatusStepOutcome::Failed), followers }
}

fn build_request(
    app: &App,
    webhook: &Webhook,
    batch: &[DueStatus],
    now: Timestamp,
) -> Result<PostRequest, DecryptError> {
    // A store restored from a backup reuses numbers of messages; the timestamp keeps ids unique.
    let id = batch.first().map_or_else(String::new, |first| {
        let (number, status, at) =
            (first.message.number, first.status.as_str(), first.at.as_millisecond());
        format!("sts_{}_{number}_{status}_{at}", webhook.account)
    });
    app.webhooks().signed_request(webhook, id, status_payload::build(webhook.account, batch), now)
}

/// The cursor of the endpoint before this status was sent: of earlier messages, there is no status at
/// this position that is left to send.
fn cursor_before(first: &DueStatus) -> StatusCursor {
    let before = first.message.number.saturating_sub(1);
    match first.status {
        MessageStatus::Accepted | MessageStatus::Sent => {
            StatusCursor { sent: before, ..first.cursor }
        }
        MessageStatus::Delivered | MessageStatus::Failed => {
            StatusCursor { delivered: before, ..first.cursor }
        }
        MessageStatus::Read => StatusCursor { read: before, ..first.cursor },
    }
}
