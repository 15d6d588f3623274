//! Translation groups, as SQL: templates that share a name and differ in language. All templates of
//! a group have the same category, so that one of them represents it.

use galley_domain::id::{AccountId, TemplateId};

use super::{
    columns::{get, key},
    pool::PgPools,
    templates::{self, columns},
    transaction::Transaction,
};
use crate::{StoreError, StoredTemplate, TranslationGroup, decisions::changes::Siblings};

const MEMBERS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM template WHERE family = $1 AND account_id = $2 AND claim IS NOT NULL ORDER BY id"
);

/// The templates of a translation group, oldest first.
pub(super) async fn members(
    pools: &PgPools,
    account: AccountId,
    group: TranslationGroup,
) -> Result<Vec<StoredTemplate>, StoreError> {
    let rows = pools.read(MEMBERS, &[&&group.0[..], &key(account.get())]).await?;
    rows.iter().map(templates::stored).collect()
}

/// The templates of a translation group, inside a transaction.
pub(super) async fn members_in(
    transaction: &Transaction,
    account: AccountId,
    group: TranslationGroup,
) -> Result<Vec<StoredTemplate>, StoreError> {
    let rows = transaction.query(MEMBERS, &[&&group.0[..], &key(account.get())]).await?;
    rows.iter().map(templates::stored).collect()
}

/// The other languages of a template's name.
pub(super) async fn siblings(
    transaction: &Transaction,
    account: AccountId,
    id: TemplateId,
) -> Result<Siblings, StoreError> {
    let statement = "SELECT t.family IS NOT NULL AS has_group, EXISTS (SELECT 1 FROM template o \
                     WHERE o.family = t.family AND o.account_id = $2 AND o.id <> t.id AND \
                     o.claim IS NOT NULL) AS has_others FROM template t WHERE t.id = $1";
    let row = transaction.query_one(statement, &[&key(id.get()), &key(account.get())]).await?;
    let Some(row) = row else { return Ok(Siblings::NoGroup) };
    Ok(Siblings::new(get(&row, "has_group")?, get(&row, "has_others")?))
}
