//! Sandbox messages: their pages and their retention. Each engine adds them itself, in batches.

use galley_domain::id::AccountId;
use jiff::Timestamp;

use super::decisions::{MESSAGE_COLUMNS, message, retention_cutoff};
use crate::{
    NewMessage, ReadKind, Store, StoreError, StoredMessage,
    engine::{self, Engine, Read, ReadPath, Tx, Value, Write, values},
    stored_row::StoredRow as _,
};

impl Store {
    /// Stores a message that the sandbox accepts, sent at the time of the account's clock, and
    /// deletes the messages beyond
    /// [`MAX_KEPT`](galley_domain::emulator::messages::MAX_KEPT). `None` if the account is not an
    /// emulator.
    pub async fn add_message(&self, new: NewMessage) -> Result<Option<StoredMessage>, StoreError> {
        self.with_faults_of("add_message", self.engine.add_message(new)).await
    }

    /// At most `limit` of the messages that are kept, newest first; with `before`, only those before this
    /// number.
    pub async fn messages(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: usize,
        at: Timestamp,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let select = format!(
            "SELECT {MESSAGE_COLUMNS} FROM message m JOIN emulator_clock c \
             ON c.account_id = m.account_id LEFT JOIN template t \
             ON t.id = m.template_id AND t.account_id = m.account_id \
             WHERE m.account_id = $1 AND m.number < $2 AND m.created_at > $3 \
             ORDER BY m.number DESC LIMIT $4"
        );
        let before = Value::bound(before.unwrap_or(u64::MAX));
        let values = values![account, before, retention_cutoff(at), Value::size(limit)];
        let path = ReadPath::Account(ReadKind::List, account);
        let found = self.read("messages", path, select, values, message).await?;
        Ok(found.into_iter().map(|(message, clock)| message.seen_at(clock.now(at))).collect())
    }
}

/// How many messages one write of retention deletes.
const MAX_MESSAGES_PER_WRITE: u64 = 1_000;

/// Maximum number of writes of one pass of retention.
const MAX_DELETE_WRITES: usize = 256;

/// Deletes expired messages, some of one account per write, also of deleted accounts.
pub(crate) async fn delete_expired_messages(
    engine: &dyn Engine,
    at: Timestamp,
) -> Result<(), StoreError> {
    let mut accounts = engine::fetch(engine, accounts_with_expired(at)).await?.into_iter();
    let mut next = accounts.next();
    for _ in 0..MAX_DELETE_WRITES {
        let Some(account) = next else { break };
        let delete: Write<_, u64> = Write::new((account, at), |&(account, at), tx| {
            Box::pin(delete_expired(tx, account, at))
        });
        if engine::run(engine, delete).await? < MAX_MESSAGES_PER_WRITE {
            next = accounts.next();
        }
    }
    Ok(())
}

/// The accounts whose oldest message has expired.
fn accounts_with_expired(at: Timestamp) -> Read<AccountId> {
    let statement = "SELECT a.id FROM account a WHERE a.emulator IS NOT NULL AND (SELECT created_at \
                     FROM message m WHERE m.account_id = a.id ORDER BY m.number LIMIT 1) <= $1 \
                     ORDER BY a.id";
    let values = values![retention_cutoff(at)];
    Read::new(ReadPath::Background, statement, values, |row| row.account_id("id"))
}

/// Deletes the oldest messages of an account that have expired; returns how many.
async fn delete_expired(
    tx: &mut Tx<'_>,
    account: AccountId,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let delete = "DELETE FROM message WHERE account_id = $1 AND created_at <= $2 AND number <= \
                  (SELECT max(number) FROM (SELECT number FROM message WHERE account_id = $1 \
                  ORDER BY number LIMIT $3) AS oldest)";
    tx.execute(delete, &values![account, retention_cutoff(at), MAX_MESSAGES_PER_WRITE]).await
}
