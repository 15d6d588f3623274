//! Ends a read on a blocking thread when its caller is gone: the request has reached its deadline,
//! or the client has closed the connection.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rusqlite::Connection;

use crate::StoreError;

/// Instructions of SQLite's virtual machine between two checks: a fraction of a millisecond.
const CHECK_INTERVAL_INSTRUCTIONS: i32 = 1_000;

/// Whether a read is cancelled. Clones belong to the same read.
#[derive(Clone, Default)]
pub(super) struct Cancellation(Arc<AtomicBool>);

/// Cancels a read when it is dropped. Harmless once the read has ended.
pub(super) struct CancelOnDrop(Cancellation);

impl Cancellation {
    pub(super) fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs work on a connection. Its statements fail once the read is cancelled; those of the
    /// connection's next user do not.
    pub(super) fn run<T>(
        &self,
        connection: &mut Connection,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let cancellation = self.clone();
        let is_cancelled = move || cancellation.is_cancelled();
        connection.progress_handler(CHECK_INTERVAL_INSTRUCTIONS, Some(is_cancelled))?;
        let outcome = work(connection);
        connection.progress_handler(0, None::<fn() -> bool>)?;
        outcome
    }

    /// Fails if the read is cancelled.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if self.is_cancelled() { Err(StoreError::Failed(Arc::new(Cancelled))) } else { Ok(()) }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// No caller receives this error.
#[derive(Debug, thiserror::Error)]
#[error("the caller of the read is gone")]
struct Cancelled;
