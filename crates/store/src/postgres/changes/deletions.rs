//! Deletes of one or several templates, as SQL.

use galley_domain::{id::TemplateId, template::lifecycle::Trigger};

use super::{append_events, read_and_plan};
use crate::{
    ChangeOutcome, DeleteOutcome, StoreError, StoredTemplate, TemplateChange, TranslationGroup,
    changes::{Initiator, Planned, deleted, done, plan_deletions},
    emulator::{self, Emulation},
    engine::Tx,
    limits,
    postgres::{
        columns::{key, millis},
        pool::Values,
        templates,
        transaction::Transaction,
        translations,
    },
    upstream,
};

/// Deletes a template: clears its unique key, which frees the name. The row stays as history.
pub(super) async fn delete(
    transaction: &mut Transaction,
    change: &TemplateChange,
) -> Result<ChangeOutcome, StoreError> {
    let planned = match read_and_plan(transaction, change, Trigger::Delete).await? {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    let (planned, emulation) = planned;
    delete_planned(transaction, change, &planned, emulation).await?;
    Ok(done(Some(planned.before)))
}

async fn delete_planned(
    transaction: &mut Transaction,
    change: &TemplateChange,
    planned: &Planned,
    emulation: Option<Emulation>,
) -> Result<(), StoreError> {
    let update =
        "UPDATE template SET unique_key = NULL, revision = $2, updated_at = $3 WHERE id = $1";
    let values: Values<'_> = &[&key(change.id.get()), &key(planned.revision()), &millis(change.at)];
    transaction.execute(update, values).await?;
    append_events(transaction, change, planned, None).await?;
    if change.review.is_by_provider() {
        let deleted = (change.account, change.id, planned.next.version);
        upstream::queue_deletion(&mut Tx::new(transaction), deleted, change.at).await?;
    }
    limits::delete_edit_counts(&mut Tx::new(transaction), change)?;
    emulator::finish_deletion(&mut Tx::new(transaction), change, planned, emulation).await
}

/// Deletes all languages of a name.
pub(super) async fn delete_translations(
    transaction: &mut Transaction,
    group: TranslationGroup,
    initiator: Initiator,
) -> Result<DeleteOutcome, StoreError> {
    if !transaction.lock(initiator.account).await? {
        return Ok(DeleteOutcome::Done(Vec::new()));
    }
    let stored = translations::members_in(transaction, initiator.account, group).await?;
    let ids: Vec<TemplateId> = stored.iter().map(|template| template.id).collect();
    delete_stored(transaction, &ids, stored, initiator).await
}

/// Deletes all of these templates, or none.
pub(super) async fn delete_all(
    transaction: &mut Transaction,
    ids: &[TemplateId],
    initiator: Initiator,
) -> Result<DeleteOutcome, StoreError> {
    if !transaction.lock(initiator.account).await?
        && let Some(first) = ids.first()
    {
        return Ok(DeleteOutcome::NoTemplate(*first));
    }
    let stored = templates::several_in(transaction, initiator.account, ids).await?;
    delete_stored(transaction, ids, stored, initiator).await
}

async fn delete_stored(
    transaction: &mut Transaction,
    ids: &[TemplateId],
    mut stored: Vec<StoredTemplate>,
    initiator: Initiator,
) -> Result<DeleteOutcome, StoreError> {
    let Initiator { account, review, at, .. } = initiator;
    let tx = &mut Tx::new(transaction);
    let emulation = emulator::emulation(tx, account, review, at).await?;
    let mut is_changed = false;
    for template in &stored {
        is_changed |= emulator::apply_due_of(tx, account, template.id, emulation, at).await?;
    }
    if is_changed {
        stored = templates::several_in(transaction, account, ids).await?;
    }
    let planned = match plan_deletions(initiator, ids, stored, emulation) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    for (change, planned) in &planned {
        delete_planned(transaction, change, planned, emulation).await?;
    }
    Ok(deleted(&planned))
}
