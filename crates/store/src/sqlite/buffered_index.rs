//! Indexes from hashes to template ids that are written in the order of their keys.
//!
//! Hashes are random: with many rows, every new one falls on a page of the index that no other write
//! of its transaction changes, and the whole page is written to the WAL, and later to the file. So the
//! newest entries stay in memory until there are many, and are then merged into the table in the order
//! of the hashes, a few with every transaction: several of them fall on one page.
//!
//! The entries in memory are durable without being written: the indexed row contains the hash, and
//! the table `buffered_index` tells up to which row the entries are in the table. The newer rows are
//! read again when the store is opened.
//!
//! An entry is a candidate: a lookup checks that the row still has the hash.

mod buffer;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use galley_domain::id::TemplateId;
use rusqlite::{Connection, Row, params};

pub(super) use self::buffer::Changes;
use self::buffer::{Buffer, Progress};
use crate::{StoreError, encoding::key, stored_row::StoredRow as _};

/// Number of entries in memory that starts a merge. With more, more of them fall on one page; with
/// fewer, less has to be read when the store is opened. Debug builds have fewer, so that tests with
/// few templates merge, too.
pub(super) const DEFAULT_MAX_ENTRIES: usize = if cfg!(debug_assertions) { 64 } else { 32_768 };

/// The first half of a SHA-256 hash.
pub(super) type Hash = [u8; 16];

/// The indexes of a store.
pub(super) struct BufferedIndexes {
    /// Templates by the hash of their unique key.
    pub(super) names: BufferedIndex,
    /// Idempotency records by the hash of their account and key.
    pub(super) idempotency_keys: BufferedIndex,
}

impl BufferedIndexes {
    pub(super) fn new(max_entries: usize) -> Self {
        Self {
            names: BufferedIndex::new(max_entries, &NAMES),
            idempotency_keys: BufferedIndex::new(max_entries, &IDEMPOTENCY_KEYS),
        }
    }

    /// The highest id of a row that has been merged or is in memory.
    pub(super) fn highest_id(&self) -> u64 {
        self.names.read().highest_id.max(self.idempotency_keys.read().highest_id)
    }

    /// Reads the entries that are not in the tables. Called when the store is opened, and after
    /// another process has written to it.
    pub(super) fn load(&self, connection: &Connection) -> Result<(), StoreError> {
        self.names.load(connection)?;
        self.idempotency_keys.load(connection)
    }
}

/// The SQL of one index.
struct Statements {
    /// Its name in the table of the progress of merges.
    name: &'static str,
    /// The rows after an id, with their hashes; deleted rows have none.
    newer_rows: &'static str,
    /// A row after an id that has the hash.
    find_newer: &'static str,
    /// A row that has the id and the hash.
    check: &'static str,
    find: &'static str,
    insert: &'static str,
    delete: &'static str,
}

const NAMES: Statements = Statements {
    name: "template_name",
    newer_rows: "SELECT id, unique_key FROM template WHERE id > ?1",
    find_newer: "SELECT id FROM template WHERE id > ?1 AND unique_key = ?2",
    check: "SELECT 1 FROM template WHERE id = ?1 AND unique_key = ?2",
    find: "SELECT template_id FROM template_name WHERE unique_key = ?1",
    insert: "INSERT OR REPLACE INTO template_name (unique_key, template_id) VALUES (?1, ?2)",
    delete: "DELETE FROM template_name WHERE unique_key = ?1 AND template_id = ?2",
};

const IDEMPOTENCY_KEYS: Statements = Statements {
    name: "idempotency_key",
    newer_rows: "SELECT template_id, key FROM idempotency WHERE template_id > ?1",
    find_newer: "SELECT template_id FROM idempotency WHERE template_id > ?1 AND key = ?2",
    check: "SELECT 1 FROM idempotency WHERE template_id = ?1 AND key = ?2",
    find: "SELECT template_id FROM idempotency_key WHERE key = ?1",
    insert: "INSERT OR REPLACE INTO idempotency_key (key, template_id) VALUES (?1, ?2)",
    delete: "DELETE FROM idempotency_key WHERE key = ?1 AND template_id = ?2",
};

/// An index whose newest entries are in memory. Only the writer changes it, after a commit.
pub(super) struct BufferedIndex {
    max_entries: usize,
    sql: &'static Statements,
    buffer: RwLock<Buffer>,
}

/// A lookup of which the memory has been searched, before the read transaction that finishes it: an
/// entry leaves the memory after it was committed to the table.
pub(super) struct Lookup<'i> {
    index: &'i BufferedIndex,
    pub(super) hash: Hash,
    candidate: Option<TemplateId>,
    highest_id: u64,
}

