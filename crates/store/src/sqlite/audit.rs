//! SQL for the audit feed: appends an entry in the transaction of the change, and reads them in
//! order.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    SqliteStore,
    columns::{actor_key, key, millis},
};
use crate::{
    Actor, AuditEntry, AuditKind, AuditStore, Author, CredentialId, StoreError,
    decisions::audit::{
        AuditedChange, COLUMNS, LIMIT_OFFSET, LIMITED, ROTATIONS, ensure_may_change, entry,
        migration, new_entry, rotation,
    },
};

#[async_trait]
impl AuditStore for SqliteStore {
    async fn audit_entries(
        &self,
        account: Option<AccountId>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        self.readers.read(|connection| page(connection, account, after, limit))
    }
}

impl SqliteStore {
    /// Refuses a change by a token of an account that has made too many. Concurrent changes may
    /// exceed the limit by their number; in return, a refused one queues no write.
    pub(super) fn ensure_may_change(
        &self,
        account: AccountId,
        by: Author,
    ) -> Result<(), StoreError> {
        let Actor::Token(_) = by.actor else { return Ok(()) };
        let oldest = self.point_readers.read(|connection| {
            let query = format!(
                "SELECT at FROM audit {LIMITED} AND account_id = ?1 ORDER BY seq DESC \
                 LIMIT 1 OFFSET ?2"
            );
            let mut query = connection.prepare_cached(&query)?;
            Ok(query.query_row([key(account.get()), LIMIT_OFFSET], |row| row.get(0)).optional()?)
        })?;
        ensure_may_change(oldest, by.at)
    }
}

/// Appends the entry of a change.
pub(super) fn append(
    connection: &Connection,
    account: AccountId,
    change: AuditedChange<'_>,
    by: Author,
) -> Result<(), StoreError> {
    let entry = new_entry(account, change);
    connection
        .prepare_cached(
            "INSERT INTO audit (account_id, at, actor, kind, subject, details) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            key(account.get()),
            millis(by.at),
            actor_key(by.actor),
            entry.kind.as_str(),
            entry.subject,
            entry.details,
        ])?;
    Ok(())
}

/// The old and the new credential of each rotation of an account.
pub(super) fn rotations(
    connection: &Connection,
    account: AccountId,
) -> Result<Vec<(CredentialId, CredentialId)>, StoreError> {
    let mut query = connection.prepare_cached(&format!("{ROTATIONS}?1"))?;
    let mut rows = query.query([key(account.get())])?;
    let mut rotations = Vec::new();
    while let Some(row) = rows.next()? {
        rotations.push(rotation(row)?);
    }
    Ok(rotations)
}

/// Appends the entry of a migration of the schema, at the time of the database.
pub(super) fn append_migration(
    connection: &Connection,
    from: usize,
    to: usize,
) -> Result<(), StoreError> {
    connection.execute(
        "INSERT INTO audit (at, actor, kind, subject, details) \
         VALUES (CAST(unixepoch('subsec') * 1000 AS INTEGER), ?1, ?2, '', ?3)",
        params![actor_key(Actor::Service), AuditKind::StoreMigrated.as_str(), migration(from, to)],
    )?;
    Ok(())
}

fn page(
    connection: &Connection,
    account: Option<AccountId>,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditEntry>, StoreError> {
    let filter = if account.is_some() { "a.account_id = ?1" } else { "?1 IS NULL" };
    let query = format!("SELECT {COLUMNS} WHERE {filter} AND a.seq > ?2 ORDER BY a.seq LIMIT ?3");
    let mut query = connection.prepare_cached(&query)?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![account.map(|id| key(id.get())), after, limit])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(entry(row)?);
    }
    Ok(entries)
}
