//! Events.

use galley_domain::{
    id::{TemplateId, WebhookId},
    rulebook::Category,
    template::{Status, lifecycle::EventType},
};
use jiff::Timestamp;

use crate::{Actor, TraceContext};

/// An entry in an account's event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The sequence number: 1, 2, 3 … in each account, without gaps.
    pub seq: u64,
    /// The event type.
    pub kind: EventType,
    /// The template, endpoint or provider that the event is about.
    pub subject: EventSubject,
    /// The time of the event.
    pub at: Timestamp,
    /// That time on the clock of an emulator account. Events that are about other things than
    /// templates, and creations, have none.
    pub emulated_at: Option<Timestamp>,
    /// Who caused it.
    pub actor: Actor,
    /// The present name of the actor's token; empty without one.
    pub actor_name: String,
    /// The reason that the actor gave.
    pub reason: Option<String>,
    /// The trace of the request that caused it. Deliveries belong to this trace, too.
    pub trace: Option<TraceContext>,
}

/// The subject of an event, as it was at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSubject {
    /// A template.
    Template {
        /// The template's id.
        id: TemplateId,
        /// Its version number.
        version: u64,
        /// Its name.
        name: String,
        /// Its language.
        language: String,
        /// Its category.
        category: Category,
        /// Its status.
        status: Status,
    },
    /// A webhook endpoint.
    Webhook {
        /// The endpoint's id.
        id: WebhookId,
        /// Scheme and host of its URL; the rest may be a secret.
        origin: String,
    },
    /// The provider of the account.
    Upstream {
        /// Scheme and host of its base URL.
        origin: String,
    },
}

/// The result of reading events after a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feed {
    /// The events after the cursor, without gaps.
    Events(Vec<Event>),
    /// The next event has been deleted; this is the number of the oldest one available, which may
    /// not have been written yet.
    Expired(u64),
    /// The cursor is beyond the newest event, which is this one.
    CursorAhead(u64),
}
