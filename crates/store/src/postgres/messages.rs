//! Adds messages of the sandbox. Concurrent sends are batched into one transaction: each would
//! otherwise wait for the commit of the one before, because all of an account lock its clock.

mod queue;

use std::collections::BTreeMap;

use galley_domain::id::AccountId;
use jiff::Timestamp;

pub(super) use self::queue::MessageQueue;
use crate::{
    NewMessage, StoreError, StoredMessage,
    emulator::{MessageCounter, sent, stored_callback_data},
    postgres::{
        columns::{account_id, key, millis},
        pool::Values,
        transaction::Transaction,
    },
    stored_row::Row,
};

/// The columns of new messages, one vector for each.
#[derive(Default)]
struct MessageColumns<'m> {
    accounts: Vec<i64>,
    numbers: Vec<i64>,
    sent_at: Vec<i64>,
    created_at: Vec<i64>,
    templates: Vec<i64>,
    versions: Vec<i64>,
    failures: Vec<Option<i64>>,
    phones: Vec<&'m str>,
    recipients: Vec<&'m str>,
    categories: Vec<&'static str>,
    callback_data: Vec<Option<String>>,
    texts: Vec<&'m str>,
}

impl<'m> MessageColumns<'m> {
    fn add(&mut self, new: &'m NewMessage, number: u64, sent_at: Timestamp) {
        self.accounts.push(key(new.account.get()));
        self.numbers.push(key(number));
        self.sent_at.push(millis(sent_at));
        self.created_at.push(millis(new.at));
        self.templates.push(key(new.template.get()));
        self.versions.push(key(new.version));
        self.failures.push(new.failure.map(i64::from));
        self.phones.push(&new.phone);
        self.recipients.push(&new.to);
        self.categories.push(new.category.as_str());
        self.callback_data.push(stored_callback_data(new));
        self.texts.push(&new.texts);
    }

    async fn insert(&self, transaction: &Transaction) -> Result<(), StoreError> {
        let insert = "INSERT INTO message (account_id, number, sent_at, created_at, template_id, \
             version, failure, phone_id, recipient, category, callback_data, texts) \
             SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], \
             $6::int8[], $7::int8[], $8::text[], $9::text[], $10::text[], $11::text[], \
             $12::text[])";
        let values: Values<'_> = &[
            &self.accounts,
            &self.numbers,
            &self.sent_at,
            &self.created_at,
            &self.templates,
            &self.versions,
            &self.failures,
            &self.phones,
            &self.recipients,
            &self.categories,
            &self.callback_data,
            &self.texts,
        ];
        transaction.execute(insert, values).await.map(drop)
    }
}

/// Adds messages of any accounts; `None` for those of an account that is not an emulator.
async fn add(
    transaction: &mut Transaction,
    new: &[&NewMessage],
) -> Result<Vec<Option<StoredMessage>>, StoreError> {
    transaction.ensure_begun().await?;
    let mut counters = lock_counters(transaction, new).await?;
    let mut columns = MessageColumns::default();
    let mut added = Vec::with_capacity(new.len());
    for new in new {
        added.push(counters.get_mut(&new.account).map(|counter| {
            let (number, sent_at) = counter.next(new.at);
            columns.add(new, number, sent_at);
            sent(new, number, sent_at)
        }));
    }
    if counters.is_empty() {
        transaction.set_rollback_only();
        return Ok(added);
    }
    columns.insert(transaction).await?;
    write_counters(transaction, &counters).await?;
    Ok(added)
}

/// Locks the clocks in the order of their accounts, so that two batches never deadlock.
async fn lock_counters(
    transaction: &Transaction,
    new: &[&NewMessage],
) -> Result<BTreeMap<AccountId, MessageCounter>, StoreError> {
    let mut accounts: Vec<i64> = new.iter().map(|new| key(new.account.get())).collect();
    accounts.sort_unstable();
    accounts.dedup();
    let lock = "SELECT account_id, at, since, last_message, last_sent_at FROM emulator_clock \
                WHERE account_id = ANY($1) ORDER BY account_id FOR NO KEY UPDATE";
    let mut counters = BTreeMap::new();
    for row in &transaction.query(lock, &[&accounts]).await? {
        counters.insert(account_id(row, "account_id")?, MessageCounter::read(&Row::Postgres(row))?);
    }
    Ok(counters)
}

/// Writes the newest number of each account, and deletes the messages beyond its maximum.
async fn write_counters(
    transaction: &Transaction,
    counters: &BTreeMap<AccountId, MessageCounter>,
) -> Result<(), StoreError> {
    let accounts: Vec<i64> = counters.keys().map(|account| key(account.get())).collect();
    let numbers: Vec<i64> = counters.values().map(|it| key(it.last_message)).collect();
    let sent_at: Vec<Option<i64>> =
        counters.values().map(|it| it.last_sent_at.map(millis)).collect();
    let update = "UPDATE emulator_clock SET last_message = new.number, last_sent_at = new.sent_at \
                  FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS new (id, number, sent_at) \
                  WHERE account_id = new.id";
    transaction.execute(update, &[&accounts, &numbers, &sent_at]).await?;
    let surplus = counters.iter().filter_map(|(id, it)| Some((key(id.get()), it.last_surplus()?)));
    let (accounts, last): (Vec<i64>, Vec<i64>) = surplus.unzip();
    if accounts.is_empty() {
        return Ok(());
    }
    let delete = "DELETE FROM message USING unnest($1::int8[], $2::int8[]) AS old (id, last) \
                  WHERE account_id = old.id AND number <= old.last";
    transaction.execute(delete, &[&accounts, &last]).await.map(drop)
}
