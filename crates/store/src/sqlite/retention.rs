//! SQL for retention: deletes expired events with their deliveries, and the templates whose
//! deletion has expired.

use std::collections::HashSet;

use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::delivery::DeliveryStatus,
};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    columns::{account_id, key, millis, number, webhook_id},
    stored_bytes::{plan_purge, purge_templates},
    writer::Batch,
};
use crate::{StoreError, deliveries::schedule_next, engine::Tx};

/// Maximum number of rows of each kind that one write deletes: few enough that other writes do not
/// wait long.
const MAX_PURGE_ROWS: i64 = 2_000;

/// What one write deletes.
#[derive(Debug)]
pub(super) enum PurgeTarget {
    /// The account's events up to this one, with their deliveries.
    Events(AccountId, u64),
    /// Deliveries of a deleted endpoint.
    Deliveries(WebhookId),
}

/// Finds expired rows, if there are any.
pub(super) fn find_purge_target(
    connection: &Connection,
    since: Timestamp,
) -> Result<Option<PurgeTarget>, StoreError> {
    let mut query = connection.prepare_cached("SELECT id FROM former_webhook LIMIT 1")?;
    let mut rows = query.query([])?;
    if let Some(row) = rows.next()? {
        return Ok(Some(PurgeTarget::Deliveries(webhook_id(row, "id")?)));
    }
    let mut accounts = connection.prepare_cached("SELECT id FROM account WHERE last_seq > 0")?;
    let mut rows = accounts.query([])?;
    while let Some(row) = rows.next()? {
        let account = account_id(row, "id")?;
        if let Some(last) = last_expired_event(connection, account, since)? {
            return Ok(Some(PurgeTarget::Events(account, last)));
        }
    }
    Ok(None)
}

/// The last event of the account that can be deleted with all events before it. Events are deleted
/// in order: one that has not expired, or that an endpoint has yet to receive, protects all later
/// ones.
fn last_expired_event(
    connection: &Connection,
    account: AccountId,
    since: Timestamp,
) -> Result<Option<u64>, StoreError> {
    let mut oldest = connection
        .prepare_cached("SELECT at FROM event WHERE account_id = ?1 ORDER BY seq LIMIT 1")?;
    let oldest: Option<i64> =
        oldest.query_row([key(account.get())], |row| row.get(0)).optional()?;
    if oldest.is_none_or(|at| at >= millis(since)) {
        return Ok(None);
    }
    let mut query = connection.prepare_cached(
        "SELECT max(seq) AS last FROM (SELECT seq FROM event WHERE account_id = ?1 \
         ORDER BY seq LIMIT ?3) WHERE seq < coalesce((SELECT min(seq) FROM (SELECT seq, at \
         FROM event WHERE account_id = ?1 ORDER BY seq LIMIT ?3) WHERE at >= ?2), seq + 1) \
         AND seq <= coalesce((SELECT min(min(w.cursor, coalesce((SELECT min(d.seq) - 1 \
         FROM delivery d WHERE d.webhook_id = w.id AND d.status = 'waiting'), w.cursor))) \
         FROM webhook w WHERE w.account_id = ?1 AND w.disabled_at IS NULL), seq)",
    )?;
    let mut rows = query.query(params![key(account.get()), millis(since), MAX_PURGE_ROWS])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    match row.get::<_, Option<i64>>("last")? {
        Some(_) => number(row, "last").map(Some),
        None => Ok(None),
    }
}

/// Deletes the rows that are still expired. Returns how many.
pub(super) fn purge(
    batch: &mut Batch,
    target: &PurgeTarget,
    since: Timestamp,
) -> Result<usize, StoreError> {
    let connection = batch.connection();
    match target {
        PurgeTarget::Deliveries(webhook) => {
            let mut delete = connection.prepare_cached(
                "DELETE FROM delivery WHERE webhook_id = ?1 AND seq <= (SELECT max(seq) FROM \
                 (SELECT seq FROM delivery WHERE webhook_id = ?1 ORDER BY seq LIMIT ?2))",
            )?;
            let deleted = delete.execute([key(webhook.get()), MAX_PURGE_ROWS])?;
            let mut delete_webhook = connection.prepare_cached(
                "DELETE FROM former_webhook WHERE id = ?1 \
                 AND NOT EXISTS (SELECT 1 FROM delivery WHERE webhook_id = ?1)",
            )?;
            Ok(deleted + delete_webhook.execute([key(webhook.get())])?)
        }
        PurgeTarget::Events(account, last) => {
            // An endpoint may have been enabled, or a replay requested, since the rows were found.
            let Some(still_expired) = last_expired_event(connection, *account, since)? else {
                return Ok(0);
            };
            let plan = plan_purge(connection, *account, still_expired.min(*last))?;
            let last = key(plan.last);
            delete_deliveries(batch, *account, last, since)?;
            let connection = batch.connection();
            let mut delete = connection
                .prepare_cached("DELETE FROM event WHERE account_id = ?1 AND seq <= ?2")?;
            let deleted = delete.execute([key(account.get()), last])?;
            drop(delete);
            Ok(deleted + purge_templates(batch, *account, &plan)?)
        }
    }
}

/// Deletes the deliveries of expired events. If one of them was waiting for a disabled endpoint,
/// the next delivery of its template becomes due, so that it is sent when the endpoint is enabled.
fn delete_deliveries(
    batch: &mut Batch,
    account: AccountId,
    last: i64,
    since: Timestamp,
) -> Result<(), StoreError> {
    let mut delete = batch.connection().prepare_cached(
        "DELETE FROM delivery WHERE seq <= ?2 AND webhook_id IN \
         (SELECT id FROM webhook WHERE account_id = ?1) RETURNING webhook_id, template_id, status",
    )?;
    let mut rows = delete.query([key(account.get()), last])?;
    let mut unblocked = HashSet::new();
    while let Some(row) = rows.next()? {
        if row.get::<_, String>("status")? == DeliveryStatus::Waiting.as_str() {
            unblocked.insert((webhook_id(row, "webhook_id")?, row.get("template_id")?));
        }
    }
    drop(rows);
    drop(delete);
    for (webhook, template) in unblocked {
        schedule_next(&mut Tx::new(batch), webhook, template, since)?;
    }
    Ok(())
}
