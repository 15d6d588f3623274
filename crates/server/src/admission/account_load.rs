//! What an account uses at the moment: requests in flight, large bodies and its rate.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use galley_domain::id::AccountId;
use galley_store::{FairSlot, FairSlots};
use tokio::sync::Semaphore;

use super::token_bucket::{Rate, TokenBucket};

/// Maximum number of requests with large bodies that an account has in flight. It bounds the memory
/// of bodies that wait for their turn.
pub(crate) const MAX_LARGE_BODIES_PER_ACCOUNT: usize = 64;

/// Time between two warnings about one account.
const MIN_WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// Number of accounts beyond which those without requests are removed from the table.
const MIN_PRUNED_ACCOUNTS: usize = 1_024;

/// The load of one account. It outlives the cached credentials of the account.
#[derive(Debug)]
pub(crate) struct AccountLoad {
    account: AccountId,
    in_flight: AtomicUsize,
    large_bodies: AtomicUsize,
    /// The large bodies that are processed.
    turns: Arc<Semaphore>,
    bucket: Mutex<Option<TokenBucket>>,
    /// When the log last said that the account is over a limit.
    warned_at: Mutex<Option<Duration>>,
}

/// Why an account has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overload {
    /// So many requests are in flight.
    Requests(usize),
    /// So many requests wait, and a further one wants to wait for events.
    LongPolls(usize),
    /// So many requests wait, and a further one wants to wait for something else.
    Waits(usize),
    /// So many requests with large bodies are in flight.
    LargeBodies(usize),
    /// The account has used its rate.
    Rate {
        /// Requests per second.
        per_second: u64,
        /// Time until the next request is admitted.
        retry_after: Duration,
    },
}

impl Overload {
    /// The name of the limit in headers, metrics and logs.
    pub(crate) fn limit_name(self) -> &'static str {
        match self {
            Self::Requests(_) => "requests-in-flight",
            Self::LongPolls(_) => "long-polls",
            Self::Waits(_) => "waits",
            Self::LargeBodies(_) => "large-bodies",
            Self::Rate { .. } => "requests-per-second",
        }
    }
}

/// A request in flight. Dropping it counts it out.
#[derive(Debug)]
pub(crate) struct InFlight {
    load: Arc<AccountLoad>,
    /// Set once the request waits.
    wait: OnceLock<FairSlot<AccountId>>,
}

/// A request with a large body. Dropping it counts it out and ends its turn.
#[derive(Debug)]
pub(crate) struct LargeBody(Arc<AccountLoad>);

impl AccountLoad {
    fn new(account: AccountId, turns: usize) -> Self {
        Self {
            account,
            in_flight: AtomicUsize::new(0),
            large_bodies: AtomicUsize::new(0),
            turns: Arc::new(Semaphore::new(turns)),
            bucket: Mutex::new(None),
            warned_at: Mutex::new(None),
        }
    }

    pub(crate) fn account(&self) -> AccountId {
        self.account
    }

    /// Admits a request of the account, which has at most `max` in flight and `per_second` a second.
    pub(crate) fn admit(
        self: &Arc<Self>,
        max: usize,
        per_second: Option<u64>,
        now: Duration,
    ) -> Result<InFlight, Overload> {
        count_in(&self.in_flight, max).ok_or(Overload::Requests(max))?;
        let load = Arc::clone(self);
        let in_flight = InFlight { load, wait: OnceLock::new() };
        // Last, because a refused request does not use the rate.
        if let Some(per_second) = per_second {
            self.take_token(per_second, now)?;
        }
        Ok(in_flight)
    }

    fn take_token(&self, per_second: u64, now: Duration) -> Result<(), Overload> {
        // Clients with several threads send small bursts: one second of the rate.
        let per_second_f64 = u32::try_from(per_second).map_or(f64::MAX, f64::from);
        let rate = Rate { per_second: per_second_f64, burst: per_second_f64 };
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = bucket.get_or_insert_with(|| TokenBucket::full(rate, now)).take(rate, now);
        taken.map_err(|retry_after| Overload::Rate { per_second, retry_after })
    }

    /// Whether the log has not said in the last minute that the account is over a limit.
    pub(crate) fn is_first_overload(&self, now: Duration) -> bool {
        let mut warned_at = self.warned_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = warned_at.is_none_or(|at| now >= at + MIN_WARNING_INTERVAL);
        if is_first {
            *warned_at = Some(now);
        }
        is_first
    }

    /// Admits a request with a large body.
    pub(crate) fn admit_large_body(self: &Arc<Self>) -> Result<LargeBody, Overload> {
        let max = MAX_LARGE_BODIES_PER_ACCOUNT;
        count_in(&self.large_bodies, max).ok_or(Overload::LargeBodies(max))?;
        Ok(LargeBody(Arc::clone(self)))
    }
}

/// Increments a counter that is below its maximum.
fn count_in(counter: &AtomicUsize, max: usize) -> Option<()> {
    if counter.fetch_add(1, Ordering::Relaxed) < max {
        return Some(());
    }
    counter.fetch_sub(1, Ordering::Relaxed);
    None
}

impl InFlight {
    pub(crate) fn load(&self) -> &Arc<AccountLoad> {
        &self.load
    }

