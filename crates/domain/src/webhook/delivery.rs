//! Webhook delivery policy: when to retry an event, when to pause an endpoint, and when to disable it.
//! There is no clock: all durations are relative to the attempt.

use std::time::Duration;

use crate::string_enum::string_enum;

/// Upper bound for an endpoint's `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// The number of consecutive failures, over all events, after which an endpoint counts as down.
pub const DOWN_AFTER_FAILURES: u32 = 10;

/// Upper bound for the pause between attempts to an endpoint that is down.
const MAX_BACKOFF: Duration = Duration::from_mins(1);

/// An endpoint that has failed this long without a successful delivery is disabled.
const DISABLE_AFTER: Duration = Duration::from_hours(5 * 24);

/// A failure this long after the previous one starts a new streak: nothing was attempted in between.
pub const STREAK_RESET: Duration = Duration::from_hours(48);

string_enum!(
    /// The status of a delivery.
    DeliveryStatus {
        /// Not delivered yet.
        Waiting "waiting",
        /// Accepted by the endpoint.
        Delivered "delivered",
        /// The last attempt failed.
        Failed "failed",
    }
);

string_enum!(
    /// Why an endpoint is disabled.
    DisableReason {
        /// It responded with 410.
        Gone "gone",
        /// All deliveries failed for five days.
        Failing "failing",
        /// The account disabled it.
        SwitchedOff "switched_off",
    }
);

/// The outcome of one delivery attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// 2xx: the endpoint accepted the event.
    Accepted,
    /// 410: the endpoint no longer exists.
    Gone,
    /// Any other status.
    Refused {
        /// Whether the status means that the endpoint is overloaded or unavailable.
        overloaded: bool,
        /// The delay that the endpoint asked for.
        retry_after: Option<Duration>,
    },
    /// No valid response.
    NoResponse,
}

impl DeliveryOutcome {
    /// The outcome for a response status.
    pub fn from_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            200..=299 => Self::Accepted,
            410 => Self::Gone,
            _ => Self::Refused {
                overloaded: matches!(status, 429 | 502 | 503 | 504),
                retry_after: retry_after.map(|it| it.min(MAX_RETRY_AFTER)),
            },
        }
    }

    fn retry_after(self) -> Duration {
        match self {
            Self::Refused { retry_after, .. } => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }
}

/// The delays before each attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySchedule(Vec<Duration>);

/// What to do with an event after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// The event is delivered.
    Delivered,
    /// Retry after this delay.
    RetryAfter(Duration),
    /// Give up: this was the last attempt.
    Failed,
}

impl Default for RetrySchedule {
    /// Ten attempts in three days.
    fn default() -> Self {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        let seconds = [
            0,
            5,
            5 * MINUTE,
            30 * MINUTE,
            2 * HOUR,
            5 * HOUR,
            10 * HOUR,
            14 * HOUR,
            20 * HOUR,
            24 * HOUR,
        ];
        Self(seconds.map(Duration::from_secs).to_vec())
    }
}

impl RetrySchedule {
    /// A schedule of 1 to 100 attempts, the first without delay; `None` for any other.
    pub fn new(delays: Vec<Duration>) -> Option<Self> {
        let is_valid = delays.len() <= 100 && delays.first().is_some_and(Duration::is_zero);
        is_valid.then_some(Self(delays))
    }

    /// The decision after attempt number `attempts`. `jitter`, from 0 to 1, makes each delay up to
    /// 10% shorter or longer, which spreads the retries of many events.
    pub fn decide(&self, attempts: u32, outcome: DeliveryOutcome, jitter: f64) -> RetryDecision {
        if outcome == DeliveryOutcome::Accepted {
            return RetryDecision::Delivered;
        }
        let next = usize::try_from(attempts).ok().and_then(|attempts| self.0.get(attempts));
        match next {
            Some(delay) => {
                let delay = delay.mul_f64(0.9 + 0.2 * jitter.clamp(0.0, 1.0));
                RetryDecision::RetryAfter(delay.max(outcome.retry_after()))
            }
            None => RetryDecision::Failed,
        }
    }
}

/// The consecutive failures of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailureStreak {
    /// The time since the first failure; `None` if there was none before.
    pub failing_for: Option<Duration>,
    /// The number of failures since the last success.
    pub failures: u32,
}

/// What to do with an endpoint after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointAction {
    /// Reset its failure streak.
    Reset,
    /// Count the failure and pause deliveries for this long.
    Pause(Duration),
    /// Disable it.
    Disable(DisableReason),
}

