//! SQL for edits, reviews and deletions. Each of them reads the template in the transaction that changes
//! it, calls the decision, and writes the plan.

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
use rusqlite::{Connection, params};

use self::deletions::{delete, delete_all, delete_translations};
use super::{
    SqliteStore,
    columns::{actor_key, key, millis},
    events, templates, translations, upsert, versions,
    writer::Batch,
};
use crate::{
    Actor, ChangeOutcome, ChangeStore, DeleteOutcome, NewTemplate, StoreError, StoredTemplate,
    TemplateChange, TraceContext, TranslationGroup, UpsertOutcome, audit,
    changes::{FourEyes, Initiator, Planned, PlannedEdit, done, plan, plan_edit, tokens_of_person},
    emulator::{self, Emulation},
    encoding::LookupKeys,
    engine::Tx,
    limits,
    sqlite::statements::ready,
    uploads, upstream,
};

#[async_trait]
impl ChangeStore for SqliteStore {
    async fn edit_template(
        &self,
        change: TemplateChange,
        wanted: Edit,
    ) -> Result<ChangeOutcome, StoreError> {
        self.writer.write(move |batch| edit(batch, &change, &wanted)).await
    }

    async fn review_template(
        &self,
        change: TemplateChange,
        trigger: Trigger,
        reason: Option<String>,
    ) -> Result<ChangeOutcome, StoreError> {
        self.writer.write(move |batch| review(batch, &change, trigger, reason.as_deref())).await
    }

    async fn upsert_templates(
        &self,
        templates: Vec<NewTemplate>,
    ) -> Result<UpsertOutcome, StoreError> {
        let templates: Vec<_> =
            templates.into_iter().map(|new| (LookupKeys::of(&new), new)).collect();
        self.writer.write(move |batch| upsert::all(batch, &templates)).await
    }

    async fn delete_template(&self, change: TemplateChange) -> Result<ChangeOutcome, StoreError> {
        self.writer.write(move |batch| delete(batch, &change)).await
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
        self.writer.write(move |batch| delete_translations(batch, group, initiator)).await
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
        self.writer.write(move |batch| delete_all(batch, &ids, initiator)).await
    }
}

/// Moves the newest version into the version history and replaces it with a new one.
fn edit(
    batch: &mut Batch,
    change: &TemplateChange,
    edit: &Edit,
) -> Result<ChangeOutcome, StoreError> {
    let emulation = begin_emulated(batch, change)?;
    let stored = templates::one(batch.connection(), change.account, change.id)?;
    edit_stored(batch, change, stored, edit, emulation)
}

/// How an emulator account decides on a change, after the due steps of the template's script.
fn begin_emulated(
    batch: &mut Batch,
    change: &TemplateChange,
) -> Result<Option<Emulation>, StoreError> {
    let TemplateChange { account, id, review, at, .. } = *change;
    let tx = &mut Tx::new(batch);
    let emulation = ready(emulator::emulation(tx, account, review, at))?;
    ready(emulator::apply_due_of(tx, account, id, emulation, at))?;
    Ok(emulation)
}

/// Edits a template as it was read in the same transaction.
pub(super) fn edit_stored(
    batch: &mut Batch,
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
            versions::one(batch.connection(), change.account, change.id, *number)?
        }
        Edit::Replace { .. } => None,
    };
    let planned = match plan_edit(planned, edit, restored) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    if planned.changes_category() {
        let siblings = translations::siblings(batch.connection(), change.account, change.id)?;
        if let Some(refusal) = planned.category_refusal(siblings) {
            return Ok(refusal);
        }
    }
    let is_limited = planned.is_counted() && batch.limits(change.account)?.is_some();
    let quota_at = Emulation::quota_time(emulation, change.at);
    if is_limited
        && let Some(limit) = ready(limits::reached_by_edit(&mut Tx::new(batch), change, quota_at))?
    {
        return Ok(ChangeOutcome::Limited(limit));
    }
    let edited = write_edit(batch, change, &planned)?;
    if is_limited && matches!(edited, ChangeOutcome::Done(_)) {
        let seq = batch.newest_seq(change.account)?;
        limits::count_edit(&mut Tx::new(batch), change, seq, quota_at)?;
    }
    ready(emulator::finish_edit(&mut Tx::new(batch), change, edited, emulation))
}

/// Writes a planned edit and its events, if the account has the space for it.
pub(super) fn write_edit(
    batch: &mut Batch,
    change: &TemplateChange,
    planned: &PlannedEdit<'_>,
) -> Result<ChangeOutcome, StoreError> {
    let expired = versions::expired(batch.connection(), change.id, planned.expired_versions())?;
    let bytes = planned.added_bytes() - expired.bytes;
    if let Some(limit) = batch.stored_bytes(change.account)?.refusal(bytes) {
        return Ok(ChangeOutcome::Limited(limit));
    }
    versions::delete(batch.connection(), change.id, &expired)?;
    write_version(batch.connection(), change, planned)?;
    batch.add_stored_bytes(change.account, bytes)?;
    let handles = planned.media_handles();
    ready(uploads::mark_used(&mut Tx::new(batch), change.account, handles, change.at))?;
    finish(batch, change, &planned.planned, None)
}

