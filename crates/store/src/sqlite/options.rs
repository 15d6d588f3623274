//! How a SQLite store is opened, and what its failures mean.

use std::sync::Arc;

use super::checkpoint;
use crate::StoreError;

/// When a write is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// After its transaction is on disk.
    #[default]
    AfterCommit,
    /// Before. Wrong on purpose: the kill harness uses it to show that it would notice.
    #[cfg(debug_assertions)]
    BeforeCommit,
}

/// What becomes of a schema that is older than this program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// It is brought up to date; a store is made where there is none.
    #[default]
    Renewed,
    /// It is refused, so that nobody but the service itself takes that step.
    Refused,
    /// The same, but a store is made where there is none.
    RefusedUnlessEmpty,
    /// It is left as it is, for whoever only looks or copies.
    LeftAlone,
}

/// What is done about a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Leave,
    /// The migrations that are missing run.
    Renew,
    /// The store is not opened.
    Refuse,
}

impl SchemaPolicy {
    /// What is done about a store on which `found` of the `known` migrations have run.
    pub(crate) fn step(self, found: usize, known: usize) -> Step {
        match self {
            _ if found >= known => Step::Leave,
            Self::Renewed => Step::Renew,
            Self::RefusedUnlessEmpty if found == 0 => Step::Renew,
            Self::Refused | Self::RefusedUnlessEmpty => Step::Refuse,
            Self::LeftAlone => Step::Leave,
        }
    }
}

/// How a SQLite store is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// How many writes may wait; one more is answered [`StoreError::Busy`].
    pub queue: usize,
    /// When a write is answered.
    pub acknowledge: Acknowledge,
    /// What becomes of an older schema.
    pub older_schema: SchemaPolicy,
    /// How many pages the log has when it is folded into the file.
    pub fold_pages: u32,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            queue: 1_024,
            acknowledge: Acknowledge::default(),
            older_schema: SchemaPolicy::default(),
            fold_pages: checkpoint::WORTH_IT,
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
            _ => Self::Failed(Arc::new(error)),
        }
    }
}
