//! Records delivery attempts, and their effect on the endpoint.

use galley_domain::{id::WebhookId, webhook::delivery::DisableReason};
use jiff::Timestamp;
use tokio_postgres::Row;

use crate::{
    Attempt, Author, RecordAttemptOutcome, StoreError, Webhook,
    decisions::audit::AuditedChange,
    decisions::{
        deliveries::{AttemptResult, EndpointUpdate, health},
        endpoint_health::EndpointHealth,
    },
    postgres::{
        columns::{get, key, millis},
        events,
        pipeline::owned,
        pool::Values,
        transaction::Transaction,
        webhooks,
    },
    stored_row,
    webhooks::webhook,
};

/// The endpoint, and the template of the delivery if the lease is still valid.
pub(super) const LEASED: &str = concat!(
    "SELECT ",
    webhooks::columns!(),
    ", greatest(a.last_seq - w.cursor, 0) AS behind, d.template_id \
     FROM webhook w JOIN account a ON a.id = w.account_id JOIN delivery d ON d.webhook_id = w.id \
     AND d.seq = $2 AND d.leased_until = $3 WHERE w.id = $1"
);

const RECORD: &str = "UPDATE delivery SET status = $4, attempts = attempts + 1, due_at = $5, \
     leased_until = NULL, attempted_at = $6, response_status = $7, failure = $8 \
     WHERE webhook_id = $1 AND seq = $2 AND leased_until = $3";

/// Makes the first pending event of a template due now.
pub(super) const SCHEDULE_NEXT: &str = "UPDATE delivery SET due_at = $3 WHERE webhook_id = $1 AND \
     due_at IS NULL AND seq = (SELECT min(seq) FROM delivery WHERE webhook_id = $1 AND \
     template_id = $2 AND status = 'waiting')";

const UPDATE_HEALTH: &str = "UPDATE webhook SET failures = $2, failing_since = $3, failed_at = $4, \
     resting_until = $5 WHERE id = $1";

/// Disables an endpoint. Its pending deliveries stay queued.
const DISABLE: &str = "UPDATE webhook SET disabled_at = $2, disabled_because = $3, \
     resting_until = NULL WHERE id = $1";

/// Records an attempt. `rows` are those of [`webhooks::LOCK`] and [`LEASED`].
pub(in crate::postgres) async fn record(
    transaction: &mut Transaction,
    rows: &[Vec<Row>],
    attempt: &Attempt,
) -> Result<RecordAttemptOutcome, StoreError> {
    let Some(row) = rows.last().and_then(|rows| rows.first()) else {
        transaction.set_rollback_only();
        return Ok(RecordAttemptOutcome::LeaseLost);
    };
    let (webhook, template) =
        (webhook(&stored_row::Row::Postgres(row))?, get::<i64>(row, "template_id")?);
    let result = AttemptResult::of(attempt, &webhook, health(row)?);
    let id = key(webhook.id.get());
    let values = owned![
        id,
        key(attempt.seq),
        millis(attempt.lease_until),
        result.status.as_str(),
        result.due_at.map(millis),
        millis(attempt.at),
        attempt.response_status.map(i32::from),
        attempt.failure.clone(),
    ];
    transaction.defer(RECORD, values);
    if result.is_final() {
        transaction.defer(SCHEDULE_NEXT, owned![id, template, millis(attempt.at)]);
    }
    match &result.endpoint {
        EndpointUpdate::Unchanged => {}
        EndpointUpdate::Health(health) => update_health(transaction, webhook.id, *health),
        EndpointUpdate::Disable(reason) => {
            disable(transaction, &webhook, *reason, attempt.at).await?;
        }
    }
    Ok(result.outcome())
}

/// Makes the first pending event of a template due now.
pub(in crate::postgres) async fn schedule_next(
    transaction: &Transaction,
    id: WebhookId,
    template: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let values: Values<'_> = &[&key(id.get()), &template, &millis(at)];
    transaction.execute(SCHEDULE_NEXT, values).await.map(drop)
}

fn update_health(transaction: &mut Transaction, id: WebhookId, health: EndpointHealth) {
    let values = owned![
        key(id.get()),
        i32::try_from(health.failures).unwrap_or(i32::MAX),
        health.failing_since.map(millis),
        health.failed_at.map(millis),
        health.resting_until.map(millis),
    ];
    transaction.defer(UPDATE_HEALTH, values);
}

/// Disables the endpoint, with an event. Its row is locked already, and the account's after it, as
/// everywhere.
async fn disable(
    transaction: &mut Transaction,
    webhook: &Webhook,
    reason: DisableReason,
    at: Timestamp,
) -> Result<(), StoreError> {
    transaction.lock(webhook.account).await?;
    transaction.defer(DISABLE, owned![key(webhook.id.get()), millis(at), reason.as_str()]);
    events::append_disabled(transaction, webhook, reason.as_str(), at);
    let after = Webhook { disabled: Some((at, reason)), ..webhook.clone() };
    let change = AuditedChange::WebhookChanged(&after);
    transaction.audit(webhook.account, change, Author::service(at));
    Ok(())
}
