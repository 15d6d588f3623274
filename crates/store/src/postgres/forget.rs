//! Forgetting: events that have been kept for their time, with their deliveries.

use std::collections::HashSet;

use galley_domain::{delivery::DeliveryStatus, id::AccountId};
use jiff::Timestamp;

use super::{
    columns::{account_id, key, maybe, millis, plain, webhook_id},
    deliveries,
    links::Values,
    transaction::Transaction,
};
use crate::StoreError;

/// How much one step forgets at most: little enough that no write waits long behind it.
const STEP: i64 = 2_000;

/// Forgets the deliveries of endpoints that are gone, or else some events; answers how many.
pub(super) async fn step(
    transaction: &mut Transaction,
    since: Timestamp,
) -> Result<usize, StoreError> {
    let gone = "SELECT id FROM former_webhook LIMIT 1 FOR UPDATE SKIP LOCKED";
    if let Some(row) = transaction.query_one(gone, &[]).await? {
        return strays(transaction, plain(&row, 0)?).await;
    }
    let old = "SELECT a.id FROM account a WHERE (SELECT e.at FROM event e WHERE \
               e.account_id = a.id ORDER BY e.seq LIMIT 1) < $1 ORDER BY a.id";
    for row in transaction.query(old, &[&millis(since)]).await? {
        let forgotten = of_account(transaction, account_id(&row, 0)?, since).await?;
        if forgotten > 0 {
            return Ok(forgotten);
        }
    }
    Ok(0)
}

/// Some deliveries of an endpoint that is gone.
async fn strays(transaction: &Transaction, webhook: i64) -> Result<usize, StoreError> {
    let delete = "DELETE FROM delivery WHERE webhook_id = $1 AND seq <= (SELECT max(seq) FROM \
                  (SELECT seq FROM delivery WHERE webhook_id = $1 ORDER BY seq LIMIT $2) AS few)";
    let deleted = transaction.execute(delete, &[&webhook, &STEP]).await?;
    let done = "DELETE FROM former_webhook WHERE id = $1 AND \
                NOT EXISTS (SELECT 1 FROM delivery WHERE webhook_id = $1)";
    let done = transaction.execute(done, &[&webhook]).await?;
    Ok(usize::try_from(deleted + done).unwrap_or(usize::MAX))
}

/// The account's oldest events that can go. In their order: one that is younger, or that an
/// endpoint waits for, keeps all that come after it.
async fn of_account(
    transaction: &mut Transaction,
    account: AccountId,
    since: Timestamp,
) -> Result<usize, StoreError> {
    let owner = key(account.get());
    // The endpoints before the account, as everywhere; none of them changes meanwhile.
    let hold = "SELECT id FROM webhook WHERE account_id = $1 ORDER BY id FOR NO KEY UPDATE";
    transaction.query(hold, &[&owner]).await?;
    if !transaction.lock(account).await? {
        return Ok(0);
    }
    let find = "WITH oldest AS (SELECT seq, at FROM event WHERE account_id = $1 ORDER BY seq \
         LIMIT $3) SELECT max(seq) AS last FROM oldest WHERE \
         seq < coalesce((SELECT min(seq) FROM oldest WHERE at >= $2), seq + 1) AND \
         seq <= coalesce((SELECT min(least(w.cursor, coalesce((SELECT min(d.seq) - 1 \
         FROM delivery d WHERE d.webhook_id = w.id AND d.status = 'waiting'), w.cursor))) \
         FROM webhook w WHERE w.account_id = $1 AND w.disabled_at IS NULL), seq)";
    let values: Values<'_> = &[&owner, &millis(since), &STEP];
    let row = transaction.query_one(find, values).await?;
    let last = row.map_or(Ok(None), |row| maybe(&row, "last", Some::<i64>))?;
    let Some(last) = last else { return Ok(0) };
    forget_deliveries(transaction, account, last, since).await?;
    let delete = "DELETE FROM event WHERE account_id = $1 AND seq <= $2";
    let deleted = transaction.execute(delete, &[&owner, &last]).await?;
    Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
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
        if plain::<String>(&row, "status")? == DeliveryStatus::Waiting.word() {
            moved_up.insert((webhook_id(&row, "webhook_id")?, plain::<i64>(&row, "template_id")?));
        }
    }
    for (webhook, template) in moved_up {
        deliveries::call_next(transaction, webhook, template, since).await?;
    }
    Ok(())
}
