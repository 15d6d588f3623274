//! The loop of the writer thread: takes queued writes, runs and commits them, and recovers from
//! failures.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::{
    Batch, PANICKED, QueuedWrite,
    batch::{IndexChanges, NewestSeqs},
};
use crate::{
    SchemaPolicy, StoreError,
    error::cause,
    sqlite::{
        Acknowledge, SqliteOptions,
        checkpoint::Checkpointer,
        connection,
        open::{LastBatch, Shared},
        open_files::OpenFiles,
        reader_pool::lock,
    },
};

/// Maximum number of writes in one transaction: enough to share a sync, few enough that the first
/// one does not wait long.
const MAX_BATCH_WRITES: usize = 512;

/// The writer is idle after this long without a write.
const IDLE_AFTER: Duration = Duration::from_millis(100);

/// The state of the writer thread.
pub(super) struct WriterLoop {
    /// Declared before `connection`, so that it is dropped first: SQLite checkpoints the whole WAL
    /// when the last connection closes, and that should be the writer's.
    checkpointer: Checkpointer,
    /// Declared before `connection` for the same reason.
    shared: Arc<Shared>,
    path: PathBuf,
    connection: Option<Connection>,
    /// SQLite's `data_version`, which changes when another process has written. Empty if the buffered
    /// indexes must be loaded.
    data_version: Option<i64>,
    /// Declared after `connection`, which must be closed first.
    files: Arc<OpenFiles>,
    acknowledge: Acknowledge,
    schema_policy: SchemaPolicy,
}

/// Where a batch failed.
enum FailedAt {
    /// Before any of its writes ran.
    Begin,
    /// In one of its writes; nothing was committed.
    Write,
    /// At the commit, whose outcome may be unknown.
    Commit(NewestSeqs),
}

impl WriterLoop {
    pub(super) fn new(
        path: PathBuf,
        connection: Connection,
        shared: Arc<Shared>,
        options: &SqliteOptions,
    ) -> Result<Self, StoreError> {
        let mut writer_loop = Self {
            checkpointer: Checkpointer::start(
                &path,
                Arc::clone(&shared.files),
                options.checkpoint_pages,
            )?,
            files: Arc::clone(&shared.files),
            shared,
            connection: Some(connection),
            acknowledge: options.acknowledge,
            schema_policy: options.schema_policy,
            path,
            data_version: None,
        };
        // A store with damaged rows can be opened, for example to check it: lookups then read the rows
        // themselves, and each write tries again.
        if let Err(error) = writer_loop.load_indexes() {
            tracing::error!(%error, "the indexes of names and keys cannot be read: run `galley doctor`");
        }
        Ok(writer_loop)
    }

    /// Runs queued writes until the queue is closed.
    pub(super) fn run(&mut self, queue: &Receiver<QueuedWrite>) {
        let mut writes = Vec::with_capacity(MAX_BATCH_WRITES);
        while let Some(first) = self.next(queue) {
            writes.push(first);
            writes.extend(queue.try_iter().take(MAX_BATCH_WRITES - 1));
            self.shared.queue_depth.fetch_sub(writes.len(), Ordering::Relaxed);
            // A panic must not end the thread. Whether it came before or after the commit is unknown.
            if catch_unwind(AssertUnwindSafe(|| self.run_batch(&mut writes))).is_err() {
                self.connection = None;
                self.fail(&mut writes, StoreError::OutcomeUnknown(cause(PANICKED)));
            }
        }
    }

