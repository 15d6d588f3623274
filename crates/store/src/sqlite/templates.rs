//! SQL for templates: their names, and reads of one template.

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::{Connection, params};

use super::buffered_index::Hash;
use crate::{
    NameConflict, StoreError, StoredTemplate, creates::KeyOwner, encoding::key, engine::Dialect,
    templates,
};

/// The conflict with the template that the index of names has for the unique key, if it still holds
/// it. Its id is revealed only to its own account.
pub(super) fn name_conflict(
    connection: &Connection,
    account: AccountId,
    id: Option<TemplateId>,
    unique_key: Hash,
) -> Result<Option<NameConflict>, StoreError> {
    let Some(id) = id else { return Ok(None) };
    let mut query = connection
        .prepare_cached("SELECT id, account_id FROM template WHERE id = ?1 AND unique_key = ?2")?;
    let mut rows = query.query(params![key(id.get()), unique_key])?;
    let owner = rows.next()?.map(KeyOwner::read).transpose()?;
    Ok(owner.map(|owner| owner.conflict_for(account)))
}

/// One template with its newest version; deleted templates are not found.
pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    let mut query = connection.prepare_cached(templates::select_one(Dialect::Sqlite))?;
    let mut rows = query.query(params![key(id.get()), key(account.get())])?;
    rows.next()?.map(templates::stored).transpose()
}
