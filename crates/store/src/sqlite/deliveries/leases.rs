//! SQL for leases: leases deliveries to workers, and creates them from new events.

use galley_domain::{id::WebhookId, webhook::delivery::DeliveryStatus};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::schedule_next;
use crate::{
    DeliveryLease, DueDelivery, Event, StoreError, Version, Webhook,
    decisions::deliveries::{
        DAMAGED_EVENT, FanOut, MAX_FAN_OUT_EVENTS, MIN_FAILURES_TO_PROBE, NewDelivery,
        PendingEvent, included_version, lease_refusal,
    },
    sqlite::{
        columns::{key, millis, number, optional_timestamp},
        events, versions, webhooks,
        writer::Batch,
    },
};

/// Leases the endpoint's next due delivery to the calling worker, until `lease_until`.
pub(in crate::sqlite) fn lease(
    batch: &mut Batch,
    id: WebhookId,
    at: Timestamp,
    lease_until: Timestamp,
) -> Result<DeliveryLease, StoreError> {
    let Some(webhook) = webhooks::by_id(batch.connection(), id)? else {
        return Ok(DeliveryLease::NothingDue(None));
    };
    let (is_account_disabled, is_emulator) = account_state(batch.connection(), &webhook)?;
    let probed_until = probe_lease(batch.connection(), id, at)?;
    if let Some(refusal) = lease_refusal(&webhook, is_account_disabled, probed_until, at) {
        return Ok(refusal);
    }
    let newest = batch.newest_seq(webhook.account)?;
    let (mut cursor, mut first) = (webhook.cursor, first_due(batch.connection(), id, at)?);
    if first.is_none() && cursor < newest {
        let fan_out = fan_out(batch.connection(), &webhook, at)?;
        cursor = fan_out.cursor(newest);
        enqueue(batch.connection(), id, &fan_out.deliveries, cursor)?;
        first = fan_out.first_due().map(|seq| (seq, 0));
    }
    let Some((seq, attempts)) = first else {
        // Events beyond the cursor are left for the next call.
        let next = if cursor < newest { Some(at) } else { next_due(batch.connection(), id, at)? };
        return Ok(DeliveryLease::NothingDue(next));
    };
    let (event, version) = match payload(batch.connection(), &webhook, seq) {
        Ok(Some(payload)) => payload,
        // The event or its version was deleted: there is nothing to deliver.
        Ok(None) => {
            delete(batch.connection(), id, seq, at)?;
            return Ok(DeliveryLease::NothingDue(Some(at)));
        }
        // A damaged event must not hold up the later ones.
        Err(StoreError::Damaged(cause)) => {
            tracing::error!(webhook = %id, event = seq, %cause, "an event cannot be delivered");
            fail_damaged(batch.connection(), id, seq, at)?;
            return Ok(DeliveryLease::NothingDue(Some(at)));
        }
        Err(error) => return Err(error),
    };
    batch
        .connection()
        .prepare_cached("UPDATE delivery SET leased_until = ?3 WHERE webhook_id = ?1 AND seq = ?2")?
        .execute([key(id.get()), key(seq), millis(lease_until)])?;
    let due = DueDelivery { webhook, event, version, is_emulator, attempts, lease_until };
    Ok(DeliveryLease::Due(Box::new(due)))
}

/// Whether the account of an endpoint is disabled, and whether it is an emulator.
fn account_state(connection: &Connection, webhook: &Webhook) -> Result<(bool, bool), StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT disabled_at IS NOT NULL, emulator IS NOT NULL FROM account WHERE id = ?1",
        )?
        .query_row([key(webhook.account.get())], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// The event to deliver, with the version that its payload includes; `None` if one of them was
/// deleted.
fn payload(
    connection: &Connection,
    webhook: &Webhook,
    seq: u64,
) -> Result<Option<(Event, Option<Version>)>, StoreError> {
    let Some(event) = events::one(connection, webhook.account, seq)? else { return Ok(None) };
    let Some((id, number)) = included_version(webhook.format, &event) else {
        return Ok(Some((event, None)));
    };
    let version = versions::even_deleted(connection, id, number)?;
    Ok(version.map(|version| (event, Some(version))))
}

/// The end of the lease of the one delivery that probes an endpoint that is down. No other delivery
/// is attempted until then.
fn probe_lease(
    connection: &Connection,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT max(d.leased_until) AS until FROM webhook w JOIN delivery d ON d.webhook_id = w.id \
         WHERE w.id = ?1 AND w.failures >= ?3 AND d.due_at <= ?2 AND d.leased_until > ?2",
    )?;
    let mut rows = query.query(params![key(id.get()), millis(at), MIN_FAILURES_TO_PROBE])?;
    rows.next()?.map_or(Ok(None), |row| optional_timestamp(row, "until"))
}

