//! The create queue: concurrent creates are batched into one transaction with one commit. While a
//! batch commits, the worker collects the next one.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    runtime,
    sync::{mpsc, oneshot},
    time,
};

use super::{
    batch::{self, Batch, BatchResult, Outcomes, Precheck, PreparedConnection},
    errors,
    ids::IdGenerator,
    pool::{PgPools, is_worth_retrying},
    transaction::{MAX_ATTEMPTS, should_retry},
};
use crate::{CreateOutcome, EventNotifier, NewTemplate, StoreError, encoding::LookupKeys};

/// Maximum number of creates in one transaction.
const MAX_BATCH_CREATES: usize = 256;

/// Lower bound of the target batch size: with fewer creates queued, one batch takes them all.
const MIN_BATCH_TARGET: usize = 96;

/// Number of parts that a batch is split into when one of its creates may have caused an error.
const SPLIT_PARTS: usize = 16;

/// Number of batches that run with full prechecks after one that needed them: where names are in
/// use or accounts have limits, more such creates will follow.
const FULL_PRECHECK_BATCHES: u32 = 256;

/// Retry creates on a locked account until this long after arrival.
const LOCK_RETRY_WINDOW: Duration = Duration::from_secs(1);

/// Maximum time in the queue, checked when the previous batch is done.
const MAX_QUEUE_TIME: Duration = Duration::from_secs(2);

/// The sending end of the create queue.
pub(super) struct CreateQueue {
    sender: mpsc::Sender<PendingCreate>,
}

/// A queued create.
pub(super) struct PendingCreate {
    pub(super) new: NewTemplate,
    pub(super) lookup_keys: LookupKeys,
    queued_at: Instant,
    reply: oneshot::Sender<Result<CreateOutcome, StoreError>>,
}

