//! The versions of a template, as SQL: the newest stands in its own row, the others behind it.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::columns::{actor, category, column, key, maybe, moment, number, status};
use crate::{Decision, StoreError, Version};

/// The versions of one template, newest first.
const VERSIONS: &str = "SELECT version, status, category, previous_category, content, \
     created_at, actor, reason, decided_at, decided_by FROM (\
     SELECT version, status, category, previous_category, content, \
     coalesce(version_at, created_at) AS created_at, actor, reason, decided_at, decided_by \
     FROM template WHERE id = ?1 AND version < ?2 \
     UNION ALL \
     SELECT version, status, category, previous_category, content, created_at, actor, reason, \
     decided_at, decided_by FROM former_version WHERE template_id = ?1 AND version < ?2) \
     ORDER BY version DESC LIMIT ?3";

pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
    version: u64,
) -> Result<Option<Version>, StoreError> {
    let found = page(connection, account, id, Some(version.saturating_add(1)), 1)?;
    Ok(found.and_then(|found| found.into_iter().find(|it| it.number == version)))
}

/// A version that an event tells of, whatever has become of its template since.
pub(super) fn told(
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
    let mut owned = connection.prepare_cached(
        "SELECT 1 FROM template WHERE id = ?1 AND account_id = ?2 AND claim IS NOT NULL",
    )?;
    if !owned.exists(params![key(id.get()), key(account.get())])? {
        return Ok(None);
    }
    self::before(connection, id, before, limit).map(Some)
}

/// So many versions before that one, newest first.
fn before(
    connection: &Connection,
    id: TemplateId,
    version: Option<u64>,
    limit: usize,
) -> Result<Vec<Version>, StoreError> {
    let mut query = connection.prepare_cached(VERSIONS)?;
    let before = version.and_then(|version| i64::try_from(version).ok()).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![key(id.get()), before, limit])?;
    let mut versions = Vec::new();
    while let Some(row) = rows.next()? {
        versions.push(read(row)?);
    }
    Ok(versions)
}

fn read(row: &Row<'_>) -> Result<Version, StoreError> {
    let decision = match moment(row, "decided_at")? {
        Some(at) => {
            Some(Decision { at, by: actor(row, "decided_by")?, reason: row.get("reason")? })
        }
        None => None,
    };
    Ok(Version {
        number: number(row, "version")?,
        status: status(row, "status")?,
        category: category(row, "category")?,
        previous_category: maybe(row, "previous_category", |it: String| Category::parse(&it))?,
        content: row.get("content")?,
        created_at: column(row, "created_at", |at: i64| Timestamp::from_millisecond(at).ok())?,
        created_by: actor(row, "actor")?,
        decision,
    })
}
