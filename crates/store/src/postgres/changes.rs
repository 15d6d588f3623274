//! Edits, reviews and deletes, as SQL. Each locks its account, reads the template, calls the
//! decision, and writes the plan.

mod deletions;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Review,
        edit::Edit,
        lifecycle::{Hold, Trigger},
    },
};
use jiff::Timestamp;
use tokio_postgres::Row;

use self::deletions::{delete, delete_all, delete_translations};
use super::{
    PostgresStore,
    columns::{actor_key, key, millis},
    events,
    pool::Values,
    templates,
    transaction::{Transaction, transact},
    translations, upsert, versions,
};
use crate::{
    Actor, ChangeOutcome, ChangeStore, DeleteOutcome, NewTemplate, StoreError, StoredTemplate,
    TemplateChange, TraceContext, TranslationGroup, UpsertOutcome, audit,
    changes::{FourEyes, Initiator, Planned, PlannedEdit, done, plan, plan_edit, tokens_of_person},
    emulator::{self, Emulation},
    encoding::LookupKeys,
    engine::Tx,
    limits, uploads, upstream,
};

#[async_trait]
impl ChangeStore for PostgresStore {
    async fn edit_template(
        &self,
        change: TemplateChange,
        wanted: Edit,
    ) -> Result<ChangeOutcome, StoreError> {
        transact!(self, tx => edit(tx, &change, &wanted))
    }

    async fn review_template(
        &self,
        change: TemplateChange,
        trigger: Trigger,
        reason: Option<String>,
    ) -> Result<ChangeOutcome, StoreError> {
        transact!(self, tx => review(tx, &change, trigger, reason.as_deref()))
    }

    async fn upsert_templates(
        &self,
        templates: Vec<NewTemplate>,
    ) -> Result<UpsertOutcome, StoreError> {
        let templates: Vec<_> =
            templates.into_iter().map(|new| (LookupKeys::of(&new), new)).collect();
        transact!(self, tx => upsert::all(tx, &templates))
    }

    async fn delete_template(&self, change: TemplateChange) -> Result<ChangeOutcome, StoreError> {
        transact!(self, tx => delete(tx, &change))
    }

