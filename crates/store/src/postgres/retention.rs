//! Retention: deletes expired events and their deliveries, and the templates whose deletion has
//! expired.

use std::collections::HashSet;

use galley_domain::{id::AccountId, webhook::delivery::DeliveryStatus};
use jiff::Timestamp;

use super::{
    PostgresStore,
    columns::{account_id, get, key, millis, number, webhook_id},
    pool::{PgPools, Values},
    stored_bytes::{plan_purge, purge_templates},
    transaction::{Transaction, transact},
};
use crate::{StoreError, deliveries::schedule_next, engine::Tx};

/// Maximum number of rows deleted in one transaction: few enough that no write waits long.
const MAX_PURGE_ROWS: i64 = 2_000;

/// The outcome of deleting events of an account.
enum Deletion {
    /// This many were deleted.
    Deleted(usize),
    /// Another transaction has locked one of its endpoints.
    InUse,
}

impl PostgresStore {
    /// Deletes deliveries of deleted endpoints, or else some expired events; returns how many. Each
    /// account has its own transaction, so that no lock on one is held while waiting for another.
    pub(super) async fn delete_some_expired_events(
        &self,
        since: Timestamp,
    ) -> Result<usize, StoreError> {
        let orphans: Result<usize, StoreError> = transact!(self, tx => delete_orphans(tx));
        let orphans = orphans?;
        if orphans > 0 {
            return Ok(orphans);
        }
        let (mut in_use, expired) = (Vec::new(), accounts_with_expired(&self.pools, since).await?);
        for account in expired {
            match self.delete_events_of(account, since, "SKIP LOCKED").await? {
                Deletion::Deleted(0) => {}
                Deletion::Deleted(count) => return Ok(count),
                Deletion::InUse => in_use.push(account),
            }
        }
        // Nothing else is left to do: wait for the accounts with locked endpoints.
        for account in in_use {
            if let Deletion::Deleted(count @ 1..) =
                self.delete_events_of(account, since, "").await?
            {
                return Ok(count);
            }
        }
        Ok(0)
    }

    async fn delete_events_of(
        &self,
        account: AccountId,
        since: Timestamp,
        lock_mode: &str,
    ) -> Result<Deletion, StoreError> {
        transact!(self, tx => delete_expired(tx, account, since, lock_mode))
    }
}

/// Accounts whose oldest event has expired.
async fn accounts_with_expired(
    pools: &PgPools,
    since: Timestamp,
) -> Result<Vec<AccountId>, StoreError> {
    let statement = "SELECT a.id FROM account a WHERE (SELECT e.at FROM event e WHERE \
                     e.account_id = a.id ORDER BY e.seq LIMIT 1) < $1 ORDER BY a.id";
    let rows = pools.acquire_slow().await?.query(statement, &[&millis(since)]).await?;
    rows.iter().map(|row| account_id(row, 0)).collect()
}

/// Deletes some deliveries of a deleted endpoint.
async fn delete_orphans(transaction: &Transaction) -> Result<usize, StoreError> {
    let find = "SELECT id FROM former_webhook LIMIT 1 FOR UPDATE SKIP LOCKED";
    let Some(row) = transaction.query_one(find, &[]).await? else { return Ok(0) };
    let webhook: i64 = get(&row, 0)?;
    let delete = "DELETE FROM delivery WHERE webhook_id = $1 AND seq <= (SELECT max(seq) FROM \
                  (SELECT seq FROM delivery WHERE webhook_id = $1 ORDER BY seq LIMIT $2) AS few)";
    let deleted = transaction.execute(delete, &[&webhook, &MAX_PURGE_ROWS]).await?;
    let finish = "DELETE FROM former_webhook WHERE id = $1 AND \
                NOT EXISTS (SELECT 1 FROM delivery WHERE webhook_id = $1)";
    let finished = transaction.execute(finish, &[&webhook]).await?;
    Ok(usize::try_from(deleted + finished).unwrap_or(usize::MAX))
}

