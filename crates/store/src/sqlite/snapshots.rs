//! Point reads. To begin and to end a read transaction costs more than the read itself, so that
//! reads share one for as long as nothing is committed; and a template that was read stays in
//! memory for as long.
//!
//! Everything hangs on one number, raised before and after every commit, so that it is odd while
//! one is under way. Until the commit is over nobody can tell whether a transaction that begins
//! now shows it: such a transaction is used for one read and nothing of it is kept, or somebody
//! could see the new state first and the old one after it. What another process commits (the
//! command line) is looked for every millisecond, and seen so much later at most; for so long, one
//! reader may see it and the next one not yet.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::Connection;

use super::{connection, template_cache::Recent, templates};
use crate::{StoreError, StoredTemplate};

/// How long nobody looks for what other processes have committed.
const MOMENT: Duration = Duration::from_millis(1);

/// The connections that point reads run on, and what they found.
pub(super) struct Snapshots {
    path: PathBuf,
    idle: Mutex<Vec<Reader>>,
    /// Twice the commits that are known of, and one more while one is under way.
    commits: AtomicU64,
    others: Mutex<Others>,
    recent: Recent,
}

struct Reader {
    connection: Connection,
    /// A transaction is open that shows everything up to this commit.
    open: Option<u64>,
}

/// Whether another process has committed.
#[derive(Default)]
struct Others {
    connection: Option<Connection>,
    /// Moves when anybody commits.
    version: i64,
    asked_at: Option<Instant>,
}

impl Snapshots {
    pub(super) fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            idle: Mutex::default(),
            commits: AtomicU64::new(0),
            others: Mutex::default(),
            recent: Recent::default(),
        }
    }

    /// One template, from memory if it is there.
    pub(super) fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError> {
        let commits = self.commits()?;
        if is_under_way(commits) {
            let found = self.at(commits, |connection| templates::one(connection, account, id))?;
            return Ok(found.map(Arc::new));
        }
        if let Some(found) = self.recent.get(commits, account, id) {
            return Ok(Some(found));
        }
        let found = self.at(commits, |connection| templates::one(connection, account, id))?;
        Ok(found.map(|template| self.recent.keep(commits, account, template)))
    }

    /// Runs a read right here.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.at(self.commits()?, work)
    }

    /// Runs a read that shows everything up to this commit, at least.
    fn at<T>(
        &self,
        commits: u64,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => Reader { connection: connection::open_for_reading(&self.path)?, open: None },
        };
        reader.show(commits)?;
        let outcome = work(&reader.connection);
        if outcome.is_err() || is_under_way(commits) {
            reader.end()?;
        }
        // A transaction that is out of date would only keep the log from beginning anew. Looked at
        // under the lock: a commit that comes now will find it here.
        let mut idle = self.idle();
        if self.commits.load(Ordering::Acquire) != commits {
            reader.end()?;
        }
        idle.push(reader);
        drop(idle);
        outcome
    }

    /// How many commits are known of, those of other processes included.
    fn commits(&self) -> Result<u64, StoreError> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if others.asked_at.is_none_or(|asked_at| now - asked_at >= MOMENT) {
            if others.have_committed(&self.path)? {
                self.commits.fetch_add(2, Ordering::AcqRel);
            }
            others.asked_at = Some(now);
        }
        Ok(self.commits.load(Ordering::Acquire))
    }

    /// To be called right before a commit.
    pub(super) fn commit_begins(&self) {
        self.commits.fetch_add(1, Ordering::AcqRel);
    }

    /// To be called after a commit, whatever came of it, and before it is acknowledged.
    pub(super) fn commit_ended(&self) {
        self.commits.fetch_add(1, Ordering::AcqRel);
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

fn is_under_way(commits: u64) -> bool {
    !commits.is_multiple_of(2)
}

impl Others {
    /// Whether anything was committed since the last time, by this process or by another.
    fn have_committed(&mut self, path: &Path) -> Result<bool, StoreError> {
        let connection = match &self.connection {
            Some(connection) => connection,
            None => self.connection.insert(connection::open_for_reading(path)?),
        };
        let mut query = connection.prepare_cached("PRAGMA data_version")?;
        let version = query.query_row([], |row| row.get(0))?;
        Ok(std::mem::replace(&mut self.version, version) != version)
    }
}

impl Reader {
    /// Makes sure that whatever is read now is no older than `commits`.
    fn show(&mut self, commits: u64) -> Result<(), StoreError> {
        if self.open != Some(commits) {
            self.end()?;
            self.connection.prepare_cached("BEGIN")?.execute([])?;
            self.open = Some(commits);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_before_a_commit_is_not_shown_while_the_commit_is_under_way() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = wal; CREATE TABLE t (n); INSERT INTO t VALUES (1)",
            )
            .unwrap();
        let snapshots = Snapshots::of(&path);
        let read = || {
            let select = |connection: &Connection| {
                Ok(connection.query_row("SELECT n FROM t", [], |row| row.get::<_, i64>(0))?)
            };
            snapshots.read(select).unwrap()
        };
        assert_eq!(read(), 1);
        snapshots.commit_begins();
        assert_eq!(read(), 1);
        writer.execute("UPDATE t SET n = 2", []).unwrap();
        assert_eq!(read(), 2);
        snapshots.commit_ended();
        assert_eq!(read(), 2);
    }
}
