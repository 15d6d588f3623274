//! A token bucket: so many tokens a second, and a burst of them after a pause.

use std::time::Duration;

/// How fast a bucket fills, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    pub(crate) per_second: f64,
    pub(crate) burst: f64,
}

/// The tokens of one account or address. Times are monotonic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    tokens: f64,
    updated_at: Duration,
}

impl TokenBucket {
    pub(crate) fn full(rate: Rate, now: Duration) -> Self {
        Self { tokens: rate.burst, updated_at: now }
    }

    /// Takes a token, or returns how long it takes until there is one.
    pub(crate) fn take(&mut self, rate: Rate, now: Duration) -> Result<(), Duration> {
        self.take_in_advance(rate, 0.0, now).map(|_| ())
    }

    /// Takes a token and returns how long to wait for it. If already `max_debt` are taken in advance,
    /// takes none and returns how long it takes until one can be taken.
    pub(crate) fn take_in_advance(
        &mut self,
        rate: Rate,
        max_debt: f64,
        now: Duration,
    ) -> Result<Duration, Duration> {
        let tokens = self.refill(rate, now);
        if tokens - 1.0 < -max_debt {
            let missing = 1.0 - max_debt - tokens;
            return Err(Duration::from_secs_f64(missing / rate.per_second));
        }
        self.tokens -= 1.0;
        Ok(Duration::from_secs_f64((-self.tokens).max(0.0) / rate.per_second))
    }

    /// The tokens at this time.
    pub(crate) fn refill(&mut self, rate: Rate, now: Duration) -> f64 {
        let elapsed = now.saturating_sub(self.updated_at).as_secs_f64();
        self.tokens = elapsed.mul_add(rate.per_second, self.tokens).min(rate.burst);
        self.updated_at = self.updated_at.max(now);
        self.tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 10.0, burst: 20.0 };

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut bucket = TokenBucket::full(RATE, at(0));
        for _ in 0..20 {
            assert_eq!(bucket.take(RATE, at(0)), Ok(()));
        }
        assert_eq!(bucket.take(RATE, at(0)), Err(at(100)));
        assert_eq!(bucket.take(RATE, at(100)), Ok(()));
        let passed = (0..1_000).filter(|n| bucket.take(RATE, at(100 + n)).is_ok()).count();
        assert_eq!(passed, 9, "in the next 999 ms");
        let passed = (0..100).filter(|_| bucket.take(RATE, at(60_000)).is_ok()).count();
        assert_eq!(passed, 20, "after a pause");
    }

    #[test]
    fn tokens_taken_in_advance_are_waited_for_in_turn() {
        let mut bucket = TokenBucket::full(RATE, at(0));
        (0..20).for_each(|_| bucket.take(RATE, at(0)).unwrap());
        for n in 1..=3 {
            assert_eq!(bucket.take_in_advance(RATE, 3.0, at(0)), Ok(at(100 * n)));
        }
        assert_eq!(bucket.take_in_advance(RATE, 3.0, at(0)), Err(at(100)));
        assert_eq!(bucket.take_in_advance(RATE, 3.0, at(100)), Ok(at(300)));
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_adds_nothing() {
        let mut bucket = TokenBucket::full(RATE, at(1_000));
        (0..20).for_each(|_| bucket.take(RATE, at(1_000)).unwrap());
        assert!(bucket.take(RATE, at(0)).is_err());
        assert!(bucket.take(RATE, at(1_000)).is_err());
    }
}
