//! Cases and properties of the clock guard.

use proptest::prelude::*;

use super::*;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A fixed time in 2026, plus this many seconds.
fn noon(plus: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + plus).unwrap()
}

/// A store, reduced to its clock guard.
struct Stored(Option<ClockGuard>);

impl Stored {
    fn trusting(at: i64) -> Self {
        Self(Some(ClockGuard::trusting(noon(at))))
    }

    fn observe(&mut self, at: i64) -> ClockStatus {
        let (status, next) = ClockGuard::observe(self.0.as_ref(), noon(at));
        if let Some(next) = next {
            // As a backend stores it.
            assert!(next.candidates.len() <= MAX_CANDIDATES);
            assert_eq!(ClockGuard::from_rows(next.rows().collect()), Some(next.clone()));
            self.0 = Some(next);
        }
        status
    }

    fn is_trusted(&mut self, at: i64) -> bool {
        self.observe(at) == ClockStatus::Trusted
    }

    /// Observes every minute of this range; returns the first minute that is trusted.
    fn run(&mut self, from: i64, seconds: i64) -> Option<i64> {
        let mut minutes = (0..=seconds / MINUTE).map(|minute| from + minute * MINUTE);
        minutes.find(|at| self.is_trusted(*at))
    }

    fn trusted_at(&self) -> i64 {
        self.0.as_ref().unwrap().trusted_at.as_second() - noon(0).as_second()
    }
}

#[test]
fn a_new_store_trusts_the_first_time_it_sees() {
    let mut stored = Stored(None);
    assert!(stored.is_trusted(0));
    assert!(!stored.is_trusted(45 * DAY));
}

#[test]
fn a_step_of_an_hour_is_trusted_and_a_longer_one_is_not() {
    assert!(Stored::trusting(0).is_trusted(HOUR));
    let status = Stored::trusting(0).observe(HOUR + 1);
    let remaining = SignedDuration::from_hours(24);
    assert_eq!(status, ClockStatus::Unconfirmed { trusted_at: noon(0), remaining });
}

#[test]
fn a_jump_is_trusted_after_it_has_lasted_for_a_day() {
    let mut stored = Stored::trusting(0);
    assert_eq!(stored.run(45 * DAY, 2 * DAY), Some(46 * DAY));
}

#[test]
fn a_second_jump_begins_anew() {
    let mut stored = Stored::trusting(0);
    assert_eq!(stored.run(45 * DAY, 23 * HOUR), None);
    assert_eq!(stored.run(90 * DAY, 2 * DAY), Some(91 * DAY));
}

#[test]
fn a_clock_that_is_corrected_is_trusted_at_once() {
    let mut stored = Stored::trusting(0);
    assert_eq!(stored.run(45 * DAY, 10 * MINUTE), None);
    assert!(stored.is_trusted(11 * MINUTE));
    // The jump has left nothing behind.
    assert_eq!(stored.run(45 * DAY, 2 * DAY), Some(46 * DAY));
}

#[test]
fn a_clock_that_is_behind_is_trusted_but_does_not_lower_the_trusted_time_at_once() {
    let mut stored = Stored::trusting(0);
    assert!(stored.is_trusted(-3 * DAY));
    assert_eq!(stored.trusted_at(), 0);
    for minute in 0..=DAY / MINUTE {
        assert!(stored.is_trusted(-3 * DAY + minute * MINUTE));
    }
    assert_eq!(stored.trusted_at(), -2 * DAY);
}

#[test]
fn a_service_that_runs_for_some_hours_a_day_confirms_its_time_on_the_third_day() {
    let mut stored = Stored::trusting(0);
    let days: Vec<bool> = (1..=3).map(|day| stored.run(day * DAY, 8 * HOUR).is_some()).collect();
    assert_eq!(days, [false, false, true]);
}

#[test]
fn progress_is_stored_at_most_twice_a_minute() {
    let guard = ClockGuard::trusting(noon(0));
    assert_eq!(ClockGuard::observe(Some(&guard), noon(29)).1, None);
    assert_eq!(ClockGuard::observe(Some(&guard), noon(-29)).1, None);
    assert!(ClockGuard::observe(Some(&guard), noon(30)).1.is_some());
    let (_, jumped) = ClockGuard::observe(Some(&guard), noon(DAY));
    assert_eq!(ClockGuard::observe(jumped.as_ref(), noon(DAY + 29)).1, None);
}

/// Runs instances with these clock errors for some minutes; returns for each whether it was trusted
/// in the last one.
fn run_instances(stored: &mut Stored, from: i64, errors: &[i64], minutes: i64) -> Vec<bool> {
    let mut trusted = Vec::new();
    for minute in 0..minutes {
        let now = from + minute * MINUTE;
        trusted = errors.iter().map(|error| stored.is_trusted(now + error)).collect();
    }
    trusted
}

#[test]
fn an_instance_that_is_ahead_never_confirms_its_time_beside_one_that_is_right() {
    let mut stored = Stored::trusting(0);
    let week = 7 * DAY / MINUTE;
    assert_eq!(run_instances(&mut stored, 0, &[0, 45 * DAY], week), [true, false]);
}

#[test]
fn an_instance_with_a_wrong_clock_does_not_delay_the_others_after_a_pause() {
    let two_days = 2 * DAY / MINUTE;
    for error in [2 * HOUR, 20 * HOUR, 45 * DAY] {
        let mut stored = Stored::trusting(0);
        let trusted = run_instances(&mut stored, 2 * HOUR, &[0, error], two_days);
        assert_eq!(trusted, [true, false], "{error} s ahead");
    }
    for error in [-3 * DAY, -45 * DAY] {
        let mut stored = Stored::trusting(0);
        let trusted = run_instances(&mut stored, 2 * HOUR, &[error, 0], two_days);
        assert_eq!(trusted, [true, true], "{error} s");
        assert!(stored.trusted_at() > 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a clock did before: a time far ahead of everything that the clock showed is not
    /// trusted until it has lasted for a day, and then it is.
    #[test]
    fn a_jump_is_never_trusted_early(
        steps in prop::collection::vec(-10 * DAY..10 * DAY, 0..40),
        jump in DAY + 1..90 * DAY,
    ) {
        let mut stored = Stored::trusting(0);
        let (mut now, mut latest) = (0, 0);
        for step in steps {
            now += step;
            latest = latest.max(now);
            stored.observe(now);
        }
        let jumped = latest + jump;
        prop_assert_eq!(stored.run(jumped, 2 * DAY), Some(jumped + DAY));
    }

    /// A clock that only runs, with pauses of less than an hour, is always trusted. The last
    /// observation may not have been stored, so half a minute less.
    #[test]
    fn a_running_clock_is_always_trusted(steps in prop::collection::vec(0..HOUR - 30, 0..60)) {
        let mut stored = Stored::trusting(0);
        let mut now = 0;
        for step in steps {
            now += step;
            prop_assert!(stored.is_trusted(now));
        }
    }
}
