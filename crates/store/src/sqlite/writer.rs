//! The writer thread: runs all queued writes in one transaction, syncs once, then responds to
//! each of them (group commit).
//!
//! A write checks everything before it changes anything, so a refused write needs no savepoint and
//! does not affect the others; the one exception is [`Batch::with_savepoint`]. On an error, the
//! writer rolls the whole transaction back and runs its writes again one by one, so that only the
//! failing write fails.

mod batch;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use galley_domain::id::AccountId;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    Acknowledge, SchemaPolicy, SqliteOptions, checkpoint::Checkpointer, connection,
    disk_space::DiskSpace, open_files::OpenFiles, point_readers::PointReaders,
    write_health::WriteHealth,
};
use crate::{EventNotifier, StoreError};
pub(super) use batch::Batch;

/// Maximum number of writes in one transaction: enough to share a sync, few enough that the first
/// one does not wait long.
const MAX_BATCH_WRITES: usize = 512;

/// The writer is idle after this long without a write.
const IDLE_AFTER: Duration = Duration::from_millis(100);

/// A handle to the writer thread. When it is dropped, the thread runs the queued writes and exits.
pub(super) struct Writer {
    queue: Option<SyncSender<Box<dyn QueuedWrite>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        path: PathBuf,
        connection: Connection,
        shared: WriterShared,
        options: &SqliteOptions,
    ) -> Result<Self, StoreError> {
        let (queue, receiver) = sync_channel(options.queue_capacity);
        let mut writer_loop = WriterLoop {
            checkpointer: Checkpointer::start(&path, options.checkpoint_pages)?,
            shared,
            connection: Some(connection),
            acknowledge: options.acknowledge,
            schema_policy: options.schema_policy,
            path,
        };
        let thread = std::thread::Builder::new()
            .name("galley-writer".to_owned())
            .spawn(move || writer_loop.run(&receiver))
            .map_err(|error| StoreError::Unavailable(Arc::new(error)))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Queues a write and waits until it is durable. `work` may run more than once, but at most
    /// one run is committed. Fails if the disk is almost full.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Batch<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.queue(work, false).await
    }

    /// Like [`Writer::write`], for small changes that an operator must be able to make on a full
    /// disk: they use the space that is kept free.
    pub(super) async fn write_for_operator<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Batch<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.queue(work, true).await
    }

    async fn queue<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Batch<'_>) -> Result<T, StoreError> + Send + 'static,
        uses_reserve: bool,
    ) -> Result<T, StoreError> {
        let (reply, response) = oneshot::channel();
        let write = Box::new(Write { work, result: None, reply, uses_reserve });
        let queue = self.queue.as_ref().expect("open until the writer is dropped");
        match queue.try_send(write) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(StoreError::Busy),
            Err(TrySendError::Disconnected(_)) => return Err(stopped()),
        }
        // The writer replies to every write, even after a panic. Without a reply, the thread has died,
        // and whether before or after the commit is unknown.
        response
            .await
            .unwrap_or_else(|_| Err(StoreError::OutcomeUnknown(Arc::new(WriteError::Stopped))))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A write in the queue, independent of its result type.
trait QueuedWrite: Send {
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), StoreError>;
    fn is_cancelled(&self) -> bool;
    /// Whether it may use the disk space that is kept free for the operator.
    fn uses_reserve(&self) -> bool;
    fn respond(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Write<T, W> {
    work: W,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    uses_reserve: bool,
}

impl<T, W> QueuedWrite for Write<T, W>
where
    T: Send,
    W: FnMut(&mut Batch<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), StoreError> {
        self.result = Some((self.work)(batch)?);
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.reply.is_closed()
    }

    fn uses_reserve(&self) -> bool {
        self.uses_reserve
    }

    fn respond(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { result, reply, .. } = *self;
        // The caller may have cancelled since; the committed write stays.
        let _ = reply.send(outcome.and_then(|()| result.ok_or_else(stopped)));
    }
}

/// What the writer shares with the rest of the store.
pub(super) struct WriterShared {
    /// The connections of point reads and the cache of what they read.
    pub(super) point_readers: Arc<PointReaders>,
    pub(super) event_notifier: Arc<EventNotifier>,
    pub(super) files: Arc<OpenFiles>,
    pub(super) space: Arc<DiskSpace>,
    pub(super) health: Arc<WriteHealth>,
}

/// The state of the writer thread.
struct WriterLoop {
    /// Declared before `connection`, so that it is dropped first: SQLite checkpoints the whole WAL
    /// when the last connection closes, and that should be the writer's.
    checkpointer: Checkpointer,
    /// Declared before `connection` for the same reason.
    shared: WriterShared,
    path: PathBuf,
    connection: Option<Connection>,
    acknowledge: Acknowledge,
    schema_policy: SchemaPolicy,
}