/// Writes the new version of an edit in the place of the newest one.
fn write_version(
    connection: &Connection,
    change: &TemplateChange,
    edit: &PlannedEdit<'_>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO former_version (template_id, version, category, status, created_at, \
             actor, content, previous_category, reason, decided_at, decided_by, checksum) \
             SELECT id, version, category, status, coalesce(version_at, created_at), actor, \
             content, previous_category, reason, decided_at, decided_by, \
             row_checksum(id, version, category, status, coalesce(version_at, created_at), actor, \
             content, previous_category, reason, decided_at, decided_by) \
             FROM template WHERE id = ?1",
        )?
        .execute([key(change.id.get())])?;
    let mut update = connection.prepare_cached(
        "UPDATE template SET version = ?2, status = ?3, live_version = ?4, category = ?5, \
         previous_category = ?6, content = coalesce(?7, content), version_at = ?8, \
         updated_at = ?8, actor = ?9, \
         message_text = CASE WHEN translation_group IS NULL THEN NULL ELSE ?10 END, \
         revision = ?11, hold = ?12, announced_category = NULL, reason = NULL, decided_at = NULL, \
         decided_by = NULL WHERE id = ?1",
    )?;
    let PlannedEdit { planned, content } = edit;
    update.execute(params![
        key(change.id.get()),
        key(planned.next.version),
        planned.next.newest_status.as_str(),
        planned.next.approved_version.map(key),
        planned.category.as_str(),
        planned.stored_previous_category(change.review).map(Category::as_str),
        content.as_deref(),
        millis(change.at),
        actor_key(change.actor),
        edit.text_key(change.account),
        key(planned.revision()),
        planned.next.hold.map(Hold::as_str),
    ])?;
    Ok(())
}

/// Applies a transition: a decision on the newest version, or a hold.
fn review(
    batch: &mut Batch,
    change: &TemplateChange,
    trigger: Trigger,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let emulation = begin_emulated(batch, change)?;
    let stored = templates::one(batch.connection(), change.account, change.id)?;
    let planned = match plan(change, trigger, stored, emulation) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    if let Some(refusal) = four_eyes_refusal(batch, change, &planned)? {
        return Ok(refusal);
    }
    let connection = batch.connection();
    let (id, at) = (key(change.id.get()), millis(change.at));
    let (status, live_version) = (planned.next.newest_status, planned.next.approved_version);
    connection
        .prepare_cached(
            "UPDATE template SET status = ?2, live_version = ?3, hold = ?4, updated_at = ?5, \
             revision = ?6 WHERE id = ?1",
        )?
        .execute(params![
            id,
            status.as_str(),
            live_version.map(key),
            planned.next.hold.map(Hold::as_str),
            at,
            key(planned.revision()),
        ])?;
    if planned.is_decision() {
        connection
            .prepare_cached(
                "UPDATE template SET reason = ?2, decided_at = ?3, decided_by = ?4 WHERE id = ?1",
            )?
            .execute(params![id, reason, at, actor_key(change.actor)])?;
    }
    finish(batch, change, &planned, reason)
}

/// Refuses a decision by an author of what it makes live, if the account needs a second person.
fn four_eyes_refusal(
    batch: &mut Batch,
    change: &TemplateChange,
    planned: &Planned,
) -> Result<Option<ChangeOutcome>, StoreError> {
    let Some(reviewer) = planned.reviewer(change) else { return Ok(None) };
    let has_four_eyes = "SELECT 1 FROM account WHERE id = ?1 AND four_eyes";
    if !batch.connection().prepare_cached(has_four_eyes)?.exists([key(change.account.get())])? {
        return Ok(None);
    }
    let rotations = ready(audit::rotations(&mut Tx::new(batch), change.account))?;
    let connection = batch.connection();
    let person = tokens_of_person(reviewer, &rotations);
    let is_refused = match planned.four_eyes(&person, &versions::authors(connection, change.id)?) {
        FourEyes::Permitted => false,
        FourEyes::Refused => true,
        FourEyes::Compare(comparison) => {
            let mut compared = Vec::new();
            for number in comparison.versions() {
                compared.extend(versions::even_deleted(connection, change.id, number)?);
            }
            comparison.is_author(&compared)
        }
    };
    Ok(is_refused.then_some(ChangeOutcome::FourEyes))
}

/// Appends the events of an edit or a review, queues what it submits to a provider, and returns the
/// changed template.
fn finish(
    batch: &mut Batch,
    change: &TemplateChange,
    planned: &Planned,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    for event in planned.events(change, reason) {
        events::append(batch, &event)?;
    }
    if let Some(version) = planned.submitted_version(change.review) {
        let submitted = (change.account, change.id, version);
        ready(upstream::queue_submission(&mut Tx::new(batch), submitted, change.at))?;
    }
    templates::update_checksum(batch.connection(), change.id)?;
    Ok(done(templates::one(batch.connection(), change.account, change.id)?))
}
