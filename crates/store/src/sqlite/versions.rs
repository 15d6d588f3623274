//! SQL for the versions of a template: the newest is in the template's row, earlier ones are in
//! `former_version`.

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::{Connection, params};

use super::{
    checksum::{self, former_version_checksum, template_checksum},
    columns::key,
};
use crate::{
    StoreError, VERSION_OVERHEAD_BYTES, Version, VersionSummary,
    changes::{ExpiredVersions, MAX_EXPIRED_VERSIONS, VersionAuthor},
    decisions::versions::{self as decode, actor_names},
    stored_row::{Row, StoredRow as _},
};

/// The versions of one template (`$1`) whose numbers compare so with `$2`. `$content` is `content, `, or
/// the names of actors: a list of versions does not read content that no client sees.
macro_rules! versions {
    ($content:expr, $compared:literal) => {
        concat!(
            "SELECT $1 AS template_id, version, status, category, previous_category, ",
            $content,
            "created_at, actor, reason, decided_at, decided_by, is_former, is_intact FROM (\
             SELECT version, status, category, previous_category, content, \
             coalesce(version_at, created_at) AS created_at, actor, reason, decided_at, \
             decided_by, 0 AS is_former, checksum IS ",
            template_checksum!(),
            " AS is_intact FROM template WHERE id = $1 AND version ",
            $compared,
            " $2 UNION ALL \
             SELECT version, status, category, previous_category, content, created_at, actor, \
             reason, decided_at, decided_by, 1, checksum IS ",
            former_version_checksum!(),
            " FROM former_version WHERE template_id = $1 AND version ",
            $compared,
            " $2)",
        )
    };
}

/// One version, even if the template was deleted since.
pub(super) const EVEN_DELETED: &str = versions!("content, ", "=");

pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
    version: u64,
) -> Result<Option<Version>, StoreError> {
    if exists(connection, account, id)? { even_deleted(connection, id, version) } else { Ok(None) }
}

/// One version, even if the template was deleted since.
pub(super) fn even_deleted(
    connection: &Connection,
    id: TemplateId,
    version: u64,
) -> Result<Option<Version>, StoreError> {
    let mut query = connection.prepare_cached(EVEN_DELETED)?;
    let mut rows = query.query([key(id.get()), i64::try_from(version).unwrap_or(i64::MAX)])?;
    rows.next()?.map(|row| intact(&Row::Sqlite(row))).transpose()
}

/// The version in a row, unless the disk has damaged it.
pub(super) fn intact(row: &Row<'_>) -> Result<Version, StoreError> {
    ensure_intact(row)?;
    decode::version(row)
}

fn ensure_intact(row: &Row<'_>) -> Result<(), StoreError> {
    if row.value("is_intact")? {
        return Ok(());
    }
    let (id, number): (i64, i64) = (row.value("template_id")?, row.value("version")?);
    Err(if row.value("is_former")? {
        checksum::damaged("former_version", format!("{id} version {number}"))
    } else {
        checksum::damaged("template", id)
    })
}

/// Up to `limit` versions before this one, newest first; `None` if the template does not exist.
pub(super) fn page(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
    before: Option<u64>,
    limit: usize,
) -> Result<Option<Vec<VersionSummary>>, StoreError> {
    if !exists(connection, account, id)? {
        return Ok(None);
    }
    let statement = concat!(versions!(actor_names!(), "<"), " ORDER BY version DESC LIMIT $3");
    let mut query = connection.prepare_cached(statement)?;
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![key(id.get()), before, limit])?;
    let mut versions = Vec::new();
    while let Some(row) = rows.next()? {
        let row = Row::Sqlite(row);
        ensure_intact(&row)?;
        versions.push(decode::summary(&row)?);
    }
    Ok(Some(versions))
}

/// The authors of all versions, newest first.
pub(super) fn authors(
    connection: &Connection,
    id: TemplateId,
) -> Result<Vec<VersionAuthor>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT version, actor, octet_length(content) AS bytes FROM template WHERE id = ?1 \
         UNION ALL SELECT version, actor, octet_length(content) FROM former_version \
         WHERE template_id = ?1 ORDER BY version DESC",
    )?;
    let mut rows = query.query([key(id.get())])?;
    let mut authors = Vec::new();
    while let Some(row) = rows.next()? {
        authors.push(decode::version_author(row)?);
    }
    Ok(authors)
}

/// Whether the account has the template.
fn exists(connection: &Connection, account: AccountId, id: TemplateId) -> Result<bool, StoreError> {
    let mut exists = connection.prepare_cached(
        "SELECT 1 FROM template WHERE id = ?1 AND account_id = ?2 AND unique_key IS NOT NULL",
    )?;
    Ok(exists.exists(params![key(id.get()), key(account.get())])?)
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
