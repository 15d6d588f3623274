//! Folding the write-ahead log into the file, beside the writer.
//!
//! SQLite would do it inside a commit, and everybody would wait for thousands of pages. Here a
//! thread of its own copies them while commits go on; what came in meanwhile is little, and the
//! writer folds that itself, so that the log begins anew and stays small. When nobody writes for a
//! moment, whatever there is gets folded: readers are quicker in the file than in the log.

use std::{
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

/// Pages in the log that are worth folding: 64 MiB. The more there are, the more often one page
/// stands in the log several times and is copied only once.
pub(super) const WORTH_IT: u32 = 16_000;

/// Pages that are worth folding when there is nothing else to do.
const WORTH_IT_WHEN_QUIET: i64 = 100;

/// The handle on the folding thread. When it is dropped, the thread finishes and ends.
pub(super) struct Folder {
    start: Option<SyncSender<()>>,
    /// Whether the thread has finished and the writer is to fold the rest.
    folded: Arc<AtomicBool>,
    running: bool,
    worth_it: i64,
    thread: Option<JoinHandle<()>>,
}

impl Folder {
    pub(super) fn start(path: &Path, worth_it: u32) -> Result<Self, StoreError> {
        let connection = connection::open_for_folding(path)?;
        let (start, asked) = sync_channel(1);
        let folded = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&folded);
        let work = move || {
            while let Ok(()) = asked.recv() {
                if let Err(error) = fold(&connection) {
                    tracing::warn!(%error, "the log could not be folded into the file");
                }
                done.store(true, Ordering::Release);
            }
        };
        let thread = std::thread::Builder::new().name("galley-folder".to_owned()).spawn(work);
        let thread = thread.map_err(|error| StoreError::Unavailable(Arc::new(error)))?;
        let worth_it = i64::from(worth_it);
        Ok(Self { start: Some(start), folded, running: false, worth_it, thread: Some(thread) })
    }

    /// To be called by the writer after each commit.
    pub(super) fn after_commit(&mut self, writer: &Connection) -> Result<(), StoreError> {
        if self.running {
            if self.folded.swap(false, Ordering::Acquire) {
                self.running = false;
                fold(writer)?;
            }
            return Ok(());
        }
        let (pages, folded) = pages_in_log(writer)?;
        if pages - folded >= self.worth_it {
            self.begin();
        } else if pages >= 2 * self.worth_it {
            // All is folded, but some reader was in the log whenever it could have begun anew.
            fold(writer)?;
        }
        Ok(())
    }

    /// To be called by the writer when nothing has come for a moment.
    pub(super) fn when_quiet(&mut self, writer: &Connection) -> Result<(), StoreError> {
        let (pages, folded) = pages_in_log(writer)?;
        if !self.running && pages - folded >= WORTH_IT_WHEN_QUIET {
            self.begin();
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.running = self.start.as_ref().is_some_and(|start| start.try_send(()).is_ok());
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.start = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Copies what no reader needs any more; never waits for anybody.
fn fold(connection: &Connection) -> Result<(), StoreError> {
    connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |_| Ok(()))?;
    Ok(())
}

/// How many pages the log has, and how many of them are in the file already.
fn pages_in_log(connection: &Connection) -> Result<(i64, i64), StoreError> {
    let mut look = connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
    Ok(look.query_row([], |row| Ok((row.get(1)?, row.get(2)?)))?)
}
