//! Forgetting: events that have been kept for their time, with their deliveries.

use std::collections::HashSet;

use galley_domain::{id::AccountId, webhook::delivery::DeliveryStatus};
use jiff::Timestamp;

use super::{
    PostgresStore,
    columns::{account_id, key, millis, number, plain, webhook_id},
    deliveries,
    pool::{Links, Values},
    transaction::{Transaction, transact},
};
use crate::StoreError;

/// How much one step forgets at most: little enough that no write waits long behind it.
const STEP: i64 = 2_000;

/// What came of forgetting the events of an account.
enum Outcome {
    /// So many are gone.
    Gone(usize),
    /// One of its endpoints is held by somebody else.
    InUse,
}

impl PostgresStore {
    /// Forgets the deliveries of endpoints that are gone, or else some events; answers how many.
    /// Each account in a transaction of its own: what is held of one is not held while another is
    /// waited for.
    pub(super) async fn forget_something(&self, since: Timestamp) -> Result<usize, StoreError> {
        let strays: Result<usize, StoreError> = transact!(self, tx => strays(tx));
        let strays = strays?;
        if strays > 0 {
            return Ok(strays);
        }
        let (mut in_use, old) = (Vec::new(), old(&self.links, since).await?);
        for account in old {
            match self.forget_of(account, since, "SKIP LOCKED").await? {
                Outcome::Gone(0) => {}
                Outcome::Gone(gone) => return Ok(gone),
                Outcome::InUse => in_use.push(account),
            }
        }
        // There is nothing else to do: now it is their turn, however busy their endpoints are.
        for account in in_use {
            if let Outcome::Gone(gone @ 1..) = self.forget_of(account, since, "").await? {
                return Ok(gone);
            }
        }
        Ok(0)
    }

    async fn forget_of(
        &self,
        account: AccountId,
        since: Timestamp,
        patience: &str,
    ) -> Result<Outcome, StoreError> {
        transact!(self, tx => of_account(tx, account, since, patience))
    }
}

/// Accounts whose oldest event has been kept for its time.
async fn old(links: &Links, since: Timestamp) -> Result<Vec<AccountId>, StoreError> {
    let statement = "SELECT a.id FROM account a WHERE (SELECT e.at FROM event e WHERE \
                     e.account_id = a.id ORDER BY e.seq LIMIT 1) < $1 ORDER BY a.id";
    let rows = links.own_for_long().await?.query(statement, &[&millis(since)]).await?;
    rows.iter().map(|row| account_id(row, 0)).collect()
}

/// Some deliveries of an endpoint that is gone.
async fn strays(transaction: &Transaction) -> Result<usize, StoreError> {
    let gone = "SELECT id FROM former_webhook LIMIT 1 FOR UPDATE SKIP LOCKED";
    let Some(row) = transaction.query_one(gone, &[]).await? else { return Ok(0) };
    let webhook: i64 = plain(&row, 0)?;
    let delete = "DELETE FROM delivery WHERE webhook_id = $1 AND seq <= (SELECT max(seq) FROM \
                  (SELECT seq FROM delivery WHERE webhook_id = $1 ORDER BY seq LIMIT $2) AS few)";
    let deleted = transaction.execute(delete, &[&webhook, &STEP]).await?;
    let done = "DELETE FROM former_webhook WHERE id = $1 AND \
                NOT EXISTS (SELECT 1 FROM delivery WHERE webhook_id = $1)";
    let done = transaction.execute(done, &[&webhook]).await?;
    Ok(usize::try_from(deleted + done).unwrap_or(usize::MAX))
}

/// Forgets the account's oldest events, as far as they can go.
async fn of_account(
    transaction: &mut Transaction,
    account: AccountId,
    since: Timestamp,
    patience: &str,
) -> Result<Outcome, StoreError> {
    // Most often there is nothing, which is seen without holding anything.
    if last(transaction, account, since).await?.is_none() {
        return Ok(Outcome::Gone(0));
    }
    let owner = key(account.get());
    // The endpoints before the account, as everywhere; none of them changes meanwhile.
    let lock = format!(
        "SELECT id FROM webhook WHERE account_id = $1 ORDER BY id FOR NO KEY UPDATE {patience}"
    );
    let held = transaction.query(&lock, &[&owner]).await?;
    let all = "SELECT count(*) FROM webhook WHERE account_id = $1";
    let all = transaction.query_one(all, &[&owner]).await?;
    if all.map_or(Ok(0), |row| number(&row, 0))? > held.len() as u64 {
        return Ok(Outcome::InUse);
    }
    if !transaction.lock(account).await? {
        return Ok(Outcome::Gone(0));
    }
    let Some(last) = last(transaction, account, since).await? else { return Ok(Outcome::Gone(0)) };
    forget_deliveries(transaction, account, last, since).await?;
    let delete = "DELETE FROM event WHERE account_id = $1 AND seq <= $2";
    let deleted = transaction.execute(delete, &[&owner, &last]).await?;
    Ok(Outcome::Gone(usize::try_from(deleted).unwrap_or(usize::MAX)))
}

/// The last of the account's oldest events that can go. In their order: one that is younger, or
/// that an endpoint waits for, keeps all that come after it.
async fn last(
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
    let values: Values<'_> = &[&key(account.get()), &millis(since), &STEP];
    let row = transaction.query_one(find, values).await?;
    row.map_or(Ok(None), |row| plain(&row, "last"))
}

/// Forgets the deliveries of events. An endpoint that is switched off may still have waited for
/// some: what comes behind them moves up, for when it is switched on again.
async fn forget_deliveries(
    transaction: &Transaction,
    account: AccountId,
    last: i64,
    since: Timestamp,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM delivery WHERE seq <= $2 AND webhook_id IN \
                  (SELECT id FROM webhook WHERE account_id = $1) \
                  RETURNING webhook_id, template_id, status";
    let mut moved_up = HashSet::new();
    for row in transaction.query(delete, &[&key(account.get()), &last]).await? {
        if plain::<String>(&row, "status")? == DeliveryStatus::Waiting.as_str() {
            moved_up.insert((webhook_id(&row, "webhook_id")?, plain::<i64>(&row, "template_id")?));
        }
    }
    for (webhook, template) in moved_up {
        deliveries::call_next(transaction, webhook, template, since).await?;
    }
    Ok(())
}
