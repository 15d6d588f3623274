//! Records delivery attempts, and their effect on the endpoint.

use galley_domain::{
    id::WebhookId,
    template::lifecycle::EventType,
    webhook::delivery::{
        DeliveryOutcome, DeliveryStatus, DisableReason, EndpointAction, FailureStreak,
        RetryDecision, STREAK_RESET,
    },
};
use jiff::Timestamp;

use super::LOCK;
use crate::{
    Attempt, AuditKind, Author, RecordAttemptOutcome, Store, StoreError, StoreFuture, Webhook,
    decisions::audit::AuditedChange,
    encoding::later,
    engine::{AnnouncedRead, Tx, values},
    events::{self, ServiceEvent},
    stored_row::{Row, StoredRow as _},
    webhooks::{select, webhook},
};

impl Store {
    /// Records an attempt and its effect on the endpoint. If the endpoint is disabled, creates its
    /// `webhook.disabled` event.
    pub fn record_attempt(&self, attempt: Attempt) -> StoreFuture<'_, RecordAttemptOutcome> {
        self.write("record_attempt", attempt, |attempt, tx| Box::pin(record(tx, attempt)))
    }
}

async fn record(tx: &mut Tx<'_>, attempt: &Attempt) -> Result<RecordAttemptOutcome, StoreError> {
    let (id, at) = (attempt.webhook, attempt.at);
    let find = select(
        ", d.template_id",
        "JOIN delivery d ON d.webhook_id = w.id AND d.seq = $2 AND d.leased_until = $3 \
         WHERE w.id = $1",
    );
    let lease = values![id, attempt.seq, attempt.lease_until];
    tx.read_ahead(&[AnnouncedRead::new(LOCK, &lease[..1]), AnnouncedRead::new(&find, &lease)])
        .await?;
    // The template of the delivery, if the lease is still valid.
    let leased = |row: &Row<'_>| Ok((webhook(row)?, health(row)?, row.value("template_id")?));
    let Some((webhook, health, template)) = tx.query_one(&find, &lease, leased).await? else {
        return Ok(tx.refuse(RecordAttemptOutcome::LeaseLost));
    };
    let (status, due_at) = match attempt.decision {
        RetryDecision::Delivered => (DeliveryStatus::Delivered, None),
        RetryDecision::RetryAfter(delay) => (DeliveryStatus::Waiting, Some(later(at, delay))),
        RetryDecision::Failed => (DeliveryStatus::Failed, None),
    };
    let update = "UPDATE delivery SET status = $4, attempts = attempts + 1, due_at = $5, \
                  leased_until = NULL, attempted_at = $6, response_status = $7, failure = $8 \
                  WHERE webhook_id = $1 AND seq = $2 AND leased_until = $3";
    let values = values![
        id,
        attempt.seq,
        attempt.lease_until,
        status.as_str(),
        due_at,
        at,
        attempt.response_status.map(u32::from),
        attempt.failure.as_deref(),
    ];
    tx.defer(update, &values)?;
    if status != DeliveryStatus::Waiting {
        schedule_next(tx, id, template, at)?;
    }
    match health.after(attempt.outcome, at) {
        // The result is one of a previous URL.
        _ if webhook.url != attempt.url => {}
        HealthTransition::Changed(health) => {
            let update = "UPDATE webhook SET failures = $2, failing_since = $3, failed_at = $4, \
                          resting_until = $5 WHERE id = $1";
            let EndpointHealth { failures, failing_since, failed_at, resting_until } = health;
            let failures = failures.min(i32::MAX.unsigned_abs());
            tx.defer(update, &values![id, failures, failing_since, failed_at, resting_until])?;
        }
        HealthTransition::Disabled(reason) if webhook.disabled.is_none() => {
            disable(tx, &webhook, reason, at).await?;
            return Ok(RecordAttemptOutcome::Disabled(reason));
        }
        HealthTransition::Unchanged | HealthTransition::Disabled(_) => {}
    }
    Ok(RecordAttemptOutcome::Recorded)
}

/// Makes the first waiting delivery of a template due now.
pub(crate) fn schedule_next(
    tx: &mut Tx<'_>,
    id: WebhookId,
    template: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let update = "UPDATE delivery SET due_at = $3 WHERE webhook_id = $1 AND due_at IS NULL AND \
                  seq = (SELECT min(seq) FROM delivery WHERE webhook_id = $1 AND \
                  template_id = $2 AND status = 'waiting')";
    tx.defer(update, &values![id, template, at])
}

/// Disables an endpoint, with an event. Its waiting deliveries stay. The endpoint is locked already, and
/// the account after it, as everywhere.
async fn disable(
    tx: &mut Tx<'_>,
    webhook: &Webhook,
    reason: DisableReason,
    at: Timestamp,
) -> Result<(), StoreError> {
    tx.lock(webhook.account).await?;
    let update = "UPDATE webhook SET disabled_at = $2, disabled_because = $3, \
                  resting_until = NULL WHERE id = $1";
    tx.defer(update, &values![webhook.id, at, reason.as_str()])?;
    let event = ServiceEvent {
        account: webhook.account,
        webhook: Some(webhook.id),
        kind: EventType::WebhookDisabled,
        reason: reason.as_str(),
        url: &webhook.url,
        at,
    };
    events::append_of_service(tx, event)?;
    let after = Webhook { disabled: Some((at, reason)), ..webhook.clone() };
    let changed = AuditedChange::of_webhook(AuditKind::WebhookChanged, &after);
    tx.audit(webhook.account, changed, Author::service(at))
}

