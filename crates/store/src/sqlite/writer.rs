//! The writer thread: runs all queued writes in one transaction, syncs once, then responds to
//! each of them (group commit).
//!
//! A write that may refuse after it has changed something runs in [`Batch::with_savepoint`], so that it
//! does not affect the others. On an error, the writer rolls the whole transaction back and runs its writes again one by one, so that only the
//! failing write fails.

mod batch;
mod writer_loop;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
};

use rusqlite::Connection;
use tokio::sync::oneshot;

pub(super) use self::batch::Batch;
use self::writer_loop::WriterLoop;
use super::{SqliteOptions, open::Shared};
use crate::{
    StoreError,
    engine::Output,
    error::{cause, failed, unavailable},
};

/// Why a write fails that has found a bug.
const PANICKED: &str = "the write panicked";

/// Why a write is refused or was not answered.
const STOPPED: &str = "the writer thread has stopped";

/// A handle to the writer thread. When it is dropped, the thread runs the queued writes and exits.
pub(super) struct Writer {
    queue: Option<SyncSender<QueuedWrite>>,
    queue_depth: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        path: PathBuf,
        connection: Connection,
        shared: Arc<Shared>,
        options: &SqliteOptions,
    ) -> Result<Self, StoreError> {
        let (queue, receiver) = sync_channel(options.queue_capacity);
        let queue_depth = Arc::clone(&shared.queue_depth);
        let mut writer_loop = WriterLoop::new(path, connection, shared, options)?;
        let thread = std::thread::Builder::new()
            .name("galley-writer".to_owned())
            .spawn(move || writer_loop.run(&receiver))?;
        Ok(Self { queue: Some(queue), queue_depth, thread: Some(thread) })
    }

    /// Queues a write and waits until it is durable. `work` may run more than once, but at most
    /// one run is committed. Fails if the disk is almost full.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut Batch) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = move |batch: &mut Batch| -> Result<Output, _> { Ok(Box::new(work(batch)?)) };
        let output = self.queue(Box::new(work), false).await?;
        Ok(*output.downcast().expect("the output of this write"))
    }

    /// The same. A write that uses the reserve is a small change that an operator must be able to make on
    /// a full disk.
    pub(super) async fn queue(&self, work: Work, uses_reserve: bool) -> Result<Output, StoreError> {
        let (reply, response) = oneshot::channel();
        let write = QueuedWrite { work, output: None, reply, uses_reserve };
        let queue = self.queue.as_ref().expect("open until the writer is dropped");
        // Before the writer can take it.
        self.queue_depth.fetch_add(1, Ordering::Relaxed);
        if let Err(refused) = queue.try_send(write) {
            self.queue_depth.fetch_sub(1, Ordering::Relaxed);
            return Err(match refused {
                TrySendError::Full(_) => StoreError::Busy,
                TrySendError::Disconnected(_) => unavailable(STOPPED),
            });
        }
        // The writer replies to every write, even after a panic. Without a reply, the thread has died,
        // and whether before or after the commit is unknown.
        response.await.unwrap_or_else(|_| Err(StoreError::OutcomeUnknown(cause(STOPPED))))
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

/// The work of a write.
type Work = Box<dyn FnMut(&mut Batch) -> Result<Output, StoreError> + Send>;

/// A write in the queue.
struct QueuedWrite {
    work: Work,
    output: Option<Output>,
    reply: oneshot::Sender<Result<Output, StoreError>>,
    /// Whether it may use the disk space that is kept free for the operator.
    uses_reserve: bool,
}

impl QueuedWrite {
    /// Runs the work. A panic in it must not end the writer thread.
    fn run(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        let run = catch_unwind(AssertUnwindSafe(|| (self.work)(batch)));
        self.output = Some(run.unwrap_or_else(|_| Err(failed(PANICKED)))?);
        Ok(())
    }

    fn respond(self, outcome: Result<(), StoreError>) {
        // The caller may have cancelled since; the committed write stays.
        let _ = self.reply.send(outcome.map(|()| self.output.expect("its work was done")));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{
        EventNotifier, SchemaPolicy,
        activity::CommitCounters,
        sqlite::{
            buffered_index::BufferedIndexes, connection, disk_space::DiskSpace,
            open_files::OpenFiles, point_readers::PointReaders,
        },
    };

    fn insert_phone(batch: &mut Batch, name: &str) -> Result<(), StoreError> {
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
        let account = "INSERT INTO account (id, name, rulebook, review, takes_any_phone, \
                       created_at) VALUES (1, 'a', 'v1', 'auto', 1, 0)";
        connection.execute(account, []).unwrap();
        let files = Arc::new(OpenFiles::of(&path).unwrap());
        let shared = Arc::new(Shared {
            point_readers: PointReaders::of(Arc::clone(&files)),
            indexes: Arc::new(BufferedIndexes::new(8)),
            event_notifier: EventNotifier::default(),
            files,
            space: DiskSpace::of(&path, 0, false),
            last_batch: Mutex::default(),
            queue_depth: Arc::default(),
            commit_counters: CommitCounters::default(),
        });
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
