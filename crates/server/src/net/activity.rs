//! Tracks what a connection is doing: when its client misses a deadline or reads too slowly, when the
//! connection may be evicted, and when a request is invalid.

use std::{
    mem,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper::body::Incoming;
use tokio::sync::Notify;

use super::{
    client_delay::ClientDelay,
    framing::{FramingError, InvalidRequest},
    send_progress::SendProgress,
};
use crate::limits::Limits;

/// Shortest interval between two checks of a connection.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The low bits of [`ConnectionActivity::state`] that hold the phase.
const PHASE_BITS: u32 = 3;
const PHASE_MASK: u64 = (1 << PHASE_BITS) - 1;

/// What a connection is doing.
///
/// hyper's header timer also runs while a connection is idle, so one hyper timeout cannot serve
/// both as a short header limit and a long keep-alive limit. This type supports both. The
/// connection's task polls it and counts the polls without a change.
pub(super) struct ConnectionActivity {
    /// The number of phase changes, and the phase in the lowest bits.
    state: AtomicU64,
    /// The state at the last poll, and for how many polls it has not changed.
    polled_state: AtomicU64,
    unchanged_polls: AtomicU32,
    /// Whether part of the last request's body has not been read.
    unread_body: AtomicBool,
    /// That part, once no handler wants it.
    left_body: Mutex<LeftBody>,
    /// The number of requests that were begun.
    requests: AtomicU64,
    invalid_request: OnceLock<InvalidRequest>,
    /// Wakes the connection's task to handle a [`CloseRequest`].
    close_requests: Notify,
    is_shutting_down: AtomicBool,
    /// The state in which the connection is to be closed.
    evicted_state: AtomicU64,
    /// Whether the client has sent a part of a request header, but not all of it.
    has_partial_header: AtomicBool,
    /// How long the client lets the server wait for a header, a body, or room for a response.
    delay: Mutex<ClientDelay>,
    sending: SendProgress,
}

/// The rest of a request body that no handler wants.
#[derive(Default)]
struct LeftBody {
    body: Option<Incoming>,
    is_expected: bool,
}

/// The phase of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between requests.
    Idle,
    /// Reading a request header.
    Header,
    /// Processing a request. It has its own deadlines.
    Processing,
    /// Accepted, but no byte has arrived.
    New,
    /// Sending a response. The client must take it at a minimum rate.
    Sending,
    /// Waiting for the body of a request, which has its own deadline.
    Body,
}

impl Phase {
    /// Whether the server waits for the client to send the rest of a request.
    fn awaits_client(self) -> bool {
        [Self::New, Self::Header, Self::Body].contains(&self)
    }
}

/// A connection that the server may evict.
pub(super) struct ClientWait {
    /// For how long the connection has been idle, or how long the client has let the server wait.
    pub(super) time: Duration,
    pub(super) awaited: Awaited,
    pub(super) state: u64,
}

/// What the server waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The next request.
    Request,
    /// The rest of a header, or the first request.
    Header,
    /// The next part of a body.
    Body,
    /// Room for the next part of a response.
    Response,
}

/// What the server asks a connection to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseRequest {
    /// Close now, to make room for another connection.
    Evict,
    /// End after the running request.
    ShutDown,
}

/// Why the server closes a connection that its client keeps open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    HeaderTimeout,
    IdleTimeout,
    SendTimeout,
    Evicted,
}

impl CloseReason {
    /// The name in the metrics.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::HeaderTimeout => "header_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::SendTimeout => "send_timeout",
            Self::Evicted => "evicted",
        }
    }
}

impl ConnectionActivity {
    pub(super) fn new(phase: Phase) -> Self {
        Self {
            state: AtomicU64::new(phase as u64),
            polled_state: AtomicU64::new(u64::MAX),
            unchanged_polls: AtomicU32::new(0),
            unread_body: AtomicBool::new(false),
            left_body: Mutex::default(),
            requests: AtomicU64::new(0),
            invalid_request: OnceLock::new(),
            close_requests: Notify::new(),
            is_shutting_down: AtomicBool::new(false),
            evicted_state: AtomicU64::new(u64::MAX),
            has_partial_header: AtomicBool::new(false),
            delay: Mutex::new(ClientDelay::new(phase.awaits_client())),
            sending: SendProgress::default(),
        }
    }

