//! How fast one endpoint gets requests: how many per second, and how many at the same time.

use std::{collections::HashMap, time::Duration};

use galley_store::WebhookKey;
use tokio::time::Instant;

/// Maximum concurrent deliveries to one endpoint, each for another template.
const MAX_CONCURRENT: u32 = 8;

/// The response time up to which an endpoint gets all of its concurrent deliveries. One that takes
/// twice as long gets half as many (rounded up), so that slow endpoints do not hold the slots of quick ones.
const QUICK_RESPONSE: Duration = Duration::from_secs(1);

/// How long the pace of an endpoint without deliveries is remembered.
const MAX_UNUSED: Duration = Duration::from_mins(10);

/// Number of remembered paces up to which those of endpoints without deliveries are not dropped.
const MAX_UNCHECKED_PACES: usize = 1_024;

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

    /// The pace of an endpoint after a quiet period: it may receive a burst.
    pub(super) fn rested(per_second: u32) -> Self {
        let pace = Self::new(per_second);
        let burst = pace.interval * BURST_DELIVERIES;
        Self { next: pace.next.checked_sub(burst).unwrap_or(pace.next), ..pace }
    }

    pub(super) fn pause(&mut self, duration: Duration) {
        self.paused_until = Instant::now() + duration;
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused_until > Instant::now()
    }

    /// Whether the pace has no effect any more: the endpoint got no delivery for a long time.
    fn is_obsolete(&self) -> bool {
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

/// The paces of the endpoints that get no requests at present.
#[derive(Default)]
pub(super) struct Paces {
    paces: HashMap<WebhookKey, EndpointPace>,
    /// How many paces the last check kept. The next one is due when there are twice as many, so that
    /// checks are rare.
    kept: usize,
}

impl Paces {
    pub(super) fn is_paused(&self, endpoint: WebhookKey) -> bool {
        self.paces.get(&endpoint).is_some_and(EndpointPace::is_paused)
    }

    /// The pace of an endpoint that gets requests now, if it is remembered.
    pub(super) fn take(&mut self, endpoint: WebhookKey) -> Option<EndpointPace> {
        self.paces.remove(&endpoint)
    }

    /// Remembers the pace of an endpoint, and forgets those that have no effect any more.
    pub(super) fn put(&mut self, endpoint: WebhookKey, pace: EndpointPace) {
        self.paces.insert(endpoint, pace);
        if self.paces.len() > MAX_UNCHECKED_PACES.max(2 * self.kept) {
            self.paces.retain(|_, pace| !pace.is_obsolete());
            self.kept = self.paces.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::id::{AccountId, WebhookId};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_paces_of_endpoints_without_deliveries_are_dropped() {
        let mut paces = Paces::default();
        let account = AccountId::new(1).unwrap();
        let mut put = |numbers: std::ops::RangeInclusive<u64>| {
            for id in numbers {
                let endpoint = WebhookKey { account, id: WebhookId::new(id).unwrap() };
                paces.put(endpoint, EndpointPace::new(50));
            }
            paces.paces.len()
        };
        assert_eq!(put(1..=1_000), 1_000);
        tokio::time::advance(MAX_UNUSED + Duration::from_secs(1)).await;
        assert_eq!(put(1_001..=1_024), 1_024, "checks are rare");
        assert_eq!(put(1_025..=1_025), 25, "the others were used within ten minutes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rested_endpoint_receives_a_burst_at_once() {
        tokio::time::advance(Duration::from_mins(1)).await;
        let mut pace = EndpointPace::rested(10);
        let start = Instant::now();
        for _ in 0..BURST_DELIVERIES {
            pace.acquire().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        pace.acquire().await;
        assert_eq!(start.elapsed(), Duration::from_millis(100));
    }

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
