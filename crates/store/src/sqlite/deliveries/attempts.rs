//! SQL for delivery attempts: records their outcome and the health of the endpoint.

use galley_domain::webhook::delivery::{DeliveryStatus, RetryDecision};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::make_next_due;
use crate::{
    Attempt, RecordAttemptOutcome, StoreError, Webhook,
    encoding::later,
    endpoint_health::{EndpointHealth, HealthTransition},
    sqlite::{
        columns::{key, millis, optional_timestamp},
        events, webhooks,
        writer::Batch,
    },
};

/// Records the outcome of a delivery attempt and updates the health of the endpoint.
pub(in crate::sqlite) fn record_attempt(
    batch: &mut Batch<'_>,
    attempt: &Attempt,
) -> Result<RecordAttemptOutcome, StoreError> {
    let (id, seq) = (key(attempt.webhook.get()), key(attempt.seq));
    let (status, due_at) = match attempt.decision {
        RetryDecision::Delivered => (DeliveryStatus::Delivered, None),
        RetryDecision::RetryAfter(delay) => {
            (DeliveryStatus::Waiting, Some(later(attempt.at, delay)))
        }
        RetryDecision::Failed => (DeliveryStatus::Failed, None),
    };
    let template: Option<i64> = batch
        .connection()
        .prepare_cached(
            "UPDATE delivery SET status = ?4, attempts = attempts + 1, due_at = ?5, \
             leased_until = NULL, attempted_at = ?6, answer = ?7, failure = ?8 \
             WHERE webhook_id = ?1 AND seq = ?2 AND leased_until = ?3 RETURNING template_id",
        )?
        .query_row(
            params![
                id,
                seq,
                millis(attempt.lease_until),
                status.as_str(),
                due_at.map(millis),
                millis(attempt.at),
                attempt.response_status,
                attempt.failure,
            ],
            |row| row.get(0),
        )
        .optional()?;
    let Some(template) = template else { return Ok(RecordAttemptOutcome::LeaseLost) };
    if status != DeliveryStatus::Waiting {
        make_next_due(batch.connection(), attempt.webhook, template, attempt.at)?;
    }
    let Some(webhook) = webhooks::by_id(batch.connection(), attempt.webhook)? else {
        return Ok(RecordAttemptOutcome::LeaseLost);
    };
    // Ignore results from a previous URL.
    if webhook.url != attempt.url {
        return Ok(RecordAttemptOutcome::Recorded);
    }
    update_health(batch, &webhook, attempt)
}

/// The recent failures of an endpoint.
fn endpoint_health(
    connection: &Connection,
    webhook: &Webhook,
) -> Result<EndpointHealth, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT failures, failed_at FROM webhook WHERE id = ?1")?;
    let mut rows = query.query([key(webhook.id.get())])?;
    let Some(row) = rows.next()? else { return Ok(EndpointHealth::default()) };
    Ok(EndpointHealth {
        failures: row.get("failures")?,
        failing_since: webhook.failing_since,
        failed_at: optional_timestamp(row, "failed_at")?,
        resting_until: webhook.resting_until,
    })
}

/// Updates the health of the endpoint; disables it if it is gone or has failed for too long.
fn update_health(
    batch: &mut Batch<'_>,
    webhook: &Webhook,
    attempt: &Attempt,
) -> Result<RecordAttemptOutcome, StoreError> {
    let id = key(webhook.id.get());
    let health = endpoint_health(batch.connection(), webhook)?;
    match health.after(attempt.outcome, attempt.at) {
        HealthTransition::Changed(health) => {
            batch
                .connection()
                .prepare_cached(
                    "UPDATE webhook SET failures = ?2, failing_since = ?3, failed_at = ?4, \
                     resting_until = ?5 WHERE id = ?1",
                )?
                .execute(params![
                    id,
                    health.failures,
                    health.failing_since.map(millis),
                    health.failed_at.map(millis),
                    health.resting_until.map(millis),
                ])?;
        }
        HealthTransition::Disabled(reason) if webhook.disabled.is_none() => {
            webhooks::disable(batch.connection(), webhook.id, reason, attempt.at)?;
            events::append_disabled(batch, webhook, reason.as_str(), attempt.at)?;
            return Ok(RecordAttemptOutcome::Disabled(reason));
        }
        HealthTransition::Unchanged | HealthTransition::Disabled(_) => {}
    }
    Ok(RecordAttemptOutcome::Recorded)
}
