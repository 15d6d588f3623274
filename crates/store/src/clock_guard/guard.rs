//! Whether the present time may be trusted for deleting rows by age.
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
pub(super) struct ObservedTime {
    /// The last observation.
    pub(super) at: Timestamp,
    /// For how long the clock has continued up to it; 0 for the trusted time.
    pub(super) observed: SignedDuration,
}

/// The stored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClockGuard {
    trusted_at: Timestamp,
    /// Unconfirmed times, earliest first.
    candidates: Vec<ObservedTime>,
}

impl ClockGuard {
    /// A guard that trusts this time.
    pub(super) fn trusting(now: Timestamp) -> Self {
        Self { trusted_at: now, candidates: Vec::new() }
    }

    /// Decodes the stored rows in the order of their positions; `None` if there are none.
    pub(super) fn from_rows(rows: Vec<ObservedTime>) -> Option<Self> {
        let mut rows = rows.into_iter();
        Some(Self { trusted_at: rows.next()?.at, candidates: rows.collect() })
    }

    /// The rows to store.
    pub(super) fn rows(&self) -> impl Iterator<Item = ObservedTime> {
        let trusted = ObservedTime { at: self.trusted_at, observed: SignedDuration::ZERO };
        std::iter::once(trusted).chain(self.candidates.iter().copied())
    }

    /// Observes the time with the stored state, if there is one. Returns the status, and the new
    /// state if it has to be stored. A store without a state is new: it has nothing to lose.
    pub(super) fn observe(stored: Option<&Self>, now: Timestamp) -> (ClockStatus, Option<Self>) {
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

#[cfg(test)]
mod tests;
