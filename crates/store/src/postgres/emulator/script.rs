//! Review scripts, as SQL: their rules, the steps that are queued, and what they change. The account
//! is locked before a step is read or written.

use std::collections::HashMap;

use galley_domain::{
    emulator::{actions::Action, rules::ReviewRules},
    id::{AccountId, TemplateId},
    template::{
        Review, Status, Template,
        lifecycle::{Hold, State},
    },
};
use jiff::Timestamp;
use tokio_postgres::Row;

use crate::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, DueSteps, MAX_STEPS_PER_TRANSACTION,
    NewTemplate, StoreError, StoredTemplate, TemplateChange,
    decisions::{
        changes::{Planned, done},
        emulator::{self, Emulation, LOCK_CLEANUP_ROWS, QueuedStep, Script, ScriptRun, name_lock},
    },
    postgres::{
        columns::{key, millis, timestamp},
        events,
        pool::Values,
        template_state, templates,
        transaction::Transaction,
    },
    stored_row::StoredRow as _,
};

/// How the account decides on a change at a real time, if a script reviews its templates.
pub(in crate::postgres) async fn emulation(
    transaction: &Transaction,
    account: AccountId,
    review: Review,
    at: Timestamp,
) -> Result<Option<Emulation>, StoreError> {
    if review != Review::Scripted {
        return Ok(None);
    }
    let statement = "SELECT a.emulator, c.at, c.since FROM account a JOIN emulator_clock c \
                     ON c.account_id = a.id WHERE a.id = $1";
    let row = transaction.query_one(statement, &[&key(account.get())]).await?;
    row.map(|row| Emulation::read(&row, at)).transpose()
}

pub(super) const RULES: &str = "SELECT document FROM review_rules WHERE account_id = $1";

/// The rules in a row of [`RULES`].
pub(super) fn rules(row: Option<&Row>) -> Result<ReviewRules, StoreError> {
    let rules = row.map(|row| row.parsed("document", ReviewRules::restore));
    Ok(rules.transpose()?.unwrap_or_default())
}

pub(super) async fn set_rules(
    transaction: &Transaction,
    account: AccountId,
    rules: &ReviewRules,
) -> Result<bool, StoreError> {
    let upsert = "INSERT INTO review_rules (account_id, document) SELECT account_id, $2 \
                  FROM emulator_clock WHERE account_id = $1 FOR KEY SHARE \
                  ON CONFLICT (account_id) DO UPDATE SET document = excluded.document";
    let values: Values<'_> = &[&key(account.get()), &rules.as_json()];
    Ok(transaction.execute(upsert, values).await? > 0)
}

/// Applies the steps of the account that are due.
pub(super) async fn apply_due(
    transaction: &mut Transaction,
    account: AccountId,
    at: Timestamp,
) -> Result<DueSteps, StoreError> {
    if !transaction.lock(account).await? {
        return Ok(DueSteps::default());
    }
    let clock = transaction.query_one(super::CLOCK, &[&key(account.get())]).await?;
    let Some(clock) = clock.as_ref().map(emulator::clock).transpose()? else {
        return Ok(DueSteps::default());
    };
    let statement = "SELECT id, template_id, due_at, action, argument FROM script_step \
                     WHERE account_id = $1 AND due_at <= $2 ORDER BY due_at, id LIMIT $3";
    let limit = i64::try_from(MAX_STEPS_PER_TRANSACTION + 1).unwrap_or(i64::MAX);
    let values: Values<'_> = &[&key(account.get()), &millis(clock.now(at)), &limit];
    let mut steps = due_steps(transaction, statement, values).await?;
    if steps.is_empty() {
        // Nothing has to be synced.
        transaction.set_rollback_only();
        return Ok(DueSteps::default());
    }
    let has_more = steps.len() > MAX_STEPS_PER_TRANSACTION;
    steps.truncate(MAX_STEPS_PER_TRANSACTION);
    let ids: Vec<TemplateId> = steps.iter().map(|step| step.template).collect();
    let stored = templates::several_in(transaction, account, &ids).await?;
    let mut runs: HashMap<TemplateId, (ScriptRun, StoredTemplate)> = stored
        .into_iter()
        .map(|stored| (stored.id, (ScriptRun::of(account, &stored), stored)))
        .collect();
    let mut applied = 0;
    for step in &steps {
        if let Some((run, _)) = runs.get_mut(&step.template)
            && let Some(event) = run.apply(step.action, step.due_at, at)
        {
            events::append(transaction, &event.event()).await?;
            applied += 1;
        }
    }
    for (run, stored) in runs.values() {
        write(transaction, run, stored.template.content(), at).await?;
    }
    delete_applied(transaction, &steps).await?;
    Ok(DueSteps { applied, has_more })
}

