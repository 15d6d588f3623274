//! The versions of a template, as SQL. The newest is in the template's row, older ones in
//! `former_version`.

use galley_domain::id::{AccountId, TemplateId};

use super::{
    columns::{get, key},
    pipeline::owned,
    pool::{PgConnection, PgPools, Values},
    transaction::Transaction,
};
use crate::{
    StoreError, VERSION_OVERHEAD_BYTES, Version, VersionSummary,
    changes::{ExpiredVersions, MAX_EXPIRED_VERSIONS, VersionAuthor},
    decisions::versions::{actor_names, summary, version, version_author},
};

/// All versions of one template. `$content` is `content, `, or the names of actors: a list of versions does not
/// read content that no client sees.
macro_rules! versions {
    ($content:expr) => {
        concat!(
            "SELECT version, status, category, previous_category, ",
            $content,
            "created_at, actor, reason, decided_at, decided_by FROM (\
             SELECT version, status, category, previous_category, content, \
             coalesce(version_at, created_at) AS created_at, actor, reason, decided_at, \
             decided_by FROM template WHERE id = $1 UNION ALL \
             SELECT version, status, category, previous_category, content, created_at, actor, \
             reason, decided_at, decided_by FROM former_version WHERE template_id = $1) AS version_of"
        )
    };
}

/// The versions below `$3`, newest first, unless the template is deleted or another account's.
macro_rules! versions_before {
    ($content:expr) => {
        concat!(
            versions!($content),
            " WHERE version < $3 AND EXISTS (SELECT 1 FROM template WHERE id = $1 AND \
             account_id = $2 AND unique_key IS NOT NULL) ORDER BY version DESC LIMIT $4"
        )
    };
}

const VERSIONS: &str = versions_before!("content, ");

const SUMMARIES: &str = versions_before!(actor_names!());

/// One version, even if the template has been deleted.
pub(super) const EVEN_DELETED: &str = concat!(versions!("content, "), " WHERE version = $2");

pub(super) async fn page(
    connection: &PgConnection,
    account: AccountId,
    id: TemplateId,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<VersionSummary>, StoreError> {
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values: Values<'_> = &[&key(id.get()), &key(account.get()), &before, &limit];
    let rows = connection.query(SUMMARIES, values).await?;
    rows.iter().map(summary).collect()
}

pub(super) async fn one(
    pools: &PgPools,
    account: AccountId,
    id: TemplateId,
    number: u64,
) -> Result<Option<Version>, StoreError> {
    let before = i64::try_from(number.saturating_add(1)).unwrap_or(i64::MAX);
    let values: Values<'_> = &[&key(id.get()), &key(account.get()), &before, &1_i64];
    let row = pools.read_one(VERSIONS, values).await?;
    let found = row.as_ref().map(version).transpose()?;
    Ok(found.filter(|it| it.number == number))
}

/// One version, inside a transaction.
pub(super) async fn one_in(
    transaction: &Transaction,
    account: AccountId,
    id: TemplateId,
    number: u64,
) -> Result<Option<Version>, StoreError> {
    let before = i64::try_from(number.saturating_add(1)).unwrap_or(i64::MAX);
    let values: Values<'_> = &[&key(id.get()), &key(account.get()), &before, &1_i64];
    let row = transaction.query_one(VERSIONS, values).await?;
    let found = row.as_ref().map(version).transpose()?;
    Ok(found.filter(|it| it.number == number))
}

/// Some versions, inside a transaction.
pub(super) async fn some_in(
    transaction: &Transaction,
    id: TemplateId,
    numbers: impl IntoIterator<Item = u64>,
) -> Result<Vec<Version>, StoreError> {
    const SOME: &str = concat!(versions!("content, "), " WHERE version = ANY($2)");
    let numbers: Vec<i64> = numbers.into_iter().map(key).collect();
    transaction.query(SOME, &[&key(id.get()), &numbers]).await?.iter().map(version).collect()
}

/// The authors of all versions, newest first.
pub(super) async fn authors(
    transaction: &Transaction,
    id: TemplateId,
) -> Result<Vec<VersionAuthor>, StoreError> {
    let statement = "SELECT version, actor, octet_length(content)::int8 AS bytes FROM template \
                     WHERE id = $1 UNION ALL \
                     SELECT version, actor, octet_length(content)::int8 FROM former_version \
                     WHERE template_id = $1 ORDER BY version DESC";
    let rows = transaction.query(statement, &[&key(id.get())]).await?;
    rows.iter().map(version_author).collect()
}

/// Former versions to delete.
#[derive(Default)]
pub(super) struct ExpiredRows {
    versions: Vec<i64>,
    /// Their quota bytes.
    pub(super) bytes: i64,
}

/// The oldest of the former versions that an edit deletes.
pub(super) async fn expired(
    transaction: &Transaction,
    id: TemplateId,
    expired: Option<ExpiredVersions>,
) -> Result<ExpiredRows, StoreError> {
    let mut found = ExpiredRows::default();
    let Some(ExpiredVersions { last, except }) = expired else { return Ok(found) };
    let find = "SELECT version, octet_length(content) + $5::int8 FROM former_version \
                WHERE template_id = $1 AND version <= $2 AND version IS DISTINCT FROM $3 \
                ORDER BY version LIMIT $4";
    let values: Values<'_> = &[
        &key(id.get()),
        &key(last),
        &except.map(key),
        &MAX_EXPIRED_VERSIONS,
        &key(VERSION_OVERHEAD_BYTES),
    ];
    for row in transaction.query(find, values).await? {
        found.versions.push(get(&row, 0)?);
        found.bytes += get::<i64>(&row, 1)?;
    }
    Ok(found)
}

/// Deletes former versions with the commit.
pub(super) fn delete(transaction: &mut Transaction, id: TemplateId, expired: ExpiredRows) {
    if !expired.versions.is_empty() {
        let delete = "DELETE FROM former_version WHERE template_id = $1 AND version = ANY($2)";
        transaction.defer(delete, owned![key(id.get()), expired.versions]);
    }
}

/// One version, even if the template has been deleted.
pub(super) async fn even_deleted(
    pools: &PgPools,
    id: TemplateId,
    number: u64,
) -> Result<Option<Version>, StoreError> {
    let row = pools.read_one(EVEN_DELETED, &[&key(id.get()), &key(number)]).await?;
    row.as_ref().map(version).transpose()
}
