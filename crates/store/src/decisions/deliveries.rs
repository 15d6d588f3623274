//! Deliveries: which events an endpoint gets and when, what a lease waits for, what an attempt
//! changes, and what a replay delivers again.

use std::collections::HashSet;

use galley_domain::{
    id::WebhookId,
    template::{Status, lifecycle::EventType},
    webhook::{
        Format,
        delivery::{DOWN_AFTER_FAILURES, DeliveryStatus, DisableReason, RetryDecision},
    },
};
use jiff::Timestamp;

use super::endpoint_health::{EndpointHealth, HealthTransition};
use crate::{
    Attempt, DeliveryLease, DueWebhooks, Event, EventSubject, RecordAttemptOutcome, ReplayOutcome,
    Webhook, encoding::later,
};

/// Maximum number of events that one fan-out reads, for an endpoint that subscribes to few.
pub(crate) const MAX_FAN_OUT_EVENTS: u32 = 2_048;

/// Maximum number of deliveries that one fan-out creates.
pub(crate) const MAX_FAN_OUT_DELIVERIES: usize = 256;

/// The failure count from which an endpoint is probed, as both databases store it.
pub(crate) const PROBED_FROM: i32 = DOWN_AFTER_FAILURES.cast_signed();

/// When an endpoint has work.
pub(crate) struct EndpointWork {
    pub(crate) id: WebhookId,
    /// Whether events come after its cursor.
    pub(crate) is_behind: bool,
    /// Now, if a due delivery is not leased; if all are, the end of the first lease.
    pub(crate) lease_at: Option<Timestamp>,
    /// When the next delivery becomes due.
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) resting_until: Option<Timestamp>,
}

impl DueWebhooks {
    /// Adds an endpoint that is enabled.
    pub(crate) fn add(&mut self, work: &EndpointWork, now: Timestamp) {
        let times = [work.is_behind.then_some(now), work.lease_at, work.due_at];
        let Some(first) = times.into_iter().flatten().min() else { return };
        let first = first.max(work.resting_until.unwrap_or(first));
        if first <= now {
            self.now.push(work.id);
        } else {
            self.next_at = Some(self.next_at.map_or(first, |next| next.min(first)));
        }
    }
}

/// Why nothing of an endpoint is leased now: it or its account is disabled, it rests, or it is down
/// and another delivery probes it. Only one delivery probes at a time: further ones would fail in
/// the same way.
pub(crate) fn refuse_lease(
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
    pub(crate) kind: EventType,
    /// The template's id; 0 for an event that is not about a template.
    pub(crate) template: u64,
    pub(crate) status: Option<Status>,
    /// Whether the endpoint has an undelivered event of the template.
    pub(crate) is_blocked: bool,
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
        }
    }

    /// Whether no further event is added.
    pub(crate) fn is_full(&self) -> bool {
        self.events >= MAX_FAN_OUT_EVENTS || self.deliveries.len() >= MAX_FAN_OUT_DELIVERIES
    }

    /// Adds the next event.
    pub(crate) fn add(&mut self, event: PendingEvent) {
        self.events += 1;
        self.cursor = event.seq;
        let types = &self.webhook.events;
        let is_subscribed = types.is_empty() || types.contains(&event.kind);
        if !is_subscribed || !self.webhook.format.includes(event.kind, event.status) {
            return;
        }
        let is_due = self.templates.insert(event.template) && !event.is_blocked;
        let due_at = is_due.then_some(self.now);
        self.deliveries.push(NewDelivery { seq: event.seq, template: event.template, due_at });
    }

    /// The event of the first due delivery.
    pub(crate) fn first_due(&self) -> Option<u64> {
        self.deliveries.iter().find(|it| it.due_at.is_some()).map(|it| it.seq)
    }

    /// The endpoint's new cursor. `newest` is the account's newest event.
    pub(crate) fn cursor(&self, newest: u64) -> u64 {
        if self.is_full() { self.cursor } else { self.cursor.max(newest) }
    }
}

/// Whether the payload includes the version that the event created.
pub(crate) fn includes_version(format: Format, kind: EventType) -> bool {
    format == Format::Whatsapp && matches!(kind, EventType::Edited | EventType::CategoryChanged)
}

/// What an attempt changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AttemptResult {
    pub(crate) status: DeliveryStatus,
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) endpoint: EndpointUpdate,
}

