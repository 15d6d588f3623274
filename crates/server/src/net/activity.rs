//! Tracks what a connection is doing and detects when its client misses a deadline.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use hyper::rt;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::limits::Limits;

/// Shortest interval between two checks of a connection.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The low bits of [`ConnectionActivity::state`] that hold the phase.
const PHASE_BITS: u32 = 2;
const PHASE_MASK: u64 = (1 << PHASE_BITS) - 1;

/// What a connection is doing.
///
/// hyper's header timer also runs while a connection is idle, so one hyper timeout cannot serve
/// both as a short header limit and a long keep-alive limit. This type supports both. It reads no
/// clock while a request is served: a [`DeadlineMonitor`] polls it and counts the polls without a
/// change.
pub(super) struct ConnectionActivity {
    /// The number of phase changes, and the phase in the lowest two bits.
    state: AtomicU64,
    /// Whether part of the last request's body has not been read.
    unread_body: AtomicBool,
}

/// The phase of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between requests, or writing a response.
    Idle,
    /// Reading a request header.
    Header,
    /// Processing a request. It has its own deadlines.
    Processing,
}

impl ConnectionActivity {
    pub(super) fn new(phase: Phase) -> Self {
        Self { state: AtomicU64::new(phase as u64), unread_body: AtomicBool::new(false) }
    }

    pub(super) fn set_unread_body(&self, unread: bool) {
        self.unread_body.store(unread, Ordering::Relaxed);
    }

    pub(super) fn has_unread_body(&self) -> bool {
        self.unread_body.load(Ordering::Relaxed)
    }

    pub(super) fn enter(&self, phase: Phase) {
        // No atomic read-modify-write is needed: only the connection's own task writes.
        let changes = (self.state.load(Ordering::Relaxed) >> PHASE_BITS) + 1;
        self.state.store((changes << PHASE_BITS) | phase as u64, Ordering::Relaxed);
    }

    /// Records that response bytes were written: a client that reads slowly is not idle.
    fn record_write(&self) {
        if self.is_idle() {
            self.enter(Phase::Idle);
        }
    }

    /// Records that bytes were read: the first ones start a request header.
    fn record_read(&self) {
        if self.is_idle() {
            self.enter(Phase::Header);
        }
    }

    fn is_idle(&self) -> bool {
        self.state.load(Ordering::Relaxed) & PHASE_MASK == Phase::Idle as u64
    }
}

/// Polls a [`ConnectionActivity`] at a fixed interval to enforce the header and idle limits.
pub(super) struct DeadlineMonitor {
    poll_interval: Duration,
    last_state: u64,
    unchanged_polls: u32,
}

impl DeadlineMonitor {
    /// Polls often enough to enforce each deadline to within about a tenth of it.
    pub(super) fn new(limits: &Limits) -> Self {
        let poll_interval = (limits.header.min(limits.idle) / 10).max(MIN_POLL_INTERVAL);
        Self { poll_interval, last_state: 0, unchanged_polls: 0 }
    }

    pub(super) fn poll_interval(&self) -> Duration {
        self.poll_interval
    }

    /// Whether the client has missed the deadline of the current phase. Call it once per interval.
    pub(super) fn is_overdue(&mut self, activity: &ConnectionActivity, limits: &Limits) -> bool {
        let state = activity.state.load(Ordering::Relaxed);
        self.unchanged_polls = if state == self.last_state { self.unchanged_polls + 1 } else { 0 };
        self.last_state = state;
        let elapsed = self.poll_interval * self.unchanged_polls;
        match state & PHASE_MASK {
            phase if phase == Phase::Idle as u64 => elapsed > limits.idle,
            phase if phase == Phase::Header as u64 => elapsed > limits.header,
            _ => false,
        }
    }
}

/// A socket that records its reads and writes in a [`ConnectionActivity`].
pub(super) struct TrackedIo<'s> {
    io: &'s mut TokioIo<TcpStream>,
    activity: Arc<ConnectionActivity>,
}

impl<'s> TrackedIo<'s> {
    pub(super) fn new(io: &'s mut TokioIo<TcpStream>, activity: Arc<ConnectionActivity>) -> Self {
        Self { io, activity }
    }
}

impl rt::Read for TrackedIo<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut *self.io).poll_read(context, buffer);
        if read.is_ready() {
            self.activity.record_read();
        }
        read
    }
}

impl rt::Write for TrackedIo<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.io).poll_write(context, bytes);
        if written.is_ready() {
            self.activity.record_write();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.io).poll_write_vectored(context, buffers);
        if written.is_ready() {
            self.activity.record_write();
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls `polls` times and returns whether the last poll found the connection overdue.
    /// `before_poll` runs before each poll.
    fn overdue_after(polls: u32, phase: Phase, before_poll: impl Fn(&ConnectionActivity)) -> bool {
        let limits = Limits {
            header: Duration::from_secs(1),
            idle: Duration::from_secs(3),
            ..Limits::default()
        };
        let activity = ConnectionActivity::new(phase);
        let mut monitor = DeadlineMonitor::new(&limits);
        (0..polls).fold(false, |_, _| {
            before_poll(&activity);
            monitor.is_overdue(&activity, &limits)
        })
    }

    #[test]
    fn headers_have_a_shorter_deadline_than_idle_connections() {
        assert!(!overdue_after(11, Phase::Header, |_| {}));
        assert!(overdue_after(13, Phase::Header, |_| {}));
        assert!(!overdue_after(30, Phase::Idle, |_| {}));
        assert!(overdue_after(33, Phase::Idle, |_| {}));
    }

    #[test]
    fn sending_a_header_byte_by_byte_does_not_extend_its_deadline() {
        assert!(overdue_after(13, Phase::Header, ConnectionActivity::record_read));
    }

    #[test]
    fn a_client_that_reads_a_response_slowly_is_not_idle() {
        assert!(!overdue_after(1_000, Phase::Idle, ConnectionActivity::record_write));
    }

    #[test]
    fn a_running_request_has_no_connection_deadline() {
        assert!(!overdue_after(1_000, Phase::Processing, |_| {}));
    }
}
