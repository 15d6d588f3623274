//! What the service does by itself: forgetting what has been kept for its time, following the
//! events for the search, and looking for the events of other processes.

use std::time::Duration;

use galley_store::RetentionCursor;
use jiff::{SignedDuration, Timestamp};

use crate::{api::request_context::requests_so_far, app::App};

/// How long to rest between two steps of a sweep.
const BETWEEN_STEPS: Duration = Duration::from_millis(200);

/// How long to rest after a whole sweep.
const BETWEEN_SWEEPS: Duration = Duration::from_mins(15);

/// Sweeps for ever, a small step at a time. A failed step is tried again with the next.
pub async fn run_record_retention(app: App) {
    let mut sweep = RetentionCursor::default();
    loop {
        match app.store().delete_expired_records(sweep, app.clock().now()).await {
            Ok(next) => sweep = next,
            Err(error) => tracing::warn!(%error, "idempotency records could not be swept"),
        }
        tokio::time::sleep(if sweep.at.is_some() { BETWEEN_STEPS } else { BETWEEN_SWEEPS }).await;
    }
}

/// Forgets events that have been kept for this long, a small step at a time.
pub async fn run_event_retention(app: App, kept: Duration) {
    loop {
        let kept = SignedDuration::try_from(kept).unwrap_or(SignedDuration::MAX);
        let since = app.clock().now().checked_sub(kept).unwrap_or(Timestamp::MIN);
        let rest = match app.store().delete_expired_events(since).await {
            Ok(0) => BETWEEN_SWEEPS,
            Ok(_) => BETWEEN_STEPS,
            Err(error) => {
                tracing::warn!(%error, "old events could not be forgotten");
                BETWEEN_SWEEPS
            }
        };
        tokio::time::sleep(rest).await;
    }
}

/// How long those who wait for events may not know what other processes have committed.
const BETWEEN_LOOKS_AT_OTHERS: Duration = Duration::from_secs(1);

/// Looks for the events of other processes, for those who wait.
pub async fn run_event_poller(app: App) {
    loop {
        tokio::time::sleep(BETWEEN_LOOKS_AT_OTHERS).await;
        if let Err(error) = app.store().poll_events().await {
            tracing::warn!(%error, "events of other processes could not be looked for");
        }
    }
}

/// How long to rest when the search is up to date: what it is behind at most, in quiet times.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// How much longer than a step took to rest after it while the service is busy: the search takes
/// that share of one core from the requests, and no more.
const REST: u32 = 31;

/// Follows the events for ever, a small step at a time.
pub async fn run_search_indexer(app: App) {
    loop {
        let (begun, before) = (app.clock().monotonic(), requests_so_far());
        let step = app.store().update_search_index().await;
        let took = app.clock().monotonic().saturating_sub(begun);
        // More than one request in each millisecond.
        let busy = u128::from(requests_so_far() - before) > took.as_millis();
        let rest = match step {
            Ok(step) if step.more && busy => took * REST,
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
