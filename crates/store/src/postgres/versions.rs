//! The versions of a template, as SQL: the newest stands in its own row, the others behind it.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
};
use tokio_postgres::Row;

use super::{
    columns::{actor, at, category, key, maybe, moment, number, plain, status},
    pool::{Links, Values},
    transaction::Transaction,
};
use crate::{Decision, StoreError, Version};

/// All versions of one template.
macro_rules! versions {
    () => {
        "SELECT version, status, category, previous_category, content, created_at, actor, reason, \
         decided_at, decided_by FROM (\
         SELECT version, status, category, previous_category, content, \
         coalesce(version_at, created_at) AS created_at, actor, reason, decided_at, decided_by \
         FROM template WHERE id = $1 UNION ALL \
         SELECT version, status, category, previous_category, content, created_at, actor, reason, \
         decided_at, decided_by FROM former_version WHERE template_id = $1) AS version_of"
    };
}

/// Those that its account may see, newest first. A template that is not there has none; one that
/// is has at least its newest, which is below the largest number.
const VERSIONS: &str = concat!(
    versions!(),
    " WHERE version < $3 AND EXISTS (SELECT 1 FROM template WHERE id = $1 AND account_id = $2 AND \
     claim IS NOT NULL) ORDER BY version DESC LIMIT $4"
);

/// One of them, whatever has become of the template since.
const TOLD: &str = concat!(versions!(), " WHERE version = $2");

pub(super) async fn page(
    links: &Links,
    account: AccountId,
    id: TemplateId,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Version>, StoreError> {
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values: Values<'_> = &[&key(id.get()), &key(account.get()), &before, &limit];
    // Documents may be long, and many.
    let rows = links.own_for_long().await?.query(VERSIONS, values).await?;
    rows.iter().map(version).collect()
}

pub(super) async fn one(
    links: &Links,
    account: AccountId,
    id: TemplateId,
    wanted: u64,
) -> Result<Option<Version>, StoreError> {
    let before = i64::try_from(wanted.saturating_add(1)).unwrap_or(i64::MAX);
    let values: Values<'_> = &[&key(id.get()), &key(account.get()), &before, &1_i64];
    let row = links.read_one(VERSIONS, values).await?;
    let found = row.as_ref().map(version).transpose()?;
    Ok(found.filter(|it| it.number == wanted))
}

/// The same inside a transaction.
pub(super) async fn one_in(
    transaction: &Transaction,
    account: AccountId,
    id: TemplateId,
    wanted: u64,
) -> Result<Option<Version>, StoreError> {
    let before = i64::try_from(wanted.saturating_add(1)).unwrap_or(i64::MAX);
    let values: Values<'_> = &[&key(id.get()), &key(account.get()), &before, &1_i64];
    let row = transaction.query_one(VERSIONS, values).await?;
    let found = row.as_ref().map(version).transpose()?;
    Ok(found.filter(|it| it.number == wanted))
}

/// A version that an event tells of, whatever has become of its template since.
pub(super) async fn told(
    transaction: &Transaction,
    id: TemplateId,
    wanted: u64,
) -> Result<Option<Version>, StoreError> {
    let row = transaction.query_one(TOLD, &[&key(id.get()), &key(wanted)]).await?;
    row.as_ref().map(version).transpose()
}

fn version(row: &Row) -> Result<Version, StoreError> {
    let decision = match moment(row, "decided_at")? {
        Some(at) => {
            Some(Decision { at, by: actor(row, "decided_by")?, reason: plain(row, "reason")? })
        }
        None => None,
    };
    Ok(Version {
        number: number(row, "version")?,
        status: status(row, "status")?,
        category: category(row, "category")?,
        previous_category: maybe(row, "previous_category", |it: String| Category::parse(&it))?,
        content: plain(row, "content")?,
        created_at: at(row, "created_at")?,
        created_by: actor(row, "actor")?,
        decision,
    })
}
