//! Statements for the clock guard. The row of the trusted time orders concurrent observations.

use async_trait::async_trait;
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    columns::get,
    pool::PgPools,
    transaction::{Transaction, transact},
};
use crate::{
    ClockStatus, ClockStore, StoreError,
    clock_guard::{ClockGuard, ObservedTime},
};

#[async_trait]
impl ClockStore for PostgresStore {
    async fn observe_clock(&self, now: Timestamp) -> Result<ClockStatus, StoreError> {
        transact!(self, tx => observe(tx, now))
    }

    async fn check_clock(&self, now: Timestamp) -> Result<Option<ClockStatus>, StoreError> {
        check(&self.pools, now).await
    }

    async fn accept_clock(&self, now: Timestamp) -> Result<(), StoreError> {
        transact!(self, tx => accept(tx, now))
    }
}

const SELECT: &str = "SELECT at, observed_ms FROM clock_guard ORDER BY position";

pub(super) async fn observe(
    transaction: &Transaction,
    now: Timestamp,
) -> Result<ClockStatus, StoreError> {
    lock(transaction).await?;
    let stored = guard(&transaction.query(SELECT, &[]).await?)?;
    let (status, next) = ClockGuard::observe(stored.as_ref(), now);
    if let Some(next) = next {
        store(transaction, &next).await?;
    }
    Ok(status)
}

/// The status, without recording the time; `None` in a database without tables.
pub(super) async fn check(
    pools: &PgPools,
    now: Timestamp,
) -> Result<Option<ClockStatus>, StoreError> {
    let exists = "SELECT to_regclass('clock_guard') IS NOT NULL";
    let exists = pools.read_one(exists, &[]).await?;
    if !exists.as_ref().map_or(Ok(false), |row| get(row, 0))? {
        return Ok(None);
    }
    let stored = guard(&pools.read(SELECT, &[]).await?)?;
    Ok(Some(ClockGuard::observe(stored.as_ref(), now).0))
}

pub(super) async fn accept(transaction: &Transaction, now: Timestamp) -> Result<(), StoreError> {
    lock(transaction).await?;
    store(transaction, &ClockGuard::trusting(now)).await
}

/// Locks the row of the trusted time, if there is one. A separate statement: the next one sees what
/// the previous holder of the lock has committed.
async fn lock(transaction: &Transaction) -> Result<(), StoreError> {
    let lock = "SELECT 1 FROM clock_guard WHERE position = 0 FOR UPDATE";
    transaction.query(lock, &[]).await.map(drop)
}

fn guard(rows: &[Row]) -> Result<Option<ClockGuard>, StoreError> {
    let times: Result<_, StoreError> = rows.iter().map(ObservedTime::read).collect();
    Ok(ClockGuard::from_rows(times?))
}

async fn store(transaction: &Transaction, guard: &ClockGuard) -> Result<(), StoreError> {
    transaction.execute("DELETE FROM clock_guard WHERE position > 0", &[]).await?;
    let upsert = "INSERT INTO clock_guard VALUES ($1, $2, $3) ON CONFLICT (position) DO UPDATE \
                  SET at = excluded.at, observed_ms = excluded.observed_ms";
    for (position, time) in (0_i32..).zip(guard.rows()) {
        let (at, observed_ms) = time.stored();
        transaction.execute(upsert, &[&position, &at, &observed_ms]).await?;
    }
    Ok(())
}