async fn due_steps(
    transaction: &Transaction,
    statement: &str,
    values: Values<'_>,
) -> Result<Vec<QueuedStep>, StoreError> {
    transaction.query(statement, values).await?.iter().map(QueuedStep::read).collect()
}

async fn delete_applied(transaction: &Transaction, steps: &[QueuedStep]) -> Result<(), StoreError> {
    let ids: Vec<i64> = steps.iter().map(|step| step.id).collect();
    transaction.execute("DELETE FROM script_step WHERE id = ANY($1)", &[&ids]).await.map(drop)
}

/// Applies the due steps of one template before it is changed. Returns whether that changed it.
pub(in crate::postgres) async fn apply_due_of(
    transaction: &mut Transaction,
    account: AccountId,
    id: TemplateId,
    emulation: Option<Emulation>,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let Some(Emulation { now, .. }) = emulation else { return Ok(false) };
    let statement = "SELECT id, template_id, due_at, action, argument FROM script_step \
                     WHERE template_id = $1 AND account_id = $2 AND due_at <= $3 \
                     ORDER BY due_at, id";
    let values: Values<'_> = &[&key(id.get()), &key(account.get()), &millis(now)];
    let steps = due_steps(transaction, statement, values).await?;
    if steps.is_empty() {
        return Ok(false);
    }
    let Some(stored) = templates::one_in(transaction, account, id).await? else {
        return Ok(false);
    };
    let mut run = ScriptRun::of(account, &stored);
    delete_applied(transaction, &steps).await?;
    apply(transaction, &mut run, steps.iter().map(|step| (step.due_at, step.action)), at).await?;
    write(transaction, &run, stored.template.content(), at).await?;
    Ok(run.is_changed)
}

/// Applies actions at times of the account's clock, each with its event.
async fn apply(
    transaction: &mut Transaction,
    run: &mut ScriptRun,
    actions: impl Iterator<Item = (Timestamp, Action)> + Send,
    at: Timestamp,
) -> Result<(), StoreError> {
    for (emulated_at, action) in actions {
        if let Some(step) = run.apply(action, emulated_at, at) {
            events::append(transaction, &step.event()).await?;
        }
    }
    Ok(())
}

/// Writes a template after the steps of its script, if they have changed it.
async fn write(
    transaction: &Transaction,
    run: &ScriptRun,
    content: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    match run.changed(content, at) {
        Some(changed) => template_state::write(transaction, &changed).await,
        None => Ok(()),
    }
}

/// Applies the steps of a new version that happen at once, and queues the others.
async fn start(
    transaction: &mut Transaction,
    run: &mut ScriptRun,
    template: &Template,
    emulation: Emulation,
    (account, at): (AccountId, Timestamp),
) -> Result<(), StoreError> {
    let rules = rules(transaction.query_one(RULES, &[&key(account.get())]).await?.as_ref())?;
    let script = Script::new(template, &rules, emulation.now);
    let now = script.now.into_iter().map(|action| (emulation.now, action));
    apply(transaction, run, now, at).await?;
    write(transaction, run, template.content(), at).await?;
    let insert = "INSERT INTO script_step (account_id, template_id, due_at, action, argument) \
                  VALUES ($1, $2, $3, $4, $5)";
    let (account, id) = (key(account.get()), key(run.id.get()));
    for (due_at, action) in script.later {
        let values: Values<'_> =
            &[&account, &id, &millis(due_at), &action.as_str(), &action.argument()];
        transaction.execute(insert, values).await?;
    }
    Ok(())
}

