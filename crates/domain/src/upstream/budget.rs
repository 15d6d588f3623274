//! How many calls are left at a provider. The budget is stored with the connection, so that all
//! instances share it.

use jiff::{SignedDuration, Timestamp};

use super::failure::CallKind;

/// Meta's hourly budget of calls of an app and an account.
pub const DEFAULT_CALLS_PER_HOUR: u32 = 200;

/// Meta's limit of creates in an hour.
pub const CREATES_PER_HOUR: u32 = 100;

/// The part of the budget that sweeps may use: a tenth.
const SWEEP_SHARE: u32 = 10;

/// An hour in minutes, and one more: a call that began in the first second of a minute may arrive in
/// its last one.
const WINDOW_MINUTES: i64 = 61;

/// The calls of the last hour, by minute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollingHour(Vec<(i64, u32)>);

impl RollingHour {
    /// The stored form: minutes since the Unix epoch with their calls, `29732345:3 29732346:1`.
    pub fn to_text(&self) -> String {
        let minutes: Vec<String> =
            self.0.iter().map(|(minute, calls)| format!("{minute}:{calls}")).collect();
        minutes.join(" ")
    }

    /// Parses the stored form. What cannot be read is not counted.
    pub fn parse(text: &str) -> Self {
        let minute = |item: &str| {
            let (minute, calls) = item.split_once(':')?;
            Some((minute.parse().ok()?, calls.parse().ok()?))
        };
        Self(text.split_ascii_whitespace().filter_map(minute).collect())
    }

    /// One more call, unless the limit is reached: then the time at which a call is possible again.
    fn take(&self, limit: u32, now: Timestamp) -> Result<Self, Timestamp> {
        let minute = now.as_second().div_euclid(60);
        // A clock that was set back does not block calls for longer than an hour.
        let is_recent = |it: &(i64, u32)| (it.0 - minute).abs() < WINDOW_MINUTES;
        let mut minutes: Vec<(i64, u32)> = self.0.iter().copied().filter(is_recent).collect();
        let used: u32 = minutes.iter().map(|it| it.1).fold(0, u32::saturating_add);
        if used >= limit {
            let first = minutes.iter().map(|it| it.0).min().unwrap_or(minute);
            let free = Timestamp::from_second((first + WINDOW_MINUTES) * 60);
            return Err(free.unwrap_or(Timestamp::MAX));
        }
        match minutes.iter_mut().find(|it| it.0 == minute) {
            Some(it) => it.1 += 1,
            None => minutes.push((minute, 1)),
        }
        Ok(Self(minutes))
    }
}

/// The budget of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBudget {
    /// The limit of calls in an hour.
    pub calls_per_hour: u32,
    /// All calls.
    pub calls: RollingHour,
    /// The calls of sweeps among them.
    pub sweep_calls: RollingHour,
    /// The creates among them.
    pub creates: RollingHour,
    /// No call is made before this time.
    pub rest_until: Option<Timestamp>,
}

impl CallBudget {
    /// A budget of which nothing is used.
    pub fn new(calls_per_hour: u32) -> Self {
        Self {
            calls_per_hour,
            calls: RollingHour::default(),
            sweep_calls: RollingHour::default(),
            creates: RollingHour::default(),
            rest_until: None,
        }
    }

    /// The budget after one more call, or the time until which no such call is possible.
    pub fn take(&self, kind: CallKind, now: Timestamp) -> Result<Self, Timestamp> {
        if let Some(until) = self.rest_until.filter(|until| now < *until) {
            return Err(until);
        }
        let mut next = Self { rest_until: None, ..self.clone() };
        if kind == CallKind::Create {
            next.creates = self.creates.take(CREATES_PER_HOUR, now)?;
        }
        next.calls = self.calls.take(self.calls_per_hour.max(1), now)?;
        Ok(next)
    }

    /// The budget after one more call of a sweep, which may use a tenth of the calls.
    pub fn take_for_sweep(&self, kind: CallKind, now: Timestamp) -> Result<Self, Timestamp> {
        let share = (self.calls_per_hour / SWEEP_SHARE).max(1);
        let sweep_calls = self.sweep_calls.take(share, now)?;
        Ok(Self { sweep_calls, ..self.take(kind, now)? })
    }

    /// The budget with a rest of this duration, or a longer one that it already has.
    #[must_use]
    pub fn resting(&self, rest: SignedDuration, now: Timestamp) -> Self {
        let until = now.checked_add(rest).unwrap_or(Timestamp::MAX);
        Self { rest_until: self.rest_until.max(Some(until)), ..self.clone() }
    }
}
