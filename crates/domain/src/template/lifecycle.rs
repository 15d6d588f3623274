//! The life of a template as one table: which status it is in, what can happen to it there, and
//! what then becomes of it. The documentation's table is written from it.

use crate::{
    string_enum::string_enum,
    template::{Review, Status},
};

string_enum!(
    /// What can be done to a template after it was made.
    Trigger {
        /// Its content or category is replaced by a new version.
        Edit "edit",
        /// A reviewer takes the version that waits.
        Approve "approve",
        /// A reviewer refuses the version that waits.
        Reject "reject",
        /// It is not to be sent for a while.
        Pause "pause",
        /// A pause ends.
        Resume "resume",
        /// It is not to be sent any more.
        Disable "disable",
        /// It is taken away.
        Delete "delete",
    }
);

string_enum!(
    /// What keeps a template from being sent, whatever its versions say.
    Hold {
        /// For a while.
        Paused "PAUSED",
        /// For good.
        Disabled "DISABLED",
    }
);

string_enum!(
    /// What happened to a template.
    EventType {
        /// It was made.
        Created "template.created",
        /// It got a new version.
        Edited "template.edited",
        /// Its newest version has another category than the one before.
        CategoryChanged "template.category_changed",
        /// A reviewer took its newest version.
        Approved "template.approved",
        /// A reviewer refused its newest version.
        Rejected "template.rejected",
        /// It is not sent for a while.
        Paused "template.paused",
        /// Its pause has ended.
        Resumed "template.resumed",
        /// It is not sent any more.
        Disabled "template.disabled",
        /// It was taken away.
        Deleted "template.deleted",
        /// Not about a template: nothing is delivered to an endpoint any more.
        WebhookDisabled "webhook.disabled",
    }
);

/// One row: what a trigger does to a template in one of these statuses, if the guard holds.
#[derive(Debug)]
pub struct Move {
    /// The statuses it begins in.
    pub from: &'static [Status],
    /// What happens.
    pub trigger: Trigger,
    /// What has to be so.
    pub guard: Guard,
    /// Where it leads.
    pub to: Next,
    /// What is then told.
    pub event: EventType,
}

/// What has to be so for a move beyond the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Nothing more.
    Always,
    /// The account approves valid documents at once.
    AutoReview,
    /// A reviewer decides in this account.
    ManualReview,
    /// The newest version is PENDING.
    VersionWaits,
    /// Some version has been approved: there is something to take out of use.
    HasLiveVersion,
}

/// Where a move leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The newest version has this status now; a hold stays.
    Version(Status),
    /// The template is under this hold now.
    Held(Hold),
    /// No hold any more: the status is that of the newest version.
    Released,
    /// There is no such template any more.
    Deleted,
}

use Guard::{Always, AutoReview, HasLiveVersion, ManualReview, VersionWaits};
use Status::{Approved, Disabled, Paused, Pending, Rejected};

/// Every move there is. What is not here does not happen.
pub static TRANSITIONS: &[Move] = &[
    row(
        &[Pending, Approved, Rejected, Paused],
        Trigger::Edit,
        AutoReview,
        Next::Version(Approved),
        EventType::Edited,
    ),
    row(
        &[Pending, Approved, Rejected, Paused],
        Trigger::Edit,
        ManualReview,
        Next::Version(Pending),
        EventType::Edited,
    ),
    row(
        &[Pending, Paused],
        Trigger::Approve,
        VersionWaits,
        Next::Version(Approved),
        EventType::Approved,
    ),
    row(
        &[Pending, Paused],
        Trigger::Reject,
        VersionWaits,
        Next::Version(Rejected),
        EventType::Rejected,
    ),
    row(&[Approved], Trigger::Pause, Always, Next::Held(Hold::Paused), EventType::Paused),
    row(
        &[Pending, Rejected],
        Trigger::Pause,
        HasLiveVersion,
        Next::Held(Hold::Paused),
        EventType::Paused,
    ),
    row(&[Paused], Trigger::Resume, Always, Next::Released, EventType::Resumed),
    row(
        &[Pending, Approved, Rejected, Paused],
        Trigger::Disable,
        Always,
        Next::Held(Hold::Disabled),
        EventType::Disabled,
    ),
    row(
        &[Pending, Approved, Rejected, Paused, Disabled],
        Trigger::Delete,
        Always,
        Next::Deleted,
        EventType::Deleted,
    ),
];

const fn row(
    from: &'static [Status],
    trigger: Trigger,
    guard: Guard,
    to: Next,
    event: EventType,
) -> Move {
    Move { from, trigger, guard, to, event }
}

/// Where a template stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The number of its newest version.
    pub version: u64,
    /// What became of that version: PENDING, APPROVED or REJECTED.
    pub newest: Status,
    /// The newest version that was approved, if any was.
    pub approved: Option<u64>,
    /// What keeps it from being sent.
    pub hold: Option<Hold>,
}

/// The table has no such move from where the template stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTransition {
    /// Where it stands.
    pub status: Status,
    /// What can happen to it there.
    pub possible: Vec<Trigger>,
}

impl State {
    /// A template that has just been made.
    pub fn first(review: Review) -> Self {
        let newest = review.first_status();
        Self { version: 1, newest, approved: (newest == Approved).then_some(1), hold: None }
    }

    /// The status that is shown: the hold, else that of the newest version.
    pub fn status(&self) -> Status {
        match self.hold {
            Some(Hold::Paused) => Paused,
            Some(Hold::Disabled) => Disabled,
            None => self.newest,
        }
    }

    /// The version that may be sent.
    pub fn live_version(&self) -> Option<u64> {
        self.approved.filter(|_| self.hold.is_none())
    }

