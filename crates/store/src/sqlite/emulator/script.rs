//! SQL for review scripts: their rules, the steps that are queued, and what they change.

use std::collections::{HashMap, hash_map::Entry};

use galley_domain::{
    emulator::{actions::Action, rules::ReviewRules},
    id::{AccountId, TemplateId},
    template::{
        Review, Status, Template,
        lifecycle::{Hold, State},
    },
};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::{
    ChangeOutcome, CreatedTemplate, DueSteps, MAX_STEPS_PER_TRANSACTION, NewTemplate, StoreError,
    StoredTemplate, TemplateChange,
    decisions::{
        changes::{Planned, done},
        emulator::{Emulation, LOCK_CLEANUP_ROWS, QueuedStep, Script, ScriptRun, name_lock},
    },
    sqlite::{
        columns::{key, millis, timestamp},
        events, template_state, templates,
        writer::Batch,
    },
    stored_row::StoredRow as _,
};

/// How the account decides on a change at a real time, if a script reviews its templates.
pub(in crate::sqlite) fn emulation(
    connection: &Connection,
    account: AccountId,
    review: Review,
    at: Timestamp,
) -> Result<Option<Emulation>, StoreError> {
    if review != Review::Scripted {
        return Ok(None);
    }
    let mut query = connection.prepare_cached(
        "SELECT a.emulator, c.at, c.since FROM account a JOIN emulator_clock c \
         ON c.account_id = a.id WHERE a.id = ?1",
    )?;
    let mut rows = query.query([key(account.get())])?;
    rows.next()?.map(|row| Emulation::read(row, at)).transpose()
}

pub(super) fn rules(
    connection: &Connection,
    account: AccountId,
) -> Result<ReviewRules, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT document FROM review_rules WHERE account_id = ?1")?;
    let mut rows = query.query([key(account.get())])?;
    let rules = rows.next()?.map(|row| row.parsed("document", ReviewRules::restore));
    Ok(rules.transpose()?.unwrap_or_default())
}

pub(super) fn set_rules(
    batch: &Batch,
    account: AccountId,
    rules: &ReviewRules,
) -> Result<bool, StoreError> {
    let set = batch
        .connection()
        .prepare_cached(
            "INSERT INTO review_rules (account_id, document) SELECT account_id, ?2 \
             FROM emulator_clock WHERE account_id = ?1 \
             ON CONFLICT (account_id) DO UPDATE SET document = excluded.document",
        )?
        .execute(params![key(account.get()), rules.as_json()])?;
    Ok(set > 0)
}

/// Applies the steps of the account that are due.
pub(super) fn apply_due(
    batch: &mut Batch,
    account: AccountId,
    at: Timestamp,
) -> Result<DueSteps, StoreError> {
    let Some(clock) = super::clock(batch.connection(), account)? else {
        return Ok(DueSteps::default());
    };
    let mut steps = due_steps(batch.connection(), account, clock.now(at))?;
    let has_more = steps.len() > MAX_STEPS_PER_TRANSACTION;
    steps.truncate(MAX_STEPS_PER_TRANSACTION);
    let mut runs: HashMap<TemplateId, Option<(ScriptRun, StoredTemplate)>> = HashMap::new();
    let mut applied = 0;
    for step in &steps {
        let run = match runs.entry(step.template) {
            Entry::Occupied(run) => run.into_mut(),
            Entry::Vacant(none) => {
                none.insert(begin_run(batch.connection(), account, step.template)?)
            }
        };
        if let Some((run, _)) = run
            && let Some(event) = run.apply(step.action, step.due_at, at)
        {
            events::append(batch, &event.event())?;
            applied += 1;
        }
        delete_step(batch.connection(), step.id)?;
    }
    for (run, stored) in runs.values().flatten() {
        write(batch.connection(), run, stored.template.content(), at)?;
    }
    Ok(DueSteps { applied, has_more })
}

