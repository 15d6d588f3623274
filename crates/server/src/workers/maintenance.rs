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
pub(super) async fn run_record_retention(app: App) {
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

/// Counts the bytes of accounts whose last count was interrupted.
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
pub(super) async fn run_event_retention(app: App, retention: Duration) {
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

/// Pause between two writes of the last use of credentials.
const CREDENTIAL_USE_INTERVAL: Duration = Duration::from_mins(1);

/// Records once a minute when credentials were last used.
pub(super) async fn run_credential_use(app: App) {
    loop {
        tokio::time::sleep(CREDENTIAL_USE_INTERVAL).await;
        record_credential_use(&app).await;
    }
}

/// Records when credentials and sessions were last used. Uses that could not be written are written next time.
pub async fn record_credential_use(app: &App) {
    if let Err(error) = app.credentials().record_uses().await {
        tracing::warn!(%error, "the last use of credentials could not be recorded");
    }
    let uses = app.session_uses().take();
    if uses.is_empty() {
        return;
    }
    if let Err(error) = app.store().record_session_use(uses.clone()).await {
        tracing::warn!(%error, "the last use of console sessions could not be recorded");
        app.session_uses().put_back(uses);
    }
}

/// Upper bound for how long subscribers do not see events committed by other processes.
const EVENT_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Polls for events of other processes and notifies subscribers.
pub(super) async fn run_event_poller(app: App) {
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

/// Pause after an indexing step without load, as a multiple of the step's duration. Limits indexing to
/// half of one core, for example after a large import.
const IDLE_PAUSE_FACTOR: u32 = 1;

/// Pause after an indexing step under load, as a multiple of the step's duration. Limits indexing
/// to 1/32 of one core.
const BUSY_PAUSE_FACTOR: u32 = 31;

/// Updates the search index from the events in small steps.
pub(super) async fn run_search_indexer(app: App) {
    loop {
        let (started, requests_before) = (app.clock().monotonic(), request_count());
        let step = app.store().update_search_index().await;
        let took = app.clock().monotonic().saturating_sub(started);
        // More than one request per millisecond.
        let is_busy = u128::from(request_count() - requests_before) > took.as_millis();
        let has_more = match step {
            Ok(step) => step.has_more,
            Err(error) => {
                tracing::warn!(%error, "the search index could not be updated");
                false
            }
        };
        tokio::time::sleep(index_pause(took, has_more, is_busy)).await;
    }
}

/// The pause after an indexing step that took so long.
fn index_pause(took: Duration, has_more: bool, is_busy: bool) -> Duration {
    match (has_more, is_busy) {
        (false, _) => INDEX_POLL_INTERVAL,
        // A long step must not shorten its share.
        (true, false) => took * IDLE_PAUSE_FACTOR,
        (true, true) => (took * BUSY_PAUSE_FACTOR).min(MAX_INDEX_PAUSE.max(took)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexing_uses_at_most_half_of_a_core_and_little_under_load() {
        let millis = Duration::from_millis;
        for took in [1, 10, 5_000].map(millis) {
            assert_eq!(index_pause(took, true, false), took);
            assert!(index_pause(took, true, true) >= took);
            assert_eq!(index_pause(took, false, false), INDEX_POLL_INTERVAL);
        }
        assert_eq!(index_pause(millis(10), true, true), millis(310));
        assert_eq!(index_pause(millis(100), true, true), MAX_INDEX_PAUSE);
    }
}