    /// Counts the request as one that waits instead of one in flight, until it ends. If the account has
    /// its share of the slots, returns how many of its requests wait.
    pub(crate) fn begin_wait(&self, waits: &FairSlots<AccountId>) -> Result<(), usize> {
        if self.wait.get().is_some() {
            return Ok(());
        }
        let account = self.load.account;
        let slot = waits.try_acquire(account).ok_or_else(|| waits.in_use_by(account))?;
        if self.wait.set(slot).is_ok() {
            self.load.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.wait.get().is_none() {
            self.load.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl LargeBody {
    /// The turns of the account's large bodies.
    pub(crate) fn turns(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.turns)
    }
}

impl Drop for LargeBody {
    fn drop(&mut self) {
        self.0.large_bodies.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The loads of all accounts that have cached credentials or requests.
pub(crate) struct AccountLoads {
    turns_per_account: usize,
    table: Mutex<LoadTable>,
}

struct LoadTable {
    loads: HashMap<AccountId, Arc<AccountLoad>>,
    /// Size at which unused entries are removed.
    prune_at: usize,
}

impl AccountLoads {
    /// `turns_per_account` large bodies of an account are processed at a time.
    pub(crate) fn new(turns_per_account: usize) -> Self {
        let table = LoadTable { loads: HashMap::new(), prune_at: MIN_PRUNED_ACCOUNTS };
        Self { turns_per_account, table: Mutex::new(table) }
    }

    /// The load of an account.
    pub(crate) fn of(&self, account: AccountId) -> Arc<AccountLoad> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(load) = table.loads.get(&account) {
            return Arc::clone(load);
        }
        if table.loads.len() >= table.prune_at {
            table.loads.retain(|_, load| Arc::strong_count(load) > 1);
            table.prune_at = (2 * table.loads.len()).max(MIN_PRUNED_ACCOUNTS);
        }
        let load = Arc::new(AccountLoad::new(account, self.turns_per_account));
        table.loads.insert(account, Arc::clone(&load));
        load
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use galley_store::KeyShare;

    use super::*;

    const NOW: Duration = Duration::from_secs(7);

    fn load() -> Arc<AccountLoad> {
        Arc::new(AccountLoad::new(AccountId::new(1).unwrap(), 2))
    }

    #[test]
    fn requests_in_flight_are_limited_and_counted_out_when_they_end() {
        let load = load();
        let requests: Vec<_> = (0..3).map(|_| load.admit(3, None, NOW).unwrap()).collect();
        assert_eq!(load.admit(3, None, NOW).unwrap_err(), Overload::Requests(3));
        drop(requests);
        assert!(load.admit(3, None, NOW).is_ok());
    }

    #[test]
    fn requests_that_wait_are_counted_apart() {
        let (load, waits) = (load(), FairSlots::new(9, KeyShare::HalfOfFree));
        let waiting: Vec<_> = (0..3)
            .map(|_| load.admit(1, None, NOW).unwrap())
            .map(|it| it.begin_wait(&waits).map(|()| it).unwrap())
            .collect();
        let request = load.admit(1, None, NOW).unwrap();
        assert_eq!(request.begin_wait(&waits), Err(3));
        drop(waiting);
        for _ in 0..2 {
            assert_eq!(request.begin_wait(&waits), Ok(()), "a request waits once");
        }
        assert_eq!((waits.in_use(), load.in_flight.load(Ordering::Relaxed)), (1, 0));
        drop(request);
        assert_eq!((waits.in_use(), load.in_flight.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn large_bodies_of_an_account_take_turns() {
        let load = load();
        let bodies: Vec<_> = (0..3).map(|_| load.admit_large_body().unwrap()).collect();
        let mut turns: Vec<_> =
            bodies.iter().map(|body| Box::pin(body.turns().acquire_owned())).collect();
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |at: usize| turns[at].as_mut().poll(&mut context);
        let (Poll::Ready(Ok(first)), Poll::Ready(Ok(_second))) = (poll(0), poll(1)) else {
            panic!("two have their turn")
        };
        assert!(poll(2).is_pending());
        drop(first);
        assert!(poll(2).is_ready());
    }

    #[test]
    fn an_account_with_a_rate_gets_so_many_requests_a_second() {
        let load = load();
        let admitted = |millis: u64| {
            let now = NOW + Duration::from_millis(millis);
            (0..100).filter(|_| load.admit(9, Some(10), now).is_ok()).count()
        };
        assert_eq!(admitted(0), 10);
        assert_eq!(admitted(500), 5);
        let retry_after = Duration::from_millis(100);
        let refused = load.admit(9, Some(10), NOW + Duration::from_millis(500)).unwrap_err();
        assert_eq!(refused, Overload::Rate { per_second: 10, retry_after });
    }

    #[test]
    fn a_request_that_is_refused_for_others_in_flight_does_not_use_the_rate() {
        let load = load();
        let first = load.admit(1, Some(2), NOW).unwrap();
        for _ in 0..9 {
            assert_eq!(load.admit(1, Some(2), NOW).unwrap_err(), Overload::Requests(1));
        }
        drop(first);
        drop(load.admit(1, Some(2), NOW).unwrap());
        assert!(matches!(load.admit(1, Some(2), NOW), Err(Overload::Rate { .. })));
        assert_eq!(load.in_flight.load(Ordering::Relaxed), 0, "those are counted out");
    }

    #[test]
    fn loads_in_use_survive_and_others_are_removed() {
        let loads = AccountLoads::new(1);
        let id = |n: usize| AccountId::new(u64::try_from(n).unwrap() + 1).unwrap();
        let used = loads.of(id(0));
        for n in 1..5 * MIN_PRUNED_ACCOUNTS {
            loads.of(id(n));
        }
        assert!(Arc::ptr_eq(&used, &loads.of(id(0))));
        assert!(loads.table.lock().unwrap().loads.len() <= MIN_PRUNED_ACCOUNTS);
    }
}
