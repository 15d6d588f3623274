//! SQL for changes of a template's state that are not edits.

use galley_domain::{
    rulebook::Category,
    template::lifecycle::{Hold, State},
};
use rusqlite::{Connection, params};

use super::{
    columns::{actor_key, key, millis},
    templates,
};
use crate::{Actor, StoreError, template_rows::ChangedTemplate};

/// Writes the row of a template after a change by the service.
pub(super) fn write(connection: &Connection, changed: &ChangedTemplate) -> Result<(), StoreError> {
    let State { newest_status, approved_version, hold, .. } = changed.state;
    let decided_at = changed.decided_at().map(millis);
    connection
        .prepare_cached(
            "UPDATE template SET status = ?2, live_version = ?3, hold = ?4, category = ?5, \
             previous_category = ?6, announced_category = ?7, quality = ?8, updated_at = ?9, \
             revision = ?10, reason = iif(?11, ?12, reason), \
             decided_at = iif(?11, ?13, decided_at), decided_by = iif(?11, ?14, decided_by), \
             message_text = iif(?15 AND translation_group IS NOT NULL, ?16, message_text) WHERE id = ?1",
        )?
        .execute(params![
            key(changed.id.get()),
            newest_status.as_str(),
            approved_version.map(key),
            hold.map(Hold::as_str),
            changed.category.as_str(),
            changed.previous_category.map(Category::as_str),
            changed.announced_category.map(Category::as_str),
            changed.stored_quality(),
            millis(changed.at),
            key(changed.revision),
            changed.decision.is_some(),
            changed.reason(),
            decided_at,
            decided_at.map(|_| actor_key(Actor::Service)),
            changed.text.is_some(),
            changed.text_key(),
        ])?;
    templates::update_checksum(connection, changed.id)
}
