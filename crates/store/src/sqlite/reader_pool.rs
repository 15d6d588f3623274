//! Connections and blocking threads for reads that take longer than a point read, and for the
//! search index.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::{
    buffered_index::BufferedIndexes, connection, list::List, open_files::OpenFiles, search,
    search_indexer::SearchIndexer, store_files::SEARCH_INDEX_SUFFIX,
};
use crate::{
    ListQuery, NameFilter, ReadKind, StoreError, encoding::unique_key_hash, error::failed,
    partial_file::with_suffix, read_slots::ReadSlots,
};

/// Maximum number of idle connections per file.
const MAX_IDLE_CONNECTIONS: usize = 8;

/// Instructions of SQLite's virtual machine between two checks whether a read is cancelled: a
/// fraction of a millisecond.
const CHECK_INTERVAL_INSTRUCTIONS: i32 = 1_000;

/// Maximum number of concurrent reads of background work, which belong to no account.
const MAX_BACKGROUND_READS: usize = 1;

/// Read connections to a store and to its search index.
pub(super) struct ReaderPool {
    store: ConnectionPool,
    indexes: Arc<BufferedIndexes>,
    index: ConnectionPool,
    index_path: PathBuf,
    pub(super) slots: ReadSlots,
    background_permits: Arc<Semaphore>,
    /// One permit: steps of the indexer wait for it and not for the mutex, on no thread.
    index_permits: Arc<Semaphore>,
    indexer: Mutex<Option<SearchIndexer>>,
    /// Set when a read finds the search index corrupt; the next indexer run rebuilds it.
    index_is_corrupt: AtomicBool,
    /// Declared last: closed after all connections.
    files: Arc<OpenFiles>,
}

impl ReaderPool {
    pub(super) fn of(store: &Path, files: Arc<OpenFiles>, indexes: Arc<BufferedIndexes>) -> Self {
        Self {
            files,
            indexes,
            store: ConnectionPool::default(),
            index: ConnectionPool::default(),
            index_path: with_suffix(store, SEARCH_INDEX_SUFFIX),
            slots: ReadSlots::in_process(),
            background_permits: Arc::new(Semaphore::new(MAX_BACKGROUND_READS)),
            index_permits: Arc::new(Semaphore::new(1)),
            indexer: Mutex::default(),
            index_is_corrupt: AtomicBool::new(false),
        }
    }

    /// Runs a read on a pooled connection to the store.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let caller = Arc::new(());
        self.cancellable_read(&Cancellation::of(&caller), work)
    }

    /// Runs a read on a pooled connection to the store, until it is cancelled.
    pub(super) fn cancellable_read<T>(
        &self,
        cancellation: &Cancellation,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.files.ensure_present()?;
        self.store.with_connection(|| self.files.open_for_reading(), cancellation, work)
    }

    /// Runs a read on the store and on the search index, if it is built.
    pub(super) fn read_with_index<T>(
        &self,
        cancellation: &Cancellation,
        work: impl FnOnce(&Connection, Option<&Connection>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.cancellable_read(cancellation, |store| {
            if !self.index_path.exists() {
                return work(store, None);
            }
            let open = || connection::open_for_reading(&self.index_path);
            let found = self.index.with_connection(open, cancellation, |index| {
                let is_built = search::layout(index)? == search::LAYOUT;
                work(store, is_built.then_some(index))
            });
            self.note_corruption(&found);
            found
        })
    }

    /// The right to run a read of background work, which has a limit of its own.
    pub(super) async fn background_slot(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        Arc::clone(&self.background_permits).acquire_owned().await
    }

    /// Runs a step of the search indexer, which the first step opens.
    fn run_indexer<T>(
        &self,
        step: impl FnOnce(&mut SearchIndexer) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut indexer = lock(&self.indexer);
        if self.index_is_corrupt.swap(false, Ordering::Relaxed) {
            tracing::warn!("the search index is corrupt and will be rebuilt");
            *indexer = None;
            self.index.remove(&self.index_path)?;
        }
        let outcome = match &mut *indexer {
            Some(indexer) => step(indexer),
            none => SearchIndexer::open(&self.index_path, &self.files)
                .and_then(|opened| step(none.insert(opened))),
        };
        self.note_corruption(&outcome);
        outcome
    }

    fn note_corruption<T>(&self, outcome: &Result<T, StoreError>) {
        if let Err(StoreError::Damaged(cause)) = outcome
            && let Some(error) = cause.downcast_ref::<rusqlite::Error>()
            && matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
            )
        {
            self.index_is_corrupt.store(true, Ordering::Relaxed);
        }
    }
}