    async fn delete_translations(
        &self,
        account: AccountId,
        name: &str,
        review: Review,
        actor: Actor,
        trace: Option<TraceContext>,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError> {
        let group = TranslationGroup::of(account, name);
        let initiator = Initiator { account, review, actor, trace, at };
        transact!(self, tx => delete_translations(tx, group, initiator))
    }

    async fn delete_templates(
        &self,
        account: AccountId,
        ids: Vec<TemplateId>,
        review: Review,
        actor: Actor,
        trace: Option<TraceContext>,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError> {
        let initiator = Initiator { account, review, actor, trace, at };
        transact!(self, tx => delete_all(tx, &ids, initiator))
    }
}

/// Moves the newest version to `former_version` and writes a new one in its place.
async fn edit(
    transaction: &mut Transaction,
    change: &TemplateChange,
    edit: &Edit,
) -> Result<ChangeOutcome, StoreError> {
    if !transaction.lock(change.account).await? {
        return Ok(ChangeOutcome::NoTemplate);
    }
    let emulation = begin_emulated(transaction, change).await?;
    let stored = templates::one_in(transaction, change.account, change.id).await?;
    edit_stored(transaction, change, stored, edit, emulation).await
}

/// How an emulator account decides on a change, after the due steps of the template's script.
async fn begin_emulated(
    transaction: &mut Transaction,
    change: &TemplateChange,
) -> Result<Option<Emulation>, StoreError> {
    let TemplateChange { account, id, review, at, .. } = *change;
    let tx = &mut Tx::new(transaction);
    let emulation = emulator::emulation(tx, account, review, at).await?;
    emulator::apply_due_of(tx, account, id, emulation, at).await?;
    Ok(emulation)
}

/// Edits a template as it was read in the same transaction, after its account was locked.
pub(super) async fn edit_stored(
    transaction: &mut Transaction,
    change: &TemplateChange,
    stored: Option<StoredTemplate>,
    edit: &Edit,
    emulation: Option<Emulation>,
) -> Result<ChangeOutcome, StoreError> {
    let planned = match plan(change, Trigger::Edit, stored, emulation) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    let restored = match edit {
        Edit::Restore(number) => {
            versions::one_in(transaction, change.account, change.id, *number).await?
        }
        Edit::Replace { .. } => None,
    };
    let planned = match plan_edit(planned, edit, restored) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    if planned.changes_category() {
        let siblings = translations::siblings(transaction, change.account, change.id).await?;
        if let Some(refusal) = planned.category_refusal(siblings) {
            return Ok(refusal);
        }
    }
    let is_limited = planned.is_counted() && transaction.limits(change.account).is_some();
    let quota_at = Emulation::quota_time(emulation, change.at);
    if is_limited
        && let Some(limit) =
            limits::reached_by_edit(&mut Tx::new(transaction), change, quota_at).await?
    {
        return Ok(ChangeOutcome::Limited(limit));
    }
    let edited = write_edit(transaction, change, &planned).await?;
    if is_limited && matches!(edited, ChangeOutcome::Done(_)) {
        let seq = transaction.newest_seq(change.account);
        limits::count_edit(&mut Tx::new(transaction), change, seq, quota_at)?;
    }
    emulator::finish_edit(&mut Tx::new(transaction), change, edited, emulation).await
}

/// Writes a planned edit and its events, if the account, which is locked, has the space for it.
pub(super) async fn write_edit(
    transaction: &mut Transaction,
    change: &TemplateChange,
    planned: &PlannedEdit<'_>,
) -> Result<ChangeOutcome, StoreError> {
    let expired = versions::expired(transaction, change.id, planned.expired_versions()).await?;
    let bytes = planned.added_bytes() - expired.bytes;
    if let Some(limit) = transaction.stored_bytes(change.account).refusal(bytes) {
        return Ok(ChangeOutcome::Limited(limit));
    }
    versions::delete(transaction, change.id, expired);
    transaction.stored_bytes(change.account).add(bytes);
    let edited = write_version(transaction, change, planned).await?;
    let handles = planned.media_handles();
    uploads::mark_used(&mut Tx::new(transaction), change.account, handles, change.at).await?;
    append_events(transaction, change, &planned.planned, None).await?;
    changed(edited.as_ref())
}

/// Writes the new version of an edit in the place of the newest one; returns the template's row.
async fn write_version(
    transaction: &Transaction,
    change: &TemplateChange,
    edit: &PlannedEdit<'_>,
) -> Result<Option<Row>, StoreError> {
    let update = format!(
        "WITH former AS (INSERT INTO former_version (template_id, version, category, status, \
         created_at, actor, content, previous_category, reason, decided_at, decided_by) \
         SELECT id, version, category, status, coalesce(version_at, created_at), actor, content, \
         previous_category, reason, decided_at, decided_by FROM template WHERE id = $1) \
         UPDATE template SET version = $2, status = $3, live_version = $4, category = $5, \
         previous_category = $6, content = coalesce($7, content), version_at = $8, updated_at = $8, \
         actor = $9, \
         message_text = CASE WHEN translation_group IS NULL THEN NULL ELSE $10::bytea END, \
         revision = $11, hold = $12, announced_category = NULL, reason = NULL, decided_at = NULL, \
         decided_by = NULL WHERE id = $1 RETURNING {}",
        templates::COLUMNS
    );
    let PlannedEdit { planned, content } = edit;
    let (next, text_key) = (&planned.next, edit.text_key(change.account));
    let values: Values<'_> = &[
        &key(change.id.get()),
        &key(next.version),
        &next.newest_status.as_str(),
        &next.approved_version.map(key),
        &planned.category.as_str(),
        &planned.stored_previous_category(change.review).map(Category::as_str),
        &content.as_deref(),
        &millis(change.at),
        &actor_key(change.actor),
        &text_key.as_ref().map(|key| &key[..]),
        &key(planned.revision()),
        &next.hold.map(Hold::as_str),
    ];
    transaction.query_one(&update, values).await
}

/// Applies a transition: a decision on the newest version, or a hold.
async fn review(
    transaction: &mut Transaction,
    change: &TemplateChange,
    trigger: Trigger,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let planned = match read_and_plan(transaction, change, trigger).await? {
        Ok((planned, _)) => planned,
        Err(refusal) => return Ok(refusal),
    };
    if let Some(refusal) = four_eyes_refusal(transaction, change, &planned).await? {
        return Ok(refusal);
    }
    let next = &planned.next;
    let values: Values<'_> = &[
        &key(change.id.get()),
        &next.newest_status.as_str(),
        &next.approved_version.map(key),
        &next.hold.map(Hold::as_str),
        &planned.is_decision(),
        &reason,
        &millis(change.at),
        &actor_key(change.actor),
        &key(planned.revision()),
    ];
    let update = format!(
        "UPDATE template SET status = $2, live_version = $3, hold = $4, \
         reason = CASE WHEN $5 THEN $6 ELSE reason END, \
         decided_at = CASE WHEN $5 THEN $7 ELSE decided_at END, \
         decided_by = CASE WHEN $5 THEN $8 ELSE decided_by END, updated_at = $7, revision = $9 \
         WHERE id = $1 RETURNING {}",
        templates::COLUMNS
    );
    let reviewed = transaction.query_one(&update, values).await?;
    append_events(transaction, change, &planned, reason).await?;
    changed(reviewed.as_ref())
}

