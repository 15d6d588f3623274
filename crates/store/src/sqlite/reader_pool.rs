//! Reads that take longer than a point read, and the one that follows the events for the search:
//! they run aside, on connections of their own.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::Semaphore;

use super::{connection, list, search, search_indexer::Indexer};
use crate::{IndexProgress, ListQuery, Page, StoreError};

/// How many longer reads run at once, and how many connections are kept for the next ones.
const MOST_ASIDE: usize = 8;

/// How many chunks of media are read at once: anybody may ask for them, and nobody who asks for
/// anything else waits behind them.
const MOST_CHUNKS: usize = 4;

/// The readers of a store and of the words beside it.
pub(super) struct Readers {
    store: Pool,
    words: Pool,
    /// More than these would only wait for the disk, and hold memory.
    places: Arc<Semaphore>,
    media_places: Arc<Semaphore>,
    indexer: Mutex<Option<Indexer>>,
    /// Somebody could not make sense of the words: they are to be made anew.
    words_are_damaged: AtomicBool,
}

impl Readers {
    pub(super) fn of(store: &Path) -> Self {
        let mut words = store.as_os_str().to_owned();
        words.push("-search");
        Self {
            store: Pool::of(store.to_owned()),
            words: Pool::of(words.into()),
            places: Arc::new(Semaphore::new(MOST_ASIDE)),
            media_places: Arc::new(Semaphore::new(MOST_CHUNKS)),
            indexer: Mutex::default(),
            words_are_damaged: AtomicBool::new(false),
        }
    }

    /// Runs a read on a connection of its own.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.store.lend(work)
    }

    /// A page of a list.
    pub(super) fn list(&self, listing: &ListQuery) -> Result<Page, StoreError> {
        self.search(listing, |store, words| list::page(store, words, listing))
    }

    /// How many templates a list has.
    pub(super) fn count(&self, listing: &ListQuery) -> Result<u64, StoreError> {
        self.search(listing, |store, words| list::count(store, words, listing))
    }

    /// Runs a read of a list, with the index of words if the list needs it and it is there. Words
    /// that nothing has followed yet are found nowhere.
    fn search<T>(
        &self,
        listing: &ListQuery,
        work: impl FnOnce(&Connection, Option<&Connection>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.read(|store| {
            if listing.words.is_empty() || !self.words.path.exists() {
                return work(store, None);
            }
            let found = self.words.lend(|words| {
                let made = search::layout(words)? == search::LAYOUT;
                work(store, made.then_some(words))
            });
            self.note_damage(&found);
            found
        })
    }

    /// One step of the one that keeps the words up to date.
    pub(super) fn update_search_index(&self) -> Result<IndexProgress, StoreError> {
        let mut desk = lock(&self.indexer);
        if self.words_are_damaged.swap(false, Ordering::Relaxed) {
            tracing::warn!("the index of words is damaged and is made anew");
            *desk = None;
            self.words.remove()?;
        }
        let step = self.step(&mut desk);
        self.note_damage(&step);
        step
    }

    fn step(&self, desk: &mut Option<Indexer>) -> Result<IndexProgress, StoreError> {
        let indexer = match desk {
            Some(indexer) => indexer,
            none => none.insert(Indexer::new(
                connection::open_words(&self.words.path)?,
                connection::open_for_reading(&self.store.path)?,
            )?),
        };
        indexer.step()
    }

    fn note_damage<T>(&self, outcome: &Result<T, StoreError>) {
        if let Err(StoreError::Failed(cause)) = outcome
            && let Some(error) = cause.downcast_ref::<rusqlite::Error>()
            && matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
            )
        {
            self.words_are_damaged.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs work that takes longer than others should wait, on a thread for such.
pub(super) async fn aside<T: Send + 'static>(
    readers: &Arc<Readers>,
    work: impl FnOnce(&Readers) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    in_place(readers, &readers.places, work).await
}

/// The same for media, which has places of its own.
pub(super) async fn aside_for_media<T: Send + 'static>(
    readers: &Arc<Readers>,
    work: impl FnOnce(&Readers) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    in_place(readers, &readers.media_places, work).await
}

async fn in_place<T: Send + 'static>(
    readers: &Arc<Readers>,
    places: &Arc<Semaphore>,
    work: impl FnOnce(&Readers) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let place = Arc::clone(places).acquire_owned().await;
    let readers = Arc::clone(readers);
    let work = move || {
        // Kept until the work is done, also when nobody waits for it any more.
        let _place = place;
        work(&readers)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(StoreError::Failed(Arc::new(error))),
    }
}

/// Connections to one file, kept for the next reads.
struct Pool {
    path: PathBuf,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    connections: Vec<Connection>,
    /// How often the file was removed: connections from before are of no use.
    removed: u64,
}

impl Pool {
    fn of(path: PathBuf) -> Self {
        Self { path, idle: Mutex::default() }
    }

    fn lend<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (connection, removed) = {
            let mut idle = lock(&self.idle);
            (idle.connections.pop(), idle.removed)
        };
        let connection = match connection {
            Some(connection) => connection,
            None => connection::open_for_reading(&self.path)?,
        };
        let outcome = work(&connection);
        let mut idle = lock(&self.idle);
        if idle.removed == removed && idle.connections.len() < MOST_ASIDE {
            idle.connections.push(connection);
        }
        outcome
    }

    /// Removes the file and what SQLite puts beside it.
    fn remove(&self) -> Result<(), StoreError> {
        let mut idle = lock(&self.idle);
        idle.connections.clear();
        idle.removed += 1;
        for ending in ["", "-wal", "-shm"] {
            let mut file = self.path.as_os_str().to_owned();
            file.push(ending);
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::Unavailable(Arc::new(error)));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
