//! Review scripts: their rules, the steps that are queued, and what they change. A body locks the
//! account before it reads or writes a step.

mod run;

use std::collections::HashMap;

use galley_domain::{
    emulator::{
        EmulatorKind,
        actions::Action,
        rules::ReviewRules,
        script::{self, ScriptStep},
    },
    id::{AccountId, TemplateId},
    template::{
        Review, Status, Template,
        lifecycle::{Hold, State},
    },
};
use jiff::Timestamp;

use self::run::{LOCK_CLEANUP_ROWS, QueuedStep, ScriptRun, name_lock};
use super::{CLOCK, Emulation, clock, set};
use crate::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, DueSteps, NewTemplate, Store, StoreError,
    StoreFuture, StoredTemplate, TemplateChange,
    engine::{ReadPath, Tx, Value, values},
    events,
    stored_row::{Row, StoredRow as _},
    template_rows::{ChangedTemplate, write_state},
    templates,
};

/// How many steps of review scripts one transaction applies.
pub const MAX_STEPS_PER_TRANSACTION: usize = 100;

const RULES: &str = "SELECT document FROM review_rules WHERE account_id = $1";

const STEPS: &str = "SELECT id, template_id, due_at, action, argument FROM script_step";

impl Store {
    /// The review rules of an account.
    pub fn review_rules(&self, account: AccountId) -> StoreFuture<'_, ReviewRules> {
        Box::pin(async move {
            let (path, values) = (ReadPath::Point, values![account]);
            let found = self.read_one("review_rules", path, RULES, values, rules).await?;
            Ok(found.unwrap_or_default())
        })
    }

    /// Replaces the review rules of an account; `false` if it is not an emulator. Steps that are
    /// queued stay.
    pub fn set_review_rules(
        &self,
        account: AccountId,
        rules: ReviewRules,
    ) -> StoreFuture<'_, bool> {
        self.write("set_review_rules", (account, rules), |(account, rules), tx| {
            Box::pin(set(tx, *account, "review_rules", "document", rules.as_json().into()))
        })
    }

    /// Applies the steps of review scripts that are due on the account's clock, in the order of
    /// their times, at most [`MAX_STEPS_PER_TRANSACTION`].
    pub fn apply_due_steps(&self, account: AccountId, at: Timestamp) -> StoreFuture<'_, DueSteps> {
        self.write("apply_due_steps", (account, at), |&(account, at), tx| {
            Box::pin(apply_due(tx, account, at))
        })
    }
}

/// The rules in a row of [`RULES`].
fn rules(row: &Row<'_>) -> Result<ReviewRules, StoreError> {
    row.parsed("document", ReviewRules::restore)
}

/// How the account decides on a change at a real time, if a script reviews its templates.
pub(crate) async fn emulation(
    tx: &mut Tx<'_>,
    account: AccountId,
    review: Review,
    at: Timestamp,
) -> Result<Option<Emulation>, StoreError> {
    if review != Review::Scripted {
        return Ok(None);
    }
    let select = "SELECT a.emulator, c.at, c.since FROM account a JOIN emulator_clock c \
                  ON c.account_id = a.id WHERE a.id = $1";
    let values = values![account];
    let found = tx.query_one(select, &values, |row| {
        Ok((row.parsed("emulator", EmulatorKind::parse)?, clock(row)?))
    });
    Ok(found.await?.map(|(kind, clock)| Emulation { kind, now: clock.now(at) }))
}

