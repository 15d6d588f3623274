//! The audit feed, as SQL. Entries are appended in the transaction of the change that they report.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use tokio_postgres::GenericClient;

use super::{
    PostgresStore,
    columns::{actor_key, get, key, millis},
    pipeline::{DeferredWrite, owned},
    pool::Values,
    transaction::Transaction,
};
use crate::{
    Actor, AuditEntry, AuditKind, AuditStore, Author, CredentialId, StoreError,
    decisions::audit::{
        AuditedChange, COLUMNS, LIMIT_OFFSET, LIMITED, ROTATIONS, ensure_may_change, entry,
        migration, new_entry, rotation,
    },
};

/// The advisory lock of a transaction that appends: "GALLEYAU".
const LOCK_KEY: i64 = 0x4741_4C4C_4559_4155;

const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";

/// Numbers the entries after the newest one. The lock keeps that the newest one.
const APPEND: &str = "INSERT INTO audit (seq, account_id, at, actor, kind, subject, details) \
     SELECT (SELECT coalesce(max(seq), 0) FROM audit) + position, account_id, at, actor, kind, \
     subject, details FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::text[], $5::text[], \
     $6::text[]) WITH ORDINALITY AS entry (account_id, at, actor, kind, subject, details, position)";

/// The entries that a transaction appends when it commits, column by column.
#[derive(Default)]
pub(super) struct PendingEntries {
    accounts: Vec<i64>,
    times: Vec<i64>,
    actors: Vec<i64>,
    kinds: Vec<&'static str>,
    subjects: Vec<String>,
    details: Vec<String>,
}

impl PendingEntries {
    /// Adds the entry of a change.
    pub(super) fn add(&mut self, account: AccountId, change: AuditedChange<'_>, by: Author) {
        let entry = new_entry(account, change);
        self.accounts.push(key(account.get()));
        self.times.push(millis(by.at));
        self.actors.push(actor_key(by.actor));
        self.kinds.push(entry.kind.as_str());
        self.subjects.push(entry.subject);
        self.details.push(entry.details);
    }

    /// The statements that append them; none if there are none. The lock is the last one that a
    /// transaction takes, and held only while it commits.
    pub(super) fn into_writes(self) -> Vec<DeferredWrite> {
        if self.accounts.is_empty() {
            return Vec::new();
        }
        let Self { accounts, times, actors, kinds, subjects, details } = self;
        let values = owned![accounts, times, actors, kinds, subjects, details];
        vec![
            DeferredWrite { statement: LOCK, values: owned![LOCK_KEY] },
            DeferredWrite { statement: APPEND, values },
        ]
    }
}

#[async_trait]
impl AuditStore for PostgresStore {
    async fn audit_entries(
        &self,
        account: Option<AccountId>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let account = account.map(|id| key(id.get()));
        let filter = if account.is_some() { "a.account_id = $1" } else { "$1::int8 IS NULL" };
        let statement =
            format!("SELECT {COLUMNS} WHERE {filter} AND a.seq > $2 ORDER BY a.seq LIMIT $3");
        let values: Values<'_> = &[&account, &after, &limit];
        let rows = self.pools.read(&statement, values).await?;
        rows.iter().map(entry).collect()
    }
}

impl PostgresStore {
    /// Refuses a change by a token of an account that has made too many. Concurrent changes may
    /// exceed the limit by their number; in return, a refused one takes no lock.
    pub(super) async fn ensure_may_change(
        &self,
        account: AccountId,
        by: Author,
    ) -> Result<(), StoreError> {
        let Actor::Token(_) = by.actor else { return Ok(()) };
        let statement = format!(
            "SELECT at FROM audit {LIMITED} AND account_id = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2"
        );
        let values: Values<'_> = &[&key(account.get()), &LIMIT_OFFSET];
        let row = self.pools.read_one(&statement, values).await?;
        ensure_may_change(row.map(|row| get(&row, 0)).transpose()?, by.at)
    }
}

/// The old and the new credential of each rotation of an account.
pub(super) async fn rotations(
    transaction: &Transaction,
    account: AccountId,
) -> Result<Vec<(CredentialId, CredentialId)>, StoreError> {
    let rows = transaction.query(&format!("{ROTATIONS}$1"), &[&key(account.get())]).await?;
    rows.iter().map(rotation).collect()
}

/// Appends the entry of a migration of the schema, at the time of the database.
pub(super) async fn append_migration(
    client: &(impl GenericClient + Sync),
    from: usize,
    to: usize,
) -> Result<(), StoreError> {
    client.execute(LOCK, &[&LOCK_KEY]).await?;
    let append = "INSERT INTO audit (seq, at, actor, kind, subject, details) \
                  SELECT coalesce(max(seq), 0) + 1, (extract(epoch FROM now()) * 1000)::int8, $1, \
                  $2, '', $3 FROM audit";
    let (kind, details) = (AuditKind::StoreMigrated.as_str(), migration(from, to));
    client.execute(append, &[&actor_key(Actor::Service), &kind, &details]).await?;
    Ok(())
}
