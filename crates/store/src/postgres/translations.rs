//! Families, as SQL: templates that share a name and differ in language. All that are there have
//! one category, so that one of them speaks for all.

use galley_domain::id::{AccountId, TemplateId};

use super::{
    columns::{key, plain, template_id},
    pool::Links,
    templates,
    transaction::Transaction,
};
use crate::{StoreError, StoredTemplate, TranslationGroup};

/// The templates of a family, oldest first.
pub(super) async fn members(
    links: &Links,
    account: AccountId,
    family: TranslationGroup,
) -> Result<Vec<StoredTemplate>, StoreError> {
    let statement = format!(
        "SELECT {} FROM template WHERE family = $1 AND account_id = $2 AND claim IS NOT NULL \
         ORDER BY id",
        templates::COLUMNS
    );
    let rows = links.read(&statement, &[&&family.0[..], &key(account.get())]).await?;
    rows.iter().map(templates::stored).collect()
}

/// Their ids, inside a transaction.
pub(super) async fn ids(
    transaction: &Transaction,
    account: AccountId,
    family: TranslationGroup,
) -> Result<Vec<TemplateId>, StoreError> {
    let statement = "SELECT id FROM template WHERE family = $1 AND account_id = $2 AND \
                     claim IS NOT NULL ORDER BY id";
    let rows = transaction.query(statement, &[&&family.0[..], &key(account.get())]).await?;
    rows.iter().map(|row| template_id(row, 0)).collect()
}

/// Where a template stands among the languages of its name.
pub(super) enum Standing {
    /// Names have one language each.
    NoFamily,
    /// It is the only one of its name.
    Alone,
    /// There are others.
    AmongOthers,
}

pub(super) async fn standing(
    transaction: &Transaction,
    account: AccountId,
    id: TemplateId,
) -> Result<Standing, StoreError> {
    let statement = "SELECT t.family IS NULL AS none, EXISTS (SELECT 1 FROM template o WHERE \
                     o.family = t.family AND o.account_id = $2 AND o.id <> t.id AND \
                     o.claim IS NOT NULL) AS others FROM template t WHERE t.id = $1";
    let row = transaction.query_one(statement, &[&key(id.get()), &key(account.get())]).await?;
    let Some(row) = row else { return Ok(Standing::NoFamily) };
    Ok(match (plain(&row, "none")?, plain(&row, "others")?) {
        (true, _) => Standing::NoFamily,
        (false, true) => Standing::AmongOthers,
        (false, false) => Standing::Alone,
    })
}
