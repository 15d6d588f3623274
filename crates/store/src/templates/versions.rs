//! The versions of a template: the newest is in the template's row, earlier ones are in `former_version`.

use galley_domain::id::TemplateId;

use super::rows::optional_category;
use crate::{
    Actor, Decision, StoreError, Version, VersionSummary,
    encoding::key,
    engine::{Dialect, Tx, Value, values},
    row_checksum::{damaged, former_version_checksum, template_checksum},
    stored_row::{Row, StoredRow},
};

/// What a version has and a summary has not. A list of versions does not read content that no client
/// sees.
pub(super) const CONTENT: &str = "v.content";

/// What a summary has and a version has not.
pub(super) const ACTOR_NAMES: &str = "coalesce((SELECT c.name FROM credential c \
     WHERE c.id = v.actor), '') AS actor_name, coalesce((SELECT c.name FROM credential c \
     WHERE c.id = v.decided_by), '') AS decided_by_name";

/// Selects the versions of a template (`$1`) that meet a condition, even if the template is deleted.
pub(super) fn select(dialect: Dialect, more: &str, condition: &str) -> String {
    let newest_is_intact = dialect.either(concat!("checksum IS ", template_checksum!()), "true");
    let former_is_intact =
        dialect.either(concat!("checksum IS ", former_version_checksum!()), "true");
    format!(
        "SELECT v.template_id, v.version, v.status, v.category, v.previous_category, {more}, \
         v.created_at, v.actor, v.reason, v.decided_at, v.decided_by, v.is_former, v.is_intact \
         FROM (SELECT id AS template_id, version, status, category, previous_category, content, \
         coalesce(version_at, created_at) AS created_at, actor, reason, decided_at, decided_by, \
         false AS is_former, {newest_is_intact} AS is_intact FROM template \
         WHERE id = $1 AND {condition} UNION ALL \
         SELECT template_id, version, status, category, previous_category, content, created_at, \
         actor, reason, decided_at, decided_by, true, {former_is_intact} FROM former_version \
         WHERE template_id = $1 AND {condition}) AS v"
    )
}

/// Selects a version (`$2`) of a template (`$1`), even if the template is deleted.
pub(crate) fn select_version(dialect: Dialect) -> String {
    select(dialect, CONTENT, "version = $2")
}

/// The version in a row, unless the disk has damaged it.
pub(crate) fn version(row: &Row<'_>) -> Result<Version, StoreError> {
    ensure_intact(row)?;
    Ok(Version {
        number: row.number("version")?,
        status: row.status("status")?,
        category: row.category("category")?,
        previous_category: optional_category(row, "previous_category")?,
        content: row.value("content")?,
        created_at: row.timestamp("created_at")?,
        created_by: row.actor("actor")?,
        decision: decision(row)?,
    })
}

/// The version in a row that has the names of its actors and no content, unless the disk has damaged it.
pub(super) fn summary(row: &Row<'_>) -> Result<VersionSummary, StoreError> {
    ensure_intact(row)?;
    let (created_by, decision) = (row.actor("actor")?, decision(row)?);
    let decided_by = decision.as_ref().map_or(Actor::Service, |decision| decision.by);
    Ok(VersionSummary {
        number: row.number("version")?,
        status: row.status("status")?,
        category: row.category("category")?,
        previous_category: optional_category(row, "previous_category")?,
        created_at: row.timestamp("created_at")?,
        created_by,
        created_by_name: row.actor_name("actor_name", created_by)?,
        decision,
        decided_by_name: row.actor_name("decided_by_name", decided_by)?,
    })
}

fn ensure_intact(row: &Row<'_>) -> Result<(), StoreError> {
    if row.value("is_intact")? {
        return Ok(());
    }
    let (id, number): (i64, i64) = (row.value("template_id")?, row.value("version")?);
    Err(if row.value("is_former")? {
        damaged("former_version", format!("{id} version {number}"))
    } else {
        damaged("template", id)
    })
}

/// The reviewer's decision, once there is one.
fn decision(row: &Row<'_>) -> Result<Option<Decision>, StoreError> {
    let Some(at) = row.optional_timestamp("decided_at")? else { return Ok(None) };
    Ok(Some(Decision { at, by: row.actor("decided_by")?, reason: row.value("reason")? }))
}

/// One version of a template, even if the template is deleted.
pub(crate) async fn one(
    tx: &mut Tx<'_>,
    id: TemplateId,
    number: u64,
) -> Result<Option<Version>, StoreError> {
    let values = values![id, Value::bound(number)];
    tx.query_one(&select_version(tx.dialect()), &values, version).await
}

/// Some versions of a template, even if the template is deleted.
pub(crate) async fn several(
    tx: &mut Tx<'_>,
    id: TemplateId,
    numbers: impl IntoIterator<Item = u64>,
) -> Result<Vec<Version>, StoreError> {
    let numbers: Vec<i64> = numbers.into_iter().map(key).collect();
    let statement = select(tx.dialect(), CONTENT, &tx.dialect().is_any("version", "$2"));
    tx.query(&statement, &values![id, numbers], version).await
}
