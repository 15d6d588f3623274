//! Opens a store, and runs its longer reads on blocking threads.

use std::{path::Path, sync::Arc};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{
    SqliteOptions, SqliteStore, connection,
    disk_space::DiskSpace,
    point_readers::PointReaders,
    reader_pool::{self, ReaderPool},
    store_files::StoreFiles,
    uploads,
    write_health::WriteHealth,
    writer::{Writer, WriterShared},
};
use crate::{EventNotifier, StoreError};

impl SqliteStore {
    /// Opens the file. Creates and migrates it as the options allow. Refuses to run with a SQLite
    /// version that can corrupt a database, and refuses a schema newer than this program.
    pub fn open(path: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        let space =
            Arc::new(DiskSpace::of(path, options.min_free_bytes, options.keeps_disk_reserve));
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
        space.restore_reserve();
        let files = Arc::new(StoreFiles::of(path)?);
        let point_readers = Arc::new(PointReaders::of(Arc::clone(&files)));
        let event_notifier = Arc::<EventNotifier>::default();
        let write_health = Arc::new(WriteHealth::new());
        let shared = WriterShared {
            point_readers: Arc::clone(&point_readers),
            event_notifier: Arc::clone(&event_notifier),
            files: Arc::clone(&files),
            space: Arc::clone(&space),
            health: Arc::clone(&write_health),
        };
        let writer = Writer::start(path.to_owned(), connection, shared, options)?;
        let readers = Arc::new(ReaderPool::of(path, Arc::clone(&files)));
        let upload_permits = Semaphore::new(uploads::MAX_QUEUED_CHUNKS);
        Ok(Self {
            readers,
            point_readers,
            event_notifier,
            upload_permits,
            files,
            space,
            write_health,
            writer,
        })
    }

    /// Runs a longer read on a blocking thread, with a connection of the pool.
    pub(super) async fn read_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        reader_pool::run_blocking(&self.readers, move |readers| readers.read(work)).await
    }
}
