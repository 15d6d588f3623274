//! The failure history of a webhook endpoint, and how an attempt changes it.

use galley_domain::webhook::delivery::{
    DeliveryOutcome, DisableReason, EndpointAction, FailureStreak, STREAK_RESET,
};
use jiff::Timestamp;

use crate::encoding::later;

/// The stored failure history of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndpointHealth {
    /// Consecutive failed attempts.
    pub(crate) failures: u32,
    /// When the first of them failed.
    pub(crate) failing_since: Option<Timestamp>,
    /// When the last of them failed.
    pub(crate) failed_at: Option<Timestamp>,
    /// No event is sent before this time.
    pub(crate) resting_until: Option<Timestamp>,
}

/// The effect of an attempt on an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthTransition {
    /// The health stays the same.
    Unchanged,
    /// This is the new health.
    Changed(EndpointHealth),
    /// The endpoint is disabled, with an event.
    Disabled(DisableReason),
}

impl EndpointHealth {
    /// Applies one more attempt that ended at `at`.
    pub(crate) fn after(self, reply: DeliveryOutcome, at: Timestamp) -> HealthTransition {
        let in_streak = self
            .failed_at
            .is_some_and(|failed_at| at.duration_since(failed_at).unsigned_abs() <= STREAK_RESET);
        let since = self.failing_since.filter(|_| in_streak);
        let failures = if in_streak { self.failures } else { 0 };
        let failing_for = since.map(|since| at.duration_since(since));
        let failing_for = failing_for.map(|time| time.try_into().unwrap_or_default());
        match (FailureStreak { failing_for, failures }).decide(reply) {
            EndpointAction::Reset if self.failed_at.is_none() => HealthTransition::Unchanged,
            // A success does not cancel a pause that the endpoint requested in another attempt.
            EndpointAction::Reset => {
                let resting_until = self.resting_until.filter(|until| *until > at);
                HealthTransition::Changed(Self { resting_until, ..Self::default() })
            }
            EndpointAction::Pause(rest) => {
                let requested = (!rest.is_zero()).then(|| later(at, rest));
                HealthTransition::Changed(Self {
                    failures: failures.saturating_add(1),
                    failing_since: since.or(Some(at)),
                    failed_at: Some(at),
                    resting_until: self.resting_until.max(requested),
                })
            }
            EndpointAction::Disable(reason) => HealthTransition::Disabled(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{
        HealthTransition::{Changed, Disabled, Unchanged},
        *,
    };

    const FAILED: DeliveryOutcome =
        DeliveryOutcome::Refused { overloaded: false, retry_after: None };
    const HOUR: i64 = 3_600;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + seconds).unwrap()
    }

    fn retry_after(seconds: u64) -> DeliveryOutcome {
        DeliveryOutcome::from_status(503, Some(Duration::from_secs(seconds)))
    }

    fn failing(failures: u32, since: i64, last: i64) -> EndpointHealth {
        let (failing_since, failed_at) = (Some(at(since)), Some(at(last)));
        EndpointHealth { failures, failing_since, failed_at, resting_until: None }
    }

    #[test]
    fn consecutive_failures_are_counted_until_the_first_success() {
        let healthy = EndpointHealth::default();
        assert_eq!(healthy.after(DeliveryOutcome::Accepted, at(0)), Unchanged);
        assert_eq!(healthy.after(FAILED, at(0)), Changed(failing(1, 0, 0)));
        assert_eq!(failing(1, 0, 0).after(FAILED, at(9)), Changed(failing(2, 0, 9)));
        assert_eq!(failing(2, 0, 9).after(DeliveryOutcome::Accepted, at(10)), Changed(healthy));
    }

    #[test]
    fn a_failure_long_after_the_last_one_starts_a_new_streak() {
        let old = failing(7, 0, 0);
        let Changed(within) = old.after(FAILED, at(48 * HOUR)) else { panic!("it is failing") };
        assert_eq!((within.failures, within.failing_since), (8, Some(at(0))));
        let late = 48 * HOUR + 1;
        assert_eq!(old.after(FAILED, at(late)), Changed(failing(1, late, late)));
        assert_eq!(failing(7, 0, late).after(FAILED, at(0)), Changed(failing(1, 0, 0)));
    }

    #[test]
    fn the_longest_requested_pause_applies_and_outlasts_a_success() {
        let resting = |health: EndpointHealth, until| EndpointHealth {
            resting_until: Some(at(until)),
            ..health
        };
        let Changed(first) = EndpointHealth::default().after(retry_after(60), at(0)) else {
            panic!("it is failing")
        };
        assert_eq!(first, resting(failing(1, 0, 0), 60));
        assert_eq!(first.after(retry_after(5), at(1)), Changed(resting(failing(2, 0, 1), 60)));
        let rested = Changed(resting(EndpointHealth::default(), 60));
        assert_eq!(first.after(DeliveryOutcome::Accepted, at(59)), rested);
        assert_eq!(
            first.after(DeliveryOutcome::Accepted, at(60)),
            Changed(EndpointHealth::default())
        );
    }

    #[test]
    fn an_endpoint_that_is_gone_or_fails_too_long_is_disabled() {
        let gone = EndpointHealth::default().after(DeliveryOutcome::Gone, at(0));
        assert_eq!(gone, Disabled(DisableReason::Gone));
        let (end, last) = (5 * 24 * HOUR, 5 * 24 * HOUR - 1);
        assert_eq!(failing(9, 0, last).after(FAILED, at(end)), Disabled(DisableReason::Failing));
    }
}
