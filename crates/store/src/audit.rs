//! The audit feed: who changed what. Entries are appended in the transaction of the change that they
//! record ([`Tx::audit`]).

use galley_domain::id::AccountId;

use crate::{
    Actor, AuditEntry, Author, CredentialId, Store, StoreError,
    decisions::audit::{COLUMNS, LIMIT_OFFSET, LIMITED, ROTATIONS, entry, refusal, rotation},
    engine::{self, Engine, Read, ReadPath, Tx, Value, values},
    stored_row::StoredRow as _,
};

impl Store {
    /// Up to `limit` entries with higher numbers than `after`, oldest first: those of one account,
    /// or all of them. A reader that continues with the last number misses no entry.
    pub async fn audit_entries(
        &self,
        account: Option<AccountId>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let filter = if account.is_some() { "a.account_id = $3" } else { "true" };
        let statement =
            format!("SELECT {COLUMNS} WHERE a.seq > $1 AND {filter} ORDER BY a.seq LIMIT $2");
        let values = [Value::bound(after), Value::size(limit)];
        let values = values.into_iter().chain(account.map(Value::from));
        self.read("audit_entries", ReadPath::Point, statement, values, entry).await
    }
}

/// Refuses a change by a token of an account that has made too many. Concurrent changes may exceed
/// the limit by their number; in return, a refused one queues no write and takes no lock.
pub(crate) async fn ensure_may_change(
    engine: &dyn Engine,
    account: AccountId,
    by: Author,
) -> Result<(), StoreError> {
    let Actor::Token(_) = by.actor else { return Ok(()) };
    let statement = format!(
        "SELECT at FROM audit {LIMITED} AND account_id = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2"
    );
    let values = values![account, LIMIT_OFFSET];
    let read = Read::new(ReadPath::Point, statement, values, |row| row.value("at"));
    let oldest: Vec<i64> = engine::fetch(engine, read).await?;
    refusal(oldest.first().copied(), by.at)
}

/// The old and the new credential of each rotation of an account.
pub(crate) async fn rotations(
    tx: &mut Tx<'_>,
    account: AccountId,
) -> Result<Vec<(CredentialId, CredentialId)>, StoreError> {
    tx.query(ROTATIONS, &values![account], rotation).await
}
