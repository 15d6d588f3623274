//! Slows down clients whose credentials fail: a rate for each address, in a table of fixed size.

use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::token_bucket::{Rate, TokenBucket};

/// Seconds of the rate that an address may use at once. A client with a wrong token that retries in
/// many threads gets the response that says what is wrong.
pub(crate) const BURST_SECONDS: u32 = 10;

/// Number of responses that one address waits for at a time. Further ones are sent at once, and their
/// connections close.
const MAX_DELAYED_PER_ADDRESS: f64 = 256.0;

/// The longest time that a response waits.
const MAX_DELAY_SECONDS: f64 = 5.0;

/// Time without further warnings about an address that fails, pauses and fails again.
const MIN_WARNING_INTERVAL: Duration = Duration::from_mins(1);

const SETS: usize = 512;
const ENTRIES_PER_SET: usize = 8;

/// What happens to a request whose credentials have failed too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Throttled {
    /// How long the response waits; `None` if too many responses wait already.
    pub(crate) delay: Option<Duration>,
    /// How long it takes until a failure is no longer throttled.
    pub(crate) retry_after: Duration,
    /// Whether it is the first of a burst, which is logged.
    pub(crate) is_first: bool,
}

/// The addresses from which credentials have failed. The table has room for 4,096 addresses; a new
/// one replaces that of its set which has failed least.
pub(crate) struct FailedCredentials {
    rate: Rate,
    max_delayed_per_address: f64,
    max_delayed: usize,
    delayed: AtomicUsize,
    hasher: RandomState,
    /// Allocated with the first failure.
    sets: OnceLock<Box<[Mutex<AddressSet>]>>,
}

type AddressSet = [Option<AddressFailures>; ENTRIES_PER_SET];

#[derive(Clone, Copy)]
struct AddressFailures {
    address: AddressKey,
    bucket: TokenBucket,
    is_throttled: bool,
    warned_at: Option<Duration>,
}

/// An IPv4 address, or the first 64 bits of an IPv6 address: a client usually has a whole `/64`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum AddressKey {
    V4(u32),
    V6(u64),
}

impl AddressKey {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => {
                let network = address.to_bits() >> 64;
                Self::V6(u64::try_from(network).unwrap_or(u64::MAX))
            }
        }
    }
}

impl FailedCredentials {
    /// A table for `per_second` failures per address. At most `max_delayed` responses wait at a time.
    pub(crate) fn new(per_second: u32, max_delayed: usize) -> Self {
        let burst = f64::from(per_second) * f64::from(BURST_SECONDS);
        Self {
            rate: Rate { per_second: f64::from(per_second), burst },
            max_delayed_per_address: MAX_DELAYED_PER_ADDRESS
                .min(f64::from(per_second) * MAX_DELAY_SECONDS),
            max_delayed,
            delayed: AtomicUsize::new(0),
            hasher: RandomState::new(),
            sets: OnceLock::new(),
        }
    }

    /// Records a failure. `None` if the address is within its rate. `now` is a monotonic time.
    pub(crate) fn record(&self, address: IpAddr, now: Duration) -> Option<Throttled> {
        let key = AddressKey::of(address);
        let sets = self.sets.get_or_init(|| (0..SETS).map(|_| Mutex::default()).collect());
        // The remainder is below the number of sets.
        let index = usize::try_from(self.hasher.hash_one(key) % SETS as u64).unwrap_or(0);
        let mut set = sets[index].lock().unwrap_or_else(PoisonError::into_inner);
        self.entry(&mut set, key, now).record(self.rate, self.max_delayed_per_address, now)
    }

    /// The entry of an address. A new one replaces the entry with the most tokens.
    fn entry<'s>(
        &self,
        set: &'s mut AddressSet,
        address: AddressKey,
        now: Duration,
    ) -> &'s mut AddressFailures {
        let is_known = |it: &Option<AddressFailures>| it.is_some_and(|it| it.address == address);
        let mut tokens = |at: usize| {
            set[at].as_mut().map_or(f64::INFINITY, |it| it.bucket.refill(self.rate, now))
        };
        let most = (0..ENTRIES_PER_SET)
            .map(|at| (at, tokens(at)))
            .max_by(|(_, one), (_, other)| one.total_cmp(other));
        let replaced = most.map_or(0, |(at, _)| at);
        let at = set.iter().position(is_known);
        let entry = &mut set[at.unwrap_or(replaced)];
        if at.is_none() {
            *entry = None;
        }
        entry.get_or_insert_with(|| AddressFailures {
            address,
            bucket: TokenBucket::full(self.rate, now),
            is_throttled: false,
            warned_at: None,
        })
    }

    /// Reserves a place among the responses that wait. `None` if all are taken.
    pub(crate) fn delay(&self) -> Option<Delayed<'_>> {
        let place = Delayed(&self.delayed);
        (self.delayed.fetch_add(1, Ordering::Relaxed) < self.max_delayed).then_some(place)
    }
}