/// Sequence number and attempts of the first delivery that is due and not leased.
fn first_due(
    connection: &Connection,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<(u64, u32)>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT seq, attempts FROM delivery WHERE webhook_id = ?1 AND due_at <= ?2 \
         AND coalesce(leased_until, 0) <= ?2 ORDER BY due_at, seq LIMIT 1",
    )?;
    let mut rows = query.query([key(id.get()), millis(at)])?;
    rows.next()?.map(|row| Ok((number(row, "seq")?, row.get("attempts")?))).transpose()
}

/// When the next delivery becomes available: a lease ends, or a retry is due.
fn next_due(
    connection: &Connection,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT (SELECT min(leased_until) FROM delivery WHERE webhook_id = ?1 AND due_at <= ?2) \
         AS lease_expires_at, (SELECT min(due_at) FROM delivery WHERE webhook_id = ?1 AND \
         due_at > ?2) AS due",
    )?;
    let mut rows = query.query([key(id.get()), millis(at)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let times = [optional_timestamp(row, "lease_expires_at")?, optional_timestamp(row, "due")?];
    Ok(times.into_iter().flatten().min())
}

/// Turns the events after the endpoint's cursor into deliveries.
fn fan_out<'a>(
    connection: &Connection,
    webhook: &'a Webhook,
    at: Timestamp,
) -> Result<FanOut<'a>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT e.seq, e.type, e.template_id, e.status, EXISTS (SELECT 1 FROM delivery d \
         WHERE d.webhook_id = ?1 AND d.template_id = e.template_id AND d.status = 'waiting') \
         AS is_blocked FROM event e WHERE e.account_id = ?2 AND e.seq > ?3 ORDER BY e.seq LIMIT ?4",
    )?;
    let (id, account) = (key(webhook.id.get()), key(webhook.account.get()));
    let mut rows =
        query.query(params![id, account, key(webhook.cursor), i64::from(MAX_FAN_OUT_EVENTS)])?;
    let mut fan_out = FanOut::new(webhook, at);
    while !fan_out.is_full()
        && let Some(row) = rows.next()?
    {
        fan_out.add(PendingEvent::from_row(row)?);
    }
    Ok(fan_out)
}

/// Creates the deliveries and moves the cursor. A finished delivery is queued again.
fn enqueue(
    connection: &Connection,
    id: WebhookId,
    new: &[NewDelivery],
    cursor: u64,
) -> Result<(), StoreError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
         VALUES (?1, ?2, ?3, 'waiting', 0, ?4) \
         ON CONFLICT (webhook_id, seq) DO UPDATE SET status = 'waiting', attempts = 0, \
         due_at = excluded.due_at, leased_until = NULL, response_status = NULL, failure = NULL \
         WHERE status <> 'waiting'",
    )?;
    for NewDelivery { seq, template, due_at } in new {
        insert.execute(params![key(id.get()), key(*seq), key(*template), due_at.map(millis)])?;
    }
    connection
        .prepare_cached("UPDATE webhook SET cursor = ?2 WHERE id = ?1")?
        .execute([key(id.get()), key(cursor)])?;
    Ok(())
}

/// Deletes a delivery and makes the template's next one due.
fn delete(
    connection: &Connection,
    id: WebhookId,
    seq: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let template: i64 = connection
        .prepare_cached(
            "DELETE FROM delivery WHERE webhook_id = ?1 AND seq = ?2 RETURNING template_id",
        )?
        .query_row([key(id.get()), key(seq)], |row| row.get(0))?;
    schedule_next(connection, id, template, at)
}

/// Ends a delivery whose event is damaged. A replay can repeat it after a restore.
fn fail_damaged(
    connection: &Connection,
    id: WebhookId,
    seq: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let template: i64 = connection
        .prepare_cached(
            "UPDATE delivery SET status = ?3, due_at = NULL, leased_until = NULL, failure = ?4 \
             WHERE webhook_id = ?1 AND seq = ?2 RETURNING template_id",
        )?
        .query_row(
            params![key(id.get()), key(seq), DeliveryStatus::Failed.as_str(), DAMAGED_EVENT],
            |row| row.get(0),
        )?;
    schedule_next(connection, id, template, at)
}
