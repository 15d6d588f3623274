//! Indexes from hashes to template ids that are written in the order of their keys.
//!
//! Hashes are random: with many rows, every new one falls on a page of the index that no other write
//! of its transaction changes, and the whole page is written to the WAL, and later to the file. So the
//! newest entries stay in memory until there are many, and are then merged into the table in the order
//! of the hashes, a few with every transaction: several of them fall on one page.
//!
//! The entries in memory are durable without being written: the indexed row contains the hash, and
//! `buffered_index.merged_id` tells up to which row the entries are in the table. The newer rows are
//! read again when the store is opened.
//!
//! An entry is a candidate: the caller checks that the row still has the hash.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use galley_domain::id::TemplateId;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::columns::{key, template_id};
use crate::StoreError;

/// The first schema with these indexes.
const FIRST_SCHEMA: usize = 11;

/// Number of entries in memory that starts a merge. With more, more of them fall on one page; with
/// fewer, less has to be read when the store is opened. Debug builds have fewer, so that tests with
/// few templates merge, too.
pub(super) const DEFAULT_MAX_ENTRIES: usize = if cfg!(debug_assertions) { 64 } else { 32_768 };

/// Entries merged for each entry added: a merge ends before the next one is due.
const MERGED_PER_ADDED: usize = 2;

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
            names: BufferedIndex::new(
                max_entries,
                &Statements {
                    merged_id: "SELECT merged_id FROM buffered_index WHERE name = 'template_name'",
                    newer_rows: "SELECT id, claim FROM template WHERE id > ?1 AND claim IS NOT NULL",
                    find: "SELECT template_id FROM template_name WHERE claim = ?1",
                    insert: "INSERT OR REPLACE INTO template_name (claim, template_id) VALUES (?1, ?2)",
                    delete: "DELETE FROM template_name WHERE claim = ?1 AND template_id = ?2",
                    set_merged_id: "UPDATE buffered_index SET merged_id = ?1 WHERE name = 'template_name'",
                },
            ),
            idempotency_keys: BufferedIndex::new(
                max_entries,
                &Statements {
                    merged_id: "SELECT merged_id FROM buffered_index WHERE name = 'idempotency_key'",
                    newer_rows: "SELECT template_id, key FROM idempotency WHERE template_id > ?1",
                    find: "SELECT template_id FROM idempotency_key WHERE key = ?1",
                    insert: "INSERT OR REPLACE INTO idempotency_key (key, template_id) VALUES (?1, ?2)",
                    delete: "DELETE FROM idempotency_key WHERE key = ?1 AND template_id = ?2",
                    set_merged_id: "UPDATE buffered_index SET merged_id = ?1 WHERE name = 'idempotency_key'",
                },
            ),
        }
    }

    /// Reads the entries that are not in the tables. Called when the store is opened, and after
    /// another process has written to it.
    pub(super) fn load(&self, connection: &Connection) -> Result<(), StoreError> {
        if super::schema::version(connection)? < FIRST_SCHEMA {
            return Ok(());
        }
        self.names.load(connection)?;
        self.idempotency_keys.load(connection)
    }
}

/// The SQL of one index.
struct Statements {
    merged_id: &'static str,
    newer_rows: &'static str,
    find: &'static str,
    insert: &'static str,
    delete: &'static str,
    set_merged_id: &'static str,
}

/// An index whose newest entries are in memory. Only the writer changes it, after a commit.
pub(super) struct BufferedIndex {
    max_entries: usize,
    sql: &'static Statements,
    buffer: RwLock<Buffer>,
}

/// The entries of committed rows that are not, or not all, in the table.
#[derive(Default)]
struct Buffer {
    newest: HashMap<Hash, TemplateId>,
    /// The entries of the current merge, ordered by hash, all older than `newest`. A removed one has
    /// no id.
    merging: Vec<(Hash, Option<TemplateId>)>,
    /// How many of them are in the table.
    merged: usize,
    /// The highest id of them.
    last_id: i64,
}

impl Buffer {
    fn find(&self, hash: &Hash) -> Option<TemplateId> {
        self.newest.get(hash).copied().or_else(|| {
            let found = self.merging.binary_search_by(|(merging, _)| merging.cmp(hash)).ok()?;
            self.merging[found].1
        })
    }

    fn remove(&mut self, hash: &Hash, id: TemplateId) {
        if self.newest.get(hash) == Some(&id) {
            self.newest.remove(hash);
        } else if let Ok(found) = self.merging.binary_search_by(|(merging, _)| merging.cmp(hash))
            && self.merging[found].1 == Some(id)
        {
            self.merging[found].1 = None;
        }
    }

    /// Starts the next merge, once there are enough entries and the last merge is complete.
    fn start_merge(&mut self, max_entries: usize) {
        if !self.merging.is_empty() || self.newest.len() < max_entries {
            return;
        }
        let newest = std::mem::take(&mut self.newest);
        self.last_id = newest.values().map(|id| key(id.get())).max().unwrap_or(0);
        self.merging = newest.into_iter().map(|(hash, id)| (hash, Some(id))).collect();
        self.merging.sort_unstable_by_key(|(hash, _)| *hash);
        self.merged = 0;
    }
}

