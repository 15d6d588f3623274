//! SQL for the versions of a template: the newest is in the template's row, earlier ones are in
//! `former_version`.

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::{Connection, params};

use super::{
    checksum::{self, former_version_checksum, template_checksum},
    columns::key,
};
use crate::{
    StoreError, Version, VersionPage,
    decisions::{page_size::PageBudget, versions::version},
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
    if exists(connection, account, id)? { of_event(connection, id, version) } else { Ok(None) }
}

/// One version, even if the template was deleted since.
pub(super) fn of_event(
    connection: &Connection,
    id: TemplateId,
    version: u64,
) -> Result<Option<Version>, StoreError> {
    let found = before(connection, id, Some(version.saturating_add(1)), 1, 1)?;
    Ok(found.versions.into_iter().find(|it| it.number == version))
}

pub(super) fn page(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
    before: Option<u64>,
    limit: usize,
) -> Result<Option<VersionPage>, StoreError> {
    if !exists(connection, account, id)? {
        return Ok(None);
    }
    // One more than the limit shows whether there are older versions.
    self::before(connection, id, before, limit, limit.saturating_add(1)).map(Some)
}

/// Whether the account has the template.
fn exists(connection: &Connection, account: AccountId, id: TemplateId) -> Result<bool, StoreError> {
    let mut exists = connection.prepare_cached(
        "SELECT 1 FROM template WHERE id = ?1 AND account_id = ?2 AND claim IS NOT NULL",
    )?;
    Ok(exists.exists(params![key(id.get()), key(account.get())])?)
}

/// A page of the versions before this one, newest first, from up to `max_rows` rows.
fn before(
    connection: &Connection,
    id: TemplateId,
    before: Option<u64>,
    limit: usize,
    max_rows: usize,
) -> Result<VersionPage, StoreError> {
    let mut query = connection.prepare_cached(VERSIONS)?;
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let max_rows = i64::try_from(max_rows).unwrap_or(i64::MAX);
    let mut rows = query.query(params![key(id.get()), before, max_rows])?;
    let mut page = VersionPage { versions: Vec::new(), has_older: false };
    let mut budget = PageBudget::new(limit);
    while let Some(row) = rows.next()? {
        if !row.get::<_, bool>("is_intact")? {
            let number: i64 = row.get("version")?;
            return Err(if row.get("is_former")? {
                checksum::damaged("former_version", format!("{id} version {number}"))
            } else {
                checksum::damaged("template", id)
            });
        }
        let version = version(row)?;
        if !budget.admits(version.content.len()) {
            page.has_older = true;
            break;
        }
        page.versions.push(version);
    }
    Ok(page)
}
