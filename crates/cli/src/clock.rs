//! The system's clock: the one place that asks for the time.

use std::time::{Duration, Instant};

use galley_server::Clock;
use jiff::Timestamp;

pub(crate) struct SystemClock {
    begun: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that is handed in")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }
}
