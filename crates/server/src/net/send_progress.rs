//! Follows how a response leaves: in frames, of which hyper buffers one at a time, and at the rate at
//! which the client takes them.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

/// The rate at which a client must take a response, averaged over `send_timeout`. It is far below
/// that of any usable network, so that only clients that do not read fall below it.
pub(super) const MIN_BYTES_PER_SECOND: u64 = 1_024;

/// How the response of a connection is being sent. Only the connection's own task uses it.
#[derive(Default)]
pub(super) struct SendProgress {
    /// Whether hyper has not taken the whole body yet.
    is_body_open: AtomicBool,
    /// Whether hyper holds a frame of a body that has more of them.
    is_frame_buffered: AtomicBool,
    /// Whether the body waits until that frame is written.
    is_body_waiting: AtomicBool,
    /// Whether a write waits for the client.
    is_blocked: AtomicBool,
    written_bytes: AtomicU64,
    /// The polls of the current measurement at which a write waited for the client, and the bytes
    /// that had been written when it began.
    blocked_polls: AtomicU32,
    measured_from: AtomicU64,
}

impl SendProgress {
    /// Begins a response whose body hyper has not taken yet.
    pub(super) fn begin(&self) {
        self.is_body_open.store(true, Ordering::Relaxed);
        self.is_frame_buffered.store(false, Ordering::Relaxed);
        self.restart_measurement();
    }

    /// Records that hyper has taken the whole body, or dropped it.
    pub(super) fn end_body(&self) {
        self.is_body_open.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_body_open(&self) -> bool {
        self.is_body_open.load(Ordering::Relaxed)
    }

    /// Records that hyper has taken a frame of a body that has more of them.
    pub(super) fn buffer_frame(&self) {
        self.is_frame_buffered.store(true, Ordering::Relaxed);
    }

    /// Whether the body must wait, because hyper still holds a frame. [`Self::flush`] then wakes it.
    pub(super) fn must_wait(&self) -> bool {
        let is_buffered = self.is_frame_buffered.load(Ordering::Relaxed);
        if is_buffered {
            self.is_body_waiting.store(true, Ordering::Relaxed);
        }
        is_buffered
    }

    /// Records that hyper's buffer is empty. Returns whether a body waits for that.
    pub(super) fn flush(&self) -> bool {
        self.is_frame_buffered.store(false, Ordering::Relaxed);
        let is_waiting = self.is_body_waiting.load(Ordering::Relaxed);
        if is_waiting {
            self.is_body_waiting.store(false, Ordering::Relaxed);
        }
        is_waiting
    }

    /// Whether a write waits for the client.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }

    /// Records a write: its length, or `None` if it waits for the client.
    pub(super) fn record_write(&self, written: Option<usize>) {
        self.is_blocked.store(written.is_none(), Ordering::Relaxed);
        // No atomic read-modify-write is needed: only the connection's own task writes.
        let total = self.written_bytes.load(Ordering::Relaxed) + written.unwrap_or(0) as u64;
        self.written_bytes.store(total, Ordering::Relaxed);
    }

    /// Polls the response, once per `interval`. Returns whether the client has taken less than
    /// [`MIN_BYTES_PER_SECOND`] while a write waited for it, over a whole `window`. Time in which the
    /// server has nothing to write does not count.
    pub(super) fn is_too_slow(&self, interval: Duration, window: Duration) -> bool {
        if !self.is_blocked() {
            return false;
        }
        let polls = self.blocked_polls.load(Ordering::Relaxed);
        if polls == 0 {
            // The kernel has accepted the bytes until now, not the client.
            self.restart_measurement();
        }
        self.blocked_polls.store(polls + 1, Ordering::Relaxed);
        if interval * polls < window {
            return false;
        }
        let taken = self.restart_measurement();
        u128::from(taken) * 1_000 < u128::from(MIN_BYTES_PER_SECOND) * window.as_millis()
    }

    /// Begins a new measurement. Returns the bytes that were written in the previous one.
    fn restart_measurement(&self) -> u64 {
        let written = self.written_bytes.load(Ordering::Relaxed);
        let taken = written - self.measured_from.load(Ordering::Relaxed);
        self.measured_from.store(written, Ordering::Relaxed);
        self.blocked_polls.store(0, Ordering::Relaxed);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1);
    const WINDOW: Duration = Duration::from_secs(30);

    /// Polls the response of a client that takes `bytes` in each second and then lets the server
    /// wait. Returns after how many of `seconds` it is too slow.
    fn too_slow_after(seconds: u32, bytes: usize) -> Option<u32> {
        let progress = SendProgress::default();
        progress.begin();
        progress.record_write(Some(1_000_000));
        (0..=seconds).find(|_| {
            progress.record_write(Some(bytes));
            progress.record_write(None);
            progress.is_too_slow(INTERVAL, WINDOW)
        })
    }

    #[test]
    fn a_client_that_takes_nothing_is_too_slow_after_the_window() {
        assert_eq!(too_slow_after(1_000, 0), Some(30));
        assert_eq!(too_slow_after(1_000, 1_000), Some(30));
    }

    #[test]
    fn a_client_above_the_minimum_rate_may_take_as_long_as_it_needs() {
        assert_eq!(too_slow_after(10_000, 1_024), None);
    }

    #[test]
    fn time_without_anything_to_write_does_not_count() {
        let progress = SendProgress::default();
        progress.begin();
        for _ in 0..1_000 {
            assert!(!progress.is_too_slow(INTERVAL, WINDOW), "the store is slow, not the client");
        }
    }

    #[test]
    fn each_response_is_measured_on_its_own() {
        let progress = SendProgress::default();
        for _ in 0..100 {
            progress.begin();
            progress.record_write(None);
            for _ in 0..30 {
                assert!(!progress.is_too_slow(INTERVAL, WINDOW));
            }
        }
    }
}
