//! Requests that wait in a queue until a batch takes them.

use std::time::{Duration, Instant};

use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};

use super::errors::at_commit;
use crate::{StoreError, error::unavailable};

/// Maximum time in a queue, checked when the previous batch is done.
const MAX_QUEUE_TIME: Duration = Duration::from_secs(2);

/// A queued request.
pub(super) struct Pending<I, O> {
    pub(super) input: I,
    pub(super) queued_at: Instant,
    reply: oneshot::Sender<Result<O, StoreError>>,
}

/// Queues a request, and waits until its batch replies.
pub(super) async fn request<I, O>(
    queue: &mpsc::Sender<Pending<I, O>>,
    input: I,
) -> Result<O, StoreError> {
    let (reply, response) = oneshot::channel();
    match queue.try_send(Pending { input, queued_at: Instant::now(), reply }) {
        // A worker that stops without a reply may already have sent the commit.
        Ok(()) => response.await.unwrap_or_else(|_| Err(at_commit(worker_stopped()))),
        Err(TrySendError::Full(_)) => Err(StoreError::Busy),
        Err(TrySendError::Closed(_)) => Err(worker_stopped()),
    }
}

/// Drops a cancelled request; fails one that queued longer than [`MAX_QUEUE_TIME`].
pub(super) fn drop_expired<I, O>(pending: Pending<I, O>) -> Option<Pending<I, O>> {
    if pending.reply.is_closed() {
        return None;
    }
    if pending.queued_at.elapsed() > MAX_QUEUE_TIME {
        let _ = pending.reply.send(Err(StoreError::Busy));
        return None;
    }
    Some(pending)
}

/// Replies to the requests of a batch.
pub(super) fn reply<I, O>(
    batch: Vec<Pending<I, O>>,
    outcomes: Result<Vec<Result<O, StoreError>>, StoreError>,
) {
    match outcomes {
        Ok(outcomes) => {
            for (pending, outcome) in batch.into_iter().zip(outcomes) {
                let _ = pending.reply.send(outcome);
            }
        }
        Err(error) => {
            for pending in batch {
                let _ = pending.reply.send(Err(error.clone()));
            }
        }
    }
}

fn worker_stopped() -> StoreError {
    unavailable("the worker of a write queue has stopped")
}
