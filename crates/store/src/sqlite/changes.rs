//! Edits, reviews and deletions, as SQL. Each looks at the template inside the transaction that
//! changes it, and refuses before it changes anything.

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
    columns::{actor_key, key, millis},
    events, limits, media, templates,
    translations::{self, Standing},
    versions,
    writer::Batch,
};
use crate::{
    Actor, ChangeOutcome, DeleteOutcome, StoreError, StoredTemplate, TemplateChange,
    TranslationGroup, encoding::wording_key,
};

/// A template that may change: where it stood, and where the table of moves takes it.
struct Ready {
    before: StoredTemplate,
    next: State,
    event: EventType,
}

/// Looks whether the change may happen to the template as it is now.
fn look(
    batch: &Batch<'_>,
    change: &TemplateChange,
    trigger: Trigger,
) -> Result<Result<Ready, ChangeOutcome>, StoreError> {
    let Some(before) = templates::one(batch.connection(), change.account, change.id)? else {
        return Ok(Err(ChangeOutcome::NoTemplate));
    };
    if let Some(expected) = &change.expected
        && !expected.contains(&before.revision)
    {
        return Ok(Err(ChangeOutcome::Outdated(before.revision)));
    }
    Ok(match before.state.after(trigger, change.review) {
        Ok((next, event)) => Ok(Ready { before, next, event }),
        Err(refusal) => Err(ChangeOutcome::InvalidTransition(refusal)),
    })
}

/// Moves the newest version to its predecessors and puts a new one in its place.
pub(super) fn edit(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
    edit: &Edit,
) -> Result<ChangeOutcome, StoreError> {
    let Ready { before, next, event } = match look(batch, change, Trigger::Edit)? {
        Ok(ready) => ready,
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
    let counts =
        before.state.status() == Status::Approved && batch.limits(change.account)?.is_some();
    if counts && let Some(limit) = limits::of_edits(batch.connection(), change)? {
        return Ok(ChangeOutcome::Limited(limit));
    }
    let words = content.as_deref().unwrap_or(before.template.content());
    let wording = MessageText::of_content(category, words);
    batch
        .connection()
        .prepare_cached(
            "INSERT INTO former_version (template_id, version, category, status, created_at, \
             actor, content, previous_category, reason, decided_at, decided_by) \
             SELECT id, version, category, status, coalesce(version_at, created_at), actor, \
             content, previous_category, reason, decided_at, decided_by \
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
            next.newest.as_str(),
            next.approved.map(key),
            category.as_str(),
            (category != old).then_some(old.as_str()),
            content,
            millis(change.at),
            actor_key(change.actor),
            wording.map(|wording| wording_key(change.account, &wording)),
        ])?;
    let named = content.as_deref().map(sample::named_in).into_iter().flatten();
    media::note_use(batch.connection(), change.account, named, change.at)?;
    let mut told = vec![event];
    told.extend((category != old).then_some(EventType::CategoryChanged));
    let changed = finish(batch, change, &before, &next, category, &told, None)?;
    if counts {
        limits::count_edit(batch, change)?;
    }
    Ok(changed)
}

/// What stands against another category.
fn category_refusal(
    connection: &Connection,
    change: &TemplateChange,
    before: &StoredTemplate,
) -> Result<Option<ChangeOutcome>, StoreError> {
    let category = before.template.category();
    if !before.template.allow_category_change() {
        return Ok(Some(ChangeOutcome::CategoryLocked(category)));
    }
    Ok(match translations::standing(connection, change.account, change.id)? {
        Standing::NoFamily => None,
        Standing::AmongOthers => Some(ChangeOutcome::FamilyCategory(category)),
        Standing::Alone => {
            let is_live = before.state.live_version().is_some();
            is_live.then_some(ChangeOutcome::LiveCategory(category))
        }
    })
}

