//! Options for opening a SQLite store, and the conversion of SQLite errors.

use std::sync::Arc;

use super::checkpoint;
use crate::StoreError;

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

/// What to do with a schema that is older than this program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// Migrate it. Creates the store if there is none.
    #[default]
    Migrate,
    /// Refuse it, so that only the service migrates.
    Refuse,
    /// Refuse it, but create the store if there is none.
    RefuseUnlessEmpty,
    /// Keep it unchanged, for commands that only read or copy.
    Keep,
}

/// What to do with the schema of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaAction {
    /// Open the store with the schema it has.
    Keep,
    /// Apply the missing migrations.
    Migrate,
    /// Do not open the store.
    Refuse,
}

impl SchemaPolicy {
    /// The action for a store to which `found` of the `known` migrations were applied.
    pub(crate) fn action(self, found: usize, known: usize) -> SchemaAction {
        match self {
            _ if found >= known => SchemaAction::Keep,
            Self::Migrate => SchemaAction::Migrate,
            Self::RefuseUnlessEmpty if found == 0 => SchemaAction::Migrate,
            Self::Refuse | Self::RefuseUnlessEmpty => SchemaAction::Refuse,
            Self::Keep => SchemaAction::Keep,
        }
    }
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