    pub(super) fn set_unread_body(&self, unread: bool) {
        self.unread_body.store(unread, Ordering::Relaxed);
    }

    pub(super) fn has_unread_body(&self) -> bool {
        self.unread_body.load(Ordering::Relaxed)
    }

    /// From now on, the rest of a body is kept when no handler wants it any more.
    pub(super) fn expect_body(&self) {
        self.left_body().is_expected = true;
    }

    /// Keeps the rest of a body, unless the response is there already.
    pub(super) fn leave_body(&self, body: Option<Incoming>) {
        let mut left = self.left_body();
        left.body = body.filter(|_| left.is_expected);
    }

    /// The rest of the body that no handler wanted. The response is there: what is left later is
    /// dropped, since hyper waits for it.
    pub(super) fn take_body(&self) -> Option<Incoming> {
        mem::take(&mut *self.left_body()).body
    }

    fn left_body(&self) -> MutexGuard<'_, LeftBody> {
        self.left_body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, phase: Phase) {
        let is_blocked = phase == Phase::Sending && self.sending.is_blocked();
        let mut delay = self.delay();
        delay.set_waiting(phase.awaits_client() || is_blocked);
        if phase == Phase::Idle {
            delay.settle();
        }
        drop(delay);
        // No atomic read-modify-write is needed: only the connection's own task writes.
        let changes = (self.state.load(Ordering::Relaxed) >> PHASE_BITS) + 1;
        self.state.store((changes << PHASE_BITS) | phase as u64, Ordering::Release);
    }

    /// Begins to process a request. Returns its position on the connection, beginning with 0.
    pub(super) fn begin_request(&self) -> u64 {
        self.enter(Phase::Processing);
        let number = self.requests.load(Ordering::Relaxed);
        self.requests.store(number + 1, Ordering::Relaxed);
        number
    }

    /// Records the first invalid request.
    pub(super) fn record_invalid(&self, invalid: InvalidRequest) {
        let _ = self.invalid_request.set(invalid);
    }

    /// Why the request at this position is refused. After an invalid request, so is every other.
    pub(super) fn framing_error(&self, number: u64) -> Option<FramingError> {
        let invalid = self.invalid_request.get()?;
        (number >= invalid.number).then_some(invalid.error)
    }

    /// How the current response is being sent.
    pub(super) fn sending(&self) -> &SendProgress {
        &self.sending
    }

    /// Begins to send a response.
    pub(super) fn begin_response(&self) {
        self.sending.begin();
        self.enter(Phase::Sending);
    }

    /// Records that hyper's write buffer is empty: a response whose body is complete was sent.
    /// Returns whether a body waits for that.
    pub(super) fn record_flush(&self) -> bool {
        if self.phase() == Phase::Sending as u64 && !self.sending.is_body_open() {
            // The client may have begun the next request during the response.
            let is_partial = self.has_partial_header.load(Ordering::Relaxed);
            self.enter(if is_partial { Phase::Header } else { Phase::Idle });
        }
        self.sending.flush()
    }

    /// Records that bytes were read, and whether they end within a header. The first ones start a
    /// request header, unless a request is being processed or answered.
    pub(super) fn record_read(&self, bytes: usize, has_partial_header: bool) {
        self.has_partial_header.store(has_partial_header, Ordering::Relaxed);
        self.delay().record_bytes(bytes);
        if is_idle(self.state.load(Ordering::Relaxed)) {
            self.enter(Phase::Header);
        }
    }

    /// Records that a handler waits for the next part of a body.
    pub(super) fn wait_for_body(&self) {
        if self.phase() == Phase::Processing as u64 {
            self.enter(Phase::Body);
        }
    }

    /// Records that a part of a body has arrived.
    pub(super) fn end_wait_for_body(&self) {
        if self.phase() == Phase::Body as u64 {
            self.enter(Phase::Processing);
        }
    }

    /// Records a write of a response: its length, or `None` if it waits for the client.
    pub(super) fn record_write(&self, written: Option<usize>) {
        self.sending.record_write(written);
        let mut delay = self.delay();
        if let Some(bytes) = written {
            delay.record_bytes(bytes);
        }
        if self.phase() == Phase::Sending as u64 {
            delay.set_waiting(written.is_none());
        }
    }

    fn phase(&self) -> u64 {
        self.state.load(Ordering::Relaxed) & PHASE_MASK
    }

    fn delay(&self) -> MutexGuard<'_, ClientDelay> {
        self.delay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server waits for, and how long the client lets it wait. `None` if it does not wait for
    /// the client.
    pub(super) fn client_wait(&self) -> Option<ClientWait> {
        // Before the time, which is written before the state.
        let state = self.state.load(Ordering::Acquire);
        let delay = self.delay();
        let awaited = match state & PHASE_MASK {
            phase if phase == Phase::Idle as u64 => {
                let time = delay.unchanged_for();
                return Some(ClientWait { time, awaited: Awaited::Request, state });
            }
            phase if phase == Phase::Body as u64 => Awaited::Body,
            phase if phase == Phase::Sending as u64 => Awaited::Response,
            _ => Awaited::Header,
        };
        delay.is_waiting().then(|| ClientWait { time: delay.time(), awaited, state })
    }

    /// Asks the connection to close. Returns `false` if its state has changed.
    pub(super) fn evict(&self, state: u64) -> bool {
        let is_unchanged = self.state.load(Ordering::Relaxed) == state;
        if is_unchanged {
            self.evicted_state.store(state, Ordering::Relaxed);
            self.close_requests.notify_one();
        }
        is_unchanged
    }

    /// Asks the connection to end after the running request.
    pub(super) fn shut_down(&self) {
        self.is_shutting_down.store(true, Ordering::Relaxed);
        self.close_requests.notify_one();
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.is_shutting_down.load(Ordering::Relaxed)
    }

    /// Waits until the connection is asked to close. Only the connection's own task may call it,
    /// after it has read what has arrived: an eviction is void if anything has happened since.
    pub(super) async fn close_requested(&self) -> CloseRequest {
        loop {
            self.close_requests.notified().await;
            if self.state.load(Ordering::Relaxed) == self.evicted_state.load(Ordering::Relaxed) {
                return CloseRequest::Evict;
            }
            if self.is_shutting_down() {
                return CloseRequest::ShutDown;
            }
        }
    }

    /// Polls the connection. Returns the deadline that its client has missed. Call it once per
    /// [`poll_interval`].
    pub(super) fn poll_deadlines(&self, limits: &Limits) -> Option<CloseReason> {
        let state = self.state.load(Ordering::Relaxed);
        let is_unchanged = self.polled_state.load(Ordering::Relaxed) == state;
        let unchanged =
            if is_unchanged { self.unchanged_polls.load(Ordering::Relaxed) + 1 } else { 0 };
        self.unchanged_polls.store(unchanged, Ordering::Relaxed);
        self.polled_state.store(state, Ordering::Relaxed);
        let elapsed = poll_interval(limits) * unchanged;
        let (limit, reason) = match state & PHASE_MASK {
            phase if phase == Phase::Idle as u64 => (limits.idle, CloseReason::IdleTimeout),
            phase if [Phase::Processing as u64, Phase::Body as u64].contains(&phase) => {
                return None;
            }
            phase if phase == Phase::Sending as u64 => {
                let is_too_slow = self.sending.is_too_slow(poll_interval(limits), limits.send);
                return is_too_slow.then_some(CloseReason::SendTimeout);
            }
            _ => (limits.header, CloseReason::HeaderTimeout),
        };
        (elapsed > limit).then_some(reason)
    }
}

fn is_idle(state: u64) -> bool {
    [Phase::Idle as u64, Phase::New as u64].contains(&(state & PHASE_MASK))
}

/// The interval at which connections are polled: often enough to enforce each deadline to within
/// about a tenth of it.
pub(super) fn poll_interval(limits: &Limits) -> Duration {
    (limits.header.min(limits.idle).min(limits.send) / 10).max(MIN_POLL_INTERVAL)
}

#[cfg(test)]
mod tests;