/// The newest event of each account that has new ones.
type NewestSeqs = Vec<(AccountId, u64)>;

/// Where a batch failed.
enum BatchError {
    /// Before any of its writes ran.
    NotBegun(StoreError),
    /// In one of its writes; nothing was committed.
    WriteFailed(StoreError),
    /// At the commit, whose outcome may be unknown.
    CommitFailed(StoreError, NewestSeqs),
}

impl BatchError {
    fn is_full(&self) -> bool {
        let (Self::NotBegun(error) | Self::WriteFailed(error) | Self::CommitFailed(error, _)) =
            self;
        matches!(error, StoreError::Full(_))
    }
}

impl WriterLoop {
    fn run(&mut self, queue: &Receiver<Box<dyn QueuedWrite>>) {
        let mut writes = Vec::with_capacity(MAX_BATCH_WRITES);
        while let Some(first) = self.next(queue) {
            writes.push(first);
            writes.extend(queue.try_iter().take(MAX_BATCH_WRITES - 1));
            // A panic must not end the thread. Whether it came before or after the commit is unknown.
            if catch_unwind(AssertUnwindSafe(|| self.run_batch(&mut writes))).is_err() {
                self.connection = None;
                let error = StoreError::OutcomeUnknown(Arc::new(WriteError::Panicked));
                self.fail(&mut writes, error);
            }
        }
    }

    /// Waits for the next write; `None` once the queue is closed.
    fn next(&mut self, queue: &Receiver<Box<dyn QueuedWrite>>) -> Option<Box<dyn QueuedWrite>> {
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
    fn run_batch(&mut self, writes: &mut Vec<Box<dyn QueuedWrite>>) {
        // Drop writes whose caller cancelled before they began.
        writes.retain(|write| !write.is_cancelled());
        self.refuse_without_space(writes);
        if writes.is_empty() {
            return;
        }
        let mut outcome = self.run_and_commit(writes);
        let is_full = outcome.as_ref().is_err_and(BatchError::is_full);
        if is_full
            && writes.iter().all(|write| write.uses_reserve())
            && self.shared.space.release_reserve()
        {
            self.roll_back();
            outcome = self.run_and_commit(writes);
        }
        match outcome {
            Ok(newest_seqs) => self.acknowledge(writes, &newest_seqs),
            Err(BatchError::WriteFailed(_)) if writes.len() > 1 => {
                for write in std::mem::take(writes) {
                    self.run_batch(&mut vec![write]);
                }
            }
            Err(BatchError::NotBegun(error)) => self.fail(writes, error),
            // The failure of a single write says nothing about the next one, unless the disk fails.
            Err(BatchError::WriteFailed(
                error @ (StoreError::Full(_) | StoreError::Unavailable(_)),
            )) => {
                self.fail(writes, error);
            }
            Err(BatchError::WriteFailed(error)) => respond_all(writes, &Err(error)),
            Err(BatchError::CommitFailed(error, newest_seqs)) => {
                self.fail(writes, error);
                // Subscribers read the store to find out what the outcome is.
                self.shared.event_notifier.notify(&newest_seqs);
                // After a failed sync the state on disk is unknown; a new connection recovers it.
                self.connection = None;
            }
        }
    }

    /// Refuses the writes of clients while the disk is almost full.
    fn refuse_without_space(&self, writes: &mut Vec<Box<dyn QueuedWrite>>) {
        let Err(error) = self.shared.space.check() else { return };
        let (operator, mut clients) =
            std::mem::take(writes).into_iter().partition(|write| write.uses_reserve());
        *writes = operator;
        respond_all(&mut clients, &Err(error));
    }

    fn acknowledge(&mut self, writes: &mut Vec<Box<dyn QueuedWrite>>, newest_seqs: &NewestSeqs) {
        self.shared.health.record(&Ok(()));
        respond_all(writes, &Ok(()));
        self.shared.event_notifier.notify(newest_seqs);
        if let Some(connection) = &self.connection
            && let Err(error) = self.checkpointer.after_commit(connection)
        {
            tracing::warn!(%error, "WAL checkpoint failed");
        }
    }

    fn fail(&self, writes: &mut Vec<Box<dyn QueuedWrite>>, error: StoreError) {
        let outcome = Err(error);
        self.shared.health.record(&outcome);
        respond_all(writes, &outcome);
    }

    fn run_and_commit(
        &mut self,
        writes: &mut Vec<Box<dyn QueuedWrite>>,
    ) -> Result<NewestSeqs, BatchError> {
        self.shared.point_readers.end_idle_transactions();
        let begun = self.shared.files.check().and_then(|()| begin(self.connection()?));
        begun.map_err(BatchError::NotBegun)?;
        let run = self.connection().and_then(|connection| run_all(connection, writes));
        let newest_seqs = run.map_err(|error| {
            self.roll_back();
            BatchError::WriteFailed(error)
        })?;
        // Kill test only, see `Acknowledge::BeforeCommit`.
        if self.acknowledge != Acknowledge::AfterCommit {
            writes.drain(..).for_each(|write| write.respond(Ok(())));
            std::thread::sleep(Duration::from_millis(20));
        }
        match self.commit() {
            Ok(()) => Ok(newest_seqs),
            Err(error) => Err(BatchError::CommitFailed(error, newest_seqs)),
        }
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let point_readers = Arc::clone(&self.shared.point_readers);
        let connection = self.connection()?;
        point_readers.before_commit();
        let committed =
            connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        point_readers.after_commit();
        // Checked again after the commit: a write is acknowledged only if it is in the file that
        // the next start opens.
        let committed = committed.map_err(StoreError::from);
        committed.and_then(|_| self.shared.files.check()).map_err(|error| match error {
            StoreError::Unavailable(cause)
            | StoreError::Damaged(cause)
            | StoreError::Failed(cause) => StoreError::OutcomeUnknown(cause),
            // SQLite detects a full disk before it writes the commit record: nothing was written.
            other => other,
        })
    }

    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        if self.connection.is_none() {
            self.shared.files.check()?;
            self.connection = Some(connection::open_for_writing(&self.path, self.schema_policy)?);
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

fn respond_all(writes: &mut Vec<Box<dyn QueuedWrite>>, outcome: &Result<(), StoreError>) {
    for write in writes.drain(..) {
        write.respond(outcome.as_ref().copied().map_err(StoreError::shared));
    }
}

/// Takes the write lock; waits up to the busy timeout if another process holds it.
fn begin(connection: &Connection) -> Result<(), StoreError> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    Ok(())
}

fn run_all(
    connection: &Connection,
    writes: &mut [Box<dyn QueuedWrite>],
) -> Result<NewestSeqs, StoreError> {
    let mut batch = Batch::new(connection)?;
    for write in writes {
        // A panic in one write must not end the writer thread.
        let run = catch_unwind(AssertUnwindSafe(|| write.run(&mut batch)));
        run.unwrap_or_else(|_| Err(StoreError::Failed(Arc::new(WriteError::Panicked))))?;
    }
    batch.close()
}

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("the writer thread has stopped")]
    Stopped,
    #[error("the write panicked")]
    Panicked,
    #[error("no ids are left")]
    OutOfIds,
}

