//! SQL for messages of the sandbox.

use galley_domain::id::AccountId;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::{
    MessageQuery, NewMessage, StoreError, StoredMessage,
    decisions::emulator::{
        MESSAGE_COLUMNS, MessageCounter, message, retention_cutoff, sent, stored_callback_data,
    },
    sqlite::{
        SqliteStore,
        columns::{account_id, key, millis},
        writer::Batch,
    },
};

pub(super) fn add(batch: &Batch, new: &NewMessage) -> Result<Option<StoredMessage>, StoreError> {
    let (connection, account) = (batch.connection(), key(new.account.get()));
    let Some(mut counter) = counter(connection, account)? else { return Ok(None) };
    let (number, sent_at) = counter.next(new.at);
    connection
        .prepare_cached(
            "UPDATE emulator_clock SET last_message = ?2, last_sent_at = ?3 WHERE account_id = ?1",
        )?
        .execute([account, key(number), millis(sent_at)])?;
    connection
        .prepare_cached(
            "INSERT INTO message (account_id, number, sent_at, created_at, template_id, version, \
             failure, phone_id, recipient, category, callback_data, texts) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            account,
            key(number),
            millis(sent_at),
            millis(new.at),
            key(new.template.get()),
            key(new.version),
            new.failure,
            new.phone,
            new.to,
            new.category.as_str(),
            stored_callback_data(new),
            new.texts,
        ])?;
    if let Some(last) = counter.last_surplus() {
        connection
            .prepare_cached("DELETE FROM message WHERE account_id = ?1 AND number <= ?2")?
            .execute([account, last])?;
    }
    Ok(Some(sent(new, number, sent_at)))
}

fn counter(connection: &Connection, account: i64) -> Result<Option<MessageCounter>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT at, since, last_message, last_sent_at FROM emulator_clock WHERE account_id = ?1",
    )?;
    let mut rows = query.query([account])?;
    rows.next()?.map(MessageCounter::read).transpose()
}

pub(super) fn page(
    connection: &Connection,
    account: AccountId,
    query: MessageQuery,
    at: Timestamp,
) -> Result<Vec<StoredMessage>, StoreError> {
    let Some(clock) = super::clock(connection, account)? else { return Ok(Vec::new()) };
    let MessageQuery { before, limit } = query;
    let mut query = connection.prepare_cached(&format!(
        "SELECT {MESSAGE_COLUMNS} FROM message m LEFT JOIN template t \
         ON t.id = m.template_id AND t.account_id = m.account_id \
         WHERE m.account_id = ?1 AND m.number < ?2 AND m.created_at > ?3 \
         ORDER BY m.number DESC LIMIT ?4"
    ))?;
    let mut rows = query.query(params![
        key(account.get()),
        before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX)),
        retention_cutoff(at),
        i64::try_from(limit).unwrap_or(i64::MAX),
    ])?;
    let (now, mut messages) = (clock.now(at), Vec::new());
    while let Some(row) = rows.next()? {
        messages.push(message(row, account, now)?);
    }
    Ok(messages)
}

/// How many messages one write of retention deletes.
const MAX_MESSAGES_PER_WRITE: i64 = 1_000;

/// Maximum number of writes of one pass of retention.
const MAX_DELETE_WRITES: usize = 256;

impl SqliteStore {
    /// Deletes expired messages, some of one account per write.
    pub(in crate::sqlite) async fn delete_expired_messages(
        &self,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        for _ in 0..MAX_DELETE_WRITES {
            let find = |connection: &Connection| expired_messages(connection, at);
            let Some(account) = self.readers.read(find)? else { break };
            self.writer.write(move |batch| delete_expired(batch, account, at)).await?;
        }
        Ok(())
    }
}

/// The next account whose oldest message has expired, also a deleted one.
fn expired_messages(
    connection: &Connection,
    at: Timestamp,
) -> Result<Option<AccountId>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT account_id, created_at FROM message WHERE account_id > ?1 \
         ORDER BY account_id, number LIMIT 1",
    )?;
    let (cutoff, mut last) = (retention_cutoff(at), 0_i64);
    loop {
        let mut rows = query.query([last])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        if row.get::<_, i64>("created_at")? <= cutoff {
            return account_id(row, "account_id").map(Some);
        }
        last = row.get("account_id")?;
    }
}

/// Deletes the oldest messages of an account that have expired.
fn delete_expired(batch: &Batch, account: AccountId, at: Timestamp) -> Result<(), StoreError> {
    batch
        .connection()
        .prepare_cached(
            "DELETE FROM message WHERE account_id = ?1 AND created_at <= ?2 AND number <= \
             (SELECT max(number) FROM (SELECT number FROM message WHERE account_id = ?1 \
             ORDER BY number LIMIT ?3))",
        )?
        .execute([key(account.get()), retention_cutoff(at), MAX_MESSAGES_PER_WRITE])?;
    Ok(())
}
