//! Watches the clock: records the time, and holds retention back after the clock has jumped ahead.

use std::time::Duration;

use galley_store::ClockStatus;
use jiff::Timestamp;

use crate::{app::App, observability::conditions::Severity};

/// Pause between two observations. A pause of more than an hour looks like a jump of the clock.
const OBSERVATION_INTERVAL: Duration = Duration::from_mins(1);

/// The name of the condition in `/readyz`.
const CONDITION: &str = "clock";

/// Records the time while the service runs.
pub(super) async fn run_clock_observer(app: App) {
    loop {
        observe_clock(&app).await;
        tokio::time::sleep(OBSERVATION_INTERVAL).await;
    }
}

/// Records the present time, and returns it if rows may be deleted by their age at this time.
/// Reports in the log and in `/readyz` when a jump begins and when it ends.
pub async fn observe_clock(app: &App) -> Option<Timestamp> {
    let now = app.clock().now();
    match app.store().observe_clock(now).await {
        Ok(ClockStatus::Trusted) => {
            if app.conditions().clear(CONDITION) {
                tracing::info!("the clock is trusted again at {now:.3}: retention continues");
            }
            Some(now)
        }
        Ok(ClockStatus::Unconfirmed { trusted_at, .. }) => {
            report_jump(app, trusted_at, now);
            None
        }
        Err(error) => {
            tracing::warn!(
                %error,
                "the time could not be recorded: nothing is deleted by age until it is"
            );
            None
        }
    }
}

fn report_jump(app: &App, trusted_at: Timestamp, now: Timestamp) {
    let detail = format!(
        "The clock shows {now:.3}, more than an hour after the last trusted time {trusted_at:.3}. \
         Events, media samples and idempotency records are not deleted until the new time has \
         lasted for a day. If it is right, confirm it with `galley doctor --accept-clock`; \
         otherwise correct the clock."
    );
    if app.conditions().set_if_absent(CONDITION, Severity::Warning, &detail) {
        tracing::warn!("{detail}");
    }
}
