//! Records delivery attempts, and their effect on the endpoint.

use galley_domain::{
    id::WebhookId,
    template::lifecycle::EventType,
    webhook::delivery::{DeliveryStatus, DisableReason, RetryDecision},
};
use jiff::Timestamp;

use super::{
    LOCK,
    endpoint_health::{EndpointHealth, HealthTransition},
};
use crate::{
    Attempt, AuditKind, Author, RecordAttemptOutcome, Store, StoreError, Webhook,
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
    pub async fn record_attempt(
        &self,
        attempt: Attempt,
    ) -> Result<RecordAttemptOutcome, StoreError> {
        self.write("record_attempt", attempt, |attempt, tx| Box::pin(record(tx, attempt))).await
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

/// The failure history in a row of an endpoint.
fn health(row: &Row<'_>) -> Result<EndpointHealth, StoreError> {
    Ok(EndpointHealth {
        failures: row.decoded("failures", |count: i32| u32::try_from(count).ok())?,
        failing_since: row.optional_timestamp("failing_since")?,
        failed_at: row.optional_timestamp("failed_at")?,
        resting_until: row.optional_timestamp("resting_until")?,
    })
}
