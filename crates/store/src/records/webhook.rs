//! Webhook endpoints and deliveries.

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::lifecycle::EventType,
    webhook::{
        Format,
        delivery::{DeliveryOutcome, DeliveryStatus, DisableReason, RetryDecision},
    },
};
use jiff::Timestamp;

use crate::{Author, Event, Version};

/// A signing secret as the service stores it. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSecret(pub Vec<u8>);

impl std::fmt::Debug for StoredSecret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("StoredSecret(…)")
    }
}

/// An endpoint to register.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// The account that owns it.
    pub account: AccountId,
    /// Where events are sent.
    pub url: String,
    /// The event types to send; empty for all.
    pub events: Vec<EventType>,
    /// The payload format.
    pub format: Format,
    /// Whether it is the account's Graph API subscription.
    pub subscribed: bool,
    /// Whether it also gets what happened before: all stored events, and the statuses of all kept
    /// messages.
    pub from_start: bool,
    /// The signing secret.
    pub secret: StoredSecret,
    /// Who registers it, and when.
    pub by: Author,
}

/// The result of [`create_webhook`](crate::Store::create_webhook).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateWebhookOutcome {
    /// The endpoint was registered.
    Created(Box<Webhook>),
    /// The account has [`MAX_WEBHOOKS`](crate::MAX_WEBHOOKS) endpoints.
    TooMany,
    /// The account already has this endpoint as its Graph API subscription.
    Subscribed(WebhookId),
}

/// A webhook endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The endpoint's id.
    pub id: WebhookId,
    /// The account that owns it.
    pub account: AccountId,
    /// Where events are sent.
    pub url: String,
    /// The event types to send; empty for all.
    pub events: Vec<EventType>,
    /// The payload format.
    pub format: Format,
    /// Whether it is the account's Graph API subscription.
    pub subscribed: bool,
    /// The signing secret.
    pub secret: StoredSecret,
    /// The secret before the last rotation, and until when payloads are also signed with it.
    pub former_secret: Option<(StoredSecret, Timestamp)>,
    /// The last event that was queued for delivery or skipped.
    pub cursor: u64,
    /// How many events come after the cursor.
    pub behind: u64,
    /// When the current streak of failed attempts began.
    pub failing_since: Option<Timestamp>,
    /// Backoff: no event is sent before this time.
    pub resting_until: Option<Timestamp>,
    /// When and why it was disabled, if it is.
    pub disabled: Option<(Timestamp, DisableReason)>,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When a client or the operator last changed it.
    pub updated_at: Timestamp,
}

/// The changes to make to an endpoint; `None` leaves a property as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookChange {
    /// The new URL.
    pub url: Option<String>,
    /// The new event types; an empty list for all.
    pub events: Option<Vec<EventType>>,
    /// Disables or enables the endpoint. An enabled endpoint resumes at its cursor, or at the
    /// oldest event still stored; of messages, it gets only the statuses of later ones.
    pub disabled: Option<bool>,
}

/// The result of [`rotate_webhook`](crate::Store::rotate_webhook).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RotateOutcome {
    /// The secret was replaced; the former one stays valid until the given time.
    Done(Box<Webhook>),
    /// The previous rotation is in progress: both its secrets are valid until this time.
    InProgress(Timestamp),
    /// The account has no such endpoint.
    NoWebhook,
}

/// The delivery of one event to one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The event's sequence number.
    pub seq: u64,
    /// The event type; `None` if the stored event is damaged.
    pub kind: Option<EventType>,
    /// The template that the event is about, if any.
    pub template: Option<TemplateId>,
    /// Its status.
    pub status: DeliveryStatus,
    /// How many attempts were made.
    pub attempts: u32,
    /// When the last attempt was made.
    pub attempted_at: Option<Timestamp>,
    /// When the next attempt is due; `None` while an earlier event of the template is undelivered.
    pub due_at: Option<Timestamp>,
    /// The HTTP status of the last attempt's response.
    pub response_status: Option<u16>,
    /// Why the last attempt got no response.
    pub failure: Option<String>,
}

/// A query for deliveries of an endpoint, newest event first.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryQuery {
    /// Matches this status.
    pub status: Option<DeliveryStatus>,
    /// Only events before this one.
    pub before: Option<u64>,
    /// The maximum number of deliveries.
    pub limit: usize,
}

/// The events to deliver again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// One event.
    One(u64),
    /// Every stored event since this time.
    Since(Timestamp),
}

/// The result of [`replay`](crate::Store::replay).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayOutcome {
    /// This many events are considered again. Events that the endpoint's types or format exclude
    /// are skipped.
    Queued(u64),
    /// No such event was written yet.
    NoEvent,
    /// The event has been deleted; this is the oldest one available.
    Expired(u64),
    /// The account has no such endpoint.
    NoWebhook,
}

/// An endpoint and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WebhookKey {
    /// The account that owns it.
    pub account: AccountId,
    /// The endpoint's id.
    pub id: WebhookId,
}

/// The result of [`lease_delivery`](crate::Store::lease_delivery).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryLease {
    /// The caller holds the lease on this delivery.
    Due(Box<DueDelivery>),
    /// Nothing is due; work may be due at this time.
    NothingDue(Option<Timestamp>),
}

/// A delivery that one worker has leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// The endpoint to send to.
    pub webhook: Webhook,
    /// The event to send.
    pub event: Event,
    /// The version that an edit created, if the format includes its content.
    pub version: Option<Version>,
    /// Whether the account is an emulator, whose faults may strike the request.
    pub is_emulator: bool,
    /// How many attempts were made before.
    pub attempts: u32,
    /// When the lease ends.
    pub lease_until: Timestamp,
}

/// A finished delivery attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The endpoint.
    pub webhook: WebhookId,
    /// The event's sequence number.
    pub seq: u64,
    /// When the lease of the attempt ends, which identifies the lease.
    pub lease_until: Timestamp,
    /// The URL it was sent to; the endpoint may have a new one since.
    pub url: String,
    /// When it ended.
    pub at: Timestamp,
    /// The meaning of the response.
    pub outcome: DeliveryOutcome,
    /// The HTTP status of the response.
    pub response_status: Option<u16>,
    /// Why there was no response.
    pub failure: Option<String>,
    /// Whether and when the event is sent again.
    pub decision: RetryDecision,
}

/// The result of [`record_attempt`](crate::Store::record_attempt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordAttemptOutcome {
    /// The attempt was recorded.
    Recorded,
    /// The attempt was recorded, and the endpoint is now disabled.
    Disabled(DisableReason),
    /// The lease ended and another worker has the delivery, or the delivery is done or deleted.
    LeaseLost,
}
