//! Forgetting: events that have been kept for their time, with their deliveries.

use std::collections::HashSet;

use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::delivery::DeliveryStatus,
};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    columns::{account_id, key, millis, number, webhook_id},
    deliveries,
    writer::Batch,
};
use crate::StoreError;

/// How much one step forgets at most: little enough that no write waits long behind it.
const STEP: i64 = 2_000;

/// What one step will forget.
#[derive(Debug)]
pub(super) enum Old {
    /// The account's events up to this one, with their deliveries.
    Events(AccountId, u64),
    /// Deliveries of an endpoint that is gone.
    Deliveries(WebhookId),
}

/// Looks for something to forget.
pub(super) fn find(connection: &Connection, since: Timestamp) -> Result<Option<Old>, StoreError> {
    let mut query = connection.prepare_cached("SELECT id FROM former_webhook LIMIT 1")?;
    let mut rows = query.query([])?;
    if let Some(row) = rows.next()? {
        return Ok(Some(Old::Deliveries(webhook_id(row, "id")?)));
    }
    let mut accounts = connection.prepare_cached("SELECT id FROM account WHERE last_seq > 0")?;
    let mut rows = accounts.query([])?;
    while let Some(row) = rows.next()? {
        let account = account_id(row, "id")?;
        if let Some(last) = old_events(connection, account, since)? {
            return Ok(Some(Old::Events(account, last)));
        }
    }
    Ok(None)
}

/// The last of the account's oldest events that can go. In their order: one that is younger, or
/// that an endpoint waits for, keeps all that come after it.
fn old_events(
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
    let mut rows = query.query(params![key(account.get()), millis(since), STEP])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    match row.get::<_, Option<i64>>("last")? {
        Some(_) => number(row, "last").map(Some),
        None => Ok(None),
    }
}

/// Forgets it, as far as that is still so.
pub(super) fn forget(
    batch: &mut Batch<'_>,
    old: &Old,
    since: Timestamp,
) -> Result<usize, StoreError> {
    let connection = batch.connection();
    match old {
        Old::Deliveries(webhook) => {
            let mut delete = connection.prepare_cached(
                "DELETE FROM delivery WHERE webhook_id = ?1 AND seq <= (SELECT max(seq) FROM \
                 (SELECT seq FROM delivery WHERE webhook_id = ?1 ORDER BY seq LIMIT ?2))",
            )?;
            let deleted = delete.execute([key(webhook.get()), STEP])?;
            let mut done = connection.prepare_cached(
                "DELETE FROM former_webhook WHERE id = ?1 \
                 AND NOT EXISTS (SELECT 1 FROM delivery WHERE webhook_id = ?1)",
            )?;
            Ok(deleted + done.execute([key(webhook.get())])?)
        }
        Old::Events(account, last) => {
            // An endpoint may have been switched on meanwhile, or told to begin anew.
            let Some(still) = old_events(connection, *account, since)? else { return Ok(0) };
            let last = key(still.min(*last));
            forget_deliveries(connection, *account, last, since)?;
            let mut delete = connection
                .prepare_cached("DELETE FROM event WHERE account_id = ?1 AND seq <= ?2")?;
            Ok(delete.execute([key(account.get()), last])?)
        }
    }
}

/// Forgets the deliveries of events. An endpoint that is switched off may still have waited for
/// some: what comes behind them moves up, for when it is switched on again.
fn forget_deliveries(
    connection: &Connection,
    account: AccountId,
    last: i64,
    since: Timestamp,
) -> Result<(), StoreError> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM delivery WHERE seq <= ?2 AND webhook_id IN \
         (SELECT id FROM webhook WHERE account_id = ?1) RETURNING webhook_id, template_id, status",
    )?;
    let mut rows = delete.query([key(account.get()), last])?;
    let mut moved_up = HashSet::new();
    while let Some(row) = rows.next()? {
        if row.get::<_, String>("status")? == DeliveryStatus::Waiting.as_str() {
            moved_up.insert((webhook_id(row, "webhook_id")?, row.get("template_id")?));
        }
    }
    for (webhook, template) in moved_up {
        deliveries::call_next(connection, webhook, template, since)?;
    }
    Ok(())
}