async fn apply_due(
    tx: &mut Tx<'_>,
    account: AccountId,
    at: Timestamp,
) -> Result<DueSteps, StoreError> {
    if !tx.lock(account).await? {
        return Ok(DueSteps::default());
    }
    let Some(clock) = tx.query_one(CLOCK, &values![account], clock).await? else {
        return Ok(DueSteps::default());
    };
    let select =
        format!("{STEPS} WHERE account_id = $1 AND due_at <= $2 ORDER BY due_at, id LIMIT $3");
    let limit = Value::size(MAX_STEPS_PER_TRANSACTION + 1);
    let mut steps =
        tx.query(&select, &values![account, clock.now(at), limit], QueuedStep::read).await?;
    if steps.is_empty() {
        // A commit would wait for the disk, although nothing has changed.
        return Ok(tx.refuse(DueSteps::default()));
    }
    let has_more = steps.len() > MAX_STEPS_PER_TRANSACTION;
    steps.truncate(MAX_STEPS_PER_TRANSACTION);
    let mut ids: Vec<TemplateId> = steps.iter().map(|step| step.template).collect();
    ids.sort_unstable();
    ids.dedup();
    let stored = templates::several(tx, account, &ids, intact).await?;
    let mut runs: HashMap<_, _> = stored
        .into_iter()
        .flatten()
        .map(|stored| {
            let run = ScriptRun::new(account, ChangedTemplate::of(&stored, at));
            (stored.id, (run, stored))
        })
        .collect();
    let mut applied = 0;
    for step in &steps {
        if let Some((run, _)) = runs.get_mut(&step.template)
            && let Some(event) = run.apply(step.action, step.due_at)
        {
            events::append(tx, &event)?;
            applied += 1;
        }
    }
    for (run, stored) in runs.values() {
        write(tx, run, stored.template.content()).await?;
    }
    delete_applied(tx, &steps).await?;
    Ok(DueSteps { applied, has_more })
}

/// The template in a row, unless the disk has damaged it: the scripts of the others continue.
fn intact(row: &Row<'_>) -> Result<Option<StoredTemplate>, StoreError> {
    match templates::stored(row) {
        Err(StoreError::Damaged(cause)) => {
            let template = row.template_id("id")?;
            tracing::error!(%template, %cause, "a review script cannot continue");
            Ok(None)
        }
        read => read.map(Some),
    }
}

async fn delete_applied(tx: &mut Tx<'_>, steps: &[QueuedStep]) -> Result<(), StoreError> {
    let ids: Vec<i64> = steps.iter().map(|step| step.id).collect();
    let delete = format!("DELETE FROM script_step WHERE {}", tx.dialect().is_any("id", "$1"));
    tx.execute(&delete, &values![ids]).await.map(drop)
}

/// Applies the due steps of one template before it is changed. Returns whether that changed it.
pub(crate) async fn apply_due_of(
    tx: &mut Tx<'_>,
    account: AccountId,
    id: TemplateId,
    emulation: Option<Emulation>,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let Some(Emulation { now, .. }) = emulation else { return Ok(false) };
    let select = format!(
        "{STEPS} WHERE template_id = $1 AND account_id = $2 AND due_at <= $3 ORDER BY due_at, id"
    );
    let steps = tx.query(&select, &values![id, account, now], QueuedStep::read).await?;
    if steps.is_empty() {
        return Ok(false);
    }
    let Some(stored) = templates::one(tx, account, id).await? else { return Ok(false) };
    let mut run = ScriptRun::new(account, ChangedTemplate::of(&stored, at));
    delete_applied(tx, &steps).await?;
    apply(tx, &mut run, steps.iter().map(|step| (step.due_at, step.action)))?;
    write(tx, &run, stored.template.content()).await?;
    Ok(run.is_changed)
}

/// Applies actions at times of the account's clock, each with its event.
fn apply(
    tx: &mut Tx<'_>,
    run: &mut ScriptRun,
    actions: impl Iterator<Item = (Timestamp, Action)>,
) -> Result<(), StoreError> {
    for (emulated_at, action) in actions {
        if let Some(event) = run.apply(action, emulated_at) {
            events::append(tx, &event)?;
        }
    }
    Ok(())
}

/// Writes a template after the steps of its script, if they have changed it.
async fn write(tx: &mut Tx<'_>, run: &ScriptRun, content: &str) -> Result<(), StoreError> {
    match run.changed(content) {
        Some(changed) => write_state(tx, &changed).await,
        None => Ok(()),
    }
}

/// Applies the steps of a new version that happen at once, and queues the others.
async fn start(
    tx: &mut Tx<'_>,
    run: &mut ScriptRun,
    template: &Template,
    Emulation { now, .. }: Emulation,
) -> Result<(), StoreError> {
    let account = run.account;
    let rules = tx.query_one(RULES, &values![account], rules).await?.unwrap_or_default();
    let steps = script::steps(template.name(), template.category(), &rules);
    let (at_once, later): (Vec<_>, Vec<_>) =
        steps.into_iter().partition(|step| step.after.is_zero());
    apply(tx, run, at_once.into_iter().map(|step| (now, step.action)))?;
    write(tx, run, template.content()).await?;
    let insert = "INSERT INTO script_step (account_id, template_id, due_at, action, argument) \
                  VALUES ($1, $2, $3, $4, $5)";
    for ScriptStep { after, action } in later {
        let due_at = now.checked_add(after).unwrap_or(Timestamp::MAX);
        let (name, argument) = (action.as_str(), action.argument());
        tx.execute(insert, &values![account, run.changed.id, due_at, name, argument]).await?;
    }
    Ok(())
}

