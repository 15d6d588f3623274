//! SQL for translation groups: templates that share a name and a category and differ in language.

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

/// The ids of a group's templates, oldest first.
pub(super) fn ids(
    connection: &Connection,
    account: AccountId,
    group: TranslationGroup,
) -> Result<Vec<TemplateId>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT id FROM template INDEXED BY template_of_translation_group \
         WHERE translation_group = ?1 AND account_id = ?2 AND unique_key IS NOT NULL ORDER BY id",
    )?;
    let mut rows = query.query(params![group.0, key(account.get())])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.push(template_id(row, 0)?);
    }
    Ok(ids)
}

/// The templates of a group, oldest first.
pub(super) fn members(
    connection: &Connection,
    account: AccountId,
    group: TranslationGroup,
) -> Result<Vec<StoredTemplate>, StoreError> {
    // All templates are read from one snapshot.
    let snapshot = connection.unchecked_transaction()?;
    let mut members = Vec::new();
    for id in ids(&snapshot, account, group)? {
        members.extend(templates::one(&snapshot, account, id)?);
    }
    Ok(members)
}

/// The category of a group, which all its templates share; `None` if the group is empty.
pub(super) fn category(
    connection: &Connection,
    account: AccountId,
    group: TranslationGroup,
) -> Result<Option<Category>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT category FROM template INDEXED BY template_of_translation_group \
         WHERE translation_group = ?1 AND account_id = ?2 AND unique_key IS NOT NULL LIMIT 1",
    )?;
    let mut rows = query.query(params![group.0, key(account.get())])?;
    rows.next()?.map(|row| category_of(row, 0)).transpose()
}
