//! Deliveries: which events an endpoint gets and when, and what a lease waits for.

use std::collections::HashSet;

use galley_domain::{
    id::TemplateId,
    template::{Status, lifecycle::EventType},
    webhook::Format,
};
use jiff::Timestamp;

use crate::{
    DeliveryLease, Event, EventSubject, StoreError, Webhook,
    stored_row::{Row, StoredRow as _},
};

/// Maximum number of events that one fan-out reads, for an endpoint that subscribes to few.
pub(crate) const MAX_FAN_OUT_EVENTS: u32 = 2_048;

/// Maximum number of deliveries that one fan-out creates.
pub(crate) const MAX_FAN_OUT_DELIVERIES: usize = 256;

/// Why the delivery of a damaged event failed.
pub(crate) const DAMAGED_EVENT: &str = "the stored event is damaged";

/// Why nothing of an endpoint is leased now: it or its account is disabled, it rests, or it is down
/// and another delivery probes it. Only one delivery probes at a time: further ones would fail in
/// the same way.
pub(crate) fn lease_refusal(
    webhook: &Webhook,
    is_account_disabled: bool,
    probed_until: Option<Timestamp>,
    now: Timestamp,
) -> Option<DeliveryLease> {
    if webhook.disabled.is_some() || is_account_disabled {
        return Some(DeliveryLease::NothingDue(None));
    }
    let until = webhook.resting_until.filter(|until| *until > now).or(probed_until);
    until.map(|until| DeliveryLease::NothingDue(Some(until)))
}

/// An event beyond an endpoint's cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingEvent {
    pub(crate) seq: u64,
    /// `None` if the stored event is damaged.
    pub(crate) kind: Option<EventType>,
    /// The template's id; 0 for an event that is not about a template.
    pub(crate) template: u64,
    pub(crate) version: u64,
    pub(crate) status: Option<Status>,
    /// Whether the endpoint has an undelivered event of the template.
    pub(crate) is_blocked: bool,
}

impl PendingEvent {
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            seq: row.number("seq")?,
            kind: row.parsed("type", EventType::parse).ok(),
            template: row.number("template_id").unwrap_or_default(),
            version: row.number("version").unwrap_or_default(),
            // Empty for an event that is not about a template.
            status: row.status("status").ok(),
            is_blocked: row.value("is_blocked")?,
        })
    }

    /// The version that the payload of the event includes.
    pub(crate) fn included_version(&self, format: Format) -> Option<(TemplateId, u64)> {
        let template = TemplateId::new(self.template)?;
        includes_version(format, self.kind?).then_some((template, self.version))
    }
}

/// A delivery to create. Of one template's deliveries only the first is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewDelivery {
    pub(crate) seq: u64,
    pub(crate) template: u64,
    pub(crate) due_at: Option<Timestamp>,
}

/// Turns the events after an endpoint's cursor into deliveries.
pub(crate) struct FanOut<'a> {
    webhook: &'a Webhook,
    now: Timestamp,
    cursor: u64,
    events: u32,
    templates: HashSet<u64>,
    pub(crate) deliveries: Vec<NewDelivery>,
    /// The event of the first due delivery.
    pub(crate) first_due: Option<PendingEvent>,
}

impl<'a> FanOut<'a> {
    pub(crate) fn new(webhook: &'a Webhook, now: Timestamp) -> Self {
        Self {
            webhook,
            now,
            cursor: webhook.cursor,
            events: 0,
            templates: HashSet::new(),
            deliveries: Vec::new(),
            first_due: None,
        }
    }

    /// Whether no further event is added.
    pub(crate) fn is_full(&self) -> bool {
        self.events >= MAX_FAN_OUT_EVENTS || self.deliveries.len() >= MAX_FAN_OUT_DELIVERIES
    }

    /// Adds the next event. A damaged one is queued too: its delivery fails when it is leased, which
    /// is logged and shown, and does not hold up the later ones.
    pub(crate) fn add(&mut self, event: PendingEvent) {
        self.events += 1;
        self.cursor = event.seq;
        let webhook = self.webhook;
        let is_wanted = |kind| {
            (webhook.events.is_empty() || webhook.events.contains(&kind))
                && webhook.format.includes(kind, event.status)
        };
        if !event.kind.is_none_or(is_wanted) {
            return;
        }
        let is_due = self.templates.insert(event.template) && !event.is_blocked;
        if is_due && self.first_due.is_none() {
            self.first_due = Some(event);
        }
        let due_at = is_due.then_some(self.now);
        self.deliveries.push(NewDelivery { seq: event.seq, template: event.template, due_at });
    }

    /// The endpoint's new cursor. `newest` is the account's newest event.
    pub(crate) fn cursor(&self, newest: u64) -> u64 {
        if self.is_full() { self.cursor } else { self.cursor.max(newest) }
    }
}

/// Whether the payload includes the version that the event created.
fn includes_version(format: Format, kind: EventType) -> bool {
    format == Format::Whatsapp && matches!(kind, EventType::Edited | EventType::CategoryChanged)
}

/// The version that the payload of an event includes.
pub(crate) fn included_version(format: Format, event: &Event) -> Option<(TemplateId, u64)> {
    match event.subject {
        EventSubject::Template { id, version, .. } if includes_version(format, event.kind) => {
            Some((id, version))
        }
        EventSubject::Template { .. }
        | EventSubject::Webhook { .. }
        | EventSubject::Upstream { .. } => None,
    }
}

/// The number of attempts in a row of a delivery.
pub(crate) fn attempt_count(row: &Row<'_>) -> Result<u32, StoreError> {
    row.decoded("attempts", |count: i32| u32::try_from(count).ok())
}

#[cfg(test)]
mod tests;
