//! Options for opening a SQLite store, and the conversion of SQLite errors.

use std::sync::Arc;

use super::{buffered_index, checkpoint};
use crate::{SchemaPolicy, StoreError};

/// When the store responds to a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// After its transaction is on disk.
    #[default]
    AfterCommit,
    /// Before the commit. Deliberately wrong: the kill test uses it to prove that it detects lost
    /// writes.
    #[cfg(debug_assertions)]
    BeforeCommit,
}

/// Options for opening a SQLite store.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Capacity of the write queue. When it is full, writes fail with [`StoreError::Busy`].
    pub queue_capacity: usize,
    /// When the store responds to a write.
    pub acknowledge: Acknowledge,
    /// What to do with an older schema.
    pub schema_policy: SchemaPolicy,
    /// Number of WAL pages that triggers a checkpoint.
    pub checkpoint_pages: u32,
    /// Number of index entries kept in memory that starts to merge them into the file.
    pub max_buffered_entries: usize,
    /// Creates the store even if the search index of an earlier one is at its path.
    pub new_store: bool,
    /// Refuses writes of clients while the disk has less free space than this.
    pub min_free_bytes: u64,
    /// Keeps a file beside the store whose space the operator's commands can use on a full disk.
    pub keeps_disk_reserve: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            queue_capacity: 1_024,
            acknowledge: Acknowledge::default(),
            schema_policy: SchemaPolicy::default(),
            checkpoint_pages: checkpoint::DEFAULT_CHECKPOINT_PAGES,
            max_buffered_entries: buffered_index::DEFAULT_MAX_ENTRIES,
            new_store: false,
            min_free_bytes: 0,
            keeps_disk_reserve: false,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(Arc::new(error)),
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly,
            ) => Self::Unavailable(Arc::new(error)),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged(Arc::new(error))
            }
            _ => Self::Failed(Arc::new(error)),
        }
    }
}
