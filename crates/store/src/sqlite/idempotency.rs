//! SQL for idempotency records.

use galley_domain::{id::AccountId, rulebook::Category, template::Status};
use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, params};

use super::columns::{column, key, millis, template_id};
use crate::{
    CreatedTemplate, Idempotency, IdempotencyRecord, StoreError,
    encoding::{idempotency_cutoff, idempotency_hash},
};

pub(super) const FIND: &str = "SELECT payload, template_id, category, status FROM idempotency \
     WHERE key = ?1 AND created_at > ?2";

/// Replaces an expired record with the same key: a create that finds a valid one does not insert.
pub(super) const INSERT: &str = "INSERT OR REPLACE INTO idempotency (key, payload, template_id, \
     category, status, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

pub(super) fn record(
    connection: &Connection,
    account: AccountId,
    idempotency_key: [u8; 16],
    at: Timestamp,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let key = idempotency_hash(account, idempotency_key);
    find(&mut connection.prepare_cached(FIND)?, key, at)
}

pub(super) fn find(
    find: &mut CachedStatement<'_>,
    idempotency_hash: [u8; 16],
    at: Timestamp,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let mut rows = find.query(params![idempotency_hash, idempotency_cutoff(at)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let created = CreatedTemplate {
        id: template_id(row, "template_id")?,
        status: column(row, "status", Status::from_code)?,
        category: column(row, "category", Category::from_code)?,
    };
    Ok(Some(IdempotencyRecord { payload: row.get("payload")?, created }))
}

pub(super) fn insert(
    insert: &mut CachedStatement<'_>,
    idempotency_hash: [u8; 16],
    idempotency: &Idempotency,
    created: &CreatedTemplate,
    at: Timestamp,
) -> Result<(), StoreError> {
    insert.execute(params![
        idempotency_hash,
        idempotency.payload,
        key(created.id.get()),
        created.category.code(),
        created.status.code(),
        millis(at),
    ])?;
    Ok(())
}
