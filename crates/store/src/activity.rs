//! Counts in memory what a store does: batches, commits, and waits for slots and connections. The
//! metrics report them. Each count is an atomic, so that counting delays no request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{HistogramSnapshot, PoolActivity};

/// Upper bounds of the buckets for the number of writes in a batch.
const BATCH_BOUNDS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// Upper bounds of the buckets for the duration of a commit, in microseconds.
const COMMIT_BOUNDS: &[u64] =
    &[100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_500_000];

/// Counts values by bucket.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [u64],
    /// The values of each bucket, not cumulative. The last bucket has no bound.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    fn observe(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> HistogramSnapshot {
        let mut count = 0;
        let mut cumulative = self.counts.iter().map(|it| {
            count += it.load(Ordering::Relaxed);
            count
        });
        let buckets = self.bounds.iter().copied().zip(cumulative.by_ref()).collect();
        let count = cumulative.last().unwrap_or(0);
        HistogramSnapshot { buckets, count, sum: self.sum.load(Ordering::Relaxed) }
    }
}

/// Counts the batches of a store and the durations of their commits.
#[derive(Debug)]
pub(crate) struct CommitCounters {
    pub(crate) batch_sizes: Histogram,
    pub(crate) commit_micros: Histogram,
}

impl Default for CommitCounters {
    fn default() -> Self {
        Self {
            batch_sizes: Histogram::new(BATCH_BOUNDS),
            commit_micros: Histogram::new(COMMIT_BOUNDS),
        }
    }
}

impl CommitCounters {
    /// Records a committed batch of this many writes.
    pub(crate) fn record_batch(&self, writes: usize) {
        self.batch_sizes.observe(writes as u64);
    }

    /// Records a commit that began then and has just ended.
    pub(crate) fn record_commit(&self, began: Instant) {
        self.commit_micros.observe(micros(began.elapsed()));
    }
}

/// Counts the callers that had to wait for a slot or a connection, and how long.
#[derive(Debug, Default)]
pub(crate) struct WaitCounter {
    waits: AtomicU64,
    micros: AtomicU64,
}

impl WaitCounter {
    /// Counts a wait, until the result is dropped: also one that is given up.
    pub(crate) fn begin(&self) -> CountedWait<'_> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        CountedWait { counter: self, began: Instant::now() }
    }

    pub(crate) fn activity(&self, name: &'static str, size: usize, in_use: usize) -> PoolActivity {
        PoolActivity {
            name,
            size,
            in_use,
            waits: self.waits.load(Ordering::Relaxed),
            waited: Duration::from_micros(self.micros.load(Ordering::Relaxed)),
        }
    }
}

/// A caller that waits. Dropping it ends the wait.
#[derive(Debug)]
#[must_use = "dropping it ends the wait"]
pub(crate) struct CountedWait<'c> {
    counter: &'c WaitCounter,
    began: Instant,
}

impl Drop for CountedWait<'_> {
    fn drop(&mut self) {
        self.counter.micros.fetch_add(micros(self.began.elapsed()), Ordering::Relaxed);
    }
}

/// A semaphore that counts the callers that had to wait.
#[derive(Debug)]
pub(crate) struct CountedPermits {
    semaphore: Arc<Semaphore>,
    size: usize,
    waits: WaitCounter,
}

impl CountedPermits {
    pub(crate) fn new(size: usize) -> Self {
        Self { semaphore: Arc::new(Semaphore::new(size)), size, waits: WaitCounter::default() }
    }

    /// Waits for a permit; `None` never happens, because the semaphore is never closed.
    pub(crate) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.semaphore).try_acquire_owned() {
            return Some(permit);
        }
        let _waiting = self.waits.begin();
        Arc::clone(&self.semaphore).acquire_owned().await.ok()
    }

    pub(crate) fn activity(&self, name: &'static str) -> PoolActivity {
        let in_use = self.size.saturating_sub(self.semaphore.available_permits());
        self.waits.activity(name, self.size, in_use)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_value_is_in_the_bucket_of_its_bound_and_in_all_larger_ones() {
        let histogram = Histogram::new(&[1, 10]);
        for value in [0, 1, 2, 10, 11, 1_000] {
            histogram.observe(value);
        }
        let buckets = vec![(1, 2), (10, 4)];
        assert_eq!(histogram.snapshot(), HistogramSnapshot { buckets, count: 6, sum: 1_024 });
    }

    #[tokio::test]
    async fn only_a_caller_that_finds_no_free_permit_is_counted_as_waiting() {
        let permits = CountedPermits::new(1);
        let held = permits.acquire().await;
        let busy = permits.activity("p");
        assert_eq!((busy.size, busy.in_use, busy.waits), (1, 1, 0));
        let mut second = Box::pin(permits.acquire());
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(permits.activity("p").waits, 1);
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        drop(second);
        drop(held);
        assert!(permits.acquire().await.is_some());
        let idle = permits.activity("p");
        assert_eq!((idle.in_use, idle.waits), (0, 1), "a wait that was given up is counted");
        assert!(idle.waited >= Duration::from_millis(1), "{idle:?}");
    }
}
