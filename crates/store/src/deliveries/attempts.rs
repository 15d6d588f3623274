//! Records delivery attempts, and their effect on the endpoint.

use galley_domain::{
    id::WebhookId, template::lifecycle::EventType, webhook::delivery::DisableReason,
};
use jiff::Timestamp;

use super::{
    LOCK,
    decisions::{AttemptResult, health},
    endpoint_health::{EndpointHealth, HealthTransition},
};
use crate::{
    Attempt, AuditKind, Author, RecordAttemptOutcome, StoreError, Webhook,
    decisions::audit::AuditedChange,
    engine::{AnnouncedRead, Tx, values},
    events,
    stored_row::{Row, StoredRow as _},
    webhooks::{select, webhook},
};

/// Records the outcome of a delivery attempt and updates the health of the endpoint.
pub(super) async fn record(
    tx: &mut Tx<'_>,
    attempt: &Attempt,
) -> Result<RecordAttemptOutcome, StoreError> {
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
    let result = AttemptResult::of(attempt, &webhook, health);
    let update = "UPDATE delivery SET status = $4, attempts = attempts + 1, due_at = $5, \
                  leased_until = NULL, attempted_at = $6, response_status = $7, failure = $8 \
                  WHERE webhook_id = $1 AND seq = $2 AND leased_until = $3";
    let values = values![
        id,
        attempt.seq,
        attempt.lease_until,
        result.status.as_str(),
        result.due_at,
        at,
        attempt.response_status.map(u32::from),
        attempt.failure.as_deref(),
    ];
    tx.defer(update, &values)?;
    if result.is_final() {
        schedule_next(tx, id, template, at)?;
    }
    match result.endpoint {
        HealthTransition::Unchanged => {}
        HealthTransition::Changed(health) => update_health(tx, id, health)?,
        HealthTransition::Disabled(reason) => disable(tx, &webhook, reason, at).await?,
    }
    Ok(result.outcome())
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

fn update_health(tx: &mut Tx<'_>, id: WebhookId, health: EndpointHealth) -> Result<(), StoreError> {
    let update = "UPDATE webhook SET failures = $2, failing_since = $3, failed_at = $4, \
                  resting_until = $5 WHERE id = $1";
    let failures = health.failures.min(i32::MAX.unsigned_abs());
    let values =
        values![id, failures, health.failing_since, health.failed_at, health.resting_until];
    tx.defer(update, &values)
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
    let (kind, url) = (EventType::WebhookDisabled, &webhook.url);
    let id = Some(webhook.id);
    events::append_of_service(tx, webhook.account, id, kind, reason.as_str(), url, at)?;
    let after = Webhook { disabled: Some((at, reason)), ..webhook.clone() };
    let changed = AuditedChange::of_webhook(AuditKind::WebhookChanged, &after);
    tx.audit(webhook.account, changed, Author::service(at))
}