    /// What becomes of it, and the event that tells so.
    pub fn after(
        self,
        trigger: Trigger,
        review: Review,
    ) -> Result<(Self, EventType), InvalidTransition> {
        let Some(found) =
            TRANSITIONS.iter().find(|it| it.trigger == trigger && it.applies(&self, review))
        else {
            return Err(InvalidTransition {
                status: self.status(),
                possible: self.possible(review),
            });
        };
        let mut next = self;
        if trigger == Trigger::Edit {
            next.version += 1;
        }
        match found.to {
            Next::Version(status) => next.newest = status,
            Next::Held(hold) => next.hold = Some(hold),
            Next::Released => next.hold = None,
            Next::Deleted => {}
        }
        if next.newest == Approved {
            next.approved = Some(next.version);
        }
        Ok((next, found.event))
    }

    /// What can happen to it as it stands.
    pub fn possible(&self, review: Review) -> Vec<Trigger> {
        TRANSITIONS.iter().filter(|it| it.applies(self, review)).map(|it| it.trigger).collect()
    }
}

impl Move {
    fn applies(&self, state: &State, review: Review) -> bool {
        let guard = match self.guard {
            Always => true,
            AutoReview => review == Review::Auto,
            ManualReview => review == Review::Manual,
            VersionWaits => state.newest == Pending,
            HasLiveVersion => state.approved.is_some(),
        };
        guard && self.from.contains(&state.status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_states() -> Vec<State> {
        let mut states = Vec::new();
        for newest in [Pending, Approved, Rejected] {
            for approved in [None, Some(1), Some(2)] {
                for hold in [None, Some(Hold::Paused), Some(Hold::Disabled)] {
                    let possible = (newest == Approved) == (approved == Some(2));
                    states.extend(possible.then_some(State { version: 2, newest, approved, hold }));
                }
            }
        }
        states
    }

    #[test]
    fn no_two_rows_answer_the_same_question() {
        for state in all_states() {
            for review in [Review::Auto, Review::Manual] {
                let mut possible = state.possible(review);
                let before = possible.len();
                possible.dedup();
                assert_eq!(possible.len(), before, "{state:?}");
            }
        }
    }

    #[test]
    fn what_is_said_to_be_possible_is_and_nothing_else() {
        for state in all_states() {
            for word in Trigger::VALUES {
                let trigger = Trigger::parse(word).unwrap();
                let said = state.possible(Review::Manual).contains(&trigger);
                assert_eq!(state.after(trigger, Review::Manual).is_ok(), said, "{state:?} {word}");
            }
        }
    }

    #[test]
    fn a_waiting_or_refused_edit_leaves_the_approved_version_live() {
        let state = State::first(Review::Auto);
        let (edited, event) = state.after(Trigger::Edit, Review::Manual).unwrap();
        assert_eq!((edited.status(), edited.live_version()), (Pending, Some(1)));
        assert_eq!(event, EventType::Edited);
        let (rejected, _) = edited.after(Trigger::Reject, Review::Manual).unwrap();
        assert_eq!((rejected.status(), rejected.live_version()), (Rejected, Some(1)));
        let (approved, _) = edited.after(Trigger::Approve, Review::Manual).unwrap();
        assert_eq!((approved.status(), approved.live_version()), (Approved, Some(2)));
    }

    #[test]
    fn a_hold_hides_the_live_version_until_it_ends_and_an_edit_does_not_end_it() {
        let (paused, _) = State::first(Review::Auto).after(Trigger::Pause, Review::Auto).unwrap();
        assert_eq!((paused.status(), paused.live_version()), (Paused, None));
        let (edited, _) = paused.after(Trigger::Edit, Review::Auto).unwrap();
        assert_eq!((edited.status(), edited.live_version()), (Paused, None));
        let (resumed, _) = edited.after(Trigger::Resume, Review::Auto).unwrap();
        assert_eq!((resumed.status(), resumed.live_version()), (Approved, Some(2)));
        let (waiting, _) = paused.after(Trigger::Edit, Review::Manual).unwrap();
        let (resumed, _) = waiting.after(Trigger::Resume, Review::Manual).unwrap();
        assert_eq!((resumed.status(), resumed.live_version()), (Pending, Some(1)));
    }

    #[test]
    fn what_was_mended_under_a_pause_can_be_approved_before_the_pause_ends() {
        let (paused, _) = State::first(Review::Auto).after(Trigger::Pause, Review::Manual).unwrap();
        assert!(paused.after(Trigger::Approve, Review::Manual).is_err(), "nothing waits");
        let (mended, _) = paused.after(Trigger::Edit, Review::Manual).unwrap();
        let (approved, event) = mended.after(Trigger::Approve, Review::Manual).unwrap();
        assert_eq!((approved.status(), approved.live_version()), (Paused, None));
        assert_eq!(event, EventType::Approved);
        let (resumed, _) = approved.after(Trigger::Resume, Review::Manual).unwrap();
        assert_eq!((resumed.status(), resumed.live_version()), (Approved, Some(2)));
    }

    #[test]
    fn what_was_never_approved_cannot_be_paused_and_what_is_disabled_can_only_go() {
        let pending = State::first(Review::Manual);
        let refused = pending.after(Trigger::Pause, Review::Manual).unwrap_err();
        assert_eq!(refused.status, Pending);
        let words: Vec<&str> = refused.possible.iter().map(|it| it.as_str()).collect();
        assert_eq!(words, ["edit", "approve", "reject", "disable", "delete"]);
        let (disabled, _) = pending.after(Trigger::Disable, Review::Manual).unwrap();
        assert_eq!(disabled.possible(Review::Manual), [Trigger::Delete]);
    }
}
