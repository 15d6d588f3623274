//! One delivery step: leases a due event, attempts to deliver it, and records the result.

use std::time::Duration;

use axum::http::HeaderValue;
use galley_domain::{
    id::WebhookId,
    webhook::{
        Format,
        delivery::{DeliveryOutcome, DisableReason, RetryDecision},
    },
};
use galley_store::{
    Attempt, DeliveryLease, DueDelivery, EventSubject, RecordAttemptOutcome, StoreError,
    TraceContext, Webhook, origin,
};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use tracing::field::{Value, display};

use super::webhook_faults::{self, SentRequest};
use crate::delivery::{
    DecryptError, MAX_SLOT_WAIT, PostOutcome, PostRequest, RetryAfter, meta_payload,
};
use crate::{app::App, event_json, observability::trace_context::TRACEPARENT};

/// How long a lease outlasts the longest attempt, so that the store has time to record it.
pub(super) const LEASE_MARGIN: Duration = Duration::from_secs(5);

/// Delay between two tries to record an attempt.
const RECORD_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The outcome of one delivery step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStepOutcome {
    /// No event is due. The next one is due at this time, if any.
    Idle(Option<Timestamp>),
    /// The endpoint accepted the event.
    Delivered,
    /// The attempt failed; the next one is due at this time.
    WillRetry(Timestamp),
    /// The last attempt failed.
    GaveUp,
    /// The attempt failed and the endpoint is now disabled.
    Disabled(DisableReason),
    /// The lease expired, or could expire during the attempt. Another worker may have the event.
    LeaseLost,
    /// Nothing was sent, because Galley had no slot for the lookup of the name. This is not an
    /// attempt: the event is leased again when its lease ends.
    Deferred,
    /// The stored secret cannot be decrypted, so the event cannot be signed. The operator has to
    /// act.
    SigningFailed,
}

/// Leases one due event of an endpoint, attempts to deliver it, and records the result.
pub async fn deliver_one(app: &App, webhook: WebhookId) -> Result<DeliveryStepOutcome, StoreError> {
    match lease_next(app, webhook).await? {
        DeliveryLease::Due(due) => Ok(attempt_delivery(app, &due).await?.outcome),
        DeliveryLease::NothingDue(until) => Ok(DeliveryStepOutcome::Idle(until)),
    }
}

/// Leases the next due event of an endpoint.
pub(super) async fn lease_next(app: &App, webhook: WebhookId) -> Result<DeliveryLease, StoreError> {
    let now = app.clock().now();
    let lease_end = saturating_add(now, longest_attempt(app) + LEASE_MARGIN);
    app.store().lease_delivery(webhook, now..lease_end).await
}

/// The longest time that an attempt takes: the wait for a lookup slot, and then the request.
pub(super) fn longest_attempt(app: &App) -> Duration {
    MAX_SLOT_WAIT + app.webhooks().timeout
}

/// An attempt to deliver an event.
pub(super) struct DeliveryStep {
    pub(super) outcome: DeliveryStepOutcome,
    /// How long the endpoint took, if a request was sent.
    pub(super) response_time: Option<Duration>,
}

/// A step without a request.
impl From<DeliveryStepOutcome> for DeliveryStep {
    fn from(outcome: DeliveryStepOutcome) -> Self {
        Self { outcome, response_time: None }
    }
}

/// Attempts to deliver a leased event and records the result.
pub(super) async fn attempt_delivery(
    app: &App,
    due: &DueDelivery,
) -> Result<DeliveryStep, StoreError> {
    let (started, now) = (app.clock().monotonic(), app.clock().now());
    // Each attempt is a span of its own in the trace of the request that caused the event.
    let trace = due.event.trace.map(|it| it.with_span(random(app)));
    let (trace_id, span_id) = ids(trace);
    let request = match build_request(app, due, trace, now) {
        Ok(request) => request,
        Err(error) => {
            // The endpoint did not cause this, so it does not count as an attempt.
            let Webhook { account, id: webhook, .. } = &due.webhook;
            tracing::error!(
                %account, %webhook, %error, trace_id, span_id,
                "an event cannot be signed"
            );
            return Ok(finish(app, DeliveryStepOutcome::SigningFailed, started).into());
        }
    };
    if saturating_add(now, longest_attempt(app)) > due.lease_until {
        // The store was slow: the lease could expire before the attempt ends.
        return Ok(DeliveryStepOutcome::LeaseLost.into());
    }
    let posted = Instant::now();
    let name = match &due.event.subject {
        EventSubject::Template { name, .. } => Some(&**name),
        EventSubject::Webhook { .. } | EventSubject::Upstream { .. } => None,
    };
    let SentRequest { report, followers } = if due.is_emulator {
        webhook_faults::send(app, &due.webhook, name, request).await
    } else {
        app.webhooks().client.post(request).await.into()
    };
    let step = match report {
        Some(report) => {
            let response_time = posted.elapsed().saturating_sub(report.slot_wait);
            record_response(app, due, trace, &report.outcome, response_time).await
        }
        None => record_withheld(app, due).await.map(DeliveryStep::from),
    };
    let step = step.map(|it| DeliveryStep { outcome: finish(app, it.outcome, started), ..it });
    webhook_faults::send_followers(app, followers).await;
    step
}

