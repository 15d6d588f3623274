//! Families, as SQL: templates that share a name and differ in language. All that are there have
//! one category, so that one of them speaks for all.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
};
use rusqlite::{Connection, params};

use super::{
    columns::{category as category_of, key, template_id},
    templates,
};
use crate::{StoreError, StoredTemplate, TranslationGroup};

/// The templates of a family, oldest first.
pub(super) fn ids(
    connection: &Connection,
    account: AccountId,
    family: TranslationGroup,
) -> Result<Vec<TemplateId>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT id FROM template INDEXED BY template_of_family WHERE family = ?1 AND \
         account_id = ?2 AND claim IS NOT NULL ORDER BY id",
    )?;
    let mut rows = query.query(params![family.0, key(account.get())])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.push(template_id(row, 0)?);
    }
    Ok(ids)
}

/// The same, with all they hold.
pub(super) fn members(
    connection: &Connection,
    account: AccountId,
    family: TranslationGroup,
) -> Result<Vec<StoredTemplate>, StoreError> {
    // All of them from one moment.
    let moment = connection.unchecked_transaction()?;
    let mut members = Vec::new();
    for id in ids(&moment, account, family)? {
        members.extend(templates::one(&moment, account, id)?);
    }
    Ok(members)
}

/// The category that all of a family have; none if there is nobody.
pub(super) fn category(
    connection: &Connection,
    account: AccountId,
    family: TranslationGroup,
) -> Result<Option<Category>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT category FROM template INDEXED BY template_of_family WHERE family = ?1 AND \
         account_id = ?2 AND claim IS NOT NULL LIMIT 1",
    )?;
    let mut rows = query.query(params![family.0, key(account.get())])?;
    rows.next()?.map(|row| category_of(row, 0)).transpose()
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

pub(super) fn standing(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Standing, StoreError> {
    let family = "SELECT family FROM template WHERE id = ?1";
    let mut family = connection.prepare_cached(family)?;
    let family: Option<[u8; 16]> = family.query_row([key(id.get())], |row| row.get(0))?;
    let Some(family) = family else { return Ok(Standing::NoFamily) };
    let mut others = connection.prepare_cached(
        "SELECT 1 FROM template INDEXED BY template_of_family WHERE family = ?1 AND \
         account_id = ?2 AND id <> ?3 AND claim IS NOT NULL",
    )?;
    let others = others.exists(params![family, key(account.get()), key(id.get())])?;
    Ok(if others { Standing::AmongOthers } else { Standing::Alone })
}
