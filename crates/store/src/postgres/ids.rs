//! Ids of templates. They grow with time and within an account; those of several processes differ
//! because each begins its milliseconds elsewhere, and where they meet nevertheless the database
//! refuses the second.

use std::sync::atomic::{AtomicU64, Ordering};

use galley_domain::id::{self, PER_MILLISECOND};
use jiff::Timestamp;

/// How many places of a millisecond are for accounts that are ahead of the clock: as many as a batch
/// has creations, each of which may be for another account.
const AHEAD: u64 = 256;

/// Gives ids out.
pub(super) struct Ids {
    /// Where this process begins its milliseconds.
    offset: u64,
    /// The newest that follows the clock.
    last: AtomicU64,
    /// How many were given to accounts that are ahead of it.
    ahead: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
        Self::beginning_at(random % PER_MILLISECOND)
    }
}

impl Ids {
    fn beginning_at(offset: u64) -> Self {
        Self { offset, last: AtomicU64::new(0), ahead: AtomicU64::new(0) }
    }

    /// An id behind `previous`, the newest of its account.
    pub(super) fn next(&self, previous: u64, at: Timestamp) -> u64 {
        let now = id::next(0, at.as_millisecond()) + self.offset;
        let behind = |last: u64| now.max(last + 1);
        let last =
            self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(behind(last)));
        let own = behind(last.unwrap_or_else(|last| last));
        if own > previous { own } else { self.ahead_of(previous) }
    }

    /// The account got its newest id from an instance whose clock is ahead of ours. Following that
    /// one by one would meet the ids that the instance gave to other accounts; so it goes on at
    /// places of our own, half a millisecond from where those begin that follow our clock. How far
    /// ahead it is stays with the account: a clock that was wrong for a moment is no matter to others.
    fn ahead_of(&self, previous: u64) -> u64 {
        let turn = self.ahead.fetch_add(1, Ordering::Relaxed) % AHEAD;
        let place = (self.offset + PER_MILLISECOND / 2 + turn) % PER_MILLISECOND;
        let there = previous - previous % PER_MILLISECOND + place;
        if there > previous { there } else { there + PER_MILLISECOND }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn moment(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_790_000_000_000 + millis).unwrap()
    }

    #[test]
    fn an_instance_whose_clock_is_behind_meets_no_id_of_the_one_ahead() {
        let (ahead, behind) = (Ids::beginning_at(100), Ids::beginning_at(5_000));
        let mut newest = [0; 3];
        let mut given = HashSet::new();
        for round in 0..50 {
            for (place, account) in newest.iter_mut().enumerate() {
                let from = if (round + place) % 2 == 0 { &ahead } else { &behind };
                let late = if (round + place) % 2 == 0 { 20 } else { 0 };
                let id = from.next(*account, moment(i64::try_from(round).unwrap() + late));
                assert!(id > *account && given.insert(id), "{id} is new and grows");
                *account = id;
            }
        }
    }

    #[test]
    fn an_account_that_is_far_ahead_takes_no_other_with_it() {
        let ids = Ids::beginning_at(8_000);
        let year = 365 * 24 * 60 * 60 * 1_000;
        let (far, near) = (id::next(0, moment(year).as_millisecond()), |it: i64| {
            id::next(0, moment(it).as_millisecond())
        });
        assert!(ids.next(far, moment(0)) > far);
        // One that is ahead by a bit, and one that is not.
        let bit = ids.next(near(20), moment(0));
        assert!(bit > near(20) && bit < near(22), "{bit}");
        let own = ids.next(0, moment(0));
        assert!(own > near(0) && own < near(2), "{own}");
    }

    #[test]
    fn accounts_that_are_ahead_in_the_same_millisecond_get_ids_of_their_own() {
        let ids = Ids::beginning_at(7_900);
        let previous = id::next(0, moment(20).as_millisecond());
        let given: HashSet<u64> = (0..AHEAD).map(|it| ids.next(previous + it, moment(0))).collect();
        assert_eq!(given.len() as u64, AHEAD);
    }

    #[test]
    fn an_account_that_is_ahead_gets_no_further_ahead_than_it_has_to() {
        let ids = Ids::beginning_at(0);
        let first = id::next(0, moment(20).as_millisecond());
        let mut last = first;
        for _ in 0..10 * AHEAD {
            let next = ids.next(last, moment(0));
            assert!(next > last, "{next}");
            last = next;
        }
        assert!(last - first < 12 * PER_MILLISECOND, "{}", last - first);
    }
}
