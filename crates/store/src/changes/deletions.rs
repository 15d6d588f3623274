//! Deletions of one or several templates. A damaged template can be deleted, too.

use std::collections::HashMap;

use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::Trigger,
};

use super::decisions::plan;
use crate::{
    ChangeOutcome, DeleteOutcome, Initiator, Store, StoreError, StoreFuture, TemplateChange,
    TranslationGroup,
    emulator::{self, Emulation},
    encoding::key,
    engine::{Tx, Value, values},
    events,
    template_rows::{Planned, update_checksum},
    templates::{self, ReadTemplate},
    upstream,
};

impl Store {
    /// Deletes a template and returns it. Its name is free again immediately; its events stay.
    pub fn delete_template(&self, change: TemplateChange) -> StoreFuture<'_, ChangeOutcome> {
        self.write("delete_template", change, |change, tx| {
            let TemplateChange { account, id, review, actor, trace, at, .. } = *change;
            Box::pin(async move {
                let found = lock_and_select(tx, account, &[id]).await?;
                let by = Initiator { account, review, actor, trace, at };
                let (found, emulation) = after_due_steps(tx, by, found).await?;
                let is_intact = found.iter().all(|it| it.is_intact);
                let stored = found.into_iter().map(|it| it.template).next();
                let planned = match plan(change, Trigger::Delete, stored, emulation) {
                    Ok(planned) => planned,
                    Err(refusal) => return Ok(refusal),
                };
                delete(tx, change, &planned, is_intact, emulation).await?;
                Ok(ChangeOutcome::done(Some(planned.before)))
            })
        })
    }

    /// Deletes all languages of a name, each with its event; none if one cannot be deleted.
    pub fn delete_translations(&self, by: Initiator, name: &str) -> StoreFuture<'_, DeleteOutcome> {
        let group = TranslationGroup::of(by.account, name);
        self.write("delete_translations", (by, group), |&(by, group), tx| {
            Box::pin(async move {
                if !tx.lock(by.account).await? {
                    return Ok(DeleteOutcome::Done(Vec::new()));
                }
                let index = tx.dialect().either(" INDEXED BY template_of_translation_group", "");
                let selection = format!("{index} WHERE translation_group = $2");
                let found = select(tx, by.account, &selection, group.0.into()).await?;
                let ids: Vec<TemplateId> = found.iter().map(|it| it.template.id).collect();
                delete_all(tx, by, &ids, found).await
            })
        })
    }

    /// Deletes these templates, each with its event; none if one is unknown or cannot be deleted.
    pub fn delete_templates(
        &self,
        by: Initiator,
        ids: Vec<TemplateId>,
    ) -> StoreFuture<'_, DeleteOutcome> {
        self.write("delete_templates", (by, ids), |(by, ids), tx| {
            Box::pin(async move {
                let found = lock_and_select(tx, by.account, ids).await?;
                delete_all(tx, *by, ids, found).await
            })
        })
    }
}

/// Deletes each of these templates once, or refuses all of them.
async fn delete_all(
    tx: &mut Tx<'_>,
    by: Initiator,
    ids: &[TemplateId],
    found: Vec<ReadTemplate>,
) -> Result<DeleteOutcome, StoreError> {
    let Initiator { account, review, actor, trace, at } = by;
    let (found, emulation) = after_due_steps(tx, by, found).await?;
    let mut found: HashMap<TemplateId, ReadTemplate> =
        found.into_iter().map(|it| (it.template.id, it)).collect();
    let mut planned: Vec<(TemplateChange, Planned, bool)> = Vec::with_capacity(ids.len());
    for &id in ids {
        if planned.iter().any(|(change, ..)| change.id == id) {
            continue;
        }
        let (expected, version) = (None, None);
        let change = TemplateChange { account, id, expected, version, review, actor, trace, at };
        let stored = found.remove(&id);
        let is_intact = stored.as_ref().is_some_and(|it| it.is_intact);
        match plan(&change, Trigger::Delete, stored.map(|it| it.template), emulation) {
            Ok(plan) => planned.push((change, plan, is_intact)),
            Err(ChangeOutcome::InvalidTransition(refusal)) => {
                return Ok(DeleteOutcome::InvalidTransition(id, refusal));
            }
            Err(_) => return Ok(DeleteOutcome::NoTemplate(id)),
        }
    }
    for (change, planned, is_intact) in &planned {
        delete(tx, change, planned, *is_intact, emulation).await?;
    }
    Ok(DeleteOutcome::Done(planned.iter().map(|(change, ..)| change.id).collect()))
}