/// A lookup of which the entries in memory have been searched.
pub(super) struct Lookup<'i> {
    index: &'i BufferedIndex,
    hash: Hash,
    buffered: Option<TemplateId>,
}

impl Lookup<'_> {
    pub(super) fn hash(&self) -> Hash {
        self.hash
    }

    /// The row that may have the hash, in a transaction that began after the lookup.
    pub(super) fn finish(&self, connection: &Connection) -> Result<Option<TemplateId>, StoreError> {
        match self.buffered {
            Some(id) => Ok(Some(id)),
            None => self.index.find_merged(connection, &self.hash),
        }
    }
}

/// The changes of a transaction to an index.
#[derive(Clone, Default)]
pub(super) struct Changes {
    added: HashMap<Hash, TemplateId>,
    removed: Vec<(Hash, TemplateId)>,
    /// How many entries of the current merge are in the table once the transaction commits.
    merged: usize,
}

impl Changes {
    /// The changes of a transaction that was just begun.
    pub(super) fn of(index: &BufferedIndex) -> Self {
        Self { merged: index.read().merged, ..Self::default() }
    }

    /// The row that may have the hash, including the rows of this transaction.
    pub(super) fn find(
        &self,
        index: &BufferedIndex,
        connection: &Connection,
        hash: Hash,
    ) -> Result<Option<TemplateId>, StoreError> {
        match self.added.get(&hash) {
            Some(id) => Ok(Some(*id)),
            None => index.lookup(hash).finish(connection),
        }
    }

    /// Adds the entry of a row that this transaction inserts.
    pub(super) fn add(&mut self, hash: Hash, id: TemplateId) {
        self.added.insert(hash, id);
    }

    /// Removes the entry of a row that no longer has the hash.
    pub(super) fn remove(
        &mut self,
        index: &BufferedIndex,
        connection: &Connection,
        hash: Hash,
        id: TemplateId,
    ) -> Result<(), StoreError> {
        connection.prepare_cached(index.sql.delete)?.execute(params![hash, key(id.get())])?;
        if self.added.get(&hash) == Some(&id) {
            self.added.remove(&hash);
        }
        self.removed.push((hash, id));
        Ok(())
    }

    /// Writes the next entries of the current merge to the table, at the end of the transaction.
    pub(super) fn merge(
        &mut self,
        index: &BufferedIndex,
        connection: &Connection,
    ) -> Result<(), StoreError> {
        let buffer = index.read();
        let left = buffer.merging.len() - self.merged;
        let count = left.min(MERGED_PER_ADDED * self.added.len());
        if count == 0 {
            return Ok(());
        }
        let mut insert = connection.prepare_cached(index.sql.insert)?;
        for (hash, id) in &buffer.merging[self.merged..self.merged + count] {
            if let Some(id) = id
                && !self.removed.contains(&(*hash, *id))
            {
                insert.execute(params![hash, key(id.get())])?;
            }
        }
        if count == left {
            connection.prepare_cached(index.sql.set_merged_id)?.execute([buffer.last_id])?;
        }
        self.merged += count;
        Ok(())
    }
}

impl BufferedIndex {
    fn new(max_entries: usize, sql: &'static Statements) -> Self {
        Self { max_entries, sql, buffer: RwLock::default() }
    }

    /// Begins a lookup, before the transaction that finishes it: an entry leaves the memory after
    /// it was committed to the table.
    pub(super) fn lookup(&self, hash: Hash) -> Lookup<'_> {
        Lookup { index: self, hash, buffered: self.read().find(&hash) }
    }

    fn find_merged(
        &self,
        connection: &Connection,
        hash: &Hash,
    ) -> Result<Option<TemplateId>, StoreError> {
        let mut query = connection.prepare_cached(self.sql.find)?;
        let mut rows = query.query([hash])?;
        rows.next()?.map(|row| template_id(row, 0)).transpose()
    }

    /// Applies the changes of a transaction that has been committed.
    pub(super) fn apply(&self, changes: Changes) {
        let mut buffer = self.write();
        for (hash, id) in &changes.removed {
            buffer.remove(hash, *id);
        }
        buffer.newest.extend(changes.added);
        buffer.merged = changes.merged;
        if buffer.merged == buffer.merging.len() {
            (buffer.merging, buffer.merged) = (Vec::new(), 0);
        }
        buffer.start_merge(self.max_entries);
    }

    fn load(&self, connection: &Connection) -> Result<(), StoreError> {
        let merged_id: Option<i64> =
            connection.query_row(self.sql.merged_id, [], |row| row.get(0)).optional()?;
        let mut query = connection.prepare(self.sql.newer_rows)?;
        let mut rows = query.query([merged_id.unwrap_or(0)])?;
        let mut buffer = Buffer::default();
        while let Some(row) = rows.next()? {
            buffer.newest.insert(row.get(1)?, template_id(row, 0)?);
        }
        buffer.start_merge(self.max_entries);
        *self.write() = buffer;
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Buffer> {
        self.buffer.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Buffer> {
        self.buffer.write().unwrap_or_else(PoisonError::into_inner)
    }
}
