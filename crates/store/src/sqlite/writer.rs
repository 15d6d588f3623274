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
    point_readers::PointReaders,
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
        point_readers: Arc<PointReaders>,
        event_notifier: Arc<EventNotifier>,
        options: &SqliteOptions,
    ) -> Result<Self, StoreError> {
        let (queue, receiver) = sync_channel(options.queue_capacity);
        let mut writer_loop = WriterLoop {
            checkpointer: Checkpointer::start(&path, options.checkpoint_pages)?,
            point_readers,
            event_notifier,
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
    /// one run is committed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Batch<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, response) = oneshot::channel();
        let write = Box::new(Write { work, result: None, reply });
        let queue = self.queue.as_ref().expect("open until the writer is dropped");
        match queue.try_send(write) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(StoreError::Busy),
            Err(TrySendError::Disconnected(_)) => return Err(stopped()),
        }
        // Without a reply nothing was committed, so the outcome is known: the writer replies right
        // after `COMMIT`, and if its thread panics before that, SQLite rolls back when the
        // connection closes.
        response.await.unwrap_or_else(|_| Err(stopped()))
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
    fn respond(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Write<T, W> {
    work: W,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
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

    fn respond(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { result, reply, .. } = *self;
        // The caller may have cancelled since; the committed write stays.
        let _ = reply.send(outcome.and_then(|()| result.ok_or_else(stopped)));
    }
}

/// The state of the writer thread.
struct WriterLoop {
    /// Declared before `connection`, so that it is dropped first: SQLite checkpoints the whole WAL
    /// when the last connection closes, and that should be the writer's.
    checkpointer: Checkpointer,
    /// The connections of point reads and the cache of what they read. Declared before `connection`
    /// for the same reason.
    point_readers: Arc<PointReaders>,
    event_notifier: Arc<EventNotifier>,
    path: PathBuf,
    connection: Option<Connection>,
    acknowledge: Acknowledge,
    schema_policy: SchemaPolicy,
}

impl WriterLoop {
    fn run(&mut self, queue: &Receiver<Box<dyn QueuedWrite>>) {
        let mut writes = Vec::with_capacity(MAX_BATCH_WRITES);
        while let Some(first) = self.next(queue) {
            writes.push(first);
            writes.extend(queue.try_iter().take(MAX_BATCH_WRITES - 1));
            self.run_batch(&mut writes);
        }
    }

    /// Waits for the next write; `None` once the queue is closed.
    fn next(&mut self, queue: &Receiver<Box<dyn QueuedWrite>>) -> Option<Box<dyn QueuedWrite>> {
        match queue.recv_timeout(IDLE_AFTER) {
            Ok(write) => return Some(write),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.point_readers.end_idle_transactions();
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
        if writes.is_empty() {
            return;
        }
        self.point_readers.end_idle_transactions();
        let started = self.connection().and_then(|connection| begin(connection));
        if let Err(error) = started {
            return respond_all(writes, &Err(error));
        }
        let outcome = self.connection().and_then(|connection| run_all(connection, writes));
        match outcome {
            Ok(newest_seqs) => self.commit_and_respond(writes, &newest_seqs),
            Err(_) if writes.len() > 1 => {
                self.roll_back();
                for write in std::mem::take(writes) {
                    self.run_batch(&mut vec![write]);
                }
            }
            Err(error) => {
                self.roll_back();
                respond_all(writes, &Err(error));
            }
        }
    }

    fn commit_and_respond(
        &mut self,
        writes: &mut Vec<Box<dyn QueuedWrite>>,
        newest_seqs: &[(AccountId, u64)],
    ) {
        // Kill test only, see `Acknowledge::BeforeCommit`.
        if self.acknowledge != Acknowledge::AfterCommit {
            writes.drain(..).for_each(|write| write.respond(Ok(())));
            std::thread::sleep(Duration::from_millis(20));
        }
        let point_readers = Arc::clone(&self.point_readers);
        let Ok(connection) = self.connection() else { return };
        point_readers.before_commit();
        let committed =
            connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        point_readers.after_commit();
        let outcome = match committed {
            Ok(_) => Ok(()),
            // SQLite detects a full disk before it writes the commit record: nothing was written.
            Err(error) => Err(match StoreError::from(error) {
                StoreError::Full(cause) => StoreError::Full(cause),
                StoreError::Unavailable(cause) | StoreError::Failed(cause) => {
                    StoreError::OutcomeUnknown(cause)
                }
                other => other,
            }),
        };
        respond_all(writes, &outcome);
        // Also when the outcome is unknown: subscribers read the store to find out.
        self.event_notifier.notify(newest_seqs);
        if outcome.is_err() {
            // After a failed sync the state on disk is unknown; a new connection recovers it.
            self.connection = None;
        } else if let Some(connection) = &self.connection
            && let Err(error) = self.checkpointer.after_commit(connection)
        {
            tracing::warn!(%error, "WAL checkpoint failed");
        }
    }

    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        if self.connection.is_none() {
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
) -> Result<Vec<(AccountId, u64)>, StoreError> {
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
        let connection = connection::open_for_writing(&path, SchemaPolicy::Migrate).unwrap();
        let account = "INSERT INTO account VALUES (1, 'a', 'v1', 'auto', 1, 0, NULL, 0, NULL, 0)";
        connection.execute(account, []).unwrap();
        let writer = Writer::start(
            path.clone(),
            connection,
            Arc::new(PointReaders::of(&path)),
            Arc::default(),
            &SqliteOptions::default(),
        )
        .unwrap();
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