/// Deletes the account's oldest events that have expired.
async fn delete_expired(
    transaction: &mut Transaction,
    account: AccountId,
    since: Timestamp,
    lock_mode: &str,
) -> Result<Deletion, StoreError> {
    // Usually there is nothing to delete: check that without a lock.
    if last_expired_event(transaction, account, since).await?.is_none() {
        return Ok(Deletion::Deleted(0));
    }
    let account_key = key(account.get());
    // Lock the endpoints before the account, as everywhere.
    let lock = format!(
        "SELECT id FROM webhook WHERE account_id = $1 ORDER BY id FOR NO KEY UPDATE {lock_mode}"
    );
    let locked = transaction.query(&lock, &[&account_key]).await?;
    let all = "SELECT count(*) FROM webhook WHERE account_id = $1";
    let all = transaction.query_one(all, &[&account_key]).await?;
    if all.map_or(Ok(0), |row| number(&row, 0))? > locked.len() as u64 {
        return Ok(Deletion::InUse);
    }
    if !transaction.lock_any(account).await? {
        return Ok(Deletion::Deleted(0));
    }
    let Some(last) = last_expired_event(transaction, account, since).await? else {
        return Ok(Deletion::Deleted(0));
    };
    let plan = plan_purge(transaction, account, last).await?;
    let last = key(plan.last);
    delete_deliveries(transaction, account, last, since).await?;
    let delete = "DELETE FROM event WHERE account_id = $1 AND seq <= $2";
    let deleted = transaction.execute(delete, &[&account_key, &last]).await?;
    let versions = purge_templates(transaction, account, &plan).await?;
    Ok(Deletion::Deleted(usize::try_from(deleted + versions).unwrap_or(usize::MAX)))
}

/// The last event that can be deleted. Events are deleted in order: the first one that has not
/// expired, or that an endpoint still needs, keeps all later ones.
async fn last_expired_event(
    transaction: &Transaction,
    account: AccountId,
    since: Timestamp,
) -> Result<Option<i64>, StoreError> {
    let find = "WITH oldest AS (SELECT seq, at FROM event WHERE account_id = $1 ORDER BY seq \
         LIMIT $3) SELECT max(seq) AS last FROM oldest WHERE \
         seq < coalesce((SELECT min(seq) FROM oldest WHERE at >= $2), seq + 1) AND \
         seq <= coalesce((SELECT min(least(w.cursor, coalesce((SELECT min(d.seq) - 1 \
         FROM delivery d WHERE d.webhook_id = w.id AND d.status = 'waiting'), w.cursor))) \
         FROM webhook w WHERE w.account_id = $1 AND w.disabled_at IS NULL), seq)";
    let values: Values<'_> = &[&key(account.get()), &millis(since), &MAX_PURGE_ROWS];
    let row = transaction.query_one(find, values).await?;
    row.map_or(Ok(None), |row| get(&row, "last"))
}

/// Deletes the deliveries of the events. A disabled endpoint may still have pending ones: the next
/// delivery of each template becomes due, for when the endpoint is enabled again.
async fn delete_deliveries(
    transaction: &mut Transaction,
    account: AccountId,
    last: i64,
    since: Timestamp,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM delivery WHERE seq <= $2 AND webhook_id IN \
                  (SELECT id FROM webhook WHERE account_id = $1) \
                  RETURNING webhook_id, template_id, status";
    let mut unblocked = HashSet::new();
    for row in transaction.query(delete, &[&key(account.get()), &last]).await? {
        if get::<String>(&row, "status")? == DeliveryStatus::Waiting.as_str() {
            unblocked.insert((webhook_id(&row, "webhook_id")?, get::<i64>(&row, "template_id")?));
        }
    }
    for (webhook, template) in unblocked {
        schedule_next(&mut Tx::new(transaction), webhook, template, since)?;
    }
    Ok(())
}
