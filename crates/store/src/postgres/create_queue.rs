//! The create queue: concurrent creates are batched into one transaction with one commit. While a
//! batch commits, the worker collects the next one.

mod worker;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::{runtime, sync::mpsc};

use self::worker::CreateWorker;
use super::{
    pending::{self, Pending, drop_expired},
    pool::PgPools,
};
use crate::{
    CreateOutcome, NewTemplate, StoreError, creates::Create, encoding::LookupKeys,
    engine::CreateQueue, error::failed,
};

/// A queued create.
pub(super) type PendingCreate = Pending<Create, CreateOutcome>;

/// Starts the create worker on a thread of its own.
pub(super) fn start(
    pools: &Arc<PgPools>,
    capacity: usize,
) -> Result<mpsc::Sender<PendingCreate>, StoreError> {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let queue = Queue { receiver, next: None, last_batch_len: 0 };
    let worker = CreateWorker::new(Arc::clone(pools), queue);
    let run = move || runtime.block_on(worker.run());
    let thread = std::thread::Builder::new().name("galley-creator".into());
    thread.spawn(run).map_err(failed)?;
    Ok(sender)
}

/// The sending end of the queue.
#[async_trait]
impl CreateQueue for mpsc::Sender<PendingCreate> {
    async fn create(
        &self,
        new: NewTemplate,
        keys: LookupKeys,
    ) -> Result<CreateOutcome, StoreError> {
        pending::request(self, Create { new, keys }).await
    }
}

/// Maximum number of creates in one transaction.
const MAX_BATCH_CREATES: usize = 256;

/// Lower bound of the target batch size: with fewer creates queued, one batch takes them all.
const MIN_BATCH_TARGET: usize = 96;

/// The receiving end of the create queue.
pub(super) struct Queue {
    receiver: mpsc::Receiver<PendingCreate>,
    /// A create that could not join a batch; the first of the next one.
    next: Option<PendingCreate>,
    /// Size of the previous batch.
    last_batch_len: usize,
}

impl Queue {
    /// The next batch, from the requests that are queued when there are any; `None` once the channel is
    /// closed.
    async fn next_batch(&mut self) -> Option<Vec<PendingCreate>> {
        loop {
            let mut batch = Vec::with_capacity(MAX_BATCH_CREATES);
            batch.extend(self.next.take().and_then(drop_expired));
            self.fill(&mut batch, |_| true);
            if !batch.is_empty() {
                return Some(batch);
            }
            self.next = Some(self.receiver.recv().await?);
        }
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
    pub(super) fn fill(
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
