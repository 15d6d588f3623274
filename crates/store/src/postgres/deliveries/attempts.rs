//! Records delivery attempts, and their effect on the endpoint.

use galley_domain::{
    id::WebhookId,
    webhook::delivery::{DeliveryStatus, RetryDecision},
};
use jiff::Timestamp;

use crate::{
    Attempt, RecordAttemptOutcome, StoreError, Webhook,
    encoding::later,
    endpoint_health::{EndpointHealth, HealthTransition},
    postgres::{
        columns::{decode, get, key, millis, optional_timestamp},
        events,
        pool::Values,
        transaction::Transaction,
        webhooks,
    },
};

pub(in crate::postgres) async fn record(
    transaction: &mut Transaction,
    attempt: &Attempt,
) -> Result<RecordAttemptOutcome, StoreError> {
    let (status, due_at) = match attempt.decision {
        RetryDecision::Delivered => (DeliveryStatus::Delivered, None),
        RetryDecision::RetryAfter(delay) => {
            (DeliveryStatus::Waiting, Some(later(attempt.at, delay)))
        }
        RetryDecision::Failed => (DeliveryStatus::Failed, None),
    };
    // Lock the endpoint before the delivery, as leasing does.
    let webhook = webhooks::lock(transaction, attempt.webhook).await?;
    let update = "UPDATE delivery SET status = $4, attempts = attempts + 1, due_at = $5, \
                  leased_until = NULL, attempted_at = $6, answer = $7, failure = $8 \
                  WHERE webhook_id = $1 AND seq = $2 AND leased_until = $3 RETURNING template_id";
    let values: Values<'_> = &[
        &key(attempt.webhook.get()),
        &key(attempt.seq),
        &millis(attempt.lease_until),
        &status.as_str(),
        &due_at.map(millis),
        &millis(attempt.at),
        &attempt.response_status.map(i32::from),
        &attempt.failure,
    ];
    let Some(row) = transaction.query_one(update, values).await? else {
        return Ok(RecordAttemptOutcome::LeaseLost);
    };
    if status != DeliveryStatus::Waiting {
        schedule_next(transaction, attempt.webhook, get(&row, 0)?, attempt.at).await?;
    }
    let Some(webhook) = webhook else { return Ok(RecordAttemptOutcome::LeaseLost) };
    // Ignore results from a previous URL.
    if webhook.url != attempt.url {
        return Ok(RecordAttemptOutcome::Recorded);
    }
    record_health(transaction, &webhook, attempt).await
}

/// Makes the first pending event of a template due now.
pub(in crate::postgres) async fn schedule_next(
    transaction: &Transaction,
    id: WebhookId,
    template: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let update = "UPDATE delivery SET due_at = $3 WHERE webhook_id = $1 AND due_at IS NULL AND \
                  seq = (SELECT min(seq) FROM delivery WHERE webhook_id = $1 AND \
                  template_id = $2 AND status = 'waiting')";
    transaction.execute(update, &[&key(id.get()), &template, &millis(at)]).await.map(drop)
}

/// Records the effect of an attempt on the endpoint itself.
async fn record_health(
    transaction: &mut Transaction,
    webhook: &Webhook,
    attempt: &Attempt,
) -> Result<RecordAttemptOutcome, StoreError> {
    let id = key(webhook.id.get());
    let statement = "SELECT failures, failed_at FROM webhook WHERE id = $1";
    let Some(row) = transaction.query_one(statement, &[&id]).await? else {
        return Ok(RecordAttemptOutcome::LeaseLost);
    };
    let health = EndpointHealth {
        failures: decode(&row, "failures", |stored: i32| u32::try_from(stored).ok())?,
        failing_since: webhook.failing_since,
        failed_at: optional_timestamp(&row, "failed_at")?,
        resting_until: webhook.resting_until,
    };
    match health.after(attempt.outcome, attempt.at) {
        HealthTransition::Changed(health) => {
            let update = "UPDATE webhook SET failures = $2, failing_since = $3, failed_at = $4, \
                          resting_until = $5 WHERE id = $1";
            let values: Values<'_> = &[
                &id,
                &i32::try_from(health.failures).unwrap_or(i32::MAX),
                &health.failing_since.map(millis),
                &health.failed_at.map(millis),
                &health.resting_until.map(millis),
            ];
            transaction.execute(update, values).await?;
        }
        HealthTransition::Disabled(reason) if webhook.disabled.is_none() => {
            // The endpoint's row is locked already, so the order is kept.
            transaction.lock(webhook.account).await?;
            webhooks::disable(transaction, webhook.id, reason, attempt.at).await?;
            events::append_disabled(transaction, webhook, reason.as_str(), attempt.at).await?;
            return Ok(RecordAttemptOutcome::Disabled(reason));
        }
        HealthTransition::Unchanged | HealthTransition::Disabled(_) => {}
    }
    Ok(RecordAttemptOutcome::Recorded)
}
