//! Wakes the worker of connections after a change that it has to make at a provider, and requests
//! that wait for the outcome.

use std::{future::pending, sync::Arc};

use galley_domain::id::TemplateId;
use tokio::sync::{
    Notify,
    broadcast::{self, error::RecvError},
};

/// Number of moves that a request may be behind before it reads its operation again in any case.
const MAX_MOVES_BEHIND: usize = 256;

/// Tells the worker of this process about new work, and requests about operations that have moved.
/// Clones share their state. Other processes find the work when they poll.
#[derive(Clone, Debug)]
pub struct UpstreamWaker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    work: Notify,
    moves: broadcast::Sender<TemplateId>,
}

/// Tells a request which operations have another state.
pub(crate) struct OperationMoves(broadcast::Receiver<TemplateId>);

impl OperationMoves {
    /// Waits until an operation of the template has another state, or may have. Requests that wait for
    /// other templates read nothing.
    pub(crate) async fn of(&mut self, template: TemplateId) {
        loop {
            match self.0.recv().await {
                Ok(moved) if moved != template => {}
                Ok(_) | Err(RecvError::Lagged(_)) => return,
                Err(RecvError::Closed) => pending().await,
            }
        }
    }
}

impl Default for UpstreamWaker {
    fn default() -> Self {
        Self(Arc::new(Inner {
            work: Notify::new(),
            moves: broadcast::Sender::new(MAX_MOVES_BEHIND),
        }))
    }
}

impl UpstreamWaker {
    /// Wakes the worker: a connection may have work.
    pub fn wake(&self) {
        self.0.work.notify_one();
    }

    /// Waits for the next [`wake`](Self::wake), or returns at once if one came since the last wait.
    pub(crate) async fn woken(&self) {
        self.0.work.notified().await;
    }

    /// Tells the requests that wait that an operation of a template has another state.
    pub(crate) fn operation_moved(&self, template: TemplateId) {
        let _ = self.0.moves.send(template);
    }

    /// The operations that have another state from now on.
    pub(crate) fn moves(&self) -> OperationMoves {
        OperationMoves(self.0.moves.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_wake_before_the_wait_is_not_lost() {
        let waker = UpstreamWaker::default();
        waker.wake();
        waker.clone().woken().await;
    }

    #[tokio::test]
    async fn a_request_is_woken_by_its_own_template_or_if_it_is_far_behind() {
        let waker = UpstreamWaker::default();
        let [own, other] = [1, 2].map(|id| TemplateId::new(id).unwrap());
        let mut moves = waker.moves();
        waker.operation_moved(other);
        assert!(timeout(Duration::ZERO, moves.of(own)).await.is_err());
        waker.operation_moved(own);
        moves.of(own).await;
        for _ in 0..=2 * MAX_MOVES_BEHIND {
            waker.operation_moved(other);
        }
        moves.of(own).await;
    }
}
