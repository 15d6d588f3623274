//! The times at which requests are due when they are sent at a fixed rate.

use std::time::{Duration, Instant};

/// Evenly spaced times, up to an end.
#[derive(Debug, Clone)]
pub struct Schedule {
    next: Instant,
    interval: Duration,
    until: Instant,
}

impl Schedule {
    /// Times from now on, `rate` of them per second.
    pub fn new(rate: f64, now: Instant, until: Instant) -> Self {
        Self { next: now, interval: Duration::from_secs_f64(1.0 / rate), until }
    }

    /// Takes the next time that has come, if any.
    pub fn take_due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next;
        if due > now || self.is_over() {
            return None;
        }
        self.next += self.interval;
        Some(due)
    }

    /// Whether all times have been taken.
    pub fn is_over(&self) -> bool {
        self.next >= self.until
    }

    /// How long it is until the next time.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        (!self.is_over()).then(|| self.next.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_caller_gets_every_time_that_has_passed() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut schedule = Schedule::new(100.0, start, at(50));
        assert_eq!(schedule.take_due(at(0)), Some(at(0)));
        assert_eq!(schedule.take_due(at(0)), None);
        assert_eq!(schedule.wait(at(4)), Some(Duration::from_millis(6)));
        let late: Vec<_> = std::iter::from_fn(|| schedule.take_due(at(1_000))).collect();
        assert_eq!(late, [at(10), at(20), at(30), at(40)]);
        assert!(schedule.is_over() && schedule.wait(at(0)).is_none());
    }
}
