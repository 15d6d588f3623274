//! What Idempotency-Keys made, as SQL.

use galley_domain::{id::AccountId, rulebook::Category, template::Status};
use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, params};

use super::columns::{column, key, millis, template_id};
use crate::{
    CreatedTemplate, Idempotency, IdempotencyRecord, StoreError,
    encoding::{oldest_record, record_key},
};

pub(super) const FIND: &str = "SELECT payload, template_id, category, status FROM idempotency \
     WHERE key = ?1 AND created_at > ?2";

/// An older record under this key has run out, or the creation had ended with it.
pub(super) const KEEP: &str = "INSERT OR REPLACE INTO idempotency (key, payload, template_id, \
     category, status, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

pub(super) fn record(
    connection: &Connection,
    account: AccountId,
    idempotency_key: [u8; 16],
    at: Timestamp,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let key = record_key(account, idempotency_key);
    find(&mut connection.prepare_cached(FIND)?, key, at)
}

pub(super) fn find(
    find: &mut CachedStatement<'_>,
    record_key: [u8; 16],
    at: Timestamp,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let mut rows = find.query(params![record_key, oldest_record(at)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let receipt = CreatedTemplate {
        id: template_id(row, "template_id")?,
        status: column(row, "status", Status::from_code)?,
        category: column(row, "category", Category::from_code)?,
    };
    Ok(Some(IdempotencyRecord { payload: row.get("payload")?, receipt }))
}

pub(super) fn keep(
    keep: &mut CachedStatement<'_>,
    record_key: [u8; 16],
    idempotency: &Idempotency,
    receipt: &CreatedTemplate,
    at: Timestamp,
) -> Result<(), StoreError> {
    keep.execute(params![
        record_key,
        idempotency.payload,
        key(receipt.id.get()),
        receipt.category.code(),
        receipt.status.code(),
        millis(at),
    ])?;
    Ok(())
}
