//! Cleans up, checks and copies the whole store.

mod events;
mod integrity;
mod purge;
mod stored_bytes;

use std::path::Path;

use jiff::Timestamp;

use crate::{
    Finding, PhaseObserver, RetentionCursor, Store, StoreFuture, emulator, engine, sessions,
    uploads, upstream,
};

impl Store {
    /// Deletes a batch of expired idempotency records and returns where to continue. The first step
    /// of a pass also deletes expired uploads, unreferenced files, sandbox messages, sessions, links and
    /// operations at providers.
    pub fn delete_expired_records(
        &self,
        cursor: RetentionCursor,
        at: Timestamp,
    ) -> StoreFuture<'_, RetentionCursor> {
        let engine = &*self.engine;
        let deletion = async move {
            let next = engine.delete_expired_idempotency_records(cursor.last_key, at).await?;
            if cursor.last_key.is_some() {
                return Ok(next);
            }
            if !engine::fetch(engine, sessions::expired(at)).await?.is_empty() {
                engine::run(engine, sessions::deletion(at)).await?;
            }
            emulator::delete_expired_messages(engine, at).await?;
            while !engine::fetch(engine, upstream::expired_operations(at)).await?.is_empty() {
                engine::run(engine, upstream::operation_deletion(at)).await?;
            }
            let deleted_uploads = uploads::delete_expired(engine, at).await?;
            Ok(RetentionCursor { deleted_uploads, ..next })
        };
        self.with_faults_of("delete_expired_records", Box::pin(deletion))
    }

    /// Deletes a batch of events older than `since` that no endpoint still needs, oldest first,
    /// with their deliveries. Returns how many rows it deleted; 0 when nothing is left to delete.
    pub fn delete_expired_events(&self, since: Timestamp) -> StoreFuture<'_, usize> {
        let deletion = async move {
            let deleted = events::delete_expired(&*self.engine, since).await?;
            Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
        };
        self.with_faults_of("delete_expired_events", Box::pin(deletion))
    }

    /// Counts the bytes that templates take, for all accounts or for those whose last count was
    /// interrupted. Writes go on meanwhile. Returns how many accounts it counted.
    pub fn count_stored_bytes(&self, all: bool) -> StoreFuture<'_, usize> {
        let count = stored_bytes::count(&*self.engine, all);
        self.with_faults_of("count_stored_bytes", Box::pin(count))
    }

    /// Checks that the store can be read and written. May write something that changes no data.
    pub fn ping(&self) -> StoreFuture<'_, ()> {
        self.with_faults_of("ping", self.engine.ping())
    }

    /// Runs the start-up checks and a full integrity check, for `galley doctor`.
    pub fn check_integrity(&self) -> StoreFuture<'_, Vec<Finding>> {
        let checks = integrity::checks(self.dialect());
        self.with_faults_of("check_integrity", self.engine.check_integrity(checks))
    }

    /// Writes a consistent copy to a new file while the service keeps running. A copy with damaged
    /// rows is kept only if that is allowed. The observer gets each phase when it begins.
    pub fn backup<'s>(
        &'s self,
        path: &'s Path,
        allow_damaged: bool,
        observer: PhaseObserver<'s>,
    ) -> StoreFuture<'s, ()> {
        let backup = self.engine.backup(path, allow_damaged, observer);
        self.with_faults_of("backup", backup)
    }
}
