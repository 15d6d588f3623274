//! Counts each call before it is made, under the lease of the session, and rests when the provider says
//! that its budget is almost used up.
//!
//! A process may be frozen after that, while it connects: then it sends nothing once the lease is over,
//! because another process may have made the call.
//!
//! The calls of an operation belong together: what a look has shown is old after a rest, and uploads
//! expire. They begin only if the budget has room for all of them, and a rest that one of their responses
//! asks for begins after the last one.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use galley_domain::upstream::{CallFailure, CallKind, Usage, budget::CallBudget};
use galley_store::{CallPermit, Fence, Fenced, Store};
use galley_upstream::{Request, Response, Transport, TransportError};
use jiff::{SignedDuration, Timestamp};

use super::session::{Session, SyncError};
use crate::clock::Clock;

/// After so many responses that ask for a rest, an operation does not go on. A template with ten samples
/// needs fewer calls.
const MAX_POSTPONED_RESTS: u32 = 32;

/// A transport that makes a call only if the budget of the connection allows it.
pub(super) struct BudgetedTransport {
    pub(super) inner: Arc<dyn Transport>,
    pub(super) store: Arc<Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) fence: Fence,
    /// The account at the provider, whose usage the responses tell.
    pub(super) waba: String,
    pub(super) calls_per_hour: u32,
    pub(super) state: Arc<BudgetState>,
}

/// What the session reads of its transport.
#[derive(Default)]
pub(super) struct BudgetState {
    /// The calls of the session.
    calls: AtomicU32,
    /// Whether calls are part of a sweep that no person asked for.
    is_background: AtomicBool,
    /// Whether the lease was lost.
    lost: AtomicBool,
    /// Until when the session has the lease for certain.
    leased_until: Mutex<Timestamp>,
    /// Until when the budget allows no call.
    not_before: Mutex<Option<Timestamp>>,
    /// The rest after the calls that belong together; `None` if no such calls are being made.
    postponed: Mutex<Option<PostponedRest>>,
}

/// A rest that begins after calls that belong together. It is lost if the process dies before: then the
/// response of the next call asks for it again.
#[derive(Default)]
struct PostponedRest {
    /// How many responses have asked for it.
    asked: u32,
    /// The end of the longest one.
    until: Option<Timestamp>,
}

impl BudgetState {
    pub(super) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Sets until when the session has the lease.
    pub(super) fn lease_until(&self, until: Timestamp) {
        *self.leased_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// How long no other process takes the lease over.
    fn lease_left(&self, now: Timestamp) -> Duration {
        let until = *self.leased_until.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::try_from(until.duration_since(now)).unwrap_or_default()
    }

    /// Sets whether calls are part of a sweep that no person asked for; returns what it was.
    pub(super) fn set_background(&self, is_background: bool) -> bool {
        self.is_background.swap(is_background, Ordering::Relaxed)
    }

    /// Until when the budget allows no call, if it has refused the last one.
    pub(super) fn take_refusal(&self) -> Option<Timestamp> {
        self.not_before.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn refuse_until(&self, until: Timestamp) {
        *self.not_before.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// Postpones a rest; `false` if it has to begin now.
    fn postpone_rest(&self, until: Timestamp) -> bool {
        let mut postponed = self.postponed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(postponed) = postponed.as_mut() else { return false };
        postponed.asked += 1;
        postponed.until = postponed.until.max(Some(until));
        postponed.asked < MAX_POSTPONED_RESTS
    }

    /// Begins or ends calls that belong together; returns the rest after those that have ended.
    fn set_together(&self, is_together: bool) -> Option<Timestamp> {
        let mut postponed = self.postponed.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *postponed, is_together.then(Default::default));
        before.and_then(|it| it.until)
    }

    /// Lets all instances rest.
    async fn rest(&self, store: &Store, fence: Fence, until: Timestamp, now: Timestamp) {
        match store.rest_calls(fence, until.duration_since(now), now).await {
            Ok(Fenced::Done(())) => {}
            Ok(Fenced::LeaseLost) => self.lost.store(true, Ordering::Relaxed),
            // The response of the next call asks for it again.
            Err(error) => tracing::warn!(%error, "the rest of a connection was not stored"),
        }
    }
}

impl BudgetedTransport {
    /// Lets all instances rest, now or after the calls that belong together. The response that asks for
    /// it is used.
    async fn rest(&self, rest: SignedDuration) {
        let now = self.clock.now();
        let until = now.checked_add(rest).unwrap_or(Timestamp::MAX);
        if !self.state.postpone_rest(until) {
            self.state.rest(&self.store, self.fence, until, now).await;
        }
    }
}

impl Session {
    /// Makes calls that belong together. The rest that their responses ask for begins after them, also
    /// if they fail.
    pub(super) async fn together<T>(&self, calls: impl Future<Output = T>) -> T {
        let budget = &self.budget;
        budget.set_together(true);
        let made = calls.await;
        let now = self.now();
        if let Some(until) = budget.set_together(false).filter(|until| *until > now) {
            budget.rest(&self.context.store, self.fence, until, now).await;
        }
        made
    }

    /// Whether the budget has room for so many calls that belong together, of which the last one is of
    /// this kind; if not, the failure of the first one, which is not made.
    pub(super) async fn room_for(
        &self,
        kind: CallKind,
        calls: u32,
    ) -> Result<Result<(), CallFailure>, SyncError> {
        let connection = self.context.store.connection(self.connection.account).await?;
        // A write under the lease tells that the account is disconnected.
        let Some(connection) = connection else { return Ok(Ok(())) };
        let calls_per_hour = self.context.settings.calls_per_hour;
        let (budget, now) = (CallBudget { calls_per_hour, ..connection.budget }, self.now());
        Ok(budget.room_for(kind, calls, now).map_err(|until| {
            self.budget.refuse_until(until);
            CallFailure::Throttled { rest: until.duration_since(now) }
        }))
    }
}

#[async_trait]
impl Transport for BudgetedTransport {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let Some(kind) = request.kind else { return self.inner.exchange(request).await };
        let state = &self.state;
        // This order, so that a process that is frozen in between stops sooner, not later.
        let (began, now) = (Instant::now(), self.clock.now());
        let send_by = began + state.lease_left(now);
        let is_sweep = state.is_background.load(Ordering::Relaxed);
        let permit = self.store.take_call(self.fence, kind, is_sweep, self.calls_per_hour, now);
        match permit.await {
            Ok(Fenced::Done(CallPermit::Granted)) => {}
            Ok(Fenced::Done(CallPermit::NotBefore(until))) => {
                state.refuse_until(until);
                return Err(TransportError::Resting(until.duration_since(now)));
            }
            Ok(Fenced::LeaseLost) => {
                state.lost.store(true, Ordering::Relaxed);
                return Err(TransportError::NotSent("another process works on it".to_owned()));
            }
            Err(error) => return Err(TransportError::NotSent(error.to_string())),
        }
        state.calls.fetch_add(1, Ordering::Relaxed);
        let request = Request { send_by: Some(send_by), ..request };
        let response = self.inner.exchange(request).await?;
        if let Some(rest) = response.usage(&self.waba).and_then(Usage::rest) {
            self.rest(rest).await;
        }
        Ok(response)
    }
}
