//! The versions of a template, as SQL. The newest is in the template's row, older ones in
//! `former_version`.

use galley_domain::id::{AccountId, TemplateId};

use super::{
    columns::key,
    pool::{PgConnection, PgPools, Values},
};
use crate::{
    StoreError, Version, VersionSummary,
    decisions::versions::{actor_names, summary, version},
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

/// One version, even if the template has been deleted.
pub(super) async fn even_deleted(
    pools: &PgPools,
    id: TemplateId,
    number: u64,
) -> Result<Option<Version>, StoreError> {
    let row = pools.read_one(EVEN_DELETED, &[&key(id.get()), &key(number)]).await?;
    row.as_ref().map(version).transpose()
}
