//! How an endpoint has done of late, as every store keeps it, and what an attempt changes of it.

use galley_domain::webhook::delivery::{DisableReason, Health, Reply, STREAK_RESET, Standing};
use jiff::Timestamp;

use crate::encoding::later;

/// What is kept of the failures of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Course {
    /// How many attempts have failed since the last that did not.
    pub(crate) failures: u32,
    /// When the first of them had failed.
    pub(crate) failing_since: Option<Timestamp>,
    /// And the last.
    pub(crate) failed_at: Option<Timestamp>,
    /// Until when nothing is sent.
    pub(crate) resting_until: Option<Timestamp>,
}

/// What becomes of an endpoint after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing.
    Same,
    /// It goes on like this.
    To(Course),
    /// Nothing is sent to it any more.
    Disabled(DisableReason),
}

impl Course {
    /// What one more attempt, which ended at this moment, says about the endpoint itself.
    pub(crate) fn after(self, reply: Reply, at: Timestamp) -> Turn {
        let lately = self
            .failed_at
            .is_some_and(|failed_at| at.duration_since(failed_at).unsigned_abs() <= STREAK_RESET);
        let since = self.failing_since.filter(|_| lately);
        let failures = if lately { self.failures } else { 0 };
        let failing_for = since.map(|since| at.duration_since(since));
        let failing_for = failing_for.map(|time| time.try_into().unwrap_or_default());
        match (Health { failing_for, failures }).after(reply) {
            Standing::Well if self.failed_at.is_none() => Turn::Same,
            // What it asked for while other events were on their way still counts.
            Standing::Well => {
                let resting_until = self.resting_until.filter(|until| *until > at);
                Turn::To(Self { resting_until, ..Self::default() })
            }
            Standing::Failing(rest) => {
                let asked = (!rest.is_zero()).then(|| later(at, rest));
                Turn::To(Self {
                    failures: failures.saturating_add(1),
                    failing_since: since.or(Some(at)),
                    failed_at: Some(at),
                    resting_until: self.resting_until.max(asked),
                })
            }
            Standing::Disabled(because) => Turn::Disabled(because),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const FAILED: Reply = Reply::Refused { overloaded: false, retry_after: None };
    const HOUR: i64 = 3_600;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + seconds).unwrap()
    }

    fn asked(seconds: u64) -> Reply {
        Reply::of(503, Some(Duration::from_secs(seconds)))
    }

    fn failing(failures: u32, since: i64, last: i64) -> Course {
        let (failing_since, failed_at) = (Some(at(since)), Some(at(last)));
        Course { failures, failing_since, failed_at, resting_until: None }
    }

    #[test]
    fn a_row_of_failures_is_counted_and_ends_with_the_first_success() {
        let well = Course::default();
        assert_eq!(well.after(Reply::Taken, at(0)), Turn::Same);
        assert_eq!(well.after(FAILED, at(0)), Turn::To(failing(1, 0, 0)));
        assert_eq!(failing(1, 0, 0).after(FAILED, at(9)), Turn::To(failing(2, 0, 9)));
        assert_eq!(failing(2, 0, 9).after(Reply::Taken, at(10)), Turn::To(well));
    }

    #[test]
    fn a_failure_long_after_the_last_is_the_first_of_a_new_row() {
        let old = failing(7, 0, 0);
        let Turn::To(within) = old.after(FAILED, at(48 * HOUR)) else { panic!("it is failing") };
        assert_eq!((within.failures, within.failing_since), (8, Some(at(0))));
        let late = 48 * HOUR + 1;
        assert_eq!(old.after(FAILED, at(late)), Turn::To(failing(1, late, late)));
        assert_eq!(failing(7, 0, late).after(FAILED, at(0)), Turn::To(failing(1, 0, 0)));
    }

    #[test]
    fn the_longest_rest_that_was_asked_for_counts_and_outlasts_a_success() {
        let resting = |course: Course, until| Course { resting_until: Some(at(until)), ..course };
        let Turn::To(first) = Course::default().after(asked(60), at(0)) else { panic!("failing") };
        assert_eq!(first, resting(failing(1, 0, 0), 60));
        assert_eq!(first.after(asked(5), at(1)), Turn::To(resting(failing(2, 0, 1), 60)));
        let rested = Turn::To(resting(Course::default(), 60));
        assert_eq!(first.after(Reply::Taken, at(59)), rested);
        assert_eq!(first.after(Reply::Taken, at(60)), Turn::To(Course::default()));
    }

    #[test]
    fn what_is_gone_or_fails_for_too_long_is_disabled() {
        let gone = Course::default().after(Reply::Gone, at(0));
        assert_eq!(gone, Turn::Disabled(DisableReason::Gone));
        let (end, last) = (5 * 24 * HOUR, 5 * 24 * HOUR - 1);
        assert_eq!(
            failing(9, 0, last).after(FAILED, at(end)),
            Turn::Disabled(DisableReason::Failing)
        );
    }
}
