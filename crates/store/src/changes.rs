//! Edits, reviews and deletions of templates. Each locks the account, reads the template, calls the
//! decision, and writes the plan.

mod decisions;
mod deletions;

use galley_domain::{
    id::TemplateId,
    template::{
        edit::Edit,
        lifecycle::{Hold, Trigger},
    },
};

use self::decisions::{FourEyes, Siblings, VersionAuthor, plan, plan_edit, tokens_of_person};
use crate::{
    ChangeOutcome, Store, StoreError, StoreFuture, StoredTemplate, TemplateChange, audit,
    emulator::{self, Emulation},
    encoding::actor_key,
    engine::{Tx, values},
    events, limits,
    stored_row::StoredRow as _,
    template_rows::{self, Planned, write_edit},
    templates::{self, versions},
    upstream,
};

impl Store {
    /// Creates a new version of a template, with a `template.edited` event and, if the category
    /// changes, a `template.category_changed` event.
    pub fn edit_template(
        &self,
        change: TemplateChange,
        edit: Edit,
    ) -> StoreFuture<'_, ChangeOutcome> {
        self.write("edit_template", (change, edit), |(change, edit), tx| {
            Box::pin(async move {
                let (stored, emulation) = read(tx, change).await?;
                edit_stored(tx, change, stored, edit, emulation).await
            })
        })
    }

    /// Applies a lifecycle transition to a template, with the transition's event.
    pub fn review_template(
        &self,
        change: TemplateChange,
        trigger: Trigger,
        reason: Option<String>,
    ) -> StoreFuture<'_, ChangeOutcome> {
        let reviewed = (change, trigger, reason);
        self.write("review_template", reviewed, |(change, trigger, reason), tx| {
            Box::pin(review(tx, change, *trigger, reason.as_deref()))
        })
    }
}

/// Locks the account and reads the template, after the due steps of its script. Also returns how an
/// emulator account decides on a change.
async fn read(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
) -> Result<(Option<StoredTemplate>, Option<Emulation>), StoreError> {
    let TemplateChange { account, id, review, at, .. } = *change;
    if !tx.lock(account).await? {
        return Ok((None, None));
    }
    let emulation = emulator::emulation(tx, account, review, at).await?;
    emulator::apply_due_of(tx, account, id, emulation, at).await?;
    Ok((templates::one(tx, account, id).await?, emulation))
}

/// Edits a template as it was read in the same transaction, after its account was locked.
pub(crate) async fn edit_stored(
    tx: &mut Tx<'_>,
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
        Edit::Restore(number) => versions::one(tx, change.id, *number).await?,
        Edit::Replace { .. } => None,
    };
    let planned = match plan_edit(planned, edit, restored) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    if planned.planned.previous_category().is_some() {
        let siblings = siblings(tx, change).await?;
        if let Some(refusal) = planned.category_refusal(siblings) {
            return Ok(refusal);
        }
    }
    let is_limited = planned.is_counted() && tx.account(change.account)?.limits.is_some();
    let quota_at = Emulation::quota_time(emulation, change.at);
    if is_limited && let Some(limit) = limits::reached_by_edit(tx, change, quota_at).await? {
        return Ok(ChangeOutcome::Limited(limit));
    }
    let edited = write_edit(tx, change, &planned).await?;
    if let ChangeOutcome::Done(_) = edited {
        if is_limited {
            limits::count_edit(tx, change, quota_at)?;
        }
        submit(tx, change, &planned.planned).await?;
    }
    emulator::finish_edit(tx, change, edited, emulation).await
}

/// The other languages of a template's name.
async fn siblings(tx: &mut Tx<'_>, change: &TemplateChange) -> Result<Siblings, StoreError> {
    let statement = format!(
        "SELECT translation_group IS NOT NULL AS has_group, EXISTS (SELECT 1 FROM template o{} \
         WHERE o.translation_group = t.translation_group AND o.account_id = $2 AND o.id <> t.id \
         AND o.unique_key IS NOT NULL) AS has_others FROM template t WHERE t.id = $1",
        tx.dialect().either(" INDEXED BY template_of_translation_group", "")
    );
    let values = values![change.id, change.account];
    let found = tx.query_one(&statement, &values, |row| {
        Ok(Siblings { has_group: row.value("has_group")?, has_others: row.value("has_others")? })
    });
    Ok(found.await?.unwrap_or_default())
}

/// Queues what a change submits to a provider.
async fn submit(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    planned: &Planned,
) -> Result<(), StoreError> {
    let Some(version) = planned.submitted_version(change.review) else { return Ok(()) };
    upstream::queue_submission(tx, change.account, change.id, version, change.at).await
}

/// Applies a transition: a decision on the newest version, or a hold.
async fn review(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    trigger: Trigger,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let (stored, emulation) = read(tx, change).await?;
    let planned = match plan(change, trigger, stored, emulation) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    if !permits(tx, change, &planned).await? {
        return Ok(ChangeOutcome::FourEyes);
    }
    let update = "UPDATE template SET status = $2, live_version = $3, hold = $4, \
                  reason = CASE WHEN $5 THEN $6 ELSE reason END, \
                  decided_at = CASE WHEN $5 THEN $7 ELSE decided_at END, \
                  decided_by = CASE WHEN $5 THEN $8 ELSE decided_by END, updated_at = $7, \
                  revision = $9 WHERE id = $1";
    let values = values![
        change.id,
        planned.next.newest_status.as_str(),
        planned.next.approved_version,
        planned.next.hold.map(Hold::as_str),
        planned.is_decision(),
        reason,
        change.at,
        actor_key(change.actor),
        planned.revision(),
    ];
    let reviewed = template_rows::update(tx, update, &values).await?;
    for event in planned.events(change, reason) {
        events::append(tx, &event)?;
    }
    submit(tx, change, &planned).await?;
    Ok(ChangeOutcome::done(reviewed))
}

/// Whether a decision is not made by an author of what it makes live, if the account needs a second
/// person.
async fn permits(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    planned: &Planned,
) -> Result<bool, StoreError> {
    let Some(reviewer) = planned.reviewer(change) else { return Ok(true) };
    if !tx.account(change.account)?.has_four_eyes {
        return Ok(true);
    }
    let rotations = audit::rotations(tx, change.account).await?;
    let person = tokens_of_person(reviewer, &rotations);
    Ok(match planned.four_eyes(&person, &authors(tx, change.id).await?) {
        FourEyes::Permitted => true,
        FourEyes::Refused => false,
        FourEyes::Compare(comparison) => {
            let compared = versions::several(tx, change.id, comparison.versions()).await?;
            !comparison.is_author(&compared)
        }
    })
}

/// The authors of all versions, newest first.
async fn authors(tx: &mut Tx<'_>, id: TemplateId) -> Result<Vec<VersionAuthor>, StoreError> {
    let select = "SELECT version, actor, CAST(octet_length(content) AS bigint) AS bytes \
                  FROM template WHERE id = $1 UNION ALL \
                  SELECT version, actor, CAST(octet_length(content) AS bigint) \
                  FROM former_version WHERE template_id = $1 ORDER BY version DESC";
    tx.query(select, &values![id], VersionAuthor::read).await
}
