//! The virtual clock of an emulator account.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    document::Document,
    emulator::clock::{ClockChange, ClockRefusal},
};
use galley_store::ChangeClockOutcome;

use super::{EmulatorCaller, not_an_emulator};
use crate::{
    api::{body::JsonBody, json, problem::Problem, query::Parameters, view},
    app::App,
};

pub(super) async fn show(
    State(app): State<App>,
    caller: EmulatorCaller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let clock = app.store().emulator_clock(caller.account).await?;
    let clock = clock.ok_or_else(not_an_emulator)?;
    Ok(json(StatusCode::OK, view::clock(&clock, app.clock().now(), None)))
}

/// Moves the clock. Responds when all steps that are due by that are committed.
pub(super) async fn change(
    State(app): State<App>,
    caller: EmulatorCaller,
    body: JsonBody,
) -> Result<Response, Problem> {
    let read = |bytes: &[u8]| {
        ClockChange::read(&Document::parse(bytes)?).map_err(Problem::invalid_emulator_document)
    };
    let change = body.process(&app, read).await?;
    let account = caller.account;
    let _lock = app.emulator().lock_steps(account).await;
    let clock = match app.store().change_clock(account, change, app.clock().now()).await? {
        ChangeClockOutcome::Changed(clock) => clock,
        ChangeClockOutcome::Refused(ClockRefusal::Backwards { now }) => {
            return Err(Problem::clock_backwards(now));
        }
        ChangeClockOutcome::Refused(ClockRefusal::TooFarAhead(violations)) => {
            return Err(Problem::invalid_emulator_document(violations));
        }
        ChangeClockOutcome::NotAnEmulator => return Err(not_an_emulator()),
    };
    let mut applied = 0;
    loop {
        let steps = app.store().apply_due_steps(account, app.clock().now()).await?;
        applied += steps.applied;
        if !steps.has_more {
            break;
        }
    }
    Ok(json(StatusCode::OK, view::clock(&clock, app.clock().now(), Some(applied))))
}
