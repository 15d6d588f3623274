//! SQL for translation groups: templates that share a name and a category and differ in language.

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::{Connection, params};

use crate::{StoreError, TranslationGroup, encoding::key, stored_row::StoredRow as _};

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
        ids.push(row.template_id(0)?);
    }
    Ok(ids)
}
