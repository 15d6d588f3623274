//! Adds messages of the sandbox. Concurrent sends are batched into one transaction: each would
//! otherwise wait for the commit of the one before, because all of an account lock its clock. While a
//! batch commits, the next one is collected.

use std::{collections::BTreeMap, sync::Arc};

use galley_domain::id::AccountId;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::{
    pending::{self, Pending, drop_expired},
    pool::{PgConnection, PgPools, Values},
    transaction::{Transaction, transact},
};
use crate::{
    NewMessage, StoreError, StoredMessage,
    emulator::{MessageCounter, sent, stored_callback_data},
    encoding::{key, millis},
    engine::EngineTx as _,
    stored_row::{Row, StoredRow as _},
};

/// Maximum number of messages in one transaction.
const MAX_BATCH_MESSAGES: usize = 256;

/// A queued message. There is none to add to an account that is not an emulator.
pub(super) type PendingMessage = Pending<NewMessage, Option<StoredMessage>>;

/// The outcome of each message.
type Outcomes = Vec<Result<Option<StoredMessage>, StoreError>>;

/// Starts the worker that adds the messages of a queue. It ends when the queue is dropped.
pub(super) fn start(pools: &Arc<PgPools>, capacity: usize) -> mpsc::Sender<PendingMessage> {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    tokio::spawn(run(Arc::clone(pools), receiver));
    sender
}

async fn run(pools: Arc<PgPools>, mut receiver: mpsc::Receiver<PendingMessage>) {
    let mut buffer = Vec::with_capacity(MAX_BATCH_MESSAGES);
    while receiver.recv_many(&mut buffer, MAX_BATCH_MESSAGES).await > 0 {
        let batch: Vec<PendingMessage> = buffer.drain(..).filter_map(drop_expired).collect();
        if batch.is_empty() {
            continue;
        }
        match write(&pools, &batch).await {
            // One message may have caused the error; the others must not fail with it.
            Err(StoreError::Failed(_)) if batch.len() > 1 => {
                for pending in batch {
                    let added = write(&pools, std::slice::from_ref(&pending)).await;
                    pending::reply(vec![pending], added);
                }
            }
            added => pending::reply(batch, added),
        }
    }
}

/// Adds the messages in one transaction.
async fn write(pools: &Arc<PgPools>, batch: &[PendingMessage]) -> Result<Outcomes, StoreError> {
    let new: Vec<&NewMessage> = batch.iter().map(|pending| &pending.input).collect();
    transact(pools, &new, |new, open| Box::pin(add(open, new))).await
}

/// Adds messages of any accounts.
async fn add(transaction: &mut Transaction, new: &[&NewMessage]) -> Result<Outcomes, StoreError> {
    transaction.ensure_begun().await?;
    let mut counters = lock_counters(transaction.connection(), new).await?;
    let (mut added, mut outcomes) = (Vec::new(), Vec::with_capacity(new.len()));
    for new in new {
        outcomes.push(Ok(counters.get_mut(&new.account).map(|counter| {
            let (number, sent_at) = counter.next(new.at);
            added.push((*new, number, sent_at));
            sent(new, number, sent_at)
        })));
    }
    if counters.is_empty() {
        transaction.undo();
        return Ok(outcomes);
    }
    insert(transaction.connection(), &added).await?;
    write_counters(transaction.connection(), &counters).await?;
    Ok(outcomes)
}

/// Inserts messages, each with its number and the time at which it was sent.
async fn insert(
    connection: &PgConnection,
    messages: &[(&NewMessage, u64, Timestamp)],
) -> Result<(), StoreError> {
    fn column<'m, T>(
        messages: &[(&'m NewMessage, u64, Timestamp)],
        value: impl Fn(&'m NewMessage) -> T,
    ) -> Vec<T> {
        messages.iter().map(|(new, ..)| value(new)).collect()
    }
    let statement = "INSERT INTO message (account_id, number, sent_at, created_at, template_id, \
         version, failure, phone_id, recipient, category, callback_data, texts) \
         SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], \
         $6::int8[], $7::int8[], $8::text[], $9::text[], $10::text[], $11::text[], \
         $12::text[])";
    let numbers: Vec<i64> = messages.iter().map(|(_, number, _)| key(*number)).collect();
    let sent_at: Vec<i64> = messages.iter().map(|(.., sent_at)| millis(*sent_at)).collect();
    let values: Values<'_> = &[
        &column(messages, |new| key(new.account.get())),
        &numbers,
        &sent_at,
        &column(messages, |new| millis(new.at)),
        &column(messages, |new| key(new.template.get())),
        &column(messages, |new| key(new.version)),
        &column(messages, |new| new.failure.map(i64::from)),
        &column(messages, |new| &*new.phone),
        &column(messages, |new| &*new.to),
        &column(messages, |new| new.category.as_str()),
        &column(messages, stored_callback_data),
        &column(messages, |new| &*new.texts),
    ];
    connection.execute(statement, values).await.map(drop)
}

/// Locks the clocks in the order of their accounts, so that two batches never deadlock.
async fn lock_counters(
    connection: &PgConnection,
    new: &[&NewMessage],
) -> Result<BTreeMap<AccountId, MessageCounter>, StoreError> {
    let mut accounts: Vec<i64> = new.iter().map(|new| key(new.account.get())).collect();
    accounts.sort_unstable();
    accounts.dedup();
    let lock = "SELECT account_id, at, since, last_message, last_sent_at FROM emulator_clock \
                WHERE account_id = ANY($1) ORDER BY account_id FOR NO KEY UPDATE";
    let mut counters = BTreeMap::new();
    for row in &connection.query(lock, &[&accounts]).await? {
        counters.insert(row.account_id("account_id")?, MessageCounter::read(&Row::Postgres(row))?);
    }
    Ok(counters)
}

/// Writes the newest number of each account, and deletes the messages beyond its maximum.
async fn write_counters(
    connection: &PgConnection,
    counters: &BTreeMap<AccountId, MessageCounter>,
) -> Result<(), StoreError> {
    let accounts: Vec<i64> = counters.keys().map(|account| key(account.get())).collect();
    let numbers: Vec<i64> = counters.values().map(|it| key(it.last_message)).collect();
    let sent_at: Vec<Option<i64>> =
        counters.values().map(|it| it.last_sent_at.map(millis)).collect();
    let update = "UPDATE emulator_clock SET last_message = new.number, last_sent_at = new.sent_at \
                  FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS new (id, number, sent_at) \
                  WHERE account_id = new.id";
    connection.execute(update, &[&accounts, &numbers, &sent_at]).await?;
    let surplus = counters.iter().filter_map(|(id, it)| Some((key(id.get()), it.last_surplus()?)));
    let (accounts, last): (Vec<i64>, Vec<i64>) = surplus.unzip();
    if accounts.is_empty() {
        return Ok(());
    }
    let delete = "DELETE FROM message USING unnest($1::int8[], $2::int8[]) AS old (id, last) \
                  WHERE account_id = old.id AND number <= old.last";
    connection.execute(delete, &[&accounts, &last]).await.map(drop)
}