/// The stored failure history of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EndpointHealth {
    /// Consecutive failed attempts.
    failures: u32,
    /// When the first of them failed.
    failing_since: Option<Timestamp>,
    /// When the last of them failed.
    failed_at: Option<Timestamp>,
    /// No event is sent before this time.
    resting_until: Option<Timestamp>,
}

/// The effect of an attempt on an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HealthTransition {
    /// The health stays the same.
    Unchanged,
    /// This is the new health.
    Changed(EndpointHealth),
    /// The endpoint is disabled, with an event.
    Disabled(DisableReason),
}

impl EndpointHealth {
    /// Applies one more attempt that ended at `at`.
    fn after(self, reply: DeliveryOutcome, at: Timestamp) -> HealthTransition {
        let in_streak = self
            .failed_at
            .is_some_and(|failed_at| at.duration_since(failed_at).unsigned_abs() <= STREAK_RESET);
        let since = self.failing_since.filter(|_| in_streak);
        let failures = if in_streak { self.failures } else { 0 };
        let failing_for = since.map(|since| at.duration_since(since));
        let failing_for = failing_for.map(|time| time.try_into().unwrap_or_default());
        match (FailureStreak { failing_for, failures }).decide(reply) {
            EndpointAction::Reset if self.failed_at.is_none() => HealthTransition::Unchanged,
            // A success does not cancel a pause that the endpoint requested in another attempt.
            EndpointAction::Reset => {
                let resting_until = self.resting_until.filter(|until| *until > at);
                HealthTransition::Changed(Self { resting_until, ..Self::default() })
            }
            EndpointAction::Pause(rest) => {
                let requested = (!rest.is_zero()).then(|| later(at, rest));
                HealthTransition::Changed(Self {
                    failures: failures.saturating_add(1),
                    failing_since: since.or(Some(at)),
                    failed_at: Some(at),
                    resting_until: self.resting_until.max(requested),
                })
            }
            EndpointAction::Disable(reason) => HealthTransition::Disabled(reason),
        }
    }
}

/// The failure history in a row of an endpoint.
fn health(row: &Row<'_>) -> Result<EndpointHealth, StoreError> {
    Ok(EndpointHealth {
        failures: row.decoded("failures", |count: i32| u32::try_from(count).ok())?,
        failing_since: row.optional_timestamp("failing_since")?,
        failed_at: row.optional_timestamp("failed_at")?,
        resting_until: row.optional_timestamp("resting_until")?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{
        HealthTransition::{Changed, Disabled, Unchanged},
        *,
    };

    const FAILED: DeliveryOutcome =
        DeliveryOutcome::Refused { overloaded: false, retry_after: None };
    const HOUR: i64 = 3_600;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + seconds).unwrap()
    }

    fn retry_after(seconds: u64) -> DeliveryOutcome {
        DeliveryOutcome::from_status(503, Some(Duration::from_secs(seconds)))
    }

    fn failing(failures: u32, since: i64, last: i64) -> EndpointHealth {
        let (failing_since, failed_at) = (Some(at(since)), Some(at(last)));
        EndpointHealth { failures, failing_since, failed_at, resting_until: None }
    }

    #[test]
    fn consecutive_failures_are_counted_until_the_first_success() {
        let healthy = EndpointHealth::default();
        assert_eq!(healthy.after(DeliveryOutcome::Accepted, at(0)), Unchanged);
        assert_eq!(healthy.after(FAILED, at(0)), Changed(failing(1, 0, 0)));
        assert_eq!(failing(1, 0, 0).after(FAILED, at(9)), Changed(failing(2, 0, 9)));
        assert_eq!(failing(2, 0, 9).after(DeliveryOutcome::Accepted, at(10)), Changed(healthy));
    }

    #[test]
    fn a_failure_long_after_the_last_one_starts_a_new_streak() {
        let old = failing(7, 0, 0);
        let Changed(within) = old.after(FAILED, at(48 * HOUR)) else { panic!("it is failing") };
        assert_eq!((within.failures, within.failing_since), (8, Some(at(0))));
        let late = 48 * HOUR + 1;
        assert_eq!(old.after(FAILED, at(late)), Changed(failing(1, late, late)));
        assert_eq!(failing(7, 0, late).after(FAILED, at(0)), Changed(failing(1, 0, 0)));
    }

    #[test]
    fn the_longest_requested_pause_applies_and_outlasts_a_success() {
        let resting = |health: EndpointHealth, until| EndpointHealth {
            resting_until: Some(at(until)),
            ..health
        };
        let Changed(first) = EndpointHealth::default().after(retry_after(60), at(0)) else {
            panic!("it is failing")
        };
        assert_eq!(first, resting(failing(1, 0, 0), 60));
        assert_eq!(first.after(retry_after(5), at(1)), Changed(resting(failing(2, 0, 1), 60)));
        let rested = Changed(resting(EndpointHealth::default(), 60));
        assert_eq!(first.after(DeliveryOutcome::Accepted, at(59)), rested);
        assert_eq!(
            first.after(DeliveryOutcome::Accepted, at(60)),
            Changed(EndpointHealth::default())
        );
    }

    #[test]
    fn an_endpoint_that_is_gone_or_fails_too_long_is_disabled() {
        let gone = EndpointHealth::default().after(DeliveryOutcome::Gone, at(0));
        assert_eq!(gone, Disabled(DisableReason::Gone));
        let (end, last) = (5 * 24 * HOUR, 5 * 24 * HOUR - 1);
        assert_eq!(failing(9, 0, last).after(FAILED, at(end)), Disabled(DisableReason::Failing));
    }
}
