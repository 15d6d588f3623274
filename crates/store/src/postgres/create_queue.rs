//! The create queue: concurrent creates are batched into one transaction with one commit. While a
//! batch commits, the worker collects the next one.

mod queue;
mod worker;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::{runtime, sync::mpsc};

pub(super) use self::queue::Queue;
use self::worker::CreateWorker;
use super::{
    pending::{self, Pending},
    pool::PgPools,
};
use crate::{
    CreateOutcome, EventNotifier, NewTemplate, StoreError, creates::Create, encoding::LookupKeys,
    engine,
};

/// The sending end of the create queue.
pub(super) struct CreateQueue {
    sender: mpsc::Sender<PendingCreate>,
}

/// A queued create.
pub(super) type PendingCreate = Pending<Create, CreateOutcome>;

impl CreateQueue {
    /// Starts the create worker on a thread of its own.
    pub(super) fn start(
        pools: &Arc<PgPools>,
        event_notifier: &Arc<EventNotifier>,
        capacity: usize,
    ) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Failed(Arc::new(error)))?;
        let worker =
            CreateWorker::new(Arc::clone(pools), Arc::clone(event_notifier), Queue::new(receiver));
        let run = move || runtime.block_on(worker.run());
        let thread = std::thread::Builder::new().name("galley-creator".into()).spawn(run);
        thread.map_err(|error| StoreError::Failed(Arc::new(error)))?;
        Ok(Self { sender })
    }

    /// How many creates are queued, and how many can be.
    pub(super) fn depth(&self) -> (usize, usize) {
        let capacity = self.sender.max_capacity();
        (capacity - self.sender.capacity(), capacity)
    }
}

#[async_trait]
impl engine::CreateQueue for CreateQueue {
    async fn create(
        &self,
        new: NewTemplate,
        keys: LookupKeys,
    ) -> Result<CreateOutcome, StoreError> {
        pending::request(&self.sender, Create { new, keys }).await
    }
}
