//! What Idempotency-Keys made, as SQL.

use galley_domain::{
    id::AccountId,
    template::{Category, Status},
};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{CachedStatement, Connection, params};
use sha2::{Digest, Sha256};

use super::columns::{column, head, key, millis, template_id};
use crate::{IDEMPOTENCY_HOURS, Idempotency, Receipt, Record, StoreError};

pub(super) const FIND: &str = "SELECT payload, template_id, category, status FROM idempotency \
     WHERE key = ?1 AND created_at > ?2";

/// An older record under this key has run out, or the creation had ended with it.
pub(super) const KEEP: &str = "INSERT OR REPLACE INTO idempotency (key, payload, template_id, \
     category, status, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// What a record is found by. Keys of different accounts are strangers.
pub(super) fn record_key(account: AccountId, idempotency_key: [u8; 16]) -> [u8; 16] {
    let hash =
        Sha256::new().chain_update(account.get().to_be_bytes()).chain_update(idempotency_key);
    head(hash.finalize().into())
}

pub(super) fn record(
    connection: &Connection,
    account: AccountId,
    idempotency_key: [u8; 16],
    at: Timestamp,
) -> Result<Option<Record>, StoreError> {
    let key = record_key(account, idempotency_key);
    find(&mut connection.prepare_cached(FIND)?, key, at)
}

pub(super) fn find(
    find: &mut CachedStatement<'_>,
    record_key: [u8; 16],
    at: Timestamp,
) -> Result<Option<Record>, StoreError> {
    let mut rows = find.query(params![record_key, oldest_record(at)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let receipt = Receipt {
        id: template_id(row, "template_id")?,
        status: column(row, "status", Status::numbered)?,
        category: column(row, "category", Category::numbered)?,
    };
    Ok(Some(Record { payload: row.get("payload")?, receipt }))
}

pub(super) fn keep(
    keep: &mut CachedStatement<'_>,
    record_key: [u8; 16],
    idempotency: &Idempotency,
    receipt: &Receipt,
    at: Timestamp,
) -> Result<(), StoreError> {
    keep.execute(params![
        record_key,
        idempotency.payload,
        key(receipt.id.get()),
        receipt.category.number(),
        receipt.status.number(),
        millis(at),
    ])?;
    Ok(())
}

/// Records made at or before this moment have run out.
pub(super) fn oldest_record(at: Timestamp) -> i64 {
    millis(
        at.saturating_sub(SignedDuration::from_hours(IDEMPOTENCY_HOURS)).unwrap_or(Timestamp::MIN),
    )
}