/// What an attempt changes about its endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EndpointUpdate {
    Unchanged,
    /// This is its new health.
    Health(EndpointHealth),
    /// It is disabled, with an event.
    Disable(DisableReason),
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
        // Ignore results from a previous URL.
        let transition = if webhook.url == attempt.url {
            health.after(attempt.outcome, attempt.at)
        } else {
            HealthTransition::Unchanged
        };
        let endpoint = match transition {
            HealthTransition::Changed(health) => EndpointUpdate::Health(health),
            HealthTransition::Disabled(reason) if webhook.disabled.is_none() => {
                EndpointUpdate::Disable(reason)
            }
            HealthTransition::Unchanged | HealthTransition::Disabled(_) => {
                EndpointUpdate::Unchanged
            }
        };
        Self { status, due_at, endpoint }
    }

    /// Whether the template's next delivery becomes due.
    pub(crate) fn is_final(&self) -> bool {
        self.status != DeliveryStatus::Waiting
    }

    pub(crate) fn outcome(&self) -> RecordAttemptOutcome {
        match self.endpoint {
            EndpointUpdate::Disable(reason) => RecordAttemptOutcome::Disabled(reason),
            EndpointUpdate::Unchanged | EndpointUpdate::Health(_) => RecordAttemptOutcome::Recorded,
        }
    }
}

/// The template whose queue a replayed event joins, 0 for none; `None` if the endpoint's format
/// excludes the event.
pub(crate) fn replayed_template(webhook: &Webhook, event: &Event) -> Option<u64> {
    let (template, status) = match event.subject {
        EventSubject::Template { id, status, .. } => (id.get(), Some(status)),
        EventSubject::Webhook { .. } => (0, None),
    };
    webhook.format.includes(event.kind, status).then_some(template)
}

/// Why an event that is not stored cannot be replayed. `oldest` is the oldest stored event.
pub(crate) fn refuse_replay(seq: u64, oldest: u64) -> ReplayOutcome {
    if (1..oldest).contains(&seq) { ReplayOutcome::Expired(oldest) } else { ReplayOutcome::NoEvent }
}

