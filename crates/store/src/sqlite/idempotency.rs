//! SQL for idempotency records.

use galley_domain::{id::TemplateId, rulebook::Category, template::Status};
use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, params};

use super::{
    buffered_index::Hash,
    columns::{column, key, millis, template_id},
    writer::Batch,
};
use crate::{
    CreatedTemplate, Idempotency, IdempotencyRecord, StoreError, encoding::idempotency_cutoff,
};

pub(super) const FIND: &str = "SELECT payload, template_id, category, status FROM idempotency \
     WHERE template_id = ?1 AND key = ?2 AND created_at > ?3";

pub(super) const INSERT: &str = "INSERT INTO idempotency (template_id, key, payload, category, \
     status, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// The record of the template that the index of keys has for the key, if it has not expired.
pub(super) fn record(
    connection: &Connection,
    id: Option<TemplateId>,
    idempotency_key: Hash,
    at: Timestamp,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let Some(id) = id else { return Ok(None) };
    find(&mut connection.prepare_cached(FIND)?, id, idempotency_key, at)
}

/// The record with the key, including those of this transaction, if it has not expired.
pub(super) fn find_in(
    batch: &mut Batch<'_>,
    idempotency_key: Hash,
    at: Timestamp,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let Some(id) = batch.template_created_with(idempotency_key)? else { return Ok(None) };
    find(&mut batch.templates.find_record, id, idempotency_key, at)
}

fn find(
    find: &mut CachedStatement<'_>,
    id: TemplateId,
    idempotency_key: Hash,
    at: Timestamp,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let mut rows = find.query(params![key(id.get()), idempotency_key, idempotency_cutoff(at)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let created = CreatedTemplate {
        id: template_id(row, "template_id")?,
        status: column(row, "status", Status::from_code)?,
        category: column(row, "category", Category::from_code)?,
    };
    Ok(Some(IdempotencyRecord { payload: row.get("payload")?, created }))
}

/// Replaces an expired record with the same key: a create that finds a valid one does not insert.
pub(super) fn insert(
    batch: &mut Batch<'_>,
    idempotency_key: Hash,
    idempotency: &Idempotency,
    created: &CreatedTemplate,
    at: Timestamp,
) -> Result<(), StoreError> {
    if let Some(expired) = batch.template_created_with(idempotency_key)? {
        delete_expired(batch, expired, idempotency_key, at)?;
    }
    batch.templates.insert_record.execute(params![
        key(created.id.get()),
        idempotency_key,
        idempotency.payload,
        created.category.code(),
        created.status.code(),
        millis(at),
    ])?;
    batch.add_idempotency_key(idempotency_key, created.id);
    Ok(())
}

/// Deletes a record that has expired, and its key. Returns how many: none if it does not exist.
pub(super) fn delete_expired(
    batch: &mut Batch<'_>,
    id: TemplateId,
    idempotency_key: Hash,
    at: Timestamp,
) -> Result<usize, StoreError> {
    let delete = "DELETE FROM idempotency WHERE template_id = ?1 AND key = ?2 AND created_at <= ?3";
    let deleted = batch.connection().prepare_cached(delete)?.execute(params![
        key(id.get()),
        idempotency_key,
        idempotency_cutoff(at)
    ])?;
    batch.remove_idempotency_key(idempotency_key, id)?;
    Ok(deleted)
}
