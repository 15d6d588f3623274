//! Cleans up, checks and copies the whole store.

use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::{Finding, PhaseObserver, RetentionCursor, StoreError};

/// Cleans up, checks and copies the whole store.
#[async_trait]
pub trait MaintenanceStore: Send + Sync {
    /// Deletes a batch of expired idempotency records and returns where to continue. The first step
    /// of a pass also deletes expired uploads, unreferenced files, sandbox messages, sessions, links and
    /// operations at providers.
    async fn delete_expired_records(
        &self,
        cursor: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError>;

    /// Deletes a batch of events older than `since` that no endpoint still needs, oldest first,
    /// with their deliveries. Returns how many rows it deleted; 0 when nothing is left to delete.
    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError>;

    /// Counts the bytes that templates take, for all accounts or for those whose last count was
    /// interrupted. Writes go on meanwhile. Returns how many accounts it counted.
    async fn count_stored_bytes(&self, all: bool) -> Result<usize, StoreError>;

    /// Checks that the store can be read and written. May write something that changes no data.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Runs the start-up checks and a full integrity check, for `galley doctor`.
    async fn check_integrity(&self) -> Result<Vec<Finding>, StoreError>;

    /// Writes a consistent copy to a new file while the service keeps running. A copy with damaged
    /// rows is kept only if that is allowed. The observer gets each phase when it begins.
    async fn backup(
        &self,
        path: &Path,
        allow_damaged: bool,
        observer: PhaseObserver<'_>,
    ) -> Result<(), StoreError>;
}
