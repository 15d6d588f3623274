//! Opens a store, and runs its longer reads on blocking threads.

use std::{path::Path, sync::Arc};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{
    SqliteOptions, SqliteStore, connection, point_readers::PointReaders, reader_pool,
    reader_pool::ReaderPool, uploads, writer::Writer,
};
use crate::{EventNotifier, StoreError};

impl SqliteStore {
    /// Opens the file. Creates and migrates it as the options allow. Refuses to run with a SQLite
    /// version that can corrupt a database, and refuses a schema newer than this program.
    pub fn open(path: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        let connection = connection::open_for_writing(path, options.schema_policy)?;
        let point_readers = Arc::new(PointReaders::of(path));
        let event_notifier = Arc::<EventNotifier>::default();
        let writer = Writer::start(
            path.to_owned(),
            connection,
            Arc::clone(&point_readers),
            Arc::clone(&event_notifier),
            options,
        )?;
        let readers = Arc::new(ReaderPool::of(path));
        let upload_permits = Semaphore::new(uploads::MAX_QUEUED_CHUNKS);
        Ok(Self { readers, point_readers, event_notifier, upload_permits, writer })
    }

    /// Runs a longer read on a blocking thread, with a connection of the pool.
    pub(super) async fn read_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        reader_pool::run_blocking(&self.readers, move |readers| readers.read(work)).await
    }
}
