//! Edits, reviews and deletions, as SQL. Each locks its account, looks at the template as it is
//! then, and refuses before it changes anything.

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
use tokio_postgres::Row;

use super::{
    columns::{actor_key, key, millis},
    events, limits, media,
    pool::Values,
    templates,
    transaction::Transaction,
    translations::{self, Standing},
    versions,
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
async fn look(
    transaction: &Transaction,
    change: &TemplateChange,
    trigger: Trigger,
) -> Result<Result<Ready, ChangeOutcome>, StoreError> {
    let Some(before) = templates::one_in(transaction, change.account, change.id).await? else {
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
pub(super) async fn edit(
    transaction: &mut Transaction,
    change: &TemplateChange,
    edit: &Edit,
) -> Result<ChangeOutcome, StoreError> {
    if !transaction.lock(change.account).await? {
        return Ok(ChangeOutcome::NoTemplate);
    }
    let Ready { before, next, event } = match look(transaction, change, Trigger::Edit).await? {
        Ok(ready) => ready,
        Err(refusal) => return Ok(refusal),
    };
    let old = before.template.category();
    let (content, category) = match edit {
        Edit::Replace { content, category } => (content.clone(), category.unwrap_or(old)),
        Edit::Restore(number) => {
            match versions::one_in(transaction, change.account, change.id, *number).await? {
                Some(version) => (Some(version.content), version.category),
                None => return Ok(ChangeOutcome::NoVersion),
            }
        }
    };
    if category != old
        && let Some(refusal) = category_refusal(transaction, change, &before).await?
    {
        return Ok(refusal);
    }
    let counts =
        before.state.status() == Status::Approved && transaction.limits(change.account).is_some();
    if counts && let Some(limit) = limits::of_edits(transaction, change).await? {
        return Ok(ChangeOutcome::Limited(limit));
    }
    let mut told = vec![event];
    told.extend((category != old).then_some(EventType::CategoryChanged));
    let words = content.as_deref().unwrap_or(before.template.content());
    let wording = MessageText::of_content(category, words);
    let wording = wording.map(|wording| wording_key(change.account, &wording).to_vec());
    let values: Values<'_> = &[
        &key(change.id.get()),
        &key(next.version),
        &next.newest.as_str(),
        &next.approved.map(key),
        &category.as_str(),
        &(category != old).then_some(old.as_str()),
        &content,
        &millis(change.at),
        &actor_key(change.actor),
        &wording,
        &raised(&before, &told),
    ];
    let update = format!(
        "WITH former AS (INSERT INTO former_version (template_id, version, category, status, \
         created_at, actor, content, previous_category, reason, decided_at, decided_by) \
         SELECT id, version, category, status, coalesce(version_at, created_at), actor, content, \
         previous_category, reason, decided_at, decided_by FROM template WHERE id = $1) \
         UPDATE template SET version = $2, status = $3, live_version = $4, category = $5, \
         previous_category = $6, content = coalesce($7, content), version_at = $8, updated_at = $8, \
         actor = $9, wording = CASE WHEN family IS NULL THEN NULL ELSE $10::bytea END, \
         revision = $11, reason = NULL, decided_at = NULL, decided_by = NULL WHERE id = $1 \
         RETURNING {}",
        templates::COLUMNS
    );
    let now = transaction.query_one(&update, values).await?;
    let named = content.as_deref().map(sample::named_in).into_iter().flatten();
    media::note_use(transaction.link(), change.account, named, change.at).await?;
    tell(transaction, change, &next, category, &told, None).await?;
    if counts {
        limits::count_edit(transaction, change).await?;
    }
    changed(now.as_ref())
}

/// What stands against another category.
async fn category_refusal(
    transaction: &Transaction,
    change: &TemplateChange,
    before: &StoredTemplate,
) -> Result<Option<ChangeOutcome>, StoreError> {
    let category = before.template.category();
    if !before.template.allow_category_change() {
        return Ok(Some(ChangeOutcome::CategoryLocked(category)));
    }
    Ok(match translations::standing(transaction, change.account, change.id).await? {
        Standing::NoFamily => None,
        Standing::AmongOthers => Some(ChangeOutcome::FamilyCategory(category)),
        Standing::Alone => {
            let is_live = before.state.live_version().is_some();
            is_live.then_some(ChangeOutcome::LiveCategory(category))
        }
    })
}

/// Moves a template along the table: a decision on its newest version, or a hold.
pub(super) async fn review(
    transaction: &mut Transaction,
    change: &TemplateChange,
    trigger: Trigger,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    if !transaction.lock(change.account).await? {
        return Ok(ChangeOutcome::NoTemplate);
    }
    let Ready { before, next, event } = match look(transaction, change, trigger).await? {
        Ok(ready) => ready,
        Err(refusal) => return Ok(refusal),
    };
    let values: Values<'_> = &[
        &key(change.id.get()),
        &next.newest.as_str(),
        &next.approved.map(key),
        &next.hold.map(Hold::as_str),
        &matches!(trigger, Trigger::Approve | Trigger::Reject),
        &reason,
        &millis(change.at),
        &actor_key(change.actor),
        &raised(&before, &[event]),
    ];
    let update = format!(
        "UPDATE template SET status = $2, live_version = $3, hold = $4, \
         reason = CASE WHEN $5 THEN $6 ELSE reason END, \
         decided_at = CASE WHEN $5 THEN $7 ELSE decided_at END, \
         decided_by = CASE WHEN $5 THEN $8 ELSE decided_by END, updated_at = $7, revision = $9 \
         WHERE id = $1 RETURNING {}",
        templates::COLUMNS
    );
    let now = transaction.query_one(&update, values).await?;
    tell(transaction, change, &next, before.template.category(), &[event], reason).await?;
    changed(now.as_ref())
}

/// Gives the claim up, so that the name is free; everything else stays as history.
pub(super) async fn delete(
    transaction: &mut Transaction,
    change: &TemplateChange,
) -> Result<ChangeOutcome, StoreError> {
    if !transaction.lock(change.account).await? {
        return Ok(ChangeOutcome::NoTemplate);
    }
    let Ready { before, next, event } = match look(transaction, change, Trigger::Delete).await? {
        Ok(ready) => ready,
        Err(refusal) => return Ok(refusal),
    };
    take_away(transaction, change, &before, &next, event).await?;
    Ok(ChangeOutcome::Done(Box::new(before)))
}

async fn take_away(
    transaction: &mut Transaction,
    change: &TemplateChange,
    before: &StoredTemplate,
    next: &State,
    event: EventType,
) -> Result<(), StoreError> {
    let update = "UPDATE template SET claim = NULL, revision = $2, updated_at = $3 WHERE id = $1";
    let values: Values<'_> =
        &[&key(change.id.get()), &raised(before, &[event]), &millis(change.at)];
    transaction.execute(update, values).await?;
    tell(transaction, change, next, before.template.category(), &[event], None).await?;
    limits::forget_edits(transaction, change).await
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
pub(super) async fn delete_translations(
    transaction: &mut Transaction,
    family: TranslationGroup,
    by: By,
) -> Result<DeleteOutcome, StoreError> {
    if !transaction.lock(by.account).await? {
        return Ok(DeleteOutcome::Done(Vec::new()));
    }
    let ids = translations::ids(transaction, by.account, family).await?;
    delete_locked(transaction, &ids, by).await
}

/// Deletes these templates, or none.
pub(super) async fn delete_all(
    transaction: &mut Transaction,
    ids: &[TemplateId],
    by: By,
) -> Result<DeleteOutcome, StoreError> {
    if !transaction.lock(by.account).await?
        && let Some(first) = ids.first()
    {
        return Ok(DeleteOutcome::NoTemplate(*first));
    }
    delete_locked(transaction, ids, by).await
}

/// Looks at all of them before it takes the first away.
async fn delete_locked(
    transaction: &mut Transaction,
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
        match look(transaction, &change, Trigger::Delete).await? {
            Ok(found) => ready.push((change, found)),
            Err(ChangeOutcome::InvalidTransition(refusal)) => {
                return Ok(DeleteOutcome::InvalidTransition(*id, refusal));
            }
            Err(_) => return Ok(DeleteOutcome::NoTemplate(*id)),
        }
    }
    for (change, Ready { before, next, event }) in &ready {
        take_away(transaction, change, before, next, *event).await?;
    }
    Ok(DeleteOutcome::Done(ready.iter().map(|(change, _)| change.id).collect()))
}

/// The revision of a template after a change that is told by these events: each raises it by one.
fn raised(before: &StoredTemplate, told: &[EventType]) -> i64 {
    key(before.revision + told.len() as u64)
}

/// The template as it is now.
fn changed(now: Option<&Row>) -> Result<ChangeOutcome, StoreError> {
    let now = now.map(templates::stored).transpose()?;
    Ok(now.map_or(ChangeOutcome::NoTemplate, |now| ChangeOutcome::Done(Box::new(now))))
}

/// Appends the events of a change.
async fn tell(
    transaction: &mut Transaction,
    change: &TemplateChange,
    next: &State,
    category: Category,
    told: &[EventType],
    reason: Option<&str>,
) -> Result<(), StoreError> {
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
        events::append(transaction, &event).await?;
    }
    Ok(())
}