/// Runs the script of a template that was just created.
pub(in crate::postgres) async fn run_first_script(
    transaction: &mut Transaction,
    new: &NewTemplate,
    (id, state): (TemplateId, State),
    emulation: Emulation,
) -> Result<CreatedTemplate, StoreError> {
    let mut run = ScriptRun::of_new(new, id, state);
    start(transaction, &mut run, &new.template, emulation, (new.account, new.at)).await?;
    Ok(run.created())
}

/// Runs the script of a new version, instead of that of the version before.
pub(in crate::postgres) async fn finish_edit(
    transaction: &mut Transaction,
    change: &TemplateChange,
    edited: ChangeOutcome,
    emulation: Option<Emulation>,
) -> Result<ChangeOutcome, StoreError> {
    let (Some(emulation), ChangeOutcome::Done(edited)) = (emulation, &edited) else {
        return Ok(edited);
    };
    // The pause of an earlier version still ends.
    let is_paused = edited.state.hold == Some(Hold::Paused);
    delete_steps(transaction, change.id, is_paused.then_some(Action::Resume)).await?;
    let mut run = ScriptRun::of(change.account, edited);
    let (account, at) = (change.account, change.at);
    start(transaction, &mut run, &edited.template, emulation, (account, at)).await?;
    Ok(done(templates::one_in(transaction, account, change.id).await?))
}

/// Deletes the queued steps of a template, except those with one action.
async fn delete_steps(
    transaction: &Transaction,
    id: TemplateId,
    except: Option<Action>,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM script_step WHERE template_id = $1 AND action IS DISTINCT FROM $2";
    let values: Values<'_> = &[&key(id.get()), &except.map(Action::as_str)];
    transaction.execute(delete, values).await.map(drop)
}

/// Ends the script of a deleted template and locks its name, if the account does that.
pub(in crate::postgres) async fn finish_deletion(
    transaction: &Transaction,
    change: &TemplateChange,
    planned: &Planned,
    emulation: Option<Emulation>,
) -> Result<(), StoreError> {
    let Some(emulation) = emulation else { return Ok(()) };
    delete_steps(transaction, change.id, None).await?;
    let approved = "SELECT 1 FROM former_version WHERE template_id = $1 AND status = $2 LIMIT 1";
    let values: Values<'_> = &[&key(change.id.get()), &Status::Approved.as_str()];
    let has_approved_version = transaction.query_one(approved, values).await?.is_some();
    let Some(until) = name_lock(emulation, &planned.before.state, has_approved_version) else {
        return Ok(());
    };
    let account = key(change.account.get());
    let expired = "DELETE FROM name_lock WHERE account_id = $1 AND (name, language) IN \
                   (SELECT name, language FROM name_lock WHERE account_id = $1 AND until <= $2 \
                   LIMIT $3)";
    let values: Values<'_> = &[&account, &millis(emulation.now), &LOCK_CLEANUP_ROWS];
    transaction.execute(expired, values).await?;
    let template = &planned.before.template;
    let upsert = "INSERT INTO name_lock (account_id, name, language, until) \
                  VALUES ($1, $2, $3, $4) ON CONFLICT (account_id, name, language) \
                  DO UPDATE SET until = excluded.until";
    let values: Values<'_> = &[&account, &template.name(), &template.language(), &millis(until)];
    transaction.execute(upsert, values).await.map(drop)
}

/// The refusal of a template whose name a faithful account has locked.
pub(in crate::postgres) async fn locked_name(
    transaction: &Transaction,
    new: &NewTemplate,
    emulation: Option<Emulation>,
) -> Result<Option<CreateOutcome>, StoreError> {
    let Some(emulation) = emulation.filter(|it| it.kind.faithful) else { return Ok(None) };
    let statement = "SELECT until FROM name_lock WHERE account_id = $1 AND name = $2 AND \
                     language = $3";
    let values: Values<'_> =
        &[&key(new.account.get()), &new.template.name(), &new.template.language()];
    let Some(row) = transaction.query_one(statement, values).await? else { return Ok(None) };
    Ok(emulator::locked_name(emulation, timestamp(&row, "until")?))
}
