//! Storage failures.

use std::{error::Error, io, sync::Arc, time::Duration};

/// A storage failure, classified by what the caller can do about it. A copy of it is for another caller
/// that fails for the same reason.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The write queue is full; nothing was written.
    #[error("too many writes are queued")]
    Busy,
    /// Too many reads of this kind run already, most likely of the same account.
    #[error("too many reads of the same kind are running: {0:?}")]
    TooManyReads(ReadKind),
    /// The tokens of the account have changed too much; nothing was written.
    #[error("the tokens of the account have made too many changes within a day")]
    TooManyChanges {
        /// When the next change is possible.
        retry_after: Duration,
    },
    /// The storage has no space left; nothing was written.
    #[error("the storage is full")]
    Full(#[source] Cause),
    /// The database does not respond; nothing was written.
    #[error("the database is not available")]
    Unavailable(#[source] Cause),
    /// The database failed during a commit; the write may or may not have been applied.
    #[error("the outcome of the write is unknown")]
    OutcomeUnknown(#[source] Cause),
    /// Stored data is not what was written: the disk or the file system has damaged it.
    #[error("stored data is damaged")]
    Damaged(#[source] Cause),
    /// A bug.
    #[error("the database operation failed")]
    Failed(#[source] Cause),
}

/// The error of a write to an account that does not exist.
pub(crate) fn no_account() -> StoreError {
    failed("the account does not exist in the database")
}

/// A failure with this cause, which may be a text.
pub(crate) fn failed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::Failed(Arc::from(cause.into()))
}

/// The same for a database that does not respond.
pub(crate) fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::Unavailable(Arc::from(cause.into()))
}

/// The cause of an error, which may be a text.
pub(crate) fn cause(text: impl Into<Box<dyn Error + Send + Sync>>) -> Cause {
    Arc::from(text.into())
}

/// The file system does not do what the database needs of it.
impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Unavailable(Arc::new(error))
    }
}

/// A kind of longer reads. Each has a limit of its own, and a share of it for each account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadKind {
    /// Lists that an index contains in their order, and other pages.
    List,
    /// Searches, counts, and lists with filters that no index contains.
    Search,
    /// Event feeds.
    Feed,
}

/// The cause of a [`StoreError`]. Shared, because one cause can fail an entire batch.
pub type Cause = Arc<dyn Error + Send + Sync>;