    /// Waits for the next write; `None` once the queue is closed.
    fn next(&mut self, queue: &Receiver<QueuedWrite>) -> Option<QueuedWrite> {
        match queue.recv_timeout(IDLE_AFTER) {
            Ok(write) => return Some(write),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.shared.point_readers.end_idle_transactions();
        if let Some(connection) = &self.connection
            && let Err(error) = self.checkpointer.when_idle(connection)
        {
            tracing::warn!(%error, "WAL checkpoint failed");
        }
        queue.recv().ok()
    }

    /// Runs the writes in one transaction and responds to them; `writes` is empty afterwards.
    fn run_batch(&mut self, writes: &mut Vec<QueuedWrite>) {
        // Drop writes whose caller cancelled before they began.
        writes.retain(|write| !write.reply.is_closed());
        self.refuse_without_space(writes);
        if writes.is_empty() {
            return;
        }
        let mut outcome = self.run_and_commit(writes);
        if let Err((StoreError::Full(_), _)) = outcome
            && writes.iter().all(|write| write.uses_reserve)
            && self.shared.space.release_reserve()
        {
            self.roll_back();
            outcome = self.run_and_commit(writes);
        }
        match outcome {
            Ok(newest_seqs) => self.acknowledge(writes, &newest_seqs),
            Err((_, FailedAt::Write)) if writes.len() > 1 => {
                for write in std::mem::take(writes) {
                    self.run_batch(&mut vec![write]);
                }
            }
            // The failure of a single write says nothing about the next one, unless the disk fails.
            Err((error, FailedAt::Write))
                if !matches!(error, StoreError::Full(_) | StoreError::Unavailable(_)) =>
            {
                respond_all(writes, &Err(error));
            }
            Err((error, FailedAt::Begin | FailedAt::Write)) => self.fail(writes, error),
            Err((error, FailedAt::Commit(newest_seqs))) => {
                self.fail(writes, error);
                // Subscribers read the store to find out what the outcome is.
                self.shared.event_notifier.notify(&newest_seqs);
                // After a failed sync the state on disk is unknown; a new connection recovers it.
                self.connection = None;
            }
        }
    }

    /// Refuses the writes of clients while the disk is almost full.
    fn refuse_without_space(&self, writes: &mut Vec<QueuedWrite>) {
        let Err(error) = self.shared.space.check() else { return };
        let (operator, mut clients) =
            std::mem::take(writes).into_iter().partition(|write| write.uses_reserve);
        *writes = operator;
        respond_all(&mut clients, &Err(error));
    }

    fn acknowledge(&mut self, writes: &mut Vec<QueuedWrite>, newest_seqs: &NewestSeqs) {
        *lock(&self.shared.last_batch) = LastBatch::Committed(Instant::now());
        respond_all(writes, &Ok(()));
        self.shared.event_notifier.notify(newest_seqs);
        if let Some(connection) = &self.connection
            && let Err(error) = self.checkpointer.after_commit(connection)
        {
            tracing::warn!(%error, "WAL checkpoint failed");
        }
    }

    fn fail(&self, writes: &mut Vec<QueuedWrite>, error: StoreError) {
        *lock(&self.shared.last_batch) = LastBatch::Failed;
        respond_all(writes, &Err(error));
    }

    fn run_and_commit(
        &mut self,
        writes: &mut Vec<QueuedWrite>,
    ) -> Result<NewestSeqs, (StoreError, FailedAt)> {
        self.shared.point_readers.end_idle_transactions();
        self.begin().map_err(|error| {
            self.roll_back();
            (error, FailedAt::Begin)
        })?;
        let (newest_seqs, index_changes) = self.run_all(writes).map_err(|error| {
            self.roll_back();
            (error, FailedAt::Write)
        })?;
        let size = writes.len();
        // Kill test only, see `Acknowledge::BeforeCommit`.
        if self.acknowledge != Acknowledge::AfterCommit {
            writes.drain(..).for_each(|write| write.respond(Ok(())));
            std::thread::sleep(Duration::from_millis(20));
        }
        match self.commit() {
            Ok(()) => {
                self.shared.commit_counters.record_batch(size);
                index_changes.apply(&self.shared.indexes);
                Ok(newest_seqs)
            }
            Err(error) => Err((error, FailedAt::Commit(newest_seqs))),
        }
    }

    /// Runs the writes in the transaction that has begun. The connection is lost if this panics.
    fn run_all(
        &mut self,
        writes: &mut [QueuedWrite],
    ) -> Result<(NewestSeqs, IndexChanges), StoreError> {
        let connection = self.connection.take().expect("the transaction has begun on it");
        let mut batch = Batch::new(connection, Arc::clone(&self.shared.indexes));
        let run = writes.iter_mut().try_for_each(|write| write.run(&mut batch));
        let closed = run.and_then(|()| batch.close());
        self.connection = Some(batch.into_connection());
        closed
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.files.check()?;
        // Waits up to the busy timeout if another process holds the write lock.
        self.connection()?.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.load_indexes()
    }

    /// Loads the buffered indexes if the connection is new, or if another process has written since
    /// they were loaded.
    fn load_indexes(&mut self) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let connection = self.connection()?;
        let mut query = connection.prepare_cached("PRAGMA data_version")?;
        let version = query.query_row([], |row| row.get(0))?;
        drop(query);
        if self.data_version != Some(version) {
            // Like a commit: entries may leave the memory that an open read transaction does not find
            // in the table.
            let connection = self.connection()?;
            shared.point_readers.during_commit(|| shared.indexes.load(connection))?;
            self.data_version = Some(version);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let connection = self.connection()?;
        let committed = shared.point_readers.during_commit(|| {
            let began = Instant::now();
            let committed =
                connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
            shared.commit_counters.record_commit(began);
            committed
        });
        // Checked again after the commit: a write is acknowledged only if it is in the file that
        // the next start opens.
        let committed = committed.map_err(StoreError::from);
        committed.and_then(|_| self.files.check()).map_err(|error| match error {
            StoreError::Unavailable(cause)
            | StoreError::Damaged(cause)
            | StoreError::Failed(cause) => StoreError::OutcomeUnknown(cause),
            // SQLite detects a full disk before it writes the commit record: nothing was written.
            other => other,
        })
    }

    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        if self.connection.is_none() {
            self.files.check()?;
            self.connection = Some(connection::open_for_writing(&self.path, self.schema_policy)?);
            self.data_version = None;
        }
        Ok(self.connection.as_mut().expect("just opened"))
    }

    fn roll_back(&mut self) {
        if let Some(connection) = &self.connection
            && !connection.is_autocommit()
            && connection.execute_batch("ROLLBACK").is_err()
        {
            self.connection = None;
        }
    }
}

fn respond_all(writes: &mut Vec<QueuedWrite>, outcome: &Result<(), StoreError>) {
    for write in writes.drain(..) {
        write.respond(outcome.clone());
    }
}
