//! How webhooks are delivered: when an event is tried again, when an endpoint is left alone for a
//! while, and when it is given up. No clock: everything is counted from the attempt.

use std::time::Duration;

use crate::string_enum::string_enum;

/// The longest that an endpoint can ask to be left alone.
const LONGEST_REST: Duration = Duration::from_hours(24);

/// After so many failures in a row, whatever the event, the endpoint itself is taken to be down.
pub const PATIENCE: u32 = 10;

/// How long an endpoint that is down is left alone at most before it is tried again.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// An endpoint that has failed for so long, with nothing delivered in between, is given up.
const GIVE_UP: Duration = Duration::from_hours(5 * 24);

/// A failure so long after the one before is the first of a new row: nothing was tried meanwhile.
pub const STREAK_RESET: Duration = Duration::from_hours(48);

string_enum!(
    /// What has become of a delivery.
    DeliveryStatus {
        /// It is still to be delivered.
        Waiting "waiting",
        /// The endpoint took it.
        Delivered "delivered",
        /// The last attempt failed, too.
        Failed "failed",
    }
);

string_enum!(
    /// Why nothing is delivered to an endpoint any more.
    DisableReason {
        /// It answered 410.
        Gone "gone",
        /// Nothing could be delivered for five days.
        Failing "failing",
        /// Somebody switched it off.
        SwitchedOff "switched_off",
    }
);

/// What an endpoint had to say to one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// 2xx: it has it.
    Taken,
    /// 410: it wants no more of them.
    Gone,
    /// Any other status.
    Refused {
        /// Whether the status says that it has too much to do, or is not there just now.
        overloaded: bool,
        /// When it asked to be tried again.
        retry_after: Option<Duration>,
    },
    /// Nothing that could be understood.
    None,
}