/// Moves a template along the table: a decision on its newest version, or a hold.
pub(super) fn review(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
    trigger: Trigger,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let Ready { before, next, event } = match look(batch, change, trigger)? {
        Ok(ready) => ready,
        Err(refusal) => return Ok(refusal),
    };
    let decides = matches!(trigger, Trigger::Approve | Trigger::Reject);
    let connection = batch.connection();
    connection
        .prepare_cached(
            "UPDATE template SET status = ?2, live_version = ?3, hold = ?4 WHERE id = ?1",
        )?
        .execute(params![
            key(change.id.get()),
            next.newest.as_str(),
            next.approved.map(key),
            next.hold.map(Hold::as_str),
        ])?;
    if decides {
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

/// Gives the claim up, so that the name is free; everything else stays as history.
pub(super) fn delete(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
) -> Result<ChangeOutcome, StoreError> {
    let Ready { before, next, event } = match look(batch, change, Trigger::Delete)? {
        Ok(ready) => ready,
        Err(refusal) => return Ok(refusal),
    };
    take_away(batch, change, &before, &next, event)?;
    Ok(ChangeOutcome::Done(Box::new(before)))
}

fn take_away(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
    before: &StoredTemplate,
    next: &State,
    event: EventType,
) -> Result<(), StoreError> {
    finish(batch, change, before, next, before.template.category(), &[event], None)?;
    batch
        .connection()
        .prepare_cached("UPDATE template SET claim = NULL WHERE id = ?1")?
        .execute([key(change.id.get())])?;
    limits::forget_edits(batch, change)?;
    Ok(())
}

/// For whom several templates are deleted.
#[derive(Clone, Copy)]
pub(super) struct By {
    pub(super) account: AccountId,
    pub(super) review: Review,
    pub(super) actor: Actor,
    pub(super) at: Timestamp,
}

/// Deletes every language of a name.
pub(super) fn delete_translations(
    batch: &mut Batch<'_>,
    family: TranslationGroup,
    by: By,
) -> Result<DeleteOutcome, StoreError> {
    let ids = translations::ids(batch.connection(), by.account, family)?;
    delete_all(batch, &ids, by)
}

/// Looks at all of them before it takes the first away.
pub(super) fn delete_all(
    batch: &mut Batch<'_>,
    ids: &[TemplateId],
    by: By,
) -> Result<DeleteOutcome, StoreError> {
    let By { account, review, actor, at } = by;
    let mut ready: Vec<(TemplateChange, Ready)> = Vec::new();
    for id in ids {
        if ready.iter().any(|(change, _)| change.id == *id) {
            continue;
        }
        let change = TemplateChange { account, id: *id, expected: None, review, actor, at };
        match look(batch, &change, Trigger::Delete)? {
            Ok(found) => ready.push((change, found)),
            Err(ChangeOutcome::InvalidTransition(refusal)) => {
                return Ok(DeleteOutcome::InvalidTransition(*id, refusal));
            }
            Err(_) => return Ok(DeleteOutcome::NoTemplate(*id)),
        }
    }
    for (change, Ready { before, next, event }) in &ready {
        take_away(batch, change, before, next, *event)?;
    }
    Ok(DeleteOutcome::Done(ready.iter().map(|(change, _)| change.id).collect()))
}

/// Tells the events, raises the revision by their number, and answers the template as it is now.
fn finish(
    batch: &mut Batch<'_>,
    change: &TemplateChange,
    before: &StoredTemplate,
    next: &State,
    category: Category,
    told: &[EventType],
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let revision = before.revision + told.len() as u64;
    batch
        .connection()
        .prepare_cached("UPDATE template SET revision = ?2, updated_at = ?3 WHERE id = ?1")?
        .execute(params![key(change.id.get()), key(revision), millis(change.at)])?;
    for kind in told {
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
    let now = templates::one(batch.connection(), change.account, change.id)?;
    Ok(now.map_or(ChangeOutcome::NoTemplate, |now| ChangeOutcome::Done(Box::new(now))))
}