impl AddressFailures {
    fn record(&mut self, rate: Rate, max_delayed: f64, now: Duration) -> Option<Throttled> {
        if self.bucket.refill(rate, now) > rate.burst / 2.0 {
            self.is_throttled = false;
        }
        let taken = self.bucket.take_in_advance(rate, max_delayed, now);
        let (delay, retry_after) = match taken {
            Ok(Duration::ZERO) => return None,
            Ok(delay) => (Some(delay), delay),
            Err(wait) => {
                let debt = max_delayed / rate.per_second;
                (None, wait + Duration::from_secs_f64(debt))
            }
        };
        let was_warned = self.warned_at.is_some_and(|at| now < at + MIN_WARNING_INTERVAL);
        let is_first = !self.is_throttled && !was_warned;
        self.is_throttled = true;
        if is_first {
            self.warned_at = Some(now);
        }
        Some(Throttled { delay, retry_after, is_first })
    }
}

/// A response that waits. Dropping it frees its place.
pub(crate) struct Delayed<'a>(&'a AtomicUsize);

impl Drop for Delayed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn failures_beyond_the_burst_wait_for_their_turn_and_one_of_them_is_logged() {
        let failures = FailedCredentials::new(10, 8);
        let attacker = address("192.0.2.1");
        assert!((0..100).all(|_| failures.record(attacker, at(0)).is_none()));
        let throttled: Vec<_> =
            (0..300).map(|_| failures.record(attacker, at(0)).unwrap()).collect();
        assert_eq!(throttled[0].delay, Some(at(100)));
        assert_eq!(throttled[49].delay, Some(at(5_000)));
        assert_eq!(throttled[50].delay, None, "too many wait");
        assert_eq!(throttled.iter().filter(|it| it.is_first).count(), 1);
        assert_eq!(failures.record(address("192.0.2.2"), at(0)), None, "another address");
    }

    #[test]
    fn a_new_burst_is_logged_again_but_not_every_few_seconds() {
        let failures = FailedCredentials::new(10, 8);
        let burst = |now: u64| {
            let record = |_| failures.record(address("192.0.2.1"), at(now));
            (0..110).filter_map(record).filter(|it| it.is_first).count()
        };
        assert_eq!(burst(0), 1);
        assert_eq!(burst(20_000), 0, "within a minute");
        assert_eq!(burst(80_000), 1);
    }

    #[test]
    fn addresses_of_an_ipv6_network_count_together() {
        let failures = FailedCredentials::new(1, 8);
        for n in 0..10 {
            assert_eq!(failures.record(address(&format!("2001:db8::{n}")), at(0)), None);
        }
        assert!(failures.record(address("2001:db8::ffff:1"), at(0)).is_some());
        assert_eq!(failures.record(address("2001:db8:0:1::1"), at(0)), None);
        let mapped = |n: u8| failures.record(address(&format!("::ffff:192.0.2.{n}")), at(0));
        assert!((0..20).all(|n| mapped(n).is_none()), "IPv4 addresses count separately");
    }

    #[test]
    fn many_other_addresses_do_not_displace_one_that_is_throttled() {
        let failures = FailedCredentials::new(1, 8);
        let attacker = address("192.0.2.1");
        assert_eq!((0..20).filter_map(|_| failures.record(attacker, at(0))).count(), 10);
        for n in 0..100_000_u32 {
            failures.record(IpAddr::V4((0x0a00_0000 + n).into()), at(0));
        }
        assert!(failures.record(attacker, at(0)).is_some());
    }

    #[test]
    fn only_so_many_responses_wait_in_the_process() {
        let failures = FailedCredentials::new(1, 2);
        let places = [failures.delay(), failures.delay()];
        assert!(places.iter().all(Option::is_some) && failures.delay().is_none());
        drop(places);
        assert!(failures.delay().is_some());
    }
}