impl Reply {
    /// The meaning of a status.
    pub fn of(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            200..=299 => Self::Taken,
            410 => Self::Gone,
            _ => Self::Refused {
                overloaded: matches!(status, 429 | 502 | 503 | 504),
                retry_after: retry_after.map(|it| it.min(LONGEST_REST)),
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

/// When attempts are made: how long to wait before each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Vec<Duration>);

/// What is to be done about an event after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it is delivered.
    Delivered,
    /// Another attempt, after so long.
    Again(Duration),
    /// Nothing: that was the last attempt.
    Failed,
}

impl Default for Schedule {
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

impl Schedule {
    /// A schedule of one to a hundred attempts, the first at once; `None` for any other.
    pub fn new(delays: Vec<Duration>) -> Option<Self> {
        let good = delays.len() <= 100 && delays.first().is_some_and(Duration::is_zero);
        good.then_some(Self(delays))
    }

    /// What comes after the attempt number `made`. `chance`, from 0 to 1, spreads the attempts of
    /// many events: each delay is up to a tenth shorter or longer.
    pub fn after(&self, made: u32, reply: Reply, chance: f64) -> Verdict {
        if reply == Reply::Taken {
            return Verdict::Delivered;
        }
        let next = usize::try_from(made).ok().and_then(|made| self.0.get(made));
        match next {
            Some(delay) => {
                let spread = delay.mul_f64(0.9 + 0.2 * chance.clamp(0.0, 1.0));
                Verdict::Again(spread.max(reply.retry_after()))
            }
            None => Verdict::Failed,
        }
    }
}

/// How an endpoint has done of late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// For how long nothing could be delivered, if the last attempt failed.
    pub failing_for: Option<Duration>,
    /// How many attempts have failed since the last that did not.
    pub failures: u32,
}

/// What is to be done about an endpoint after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: it is well.
    Well,
    /// It has failed once more; nothing is sent to it for so long.
    Failing(Duration),
    /// Nothing is sent to it any more.
    Disabled(DisableReason),
}

impl Health {
    /// What follows from one more attempt.
    pub fn after(self, reply: Reply) -> Standing {
        match reply {
            Reply::Taken => return Standing::Well,
            Reply::Gone => return Standing::Disabled(DisableReason::Gone),
            Reply::Refused { .. } | Reply::None => {}
        }
        if self.failing_for.is_some_and(|time| time >= GIVE_UP) {
            return Standing::Disabled(DisableReason::Failing);
        }
        let overloaded = matches!(reply, Reply::Refused { overloaded: true, .. });
        let patience = if overloaded { 1 } else { PATIENCE };
        let beyond = (self.failures + 1).checked_sub(patience);
        let pause = beyond.map_or(Duration::ZERO, |beyond| {
            Duration::from_secs(1 << beyond.min(10)).min(LONGEST_PAUSE)
        });
        Standing::Failing(pause.max(reply.retry_after()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Reply = Reply::Refused { overloaded: false, retry_after: None };

    fn asked(seconds: u64) -> Reply {
        Reply::of(503, Some(Duration::from_secs(seconds)))
    }

    #[test]
    fn ten_attempts_are_spread_over_three_days_and_a_few_hours() {
        let schedule = Schedule::default();
        let mut all = Duration::ZERO;
        for made in 1..10 {
            let Verdict::Again(delay) = schedule.after(made, FAILED, 0.5) else {
                panic!("{made} attempts are not all")
            };
            all += delay;
        }
        assert_eq!(all.as_secs(), 75 * 3_600 + 35 * 60 + 5);
        assert_eq!(schedule.after(10, FAILED, 0.5), Verdict::Failed);
        assert_eq!(schedule.after(10, Reply::Taken, 0.5), Verdict::Delivered);
    }

    #[test]
    fn chance_moves_a_delay_by_a_tenth_at_most() {
        let delay = |chance| Schedule::default().after(2, FAILED, chance);
        assert_eq!(delay(0.0), Verdict::Again(Duration::from_secs(270)));
        assert_eq!(delay(1.0), Verdict::Again(Duration::from_secs(330)));
        assert_eq!(delay(7.0), delay(1.0));
    }

    #[test]
    fn only_2xx_is_success() {
        for status in [100, 199, 300, 301, 302, 304, 307, 308, 400, 404, 500, 599] {
            assert_eq!(Reply::of(status, None), FAILED, "{status}");
        }
        let overloaded = Reply::Refused { overloaded: true, retry_after: None };
        assert_eq!([429, 502, 503, 504].map(|it| Reply::of(it, None)), [overloaded; 4]);
        assert_eq!([200, 201, 204, 299].map(|it| Reply::of(it, None)), [Reply::Taken; 4]);
        assert_eq!(Reply::of(410, None), Reply::Gone);
    }

    #[test]
    fn what_an_endpoint_asks_for_is_waited_for_up_to_a_day() {
        let schedule = Schedule::default();
        assert_eq!(schedule.after(1, asked(60), 0.5), Verdict::Again(Duration::from_mins(1)));
        assert_eq!(schedule.after(1, asked(1), 0.5), Verdict::Again(Duration::from_secs(5)));
        assert_eq!(schedule.after(1, asked(999_999), 0.5), Verdict::Again(LONGEST_REST));
        assert_eq!(Health::default().after(asked(60)), Standing::Failing(Duration::from_mins(1)));
    }

    #[test]
    fn an_endpoint_that_always_fails_is_tried_less_and_less_until_it_is_given_up() {
        let after = |failures, hours| {
            let failing_for = Some(Duration::from_hours(hours));
            Health { failing_for, failures }.after(Reply::None)
        };
        let overloaded = Reply::of(429, None);
        assert_eq!(
            [0, 1, 2].map(|failures| Health { failing_for: None, failures }.after(overloaded)),
            [1, 2, 4].map(|seconds| Standing::Failing(Duration::from_secs(seconds)))
        );
        assert_eq!(after(8, 1), Standing::Failing(Duration::ZERO));
        assert_eq!(after(9, 1), Standing::Failing(Duration::from_secs(1)));
        assert_eq!(after(11, 1), Standing::Failing(Duration::from_secs(4)));
        assert_eq!(after(4_000_000, 119), Standing::Failing(LONGEST_PAUSE));
        assert_eq!(after(12, 120), Standing::Disabled(DisableReason::Failing));
        assert_eq!(Health::default().after(Reply::Gone), Standing::Disabled(DisableReason::Gone));
        let old = Health { failing_for: Some(Duration::from_hours(500)), failures: 3 };
        assert_eq!(old.after(Reply::Taken), Standing::Well);
    }
}
