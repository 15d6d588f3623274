//! SQL for deletions of one or several templates.

use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::Trigger,
};
use jiff::Timestamp;

use crate::{
    ChangeOutcome, DeleteOutcome, StoreError, TemplateChange, TranslationGroup,
    changes::{Initiator, Planned, deleted, done, plan, plan_deletions},
    emulator::{self, Emulation},
    engine::Tx,
    limits,
    sqlite::statements::ready,
    sqlite::{
        columns::{key, millis},
        events,
        templates::{self, ReadTemplate},
        translations,
        writer::Batch,
    },
    upstream,
};

/// Deletes a template: clears its unique key, which frees the name. The row stays as history. A
/// damaged template can be deleted, too.
pub(super) fn delete(
    batch: &mut Batch,
    change: &TemplateChange,
) -> Result<ChangeOutcome, StoreError> {
    let TemplateChange { account, id, review, at, .. } = *change;
    let emulation = ready(emulator::emulation(&mut Tx::new(batch), account, review, at))?;
    let read = read(batch, (account, id), emulation, at)?;
    let is_intact = read.as_ref().is_some_and(|read| read.is_intact);
    let planned = match plan(change, Trigger::Delete, read.map(|read| read.template), emulation) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    delete_planned(batch, change, &planned, is_intact, emulation)?;
    Ok(done(Some(planned.before)))
}

/// Reads a template, after the due steps of its script if it is intact.
fn read(
    batch: &mut Batch,
    (account, id): (AccountId, TemplateId),
    emulation: Option<Emulation>,
    at: Timestamp,
) -> Result<Option<ReadTemplate>, StoreError> {
    let read = templates::read(batch.connection(), account, id)?;
    let is_intact = read.as_ref().is_some_and(|read| read.is_intact);
    if is_intact && ready(emulator::apply_due_of(&mut Tx::new(batch), account, id, emulation, at))?
    {
        return templates::read(batch.connection(), account, id);
    }
    Ok(read)
}

fn delete_planned(
    batch: &mut Batch,
    change: &TemplateChange,
    planned: &Planned,
    is_intact: bool,
    emulation: Option<Emulation>,
) -> Result<(), StoreError> {
    if let Some(unique_key) = templates::unique_key(batch.connection(), change.id)? {
        batch.remove_unique_key(unique_key, change.id)?;
    }
    batch
        .connection()
        .prepare_cached(
            "UPDATE template SET unique_key = NULL, revision = ?2, updated_at = ?3 WHERE id = ?1",
        )?
        .execute([key(change.id.get()), key(planned.revision()), millis(change.at)])?;
    // The history of a damaged template stays recognisable as damaged.
    if is_intact {
        templates::update_checksum(batch.connection(), change.id)?;
    }
    for event in planned.events(change, None) {
        events::append(batch, &event)?;
    }
    if change.review.is_by_provider() {
        let deleted = (change.account, change.id, planned.next.version);
        ready(upstream::queue_deletion(&mut Tx::new(batch), deleted, change.at))?;
    }
    limits::delete_edit_counts(&mut Tx::new(batch), change)?;
    ready(emulator::finish_deletion(&mut Tx::new(batch), change, planned, emulation))
}

/// Deletes all languages of a name.
pub(super) fn delete_translations(
    batch: &mut Batch,
    group: TranslationGroup,
    initiator: Initiator,
) -> Result<DeleteOutcome, StoreError> {
    let ids = translations::ids(batch.connection(), initiator.account, group)?;
    delete_all(batch, &ids, initiator)
}

/// Deletes all of these templates, or none.
pub(super) fn delete_all(
    batch: &mut Batch,
    ids: &[TemplateId],
    initiator: Initiator,
) -> Result<DeleteOutcome, StoreError> {
    let Initiator { account, review, at, .. } = initiator;
    let emulation = ready(emulator::emulation(&mut Tx::new(batch), account, review, at))?;
    let (mut stored, mut damaged) = (Vec::with_capacity(ids.len()), Vec::new());
    for id in ids {
        if let Some(read) = read(batch, (account, *id), emulation, at)? {
            damaged.extend((!read.is_intact).then_some(*id));
            stored.push(read.template);
        }
    }
    let planned = match plan_deletions(initiator, ids, stored, emulation) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    for (change, planned) in &planned {
        delete_planned(batch, change, planned, !damaged.contains(&change.id), emulation)?;
    }
    Ok(deleted(&planned))
}
