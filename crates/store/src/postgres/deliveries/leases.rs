//! Leases deliveries, and creates them from new events.

use galley_domain::{
    id::WebhookId,
    template::{Status, lifecycle::EventType},
    webhook::{Format, delivery::DOWN_AFTER_FAILURES},
};
use jiff::Timestamp;

use super::{attempt_count, schedule_next};
use crate::{
    DeliveryLease, DueDelivery, Event, EventSubject, StoreError, Version, Webhook,
    postgres::{
        columns::{decode, get, key, millis, number, optional_timestamp},
        events,
        pool::Values,
        transaction::Transaction,
        versions, webhooks,
    },
};

/// Number of events that one step turns into deliveries.
const STEP_EVENTS: u64 = 256;

/// Maximum number of steps in one transaction, for an endpoint that subscribes to few events.
const MAX_STEPS: usize = 8;

/// Leases the next due delivery of an endpoint.
pub(in crate::postgres) async fn lease(
    transaction: &Transaction,
    id: WebhookId,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<DeliveryLease, StoreError> {
    let Some((webhook, newest)) = lock_active(transaction, id).await? else {
        return Ok(DeliveryLease::NothingDue(None));
    };
    if let Some(backoff_until) = webhook.resting_until
        && backoff_until > now
    {
        return Ok(DeliveryLease::NothingDue(Some(backoff_until)));
    }
    if let Some(probed_until) = probe_lease_end(transaction, id, now).await? {
        return Ok(DeliveryLease::NothingDue(Some(probed_until)));
    }
    let mut first = first_due(transaction, id, now).await?;
    let (mut cursor, mut steps, mut created) = (webhook.cursor, 0, 0);
    // Skip events that the endpoint does not subscribe to, but create the rows of at most one step.
    while first.is_none() && cursor < newest && steps < MAX_STEPS && created == 0 {
        (cursor, created) = fan_out(transaction, &webhook, cursor, newest, now).await?;
        first = first_due(transaction, id, now).await?;
        steps += 1;
    }
    let Some((seq, attempts)) = first else {
        // If events are left, the next call continues with them.
        let next = if cursor < newest { Some(now) } else { next_due(transaction, id, now).await? };
        return Ok(DeliveryLease::NothingDue(next));
    };
    let found = match events::one_in(transaction, webhook.account, seq).await? {
        Some(event) => with_version(transaction, &webhook, event).await?,
        None => None,
    };
    let Some((event, version)) = found else {
        // The event or its version was deleted: there is nothing to deliver.
        delete(transaction, id, seq, now).await?;
        return Ok(DeliveryLease::NothingDue(Some(now)));
    };
    let update = "UPDATE delivery SET leased_until = $3 WHERE webhook_id = $1 AND seq = $2";
    transaction.execute(update, &[&key(id.get()), &key(seq), &millis(lease_until)]).await?;
    let due = DueDelivery { webhook, event, version, attempts, lease_until };
    Ok(DeliveryLease::Due(Box::new(due)))
}

/// Locks an endpoint; returns it with the number of its account's newest event, unless the endpoint
/// or its account is disabled.
async fn lock_active(
    transaction: &Transaction,
    id: WebhookId,
) -> Result<Option<(Webhook, u64)>, StoreError> {
    let Some(webhook) = webhooks::lock(transaction, id).await? else { return Ok(None) };
    let statement =
        "SELECT disabled_at IS NOT NULL AS is_disabled, last_seq FROM account WHERE id = $1";
    let row = transaction.query_one(statement, &[&key(webhook.account.get())]).await?;
    let Some(row) = row else { return Ok(None) };
    let is_account_disabled: bool = get(&row, "is_disabled")?;
    let newest = number(&row, "last_seq")?;
    Ok(Some((webhook, newest))
        .filter(|(webhook, _)| webhook.disabled.is_none() && !is_account_disabled))
}

/// An event with the version to deliver; `None` if that version was deleted.
async fn with_version(
    transaction: &Transaction,
    webhook: &Webhook,
    event: Event,
) -> Result<Option<(Event, Option<Version>)>, StoreError> {
    let is_edit = matches!(event.kind, EventType::Edited | EventType::CategoryChanged);
    match event.subject {
        EventSubject::Template { id, version, .. }
            if is_edit && webhook.format == Format::Whatsapp =>
        {
            let version = versions::of_event(transaction, id, version).await?;
            Ok(version.map(|version| (event, Some(version))))
        }
        _ => Ok(Some((event, None))),
    }
}

/// The end of the lease that probes an endpoint which is down. Only one delivery probes at a time:
/// further ones would fail in the same way.
async fn probe_lease_end(
    transaction: &Transaction,
    id: WebhookId,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let statement = "SELECT max(d.leased_until) AS until FROM webhook w JOIN delivery d ON \
                     d.webhook_id = w.id WHERE w.id = $1 AND w.failures >= $3 AND \
                     d.due_at <= $2 AND d.leased_until > $2";
    let down_after = i32::try_from(DOWN_AFTER_FAILURES).unwrap_or(i32::MAX);
    let values: Values<'_> = &[&key(id.get()), &millis(now), &down_after];
    let row = transaction.query_one(statement, values).await?;
    row.map_or(Ok(None), |row| optional_timestamp(&row, "until"))
}

async fn first_due(
    transaction: &Transaction,
    id: WebhookId,
    now: Timestamp,
) -> Result<Option<(u64, u32)>, StoreError> {
    let statement = "SELECT seq, attempts FROM delivery WHERE webhook_id = $1 AND due_at <= $2 \
                     AND coalesce(leased_until, 0) <= $2 ORDER BY due_at, seq LIMIT 1";
    let row = transaction.query_one(statement, &[&key(id.get()), &millis(now)]).await?;
    row.map(|row| Ok((number(&row, "seq")?, attempt_count(&row)?))).transpose()
}

/// When the next delivery will be due, if none is: at the end of a lease or of a delay.
async fn next_due(
    transaction: &Transaction,
    id: WebhookId,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let statement = "SELECT (SELECT min(leased_until) FROM delivery WHERE webhook_id = $1 AND \
                     due_at <= $2) AS lease_expires_at, (SELECT min(due_at) FROM delivery WHERE \
                     webhook_id = $1 AND due_at > $2) AS due";
    let row = transaction.query_one(statement, &[&key(id.get()), &millis(now)]).await?;
    let Some(row) = row else { return Ok(None) };
    Ok([optional_timestamp(&row, "lease_expires_at")?, optional_timestamp(&row, "due")?]
        .into_iter()
        .flatten()
        .min())
}

/// Creates deliveries for the next events that the endpoint subscribes to; returns the new cursor
/// and the number of deliveries.
async fn fan_out(
    transaction: &Transaction,
    webhook: &Webhook,
    cursor: u64,
    newest: u64,
    now: Timestamp,
) -> Result<(u64, usize), StoreError> {
    let to = newest.min(cursor + STEP_EVENTS);
    let statement = "SELECT seq, type, template_id, status FROM event WHERE account_id = $1 AND \
                     seq > $2 AND seq <= $3 ORDER BY seq";
    let values: Values<'_> = &[&key(webhook.account.get()), &key(cursor), &key(to)];
    let (mut seqs, mut templates): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    for row in transaction.query(statement, values).await? {
        let kind = decode(&row, "type", |text: String| EventType::parse(&text))?;
        let status = Status::parse(&get::<String>(&row, "status")?);
        let is_subscribed = webhook.events.is_empty() || webhook.events.contains(&kind);
        if is_subscribed && webhook.format.includes(kind, status) {
            seqs.push(get(&row, "seq")?);
            templates.push(get(&row, "template_id")?);
        }
    }
    enqueue(transaction, webhook.id, &seqs, &templates, now).await?;
    let update = "UPDATE webhook SET cursor = $2 WHERE id = $1";
    transaction.execute(update, &[&key(webhook.id.get()), &key(to)]).await?;
    Ok((to, seqs.len()))
}

/// Creates a delivery per event. Deliveries of one template form a queue in which only the first is
/// due. A delivery that already completed is reset and sent again.
async fn enqueue(
    transaction: &Transaction,
    id: WebhookId,
    seqs: &[i64],
    templates: &[i64],
    now: Timestamp,
) -> Result<(), StoreError> {
    if seqs.is_empty() {
        return Ok(());
    }
    let insert = "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
         SELECT $1, seq, template_id, 'waiting', 0, CASE WHEN \
         row_number() OVER (PARTITION BY template_id ORDER BY seq) > 1 OR EXISTS (SELECT 1 \
         FROM delivery d WHERE d.webhook_id = $1 AND d.template_id = new.template_id AND \
         d.status = 'waiting') THEN NULL ELSE $4::int8 END \
         FROM unnest($2::int8[], $3::int8[]) AS new (seq, template_id) \
         ON CONFLICT (webhook_id, seq) DO UPDATE SET status = 'waiting', attempts = 0, \
         due_at = excluded.due_at, leased_until = NULL, answer = NULL, failure = NULL \
         WHERE delivery.status <> 'waiting'";
    let values: Values<'_> = &[&key(id.get()), &seqs, &templates, &millis(now)];
    transaction.execute(insert, values).await.map(drop)
}

/// Deletes a delivery and schedules the next one of its template.
async fn delete(
    transaction: &Transaction,
    id: WebhookId,
    seq: u64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM delivery WHERE webhook_id = $1 AND seq = $2 RETURNING template_id";
    match transaction.query_one(delete, &[&key(id.get()), &key(seq)]).await? {
        Some(row) => schedule_next(transaction, id, get(&row, 0)?, now).await,
        None => Ok(()),
    }
}
