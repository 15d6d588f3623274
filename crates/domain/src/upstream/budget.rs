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

/// An hour in minutes, and two more: calls are counted by minute, and a call may take a minute to
/// arrive.
const WINDOW_MINUTES: i64 = 62;

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

    /// The number of calls.
    pub fn used(&self, now: Timestamp) -> u32 {
        let minute = now.as_second().div_euclid(60);
        self.recent(minute).map(|it| it.1).fold(0, u32::saturating_add)
    }

    /// The minutes that count. A clock that was set back does not block calls for longer than an hour.
    fn recent(&self, minute: i64) -> impl Iterator<Item = (i64, u32)> {
        self.0.iter().copied().filter(move |it| (it.0 - minute).abs() < WINDOW_MINUTES)
    }

    /// Whether the limit allows so many more calls; if not, the time at which it does, unless others
    /// are made until then. More calls than the limit need all of it.
    fn room(&self, limit: u32, calls: u32, now: Timestamp) -> Result<(), Timestamp> {
        let minute = now.as_second().div_euclid(60);
        let most_used = limit.saturating_sub(calls);
        let mut used = self.used(now);
        let mut minutes: Vec<(i64, u32)> = self.recent(minute).collect();
        minutes.sort_unstable();
        let mut free_at = None;
        for (minute, calls) in minutes {
            if used <= most_used {
                break;
            }
            used = used.saturating_sub(calls);
            let end = Timestamp::from_second((minute + WINDOW_MINUTES) * 60);
            free_at = Some(end.unwrap_or(Timestamp::MAX));
        }
        free_at.map_or(Ok(()), Err)
    }

    /// One more call, unless the limit is reached: then the time at which a call is possible again.
    fn take(&self, limit: u32, now: Timestamp) -> Result<Self, Timestamp> {
        self.room(limit, 1, now)?;
        let minute = now.as_second().div_euclid(60);
        let mut minutes: Vec<(i64, u32)> = self.recent(minute).collect();
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

    /// Whether the budget allows so many calls now, of which the last one is of this kind; if not, the
    /// time until which it does not. A budget of fewer calls than that has to be unused.
    pub fn room_for(&self, kind: CallKind, calls: u32, now: Timestamp) -> Result<(), Timestamp> {
        if let Some(until) = self.rest_until.filter(|until| now < *until) {
            return Err(until);
        }
        if kind == CallKind::Create {
            self.creates.room(CREATES_PER_HOUR, 1, now)?;
        }
        self.calls.room(self.calls_per_hour.max(1), calls, now)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// The seconds at which calls of this kind are made as early as the budget allows.
    fn made(mut budget: CallBudget, kind: CallKind, count: usize) -> Vec<i64> {
        let mut now = at(0);
        let mut made = Vec::new();
        while made.len() < count {
            match budget.take(kind, now) {
                Ok(next) => {
                    budget = next;
                    made.push(now.duration_since(at(0)).as_secs());
                    now += SignedDuration::from_secs(1);
                }
                Err(until) => {
                    assert!(until > now, "the budget names a time that has passed");
                    now = until;
                }
            }
        }
        made
    }

    fn most_in_an_hour(made: &[i64]) -> usize {
        let in_hour =
            |start: i64| made.iter().filter(|it| (start..start + 3_600).contains(it)).count();
        made.iter().map(|start| in_hour(*start)).max().unwrap_or_default()
    }

    #[test]
    fn no_rolling_hour_has_more_calls_or_creates_than_allowed() {
        let creates = made(CallBudget::new(5_000), CallKind::Create, 300);
        assert_eq!(most_in_an_hour(&creates), 100);
        assert!(creates[299] < 3 * 3_600, "the budget is used: {}", creates[299]);
        let reads = made(CallBudget::new(200), CallKind::Read, 500);
        assert_eq!(most_in_an_hour(&reads), 200);
        let mut none = CallBudget::new(0);
        none = none.take(CallKind::Read, at(0)).unwrap();
        assert!(none.take(CallKind::Read, at(1)).is_err(), "a budget of 0 allows one call");
    }

    #[test]
    fn creates_do_not_stop_other_calls() {
        let mut budget = CallBudget::new(200);
        for _ in 0..100 {
            budget = budget.take(CallKind::Create, at(0)).unwrap();
        }
        assert!(budget.take(CallKind::Create, at(3_599)).is_err());
        assert!(budget.take(CallKind::Edit, at(0)).is_ok());
        assert!(budget.take(CallKind::Create, at(2 * 3_600)).is_ok());
    }

    #[test]
    fn sweeps_use_a_tenth_of_the_calls() {
        let mut budget = CallBudget::new(200);
        for _ in 0..20 {
            budget = budget.take_for_sweep(CallKind::Page, at(0)).unwrap();
        }
        let until = budget.take_for_sweep(CallKind::Page, at(0)).unwrap_err();
        assert!(budget.take_for_sweep(CallKind::Page, until).is_ok());
        for _ in 0..180 {
            budget = budget.take(CallKind::Page, at(1)).unwrap();
        }
        assert!(budget.take(CallKind::Read, at(1)).is_err(), "sweeps count as calls");
    }

    #[test]
    fn no_call_is_made_during_a_rest_and_a_shorter_rest_does_not_end_a_longer_one() {
        let budget = CallBudget::new(200).resting(SignedDuration::from_mins(5), at(0));
        let budget = budget.resting(SignedDuration::from_mins(1), at(10));
        for kind in CallKind::VALUES {
            let kind = CallKind::parse(kind).unwrap();
            assert_eq!(budget.take(kind, at(299)), Err(at(300)), "{kind:?}");
            assert!(budget.take_for_sweep(kind, at(299)).is_err());
        }
        let after = budget.take(CallKind::Read, at(300)).unwrap();
        assert_eq!(after.rest_until, None);
    }

    #[test]
    fn calls_that_belong_together_have_room_if_the_budget_allows_all_of_them() {
        let mut budget = CallBudget::new(10);
        for second in [0, 0, 0, 60, 60, 120, 120, 120] {
            budget = budget.take(CallKind::Read, at(second)).unwrap();
        }
        let room = |calls| budget.room_for(CallKind::Edit, calls, at(180));
        let minute = |minute: i64| Err(at((minute + WINDOW_MINUTES) * 60));
        assert_eq!([room(0), room(1), room(2)], [Ok(()); 3]);
        assert_eq!([room(3), room(5)], [minute(0); 2], "three calls become free at once");
        assert_eq!([room(6), room(7)], [minute(1); 2]);
        assert_eq!([room(8), room(10)], [minute(2); 2]);
        assert_eq!(room(11), minute(2), "more calls than the budget has need all of it");
        let until = room(7).unwrap_err();
        assert_eq!(budget.room_for(CallKind::Edit, 7, until), Ok(()));
        assert!(budget.room_for(CallKind::Edit, 8, until).is_err());
        assert_eq!(CallBudget::new(0).room_for(CallKind::Read, 9, at(0)), Ok(()));
    }

    #[test]
    fn calls_that_belong_together_wait_for_a_rest_and_for_the_limit_of_creates() {
        let mut budget = CallBudget::new(200);
        for _ in 0..100 {
            budget = budget.take(CallKind::Create, at(0)).unwrap();
        }
        assert!(budget.room_for(CallKind::Create, 3, at(0)).is_err());
        assert_eq!(budget.room_for(CallKind::Edit, 100, at(0)), Ok(()));
        let resting = budget.resting(SignedDuration::from_mins(5), at(0));
        assert_eq!(resting.room_for(CallKind::Edit, 1, at(299)), Err(at(300)));
        assert_eq!(resting.room_for(CallKind::Edit, 1, at(300)), Ok(()));
    }

    #[test]
    fn the_stored_form_is_read_again_and_a_clock_set_back_does_not_block() {
        let mut hour = RollingHour::default();
        for second in [0, 1, 60, 120] {
            hour = hour.take(10, at(second)).unwrap();
        }
        assert_eq!(hour.to_text(), "30000000:2 30000001:1 30000002:1");
        assert_eq!(RollingHour::parse(&hour.to_text()), hour);
        assert_eq!(RollingHour::parse(""), RollingHour::default());
        assert_eq!(RollingHour::parse("x 7 1:y 30000000:2").to_text(), "30000000:2");
        let full = RollingHour::parse("30000000:10");
        assert!(full.take(10, at(0)).is_err());
        assert!(full.take(10, at(-24 * 3_600)).is_ok(), "the clock was a day ahead");
    }
}
