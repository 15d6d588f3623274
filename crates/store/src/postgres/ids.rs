//! Ids of templates. They grow with time and within an account; those of several processes differ
//! because each begins its milliseconds elsewhere, and where they meet nevertheless the database
//! refuses the second.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use galley_domain::id::{self, PER_MILLISECOND};
use jiff::Timestamp;

/// How many places of a millisecond are for accounts that are ahead of the clock.
const AHEAD: u64 = PER_MILLISECOND / 2;

/// Of how many milliseconds that are still to come it is known what was given out of them.
const REMEMBERED: usize = 10_000;

/// Gives ids out.
pub(super) struct Ids {
    /// Where this process begins its milliseconds.
    offset: u64,
    /// The newest that follows the clock.
    last: AtomicU64,
    /// How many each millisecond ahead of the clock has given.
    ahead: Mutex<BTreeMap<u64, u64>>,
}

impl Default for Ids {
    fn default() -> Self {
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
        Self::beginning_at(random % PER_MILLISECOND)
    }
}

impl Ids {
    fn beginning_at(offset: u64) -> Self {
        Self { offset, last: AtomicU64::new(0), ahead: Mutex::default() }
    }

    /// An id behind `previous`, the newest of its account.
    pub(super) fn next(&self, previous: u64, at: Timestamp) -> u64 {
        let now = id::next(0, at.as_millisecond());
        let behind = |last: u64| (now + self.offset).max(last + 1);
        let last =
            self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(behind(last)));
        let own = behind(last.unwrap_or_else(|last| last));
        if own > previous { own } else { self.ahead_of(previous, now) }
    }

    /// The account got its newest id from an instance whose clock is ahead of ours, or was. Following
    /// that one by one would meet the ids that the instance gave to other accounts; so it goes on at
    /// places of our own, half a millisecond from where those begin that follow our clock. How far
    /// ahead it is stays with the account: a clock that was wrong for a moment is no matter to others.
    fn ahead_of(&self, previous: u64, now: u64) -> u64 {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead = ahead.split_off(&(now / PER_MILLISECOND));
        let mut millisecond = previous / PER_MILLISECOND;
        loop {
            // Before it is added, so that whoever tries again finds what he was given.
            if ahead.len() >= REMEMBERED && !ahead.contains_key(&millisecond) {
                ahead.clear();
            }
            let given = ahead.entry(millisecond).or_default();
            let place = (self.offset + AHEAD + *given) % PER_MILLISECOND;
            let id = millisecond * PER_MILLISECOND + place;
            if *given < AHEAD && id > previous {
                *given += 1;
                return id;
            }
            millisecond += 1;
        }
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
    fn accounts_that_are_ahead_get_ids_of_their_own_however_many_they_are() {
        for offset in [0, 4_000, 7_900] {
            let ids = Ids::beginning_at(offset);
            let first = id::next(0, moment(20).as_millisecond());
            let mut newest: Vec<u64> = (0..500).map(|it| first + 3 * it).collect();
            let mut given = HashSet::new();
            for _ in 0..100 {
                for account in &mut newest {
                    let id = ids.next(*account, moment(0));
                    assert!(id > *account && given.insert(id), "{id} is new and grows");
                    *account = id;
                }
            }
        }
    }

    #[test]
    fn what_is_remembered_of_the_time_to_come_has_an_end() {
        let ids = Ids::beginning_at(0);
        let year = id::next(0, moment(365 * 24 * 60 * 60 * 1_000).as_millisecond());
        for millisecond in 0..2 * REMEMBERED as u64 {
            ids.next(year + millisecond * PER_MILLISECOND, moment(0));
        }
        assert!(ids.ahead.lock().unwrap().len() <= REMEMBERED);
        ids.next(year, moment(366 * 24 * 60 * 60 * 1_000));
        ids.next(2 * year, moment(366 * 24 * 60 * 60 * 1_000));
        assert_eq!(ids.ahead.lock().unwrap().len(), 1, "what the clock has passed is forgotten");
    }

    #[test]
    fn whoever_tries_again_gets_another_id_however_much_is_remembered() {
        for remembered in [REMEMBERED - 1, REMEMBERED, REMEMBERED + 1] {
            let ids = Ids::beginning_at(0);
            let near = id::next(0, moment(20).as_millisecond());
            let far = id::next(0, moment(1_000).as_millisecond());
            for millisecond in 0..remembered as u64 {
                ids.next(far + millisecond * PER_MILLISECOND, moment(0));
            }
            // The database has refused the first, so the newest of the account is what it was.
            let tries: HashSet<u64> = (0..3).map(|_| ids.next(near, moment(0))).collect();
            assert_eq!(tries.len(), 3, "{remembered}: {tries:?}");
        }
    }

    #[test]
    fn an_account_that_is_ahead_gets_no_further_ahead_than_it_has_to() {
        let ids = Ids::beginning_at(0);
        let first = id::next(0, moment(20).as_millisecond());
        let mut last = first;
        for _ in 0..10_000 {
            let next = ids.next(last, moment(0));
            assert!(next > last, "{next}");
            last = next;
        }
        assert!(last - first < 4 * PER_MILLISECOND, "{}", last - first);
    }
}
