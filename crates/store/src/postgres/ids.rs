//! Template ids. They grow with time and within an account. Each process starts its milliseconds at
//! a random offset, so that ids of several processes differ; if two still collide, the database
//! refuses the second.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use galley_domain::id::{self, IDS_PER_MILLISECOND};
use jiff::Timestamp;

use crate::{StoreError, error::failed};

/// How many ids of a millisecond are reserved for accounts that are ahead of the clock.
const AHEAD_IDS_PER_MILLISECOND: u64 = IDS_PER_MILLISECOND / 2;

/// Maximum number of future milliseconds whose ids are tracked.
const MAX_TRACKED_MILLISECONDS: usize = 10_000;

/// Generates template ids.
pub(super) struct IdGenerator {
    /// Where this process starts within each millisecond.
    offset: u64,
    /// The newest id that follows the clock.
    last: AtomicU64,
    /// How many ids of each future millisecond are assigned.
    ahead: Mutex<BTreeMap<u64, u64>>,
}

impl Default for IdGenerator {
    fn default() -> Self {
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
        Self::with_offset(random % IDS_PER_MILLISECOND)
    }
}

impl IdGenerator {
    fn with_offset(offset: u64) -> Self {
        Self { offset, last: AtomicU64::new(0), ahead: Mutex::default() }
    }

    /// An id greater than `previous`, the newest of its account.
    pub(super) fn next(&self, previous: u64, at: Timestamp) -> u64 {
        let now = id::next(0, at.as_millisecond());
        let following = |last: u64| (now + self.offset).max(last + 1);
        let update = |last| Some(following(last));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        let id = following(last.unwrap_or_else(|last| last));
        if id > previous {
            return id;
        }
        // The newest id of the account came from an instance with a faster clock. Counting on from
        // `previous` would collide with ids that the other instance assigned to other accounts. So the
        // account continues at this process's own offset, half a millisecond from where the ids start
        // that follow the clock. Being ahead stays limited to the account: one wrong clock does not
        // affect the other accounts.
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead = ahead.split_off(&(now / IDS_PER_MILLISECOND));
        let mut millisecond = previous / IDS_PER_MILLISECOND;
        loop {
            // Clear before adding, so that a retry sees the id that it was given before.
            if ahead.len() >= MAX_TRACKED_MILLISECONDS && !ahead.contains_key(&millisecond) {
                ahead.clear();
            }
            let assigned = ahead.entry(millisecond).or_default();
            let position =
                (self.offset + AHEAD_IDS_PER_MILLISECOND + *assigned) % IDS_PER_MILLISECOND;
            let id = millisecond * IDS_PER_MILLISECOND + position;
            if *assigned < AHEAD_IDS_PER_MILLISECOND && id > previous {
                *assigned += 1;
                return id;
            }
            millisecond += 1;
        }
    }
}

pub(super) fn ids_exhausted() -> StoreError {
    failed("no template ids are left")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const YEAR_MILLIS: i64 = 365 * 24 * 60 * 60 * 1_000;

    fn time(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_790_000_000_000 + millis).unwrap()
    }

    #[test]
    fn an_instance_with_a_slow_clock_never_repeats_an_id_of_a_faster_one() {
        let (ahead, behind) = (IdGenerator::with_offset(100), IdGenerator::with_offset(5_000));
        let mut newest = [0; 3];
        let mut assigned = HashSet::new();
        for round in 0..50 {
            for (index, account) in newest.iter_mut().enumerate() {
                let is_ahead = (round + index) % 2 == 0;
                let (generator, skew) = if is_ahead { (&ahead, 20) } else { (&behind, 0) };
                let id = generator.next(*account, time(i64::try_from(round).unwrap() + skew));
                assert!(id > *account && assigned.insert(id), "{id} is new and grows");
                *account = id;
            }
        }
    }

    #[test]
    fn an_account_far_ahead_does_not_affect_other_accounts() {
        let ids = IdGenerator::with_offset(8_000);
        let far = id::next(0, time(YEAR_MILLIS).as_millisecond());
        let near = |millis: i64| id::next(0, time(millis).as_millisecond());
        assert!(ids.next(far, time(0)) > far);
        // One account that is slightly ahead, and one that is not.
        let slightly = ids.next(near(20), time(0));
        assert!(slightly > near(20) && slightly < near(22), "{slightly}");
        let current = ids.next(0, time(0));
        assert!(current > near(0) && current < near(2), "{current}");
    }

    #[test]
    fn any_number_of_accounts_ahead_get_distinct_ids() {
        for offset in [0, 4_000, 7_900] {
            let ids = IdGenerator::with_offset(offset);
            let first = id::next(0, time(20).as_millisecond());
            let mut newest: Vec<u64> = (0..500).map(|it| first + 3 * it).collect();
            let mut assigned = HashSet::new();
            for _ in 0..100 {
                for account in &mut newest {
                    let id = ids.next(*account, time(0));
                    assert!(id > *account && assigned.insert(id), "{id} is new and grows");
                    *account = id;
                }
            }
        }
    }

    #[test]
    fn the_number_of_tracked_milliseconds_is_bounded() {
        let ids = IdGenerator::with_offset(0);
        let year = id::next(0, time(YEAR_MILLIS).as_millisecond());
        for millisecond in 0..2 * MAX_TRACKED_MILLISECONDS as u64 {
            ids.next(year + millisecond * IDS_PER_MILLISECOND, time(0));
        }
        assert!(ids.ahead.lock().unwrap().len() <= MAX_TRACKED_MILLISECONDS);
        ids.next(year, time(366 * 24 * 60 * 60 * 1_000));
        ids.next(2 * year, time(366 * 24 * 60 * 60 * 1_000));
        assert_eq!(ids.ahead.lock().unwrap().len(), 1, "past milliseconds are dropped");
    }

    #[test]
    fn every_retry_gets_another_id_however_much_is_tracked() {
        let max = MAX_TRACKED_MILLISECONDS;
        for tracked in [max - 1, max, max + 1] {
            let ids = IdGenerator::with_offset(0);
            let near = id::next(0, time(20).as_millisecond());
            let far = id::next(0, time(1_000).as_millisecond());
            for millisecond in 0..tracked as u64 {
                ids.next(far + millisecond * IDS_PER_MILLISECOND, time(0));
            }
            // The database refused each id, so the newest of the account stays the same.
            let attempts: HashSet<u64> = (0..3).map(|_| ids.next(near, time(0))).collect();
            assert_eq!(attempts.len(), 3, "{tracked}: {attempts:?}");
        }
    }

    #[test]
    fn an_account_ahead_gets_no_further_ahead_than_necessary() {
        let ids = IdGenerator::with_offset(0);
        let first = id::next(0, time(20).as_millisecond());
        let mut last = first;
        for _ in 0..10_000 {
            let next = ids.next(last, time(0));
            assert!(next > last, "{next}");
            last = next;
        }
        assert!(last - first < 4 * IDS_PER_MILLISECOND, "{}", last - first);
    }
}
