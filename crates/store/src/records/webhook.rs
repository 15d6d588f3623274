//! Endpoints and deliveries as they go into a store and come out of it.

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::lifecycle::EventType,
    webhook::{
        Format,
        delivery::{DeliveryStatus, DisableReason, Reply, Verdict},
    },
};
use jiff::Timestamp;

use crate::{Event, Version};

/// A signing secret as it is kept. What it is stays out of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSecret(pub Vec<u8>);

impl std::fmt::Debug for StoredSecret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("StoredSecret(…)")
    }
}

/// An endpoint to be registered.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// Whose it is.
    pub account: AccountId,
    /// Where events are sent.
    pub url: String,
    /// Which types; none: all of them.
    pub events: Vec<EventType>,
    /// How.
    pub format: Format,
    /// Whether it is the one that is made by way of the Graph API.
    pub subscribed: bool,
    /// What they are signed with, as the service wants it kept.
    pub secret: StoredSecret,
    /// When. It gets the events from then on.
    pub at: Timestamp,
}

/// What came of registering an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateWebhookOutcome {
    /// It is there.
    Created(Box<Webhook>),
    /// The account has as many as it may have.
    TooMany,
    /// The account has this one already that was made by way of the Graph API.
    Subscribed(WebhookId),
}

/// An endpoint that events are delivered to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Which one.
    pub id: WebhookId,
    /// Whose it is.
    pub account: AccountId,
    /// Where events are sent.
    pub url: String,
    /// Which types; none: all of them.
    pub events: Vec<EventType>,
    /// How.
    pub format: Format,
    /// Whether it is the one that was made by way of the Graph API.
    pub subscribed: bool,
    /// What they are signed with.
    pub secret: StoredSecret,
    /// What they are signed with as well, and until when.
    pub former_secret: Option<(StoredSecret, Timestamp)>,
    /// The last event that has its delivery, or needs none.
    pub cursor: u64,
    /// How many events are behind that.
    pub behind: u64,
    /// Since when nothing could be delivered, if the last attempt failed.
    pub failing_since: Option<Timestamp>,
    /// Until when nothing is sent to it.
    pub resting_until: Option<Timestamp>,
    /// Since when and why nothing is sent to it any more.
    pub disabled: Option<(Timestamp, DisableReason)>,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was last changed by somebody.
    pub updated_at: Timestamp,
}

/// What of an endpoint is to change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookChange {
    /// Another address.
    pub url: Option<String>,
    /// Other types; an empty list: all of them.
    pub events: Option<Vec<EventType>>,
    /// Switched off, or on again: it goes on where it was, as far as the events are still there.
    pub disabled: Option<bool>,
}

/// What came of giving an endpoint another secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// It is signed with now, and with the former one for a while.
    Done(Box<Webhook>),
    /// The former rotation has not ended: until then both secrets count.
    Open(Timestamp),
    /// The account has no such endpoint.
    NoWebhook,
}

/// One event on its way to one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Which event.
    pub seq: u64,
    /// What happened.
    pub kind: EventType,
    /// To which template, if to one.
    pub template: Option<TemplateId>,
    /// What has become of it.
    pub status: DeliveryStatus,
    /// How many attempts were made.
    pub attempts: u32,
    /// When the last one was made.
    pub attempted_at: Option<Timestamp>,
    /// When the next one is made; none while an earlier event of the template is in the way.
    pub due_at: Option<Timestamp>,
    /// The status that the last attempt was answered with.
    pub answer: Option<u16>,
    /// Why the last attempt got no answer.
    pub failure: Option<String>,
}

/// Which deliveries of an endpoint are wanted, newest event first.
#[derive(Clone, Copy, Debug)]
pub struct Deliveries {
    /// Those of which this has become.
    pub status: Option<DeliveryStatus>,
    /// Those of events before this one.
    pub before: Option<u64>,
    /// So many at most.
    pub limit: usize,
}

/// What is to be delivered once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// One event.
    One(u64),
    /// Every event since then, as far as it is kept.
    Since(Timestamp),
}

/// What came of asking for a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayOutcome {
    /// So many events will be looked at once more; those of other types than the endpoint's, and
    /// those that its format does not have, are passed over.
    Queued(u64),
    /// There is no such event.
    NoEvent,
    /// It is not kept any more; this is the oldest that is.
    Forgotten(u64),
    /// The account has no such endpoint.
    NoWebhook,
}

/// Which endpoints have something to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueWebhooks {
    /// These, now.
    pub now: Vec<WebhookId>,
    /// The moment when some other one will.
    pub next: Option<Timestamp>,
}

/// What there is to do for an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryLease {
    /// This, by whoever took it, until its lease ends.
    Due(Box<DueDelivery>),
    /// Nothing before that moment, if ever.
    Nothing(Option<Timestamp>),
}

/// An event that one worker has taken to deliver it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// Where to.
    pub webhook: Webhook,
    /// What.
    pub event: Event,
    /// The version that an edit made, where the format tells what is in it.
    pub version: Option<Version>,
    /// How many attempts were made before.
    pub attempts: u32,
    /// Until when nobody else takes it.
    pub lease: Timestamp,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// To which endpoint.
    pub webhook: WebhookId,
    /// Which event.
    pub seq: u64,
    /// The lease it was made under.
    pub lease: Timestamp,
    /// Where it went: the endpoint may have moved since.
    pub url: String,
    /// When it had ended.
    pub at: Timestamp,
    /// The meaning of the answer.
    pub reply: Reply,
    /// Its status.
    pub answer: Option<u16>,
    /// Why there was none.
    pub failure: Option<String>,
    /// What is to be done about the event.
    pub verdict: Verdict,
}

/// What writing an attempt down has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptRecorded {
    /// It is written down.
    Kept,
    /// So it is, and nothing is sent to the endpoint any more.
    Disabled(DisableReason),
    /// The lease had ended and somebody else has the delivery, or nobody wants it any more.
    Late,
}
