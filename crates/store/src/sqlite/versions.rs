//! SQL for the versions of a template: the newest is in the template's row, earlier ones are in
//! `former_version`.

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::{Connection, params};

use super::{
    checksum::{self, former_version_checksum, template_checksum},
    columns::key,
};
use crate::{
    StoreError, VERSION_OVERHEAD_BYTES, Version,
    decisions::{
        changes::{ExpiredVersions, MAX_EXPIRED_VERSIONS},
        versions::version,
    },
};

/// The versions of one template, newest first.
const VERSIONS: &str = concat!(
    "SELECT version, status, category, previous_category, content, created_at, actor, reason, \
     decided_at, decided_by, is_former, is_intact FROM (\
     SELECT version, status, category, previous_category, content, \
     coalesce(version_at, created_at) AS created_at, actor, reason, decided_at, decided_by, \
     0 AS is_former, checksum IS ",
    template_checksum!(),
    " AS is_intact FROM template WHERE id = ?1 AND version < ?2 \
     UNION ALL \
     SELECT version, status, category, previous_category, content, created_at, actor, reason, \
     decided_at, decided_by, 1, checksum IS ",
    former_version_checksum!(),
    " FROM former_version WHERE template_id = ?1 AND version < ?2) \
     ORDER BY version DESC LIMIT ?3",
);

pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
    version: u64,
) -> Result<Option<Version>, StoreError> {
    let found = page(connection, account, id, Some(version.saturating_add(1)), 1)?;
    Ok(found.and_then(|found| found.into_iter().find(|it| it.number == version)))
}

/// One version, even if the template was deleted since.
pub(super) fn of_event(
    connection: &Connection,
    id: TemplateId,
    version: u64,
) -> Result<Option<Version>, StoreError> {
    let found = before(connection, id, Some(version.saturating_add(1)), 1)?;
    Ok(found.into_iter().find(|it| it.number == version))
}

pub(super) fn page(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
    before: Option<u64>,
    limit: usize,
) -> Result<Option<Vec<Version>>, StoreError> {
    let mut exists = connection.prepare_cached(
        "SELECT 1 FROM template WHERE id = ?1 AND account_id = ?2 AND claim IS NOT NULL",
    )?;
    if !exists.exists(params![key(id.get()), key(account.get())])? {
        return Ok(None);
    }
    self::before(connection, id, before, limit).map(Some)
}

/// Former versions to delete.
#[derive(Default)]
pub(super) struct ExpiredRows {
    versions: Vec<i64>,
    /// Their quota bytes.
    pub(super) bytes: i64,
}

/// The oldest of the former versions that an edit deletes.
pub(super) fn expired(
    connection: &Connection,
    id: TemplateId,
    expired: Option<ExpiredVersions>,
) -> Result<ExpiredRows, StoreError> {
    let mut found = ExpiredRows::default();
    let Some(ExpiredVersions { last, except }) = expired else { return Ok(found) };
    let mut query = connection.prepare_cached(
        "SELECT version, octet_length(content) + ?5 FROM former_version WHERE template_id = ?1 \
         AND version <= ?2 AND version IS NOT ?3 ORDER BY version LIMIT ?4",
    )?;
    let (id, last, except) = (key(id.get()), key(last), except.map(key));
    let overhead = key(VERSION_OVERHEAD_BYTES);
    let mut rows = query.query(params![id, last, except, MAX_EXPIRED_VERSIONS, overhead])?;
    while let Some(row) = rows.next()? {
        found.versions.push(row.get(0)?);
        found.bytes += row.get::<_, i64>(1)?;
    }
    Ok(found)
}

/// Deletes former versions.
pub(super) fn delete(
    connection: &Connection,
    id: TemplateId,
    expired: &ExpiredRows,
) -> Result<(), StoreError> {
    for version in &expired.versions {
        connection
            .prepare_cached("DELETE FROM former_version WHERE template_id = ?1 AND version = ?2")?
            .execute([key(id.get()), *version])?;
    }
    Ok(())
}

/// Up to `limit` versions before this one, newest first.
fn before(
    connection: &Connection,
    id: TemplateId,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Version>, StoreError> {
    let mut query = connection.prepare_cached(VERSIONS)?;
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![key(id.get()), before, limit])?;
    let mut versions = Vec::new();
    while let Some(row) = rows.next()? {
        if !row.get::<_, bool>("is_intact")? {
            let number: i64 = row.get("version")?;
            return Err(if row.get("is_former")? {
                checksum::damaged("former_version", format!("{id} version {number}"))
            } else {
                checksum::damaged("template", id)
            });
        }
        versions.push(version(row)?);
    }
    Ok(versions)
}
