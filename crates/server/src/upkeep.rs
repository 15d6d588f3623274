//! What the service does by itself: forgetting idempotency records that have run out, and following
//! the events for the search.

use std::time::Duration;

use galley_store::Sweep;

use crate::App;

/// How long to rest between two steps of a sweep.
const BETWEEN_STEPS: Duration = Duration::from_millis(200);

/// How long to rest after a whole sweep.
const BETWEEN_SWEEPS: Duration = Duration::from_mins(15);

/// Sweeps for ever, a small step at a time. A failed step is tried again with the next.
pub async fn sweep_forever(app: App) {
    let mut sweep = Sweep::default();
    loop {
        match app.store().sweep(sweep, app.clock().now()).await {
            Ok(next) => sweep = next,
            Err(error) => tracing::warn!(%error, "idempotency records could not be swept"),
        }
        tokio::time::sleep(if sweep.at.is_some() { BETWEEN_STEPS } else { BETWEEN_SWEEPS }).await;
    }
}

/// How long to rest when the search is up to date: what it is behind at most, in quiet times.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// How much longer than a step took to rest after it while others write: the search takes that
/// share of one core from them, and no more.
const REST: u32 = 15;

/// Follows the events for ever, a small step at a time.
pub async fn follow_for_search_forever(app: App) {
    loop {
        let begun = app.clock().monotonic();
        let rest = match app.store().follow_for_search().await {
            Ok(step) if step.more && step.writers_at_work => {
                app.clock().monotonic().saturating_sub(begun) * REST
            }
            Ok(step) if step.more => Duration::ZERO,
            Ok(_) => BETWEEN_LOOKS,
            Err(error) => {
                tracing::warn!(%error, "the search could not follow the events");
                BETWEEN_LOOKS
            }
        };
        tokio::time::sleep(rest.min(Duration::from_secs(1))).await;
    }
}
