//! The queue of messages. While a batch commits, the next one is collected.

use std::{sync::Arc, time::Instant};

use tokio::sync::{mpsc, oneshot};

use crate::{
    NewMessage, StoreError, StoredMessage,
    postgres::{
        create_queue::{MAX_QUEUE_TIME, WorkerStopped},
        pool::PgPools,
        transaction::transact,
    },
};

/// Maximum number of messages in one transaction.
const MAX_BATCH_MESSAGES: usize = 256;

/// The sending end of the queue.
pub(in crate::postgres) struct MessageQueue {
    sender: mpsc::Sender<PendingMessage>,
}

struct PendingMessage {
    new: NewMessage,
    queued_at: Instant,
    reply: oneshot::Sender<Result<Option<StoredMessage>, StoreError>>,
}

impl MessageQueue {
    /// Starts the worker. It ends when the queue is dropped.
    pub(in crate::postgres) fn start(pools: &Arc<PgPools>, capacity: usize) -> Self {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        tokio::spawn(Worker { pools: Arc::clone(pools) }.run(receiver));
        Self { sender }
    }

    pub(in crate::postgres) async fn add(
        &self,
        new: NewMessage,
    ) -> Result<Option<StoredMessage>, StoreError> {
        let (reply, response) = oneshot::channel();
        match self.sender.try_send(PendingMessage { new, queued_at: Instant::now(), reply }) {
            // A worker that stops without a reply may already have sent the commit.
            Ok(()) => response
                .await
                .unwrap_or_else(|_| Err(StoreError::OutcomeUnknown(Arc::new(WorkerStopped)))),
            Err(mpsc::error::TrySendError::Full(_)) => Err(StoreError::Busy),
            Err(mpsc::error::TrySendError::Closed(_)) => {
                Err(StoreError::Unavailable(Arc::new(WorkerStopped)))
            }
        }
    }
}

/// Drops cancelled messages; fails those that queued longer than [`MAX_QUEUE_TIME`].
fn drop_expired(pending: PendingMessage) -> Option<PendingMessage> {
    if pending.reply.is_closed() {
        return None;
    }
    if pending.queued_at.elapsed() > MAX_QUEUE_TIME {
        let _ = pending.reply.send(Err(StoreError::Busy));
        return None;
    }
    Some(pending)
}

/// The worker that writes the batches.
struct Worker {
    pools: Arc<PgPools>,
}

impl Worker {
    async fn run(self, mut receiver: mpsc::Receiver<PendingMessage>) {
        let mut buffer = Vec::with_capacity(MAX_BATCH_MESSAGES);
        while receiver.recv_many(&mut buffer, MAX_BATCH_MESSAGES).await > 0 {
            let batch: Vec<PendingMessage> = buffer.drain(..).filter_map(drop_expired).collect();
            if batch.is_empty() {
                continue;
            }
            match self.write(&batch).await {
                // One message may have caused the error; the others must not fail with it.
                Err(StoreError::Failed(_)) if batch.len() > 1 => {
                    for pending in batch {
                        let added = self.write(std::slice::from_ref(&pending)).await;
                        reply(vec![pending], added);
                    }
                }
                added => reply(batch, added),
            }
        }
    }

    /// Adds the messages in one transaction.
    async fn write(
        &self,
        batch: &[PendingMessage],
    ) -> Result<Vec<Option<StoredMessage>>, StoreError> {
        let new: Vec<&NewMessage> = batch.iter().map(|pending| &pending.new).collect();
        let add = transact(&self.pools, &new, |new, open| Box::pin(super::add(open, new)));
        Ok(add.await?.0)
    }
}

fn reply(batch: Vec<PendingMessage>, added: Result<Vec<Option<StoredMessage>>, StoreError>) {
    match added {
        Ok(added) => {
            for (pending, added) in batch.into_iter().zip(added) {
                let _ = pending.reply.send(Ok(added));
            }
        }
        Err(error) => {
            for pending in batch {
                let _ = pending.reply.send(Err(error.shared()));
            }
        }
    }
}
