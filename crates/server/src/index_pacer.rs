//! Paces the index steps that searches wait for, so that searches of one account neither keep those
//! of others waiting nor take a processor from creates.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use galley_domain::id::AccountId;
use galley_store::{FairSlot, FairSlots, KeyShare};
use tokio::time::{Instant, sleep_until, timeout};

/// Pause after a step under load, as a multiple of the step's duration. Limits these steps to a
/// quarter of one core.
const BUSY_PAUSE_FACTOR: u32 = 3;

/// Time after which a step hangs, so that others may run.
const MAX_STEP: Duration = Duration::from_secs(30);

/// Gives the right to run index steps, one at a time, to accounts in turns.
pub(crate) struct IndexPacer {
    turns: FairSlots<AccountId>,
    /// When the next step may begin.
    next_step_at: Mutex<Instant>,
}

/// The right to run one step. Dropping it ends the step.
pub(crate) struct IndexTurn {
    pacer: Arc<IndexPacer>,
    _slot: FairSlot<AccountId>,
    started: Instant,
    requests_before: u64,
    request_count: fn() -> u64,
}

impl Default for IndexPacer {
    fn default() -> Self {
        Self {
            turns: FairSlots::new(1, KeyShare::AtMost(1)),
            next_step_at: Mutex::new(Instant::now()),
        }
    }
}

impl IndexPacer {
    /// Waits for the account's turn, and for the pause after the step before. `request_count`
    /// counts all requests of the service.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        account: AccountId,
        request_count: fn() -> u64,
    ) -> IndexTurn {
        let slot = self.turns.acquire(account).await;
        let next_step_at = *self.next_step_at();
        sleep_until(next_step_at).await;
        let (started, requests_before) = (Instant::now(), request_count());
        let pacer = Arc::clone(self);
        IndexTurn { pacer, _slot: slot, started, requests_before, request_count }
    }

    fn next_step_at(&self) -> MutexGuard<'_, Instant> {
        self.next_step_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IndexTurn {
    /// Runs a step to its end, even if the search gives up: the store completes what it has begun, so
    /// the turn must not end before. `None` if the step panics or hangs.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        step: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let step = async move {
            let result = timeout(MAX_STEP, step).await;
            drop(self);
            result
        };
        tokio::spawn(step).await.ok()?.ok()
    }
}

impl Drop for IndexTurn {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        // More than one request per millisecond.
        let requests = (self.request_count)() - self.requests_before;
        if u128::from(requests) > took.as_millis() {
            *self.pacer.next_step_at() = Instant::now() + took * BUSY_PAUSE_FACTOR;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn account(id: u64) -> AccountId {
        AccountId::new(id).unwrap()
    }

    /// Runs steps of 10 ms for a second, and returns how many there were.
    async fn steps_per_second(request_count: fn() -> u64) -> u32 {
        let pacer = Arc::new(IndexPacer::default());
        let end = Instant::now() + Duration::from_secs(1);
        let mut steps = 0;
        while Instant::now() < end {
            let _turn = pacer.turn(account(1), request_count).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
            steps += 1;
        }
        steps
    }

    #[tokio::test(start_paused = true)]
    async fn steps_under_load_take_a_quarter_of_the_time() {
        static REQUESTS: AtomicU64 = AtomicU64::new(0);
        assert_eq!(steps_per_second(|| 0).await, 100);
        let busy = steps_per_second(|| REQUESTS.fetch_add(20, Ordering::Relaxed)).await;
        assert!((25..=26).contains(&busy), "{busy}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_keeps_its_turn_when_the_search_gives_up() {
        let pacer = Arc::new(IndexPacer::default());
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let turn = pacer.turn(account(1), || 0).await;
        let step = turn.run(tokio::time::sleep(10 * second));
        assert!(tokio::time::timeout(second, step).await.is_err(), "the search gives up");
        let _next = pacer.turn(account(2), || 0).await;
        assert_eq!(begin.elapsed(), 10 * second);
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_hangs_does_not_keep_its_turn_for_ever() {
        let pacer = Arc::new(IndexPacer::default());
        let turn = pacer.turn(account(1), || 0).await;
        assert_eq!(turn.run(std::future::pending::<()>()).await, None);
        drop(pacer.turn(account(2), || 0).await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_with_many_searches_leaves_the_next_turn_to_another() {
        let pacer = Arc::new(IndexPacer::default());
        let first = pacer.turn(account(1), || 0).await;
        let order = Mutex::new(Vec::new());
        let search = async |id| {
            let _turn = pacer.turn(account(id), || 0).await;
            order.lock().unwrap().push(id);
        };
        let end = async {
            tokio::task::yield_now().await;
            drop(first);
        };
        tokio::join!(search(1), search(1), search(1), search(2), end);
        assert_eq!(order.into_inner().unwrap()[0], 2);
    }
}