/// Applies the due steps of the scripts of templates; returns the templates after that, and how an
/// emulator account decides on the deletion.
async fn after_due_steps(
    tx: &mut Tx<'_>,
    by: Initiator,
    found: Vec<ReadTemplate>,
) -> Result<(Vec<ReadTemplate>, Option<Emulation>), StoreError> {
    let Initiator { account, review, at, .. } = by;
    let emulation = emulator::emulation(tx, account, review, at).await?;
    let mut is_changed = false;
    for ReadTemplate { template, .. } in found.iter().filter(|it| it.is_intact) {
        is_changed |= emulator::apply_due_of(tx, account, template.id, emulation, at).await?;
    }
    if !is_changed {
        return Ok((found, emulation));
    }
    let ids: Vec<TemplateId> = found.iter().map(|it| it.template.id).collect();
    Ok((select_ids(tx, account, &ids).await?, emulation))
}

async fn lock_and_select(
    tx: &mut Tx<'_>,
    account: AccountId,
    ids: &[TemplateId],
) -> Result<Vec<ReadTemplate>, StoreError> {
    if tx.lock(account).await? { select_ids(tx, account, ids).await } else { Ok(Vec::new()) }
}

async fn select_ids(
    tx: &mut Tx<'_>,
    account: AccountId,
    ids: &[TemplateId],
) -> Result<Vec<ReadTemplate>, StoreError> {
    // SQLite would look through all templates of the account in another index.
    let no_index = tx.dialect().either(" NOT INDEXED", "");
    let selection = format!("{no_index} WHERE {}", tx.dialect().is_any("id", "$2"));
    let ids: Vec<i64> = ids.iter().map(|id| key(id.get())).collect();
    select(tx, account, &selection, ids.into()).await
}

/// The templates of an account, oldest first, which a condition selects by one value (`$2`).
async fn select(
    tx: &mut Tx<'_>,
    account: AccountId,
    selection: &str,
    value: Value<'_>,
) -> Result<Vec<ReadTemplate>, StoreError> {
    let statement = format!(
        "SELECT {} FROM template{selection} AND account_id = $1 AND unique_key IS NOT NULL \
         ORDER BY id",
        templates::columns(tx.dialect())
    );
    tx.query(&statement, &[account.into(), value], |row| templates::read(row)).await
}

/// Clears the unique key of a template, which frees its name. The row stays as history.
async fn delete(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    planned: &Planned,
    is_intact: bool,
    emulation: Option<Emulation>,
) -> Result<(), StoreError> {
    tx.release_unique_key(change.id)?;
    let update =
        "UPDATE template SET unique_key = NULL, revision = $2, updated_at = $3 WHERE id = $1";
    tx.defer(update, &values![change.id, planned.revision(), change.at])?;
    // The history of a damaged template stays recognisable as damaged.
    if is_intact {
        update_checksum(tx, change.id)?;
    }
    for event in planned.events(change, None) {
        events::append(tx, &event)?;
    }
    if change.review.is_by_provider() {
        let version = planned.next.version;
        upstream::queue_deletion(tx, change.account, change.id, version, change.at).await?;
    }
    let uncount = "DELETE FROM rate_counter WHERE account_id = $1 AND template_id = $2";
    tx.defer(uncount, &values![change.account, change.id])?;
    emulator::finish_deletion(tx, change, &planned.before, emulation).await
}
