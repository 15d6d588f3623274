//! Periodic maintenance: deletes expired records and events, updates the search index, and polls
//! for events of other processes.

use std::time::Duration;

use galley_store::RetentionCursor;
use jiff::{SignedDuration, Timestamp};

use super::clock_guard::observe_clock;
use crate::{api::request_context::request_count, app::App};

/// Pause between two batches of a sweep.
const BATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Pause between two sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_mins(15);

/// Deletes expired idempotency records, uploads and files in small batches, and counts stored bytes
/// at the start of each sweep. Retries a failed batch
/// with the next one.
pub async fn run_record_retention(app: App) {
    let mut sweep = RetentionCursor::default();
    loop {
        if sweep.last_key.is_none() {
            count_stored_bytes(&app).await;
        }
        sweep = delete_expired_records(&app, sweep).await;
        tokio::time::sleep(if sweep.last_key.is_some() { BATCH_INTERVAL } else { SWEEP_INTERVAL })
            .await;
    }
}

/// Counts the bytes of accounts of an older store.
async fn count_stored_bytes(app: &App) {
    match app.store().count_stored_bytes(false).await {
        Ok(0) => {}
        Ok(accounts) => tracing::info!(accounts, "counted the bytes that templates take"),
        Err(error) => {
            tracing::warn!(%error, "the bytes that templates take could not be counted");
        }
    }
}

/// Deletes the next batch of expired records, unless the clock is not trusted. Returns where to
/// continue.
pub async fn delete_expired_records(app: &App, sweep: RetentionCursor) -> RetentionCursor {
    let Some(now) = observe_clock(app).await else { return RetentionCursor::default() };
    app.store().delete_expired_records(sweep, now).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "expired idempotency records could not be deleted");
        sweep
    })
}

/// Deletes events older than `retention` in small batches.
pub async fn run_event_retention(app: App, retention: Duration) {
    loop {
        let deleted = delete_expired_events(&app, retention).await;
        tokio::time::sleep(if deleted > 0 { BATCH_INTERVAL } else { SWEEP_INTERVAL }).await;
    }
}

/// Deletes a batch of events older than `retention`, unless the clock is not trusted. Returns how
/// many rows it deleted.
pub async fn delete_expired_events(app: &App, retention: Duration) -> usize {
    let Some(now) = observe_clock(app).await else { return 0 };
    let retention = SignedDuration::try_from(retention).unwrap_or(SignedDuration::MAX);
    let cutoff = now.checked_sub(retention).unwrap_or(Timestamp::MIN);
    app.store().delete_expired_events(cutoff).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "expired events could not be deleted");
        0
    })
}

/// Upper bound for how long subscribers do not see events committed by other processes.
const EVENT_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Polls for events of other processes and notifies subscribers.
pub async fn run_event_poller(app: App) {
    loop {
        tokio::time::sleep(EVENT_POLL_INTERVAL).await;
        if let Err(error) = app.store().poll_events().await {
            tracing::warn!(%error, "events of other processes could not be polled");
        }
    }
}

/// Poll interval while the search index is up to date, which is also its maximum lag without load.
const INDEX_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Longest pause between two indexing steps.
const MAX_INDEX_PAUSE: Duration = Duration::from_secs(1);

/// Pause after an indexing step under load, as a multiple of the step's duration. Limits indexing
/// to 1/32 of one core.
const BUSY_PAUSE_FACTOR: u32 = 31;

/// Updates the search index from the events in small steps.
pub async fn run_search_indexer(app: App) {
    loop {
        let (started, requests_before) = (app.clock().monotonic(), request_count());
        let step = app.store().update_search_index().await;
        let took = app.clock().monotonic().saturating_sub(started);
        // More than one request per millisecond.
        let is_busy = u128::from(request_count() - requests_before) > took.as_millis();
        let pause = match step {
            Ok(step) if step.has_more && is_busy => took * BUSY_PAUSE_FACTOR,
            Ok(step) if step.has_more => Duration::ZERO,
            Ok(_) => INDEX_POLL_INTERVAL,
            Err(error) => {
                tracing::warn!(%error, "the search index could not be updated");
                INDEX_POLL_INTERVAL
            }
        };
        tokio::time::sleep(pause.min(MAX_INDEX_PAUSE)).await;
    }
}