/// The template of a due step. The steps of a damaged template are dropped: they must not hold up
/// those of other templates.
fn begin_run(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<(ScriptRun, StoredTemplate)>, StoreError> {
    match templates::one(connection, account, id) {
        Ok(stored) => Ok(stored.map(|stored| (ScriptRun::of(account, &stored), stored))),
        Err(StoreError::Damaged(cause)) => {
            tracing::error!(template = %id, %cause, "a review script cannot continue");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The first steps that are due, one more than a transaction applies.
fn due_steps(
    connection: &Connection,
    account: AccountId,
    now: Timestamp,
) -> Result<Vec<QueuedStep>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT id, template_id, due_at, action, argument FROM script_step \
         WHERE account_id = ?1 AND due_at <= ?2 ORDER BY due_at, id LIMIT ?3",
    )?;
    let limit = i64::try_from(MAX_STEPS_PER_TRANSACTION + 1).unwrap_or(i64::MAX);
    let mut rows = query.query(params![key(account.get()), millis(now), limit])?;
    let mut steps = Vec::new();
    while let Some(row) = rows.next()? {
        steps.push(QueuedStep::read(row)?);
    }
    Ok(steps)
}

/// Applies the due steps of one template before it is changed. Returns whether that changed it.
pub(in crate::sqlite) fn apply_due_of(
    batch: &mut Batch,
    account: AccountId,
    id: TemplateId,
    emulation: Option<Emulation>,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let Some(Emulation { now, .. }) = emulation else { return Ok(false) };
    let mut query = batch.connection().prepare_cached(
        "SELECT id, template_id, due_at, action, argument FROM script_step \
         WHERE template_id = ?1 AND account_id = ?2 AND due_at <= ?3 ORDER BY due_at, id",
    )?;
    let mut rows = query.query([key(id.get()), key(account.get()), millis(now)])?;
    let mut steps = Vec::new();
    while let Some(row) = rows.next()? {
        steps.push(QueuedStep::read(row)?);
    }
    drop(rows);
    drop(query);
    if steps.is_empty() {
        return Ok(false);
    }
    let Some(stored) = templates::one(batch.connection(), account, id)? else { return Ok(false) };
    let mut run = ScriptRun::of(account, &stored);
    for step in &steps {
        delete_step(batch.connection(), step.id)?;
    }
    apply(batch, &mut run, steps.iter().map(|step| (step.due_at, step.action)), at)?;
    write(batch.connection(), &run, stored.template.content(), at)?;
    Ok(run.is_changed)
}

fn delete_step(connection: &Connection, id: i64) -> Result<(), StoreError> {
    connection.prepare_cached("DELETE FROM script_step WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Applies actions at times of the account's clock, each with its event.
fn apply(
    batch: &mut Batch,
    run: &mut ScriptRun,
    actions: impl Iterator<Item = (Timestamp, Action)>,
    at: Timestamp,
) -> Result<(), StoreError> {
    for (emulated_at, action) in actions {
        if let Some(step) = run.apply(action, emulated_at, at) {
            events::append(batch, &step.event())?;
        }
    }
    Ok(())
}

/// Writes a template after the steps of its script, if they have changed it.
fn write(
    connection: &Connection,
    run: &ScriptRun,
    content: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    run.changed(content, at).map_or(Ok(()), |changed| template_state::write(connection, &changed))
}

/// Applies the steps of a new version that happen at once, and queues the others.
fn start(
    batch: &mut Batch,
    run: &mut ScriptRun,
    template: &Template,
    emulation: Emulation,
    (account, at): (AccountId, Timestamp),
) -> Result<(), StoreError> {
    let rules = rules(batch.connection(), account)?;
    let script = Script::new(template, &rules, emulation.now);
    let now = script.now.into_iter().map(|action| (emulation.now, action));
    apply(batch, run, now, at)?;
    write(batch.connection(), run, template.content(), at)?;
    let mut insert = batch.connection().prepare_cached(
        "INSERT INTO script_step (account_id, template_id, due_at, action, argument) \
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (due_at, action) in script.later {
        let (account, id) = (key(account.get()), key(run.id.get()));
        insert.execute(params![account, id, millis(due_at), action.as_str(), action.argument()])?;
    }
    Ok(())
}

/// Runs the script of a template that was just created.
pub(in crate::sqlite) fn run_first_script(
    batch: &mut Batch,
    new: &NewTemplate,
    (id, state): (TemplateId, State),
    emulation: Emulation,
) -> Result<CreatedTemplate, StoreError> {
    let mut run = ScriptRun::of_new(new, id, state);
    start(batch, &mut run, &new.template, emulation, (new.account, new.at))?;
    Ok(run.created())
}

/// Runs the script of a new version, instead of that of the version before.
pub(in crate::sqlite) fn finish_edit(
    batch: &mut Batch,
    change: &TemplateChange,
    edited: ChangeOutcome,
    emulation: Option<Emulation>,
) -> Result<ChangeOutcome, StoreError> {
    let (Some(emulation), ChangeOutcome::Done(edited)) = (emulation, &edited) else {
        return Ok(edited);
    };
    // The pause of an earlier version still ends.
    let is_paused = edited.state.hold == Some(Hold::Paused);
    delete_steps(batch.connection(), change.id, is_paused.then_some(Action::Resume))?;
    let mut run = ScriptRun::of(change.account, edited);
    start(batch, &mut run, &edited.template, emulation, (change.account, change.at))?;
    Ok(done(templates::one(batch.connection(), change.account, change.id)?))
}

/// Deletes the queued steps of a template, except those with one action.
fn delete_steps(
    connection: &Connection,
    id: TemplateId,
    except: Option<Action>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM script_step WHERE template_id = ?1 AND action IS NOT ?2")?
        .execute(params![key(id.get()), except.map(Action::as_str)])?;
    Ok(())
}

/// Ends the script of a deleted template and locks its name, if the account does that.
pub(in crate::sqlite) fn finish_deletion(
    batch: &Batch,
    change: &TemplateChange,
    planned: &Planned,
    emulation: Option<Emulation>,
) -> Result<(), StoreError> {
    let Some(emulation) = emulation else { return Ok(()) };
    let connection = batch.connection();
    delete_steps(connection, change.id, None)?;
    let has_approved_version = connection
        .prepare_cached("SELECT 1 FROM former_version WHERE template_id = ?1 AND status = ?2")?
        .exists(params![key(change.id.get()), Status::Approved.as_str()])?;
    let Some(until) = name_lock(emulation, &planned.before.state, has_approved_version) else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "DELETE FROM name_lock WHERE account_id = ?1 AND (name, language) IN (SELECT name, \
             language FROM name_lock WHERE account_id = ?1 AND until <= ?2 LIMIT ?3)",
        )?
        .execute([key(change.account.get()), millis(emulation.now), LOCK_CLEANUP_ROWS])?;
    let template = &planned.before.template;
    connection
        .prepare_cached(
            "INSERT INTO name_lock (account_id, name, language, until) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (account_id, name, language) DO UPDATE SET until = excluded.until",
        )?
        .execute(params![
            key(change.account.get()),
            template.name(),
            template.language(),
            millis(until)
        ])?;
    Ok(())
}

/// Until when the name of a new template is locked, on the account's clock.
pub(in crate::sqlite) fn until_name_is_free(
    connection: &Connection,
    new: &NewTemplate,
) -> Result<Option<Timestamp>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT until FROM name_lock WHERE account_id = ?1 AND name = ?2 AND language = ?3",
    )?;
    let values = params![key(new.account.get()), new.template.name(), new.template.language()];
    let mut rows = query.query(values)?;
    rows.next()?.map(|row| timestamp(row, "until")).transpose()
}
