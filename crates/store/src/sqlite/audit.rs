//! Appends entries to the audit feed.

use galley_domain::id::AccountId;
use rusqlite::{Connection, params};

use super::columns::{actor_key, key, millis};
use crate::{
    Actor, AuditKind, Author, StoreError,
    decisions::audit::{AuditedChange, migration, new_entry},
};

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
