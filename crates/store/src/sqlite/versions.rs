//! SQL for the versions of a template: the newest is in the template's row, earlier ones are in
//! `former_version`.

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::{Connection, params};

use super::{
    checksum::{self, former_version_checksum, template_checksum},
    columns::key,
};
use crate::{
    StoreError, Version, VersionSummary,
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

/// Whether the account has the template.
fn exists(connection: &Connection, account: AccountId, id: TemplateId) -> Result<bool, StoreError> {
    let mut exists = connection.prepare_cached(
        "SELECT 1 FROM template WHERE id = ?1 AND account_id = ?2 AND unique_key IS NOT NULL",
    )?;
    Ok(exists.exists(params![key(id.get()), key(account.get())])?)
}
