//! The worker that runs the batches of the create queue, retries them, and replies.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::{runtime, time};

use super::{PendingCreate, Queue};
use crate::{
    StoreError,
    postgres::{
        batch::{self, Batch, Outcomes, Precheck},
        errors,
        pending::{self, drop_expired},
        pool::{PgConnection, PgPools, is_worth_retrying},
        transaction::{MAX_ATTEMPTS, should_retry},
    },
};

/// Number of parts that a batch is split into when one of its creates may have caused an error.
const SPLIT_PARTS: usize = 16;

/// Number of batches that run with full prechecks after one that needed them: where names are in
/// use or accounts have limits, more such creates will follow.
const FULL_PRECHECK_BATCHES: u32 = 256;

/// Retry creates on a locked account until this long after arrival.
const LOCK_RETRY_WINDOW: Duration = Duration::from_secs(1);

/// The worker that runs the batches.
pub(super) struct CreateWorker {
    pools: Arc<PgPools>,
    queue: Queue,
    /// The service's runtime. It wakes the callers, so that the next batch can start meanwhile.
    main_runtime: runtime::Handle,
    /// Number of batches that still run with full prechecks.
    full_prechecks_left: u32,
    /// Reused from batch to batch.
    connection: Option<PgConnection>,
}

impl CreateWorker {
    /// A worker that replies on the runtime that calls this function.
    pub(super) fn new(pools: Arc<PgPools>, queue: Queue) -> Self {
        let main_runtime = runtime::Handle::current();
        Self { pools, queue, main_runtime, full_prechecks_left: 0, connection: None }
    }

    pub(super) async fn run(mut self) {
        while let Some(mut batch) = self.queue.next_batch().await {
            // With full prechecks, a name in use is reported before a category that differs from
            // the name's other languages.
            let has_groups = batch.iter().any(|it| it.input.new.translation_group.is_some());
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
                self.main_runtime.spawn(async move { pending::reply(batch, outcomes) });
                Vec::new()
            }
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
            self.connection.take_if(|it| it.is_unusable());
            let is_reused = self.connection.is_some();
            match self.run_once(batch, precheck).await {
                Ok(outcomes) => {
                    self.pools.commit_counters.record_batch(batch.len());
                    return Ok(outcomes);
                }
                Err(error) if attempts < MAX_ATTEMPTS && batch::needs_full_precheck(&error) => {
                    precheck = precheck.max(Precheck::Full);
                }
                Err(error) if should_retry(attempts, &error) => {}
                // The idle connection was lost: nothing was committed.
                Err(error)
                    if is_reused
                        && attempts == 1
                        && errors::is_lost_connection(&error)
                        && is_worth_retrying(started) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn run_once(
        &mut self,
        batch: &mut Vec<PendingCreate>,
        precheck: Precheck,
    ) -> Result<Outcomes, StoreError> {
        let connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            batch::connect(&self.pools).await?
        };
        let Self { pools, queue, .. } = self;
        let done = Batch::run(&connection, pools, batch, queue, precheck).await;
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
}

fn is_account_locked(outcomes: &Result<Outcomes, StoreError>) -> bool {
    outcomes.as_ref().err().is_some_and(batch::is_account_locked)
}

fn has_several_accounts(batch: &[PendingCreate]) -> bool {
    batch.windows(2).any(|pair| pair[0].input.new.account != pair[1].input.new.account)
}

fn split_by_account(batch: Vec<PendingCreate>) -> Vec<Vec<PendingCreate>> {
    let mut parts = BTreeMap::<u64, Vec<PendingCreate>>::new();
    for pending in batch {
        parts.entry(pending.input.new.account.get()).or_default().push(pending);
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
