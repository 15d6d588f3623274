//! How often a worker polls the store for work.

use std::time::Duration;

use jiff::Timestamp;

/// Bounds of the interval between two polls. Work that another process has queued waits for the
/// longest one.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
pub(super) const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Poll interval as a multiple of the last poll's duration.
const POLL_INTERVAL_FACTOR: u32 = 9;

/// The pause after a poll of this duration, whatever happens meanwhile. Under load there is new work
/// all the time, so a worker polls less often the longer a poll takes.
pub(super) fn pause_after_poll(took: Duration) -> Duration {
    (took * POLL_INTERVAL_FACTOR).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)
}

/// How long a worker waits at most for work that is due at a time.
pub(super) fn wait_until_due(next_at: Option<Timestamp>, now: Timestamp) -> Duration {
    next_at.map_or(MAX_POLL_INTERVAL, |next| {
        let wait = Duration::try_from(next.duration_since(now)).unwrap_or_default();
        wait.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_spends_a_tenth_of_its_time_on_polls_within_bounds() {
        let pause = |millis| pause_after_poll(Duration::from_millis(millis)).as_millis();
        assert_eq!(
            [0, 2, 3, 100, 111, 112, 9_000].map(pause),
            [20, 20, 27, 900, 999, 1_000, 1_000]
        );
    }

    #[test]
    fn the_wait_for_due_work_is_bounded() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let wait = |next| wait_until_due(Some(at(next)), at(1_000)).as_millis();
        assert_eq!([0, 1_000, 1_019, 1_300, 9_000].map(wait), [20, 20, 20, 300, 1_000]);
        assert_eq!(wait_until_due(None, at(0)), MAX_POLL_INTERVAL);
    }
}
