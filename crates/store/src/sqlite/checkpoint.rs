//! Background WAL checkpoints.
//!
//! SQLite's automatic checkpoint runs inside a commit, and all writers would wait for thousands of
//! pages. Here a separate thread copies them while commits continue. The writer itself checkpoints
//! the few pages written meanwhile, so that the WAL restarts and stays small. When the writer is
//! idle, smaller amounts are checkpointed too, because reads from the database file are faster than
//! reads from the WAL.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

use rusqlite::Connection;

use super::connection;
use crate::StoreError;

/// WAL pages that trigger a checkpoint: 64 MiB. With more pages, more of them are versions of the
/// same page, of which only the last is copied.
pub(super) const DEFAULT_CHECKPOINT_PAGES: u32 = 16_000;

/// WAL pages that trigger a checkpoint while the writer is idle.
const IDLE_CHECKPOINT_PAGES: i64 = 100;

/// A handle to the checkpoint thread. When it is dropped, the thread finishes its checkpoint and
/// exits.
pub(super) struct Checkpointer {
    start: Option<SyncSender<()>>,
    /// Set when the thread has finished, so that the writer checkpoints the remaining pages.
    finished: Arc<AtomicBool>,
    is_running: bool,
    min_pages: i64,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(path: &Path, min_pages: u32) -> Result<Self, StoreError> {
        let connection = connection::open_for_checkpoints(path)?;
        let (start, requests) = sync_channel(1);
        let finished = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&finished);
        let work = move || {
            while let Ok(()) = requests.recv() {
                // A panic must not end the thread, or the WAL would grow without bounds.
                match catch_unwind(AssertUnwindSafe(|| checkpoint(&connection))) {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::warn!(%error, "WAL checkpoint failed"),
                    Err(_) => tracing::error!("WAL checkpoint panicked"),
                }
                done.store(true, Ordering::Release);
            }
        };
        let thread = std::thread::Builder::new().name("galley-wal-ckpt".to_owned()).spawn(work);
        let thread = thread.map_err(|error| StoreError::Unavailable(Arc::new(error)))?;
        let min_pages = i64::from(min_pages);
        Ok(Self {
            start: Some(start),
            finished,
            is_running: false,
            min_pages,
            thread: Some(thread),
        })
    }

    /// Called by the writer after each commit.
    pub(super) fn after_commit(&mut self, writer: &Connection) -> Result<(), StoreError> {
        if self.is_running {
            if self.finished.swap(false, Ordering::Acquire) {
                self.is_running = false;
                checkpoint(writer)?;
            }
            return Ok(());
        }
        let (pages, checkpointed) = wal_pages(writer)?;
        if pages - checkpointed >= self.min_pages {
            self.begin();
        } else if pages >= 2 * self.min_pages {
            // Everything is checkpointed, but whenever the WAL could have restarted, a reader was
            // still using it.
            checkpoint(writer)?;
        }
        Ok(())
    }

    /// Called by the writer when it becomes idle.
    pub(super) fn when_idle(&mut self, writer: &Connection) -> Result<(), StoreError> {
        let (pages, checkpointed) = wal_pages(writer)?;
        if !self.is_running && pages - checkpointed >= IDLE_CHECKPOINT_PAGES {
            self.begin();
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.is_running = self.start.as_ref().is_some_and(|start| start.try_send(()).is_ok());
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.start = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Copies the pages that no reader needs; never blocks on readers or writers.
fn checkpoint(connection: &Connection) -> Result<(), StoreError> {
    connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |_| Ok(()))?;
    Ok(())
}

/// The number of pages in the WAL, and how many of them are already in the database file.
fn wal_pages(connection: &Connection) -> Result<(i64, i64), StoreError> {
    let mut query = connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
    Ok(query.query_row([], |row| Ok((row.get(1)?, row.get(2)?)))?)
}
