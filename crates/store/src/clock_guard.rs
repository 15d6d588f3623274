//! The clock guard: remembers the time, so that a clock that jumps deletes nothing.
//!
//! A clock that jumps ahead makes everything look expired. The guard therefore remembers the last
//! time that it trusted. A time more than [`MAX_STEP`] ahead of it is unconfirmed until the clock
//! has continued from there for [`CONFIRMATION`], or until an operator accepts it.
//!
//! Several instances can share a store, and one of them can have a wrong clock. Of the times that
//! they observe, the one closest to the trusted time wins: an observation discards the candidates
//! that are further away. An instance whose clock is ahead can thus never confirm its time while
//! another one is right, and it does not delay the others. A clock that is behind deletes less, so
//! it needs no confirmation; but it becomes the trusted time only after [`CONFIRMATION`], so that
//! it does not make the others look as if they were ahead.

use jiff::{SignedDuration, Timestamp};

use crate::{
    Store, StoreError, StoreFuture,
    encoding::millis,
    engine::{ReadPath, Tx, values},
    stored_row::{Row, StoredRow as _},
};

/// Longest time between two observations that is not a jump.
const MAX_STEP: SignedDuration = SignedDuration::from_hours(1);

/// A new time is trusted after the clock has continued from it for this long.
const CONFIRMATION: SignedDuration = SignedDuration::from_hours(24);

/// A time that is unconfirmed keeps what was observed of it before a pause of up to this long:
/// otherwise a service that runs for a few hours a day would never delete anything.
const MAX_PAUSE: SignedDuration = SignedDuration::from_hours(24);

/// Smaller progress is not stored, so that observing the clock costs few writes.
const MIN_STORED_STEP: SignedDuration = SignedDuration::from_secs(30);

/// Number of unconfirmed times that are remembered. More than two need several jumps within a day.
const MAX_CANDIDATES: usize = 4;

/// Whether rows may be deleted by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStatus {
    /// The present time continues the trusted one, or is behind it.
    Trusted,
    /// The clock has jumped ahead: nothing may be deleted by age.
    Unconfirmed {
        /// The last trusted time.
        trusted_at: Timestamp,
        /// For how long the clock has to continue before the present time is trusted.
        remaining: SignedDuration,
    },
}

/// An observed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObservedTime {
    /// The last observation.
    at: Timestamp,
    /// For how long the clock has continued up to it; 0 for the trusted time.
    observed: SignedDuration,
}

/// The stored state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClockGuard {
    trusted_at: Timestamp,
    /// Unconfirmed times, earliest first.
    candidates: Vec<ObservedTime>,
}

impl ClockGuard {
    /// A guard that trusts this time.
    fn trusting(now: Timestamp) -> Self {
        Self { trusted_at: now, candidates: Vec::new() }
    }

    /// Decodes the stored rows in the order of their positions; `None` if there are none.
    fn from_rows(rows: Vec<ObservedTime>) -> Option<Self> {
        let mut rows = rows.into_iter();
        Some(Self { trusted_at: rows.next()?.at, candidates: rows.collect() })
    }

    /// The rows to store.
    fn rows(&self) -> impl Iterator<Item = ObservedTime> {
        let trusted = ObservedTime { at: self.trusted_at, observed: SignedDuration::ZERO };
        std::iter::once(trusted).chain(self.candidates.iter().copied())
    }

    /// Observes the time with the stored state, if there is one. Returns the status, and the new
    /// state if it has to be stored. A store without a state is new: it has nothing to lose.
    fn observe(stored: Option<&Self>, now: Timestamp) -> (ClockStatus, Option<Self>) {
        let Some(stored) = stored else {
            return (ClockStatus::Trusted, Some(Self::trusting(now)));
        };
        let (status, next) = stored.after(now);
        let is_stored = stored.is_close_to(&next);
        (status, (!is_stored).then_some(next))
    }

    fn after(&self, now: Timestamp) -> (ClockStatus, Self) {
        if distance(self.trusted_at, now) <= MAX_STEP {
            return (ClockStatus::Trusted, Self::trusting(now));
        }
        let current = self.continued_to(now);
        if current.observed >= CONFIRMATION {
            return (ClockStatus::Trusted, Self::trusting(now));
        }
        let is_ahead = now > self.trusted_at;
        let closer = |it: &&ObservedTime| {
            if is_ahead { self.trusted_at < it.at && it.at < now } else { it.at > now }
        };
        let is_other = |it: &&ObservedTime| distance(it.at, now) > MAX_STEP;
        let mut candidates: Vec<ObservedTime> =
            self.candidates.iter().filter(is_other).filter(closer).copied().collect();
        candidates.truncate(MAX_CANDIDATES - 1);
        candidates.push(current);
        candidates.sort_by_key(|it| it.at);
        let status = if is_ahead {
            let remaining = CONFIRMATION.saturating_sub(current.observed);
            ClockStatus::Unconfirmed { trusted_at: self.trusted_at, remaining }
        } else {
            ClockStatus::Trusted
        };
        (status, Self { trusted_at: self.trusted_at, candidates })
    }

    /// The candidate that an observation continues, or a new one.
    fn continued_to(&self, now: Timestamp) -> ObservedTime {
        if let Some(same) = self.candidates.iter().find(|it| distance(it.at, now) <= MAX_STEP) {
            let step = now.duration_since(same.at).max(SignedDuration::ZERO);
            return ObservedTime { at: now, observed: same.observed.saturating_add(step) };
        }
        let mut ahead = self.candidates.iter().filter(|it| self.trusted_at < it.at && it.at < now);
        let before_pause = ahead.next_back().filter(|it| distance(it.at, now) <= MAX_PAUSE);
        let observed = before_pause.map_or(SignedDuration::ZERO, |it| it.observed);
        ObservedTime { at: now, observed }
    }

    /// Whether the other state differs by less than has to be stored.
    fn is_close_to(&self, other: &Self) -> bool {
        let mut pairs = self.rows().zip(other.rows());
        self.candidates.len() == other.candidates.len()
            && pairs.all(|(mine, theirs)| distance(mine.at, theirs.at) < MIN_STORED_STEP)
    }
}

fn distance(one: Timestamp, other: Timestamp) -> SignedDuration {
    one.duration_since(other).abs()
}

impl Store {
    /// Records the present time. Returns whether rows may be deleted by age. Call it before each
    /// deletion.
    pub fn observe_clock(&self, now: Timestamp) -> StoreFuture<'_, ClockStatus> {
        Box::pin(async move {
            let stored =
                self.read("find_clock", ReadPath::Point, SELECT, [], observed_time).await?;
            match ClockGuard::observe(ClockGuard::from_rows(stored).as_ref(), now) {
                // Usually there is nothing to record.
                (status, None) => Ok(status),
                // Also on a full disk: a gap in the record would look like a jump.
                _ => {
                    self.write_for_operator("observe_clock", now, |now, tx| {
                        Box::pin(observe(tx, *now))
                    })
                    .await
                }
            }
        })
    }

    /// Like [`Store::observe_clock`], but records nothing; `None` in a database without tables.
    pub fn check_clock(&self, now: Timestamp) -> StoreFuture<'_, Option<ClockStatus>> {
        Box::pin(async move {
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
        })
    }

    /// Trusts the present time, which an operator has confirmed.
    pub fn accept_clock(&self, now: Timestamp) -> StoreFuture<'_, ()> {
        self.write_for_operator("accept_clock", now, |now, tx| Box::pin(accept(tx, *now)))
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

#[cfg(test)]
mod tests;
