//! Counts each call before it is made, under the lease of the session, and rests when the provider says
//! that its budget is almost used up.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use async_trait::async_trait;
use galley_domain::upstream::Usage;
use galley_store::{CallPermit, Fence, Fenced, Store};
use galley_upstream::{Request, Response, Transport, TransportError};
use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;

/// A transport that makes a call only if the budget of the connection allows it.
pub(super) struct BudgetedTransport {
    pub(super) inner: Arc<dyn Transport>,
    pub(super) store: Arc<dyn Store>,
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
    /// Until when the budget allows no call.
    not_before: Mutex<Option<Timestamp>>,
}

impl BudgetState {
    pub(super) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
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
}

impl BudgetedTransport {
    /// Lets all instances rest. The response that asks for it is used.
    async fn rest(&self, rest: SignedDuration) {
        match self.store.rest_calls(self.fence, rest, self.clock.now()).await {
            Ok(Fenced::Done(())) => {}
            Ok(Fenced::LeaseLost) => self.state.lost.store(true, Ordering::Relaxed),
            // The response of the next call asks for it again.
            Err(error) => tracing::warn!(%error, "the rest of a connection was not stored"),
        }
    }
}

#[async_trait]
impl Transport for BudgetedTransport {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let Some(kind) = request.kind else { return self.inner.exchange(request).await };
        let (now, state) = (self.clock.now(), &self.state);
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
        let response = self.inner.exchange(request).await?;
        if let Some(rest) = response.usage(&self.waba).and_then(Usage::rest) {
            self.rest(rest).await;
        }
        Ok(response)
    }
}
