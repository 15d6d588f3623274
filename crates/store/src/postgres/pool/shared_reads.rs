//! Single-statement reads. They are pipelined on a few shared connections, any number at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering};

use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout},
};
use tokio_postgres::Row;

use super::{
    PgConnection, PgPools, SHARED_CONNECTIONS, Values, connect_timeout, is_worth_retrying,
};
use crate::StoreError;

/// Holds one of the shared connections.
#[derive(Default)]
pub(super) struct SharedSlot {
    connection: Mutex<Option<Arc<PgConnection>>>,
    /// Locked by the task that opens a connection; the other tasks wait for it.
    opening: AsyncMutex<()>,
}

impl PgPools {
    /// Runs a single-statement read. Retries it once if the connection was lost: a read is safe to
    /// repeat.
    pub(in crate::postgres) async fn read(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let slot = self.next_slot.fetch_add(1, Ordering::Relaxed) % SHARED_CONNECTIONS;
        let connection = self.shared_connection(slot).await?;
        let started = Instant::now();
        let read = connection.query(statement, values).await;
        let is_unavailable = matches!(read, Err(StoreError::Unavailable(_)));
        let is_lost = is_unavailable && connection.is_unusable() && !connection.is_late();
        if connection.is_late() {
            self.clear_slots_if_late();
        }
        // The pool can replace the connection only once its last user has dropped it.
        drop(connection);
        if !is_lost || !is_worth_retrying(started) {
            return read;
        }
        // Retry on the same slot, which gets a new connection: the other slots may have lost
        // theirs, too.
        self.shared_connection(slot).await?.query(statement, values).await
    }

    /// The connection of a slot, opened if necessary. Falls back to another slot's connection when
    /// connecting fails.
    async fn shared_connection(&self, slot: usize) -> Result<Arc<PgConnection>, StoreError> {
        let slot_connection = self.slot_connection(&self.shared[slot]);
        let opened = timeout(self.reads.acquire_timeout, slot_connection).await;
        let failure = match opened {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(StoreError::Busy)) | Err(_) => {
                let failure = connect_timeout();
                self.reads.back_off(&failure);
                failure
            }
            Ok(Err(failure)) => failure,
        };
        self.any_usable().ok_or(failure)
    }

    fn any_usable(&self) -> Option<Arc<PgConnection>> {
        self.shared.iter().find_map(SharedSlot::usable)
    }

    async fn slot_connection(&self, slot: &SharedSlot) -> Result<Arc<PgConnection>, StoreError> {
        if let Some(connection) = slot.usable() {
            return Ok(connection);
        }
        // Another task may be opening the connection, which can take long.
        let _opening = match slot.opening.try_lock() {
            Ok(opening) => opening,
            Err(_) => match self.any_usable() {
                Some(connection) => return Ok(connection),
                None => slot.opening.lock().await,
            },
        };
        if let Some(connection) = slot.usable() {
            return Ok(connection);
        }
        // The task that hit the deadline may not have cleared the slots yet.
        self.clear_slots_if_late();
        // The old connection releases its pool permit when its remaining readers are done.
        slot.clear();
        let connection = Arc::new(self.reads.get().await?);
        *slot.connection() = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Clears all slots if one connection is late, because all of them lead to the same server.
    /// Reads that are waiting on them continue until their own deadlines.
    fn clear_slots_if_late(&self) {
        if self.shared.iter().any(SharedSlot::is_late) {
            self.shared.iter().for_each(SharedSlot::clear);
        }
    }
}

impl SharedSlot {
    /// The slot's connection, unless it is unusable.
    fn usable(&self) -> Option<Arc<PgConnection>> {
        self.connection().as_ref().filter(|it| !it.is_unusable()).map(Arc::clone)
    }

    fn is_late(&self) -> bool {
        self.connection().as_ref().is_some_and(|connection| connection.is_late())
    }

    /// Empties the slot. The connection closes when its last reader drops it; it does not return
    /// to the pool.
    fn clear(&self) {
        let connection = self.connection().take();
        if let Some(connection) = connection {
            connection.discard();
        }
    }

    fn connection(&self) -> MutexGuard<'_, Option<Arc<PgConnection>>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
