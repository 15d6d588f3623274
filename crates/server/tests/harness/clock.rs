//! The clock of a test service, which the test advances.

use std::{sync::Mutex, time::Duration};

use galley_server::Clock;
use jiff::{SignedDuration, Timestamp};

/// A clock that stands still, or advances with every read of the time of day.
pub(crate) struct TestClock {
    start: Timestamp,
    since_start: Mutex<Duration>,
    tick: Duration,
}

impl Default for TestClock {
    fn default() -> Self {
        Self::starting_at(Timestamp::from_millisecond(1_790_000_000_000).unwrap())
    }
}

impl TestClock {
    pub(crate) fn starting_at(start: Timestamp) -> Self {
        Self { start, since_start: Mutex::default(), tick: Duration::ZERO }
    }

    /// A clock that advances by a millisecond with every read, so that ids differ.
    pub(crate) fn ticking() -> Self {
        Self { tick: Duration::from_millis(1), ..Self::default() }
    }

    pub(crate) fn advance(&self, time: Duration) {
        *self.since_start.lock().unwrap() += time;
    }

    /// Advances the clock to a later time.
    pub(crate) fn advance_to(&self, time: Timestamp) {
        *self.since_start.lock().unwrap() = time.duration_since(self.start).try_into().unwrap();
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let mut since_start = self.since_start.lock().unwrap();
        let now = self.start + SignedDuration::try_from(*since_start).unwrap();
        *since_start += self.tick;
        now
    }

    fn monotonic(&self) -> Duration {
        *self.since_start.lock().unwrap()
    }
}
