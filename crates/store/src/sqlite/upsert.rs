//! Creates or edits several templates atomically.

use async_trait::async_trait;

use super::{SqliteStore, statements::ready, templates, writer::Batch};
use crate::{
    ChangeStore, NewTemplate, StoreError, StoredTemplate, UpsertOutcome,
    changes::edit_stored,
    decisions::upsert::{Upsert, UpsertResult, created, edited, plan},
    emulator::{self, Emulation},
    encoding::LookupKeys,
    engine::Tx,
};

#[async_trait]
impl ChangeStore for SqliteStore {
    async fn upsert_templates(
        &self,
        templates: Vec<NewTemplate>,
    ) -> Result<UpsertOutcome, StoreError> {
        let templates: Vec<_> =
            templates.into_iter().map(|new| (LookupKeys::of(&new), new)).collect();
        self.writer.write(move |batch| all(batch, &templates)).await
    }
}

/// Creates or edits all of the templates, or none if one is refused.
fn all(
    batch: &mut Batch,
    templates: &[(LookupKeys, NewTemplate)],
) -> Result<UpsertOutcome, StoreError> {
    batch.with_savepoint(|batch| {
        let mut created = Vec::with_capacity(templates.len());
        for (lookup_keys, new) in templates {
            match one(batch, lookup_keys, new)? {
                Ok(template) => created.push(template),
                Err(refusal) => {
                    batch.refuse();
                    return Ok(*refusal);
                }
            }
        }
        Ok(UpsertOutcome::Done(created))
    })
}

fn one(
    batch: &mut Batch,
    lookup_keys: &LookupKeys,
    new: &NewTemplate,
) -> Result<UpsertResult, StoreError> {
    let mut tx = Tx::new(batch);
    let emulation = ready(emulator::emulation(&mut tx, new.account, new.review, new.at))?;
    let stored = with_unique_key(batch, new, lookup_keys, emulation)?;
    Ok(match plan(new, stored) {
        Upsert::Create => created(templates::create(batch, new, lookup_keys)?),
        Upsert::Keep(template) => Ok(template),
        Upsert::Edit(stored, change, edit) => edited(
            change.id,
            ready(edit_stored(&mut Tx::new(batch), &change, Some(*stored), &edit, emulation))?,
        ),
    })
}

/// The account's template that has the unique key, after the due steps of its script.
fn with_unique_key(
    batch: &mut Batch,
    new: &NewTemplate,
    lookup_keys: &LookupKeys,
    emulation: Option<Emulation>,
) -> Result<Option<StoredTemplate>, StoreError> {
    let conflict = templates::conflict_in(batch, new.account, lookup_keys.unique_key)?;
    let Some(id) = conflict.and_then(|conflict| conflict.existing_id) else { return Ok(None) };
    let mut tx = Tx::new(batch);
    ready(emulator::apply_due_of(&mut tx, new.account, id, emulation, new.at))?;
    templates::one(batch.connection(), new.account, id)
}
