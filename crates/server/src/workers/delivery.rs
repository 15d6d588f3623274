//! Delivering: a step takes an event that is due, tries it, and writes down what came of it.

use std::time::Duration;

use axum::{
    body::Bytes,
    http::{HeaderName, HeaderValue, header},
};
use galley_domain::{
    id::WebhookId,
    webhook::{
        Format,
        delivery::{DisableReason, Reply, Verdict},
    },
};
use galley_store::{
    Attempt, AttemptRecorded, DeliveryLease, DueDelivery, StoreError, StoredSecret, Webhook,
};
use jiff::{SignedDuration, Timestamp};

use crate::delivery::{
    CannotOpen, Outcome, Post, RetryAfter,
    meta_payload::envelope,
    meta_signature,
    signature::{self, Secret},
};
use crate::{app::App, event_json};

/// How much longer than an attempt can take nobody else takes its event.
const MARGIN: Duration = Duration::from_secs(5);

/// How long to rest before an attempt is tried to be written down once more.
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// What came of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is nothing to do before that moment, if ever.
    Idle(Option<Timestamp>),
    /// The endpoint has it.
    Delivered,
    /// It will be tried again then.
    WillRetry(Timestamp),
    /// That was the last attempt.
    GaveUp,
    /// Nothing is sent to the endpoint any more.
    Disabled(DisableReason),
    /// It took so long that somebody else has the event now.
    Late,
    /// Nothing can be signed with the secret that is kept: for the operator to mend.
    Unsigned,
}

/// Takes one due event of an endpoint, tries to deliver it, and writes down what came of it.
pub async fn deliver_one(app: &App, webhook: WebhookId) -> Result<Step, StoreError> {
    match take(app, webhook).await? {
        DeliveryLease::Due(due) => attempt(app, &due).await,
        DeliveryLease::Nothing(until) => Ok(Step::Idle(until)),
    }
}

pub(super) async fn take(app: &App, webhook: WebhookId) -> Result<DeliveryLease, StoreError> {
    let now = app.clock().now();
    let lease = later(now, app.webhooks().timeout + MARGIN);
    app.store().lease_delivery(webhook, now, lease).await
}

pub(super) async fn attempt(app: &App, due: &DueDelivery) -> Result<Step, StoreError> {
    let (begun, now) = (app.clock().monotonic(), app.clock().now());
    let post = match message(app, due, now) {
        Ok(post) => post,
        Err(error) => {
            // That is no fault of the endpoint: it keeps its turn.
            tracing::error!(webhook = %due.webhook.id, %error, "an event cannot be signed");
            app.metrics().attempt(Step::Unsigned.as_str(), Duration::ZERO);
            return Ok(Step::Unsigned);
        }
    };
    if later(now, app.webhooks().timeout) > due.lease {
        // The store was so busy that the lease could end before the attempt does.
        return Ok(Step::Late);
    }
    let outcome = app.webhooks().outgoing.post(post).await;
    let at = app.clock().now();
    let (reply, answer, failure) = match outcome {
        Outcome::Answered { status, retry_after } => {
            (Reply::of(status, retry_after.map(|it| rest(it, at))), Some(status), None)
        }
        Outcome::Failed(failure) => (Reply::None, None, Some(failure.to_string())),
    };
    let verdict = app.webhooks().schedule.after(due.attempts + 1, reply, chance(app));
    let attempt = Attempt {
        webhook: due.webhook.id,
        seq: due.event.seq,
        lease: due.lease,
        url: due.webhook.url.clone(),
        at,
        reply,
        answer,
        failure,
        verdict,
    };
    let step = match record(app, attempt).await? {
        AttemptRecorded::Kept => match verdict {
            Verdict::Delivered => Step::Delivered,
            Verdict::Again(delay) => Step::WillRetry(later(at, delay)),
            Verdict::Failed => Step::GaveUp,
        },
        AttemptRecorded::Disabled(because) => {
            let (webhook, because_word) = (due.webhook.id, because.as_str());
            tracing::warn!(%webhook, because = because_word, "an endpoint is disabled");
            Step::Disabled(because)
        }
        AttemptRecorded::Late => Step::Late,
    };
    let took = app.clock().monotonic().saturating_sub(begun);
    app.metrics().attempt(step.as_str(), took);
    Ok(step)
}