/// Records the response to an attempt, or that there was none.
async fn record_response(
    app: &App,
    due: &DueDelivery,
    trace: Option<TraceContext>,
    response: &PostOutcome,
    response_time: Duration,
) -> Result<DeliveryStep, StoreError> {
    let at = app.clock().now();
    let (outcome, response_status, failure) = match response {
        PostOutcome::Responded { status, retry_after } => (
            DeliveryOutcome::from_status(*status, retry_after.map(|it| retry_delay(it, at))),
            Some(*status),
            None,
        ),
        PostOutcome::Failed(failure) => {
            (DeliveryOutcome::NoResponse, None, Some(failure.to_string()))
        }
        PostOutcome::NotSent => return Ok(DeliveryStepOutcome::Deferred.into()),
    };
    let decision = app.webhooks().schedule.decide(due.attempts + 1, outcome, jitter(app));
    log_outcome(app, due, trace, response, decision);
    let attempt = Attempt {
        webhook: due.webhook.id,
        seq: due.event.seq,
        lease_until: due.lease_until,
        url: due.webhook.url.clone(),
        at,
        outcome,
        response_status,
        failure,
        decision,
    };
    let step = match record(app, attempt).await? {
        RecordAttemptOutcome::Recorded => match decision {
            RetryDecision::Delivered => DeliveryStepOutcome::Delivered,
            RetryDecision::RetryAfter(delay) => {
                DeliveryStepOutcome::WillRetry(saturating_add(at, delay))
            }
            RetryDecision::Failed => DeliveryStepOutcome::GaveUp,
        },
        RecordAttemptOutcome::Disabled(reason) => {
            let (Webhook { account, id: webhook, .. }, because) = (&due.webhook, reason.as_str());
            let (trace_id, span_id) = ids(trace);
            tracing::warn!(
                %account, %webhook, because, trace_id, span_id,
                "an endpoint was disabled"
            );
            app.failure_log().remove(*webhook);
            DeliveryStepOutcome::Disabled(reason)
        }
        RecordAttemptOutcome::LeaseLost => DeliveryStepOutcome::LeaseLost,
    };
    Ok(DeliveryStep { outcome: step, response_time: Some(response_time) })
}

/// Records the attempt of a request that a fault withholds: for the sender it is delivered.
async fn record_withheld(app: &App, due: &DueDelivery) -> Result<DeliveryStepOutcome, StoreError> {
    let attempt = Attempt {
        webhook: due.webhook.id,
        seq: due.event.seq,
        lease_until: due.lease_until,
        url: due.webhook.url.clone(),
        at: app.clock().now(),
        outcome: DeliveryOutcome::Accepted,
        response_status: None,
        failure: None,
        decision: RetryDecision::Delivered,
    };
    Ok(match record(app, attempt).await? {
        RecordAttemptOutcome::Recorded => DeliveryStepOutcome::Delivered,
        _ => DeliveryStepOutcome::LeaseLost,
    })
}

/// Records the metrics of a step that began at `started`.
fn finish(app: &App, step: DeliveryStepOutcome, started: Duration) -> DeliveryStepOutcome {
    let took = app.clock().monotonic().saturating_sub(started);
    app.metrics().record_delivery_attempt(step.as_str(), took);
    step
}

/// Logs a failed attempt: the first of an outage as a warning, the others for debugging.
fn log_outcome(
    app: &App,
    due: &DueDelivery,
    trace: Option<TraceContext>,
    response: &PostOutcome,
    decision: RetryDecision,
) {
    let Webhook { account, id: webhook, url, .. } = &due.webhook;
    let now = app.clock().monotonic();
    if decision == RetryDecision::Delivered {
        return app.failure_log().end_outage(*webhook);
    }
    let (reason, cause) = match response {
        PostOutcome::Responded { status, .. } => (format!("it responded with {status}"), None),
        PostOutcome::Failed(failure) => (failure.to_string(), failure.hidden_cause),
        PostOutcome::NotSent => return,
    };
    // The rest of a URL is often a secret.
    let (origin, seq) = (origin(url), due.event.seq);
    let (trace_id, span_id) = ids(trace);
    if !app.failure_log().is_first(*webhook, now) {
        tracing::debug!(
            %account, %webhook, origin, seq, reason, trace_id, span_id,
            "a delivery failed"
        );
        return;
    }
    if let Some(cause) = cause {
        tracing::warn!(
            %account, %webhook, %cause, trace_id, span_id,
            "an endpoint cannot be used"
        );
    }
    tracing::warn!(
        %account, %webhook, origin, seq, reason, trace_id, span_id,
        "a delivery failed; further failures of this outage are logged at the level debug"
    );
}

