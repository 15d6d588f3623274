//! Counts in memory what a store does: batches, commits, and waits for slots and connections. The
//! metrics report them. Counters are atomics, so that counting delays no request.

use std::{
    hash::Hash,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use crate::{FairSlot, FairSlots, HistogramSnapshot, KeyShare, PoolActivity};

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

/// Slots, and the callers that had to wait for one: how many, and how long.
#[derive(Debug)]
pub(crate) struct CountedSlots<K: Copy + Eq + Hash> {
    pub(crate) slots: FairSlots<K>,
    waits: AtomicU64,
    micros: AtomicU64,
}

impl<K: Copy + Eq + Hash> CountedSlots<K> {
    pub(crate) fn new(total: usize, share: KeyShare) -> Self {
        let slots = FairSlots::new(total, share);
        Self { slots, waits: AtomicU64::new(0), micros: AtomicU64::new(0) }
    }

    pub(crate) async fn acquire(&self, key: K) -> FairSlot<K> {
        match self.slots.try_acquire(key) {
            Some(slot) => slot,
            None => self.wait(key).await,
        }
    }

    /// Waits for a slot, and counts the wait: also one that is given up.
    pub(crate) async fn wait(&self, key: K) -> FairSlot<K> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        let _waiting = CountedWait { micros: &self.micros, began: Instant::now() };
        self.slots.acquire(key).await
    }

    pub(crate) fn activity(&self, name: &'static str) -> PoolActivity {
        PoolActivity {
            name,
            size: self.slots.total(),
            in_use: self.slots.in_use(),
            waits: self.waits.load(Ordering::Relaxed),
            waited: Duration::from_micros(self.micros.load(Ordering::Relaxed)),
        }
    }
}

/// A caller that waits. Dropping it ends the wait.
struct CountedWait<'c> {
    micros: &'c AtomicU64,
    began: Instant,
}

impl Drop for CountedWait<'_> {
    fn drop(&mut self) {
        self.micros.fetch_add(micros(self.began.elapsed()), Ordering::Relaxed);
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
    async fn only_a_caller_that_finds_no_free_slot_is_counted_as_waiting() {
        let slots = CountedSlots::new(1, KeyShare::AtMost(1));
        let held = slots.acquire(()).await;
        let busy = slots.activity("p");
        assert_eq!((busy.size, busy.in_use, busy.waits), (1, 1, 0));
        let mut second = Box::pin(slots.acquire(()));
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(slots.activity("p").waits, 1);
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        drop(second);
        drop(held);
        drop(slots.acquire(()).await);
        let idle = slots.activity("p");
        assert_eq!((idle.in_use, idle.waits), (0, 1), "a wait that was given up is counted");
        assert!(idle.waited >= Duration::from_millis(1), "{idle:?}");
    }
}