impl Lookup<'_> {
    /// The row that has the hash, in a transaction that began after the lookup. Includes rows that
    /// the memory does not contain yet, or that another process has committed.
    pub(super) fn finish(&self, connection: &Connection) -> Result<Option<TemplateId>, StoreError> {
        let (sql, found) = (self.index.sql, self.find(connection)?);
        if found.is_some() {
            return Ok(found);
        }
        let mut query = connection.prepare_cached(sql.find_newer)?;
        let mut rows = query.query(params![key(self.highest_id), self.hash])?;
        rows.next()?.map(|row| row.template_id(0)).transpose()
    }

    /// The row that has the hash, among those that this process knows.
    fn find(&self, connection: &Connection) -> Result<Option<TemplateId>, StoreError> {
        if let Some(id) = self.candidate
            && self.check(connection, id)?
        {
            return Ok(Some(id));
        }
        let mut query = connection.prepare_cached(self.index.sql.find)?;
        let mut rows = query.query([self.hash])?;
        let Some(id) = rows.next()?.map(|row| row.template_id(0)).transpose()? else {
            return Ok(None);
        };
        Ok(self.check(connection, id)?.then_some(id))
    }

    /// Whether the row of an entry still has the hash.
    fn check(&self, connection: &Connection, id: TemplateId) -> Result<bool, StoreError> {
        let mut query = connection.prepare_cached(self.index.sql.check)?;
        Ok(query.exists(params![key(id.get()), self.hash])?)
    }
}

impl BufferedIndex {
    fn new(max_entries: usize, sql: &'static Statements) -> Self {
        Self { max_entries, sql, buffer: RwLock::default() }
    }

    /// Begins a lookup, before the transaction that finishes it.
    pub(super) fn lookup(&self, hash: Hash) -> Lookup<'_> {
        let buffer = self.read();
        let (candidate, highest_id) = (buffer.find(&hash), buffer.highest_id);
        Lookup { index: self, hash, candidate, highest_id }
    }

    /// The row that has the hash, in the writer's transaction with these changes.
    pub(super) fn find(
        &self,
        changes: &Changes,
        connection: &Connection,
        hash: Hash,
    ) -> Result<Option<TemplateId>, StoreError> {
        match changes.added.get(&hash) {
            Some(id) => Ok(Some(*id)),
            None => self.lookup(hash).find(connection),
        }
    }

    /// Removes the entry of a row that no longer has the hash.
    pub(super) fn remove(
        &self,
        changes: &mut Changes,
        connection: &Connection,
        hash: Hash,
        id: TemplateId,
    ) -> Result<(), StoreError> {
        connection.prepare_cached(self.sql.delete)?.execute(params![hash, key(id.get())])?;
        changes.remove(hash, id);
        Ok(())
    }

    /// Writes the next entries of the current merge to the table, at the end of the transaction.
    pub(super) fn merge(
        &self,
        changes: &mut Changes,
        connection: &Connection,
    ) -> Result<(), StoreError> {
        changes.step = self.read().next_step(changes);
        let Some(step) = &changes.step else { return Ok(()) };
        let mut insert = connection.prepare_cached(self.sql.insert)?;
        for (hash, id) in &step.entries {
            insert.execute(params![hash, key(id.get())])?;
        }
        let Progress { merged_id, merging } = step.progress;
        let (merging_id, merged_hash) = merging.unzip();
        let set_progress = "UPDATE buffered_index SET merged_id = ?1, merging_id = ?2, \
                            merged_hash = ?3 WHERE name = ?4";
        connection.prepare_cached(set_progress)?.execute(params![
            key(merged_id),
            merging_id.map(key),
            merged_hash,
            self.sql.name
        ])?;
        Ok(())
    }

    /// Applies the changes of a transaction that has been committed.
    pub(super) fn apply(&self, changes: Changes) {
        self.write().apply(changes);
        self.start_merge();
    }

    /// Starts the next merge if it is due. Its entries are sorted while lookups continue; no other
    /// thread than the writer changes them.
    fn start_merge(&self) {
        let due = self.read().due_merge(self.max_entries);
        if let Some(merge) = due {
            self.write().start(merge);
        }
    }

    fn load(&self, connection: &Connection) -> Result<(), StoreError> {
        // Both queries see the same state, also outside of the writer's transaction.
        let _snapshot =
            connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose()?;
        let progress = connection
            .prepare(
                "SELECT merged_id, merging_id, merged_hash FROM buffered_index WHERE name = ?1",
            )?
            .query_row([self.sql.name], |row| Ok(read_progress(row)))??;
        let mut query = connection.prepare(self.sql.newer_rows)?;
        let entry = |row: &Row<'_>| Ok((row.template_id(0)?, row.get(1)?));
        let entries = query.query_and_then([key(progress.merged_id)], entry)?;
        let entries = entries.collect::<Result<Vec<_>, StoreError>>()?;
        *self.write() = Buffer::load(progress, entries);
        self.start_merge();
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Buffer> {
        self.buffer.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Buffer> {
        self.buffer.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_progress(row: &Row<'_>) -> Result<Progress, StoreError> {
    let merging = match row.get::<_, Option<Hash>>(2)? {
        Some(merged_hash) => Some((row.number(1)?, merged_hash)),
        None => None,
    };
    Ok(Progress { merged_id: row.number(0)?, merging })
}
