//! SQL for reading and writing rows of the mirror.

use galley_domain::{
    id::{AccountId, TemplateId},
    template::quality::Quality,
    upstream::{RemoteId, TemplateSource},
};
use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use crate::{
    MirrorCounts, MirrorFilter, MirroredTemplate, StoreError, ToRead,
    decisions::upstream::{
        MIRROR_COLUMNS, MISSING, count_mirror, counts, mirrored, to_read as decode_read,
    },
    sqlite::columns::{key, millis},
};

fn find(
    connection: &Connection,
    condition: &str,
    values: &[&dyn ToSql],
) -> Result<Vec<MirroredTemplate>, StoreError> {
    let query = format!("SELECT {MIRROR_COLUMNS} FROM upstream_template WHERE {condition}");
    let mut query = connection.prepare_cached(&query)?;
    let mut rows = query.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(mirrored(row)?);
    }
    Ok(found)
}

pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: &RemoteId,
) -> Result<Option<MirroredTemplate>, StoreError> {
    let values: [&dyn ToSql; 2] = [&key(account.get()), &id.as_str()];
    let found = find(connection, "account_id = ?1 AND remote_id = ?2", &values)?;
    Ok(found.into_iter().next())
}

/// The rows of templates, the current one of each first.
pub(super) fn of_templates(
    connection: &Connection,
    account: AccountId,
    templates: &[TemplateId],
) -> Result<Vec<MirroredTemplate>, StoreError> {
    let order = MirroredTemplate::CURRENT_FIRST;
    let condition = format!("account_id = ?1 AND template_id = ?2 ORDER BY {order}");
    let mut found = Vec::new();
    for id in templates {
        let values: [&dyn ToSql; 2] = [&key(account.get()), &key(id.get())];
        found.extend(find(connection, &condition, &values)?);
    }
    Ok(found)
}

pub(super) fn page(
    connection: &Connection,
    account: AccountId,
    filter: &MirrorFilter,
    after: Option<&RemoteId>,
    limit: usize,
) -> Result<Vec<MirroredTemplate>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (after, listed) = (after.map_or("", RemoteId::as_str), filter.condition());
    let condition =
        format!("account_id = $1 AND remote_id > $2 AND {listed} ORDER BY remote_id LIMIT $4");
    find(connection, &condition, &[&key(account.get()), &after, &filter.source(), &limit])
}

pub(super) fn count(
    connection: &Connection,
    account: AccountId,
) -> Result<MirrorCounts, StoreError> {
    let mut query = connection.prepare_cached(&count_mirror())?;
    let mut rows = query.query([key(account.get())])?;
    Ok(rows.next()?.map(counts).transpose()?.unwrap_or_default())
}

pub(super) fn document(
    connection: &Connection,
    account: AccountId,
    id: &RemoteId,
) -> Result<Option<String>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT document FROM upstream_template WHERE account_id = ?1 AND remote_id = ?2",
    )?;
    let document = query.query_row(params![key(account.get()), id.as_str()], |row| row.get(0));
    Ok(document.optional()?.flatten())
}

pub(super) fn to_read(
    connection: &Connection,
    account: AccountId,
    limit: usize,
) -> Result<Vec<ToRead>, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT remote_id, dirty_at, missing FROM upstream_template WHERE account_id = ?1 AND \
         dirty_at IS NOT NULL UNION ALL SELECT remote_id, dirty_at, missing \
         FROM upstream_template WHERE account_id = ?1 AND dirty_at IS NULL AND missing > 0 AND \
         {MISSING} AND NOT EXISTS (SELECT 1 FROM upstream u WHERE u.account_id = ?1 AND \
         u.suspicious_at IS NOT NULL) ORDER BY dirty_at, remote_id LIMIT ?2"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![key(account.get()), limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decode_read(row)?);
    }
    Ok(found)
}

/// Whether another template at the provider, which is not deleted, belongs to a template.
pub(super) fn has_other(
    connection: &Connection,
    account: AccountId,
    template: TemplateId,
    id: &RemoteId,
) -> Result<bool, StoreError> {
    let values: [&dyn ToSql; 2] = [&key(account.get()), &key(template.get())];
    let found = find(connection, "account_id = ?1 AND template_id = ?2", &values)?;
    let is_other =
        |it: &MirroredTemplate| it.id != *id && it.gone_at.is_none() && !it.status.is_deleted();
    Ok(found.iter().any(is_other))
}

/// Writes a row; without a document, the one before stays.
pub(super) fn write(
    connection: &Connection,
    account: AccountId,
    row: &MirroredTemplate,
    document: Option<&str>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO upstream_template (account_id, remote_id, template_id, name, language, \
             status, category, correct_category, quality, reason, remote_updated_at, document, \
             content_key, version, drifted, observed_at, changed_at, sweep, missing, gone_at, \
             dirty_at, info, sent_version, source) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
             ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24) \
             ON CONFLICT (account_id, remote_id) \
             DO UPDATE SET template_id = ?3, name = ?4, language = ?5, status = ?6, \
             category = ?7, correct_category = ?8, quality = ?9, reason = ?10, \
             remote_updated_at = ?11, document = coalesce(?12, document), content_key = ?13, \
             version = ?14, drifted = ?15, observed_at = ?16, changed_at = ?17, sweep = ?18, \
             missing = ?19, gone_at = ?20, dirty_at = ?21, info = ?22, \
             sent_version = ?23, source = ?24",
        )?
        .execute(params![
            key(account.get()),
            row.id.as_str(),
            row.template.map(|id| key(id.get())),
            row.name,
            row.language,
            row.status.as_str(),
            row.category,
            row.correct_category,
            row.quality.map(Quality::as_str),
            row.reason,
            row.remote_updated_at.map(millis),
            document,
            row.content_key,
            row.version.map(key),
            row.drifted,
            millis(row.observed_at),
            millis(row.changed_at),
            key(row.sweep),
            row.missing,
            row.gone_at.map(millis),
            row.dirty_at.map(millis),
            row.info,
            row.sent_version.map(key),
            row.source.as_ref().map(TemplateSource::as_str),
        ])?;
    Ok(())
}