/// Runs the script of a template that was just created in a state.
pub(crate) async fn run_first_script(
    tx: &mut Tx<'_>,
    new: &NewTemplate,
    id: TemplateId,
    state: State,
    emulation: Emulation,
) -> Result<CreatedTemplate, StoreError> {
    let mut run = ScriptRun::new(new.account, ChangedTemplate::of_new(new, id, state));
    start(tx, &mut run, &new.template, emulation).await?;
    let ChangedTemplate { id, state, category, .. } = run.changed;
    Ok(CreatedTemplate { id, status: state.status(), category })
}

/// Runs the script of a new version, instead of that of the version before.
pub(crate) async fn finish_edit(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    edited: ChangeOutcome,
    emulation: Option<Emulation>,
) -> Result<ChangeOutcome, StoreError> {
    let (Some(emulation), ChangeOutcome::Done(edited)) = (emulation, &edited) else {
        return Ok(edited);
    };
    // The pause of an earlier version still ends.
    let is_paused = edited.state.hold == Some(Hold::Paused);
    delete_steps(tx, change.id, is_paused.then_some(Action::Resume)).await?;
    let mut run = ScriptRun::new(change.account, ChangedTemplate::of(edited, change.at));
    start(tx, &mut run, &edited.template, emulation).await?;
    Ok(ChangeOutcome::done(templates::one(tx, change.account, change.id).await?))
}

/// Deletes the queued steps of a template, except those with one action.
async fn delete_steps(
    tx: &mut Tx<'_>,
    id: TemplateId,
    except: Option<Action>,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM script_step WHERE template_id = $1 AND action IS DISTINCT FROM $2";
    tx.execute(delete, &values![id, except.map(Action::as_str)]).await.map(drop)
}

/// Ends the script of a deleted template and locks its name, if the account does that.
pub(crate) async fn finish_deletion(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    before: &StoredTemplate,
    emulation: Option<Emulation>,
) -> Result<(), StoreError> {
    let Some(emulation) = emulation else { return Ok(()) };
    delete_steps(tx, change.id, None).await?;
    let approved = "SELECT 1 FROM former_version WHERE template_id = $1 AND status = $2 LIMIT 1";
    let was_approved = tx.exists(approved, &values![change.id, Status::Approved.as_str()]).await?;
    let Some(until) = name_lock(emulation, &before.state, was_approved) else {
        return Ok(());
    };
    let expired = "DELETE FROM name_lock WHERE account_id = $1 AND (name, language) IN \
                   (SELECT name, language FROM name_lock WHERE account_id = $1 AND until <= $2 \
                   LIMIT $3)";
    tx.execute(expired, &values![change.account, emulation.now, LOCK_CLEANUP_ROWS]).await?;
    let upsert = "INSERT INTO name_lock (account_id, name, language, until) \
                  VALUES ($1, $2, $3, $4) ON CONFLICT (account_id, name, language) \
                  DO UPDATE SET until = excluded.until";
    let values = values![change.account, before.template.name(), before.template.language(), until];
    tx.execute(upsert, &values).await.map(drop)
}

/// The refusal of a template whose name a faithful account has locked.
pub(crate) async fn locked_name(
    tx: &mut Tx<'_>,
    new: &NewTemplate,
    emulation: Option<Emulation>,
) -> Result<Option<CreateOutcome>, StoreError> {
    let Some(emulation) = emulation.filter(|it| it.kind.faithful) else { return Ok(None) };
    let select =
        "SELECT until FROM name_lock WHERE account_id = $1 AND name = $2 AND language = $3";
    let values = values![new.account, new.template.name(), new.template.language()];
    let until = tx.query_one(select, &values, |row| row.timestamp("until")).await?;
    let until = until.filter(|until| *until > emulation.now);
    Ok(until.map(|until| CreateOutcome::NameLocked { until }))
}
