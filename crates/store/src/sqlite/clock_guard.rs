//! SQL for the clock guard.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{SqliteStore, writer::Batch};
use crate::{
    ClockStatus, ClockStore, StoreError,
    clock_guard::{ClockGuard, ObservedTime},
};

#[async_trait]
impl ClockStore for SqliteStore {
    async fn observe_clock(&self, now: Timestamp) -> Result<ClockStatus, StoreError> {
        self.observe_time(now).await
    }

    async fn check_clock(&self, now: Timestamp) -> Result<Option<ClockStatus>, StoreError> {
        self.readers.read(|connection| check(connection, now).map(Some))
    }

    async fn accept_clock(&self, now: Timestamp) -> Result<(), StoreError> {
        self.writer.write_for_operator(move |batch| accept(batch, now)).await
    }
}

impl SqliteStore {
    /// Observes the time. Usually there is nothing to store, and the writer is not involved.
    pub(super) async fn observe_time(&self, now: Timestamp) -> Result<ClockStatus, StoreError> {
        let stored = self.point_readers.read(stored)?;
        match ClockGuard::observe(stored.as_ref(), now) {
            (status, None) => Ok(status),
            // Also on a full disk: a gap in the record would look like a jump.
            _ => self.writer.write_for_operator(move |batch| observe(batch, now)).await,
        }
    }
}

fn observe(batch: &mut Batch, now: Timestamp) -> Result<ClockStatus, StoreError> {
    let connection = batch.connection();
    let (status, next) = ClockGuard::observe(stored(connection)?.as_ref(), now);
    if let Some(next) = next {
        store(connection, &next)?;
    }
    Ok(status)
}

/// The status, without recording the time.
pub(super) fn check(connection: &Connection, now: Timestamp) -> Result<ClockStatus, StoreError> {
    Ok(ClockGuard::observe(stored(connection)?.as_ref(), now).0)
}

pub(super) fn accept(batch: &mut Batch, now: Timestamp) -> Result<(), StoreError> {
    store(batch.connection(), &ClockGuard::trusting(now))
}

fn stored(connection: &Connection) -> Result<Option<ClockGuard>, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT at, observed_ms FROM clock_guard ORDER BY position")?;
    let mut rows = query.query([])?;
    let mut times = Vec::new();
    while let Some(row) = rows.next()? {
        times.push(ObservedTime::read(row)?);
    }
    Ok(ClockGuard::from_rows(times))
}

fn store(connection: &Connection, guard: &ClockGuard) -> Result<(), StoreError> {
    connection.prepare_cached("DELETE FROM clock_guard")?.execute([])?;
    let mut insert = connection.prepare_cached("INSERT INTO clock_guard VALUES (?1, ?2, ?3)")?;
    for (position, time) in (0_i64..).zip(guard.rows()) {
        let (at, observed_ms) = time.stored();
        insert.execute(params![position, at, observed_ms])?;
    }
    Ok(())
}
