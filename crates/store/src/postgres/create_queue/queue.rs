//! The receiving end of the create queue, which decides how many creates a batch takes.

use tokio::sync::mpsc;

use super::PendingCreate;
use crate::postgres::pending::drop_expired;

/// Maximum number of creates in one transaction.
const MAX_BATCH_CREATES: usize = 256;

/// Lower bound of the target batch size: with fewer creates queued, one batch takes them all.
const MIN_BATCH_TARGET: usize = 96;

/// The receiving end of the create queue.
pub(in crate::postgres) struct Queue {
    receiver: mpsc::Receiver<PendingCreate>,
    /// A create that could not join a batch; the first of the next one.
    next: Option<PendingCreate>,
    /// Size of the previous batch.
    pub(super) last_batch_len: usize,
}

impl Queue {
    pub(super) fn new(receiver: mpsc::Receiver<PendingCreate>) -> Self {
        Self { receiver, next: None, last_batch_len: 0 }
    }

    /// The next batch, from the requests that are queued now; empty if there are none.
    pub(super) fn take(&mut self) -> Vec<PendingCreate> {
        let mut batch = Vec::with_capacity(MAX_BATCH_CREATES);
        batch.extend(self.next.take().and_then(drop_expired));
        self.fill(&mut batch, |_| true);
        batch
    }

    /// Waits for the next request; `None` once the channel is closed.
    pub(super) async fn wait(&mut self) -> Option<()> {
        self.next = Some(self.receiver.recv().await?);
        Some(())
    }

    /// Target batch size, within `MIN_BATCH_TARGET..=MAX_BATCH_CREATES`.
    ///
    /// The target is half of the requests in flight, so that PostgreSQL writes one half while the
    /// service receives and validates the other. The previous batch counts as in flight because its
    /// clients usually send again; clients that already did are counted twice. A batch that took
    /// every request would make database and service take turns.
    fn target_len(&self, batch_len: usize) -> usize {
        let in_flight = self.last_batch_len + batch_len + self.receiver.len();
        (in_flight / 2).clamp(MIN_BATCH_TARGET, MAX_BATCH_CREATES)
    }

    /// Adds queued requests to a batch, up to the first that may not join.
    pub(in crate::postgres) fn fill(
        &mut self,
        batch: &mut Vec<PendingCreate>,
        may_join: impl Fn(&PendingCreate) -> bool,
    ) {
        let target = self.target_len(batch.len());
        while batch.len() < target && self.next.is_none() {
            let Ok(pending) = self.receiver.try_recv() else { return };
            match drop_expired(pending) {
                Some(pending) if may_join(&pending) => batch.push(pending),
                refused => self.next = refused,
            }
        }
    }
}