impl FailureStreak {
    /// The action after one more attempt.
    pub fn decide(self, outcome: DeliveryOutcome) -> EndpointAction {
        match outcome {
            DeliveryOutcome::Accepted => return EndpointAction::Reset,
            DeliveryOutcome::Gone => return EndpointAction::Disable(DisableReason::Gone),
            DeliveryOutcome::Refused { .. } | DeliveryOutcome::NoResponse => {}
        }
        if self.failing_for.is_some_and(|time| time >= DISABLE_AFTER) {
            return EndpointAction::Disable(DisableReason::Failing);
        }
        let overloaded = matches!(outcome, DeliveryOutcome::Refused { overloaded: true, .. });
        let down_after = if overloaded { 1 } else { DOWN_AFTER_FAILURES };
        let excess = (self.failures + 1).checked_sub(down_after);
        let pause = excess.map_or(Duration::ZERO, |excess| {
            Duration::from_secs(1 << excess.min(10)).min(MAX_BACKOFF)
        });
        EndpointAction::Pause(pause.max(outcome.retry_after()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: DeliveryOutcome =
        DeliveryOutcome::Refused { overloaded: false, retry_after: None };

    fn retry_after(seconds: u64) -> DeliveryOutcome {
        DeliveryOutcome::from_status(503, Some(Duration::from_secs(seconds)))
    }

    #[test]
    fn ten_attempts_are_spread_over_three_days_and_a_few_hours() {
        let schedule = RetrySchedule::default();
        let mut total = Duration::ZERO;
        for attempts in 1..10 {
            let RetryDecision::RetryAfter(delay) = schedule.decide(attempts, FAILED, 0.5) else {
                panic!("no retry after attempt {attempts}")
            };
            total += delay;
        }
        assert_eq!(total.as_secs(), 75 * 3_600 + 35 * 60 + 5);
        assert_eq!(schedule.decide(10, FAILED, 0.5), RetryDecision::Failed);
        assert_eq!(schedule.decide(10, DeliveryOutcome::Accepted, 0.5), RetryDecision::Delivered);
    }

    #[test]
    fn jitter_changes_a_delay_by_at_most_ten_percent() {
        let delay = |jitter| RetrySchedule::default().decide(2, FAILED, jitter);
        assert_eq!(delay(0.0), RetryDecision::RetryAfter(Duration::from_secs(270)));
        assert_eq!(delay(1.0), RetryDecision::RetryAfter(Duration::from_secs(330)));
        assert_eq!(delay(7.0), delay(1.0));
    }

    #[test]
    fn only_2xx_is_accepted() {
        for status in [100, 199, 300, 301, 302, 304, 307, 308, 400, 404, 500, 599] {
            assert_eq!(DeliveryOutcome::from_status(status, None), FAILED, "{status}");
        }
        let overloaded = DeliveryOutcome::Refused { overloaded: true, retry_after: None };
        assert_eq!(
            [429, 502, 503, 504].map(|it| DeliveryOutcome::from_status(it, None)),
            [overloaded; 4]
        );
        assert_eq!(
            [200, 201, 204, 299].map(|it| DeliveryOutcome::from_status(it, None)),
            [DeliveryOutcome::Accepted; 4]
        );
        assert_eq!(DeliveryOutcome::from_status(410, None), DeliveryOutcome::Gone);
    }

    #[test]
    fn retry_after_is_respected_up_to_one_day() {
        let schedule = RetrySchedule::default();
        assert_eq!(
            schedule.decide(1, retry_after(60), 0.5),
            RetryDecision::RetryAfter(Duration::from_mins(1))
        );
        assert_eq!(
            schedule.decide(1, retry_after(1), 0.5),
            RetryDecision::RetryAfter(Duration::from_secs(5))
        );
        assert_eq!(
            schedule.decide(1, retry_after(999_999), 0.5),
            RetryDecision::RetryAfter(MAX_RETRY_AFTER)
        );
        assert_eq!(
            FailureStreak::default().decide(retry_after(60)),
            EndpointAction::Pause(Duration::from_mins(1))
        );
    }

    #[test]
    fn a_failing_endpoint_is_paused_with_backoff_and_finally_disabled() {
        let after = |failures, hours| {
            let failing_for = Some(Duration::from_hours(hours));
            FailureStreak { failing_for, failures }.decide(DeliveryOutcome::NoResponse)
        };
        let overloaded = DeliveryOutcome::from_status(429, None);
        assert_eq!(
            [0, 1, 2]
                .map(|failures| FailureStreak { failing_for: None, failures }.decide(overloaded)),
            [1, 2, 4].map(|seconds| EndpointAction::Pause(Duration::from_secs(seconds)))
        );
        assert_eq!(after(8, 1), EndpointAction::Pause(Duration::ZERO));
        assert_eq!(after(9, 1), EndpointAction::Pause(Duration::from_secs(1)));
        assert_eq!(after(11, 1), EndpointAction::Pause(Duration::from_secs(4)));
        assert_eq!(after(4_000_000, 119), EndpointAction::Pause(MAX_BACKOFF));
        assert_eq!(after(12, 120), EndpointAction::Disable(DisableReason::Failing));
        assert_eq!(
            FailureStreak::default().decide(DeliveryOutcome::Gone),
            EndpointAction::Disable(DisableReason::Gone)
        );
        let old = FailureStreak { failing_for: Some(Duration::from_hours(500)), failures: 3 };
        assert_eq!(old.decide(DeliveryOutcome::Accepted), EndpointAction::Reset);
    }
}