/// Records an attempt. If it is not recorded, the event is sent again.
async fn record(app: &App, attempt: Attempt) -> Result<RecordAttemptOutcome, StoreError> {
    let lease_until = attempt.lease_until;
    record_during_lease(app, lease_until, || app.store().record_attempt(attempt.clone())).await
}

/// Records what was sent, again and again while the store is unavailable and the lease lasts.
pub(super) async fn record_during_lease<T, F>(
    app: &App,
    lease_until: Timestamp,
    record: impl Fn() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    loop {
        let recorded = record().await;
        if !should_retry(&recorded, app.clock().now() < lease_until) {
            return recorded;
        }
        tokio::time::sleep(RECORD_RETRY_DELAY).await;
    }
}

/// Whether to try again to record an attempt: the store may become available during the lease.
fn should_retry<T>(recorded: &Result<T, StoreError>, is_leased: bool) -> bool {
    let is_unavailable = matches!(
        recorded,
        Err(StoreError::Busy | StoreError::Full(_) | StoreError::Unavailable(_))
    );
    is_unavailable && is_leased
}

impl DeliveryStepOutcome {
    /// The value of the metric label `outcome`.
    fn as_str(self) -> &'static str {
        match self {
            Self::Idle(_) => "idle",
            Self::Delivered => "delivered",
            Self::WillRetry(_) => "will_retry",
            Self::GaveUp => "gave_up",
            Self::Disabled(_) => "disabled",
            Self::LeaseLost => "late",
            Self::Deferred => "deferred",
            Self::SigningFailed => "unsigned",
        }
    }
}

/// Builds the signed request for an event, in the format of its endpoint.
fn build_request(
    app: &App,
    due: &DueDelivery,
    trace: Option<TraceContext>,
    now: Timestamp,
) -> Result<PostRequest, DecryptError> {
    let DueDelivery { webhook, event, .. } = due;
    // A store restored from a backup reuses sequence numbers; the timestamp keeps ids unique.
    let id = format!("evt_{}_{}_{}", webhook.account, event.seq, event.at.as_millisecond());
    let body = match webhook.format {
        Format::Galley => event_json::event(event),
        Format::Whatsapp => meta_payload::build(due),
    };
    let mut request = app.webhooks().signed_request(webhook, id, body, now)?;
    if let Some(trace) = trace
        && let Ok(value) = HeaderValue::try_from(trace.to_string())
    {
        request.headers.push((TRACEPARENT, value));
    }
    Ok(request)
}

/// The ids of an attempt's trace and span, for the log.
fn ids(trace: Option<TraceContext>) -> (Option<impl Value>, Option<impl Value>) {
    (trace.map(|it| display(it.trace_id())), trace.map(|it| display(it.span_id())))
}

/// The delay that an endpoint requests with `Retry-After`.
fn retry_delay(retry_after: RetryAfter, now: Timestamp) -> Duration {
    match retry_after {
        RetryAfter::After(delay) => delay,
        RetryAfter::At(time) => time.duration_since(now).try_into().unwrap_or_default(),
    }
}

/// A random number from 0 to 1 inclusive, for jitter.
fn jitter(app: &App) -> f64 {
    let [byte] = random(app);
    f64::from(byte) / 255.0
}

fn random<const LENGTH: usize>(app: &App) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    app.webhooks().random.fill(&mut bytes);
    bytes
}

pub(super) fn saturating_add(start: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    start.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::{fmt, sync::Arc};

    use super::*;

    #[test]
    fn a_store_that_is_unavailable_is_tried_again_during_the_lease() {
        let busy = || Err::<(), _>(StoreError::Busy);
        assert!(should_retry(&busy(), true));
        assert!(!should_retry(&busy(), false), "another worker may have the event");
        assert!(!should_retry(&Ok(()), true));
        assert!(!should_retry(&Err::<(), _>(StoreError::Damaged(Arc::new(fmt::Error))), true));
    }
}
