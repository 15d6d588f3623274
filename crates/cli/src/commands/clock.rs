//! `galley clock`: shows or moves the clock of an emulator account.

use anyhow::{Context as _, bail};
use galley_domain::{
    document::Document,
    emulator::clock::{Clock, ClockChange, ClockRefusal},
    violation::Violations,
};
use galley_server::Clock as _;
use galley_store::{Account, ChangeClockOutcome};
use serde_json::{Value, json};

use super::CommandContext;
use crate::{arguments::ClockOptions, clock::SystemClock, table};

pub(super) async fn clock(context: &CommandContext, options: &ClockOptions) -> anyhow::Result<()> {
    let account = context.account(&options.account).await?;
    let Some(change) = change(options)? else {
        let clock = context.store.emulator_clock(account.id).await?;
        print(context, &clock.with_context(|| not_an_emulator(&account))?, None);
        return Ok(());
    };
    let clock = match context.store.change_clock(account.id, change, context.now).await? {
        ChangeClockOutcome::Changed(clock) => clock,
        ChangeClockOutcome::Refused(ClockRefusal::Backwards { now }) => {
            bail!("the clock shows {now:.3} and never moves back; choose a later time")
        }
        ChangeClockOutcome::Refused(ClockRefusal::TooFarAhead(it)) => bail!(first(&it)),
        ChangeClockOutcome::NotAnEmulator => bail!(not_an_emulator(&account)),
    };
    let real = SystemClock::new();
    let mut applied = 0;
    loop {
        let steps = context.store.apply_due_steps(account.id, real.now()).await?;
        applied += steps.applied;
        if !steps.has_more {
            break;
        }
    }
    print(context, &clock, Some(applied));
    Ok(())
}

fn not_an_emulator(account: &Account) -> String {
    format!("the account {:?} is not an emulator, so it has no clock of its own", account.name)
}

/// The change that the flags ask for. The document of the API reads it, so that both say the same about
/// an invalid one.
fn change(options: &ClockOptions) -> anyhow::Result<Option<ClockChange>> {
    let change = &options.change;
    let (flag, document) = match (&change.advance, &change.to, change.follow) {
        (Some(duration), _, _) => ("--advance", json!({"advance": duration})),
        (None, Some(time), _) => ("--to", json!({"set": time})),
        (None, None, true) => ("--follow", json!({"follow": true})),
        (None, None, false) => return Ok(None),
    };
    let document = document.to_string();
    let document = Document::parse(document.as_bytes()).context(flag)?;
    let read = ClockChange::read(&document);
    read.map(Some).map_err(|violations| anyhow::anyhow!("{flag}: {}", first(&violations)))
}

/// The first violation as one line.
fn first(violations: &Violations) -> String {
    let listed = violations.listed().first();
    let line = listed.map(|it| match &it.hint {
        Some(hint) => format!("{}; {hint}", it.message),
        None => it.message.clone(),
    });
    line.unwrap_or_else(|| violations.to_string())
}

fn print(context: &CommandContext, clock: &Clock, applied: Option<u64>) {
    let now = clock.now(SystemClock::new().now());
    let members = [
        ("now", Value::from(format!("{now:.3}"))),
        ("follows", clock.since.is_some().into()),
        ("applied", applied.map_or(Value::Null, Value::from)),
    ];
    let members = &members[..if applied.is_some() { 3 } else { 2 }];
    table::print_one(context.json, members);
}
