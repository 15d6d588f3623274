//! The clock guard: remembers the time, so that a clock that jumps deletes nothing.

mod guard;

use jiff::{SignedDuration, Timestamp};

pub use self::guard::ClockStatus;
use self::guard::{ClockGuard, ObservedTime};
use crate::{
    Store, StoreError,
    encoding::millis,
    engine::{ReadPath, Tx, values},
    stored_row::{Row, StoredRow as _},
};

impl Store {
    /// Records the present time. Returns whether rows may be deleted by age. Call it before each
    /// deletion.
    pub async fn observe_clock(&self, now: Timestamp) -> Result<ClockStatus, StoreError> {
        let stored = self.read("find_clock", ReadPath::Point, SELECT, [], observed_time).await?;
        match ClockGuard::observe(ClockGuard::from_rows(stored).as_ref(), now) {
            // Usually there is nothing to record.
            (status, None) => Ok(status),
            // Also on a full disk: a gap in the record would look like a jump.
            _ => {
                self.write_for_operator("observe_clock", now, |now, tx| Box::pin(observe(tx, *now)))
                    .await
            }
        }
    }

    /// Like [`Store::observe_clock`], but records nothing; `None` in a database without tables.
    pub async fn check_clock(&self, now: Timestamp) -> Result<Option<ClockStatus>, StoreError> {
        let path = ReadPath::Point;
        // A SQLite file has its tables when it is open.
        let tables = self
            .dialect()
            .either("SELECT 1", "SELECT 1 WHERE to_regclass('clock_guard') IS NOT NULL");
        if !self.exists("find_clock_table", path, tables, []).await? {
            return Ok(None);
        }
        let stored = self.read("check_clock", path, SELECT, [], observed_time).await?;
        Ok(Some(ClockGuard::observe(ClockGuard::from_rows(stored).as_ref(), now).0))
    }

    /// Trusts the present time, which an operator has confirmed.
    pub async fn accept_clock(&self, now: Timestamp) -> Result<(), StoreError> {
        self.write_for_operator("accept_clock", now, |now, tx| Box::pin(accept(tx, *now))).await
    }
}

const SELECT: &str = "SELECT at, observed_ms FROM clock_guard ORDER BY position";

fn observed_time(row: &Row<'_>) -> Result<ObservedTime, StoreError> {
    let observed = SignedDuration::from_millis(row.value("observed_ms")?);
    Ok(ObservedTime { at: row.timestamp("at")?, observed })
}

async fn observe(tx: &mut Tx<'_>, now: Timestamp) -> Result<ClockStatus, StoreError> {
    lock(tx).await?;
    let stored = ClockGuard::from_rows(tx.query(SELECT, &[], observed_time).await?);
    let (status, next) = ClockGuard::observe(stored.as_ref(), now);
    if let Some(next) = next {
        store(tx, &next)?;
    }
    Ok(status)
}

async fn accept(tx: &mut Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
    lock(tx).await?;
    store(tx, &ClockGuard::trusting(now))
}

/// Locks the row of the trusted time, if there is one: it orders concurrent observations. A separate
/// statement, so that the next one sees what the previous holder of the lock has committed.
async fn lock(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let trusted =
        format!("SELECT 1 FROM clock_guard WHERE position = 0{}", tx.dialect().for_update());
    tx.exists(&trusted, &[]).await.map(drop)
}

fn store(tx: &mut Tx<'_>, guard: &ClockGuard) -> Result<(), StoreError> {
    tx.defer("DELETE FROM clock_guard WHERE position > 0", &[])?;
    let upsert = "INSERT INTO clock_guard VALUES ($1, $2, $3) ON CONFLICT (position) DO UPDATE \
                  SET at = excluded.at, observed_ms = excluded.observed_ms";
    for (position, time) in (0_i64..).zip(guard.rows()) {
        let observed_ms = i64::try_from(time.observed.as_millis()).unwrap_or(i64::MAX);
        tx.defer(upsert, &values![position, millis(time.at), observed_ms])?;
    }
    Ok(())
}
