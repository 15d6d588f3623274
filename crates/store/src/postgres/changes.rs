//! Edits, reviews and deletes, as SQL. Each locks its account, checks the current state of the
//! template, and refuses before it changes anything.

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
use tokio_postgres::Row;

use super::{
    PostgresStore,
    columns::{actor_key, key, millis},
    events, limits, media,
    pool::Values,
    templates,
    transaction::{Transaction, transact},
    translations::{self, Membership},
    upsert, versions,
};
use crate::{
    Actor, ChangeOutcome, ChangeStore, DeleteOutcome, NewTemplate, StoreError, StoredTemplate,
    TemplateChange, TranslationGroup, UpsertOutcome,
    encoding::{LookupKeys, text_hash},
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

    async fn upsert_templates(&self, news: Vec<NewTemplate>) -> Result<UpsertOutcome, StoreError> {
        let news: Vec<_> = news.into_iter().map(|new| (LookupKeys::of(&new), new)).collect();
        transact!(self, tx => upsert::all(tx, &self.ids, &news))
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
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError> {
        let group = TranslationGroup::of(account, name);
        let initiator = Initiator { account, review, actor, at };
        transact!(self, tx => delete_translations(tx, group, initiator))
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
        transact!(self, tx => delete_all(tx, &ids, initiator))
    }
}

/// A change that may happen: the template before it, and the transition.
struct Planned {
    before: StoredTemplate,
    next: State,
    event: EventType,
}

/// Checks whether the change is possible in the current state of the template.
async fn check(
    transaction: &Transaction,
    change: &TemplateChange,
    trigger: Trigger,
) -> Result<Result<Planned, ChangeOutcome>, StoreError> {
    let Some(before) = templates::one_in(transaction, change.account, change.id).await? else {
        return Ok(Err(ChangeOutcome::NoTemplate));
    };
    if let Some(expected) = &change.expected
        && !expected.contains(&before.revision)
    {
        return Ok(Err(ChangeOutcome::RevisionMismatch(before.revision)));
    }
    Ok(match before.state.apply(trigger, change.review) {
        Ok((next, event)) => Ok(Planned { before, next, event }),
        Err(refusal) => Err(ChangeOutcome::InvalidTransition(refusal)),
    })
}

/// Moves the newest version to `former_version` and writes a new one in its place.
pub(super) async fn edit(
    transaction: &mut Transaction,
    change: &TemplateChange,
    edit: &Edit,
) -> Result<ChangeOutcome, StoreError> {
    if !transaction.lock(change.account).await? {
        return Ok(ChangeOutcome::NoTemplate);
    }
    let Planned { before, next, event } = match check(transaction, change, Trigger::Edit).await? {
        Ok(planned) => planned,
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
    let is_limited =
        before.state.status() == Status::Approved && transaction.limits(change.account).is_some();
    if is_limited && let Some(limit) = limits::exceeded_by_edit(transaction, change).await? {
        return Ok(ChangeOutcome::Limited(limit));
    }
    let mut event_types = vec![event];
    event_types.extend((category != old).then_some(EventType::CategoryChanged));
    let new_content = content.as_deref().unwrap_or(before.template.content());
    let text = MessageText::from_content(category, new_content);
    let text_key = text.map(|text| text_hash(change.account, &text).to_vec());
    let values: Values<'_> = &[
        &key(change.id.get()),
        &key(next.version),
        &next.newest_status.as_str(),
        &next.approved_version.map(key),
        &category.as_str(),
        &(category != old).then_some(old.as_str()),
        &content,
        &millis(change.at),
        &actor_key(change.actor),
        &text_key,
        &next_revision(&before, &event_types),
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
    let updated = transaction.query_one(&update, values).await?;
    let handles = content.as_deref().map(sample::referenced_names).into_iter().flatten();
    media::mark_used(transaction.connection(), change.account, handles, change.at).await?;
    append_events(transaction, change, &next, category, &event_types, None).await?;
    if is_limited {
        limits::count_edit(transaction, change).await?;
    }
    done(updated.as_ref())
}

/// The refusal of a category change, if there is one.
async fn category_refusal(
    transaction: &Transaction,
    change: &TemplateChange,
    before: &StoredTemplate,
) -> Result<Option<ChangeOutcome>, StoreError> {
    let category = before.template.category();
    if !before.template.allow_category_change() {
        return Ok(Some(ChangeOutcome::CategoryLocked(category)));
    }
    Ok(match translations::membership(transaction, change.account, change.id).await? {
        Membership::NoGroup => None,
        Membership::WithOthers => Some(ChangeOutcome::GroupCategory(category)),
        Membership::Alone => {
            let is_live = before.state.live_version().is_some();
            is_live.then_some(ChangeOutcome::LiveCategory(category))
        }
    })
}

/// Applies a transition: a decision on the newest version, or a hold.
pub(super) async fn review(
    transaction: &mut Transaction,
    change: &TemplateChange,
    trigger: Trigger,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    if !transaction.lock(change.account).await? {
        return Ok(ChangeOutcome::NoTemplate);
    }
    let Planned { before, next, event } = match check(transaction, change, trigger).await? {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    let values: Values<'_> = &[
        &key(change.id.get()),
        &next.newest_status.as_str(),
        &next.approved_version.map(key),
        &next.hold.map(Hold::as_str),
        &matches!(trigger, Trigger::Approve | Trigger::Reject),
        &reason,
        &millis(change.at),
        &actor_key(change.actor),
        &next_revision(&before, &[event]),
    ];
    let update = format!(
        "UPDATE template SET status = $2, live_version = $3, hold = $4, \
         reason = CASE WHEN $5 THEN $6 ELSE reason END, \
         decided_at = CASE WHEN $5 THEN $7 ELSE decided_at END, \
         decided_by = CASE WHEN $5 THEN $8 ELSE decided_by END, updated_at = $7, revision = $9 \
         WHERE id = $1 RETURNING {}",
        templates::COLUMNS
    );
    let updated = transaction.query_one(&update, values).await?;
    append_events(transaction, change, &next, before.template.category(), &[event], reason).await?;
    done(updated.as_ref())
}

/// Deletes a template: clears its unique key, which frees the name. The row stays as history.
pub(super) async fn delete(
    transaction: &mut Transaction,
    change: &TemplateChange,
) -> Result<ChangeOutcome, StoreError> {
    if !transaction.lock(change.account).await? {
        return Ok(ChangeOutcome::NoTemplate);
    }
    let Planned { before, next, event } = match check(transaction, change, Trigger::Delete).await? {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    mark_deleted(transaction, change, &before, &next, event).await?;
    Ok(ChangeOutcome::Done(Box::new(before)))
}

async fn mark_deleted(
    transaction: &mut Transaction,
    change: &TemplateChange,
    before: &StoredTemplate,
    next: &State,
    event: EventType,
) -> Result<(), StoreError> {
    let update = "UPDATE template SET claim = NULL, revision = $2, updated_at = $3 WHERE id = $1";
    let values: Values<'_> =
        &[&key(change.id.get()), &next_revision(before, &[event]), &millis(change.at)];
    transaction.execute(update, values).await?;
    append_events(transaction, change, next, before.template.category(), &[event], None).await?;
    limits::delete_edit_counts(transaction, change).await
}

/// Who deletes several templates, and when.
#[derive(Clone, Copy)]
pub(super) struct Initiator {
    pub(super) account: AccountId,
    pub(super) review: Review,
    pub(super) actor: Actor,
    pub(super) at: Timestamp,
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
    let ids = translations::ids(transaction, initiator.account, group).await?;
    delete_locked(transaction, &ids, initiator).await
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
    delete_locked(transaction, ids, initiator).await
}

/// Checks all templates before it deletes the first.
async fn delete_locked(
    transaction: &mut Transaction,
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
        match check(transaction, &change, Trigger::Delete).await? {
            Ok(plan) => planned.push((change, plan)),
            Err(ChangeOutcome::InvalidTransition(refusal)) => {
                return Ok(DeleteOutcome::InvalidTransition(*id, refusal));
            }
            Err(_) => return Ok(DeleteOutcome::NoTemplate(*id)),
        }
    }
    for (change, Planned { before, next, event }) in &planned {
        mark_deleted(transaction, change, before, next, *event).await?;
    }
    Ok(DeleteOutcome::Done(planned.iter().map(|(change, _)| change.id).collect()))
}

/// The revision after a change with these events: each event increments it.
fn next_revision(before: &StoredTemplate, event_types: &[EventType]) -> i64 {
    key(before.revision + event_types.len() as u64)
}

/// The outcome with the updated template.
fn done(updated: Option<&Row>) -> Result<ChangeOutcome, StoreError> {
    let updated = updated.map(templates::stored).transpose()?;
    Ok(updated.map_or(ChangeOutcome::NoTemplate, |it| ChangeOutcome::Done(Box::new(it))))
}

/// Appends the events of a change.
async fn append_events(
    transaction: &mut Transaction,
    change: &TemplateChange,
    next: &State,
    category: Category,
    event_types: &[EventType],
    reason: Option<&str>,
) -> Result<(), StoreError> {
    for kind in event_types {
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
