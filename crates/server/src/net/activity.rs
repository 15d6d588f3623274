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
/// both as a short header limit and a long keep-alive limit. This type supports both. It reads no
/// clock while a request is served: the connection's task polls it and counts the polls without a
/// change.
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
        // No atomic read-modify-write is needed: only the connection's own task writes.
        let changes = (self.state.load(Ordering::Relaxed) >> PHASE_BITS) + 1;
        self.state.store((changes << PHASE_BITS) | phase as u64, Ordering::Relaxed);
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
    pub(super) fn record_read(&self, has_partial_header: bool) {
        self.has_partial_header.store(has_partial_header, Ordering::Relaxed);
        if self.is_idle() {
            self.enter(Phase::Header);
        }
    }

    fn phase(&self) -> u64 {
        self.state.load(Ordering::Relaxed) & PHASE_MASK
    }

    fn is_idle(&self) -> bool {
        is_idle(self.state.load(Ordering::Relaxed))
    }

    /// How long the connection has been idle, as a number of polls, and its state. `None` if it is
    /// not idle, or not yet for a whole poll interval: its request may be on the way.
    pub(super) fn idle_polls(&self) -> Option<(u32, u64)> {
        let state = self.state.load(Ordering::Relaxed);
        let is_polled = self.polled_state.load(Ordering::Relaxed) == state;
        let polls = self.unchanged_polls.load(Ordering::Relaxed);
        (is_idle(state) && is_polled && polls > 0).then_some((polls, state))
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
            phase if phase == Phase::Processing as u64 => return None,
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
mod tests {
    use super::*;

    /// Polls `polls` times and returns the result of the last poll. `before_poll` runs before each
    /// poll.
    fn polled(
        polls: u32,
        phase: Phase,
        before_poll: impl Fn(&ConnectionActivity),
    ) -> Option<CloseReason> {
        let limits = Limits {
            header: Duration::from_secs(1),
            idle: Duration::from_secs(3),
            ..Limits::default()
        };
        let activity = ConnectionActivity::new(phase);
        (0..polls).fold(None, |_, _| {
            before_poll(&activity);
            activity.poll_deadlines(&limits)
        })
    }

    #[test]
    fn headers_have_a_shorter_deadline_than_idle_connections() {
        assert_eq!(polled(11, Phase::Header, |_| {}), None);
        assert_eq!(polled(13, Phase::Header, |_| {}), Some(CloseReason::HeaderTimeout));
        assert_eq!(polled(30, Phase::Idle, |_| {}), None);
        assert_eq!(polled(33, Phase::Idle, |_| {}), Some(CloseReason::IdleTimeout));
    }

    #[test]
    fn the_first_byte_has_the_deadline_of_a_header() {
        assert_eq!(polled(11, Phase::New, |_| {}), None);
        assert_eq!(polled(13, Phase::New, |_| {}), Some(CloseReason::HeaderTimeout));
    }

    #[test]
    fn sending_a_header_byte_by_byte_does_not_extend_its_deadline() {
        let overdue = polled(13, Phase::Header, |activity| activity.record_read(true));
        assert_eq!(overdue, Some(CloseReason::HeaderTimeout));
    }

    /// Polls a connection 1,000 times while its response is sent.
    fn polled_while_sending(
        before_poll: impl Fn(&ConnectionActivity),
    ) -> (ConnectionActivity, Option<CloseReason>) {
        let activity = ConnectionActivity::new(Phase::Processing);
        activity.begin_response();
        let missed = (0..1_000).find_map(|_| {
            before_poll(&activity);
            activity.poll_deadlines(&Limits::default())
        });
        (activity, missed)
    }

    #[test]
    fn a_client_has_to_take_its_response() {
        let (_, missed) = polled_while_sending(|activity| activity.sending().record_write(None));
        assert_eq!(missed, Some(CloseReason::SendTimeout));
        let (_, missed) = polled_while_sending(|activity| {
            activity.sending().record_write(Some(64 * 1_024));
            activity.sending().record_write(None);
        });
        assert_eq!(missed, None);
    }

    #[test]
    fn a_response_that_waits_for_the_store_is_neither_idle_nor_slow() {
        let (activity, missed) = polled_while_sending(|activity| {
            activity.record_flush();
        });
        assert_eq!(missed, None);
        assert_eq!(activity.idle_polls(), None, "it is not evicted");
        activity.sending().end_body();
        activity.record_flush();
        (0..2).for_each(|_| assert_eq!(activity.poll_deadlines(&Limits::default()), None));
        assert!(activity.idle_polls().is_some(), "the response was sent");
    }

    #[test]
    fn a_pipelined_header_has_its_deadline_after_the_response() {
        let (activity, missed) = polled_while_sending(|activity| activity.record_read(true));
        assert_eq!(missed, None);
        activity.sending().end_body();
        activity.record_flush();
        let missed = (0..13).find_map(|_| activity.poll_deadlines(&Limits::default()));
        assert_eq!(missed, Some(CloseReason::HeaderTimeout));
    }

    #[test]
    fn a_running_request_has_no_connection_deadline() {
        assert_eq!(polled(1_000, Phase::Processing, |_| {}), None);
    }

    #[test]
    fn requests_are_refused_from_the_invalid_one_on() {
        let activity = ConnectionActivity::new(Phase::New);
        assert_eq!([activity.begin_request(), activity.begin_request()], [0, 1]);
        assert_eq!(activity.framing_error(1), None);
        let error = FramingError::BareLineFeed;
        activity.record_invalid(InvalidRequest { number: 1, error });
        assert_eq!(
            [0, 1, 2].map(|number| activity.framing_error(number)),
            [None, Some(error), Some(error)]
        );
    }
}
