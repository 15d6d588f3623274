//! SQL for delivery attempts: records their outcome and the health of the endpoint.

use galley_domain::id::WebhookId;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::{
    Attempt, Author, RecordAttemptOutcome, StoreError, Webhook,
    decisions::audit::AuditedChange,
    decisions::{
        deliveries::{AttemptResult, EndpointUpdate},
        endpoint_health::EndpointHealth,
    },
    sqlite::{
        audit,
        columns::{key, millis},
        events, webhooks,
        writer::Batch,
    },
};

/// Records the outcome of a delivery attempt and updates the health of the endpoint.
pub(in crate::sqlite) fn record(
    batch: &mut Batch,
    attempt: &Attempt,
) -> Result<RecordAttemptOutcome, StoreError> {
    let connection = batch.connection();
    let Some(webhook) = webhooks::by_id(connection, attempt.webhook)? else {
        return Ok(RecordAttemptOutcome::LeaseLost);
    };
    let health = webhooks::health(connection, attempt.webhook)?;
    let result = AttemptResult::of(attempt, &webhook, health);
    let Some(template) = update_delivery(connection, attempt, &result)? else {
        return Ok(RecordAttemptOutcome::LeaseLost);
    };
    if result.is_final() {
        schedule_next(connection, attempt.webhook, template, attempt.at)?;
    }
    match &result.endpoint {
        EndpointUpdate::Unchanged => {}
        EndpointUpdate::Health(health) => update_health(connection, webhook.id, *health)?,
        EndpointUpdate::Disable(reason) => {
            webhooks::disable(connection, webhook.id, *reason, attempt.at)?;
            events::append_disabled(batch, &webhook, reason.as_str(), attempt.at)?;
            let disabled = Some((attempt.at, *reason));
            let account = webhook.account;
            let webhook = Webhook { disabled, ..webhook };
            let change = AuditedChange::WebhookChanged(&webhook);
            audit::append(batch.connection(), account, change, Author::service(attempt.at))?;
        }
    }
    Ok(result.outcome())
}

/// Updates the delivery and returns its template; `None` if the lease is no longer valid.
fn update_delivery(
    connection: &Connection,
    attempt: &Attempt,
    result: &AttemptResult,
) -> Result<Option<i64>, StoreError> {
    let mut update = connection.prepare_cached(
        "UPDATE delivery SET status = ?4, attempts = attempts + 1, due_at = ?5, \
         leased_until = NULL, attempted_at = ?6, response_status = ?7, failure = ?8 \
         WHERE webhook_id = ?1 AND seq = ?2 AND leased_until = ?3 RETURNING template_id",
    )?;
    let values = params![
        key(attempt.webhook.get()),
        key(attempt.seq),
        millis(attempt.lease_until),
        result.status.as_str(),
        result.due_at.map(millis),
        millis(attempt.at),
        attempt.response_status,
        attempt.failure,
    ];
    Ok(update.query_row(values, |row| row.get(0)).optional()?)
}

/// Makes the template's first waiting delivery due now.
pub(in crate::sqlite) fn schedule_next(
    connection: &Connection,
    id: WebhookId,
    template: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE delivery SET due_at = ?3 WHERE webhook_id = ?1 AND due_at IS NULL AND seq = \
             (SELECT min(seq) FROM delivery WHERE webhook_id = ?1 AND template_id = ?2 \
              AND status = 'waiting')",
        )?
        .execute(params![key(id.get()), template, millis(at)])?;
    Ok(())
}

/// Stores the new health of an endpoint.
fn update_health(
    connection: &Connection,
    id: WebhookId,
    health: EndpointHealth,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE webhook SET failures = ?2, failing_since = ?3, failed_at = ?4, \
             resting_until = ?5 WHERE id = ?1",
        )?
        .execute(params![
            key(id.get()),
            health.failures,
            health.failing_since.map(millis),
            health.failed_at.map(millis),
            health.resting_until.map(millis),
        ])?;
    Ok(())
}