/// Writes an attempt down, however busy the store is: what is not written down is sent twice.
async fn record(app: &App, attempt: Attempt) -> Result<AttemptRecorded, StoreError> {
    loop {
        match app.store().record_attempt(attempt.clone()).await {
            Err(StoreError::Busy | StoreError::Full(_) | StoreError::Unavailable(_))
                if app.clock().now() < attempt.lease =>
            {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            recorded => return recorded,
        }
    }
}

impl Step {
    /// How metrics call it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Idle(_) => "idle",
            Self::Delivered => "delivered",
            Self::WillRetry(_) => "will_retry",
            Self::GaveUp => "gave_up",
            Self::Disabled(_) => "disabled",
            Self::Late => "late",
            Self::Unsigned => "unsigned",
        }
    }
}

/// The event as it is sent, in the form of its endpoint.
fn message(app: &App, due: &DueDelivery, now: Timestamp) -> Result<Post, CannotOpen> {
    let DueDelivery { webhook, event, .. } = due;
    // A store that was put back from a copy gives numbers again: the moment tells them apart.
    let id = format!("evt_{}_{}_{}", webhook.account, event.seq, event.at.as_millisecond());
    let (body, signed) = match webhook.format {
        Format::Galley => {
            let (body, secrets) = (event_json::event(event), secrets(app, webhook, now)?);
            let signature = signature::sign(&secrets, &id, now, body.as_bytes());
            let timestamp = (signature::TIMESTAMP_HEADER, now.as_second().to_string());
            (body, vec![timestamp, (signature::SIGNATURE_HEADER, signature)])
        }
        Format::Whatsapp => {
            let secret = open(app, webhook, &webhook.secret)?;
            let body = envelope(due);
            let signature = meta_signature::sign_hub(&secret, body.as_bytes());
            (body, vec![(meta_signature::HUB_HEADER, signature)])
        }
    };
    let headers = signed.into_iter().chain([(signature::ID_HEADER, id)]);
    let headers = headers.filter_map(|(name, value)| {
        Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?))
    });
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(Post {
        url: webhook.url.clone(),
        headers: headers.chain([json]).collect(),
        body: Bytes::from(body),
    })
}

/// Every secret that counts.
fn secrets(app: &App, webhook: &Webhook, now: Timestamp) -> Result<Vec<Secret>, CannotOpen> {
    let mut secrets = vec![open(app, webhook, &webhook.secret)?];
    if let Some((former, until)) = &webhook.former_secret
        && *until > now
    {
        // One whose key is lost is no reason not to sign with the other.
        secrets.extend(open(app, webhook, former).ok());
    }
    Ok(secrets)
}

fn open(app: &App, webhook: &Webhook, kept: &StoredSecret) -> Result<Secret, CannotOpen> {
    app.webhooks().keyring.open(webhook.account.get(), kept)
}

/// How long an endpoint asks to be left alone.
fn rest(asked: RetryAfter, now: Timestamp) -> Duration {
    match asked {
        RetryAfter::After(time) => time,
        RetryAfter::At(moment) => moment.duration_since(now).try_into().unwrap_or_default(),
    }
}

/// A number from 0 to 1.
fn chance(app: &App) -> f64 {
    let mut byte = [0; 1];
    app.webhooks().random.fill(&mut byte);
    f64::from(byte[0]) / 255.0
}

fn later(at: Timestamp, time: Duration) -> Timestamp {
    let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
    at.checked_add(time).unwrap_or(Timestamp::MAX)
}