fn stopped() -> StoreError {
    StoreError::Unavailable(Arc::new(WriteError::Stopped))
}

fn out_of_ids() -> StoreError {
    StoreError::Failed(Arc::new(WriteError::OutOfIds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert_phone(batch: &mut Batch<'_>, name: &str) -> Result<(), StoreError> {
        let insert = "INSERT INTO phone (id, account_id, created_at) VALUES (?1, 1, 0)";
        batch.connection().execute(insert, [name])?;
        Ok(())
    }

    #[tokio::test]
    async fn a_failing_or_panicking_write_does_not_fail_its_batch() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        connection::create_if_missing(&path, false).unwrap();
        let connection = connection::open_for_writing(&path, SchemaPolicy::Migrate).unwrap();
        let account = "INSERT INTO account VALUES (1, 'a', 'v1', 'auto', 1, 0, NULL, 0, NULL, 0)";
        connection.execute(account, []).unwrap();
        let files = Arc::new(OpenFiles::of(&path).unwrap());
        let shared = WriterShared {
            point_readers: Arc::new(PointReaders::of(Arc::clone(&files))),
            event_notifier: Arc::default(),
            files,
            space: Arc::new(DiskSpace::of(&path, 0, false)),
            health: Arc::new(WriteHealth::new()),
        };
        let writer =
            Writer::start(path.clone(), connection, shared, &SqliteOptions::default()).unwrap();
        // The writes queue up while another connection holds the lock; the first may be ahead of
        // the rest.
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let (one, two, three, four, ()) = tokio::join!(
            writer.write(|batch| insert_phone(batch, "one")),
            writer.write(|batch| -> Result<(), StoreError> {
                insert_phone(batch, "before the panic")?;
                panic!("a bug")
            }),
            writer.write(|batch| {
                insert_phone(batch, "before the error")?;
                Ok(batch.connection().execute("INSERT INTO nowhere VALUES (1)", [])?)
            }),
            writer.write(|batch| insert_phone(batch, "two")),
            async { other.execute_batch("ROLLBACK").unwrap() },
        );
        assert!(one.is_ok() && four.is_ok());
        assert!(matches!(two, Err(StoreError::Failed(_))), "{two:?}");
        assert!(matches!(three, Err(StoreError::Failed(_))), "{three:?}");
        let mut rows = other.prepare("SELECT id FROM phone ORDER BY id").unwrap();
        let stored: Vec<String> =
            rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(stored, ["one", "two"]);
    }
}
