//! The virtual clock of an emulator account, and the document that moves it.

use jiff::{SignedDuration, Timestamp};

use super::{duration, report, string, text};
use crate::{
    document::{Document, Json},
    rulebook::{Field, FieldType, ObjectSchema, Presence, StringFormat},
    validation::{reader::Reader, timestamp},
    violation::{Rule, Violation, ViolationCollector, Violations},
};

/// How far a clock may be ahead of real time: ten years.
pub const MAX_AHEAD: SignedDuration = SignedDuration::from_secs(3_653 * duration::DAY_SECONDS);

/// The schema of the document that moves the clock.
pub static CLOCK_CHANGE: ObjectSchema = ObjectSchema {
    title: "a change of the clock",
    fields: &[
        Field {
            name: "advance",
            presence: Presence::Optional,
            field_type: string(40, StringFormat::Free),
            about: "Moves the clock forward by this duration, such as `24h`, and lets it stand.",
        },
        Field {
            name: "set",
            presence: Presence::Optional,
            field_type: string(40, StringFormat::Timestamp),
            about: "Moves the clock forward to this time and lets it stand.",
        },
        Field {
            name: "follow",
            presence: Presence::Optional,
            field_type: FieldType::Bool,
            about: "`true` lets the clock run on from where it stands.",
        },
    ],
};

/// A change of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChange {
    /// Moves it forward by this duration and lets it stand.
    Advance(SignedDuration),
    /// Moves it forward to this time and lets it stand.
    Set(Timestamp),
    /// Lets it run on from where it stands.
    Follow,
}

/// The reason why a clock does not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockRefusal {
    /// The clock would move back; it shows `now`.
    Backwards {
        /// The time that the clock shows.
        now: Timestamp,
    },
    /// The clock would be more than [`MAX_AHEAD`] ahead of real time.
    TooFarAhead(Violations),
}

impl ClockChange {
    /// Reads a document. Returns the change or all violations.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        let root = document.root();
        let mut advance = None;
        let also = |violations: &mut ViolationCollector| {
            let mut found = CLOCK_CHANGE.fields.iter().filter(|it| root.get(it.name).is_some());
            let hint = "send one of `advance`, `set` and `follow`";
            let message = match (root, found.next(), found.next()) {
                (Json::Object(_), None, _) => Some("changes nothing"),
                (Json::Object(_), Some(_), Some(_)) => Some("changes the clock in several ways"),
                _ => None,
            };
            if let Some(message) = message {
                report(violations, String::new(), Rule::ClockWhat, message, hint);
            }
            if matches!(root.get("follow"), Some(Json::Bool(false))) {
                let hint = "send `true`, or `advance` or `set` to let the clock stand";
                report(violations, "/follow".to_owned(), Rule::ClockWhat, "is false", hint);
            }
            if let Some(text) = text(root, "advance").filter(|text| !text.trim().is_empty()) {
                match duration::check(text, SignedDuration::from_secs(1), duration::MAX) {
                    Ok(duration) => advance = Some(duration),
                    Err(violation) => {
                        let pointer = "/advance".to_owned();
                        report(
                            violations,
                            pointer,
                            violation.rule,
                            violation.message,
                            duration::HINT,
                        );
                    }
                }
            }
        };
        Reader::read(document, &CLOCK_CHANGE, |_| true, also)?;
        let set = text(root, "set").and_then(timestamp::parse).map(Self::Set);
        Ok(advance.map(Self::Advance).or(set).unwrap_or(Self::Follow))
    }
}

/// The virtual clock of an emulator account, with the precision of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The time that it shows, or that it showed at the real time `since`.
    pub at: Timestamp,
    /// The real time since which it runs; `None` while it stands.
    pub since: Option<Timestamp>,
}

impl Clock {
    /// The clock of a new account: it runs and shows real time.
    pub fn new(real: Timestamp) -> Self {
        let real = whole_milliseconds(real);
        Self { at: real, since: Some(real) }
    }

    /// The time that it shows at a real time. It stands while the real clock is set back.
    pub fn now(&self, real: Timestamp) -> Timestamp {
        let elapsed = self.since.map_or(SignedDuration::ZERO, |since| real.duration_since(since));
        let now = self.at.checked_add(elapsed.max(SignedDuration::ZERO));
        whole_milliseconds(now.unwrap_or(Timestamp::MAX))
    }

    /// The real time at which it will show `at`: `None` if it stands before that. For a time that it
    /// has passed, the answer is `real` itself.
    pub fn real_time_of(&self, at: Timestamp, real: Timestamp) -> Option<Timestamp> {
        let left = at.duration_since(self.now(real));
        if left <= SignedDuration::ZERO {
            return Some(real);
        }
        self.since?;
        real.checked_add(left).ok()
    }

