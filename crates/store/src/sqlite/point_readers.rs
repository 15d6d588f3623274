//! Point reads that share read transactions and a template cache between commits.
//!
//! To begin and end a read transaction costs more than the read itself, so reads share one until
//! the next commit, and templates stay in a cache until then.
//!
//! Validity depends on one counter. The writer increments it before and after every commit, so it
//! is odd during a commit. A transaction that begins then may or may not see the commit; it serves
//! a single read and nothing from it is cached, otherwise a reader could see the new state and
//! later the old one. Commits of other processes (the command line) are polled every millisecond;
//! within that time, one reader may see such a commit and the next may not.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::{Connection, params};

use super::{
    buffered_index::Hash, open_files::OpenFiles, reader_pool::lock, template_cache::TemplateCache,
};
use crate::{
    NameConflict, StoreError, StoredTemplate, creates::KeyOwner, encoding::key, engine::Dialect,
    templates,
};

/// How often to poll for commits of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The connections of point reads, and the cache of what they read.
pub(super) struct PointReaders {
    idle: Mutex<Vec<Reader>>,
    /// Twice the number of known commits, plus one while a commit is in progress.
    commits: AtomicU64,
    other_processes: Mutex<CommitPoller>,
    cache: TemplateCache,
    /// Declared last: closed after all connections.
    files: Arc<OpenFiles>,
}

struct Reader {
    connection: Connection,
    /// The commit counter of the open transaction: it sees all commits up to this one.
    open: Option<u64>,
}

/// Detects commits of other processes.
#[derive(Default)]
struct CommitPoller {
    connection: Option<Connection>,
    /// SQLite's `data_version`, which changes with every commit.
    version: i64,
    polled_at: Option<Instant>,
}

impl PointReaders {
    pub(super) fn of(files: Arc<OpenFiles>) -> Self {
        Self {
            files,
            idle: Mutex::default(),
            commits: AtomicU64::new(0),
            other_processes: Mutex::default(),
            cache: TemplateCache::default(),
        }
    }

    /// Reads one template, from the cache if possible.
    pub(super) fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError> {
        let commits = self.commits()?;
        let may_cache = !is_committing(commits);
        if may_cache && let Some(found) = self.cache.get(commits, account, id) {
            return Ok(Some(found));
        }
        let found = self.read_at(commits, |connection| template(connection, account, id))?;
        let found = found.map(Arc::new);
        if may_cache && let Some(template) = &found {
            self.cache.insert(commits, account, template);
        }
        Ok(found)
    }

    /// Runs a read on the calling thread.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.read_at(self.commits()?, work)
    }

    /// Runs a read that sees at least all commits up to this one.
    fn read_at<T>(
        &self,
        commits: u64,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = lock(&self.idle).pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => Reader { connection: self.files.open_for_reading()?, open: None },
        };
        reader.ensure_at(commits)?;
        let outcome = work(&reader.connection);
        if outcome.is_err() || is_committing(commits) {
            reader.end()?;
        }
        // An outdated transaction would only keep the WAL from restarting. Checked under the lock:
        // a commit that happens now finds the reader among the idle ones and ends it.
        let mut idle = lock(&self.idle);
        if self.commits.load(Ordering::Acquire) != commits {
            reader.end()?;
        }
        idle.push(reader);
        drop(idle);
        outcome
    }

    /// The commit counter, including commits of other processes.
    fn commits(&self) -> Result<u64, StoreError> {
        self.files.ensure_present()?;
        let mut poller = lock(&self.other_processes);
        let now = Instant::now();
        if poller.polled_at.is_none_or(|polled_at| now - polled_at >= POLL_INTERVAL) {
            if poller.has_new_commits(&self.files)? {
                self.commits.fetch_add(2, Ordering::AcqRel);
            }
            poller.polled_at = Some(now);
        }
        Ok(self.commits.load(Ordering::Acquire))
    }

    /// Runs the writer's commit, successful or not, which is acknowledged afterwards.
    pub(super) fn during_commit<T>(&self, commit: impl FnOnce() -> T) -> T {
        /// Ends the commit, also if it panics.
        struct Commit<'r>(&'r PointReaders);
        impl Drop for Commit<'_> {
            fn drop(&mut self) {
                self.0.commits.fetch_add(1, Ordering::AcqRel);
                self.0.cache.clear();
                self.0.end_idle_transactions();
            }
        }
        self.commits.fetch_add(1, Ordering::AcqRel);
        let _commit = Commit(self);
        commit()
    }

    /// Ends the transactions of idle readers: they would keep the WAL from being checkpointed and
    /// from restarting.
    pub(super) fn end_idle_transactions(&self) {
        lock(&self.idle).retain_mut(|reader| reader.end().is_ok());
    }
}

fn is_committing(commits: u64) -> bool {
    !commits.is_multiple_of(2)
}

impl CommitPoller {
    /// Whether this or another process has committed since the last poll.
    fn has_new_commits(&mut self, files: &OpenFiles) -> Result<bool, StoreError> {
        let connection = match &self.connection {
            Some(connection) => connection,
            None => self.connection.insert(files.open_for_reading()?),
        };
        let mut query = connection.prepare_cached("PRAGMA data_version")?;
        let version = query.query_row([], |row| row.get(0))?;
        Ok(std::mem::replace(&mut self.version, version) != version)
    }
}

impl Reader {
    /// Begins a new transaction unless the open one belongs to `commits`.
    fn ensure_at(&mut self, commits: u64) -> Result<(), StoreError> {
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

/// The conflict with the template that the index of names has for the unique key, if it still holds
/// it. Its id is revealed only to its own account.
pub(super) fn name_conflict(
    connection: &Connection,
    account: AccountId,
    id: Option<TemplateId>,
    unique_key: Hash,
) -> Result<Option<NameConflict>, StoreError> {
    let Some(id) = id else { return Ok(None) };
    let mut query = connection
        .prepare_cached("SELECT id, account_id FROM template WHERE id = ?1 AND unique_key = ?2")?;
    let mut rows = query.query(params![key(id.get()), unique_key])?;
    let owner = rows.next()?.map(KeyOwner::read).transpose()?;
    Ok(owner.map(|owner| owner.conflict_for(account)))
}

/// One template with its newest version; deleted templates are not found.
pub(super) fn template(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    let mut query = connection.prepare_cached(templates::select_one(Dialect::Sqlite))?;
    let mut rows = query.query(params![key(id.get()), key(account.get())])?;
    rows.next()?.map(templates::stored).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_during_a_commit_does_not_reuse_an_earlier_snapshot() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = wal; CREATE TABLE t (n); INSERT INTO t VALUES (1)",
            )
            .unwrap();
        let point_readers = PointReaders::of(Arc::new(OpenFiles::of(&path).unwrap()));
        let read = || {
            let select = |connection: &Connection| {
                Ok(connection.query_row("SELECT n FROM t", [], |row| row.get::<_, i64>(0))?)
            };
            point_readers.read(select).unwrap()
        };
        assert_eq!(read(), 1);
        point_readers.during_commit(|| {
            assert_eq!(read(), 1);
            writer.execute("UPDATE t SET n = 2", []).unwrap();
            assert_eq!(read(), 2);
        });
        assert_eq!(read(), 2);
    }
}
