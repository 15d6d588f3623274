//! Changes of a template's state that are not edits, as SQL.

use galley_domain::{
    rulebook::Category,
    template::lifecycle::{Hold, State},
};

use super::{
    columns::{actor_key, key, millis},
    pool::Values,
    transaction::Transaction,
};
use crate::{Actor, StoreError, template_rows::ChangedTemplate};

/// Writes the row of a template after a change by the service.
pub(super) async fn write(
    transaction: &Transaction,
    changed: &ChangedTemplate,
) -> Result<(), StoreError> {
    let State { newest_status, approved_version, hold, .. } = changed.state;
    let (decided_at, text_key) = (changed.decided_at().map(millis), changed.text_key());
    let update = "UPDATE template SET status = $2, live_version = $3, hold = $4, category = $5, \
         previous_category = $6, announced_category = $7, quality = $8, updated_at = $9, \
         revision = $10, reason = CASE WHEN $11 THEN $12 ELSE reason END, \
         decided_at = CASE WHEN $11 THEN $13 ELSE decided_at END, \
         decided_by = CASE WHEN $11 THEN $14 ELSE decided_by END, \
         message_text = CASE WHEN $15 AND translation_group IS NOT NULL THEN $16::bytea ELSE message_text END \
         WHERE id = $1";
    let values: Values<'_> = &[
        &key(changed.id.get()),
        &newest_status.as_str(),
        &approved_version.map(key),
        &hold.map(Hold::as_str),
        &changed.category.as_str(),
        &changed.previous_category.map(Category::as_str),
        &changed.announced_category.map(Category::as_str),
        &changed.stored_quality(),
        &millis(changed.at),
        &key(changed.revision),
        &changed.decision.is_some(),
        &changed.reason(),
        &decided_at,
        &decided_at.map(|_| actor_key(Actor::Service)),
        &changed.text.is_some(),
        &text_key.as_ref().map(|key| &key[..]),
    ];
    transaction.execute(update, values).await.map(drop)
}
