//! Opens a store.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicUsize},
    time::Instant,
};

use tokio::sync::Semaphore;

use super::{
    SqliteOptions, buffered_index::BufferedIndexes, connection, disk_space::DiskSpace,
    open_files::OpenFiles, point_readers::PointReaders, reader_pool::ReaderPool, store_files,
    writer::Writer,
};
use crate::{EventNotifier, StoreError, activity::CommitCounters};

/// Maximum number of queued writes that carry many bytes; all of them can be in one transaction.
const MAX_QUEUED_LARGE_WRITES: usize = 4;

/// A store in one SQLite file, with its search index in a second file beside it.
pub struct SqliteStore {
    // Dropped before the writer, so that the writer's connection is the last to close and
    // checkpoints the whole WAL.
    pub(super) readers: Arc<ReaderPool>,
    pub(super) shared: Arc<Shared>,
    /// Limits how many writes with many bytes are queued for the writer.
    pub(super) large_write_permits: Semaphore,
    pub(super) max_queued_writes: usize,
    pub(super) writer: Writer,
}

/// The outcome of the last batch of writes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LastBatch {
    #[default]
    None,
    Committed(Instant),
    Failed,
}

/// What the writer shares with the rest of the store.
pub(super) struct Shared {
    /// The connections of point reads and the cache of what they read.
    pub(super) point_readers: PointReaders,
    pub(super) indexes: Arc<BufferedIndexes>,
    pub(super) event_notifier: EventNotifier,
    pub(super) files: Arc<OpenFiles>,
    pub(super) space: DiskSpace,
    /// For readiness checks.
    pub(super) last_batch: Mutex<LastBatch>,
    /// The number of queued writes.
    pub(super) queue_depth: Arc<AtomicUsize>,
    pub(super) commit_counters: CommitCounters,
}

impl SqliteStore {
    /// Opens the file. Creates and migrates it as the options allow. Refuses to run with a SQLite
    /// version that can corrupt a database, and refuses a schema newer than this program.
    pub fn open(path: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        Self::try_open(path, options).map_err(|error| store_files::explained(path, error))
    }

    fn try_open(path: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        let space = DiskSpace::of(path, options.min_free_bytes, options.keeps_disk_reserve);
        connection::create_if_missing(path, options.new_store)?;
        let mut opened = connection::open_for_writing(path, options.schema_policy);
        // Opening needs some disk space for the WAL and its index.
        if let Err(StoreError::Full(_) | StoreError::Unavailable(_)) = &opened
            && space.is_exhausted()
            && space.release_reserve()
        {
            opened = connection::open_for_writing(path, options.schema_policy);
        }
        let connection = opened?;
        // SQLite opens a file that it cannot write for reading only.
        if connection.is_readonly("main")? {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied).into());
        }
        space.restore_reserve();
        let files = Arc::new(OpenFiles::of(path)?);
        let indexes = Arc::new(BufferedIndexes::new(options.max_buffered_entries));
        let readers = Arc::new(ReaderPool::of(path, Arc::clone(&files), Arc::clone(&indexes)));
        let shared = Arc::new(Shared {
            point_readers: PointReaders::of(Arc::clone(&files)),
            indexes,
            event_notifier: EventNotifier::default(),
            files,
            space,
            last_batch: Mutex::default(),
            queue_depth: Arc::default(),
            commit_counters: CommitCounters::default(),
        });
        let writer = Writer::start(path.to_owned(), connection, Arc::clone(&shared), options)?;
        let large_write_permits = Semaphore::new(MAX_QUEUED_LARGE_WRITES);
        let max_queued_writes = options.queue_capacity;
        Ok(Self { readers, shared, large_write_permits, max_queued_writes, writer })
    }
}
