//! Deliveries: which events an endpoint gets and when, what a lease waits for, what an attempt
//! changes, and what a replay delivers again.

use std::collections::HashSet;

use galley_domain::{
    id::TemplateId,
    template::{Status, lifecycle::EventType},
    webhook::{
        Format,
        delivery::{DeliveryStatus, RetryDecision},
    },
};
use jiff::Timestamp;

use super::endpoint_health::{EndpointHealth, HealthTransition};
use crate::{
    Attempt, Delivery, DeliveryLease, Event, EventSubject, RecordAttemptOutcome, ReplayOutcome,
    StoreError, Webhook, WebhookKey,
    encoding::later,
    stored_row::{Row, StoredRow as _},
};

/// Maximum number of events that one fan-out reads, for an endpoint that subscribes to few.
pub(crate) const MAX_FAN_OUT_EVENTS: u32 = 2_048;

/// Maximum number of deliveries that one fan-out creates.
pub(crate) const MAX_FAN_OUT_DELIVERIES: usize = 256;

/// Why the delivery of a damaged event failed.
pub(crate) const DAMAGED_EVENT: &str = "the stored event is damaged";

/// The enabled endpoint in a row, and when it has work. `behind` tells whether events come after its
/// cursor; `ripe` is now if a due delivery is not leased, or else the end of the first lease; `later` is
/// when the next delivery becomes due.
pub(crate) fn endpoint_work(
    row: &Row<'_>,
    now: Timestamp,
) -> Result<(WebhookKey, Option<Timestamp>), StoreError> {
    let endpoint = WebhookKey { account: row.account_id("account_id")?, id: row.webhook_id("id")? };
    let is_behind: bool = row.value("behind")?;
    let [ripe, later] = [row.optional_timestamp("ripe")?, row.optional_timestamp("later")?];
    let first = [is_behind.then_some(now), ripe, later].into_iter().flatten().min();
    let resting_until = row.optional_timestamp("resting_until")?;
    Ok((endpoint, first.map(|first| first.max(resting_until.unwrap_or(first)))))
}

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

/// The delivery in a row. A damaged event is marked, so that the other deliveries can be listed.
pub(crate) fn delivery(row: &Row<'_>) -> Result<Delivery, StoreError> {
    let kind = row.parsed("type", EventType::parse).ok();
    let failure: Option<String> = row.value("failure")?;
    Ok(Delivery {
        seq: row.number("seq")?,
        kind,
        template: TemplateId::new(row.number("template_id")?),
        status: row.parsed("status", DeliveryStatus::parse)?,
        attempts: attempt_count(row)?,
        attempted_at: row.optional_timestamp("attempted_at")?,
        due_at: row.optional_timestamp("due_at")?,
        response_status: row
            .optional("response_status", |status: i32| u16::try_from(status).ok())?,
        failure: failure.or_else(|| kind.is_none().then(|| DAMAGED_EVENT.to_owned())),
    })
}

/// The failure history in a row of an endpoint.
pub(crate) fn health(row: &Row<'_>) -> Result<EndpointHealth, StoreError> {
    Ok(EndpointHealth {
        failures: row.decoded("failures", |count: i32| u32::try_from(count).ok())?,
        failing_since: row.optional_timestamp("failing_since")?,
        failed_at: row.optional_timestamp("failed_at")?,
        resting_until: row.optional_timestamp("resting_until")?,
    })
}

/// The number of attempts in a row of a delivery.
pub(crate) fn attempt_count(row: &Row<'_>) -> Result<u32, StoreError> {
    row.decoded("attempts", |count: i32| u32::try_from(count).ok())
}

/// What an attempt changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AttemptResult {
    pub(crate) status: DeliveryStatus,
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) endpoint: HealthTransition,
}

impl AttemptResult {
    /// Decides what an attempt changes about its delivery and its endpoint.
    pub(crate) fn of(attempt: &Attempt, webhook: &Webhook, health: EndpointHealth) -> Self {
        let (status, due_at) = match attempt.decision {
            RetryDecision::Delivered => (DeliveryStatus::Delivered, None),
            RetryDecision::RetryAfter(delay) => {
                (DeliveryStatus::Waiting, Some(later(attempt.at, delay)))
            }
            RetryDecision::Failed => (DeliveryStatus::Failed, None),
        };
        let endpoint = match health.after(attempt.outcome, attempt.at) {
            // Ignore results from a previous URL.
            _ if webhook.url != attempt.url => HealthTransition::Unchanged,
            HealthTransition::Disabled(_) if webhook.disabled.is_some() => {
                HealthTransition::Unchanged
            }
            transition => transition,
        };
        Self { status, due_at, endpoint }
    }

    /// Whether the template's next delivery becomes due.
    pub(crate) fn is_final(&self) -> bool {
        self.status != DeliveryStatus::Waiting
    }

    pub(crate) fn outcome(&self) -> RecordAttemptOutcome {
        match self.endpoint {
            HealthTransition::Disabled(reason) => RecordAttemptOutcome::Disabled(reason),
            HealthTransition::Unchanged | HealthTransition::Changed(_) => {
                RecordAttemptOutcome::Recorded
            }
        }
    }
}

/// The template whose queue a replayed event joins, 0 for none; `None` if the endpoint's format
/// excludes the event.
pub(crate) fn replayed_template(webhook: &Webhook, event: &Event) -> Option<u64> {
    let (template, status) = match event.subject {
        EventSubject::Template { id, status, .. } => (id.get(), Some(status)),
        EventSubject::Webhook { .. } | EventSubject::Upstream { .. } => (0, None),
    };
    webhook.format.includes(event.kind, status).then_some(template)
}

/// Why an event that is not stored cannot be replayed. `oldest` is the oldest stored event.
pub(crate) fn replay_refusal(seq: u64, oldest: u64) -> ReplayOutcome {
    if (1..oldest).contains(&seq) { ReplayOutcome::Expired(oldest) } else { ReplayOutcome::NoEvent }
}

/// The cursor that delivers the events from `first` again, and how many events come after it.
pub(crate) fn rewind(webhook: &Webhook, first: u64, newest: u64) -> (u64, u64) {
    let cursor = webhook.cursor.min(first.saturating_sub(1));
    (cursor, newest.saturating_sub(cursor))
}

#[cfg(test)]
mod tests;