impl CreateQueue {
    /// Starts the create worker on a thread of its own.
    pub(super) fn start(
        pools: &Arc<PgPools>,
        event_notifier: &Arc<EventNotifier>,
        ids: &Arc<IdGenerator>,
        capacity: usize,
    ) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Failed(Arc::new(error)))?;
        let worker = CreateWorker {
            pools: Arc::clone(pools),
            event_notifier: Arc::clone(event_notifier),
            ids: Arc::clone(ids),
            queue: Queue { receiver, next: None, last_batch_len: 0 },
            main_runtime: runtime::Handle::current(),
            full_prechecks_left: 0,
            connection: None,
        };
        let run = move || runtime.block_on(worker.run());
        let thread = std::thread::Builder::new().name("galley-creator".into()).spawn(run);
        thread.map_err(|error| StoreError::Failed(Arc::new(error)))?;
        Ok(Self { sender })
    }

    pub(super) async fn create(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError> {
        // Hash on the caller's thread: there are many of them, and only one worker thread.
        let (lookup_keys, (reply, response)) = (LookupKeys::of(&new), oneshot::channel());
        match self.sender.try_send(PendingCreate {
            new,
            lookup_keys,
            queued_at: Instant::now(),
            reply,
        }) {
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

#[derive(Debug, thiserror::Error)]
#[error("the create worker has stopped")]
struct WorkerStopped;

/// The receiving end of the create queue.
pub(super) struct Queue {
    receiver: mpsc::Receiver<PendingCreate>,
    /// A create that could not join a batch; the first of the next one.
    next: Option<PendingCreate>,
    /// Size of the previous batch.
    last_batch_len: usize,
}

impl Queue {
    /// The next batch, from the requests that are queued now; empty if there are none.
    fn take(&mut self) -> Vec<PendingCreate> {
        let mut batch = Vec::with_capacity(MAX_BATCH_CREATES);
        batch.extend(self.next.take().and_then(drop_expired));
        self.fill(&mut batch, |_| true);
        batch
    }

    /// Waits for the next request; `None` once the channel is closed.
    async fn wait(&mut self) -> Option<()> {
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

/// Drops cancelled requests; fails those that queued longer than [`MAX_QUEUE_TIME`].
fn drop_expired(pending: PendingCreate) -> Option<PendingCreate> {
    if pending.reply.is_closed() {
        return None;
    }
    if pending.queued_at.elapsed() > MAX_QUEUE_TIME {
        let _ = pending.reply.send(Err(StoreError::Busy));
        return None;
    }
    Some(pending)
}

/// The worker that runs the batches.
struct CreateWorker {
    pools: Arc<PgPools>,
    event_notifier: Arc<EventNotifier>,
    ids: Arc<IdGenerator>,
    queue: Queue,
    /// The service's runtime. It wakes the callers, so that the next batch can start meanwhile.
    main_runtime: runtime::Handle,
    /// Number of batches that still run with full prechecks.
    full_prechecks_left: u32,
    /// Reused from batch to batch.
    connection: Option<PreparedConnection>,
}

impl CreateWorker {
    async fn run(mut self) {
        while let Some(mut batch) = self.next_batch().await {
            // With full prechecks, a name in use is reported before a category that differs from
            // the name's other languages.
            let has_groups = batch.iter().any(|it| it.new.translation_group.is_some());
            let precheck = if has_groups || self.full_prechecks_left > 0 {
                Precheck::Full
            } else {
                Precheck::Optimistic
            };
            let outcomes = self.run_with_retries(&mut batch, precheck).await;
            self.queue.last_batch_len = batch.len();
            let mut parts = VecDeque::from(self.reply_or_split(batch, outcomes));
            while let Some(part) = parts.pop_front() {
                let mut part: Vec<PendingCreate> =
                    part.into_iter().filter_map(drop_expired).collect();
                if part.is_empty() {
                    continue;
                }
                let outcomes = self.run_with_retries(&mut part, Precheck::Retry).await;
                if is_account_locked(&outcomes)
                    && part.iter().all(|it| it.queued_at.elapsed() < LOCK_RETRY_WINDOW)
                {
                    // The other instance may hold the account lock only because it waits for a
                    // third instance, so retry.
                    parts.push_back(part);
                } else {
                    parts.extend(self.reply_or_split(part, outcomes));
                }
            }
        }
    }

    /// Replies to the requests of a batch. If a single create may have caused the error, returns
    /// the parts to retry instead, so that the other creates do not fail with it.
    fn reply_or_split(
        &self,
        batch: Vec<PendingCreate>,
        outcomes: Result<Outcomes, StoreError>,
    ) -> Vec<Vec<PendingCreate>> {
        match &outcomes {
            Err(_) if is_account_locked(&outcomes) && has_several_accounts(&batch) => {
                split_by_account(batch)
            }
            Err(error) if batch.len() > 1 && may_be_caused_by_one_create(error) => {
                split_evenly(batch)
            }
            _ => {
                self.reply(batch, outcomes);
                Vec::new()
            }
        }
    }

    /// Waits for the next batch; `None` once the channel is closed.
    async fn next_batch(&mut self) -> Option<Vec<PendingCreate>> {
        loop {
            let batch = self.queue.take();
            if !batch.is_empty() {
                return Some(batch);
            }
            self.queue.wait().await?;
        }
    }

    async fn run_with_retries(
        &mut self,
        batch: &mut Vec<PendingCreate>,
        mut precheck: Precheck,
    ) -> Result<Outcomes, StoreError> {
        let (mut attempts, started) = (0, time::Instant::now());
        loop {
            attempts += 1;
            self.connection.take_if(|it| it.connection.is_unusable());
            let is_reused = self.connection.is_some();
            match self.run_once(batch, precheck).await {
                Ok((outcomes, newest)) => {
                    self.event_notifier.notify(&newest);
                    return Ok(outcomes);
                }
                Err(error) if attempts < MAX_ATTEMPTS && batch::needs_full_precheck(&error) => {
                    precheck = precheck.max(Precheck::Full);
                }
                Err(error) if should_retry(attempts, &error) => {}
                // The idle connection was lost: nothing was committed.
                Err(error) if is_reused && attempts == 1 && is_lost_connection(&error, started) => {
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn run_once(
        &mut self,
        batch: &mut Vec<PendingCreate>,
        precheck: Precheck,
    ) -> Result<BatchResult, StoreError> {
        let connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            PreparedConnection::new(self.pools.acquire_for_creates().await?).await?
        };
        let Self { ids, queue, .. } = self;
        let done = Batch::run(&connection, ids, batch, queue, precheck).await;
        self.full_prechecks_left = match &done {
            Err(error) if batch::needs_full_precheck(error) => FULL_PRECHECK_BATCHES,
            Ok(_) => self.full_prechecks_left.saturating_sub(1),
            Err(_) => self.full_prechecks_left,
        };
        // Never reuse the connection after an error: when the server refuses a COPY, the driver
        // does not know how many responses are still to come.
        if done.is_ok() {
            self.connection = Some(connection);
        }
        done
    }

    fn reply(&self, batch: Vec<PendingCreate>, outcomes: Result<Outcomes, StoreError>) {
        self.main_runtime.spawn(async move {
            match outcomes {
                Ok(outcomes) => {
                    for (pending, outcome) in batch.into_iter().zip(outcomes) {
                        let _ = pending.reply.send(outcome);
                    }
                }
                Err(error) => {
                    for pending in batch {
                        let _ = pending.reply.send(Err(error.shared()));
                    }
                }
            }
        });
    }
}

fn is_account_locked(outcomes: &Result<Outcomes, StoreError>) -> bool {
    outcomes.as_ref().err().is_some_and(batch::is_account_locked)
}

fn has_several_accounts(batch: &[PendingCreate]) -> bool {
    batch.windows(2).any(|pair| pair[0].new.account != pair[1].new.account)
}

fn split_by_account(batch: Vec<PendingCreate>) -> Vec<Vec<PendingCreate>> {
    let mut parts = BTreeMap::<u64, Vec<PendingCreate>>::new();
    for pending in batch {
        parts.entry(pending.new.account.get()).or_default().push(pending);
    }
    parts.into_values().collect()
}

/// Splits a batch into [`SPLIT_PARTS`] parts. Repeated splits end at single creates.
fn split_evenly(batch: Vec<PendingCreate>) -> Vec<Vec<PendingCreate>> {
    let size = batch.len().div_ceil(SPLIT_PARTS);
    let mut rest = batch.into_iter();
    let part = || Some(rest.by_ref().take(size).collect()).filter(|it: &Vec<_>| !it.is_empty());
    std::iter::from_fn(part).collect()
}

/// Whether a single create may have caused the error: by its content, or by its name, which another
/// transaction has written and not yet committed.
fn may_be_caused_by_one_create(error: &StoreError) -> bool {
    matches!(error, StoreError::Failed(_)) || errors::is_lock_timeout(error)
}

fn is_lost_connection(error: &StoreError, started: time::Instant) -> bool {
    errors::is_lost_connection(error) && is_worth_retrying(started)
}
