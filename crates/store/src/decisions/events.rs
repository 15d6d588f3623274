//! The events that changes append.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{Status, lifecycle::EventType},
};
use jiff::Timestamp;

use crate::Actor;

/// A template event to append. Its sequence number is assigned then.
pub(crate) struct NewEvent<'a> {
    pub(crate) account: AccountId,
    pub(crate) kind: EventType,
    pub(crate) template: TemplateId,
    pub(crate) version: u64,
    pub(crate) at: Timestamp,
    pub(crate) actor: Actor,
    pub(crate) category: Category,
    pub(crate) status: Status,
    pub(crate) reason: Option<&'a str>,
}