    /// The clock after a change at a real time.
    pub fn changed(self, change: ClockChange, real: Timestamp) -> Result<Self, ClockRefusal> {
        let real = whole_milliseconds(real);
        let now = self.now(real);
        let (pointer, at) = match change {
            ClockChange::Follow if self.since.is_some() => return Ok(self),
            ClockChange::Follow => return Ok(Self { at: now, since: Some(real) }),
            ClockChange::Advance(duration) => ("/advance", now.checked_add(duration).ok()),
            ClockChange::Set(at) => ("/set", Some(whole_milliseconds(at))),
        };
        let latest = real.checked_add(MAX_AHEAD).unwrap_or(Timestamp::MAX);
        let Some(at) = at.filter(|at| *at <= latest) else {
            return Err(ClockRefusal::TooFarAhead(Violations::from(Violation {
                pointer: pointer.to_owned(),
                rule: Rule::ClockAhead,
                message: format!("leads beyond {latest}, ten years after the present"),
                hint: Some("move the clock less far".to_owned()),
                span: None,
            })));
        };
        if at < now {
            return Err(ClockRefusal::Backwards { now });
        }
        Ok(Self { at, since: None })
    }
}

fn whole_milliseconds(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    const DAY: SignedDuration = SignedDuration::from_secs(duration::DAY_SECONDS);

    #[test]
    fn a_new_clock_shows_real_time_and_stands_after_a_move() {
        let start = at("2026-11-17T09:00:00.5Z");
        let clock = Clock::new(start);
        let later = at("2026-11-17T09:00:10.5Z");
        assert_eq!(clock.now(later), later);
        assert_eq!(clock.now(at("2026-11-17T08:00:00Z")), start, "the real clock was set back");
        let moved = clock.changed(ClockChange::Advance(DAY), later).unwrap();
        assert_eq!(moved, Clock { at: at("2026-11-18T09:00:10.5Z"), since: None });
        assert_eq!(moved.now(later + DAY + DAY), moved.at, "it stands");
        let running = moved.changed(ClockChange::Follow, later + DAY).unwrap();
        assert_eq!(running.now(later + DAY), moved.at);
        assert_eq!(running.now(later + DAY + DAY), moved.at + DAY);
        assert_eq!(running.changed(ClockChange::Follow, later), Ok(running));
    }

    #[test]
    fn a_clock_never_moves_back_and_not_too_far_ahead() {
        let real = at("2026-11-17T09:00:00Z");
        let clock = Clock::new(real);
        let back = clock.changed(ClockChange::Set(at("2026-11-17T08:59:59.999Z")), real);
        assert_eq!(back, Err(ClockRefusal::Backwards { now: real }));
        let same = clock.changed(ClockChange::Set(real), real).unwrap();
        assert_eq!(same, Clock { at: real, since: None });
        let latest = real + MAX_AHEAD;
        assert!(clock.changed(ClockChange::Set(latest), real).is_ok());
        for change in [
            ClockChange::Set(latest + SignedDuration::from_millis(1)),
            ClockChange::Set(Timestamp::MAX),
        ] {
            let refusal = clock.changed(change, real).unwrap_err();
            let ClockRefusal::TooFarAhead(violations) = refusal else { panic!("{refusal:?}") };
            assert_eq!(violations.listed()[0].pointer, "/set");
        }
        let ahead = Clock { at: latest, since: None };
        assert!(ahead.changed(ClockChange::Advance(DAY), real).is_err());
    }

    #[test]
    fn a_time_that_a_standing_clock_does_not_show_never_comes() {
        let real = at("2026-11-17T09:00:00Z");
        let running = Clock { at: real + DAY, since: Some(real) };
        assert_eq!(running.real_time_of(real + DAY + DAY, real), Some(real + DAY));
        assert_eq!(running.real_time_of(real, real), Some(real));
        let standing = Clock { at: real, since: None };
        assert_eq!(standing.real_time_of(real + DAY, real), None);
        assert_eq!(standing.real_time_of(real, real), Some(real));
    }

    proptest! {
        #[test]
        fn no_sequence_of_changes_moves_a_clock_back(
            steps in prop::collection::vec((0_u8..3, 0_i64..400 * 86_400, 0_i64..86_400), 0..20)
        ) {
            let mut real = at("2026-11-17T09:00:00Z");
            let mut clock = Clock::new(real);
            for (kind, seconds, passed) in steps {
                let before = clock.now(real);
                real += SignedDuration::from_secs(passed);
                let change = match kind {
                    0 => ClockChange::Advance(SignedDuration::from_secs(seconds)),
                    1 => ClockChange::Set(real + SignedDuration::from_secs(seconds - 86_400)),
                    _ => ClockChange::Follow,
                };
                let now = clock.now(real);
                if let Ok(changed) = clock.changed(change, real) {
                    prop_assert!(changed.now(real) >= now);
                    clock = changed;
                }
                prop_assert!(clock.now(real) >= before);
            }
        }
    }
}
