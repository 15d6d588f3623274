//! How fast one endpoint gets deliveries: how many per second, and how many at the same time.

use std::time::Duration;

use tokio::time::Instant;

/// Maximum concurrent deliveries to one endpoint, each for another template.
const MAX_CONCURRENT: u32 = 8;

/// The response time up to which an endpoint gets all of its concurrent deliveries. One that takes
/// twice as long gets half as many (rounded up), so that slow endpoints do not hold the slots of quick ones.
const QUICK_RESPONSE: Duration = Duration::from_secs(1);

/// How long the pace of an endpoint without deliveries is remembered.
pub(super) const MAX_UNUSED: Duration = Duration::from_mins(10);

/// Deliveries that an endpoint may receive in a burst after a quiet period.
const BURST_DELIVERIES: u32 = 10;

/// Limits the deliveries to one endpoint.
pub(super) struct EndpointPace {
    /// Time between two deliveries.
    interval: Duration,
    /// When the last acquired delivery may start.
    next: Instant,
    /// No delivery starts before this instant.
    paused_until: Instant,
    /// Moving average of how long requests take.
    response_time: Duration,
}

impl EndpointPace {
    pub(super) fn new(per_second: u32) -> Self {
        let interval = Duration::from_secs(1) / per_second.max(1);
        let now = Instant::now();
        Self { interval, next: now, paused_until: now, response_time: Duration::ZERO }
    }

    pub(super) fn pause(&mut self, duration: Duration) {
        self.paused_until = Instant::now() + duration;
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused_until > Instant::now()
    }

    /// Whether the pace has no effect any more: the endpoint got no delivery for a long time.
    pub(super) fn is_obsolete(&self) -> bool {
        self.next.max(self.paused_until).elapsed() > MAX_UNUSED
    }

    /// Returns an acquired delivery because none was due.
    pub(super) fn refund(&mut self) {
        self.next = self.next.checked_sub(self.interval).unwrap_or(self.next);
    }

    /// Waits until the next delivery may start.
    pub(super) async fn acquire(&mut self) {
        let now = Instant::now();
        let earliest = now.checked_sub(self.interval * BURST_DELIVERIES).unwrap_or(now);
        self.next = self.next.max(earliest) + self.interval;
        tokio::time::sleep_until(self.next).await;
    }

    /// Records how long a request took.
    pub(super) fn record(&mut self, took: Duration) {
        self.response_time = (3 * self.response_time + took) / 4;
    }

    /// How many deliveries may run at the same time.
    pub(super) fn max_concurrent(&self) -> usize {
        let quotient = (QUICK_RESPONSE * MAX_CONCURRENT)
            .as_millis()
            .div_ceil(self.response_time.max(QUICK_RESPONSE).as_millis());
        usize::try_from(quotient).unwrap_or_default().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn deliveries_are_spread_after_a_burst() {
        let mut pace = EndpointPace::new(10);
        tokio::time::advance(Duration::from_mins(1)).await;
        let start = Instant::now();
        for _ in 0..BURST_DELIVERIES {
            pace.acquire().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..5 {
            pace.acquire().await;
        }
        assert_eq!(start.elapsed(), Duration::from_millis(500));
        pace.refund();
        pace.acquire().await;
        assert_eq!(start.elapsed(), Duration::from_millis(500), "a refund can be used again");
    }

    #[tokio::test]
    async fn a_slow_endpoint_gets_one_delivery_at_a_time_until_it_is_quick_again() {
        let mut pace = EndpointPace::new(50);
        let mut after = |seconds: &[u64]| {
            for seconds in seconds {
                pace.record(Duration::from_secs(*seconds));
            }
            pace.max_concurrent()
        };
        assert_eq!(after(&[]), 8);
        assert_eq!(after(&[1, 1, 1]), 8);
        assert_eq!(after(&[14]), 3);
        assert_eq!(after(&[14, 14, 14]), 1);
        assert_eq!(after(&[0; 5]), 4);
        assert_eq!(after(&[0; 5]), 8);
        assert_eq!(after(&[60; 20]), 1);
    }

    #[tokio::test]
    async fn the_number_of_concurrent_deliveries_is_eight_seconds_by_the_response_time() {
        let mut pace = EndpointPace::new(50);
        for (millis, expected) in
            [(1_000, 8), (1_001, 8), (2_000, 4), (4_001, 2), (7_999, 2), (8_000, 1), (60_000, 1)]
        {
            pace.response_time = Duration::from_millis(millis);
            assert_eq!(pace.max_concurrent(), expected, "{millis} ms");
        }
    }
}
