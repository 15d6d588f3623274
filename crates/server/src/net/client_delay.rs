//! How long a client lets the server wait for the rest of a request or for room for a response. Waits add
//! up over all requests of a connection, so that a client gains nothing by going on just before a limit.

use std::time::Duration;

use tokio::time::Instant;

/// The rate at which bytes make up for waits. A client that sends or reads faster lets the server wait
/// only from one packet to the next.
const BYTES_PER_SECOND: u32 = 16 * 1_024;

/// Waits that are over count up to this time.
const MAX_PAST_WAITS: Duration = Duration::from_secs(1);

/// The time that the server has waited for a client, less the time in which it did not wait for it, and
/// less what the bytes made up for.
pub(super) struct ClientDelay {
    time: Duration,
    changed_at: Instant,
    is_waiting: bool,
}

impl ClientDelay {
    pub(super) fn new(is_waiting: bool) -> Self {
        Self { time: Duration::ZERO, changed_at: Instant::now(), is_waiting }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Records whether the server waits for the client from now on.
    pub(super) fn set_waiting(&mut self, is_waiting: bool) {
        if self.is_waiting != is_waiting {
            self.settle();
            self.is_waiting = is_waiting;
        }
    }

    /// Records bytes that the client has sent or read.
    pub(super) fn record_bytes(&mut self, bytes: usize) {
        if self.is_waiting || !self.time.is_zero() {
            self.settle();
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            let paid = Duration::from_secs(1) * bytes / BYTES_PER_SECOND;
            self.time = self.time.min(MAX_PAST_WAITS).saturating_sub(paid);
        }
    }

    pub(super) fn time(&self) -> Duration {
        let elapsed = self.changed_at.elapsed();
        if self.is_waiting { self.time + elapsed } else { self.time.saturating_sub(elapsed) }
    }

    /// The time since the last change: for an idle connection, since it became idle.
    pub(super) fn unchanged_for(&self) -> Duration {
        self.changed_at.elapsed()
    }

    /// Begins to count anew from what has added up until now.
    pub(super) fn settle(&mut self) {
        self.time = self.time();
        self.changed_at = Instant::now();
    }
}
