//! Point reads. To begin and to end a read transaction costs more than the read itself, so that
//! reads which follow each other closely share one, as long as nothing was committed meanwhile.
//!
//! What this process has acknowledged is always seen: every commit raises a number, and a
//! transaction from before it is not used again. What another process commits (the command line)
//! is seen a moment later at most.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::connection;
use crate::StoreError;

/// How long a transaction is shared.
const MOMENT: Duration = Duration::from_millis(1);

/// The connections that point reads run on.
pub(super) struct Snapshots {
    path: PathBuf,
    idle: Mutex<Vec<Reader>>,
    /// How often this process has committed.
    commits: AtomicU64,
}

struct Reader {
    connection: Connection,
    open: Option<Open>,
}

/// A transaction that shows everything up to this commit.
struct Open {
    commits: u64,
    since: Instant,
}

impl Snapshots {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), idle: Mutex::default(), commits: AtomicU64::new(0) }
    }

    /// Runs a read right here.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let commits = self.commits.load(Ordering::Acquire);
        let idle = self.idle().pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => Reader { connection: connection::open_for_reading(&self.path)?, open: None },
        };
        reader.show(commits)?;
        let outcome = work(&reader.connection);
        // A transaction that is out of date would only keep the log from beginning anew.
        if outcome.is_err() || self.commits.load(Ordering::Acquire) != commits {
            reader.end()?;
        }
        self.idle().push(reader);
        outcome
    }

    /// To be called after a commit and before it is acknowledged.
    pub(super) fn note_commit(&self) {
        self.commits.fetch_add(1, Ordering::Release);
        self.end_idle();
    }

    /// Ends the transactions that nobody is reading in: they would keep the log from being folded
    /// and from beginning anew.
    pub(super) fn end_idle(&self) {
        self.idle().retain_mut(|reader| reader.end().is_ok());
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// Makes sure that whatever is read now is no older than `commits`, and than a moment.
    fn show(&mut self, commits: u64) -> Result<(), StoreError> {
        let now = Instant::now();
        let fresh = |open: &Open| open.commits == commits && now - open.since < MOMENT;
        if !self.open.as_ref().is_some_and(fresh) {
            self.end()?;
            self.connection.prepare_cached("BEGIN")?.execute([])?;
            self.open = Some(Open { commits, since: now });
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), StoreError> {
        if self.open.take().is_some() {
            self.connection.prepare_cached("COMMIT")?.execute([])?;
        }
        Ok(())
    }
}
