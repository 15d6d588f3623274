//! Applies the steps of review scripts when they are due on the clocks of emulator accounts.

use galley_domain::id::AccountId;
use galley_store::{DueWork, StoreError};
use jiff::Timestamp;
use tokio::time::Instant;

use super::poll_interval::{pause_after_poll, wait_until_due};
use crate::app::App;

/// Applies due steps until the service drains. Does nothing if the process serves no emulator accounts.
pub async fn run_script_runner(app: App) {
    let (mut changes, mut draining) = (app.emulator().subscribe(), app.draining());
    if !app.emulator().is_on() {
        let _ = draining.wait_for(|draining| *draining).await;
        return;
    }
    let mut has_failed = false;
    while !app.is_draining() {
        let (now, started) = (app.clock().now(), Instant::now());
        let next_at = match apply_due_scripts(&app, now).await {
            Ok(next_at) => {
                if std::mem::take(&mut has_failed) {
                    tracing::info!("the review scripts of emulator accounts continue");
                }
                next_at
            }
            Err(error) => {
                // Only the first of a row of failures, because the next attempt is soon.
                if !std::mem::replace(&mut has_failed, true) {
                    tracing::warn!(%error, "the review scripts of emulator accounts have stopped");
                }
                None
            }
        };
        let (next, pause) = (wait_until_due(next_at, now), pause_after_poll(started.elapsed()));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = draining.changed() => continue,
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = tokio::time::sleep(next.saturating_sub(pause)) => {}
            _ = draining.changed() => {}
        }
    }
}

/// Applies all steps that are due on the clocks of emulator accounts. Returns the real time at which
/// the next step is due.
pub async fn apply_due_scripts(app: &App, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let DueWork { now: accounts, next_at } = app.store().accounts_with_due_steps(now).await?;
    if accounts.is_empty() {
        return Ok(next_at);
    }
    let (mut waiting, mut outcome) = (accounts, Ok(()));
    while !waiting.is_empty() && !app.is_draining() {
        let mut unfinished = Vec::new();
        for account in waiting {
            match apply_some(app, account).await {
                Ok(has_more) => unfinished.extend(has_more.then_some(account)),
                // One account whose steps cannot be applied does not stop the others.
                Err(error) => outcome = Err(error),
            }
        }
        waiting = unfinished;
    }
    outcome?;
    // The next steps of these accounts count as well.
    Ok(app.store().accounts_with_due_steps(now).await?.next_at)
}

/// Applies some due steps of an account, so that accounts take turns. Returns whether more are due;
/// `false` while a call moves the clock of the account, which then applies them.
async fn apply_some(app: &App, account: AccountId) -> Result<bool, StoreError> {
    let Some(_lock) = app.emulator().try_lock_steps(account) else { return Ok(false) };
    Ok(app.store().apply_due_steps(account, app.clock().now()).await?.has_more)
}