/// The cursor that delivers the events from `first` again, and how many events come after it.
pub(crate) fn rewind(webhook: &Webhook, first: u64, newest: u64) -> (u64, u64) {
    let cursor = webhook.cursor.min(first.saturating_sub(1));
    (cursor, newest.saturating_sub(cursor))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use galley_domain::{id::AccountId, webhook::delivery::DeliveryOutcome};

    use super::*;
    use crate::StoredSecret;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + seconds).unwrap()
    }

    fn webhook() -> Webhook {
        Webhook {
            id: WebhookId::new(7).unwrap(),
            account: AccountId::new(1).unwrap(),
            url: "https://example.com/hook".to_owned(),
            events: Vec::new(),
            format: Format::Galley,
            subscribed: false,
            secret: StoredSecret(vec![1]),
            former_secret: None,
            cursor: 10,
            behind: 0,
            failing_since: None,
            resting_until: None,
            disabled: None,
            created_at: at(-100),
            updated_at: at(-100),
        }
    }

    fn event(seq: u64, template: u64) -> PendingEvent {
        let status = Some(Status::Approved);
        PendingEvent { seq, kind: EventType::Created, template, status, is_blocked: false }
    }

    fn attempt(outcome: DeliveryOutcome, decision: RetryDecision) -> Attempt {
        Attempt {
            webhook: webhook().id,
            seq: 11,
            lease_until: at(20),
            url: webhook().url,
            at: at(0),
            outcome,
            response_status: None,
            failure: None,
            decision,
        }
    }

    #[test]
    fn only_the_first_unblocked_delivery_of_a_template_is_due() {
        let webhook = webhook();
        let mut fan_out = FanOut::new(&webhook, at(0));
        for event in [
            PendingEvent { is_blocked: true, ..event(11, 1) },
            event(12, 2),
            event(13, 2),
            event(14, 3),
        ] {
            fan_out.add(event);
        }
        let due: Vec<_> = fan_out.deliveries.iter().map(|it| (it.seq, it.due_at)).collect();
        assert_eq!(due, [(11, None), (12, Some(at(0))), (13, None), (14, Some(at(0)))]);
        assert_eq!(fan_out.first_due(), Some(12));
        assert_eq!(fan_out.cursor(20), 20, "no event is left");
        assert_eq!(fan_out.cursor(13), 14, "an event is newer than the account's row");
    }

    #[test]
    fn a_fan_out_stops_after_many_deliveries_or_many_events() {
        let all = webhook();
        let mut fan_out = FanOut::new(&all, at(0));
        let mut next = 11;
        while !fan_out.is_full() {
            fan_out.add(event(next, next));
            next += 1;
        }
        assert_eq!(fan_out.deliveries.len(), MAX_FAN_OUT_DELIVERIES);
        assert_eq!(fan_out.cursor(9_999), next - 1);
        let paused_only = Webhook { events: vec![EventType::Paused], ..webhook() };
        let mut fan_out = FanOut::new(&paused_only, at(0));
        let mut read = 0;
        while !fan_out.is_full() {
            read += 1;
            fan_out.add(event(10 + read, read));
        }
        assert_eq!(read, u64::from(MAX_FAN_OUT_EVENTS));
        assert_eq!((fan_out.deliveries.len(), fan_out.cursor(9_999)), (0, 10 + read));
    }

    #[test]
    fn a_lease_waits_for_a_pause_and_for_the_probe_of_an_endpoint_that_is_down() {
        let nothing_until = |until| Some(DeliveryLease::NothingDue(until));
        let disabled = Webhook {
            disabled: Some((at(0), DisableReason::Gone)),
            resting_until: Some(at(9)),
            ..webhook()
        };
        assert_eq!(refuse_lease(&disabled, false, None, at(0)), nothing_until(None));
        assert_eq!(refuse_lease(&webhook(), true, None, at(0)), nothing_until(None));
        let resting = Webhook { resting_until: Some(at(9)), ..webhook() };
        assert_eq!(refuse_lease(&resting, false, Some(at(5)), at(8)), nothing_until(Some(at(9))));
        assert_eq!(refuse_lease(&resting, false, Some(at(12)), at(9)), nothing_until(Some(at(12))));
        assert_eq!(refuse_lease(&resting, false, None, at(9)), None);
    }

    #[test]
    fn an_attempt_decides_about_its_delivery_and_its_endpoint() {
        let healthy = EndpointHealth::default();
        let delivered = attempt(DeliveryOutcome::Accepted, RetryDecision::Delivered);
        let result = AttemptResult::of(&delivered, &webhook(), healthy);
        assert_eq!((result.status, result.due_at), (DeliveryStatus::Delivered, None));
        assert!(result.is_final());
        assert_eq!(result.endpoint, EndpointUpdate::Unchanged);
        let again = RetryDecision::RetryAfter(Duration::from_secs(5));
        let result =
            AttemptResult::of(&attempt(DeliveryOutcome::NoResponse, again), &webhook(), healthy);
        assert_eq!((result.status, result.due_at), (DeliveryStatus::Waiting, Some(at(5))));
        assert!(!result.is_final() && matches!(result.endpoint, EndpointUpdate::Health(_)));
        assert_eq!(result.outcome(), RecordAttemptOutcome::Recorded);
    }

    #[test]
    fn an_endpoint_is_disabled_once_and_only_for_results_from_its_url() {
        let gone = attempt(DeliveryOutcome::Gone, RetryDecision::Failed);
        let outcome = |webhook: &Webhook| {
            AttemptResult::of(&gone, webhook, EndpointHealth::default()).outcome()
        };
        assert_eq!(outcome(&webhook()), RecordAttemptOutcome::Disabled(DisableReason::Gone));
        let disabled = Some((at(-5), DisableReason::SwitchedOff));
        assert_eq!(outcome(&Webhook { disabled, ..webhook() }), RecordAttemptOutcome::Recorded);
        let moved = Webhook { url: "https://example.com/new".to_owned(), ..webhook() };
        assert_eq!(outcome(&moved), RecordAttemptOutcome::Recorded);
    }

    #[test]
    fn a_replay_moves_the_cursor_back_but_never_ahead() {
        assert_eq!(rewind(&webhook(), 4, 12), (3, 9));
        assert_eq!(rewind(&webhook(), 12, 12), (10, 2));
        assert_eq!(refuse_replay(4, 5), ReplayOutcome::Expired(5));
        for unknown in [0, 5, 6] {
            assert_eq!(refuse_replay(unknown, 5), ReplayOutcome::NoEvent);
        }
    }
}
