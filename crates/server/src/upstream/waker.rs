//! Wakes the worker of connections after a change that it has to make at a provider, and requests
//! that wait for the outcome.

use std::sync::Arc;

use tokio::sync::{Notify, watch};

/// Tells the worker of this process about new work, and requests about operations that have moved.
/// Clones share their state. Other processes find the work when they poll.
#[derive(Clone, Debug)]
pub struct UpstreamWaker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    work: Notify,
    moves: watch::Sender<u64>,
}

impl Default for UpstreamWaker {
    fn default() -> Self {
        Self(Arc::new(Inner { work: Notify::new(), moves: watch::Sender::new(0) }))
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

    /// Tells the requests that wait that an operation has another state.
    pub(crate) fn operation_moved(&self) {
        self.0.moves.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A receiver that is notified when an operation has another state.
    pub(crate) fn moves(&self) -> watch::Receiver<u64> {
        self.0.moves.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wake_before_the_wait_is_not_lost() {
        let waker = UpstreamWaker::default();
        let mut moves = waker.moves();
        waker.wake();
        waker.clone().woken().await;
        waker.operation_moved();
        assert!(moves.has_changed().unwrap());
        moves.mark_unchanged();
        assert!(!moves.has_changed().unwrap());
    }
}
