//! SQL for edits, reviews and deletions. Each one checks the template in the transaction that
//! changes it, before the first write.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Review, Status,
        edit::Edit,
        lifecycle::{EventType, Hold, State, Trigger},
        message_text::MessageText,
        sample,
    },
};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{
    SqliteStore, checksum,
    columns::{actor_key, key, millis},
    events, limits, media,
    templates::{self, ReadTemplate},
    translations::{self, Siblings},
    upsert, versions,
    writer::Batch,
};
use crate::{
    Actor, ChangeOutcome, ChangeStore, DeleteOutcome, NewTemplate, StoreError, StoredTemplate,
    TemplateChange, TranslationGroup, UpsertOutcome, encoding::text_hash,
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

    async fn upsert_templates(&self, news: Vec<NewTemplate>) -> Result<UpsertOutcome, StoreError> {
        let news: Vec<_> =
            news.into_iter().map(|new| (templates::Prepared::new(&new), new)).collect();
        self.writer.write(move |batch| upsert::all(batch, &news)).await
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
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError> {
        let group = TranslationGroup::of(account, name);
        let initiator = Initiator { account, review, actor, at };
        self.writer.write(move |batch| delete_translations(batch, group, initiator)).await
    }

    async fn delete_templates(
        &self,
        account: AccountId,
        ids: Vec<TemplateId>,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError> {
        let initiator = Initiator { account, review, actor, at };
        self.writer.write(move |batch| delete_all(batch, &ids, initiator)).await
    }
}

/// A change that passed its checks: the template before it, its next state, and the event.
struct Planned {
    before: StoredTemplate,
    /// Whether the template matches its checksum; a damaged one can only be deleted.
    is_intact: bool,
    next: State,
    event: EventType,
}

/// Checks whether the change applies to the template as it is now.
fn check(
    batch: &Batch<'_>,
    change: &TemplateChange,
    trigger: Trigger,
) -> Result<Result<Planned, ChangeOutcome>, StoreError> {
    let Some(read) = templates::read(batch.connection(), change.account, change.id)? else {
        return Ok(Err(ChangeOutcome::NoTemplate));
    };
    let ReadTemplate { template: before, is_intact } = read;
    if !is_intact && trigger != Trigger::Delete {
        return Err(checksum::damaged("template", change.id));
    }
    if let Some(expected) = &change.expected
        && !expected.contains(&before.revision)
    {
        return Ok(Err(ChangeOutcome::RevisionMismatch(before.revision)));
    }
    Ok(match before.state.apply(trigger, change.review) {
        Ok((next, event)) => Ok(Planned { before, is_intact, next, event }),
        Err(refusal) => Err(ChangeOutcome::InvalidTransition(refusal)),
    })
}

/// Moves the newest version into the version history and replaces it with a new one.
pub(super) fn edit(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
    edit: &Edit,
) -> Result<ChangeOutcome, StoreError> {
    let Planned { before, next, event, .. } = match check(batch, change, Trigger::Edit)? {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    let old = before.template.category();
    let (content, category) = match edit {
        Edit::Replace { content, category } => (content.clone(), category.unwrap_or(old)),
        Edit::Restore(number) => {
            match versions::one(batch.connection(), change.account, change.id, *number)? {
                Some(version) => (Some(version.content), version.category),
                None => return Ok(ChangeOutcome::NoVersion),
            }
        }
    };
    if category != old
        && let Some(refusal) = category_refusal(batch.connection(), change, &before)?
    {
        return Ok(refusal);
    }
    let is_counted =
        before.state.status() == Status::Approved && batch.limits(change.account)?.is_some();
    if is_counted && let Some(limit) = limits::reached_by_edit(batch.connection(), change)? {
        return Ok(ChangeOutcome::Limited(limit));
    }
    let new_content = content.as_deref().unwrap_or(before.template.content());
    let text = MessageText::from_content(category, new_content);
    batch
        .connection()
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
    batch
        .connection()
        .prepare_cached(
            "UPDATE template SET version = ?2, status = ?3, live_version = ?4, category = ?5, \
             previous_category = ?6, content = coalesce(?7, content), version_at = ?8, \
             actor = ?9, wording = CASE WHEN family IS NULL THEN NULL ELSE ?10 END, \
             reason = NULL, decided_at = NULL, decided_by = NULL WHERE id = ?1",
        )?
        .execute(params![
            key(change.id.get()),
            key(next.version),
            next.newest_status.as_str(),
            next.approved_version.map(key),
            category.as_str(),
            (category != old).then_some(old.as_str()),
            content,
            millis(change.at),
            actor_key(change.actor),
            text.map(|text| text_hash(change.account, &text)),
        ])?;
    let handles = content.as_deref().map(sample::referenced_names).into_iter().flatten();
    media::mark_used(batch.connection(), change.account, handles, change.at)?;
    let mut events = vec![event];
    events.extend((category != old).then_some(EventType::CategoryChanged));
    let changed = finish(batch, change, &before, &next, category, &events, None)?;
    if is_counted {
        limits::count_edit(batch, change)?;
    }
    Ok(changed)
}

/// Why the template cannot change its category, if it cannot.
fn category_refusal(
    connection: &Connection,
    change: &TemplateChange,
    before: &StoredTemplate,
) -> Result<Option<ChangeOutcome>, StoreError> {
    let category = before.template.category();
    if !before.template.allow_category_change() {
        return Ok(Some(ChangeOutcome::CategoryLocked(category)));
    }
    Ok(match translations::siblings(connection, change.account, change.id)? {
        Siblings::NoGroup => None,
        Siblings::Others => Some(ChangeOutcome::GroupCategory(category)),
        Siblings::None => {
            let is_live = before.state.live_version().is_some();
            is_live.then_some(ChangeOutcome::LiveCategory(category))
        }
    })
}

/// Applies a transition: a decision on the newest version, or a hold.
pub(super) fn review(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
    trigger: Trigger,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let Planned { before, next, event, .. } = match check(batch, change, trigger)? {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    let is_decision = matches!(trigger, Trigger::Approve | Trigger::Reject);
    let connection = batch.connection();
    connection
        .prepare_cached(
            "UPDATE template SET status = ?2, live_version = ?3, hold = ?4 WHERE id = ?1",
        )?
        .execute(params![
            key(change.id.get()),
            next.newest_status.as_str(),
            next.approved_version.map(key),
            next.hold.map(Hold::as_str),
        ])?;
    if is_decision {
        connection
            .prepare_cached(
                "UPDATE template SET reason = ?2, decided_at = ?3, decided_by = ?4 WHERE id = ?1",
            )?
            .execute(params![
                key(change.id.get()),
                reason,
                millis(change.at),
                actor_key(change.actor)
            ])?;
    }
    let category = before.template.category();
    finish(batch, change, &before, &next, category, &[event], reason)
}

/// Deletes a template: clears its unique key, which frees the name. The row stays as history.
pub(super) fn delete(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
) -> Result<ChangeOutcome, StoreError> {
    let planned = match check(batch, change, Trigger::Delete)? {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    delete_checked(batch, change, &planned)?;
    Ok(ChangeOutcome::Done(Box::new(planned.before)))
}

/// Deletes a template that [`check`] has passed.
fn delete_checked(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
    planned: &Planned,
) -> Result<(), StoreError> {
    let Planned { before, is_intact, next, event } = planned;
    append_events(batch, change, before, next, before.template.category(), &[*event], None)?;
    // The history of a damaged template stays recognisable as damaged.
    if *is_intact {
        templates::update_checksum(batch.connection(), change.id)?;
    }
    batch
        .connection()
        .prepare_cached("UPDATE template SET claim = NULL WHERE id = ?1")?
        .execute([key(change.id.get())])?;
    limits::delete_edit_counter(batch, change)?;
    Ok(())
}

/// The account and actor that delete several templates, and when.
#[derive(Clone, Copy)]
pub(super) struct Initiator {
    pub(super) account: AccountId,
    pub(super) review: Review,
    pub(super) actor: Actor,
    pub(super) at: Timestamp,
}

/// Deletes all languages of a name.
pub(super) fn delete_translations(
    batch: &mut Batch<'_>,
    group: TranslationGroup,
    initiator: Initiator,
) -> Result<DeleteOutcome, StoreError> {
    let ids = translations::ids(batch.connection(), initiator.account, group)?;
    delete_all(batch, &ids, initiator)
}

/// Deletes all of these templates, or none. Checks all of them before the first deletion.
pub(super) fn delete_all(
    batch: &mut Batch<'_>,
    ids: &[TemplateId],
    initiator: Initiator,
) -> Result<DeleteOutcome, StoreError> {
    let Initiator { account, review, actor, at } = initiator;
    let mut planned: Vec<(TemplateChange, Planned)> = Vec::new();
    for id in ids {
        if planned.iter().any(|(change, _)| change.id == *id) {
            continue;
        }
        let change = TemplateChange { account, id: *id, expected: None, review, actor, at };
        match check(batch, &change, Trigger::Delete)? {
            Ok(found) => planned.push((change, found)),
            Err(ChangeOutcome::InvalidTransition(refusal)) => {
                return Ok(DeleteOutcome::InvalidTransition(*id, refusal));
            }
            Err(_) => return Ok(DeleteOutcome::NoTemplate(*id)),
        }
    }
    for (change, planned) in &planned {
        delete_checked(batch, change, planned)?;
    }
    Ok(DeleteOutcome::Done(planned.iter().map(|(change, _)| change.id).collect()))
}

/// Appends the events of an edit or a review, and returns the changed template.
fn finish(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
    before: &StoredTemplate,
    next: &State,
    category: Category,
    kinds: &[EventType],
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    append_events(batch, change, before, next, category, kinds, reason)?;
    templates::update_checksum(batch.connection(), change.id)?;
    let now = templates::one(batch.connection(), change.account, change.id)?;
    Ok(now.map_or(ChangeOutcome::NoTemplate, |now| ChangeOutcome::Done(Box::new(now))))
}

/// Appends the events and increases the revision by their number.
fn append_events(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
    before: &StoredTemplate,
    next: &State,
    category: Category,
    kinds: &[EventType],
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let revision = before.revision + kinds.len() as u64;
    batch
        .connection()
        .prepare_cached("UPDATE template SET revision = ?2, updated_at = ?3 WHERE id = ?1")?
        .execute(params![key(change.id.get()), key(revision), millis(change.at)])?;
    for kind in kinds {
        let event = events::NewEvent {
            account: change.account,
            kind: *kind,
            template: change.id,
            version: next.version,
            at: change.at,
            actor: change.actor,
            category,
            status: next.status(),
            reason,
        };
        events::append(batch, &event)?;
    }
    Ok(())
}