/// Refuses a decision by an author of what it makes live, if the account needs a second person.
async fn four_eyes_refusal(
    transaction: &mut Transaction,
    change: &TemplateChange,
    planned: &Planned,
) -> Result<Option<ChangeOutcome>, StoreError> {
    let TemplateChange { account, id, .. } = *change;
    let reviewer = planned.reviewer(change).filter(|_| transaction.has_four_eyes(account));
    let Some(reviewer) = reviewer else { return Ok(None) };
    let rotations = audit::rotations(&mut Tx::new(transaction), account).await?;
    let person = tokens_of_person(reviewer, &rotations);
    let is_refused = match planned.four_eyes(&person, &versions::authors(transaction, id).await?) {
        FourEyes::Permitted => false,
        FourEyes::Refused => true,
        FourEyes::Compare(comparison) => {
            let compared = versions::some_in(transaction, id, comparison.versions()).await?;
            comparison.is_author(&compared)
        }
    };
    Ok(is_refused.then_some(ChangeOutcome::FourEyes))
}

/// Locks the account, reads the template, and plans the change. Also returns how an emulator account
/// decides on it.
async fn read_and_plan(
    transaction: &mut Transaction,
    change: &TemplateChange,
    trigger: Trigger,
) -> Result<Result<(Planned, Option<Emulation>), ChangeOutcome>, StoreError> {
    if !transaction.lock(change.account).await? {
        return Ok(Err(ChangeOutcome::NoTemplate));
    }
    let emulation = begin_emulated(transaction, change).await?;
    let stored = templates::one_in(transaction, change.account, change.id).await?;
    Ok(plan(change, trigger, stored, emulation).map(|planned| (planned, emulation)))
}

/// The outcome with the template as the update returned it.
fn changed(row: Option<&Row>) -> Result<ChangeOutcome, StoreError> {
    row.map(templates::stored).transpose().map(done)
}

/// Appends the events of a change, and queues what it submits to a provider.
async fn append_events(
    transaction: &mut Transaction,
    change: &TemplateChange,
    planned: &Planned,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    for event in planned.events(change, reason) {
        events::append(transaction, &event).await?;
    }
    if let Some(version) = planned.submitted_version(change.review) {
        let submitted = (change.account, change.id, version);
        upstream::queue_submission(&mut Tx::new(transaction), submitted, change.at).await?;
    }
    Ok(())
}
