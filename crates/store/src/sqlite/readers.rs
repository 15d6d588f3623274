//! Reads that take longer than a point read, and the one that follows the events for the search:
//! they run aside, on connections of their own.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{connection, follow::Indexer, list};
use crate::{Indexing, Listing, Page, StoreError};

/// How many longer reads run at once, and how many connections are kept for the next ones.
const MOST_ASIDE: usize = 8;

/// The readers of a store and of the words beside it.
pub(super) struct Readers {
    store: PathBuf,
    words: PathBuf,
    idle: Mutex<Vec<Connection>>,
    idle_words: Mutex<Vec<Connection>>,
    /// How many may run aside at once: more would only wait for the disk, and hold memory.
    places: Semaphore,
    indexer: Mutex<Option<Indexer>>,
    /// Somebody could not make sense of the words: they are to be made anew.
    words_are_damaged: AtomicBool,
}

impl Readers {
    pub(super) fn of(store: &Path) -> Self {
        let mut words = store.as_os_str().to_owned();
        words.push("-search");
        Self {
            store: store.to_owned(),
            words: words.into(),
            idle: Mutex::default(),
            idle_words: Mutex::default(),
            places: Semaphore::new(MOST_ASIDE),
            indexer: Mutex::default(),
            words_are_damaged: AtomicBool::new(false),
        }
    }

    /// Runs a read on a connection of its own.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        lend(&self.idle, &self.store, work)
    }

    /// A page of a list. Words that nothing has followed yet are found nowhere.
    pub(super) fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.read(|store| {
            if listing.words.is_empty() || !self.words.exists() {
                return list::page(store, None, listing);
            }
            let page = lend(&self.idle_words, &self.words, |words| {
                list::page(store, Some(words), listing)
            });
            self.note_damage(&page);
            page
        })
    }

    fn note_damage<T>(&self, outcome: &Result<T, StoreError>) {
        if matches!(outcome, Err(StoreError::Failed(_))) {
            self.words_are_damaged.store(true, Ordering::Relaxed);
        }
    }

    /// One step of the one that keeps the words up to date.
    pub(super) fn follow_for_search(&self) -> Result<Indexing, StoreError> {
        let mut desk = lock(&self.indexer);
        if self.words_are_damaged.swap(false, Ordering::Relaxed) {
            tracing::warn!("the index of words is damaged and is made anew");
            *desk = None;
            self.remove_words()?;
        }
        let step = self.step(&mut desk);
        self.note_damage(&step);
        step
    }

    fn step(&self, desk: &mut Option<Indexer>) -> Result<Indexing, StoreError> {
        let indexer = match desk {
            Some(indexer) => indexer,
            none => none.insert(Indexer::new(
                connection::open_words(&self.words)?,
                connection::open_for_reading(&self.store)?,
            )?),
        };
        indexer.step()
    }

    fn remove_words(&self) -> Result<(), StoreError> {
        lock(&self.idle_words).clear();
        for ending in ["", "-wal", "-shm"] {
            let mut file = self.words.as_os_str().to_owned();
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

/// Runs work that takes longer than others should wait, on a thread for such.
pub(super) async fn aside<T: Send + 'static>(
    readers: &Arc<Readers>,
    work: impl FnOnce(&Readers) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    // Never closed: the readers live as long as anybody who waits here.
    let _place = readers.places.acquire().await;
    let readers = Arc::clone(readers);
    match tokio::task::spawn_blocking(move || work(&readers)).await {
        Ok(outcome) => outcome,
        Err(error) => Err(StoreError::Failed(Arc::new(error))),
    }
}

fn lend<T>(
    idle: &Mutex<Vec<Connection>>,
    path: &Path,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let connection = lock(idle).pop();
    let connection = match connection {
        Some(connection) => connection,
        None => connection::open_for_reading(path)?,
    };
    let outcome = work(&connection);
    let mut idle = lock(idle);
    if idle.len() < MOST_ASIDE {
        idle.push(connection);
    }
    outcome
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
