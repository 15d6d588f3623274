//! Creations, many at a time: whatever waits goes into one transaction of few statements, which is
//! synced once. While it is, the next ones gather.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use galley_domain::id;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::{batch::Batch, failures, links::Links};
use crate::{Creation, NewTemplate, StoreError, Tidings, kept::Hashes};

/// How many creations one transaction takes at most.
const LARGEST: usize = 256;

/// How often a batch is begun again that others stood in the way of.
const MOST_TRIES: u32 = 5;

/// Where creations queue.
pub(super) struct Creator {
    queue: mpsc::Sender<Waiting>,
}

/// A creation that somebody waits for.
pub(super) struct Waiting {
    pub(super) new: NewTemplate,
    pub(super) hashes: Hashes,
    reply: oneshot::Sender<Result<Creation, StoreError>>,
}

impl Creator {
    pub(super) fn start(links: Arc<Links>, tidings: Arc<Tidings>, queue: usize) -> Self {
        let (queue, waiting) = mpsc::channel(queue.max(1));
        let desk = Desk { links, tidings, ids: Ids::default() };
        tokio::spawn(desk.work(waiting));
        Self { queue }
    }

    pub(super) async fn create(&self, new: NewTemplate) -> Result<Creation, StoreError> {
        // Hashing is done here, where many threads can do it.
        let (hashes, (reply, answer)) = (Hashes::of(&new), oneshot::channel());
        match self.queue.try_send(Waiting { new, hashes, reply }) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(StoreError::Unavailable(Arc::new(Gone)))),
            Err(mpsc::error::TrySendError::Full(_)) => Err(StoreError::Busy),
            Err(mpsc::error::TrySendError::Closed(_)) => {
                Err(StoreError::Unavailable(Arc::new(Gone)))
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the task that creates templates has ended")]
struct Gone;

/// What the task that creates has at hand.
struct Desk {
    links: Arc<Links>,
    tidings: Arc<Tidings>,
    ids: Ids,
}

impl Desk {
    async fn work(self, mut waiting: mpsc::Receiver<Waiting>) {
        let mut batch = Vec::with_capacity(LARGEST);
        while waiting.recv_many(&mut batch, LARGEST).await > 0 {
            // Whoever has gone away before his creation began does not want it any more.
            batch.retain(|it: &Waiting| !it.reply.is_closed());
            // What has to look at what the others have done comes after them.
            for next in self.commit(std::mem::take(&mut batch)).await {
                self.alone(next).await;
            }
        }
    }

    /// Commits a batch of one, as often as others take its id or give its name up in between.
    async fn alone(&self, waiting: Waiting) {
        let mut again = vec![waiting];
        for _ in 0..MOST_TRIES {
            again = self.commit(again).await;
        }
        for waiting in again {
            let _ = waiting.reply.send(Err(StoreError::Busy));
        }
    }

    /// Commits a batch and answers those in it; gives back those that have to be done alone.
    async fn commit(&self, batch: Vec<Waiting>) -> Vec<Waiting> {
        if batch.is_empty() {
            return batch;
        }
        match self.try_often(&batch).await {
            Ok(outcomes) => {
                let mut alone = Vec::new();
                for (waiting, outcome) in batch.into_iter().zip(outcomes) {
                    match outcome {
                        Some(creation) => drop(waiting.reply.send(Ok(creation))),
                        None => alone.push(waiting),
                    }
                }
                alone
            }
            // One of them may be to blame, and the others are not to suffer for it.
            Err(StoreError::Failed(_)) if batch.len() > 1 => batch,
            Err(error) => {
                for waiting in batch {
                    let _ = waiting.reply.send(Err(error.shared()));
                }
                Vec::new()
            }
        }
    }

    async fn try_often(&self, batch: &[Waiting]) -> Result<Vec<Option<Creation>>, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match Batch::run(&self.links, &self.ids, batch).await {
                Ok((outcomes, newest)) => {
                    self.tidings.tell(&newest);
                    return Ok(outcomes);
                }
                Err(error) if tries < MOST_TRIES && failures::is_worth_another_try(&error) => {}
                // The connection may have been lost while nobody used it. Nothing was committed.
                Err(StoreError::Unavailable(_)) if tries == 1 => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Gives ids out. They grow with time and within an account; those of several processes differ
/// because each begins its milliseconds elsewhere, and where they meet nevertheless the database
/// refuses the second.
pub(super) struct Ids {
    offset: u64,
    last: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
        Self { offset: random % id::PER_MILLISECOND, last: AtomicU64::new(0) }
    }
}

impl Ids {
    /// An id behind `previous` and behind all that were given out here.
    pub(super) fn next(&self, previous: u64, at: Timestamp) -> u64 {
        let last = self.last.load(Ordering::Relaxed).max(previous);
        let next = (id::next(0, at.as_millisecond()) + self.offset).max(last + 1);
        self.last.store(next, Ordering::Relaxed);
        next
    }
}
