//! Translation groups, as SQL: templates that share a name and differ in language. All templates of
//! a group have the same category, so that one of them represents it.

use galley_domain::id::{AccountId, TemplateId};

use super::{
    columns::{get, key, template_id},
    pool::PgPools,
    templates,
    transaction::Transaction,
};
use crate::{StoreError, StoredTemplate, TranslationGroup};

/// The templates of a translation group, oldest first.
pub(super) async fn members(
    pools: &PgPools,
    account: AccountId,
    group: TranslationGroup,
) -> Result<Vec<StoredTemplate>, StoreError> {
    let statement = format!(
        "SELECT {} FROM template WHERE family = $1 AND account_id = $2 AND claim IS NOT NULL \
         ORDER BY id",
        templates::COLUMNS
    );
    let rows = pools.read(&statement, &[&&group.0[..], &key(account.get())]).await?;
    rows.iter().map(templates::stored).collect()
}

/// The ids of the templates of a group, inside a transaction.
pub(super) async fn ids(
    transaction: &Transaction,
    account: AccountId,
    group: TranslationGroup,
) -> Result<Vec<TemplateId>, StoreError> {
    let statement = "SELECT id FROM template WHERE family = $1 AND account_id = $2 AND \
                     claim IS NOT NULL ORDER BY id";
    let rows = transaction.query(statement, &[&&group.0[..], &key(account.get())]).await?;
    rows.iter().map(|row| template_id(row, 0)).collect()
}

/// Whether a template shares its name with other languages.
pub(super) enum Membership {
    /// The rulebook has no translation groups.
    NoGroup,
    /// It is the only language of its name.
    Alone,
    /// Its name has other languages.
    WithOthers,
}

pub(super) async fn membership(
    transaction: &Transaction,
    account: AccountId,
    id: TemplateId,
) -> Result<Membership, StoreError> {
    let statement = "SELECT t.family IS NULL AS none, EXISTS (SELECT 1 FROM template o WHERE \
                     o.family = t.family AND o.account_id = $2 AND o.id <> t.id AND \
                     o.claim IS NOT NULL) AS others FROM template t WHERE t.id = $1";
    let row = transaction.query_one(statement, &[&key(id.get()), &key(account.get())]).await?;
    let Some(row) = row else { return Ok(Membership::NoGroup) };
    Ok(match (get(&row, "none")?, get(&row, "others")?) {
        (true, _) => Membership::NoGroup,
        (false, true) => Membership::WithOthers,
        (false, false) => Membership::Alone,
    })
}