/// Reads a list on a blocking thread, with the search index if the list needs it and the index is
/// built. Dropping the future cancels the read.
pub(super) async fn search<T: Send + 'static>(
    readers: &Arc<ReaderPool>,
    kind: ReadKind,
    query: ListQuery,
    read: fn(&List<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let slot = readers.slots.acquire(kind, query.account).await?;
    let work = move |readers: &ReaderPool, cancellation: &Cancellation| {
        let name = match &query.name {
            Some(NameFilter::UniqueKey(name)) => {
                Some(readers.indexes.names.lookup(unique_key_hash(name)))
            }
            Some(NameFilter::TranslationGroup(_)) | None => None,
        };
        let read = |store: &Connection, index: Option<&Connection>| {
            // All statements read from one snapshot.
            let _snapshot = store.unchecked_transaction()?;
            read(&List { store, index, query: &query, name })
        };
        if query.words.is_empty() {
            return readers.cancellable_read(cancellation, |store| read(store, None));
        }
        readers.read_with_index(cancellation, read)
    };
    run_with_slot(readers, slot, work).await
}

/// Runs a step of the search indexer on a blocking thread. Takes no slot from other reads. A step
/// that has begun is completed, even if the caller is gone.
pub(super) async fn run_indexing<T: Send + 'static>(
    readers: &Arc<ReaderPool>,
    step: impl FnOnce(&mut SearchIndexer) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let permit = Arc::clone(&readers.index_permits).acquire_owned().await;
    run_with_slot(readers, permit, |readers, _| readers.run_indexer(step)).await
}

/// Runs a read on a blocking thread. Dropping the future cancels it.
pub(super) async fn run_with_slot<T: Send + 'static>(
    readers: &Arc<ReaderPool>,
    slot: impl Send + 'static,
    work: impl FnOnce(&ReaderPool, &Cancellation) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (readers, caller) = (Arc::clone(readers), Arc::new(()));
    let cancellation = Cancellation::of(&caller);
    let work = move || {
        // Held until the work is done, even if the caller is gone.
        let _slot = slot;
        if cancellation.is_cancelled() {
            return Err(failed("the caller of the read is gone"));
        }
        work(&readers, &cancellation)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(StoreError::Failed(Arc::new(error))),
    }
}

/// Ends a read on a blocking thread when its caller is gone: the request has reached its deadline, or
/// the client has closed the connection.
#[derive(Clone)]
pub(super) struct Cancellation {
    caller: Weak<()>,
}

impl Cancellation {
    /// Cancels a read when its caller drops this value. Harmless once the read has ended.
    fn of(caller: &Arc<()>) -> Self {
        Self { caller: Arc::downgrade(caller) }
    }

    fn is_cancelled(&self) -> bool {
        self.caller.strong_count() == 0
    }
}

/// Idle read connections to one file.
#[derive(Default)]
struct ConnectionPool {
    idle: Mutex<IdleConnections>,
}

#[derive(Default)]
struct IdleConnections {
    connections: Vec<Connection>,
    /// Incremented when the file is removed; connections opened before are discarded.
    generation: u64,
}

impl ConnectionPool {
    fn with_connection<T>(
        &self,
        open: impl FnOnce() -> Result<Connection, StoreError>,
        cancellation: &Cancellation,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (connection, generation) = {
            let mut idle = lock(&self.idle);
            (idle.connections.pop(), idle.generation)
        };
        let mut connection = connection.map_or_else(open, Ok)?;
        // Its statements fail once the read is cancelled; those of the connection's next user do not.
        let cancellation = cancellation.clone();
        let is_cancelled = move || cancellation.is_cancelled();
        connection.progress_handler(CHECK_INTERVAL_INSTRUCTIONS, Some(is_cancelled))?;
        let outcome = work(&connection);
        connection.progress_handler(0, None::<fn() -> bool>)?;
        let mut idle = lock(&self.idle);
        if idle.generation == generation && idle.connections.len() < MAX_IDLE_CONNECTIONS {
            idle.connections.push(connection);
        }
        outcome
    }

    /// Removes the file with its WAL and shared-memory files.
    fn remove(&self, path: &Path) -> Result<(), StoreError> {
        let mut idle = lock(&self.idle);
        idle.connections.clear();
        idle.generation += 1;
        for suffix in ["", "-wal", "-shm"] {
            match std::fs::remove_file(with_suffix(path, suffix)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
