//! The lifecycle of a template as one transition table: statuses, triggers, guards and results.
//! docs/lifecycle.md is generated from it.

use crate::{
    string_enum::string_enum,
    template::{Review, Status},
};

string_enum!(
    /// What can happen to a template after its creation.
    Trigger {
        /// A new version replaces its content or category.
        Edit "edit",
        /// A reviewer approves the pending version.
        Approve "approve",
        /// A reviewer rejects the pending version.
        Reject "reject",
        /// Stops it from being sent temporarily.
        Pause "pause",
        /// Ends a pause.
        Resume "resume",
        /// Stops it from being sent permanently.
        Disable "disable",
        /// Deletes it.
        Delete "delete",
    }
);

string_enum!(
    /// A state that prevents a template from being sent, whatever the status of its versions.
    Hold {
        /// Temporarily.
        Paused "PAUSED",
        /// Permanently.
        Disabled "DISABLED",
    }
);

string_enum!(
    /// The type of an event.
    EventType {
        /// The template was created.
        Created "template.created",
        /// The template has a new version.
        Edited "template.edited",
        /// The newest version has another category than the previous one.
        CategoryChanged "template.category_changed",
        /// A reviewer approved the newest version.
        Approved "template.approved",
        /// A reviewer rejected the newest version.
        Rejected "template.rejected",
        /// The template was paused.
        Paused "template.paused",
        /// The pause has ended.
        Resumed "template.resumed",
        /// The template was disabled.
        Disabled "template.disabled",
        /// The template was deleted.
        Deleted "template.deleted",
        /// Galley stopped delivering to a webhook endpoint; not about a template.
        WebhookDisabled "webhook.disabled",
    }
);

/// One row of the table: what a trigger does in one of these statuses if the guard holds.
#[derive(Debug)]
pub struct Transition {
    /// The statuses in which it is possible.
    pub from: &'static [Status],
    /// What causes it.
    pub trigger: Trigger,
    /// The condition for it.
    pub guard: Guard,
    /// The result.
    pub effect: Effect,
    /// The event that it emits.
    pub event: EventType,
}

/// A condition of a transition in addition to the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// No further condition.
    Always,
    /// The account approves valid documents automatically.
    AutoReview,
    /// The account requires a review.
    ManualReview,
    /// The newest version is PENDING.
    VersionPending,
    /// A version has been approved, so there is one to pause.
    HasApprovedVersion,
}

/// The result of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The newest version gets this status; a hold stays in place.
    SetVersionStatus(Status),
    /// The template gets this hold.
    SetHold(Hold),
    /// The hold is removed; the status is that of the newest version.
    ClearHold,
    /// The template is deleted.
    Delete,
}

use Guard::{Always, AutoReview, HasApprovedVersion, ManualReview, VersionPending};
use Status::{Approved, Disabled, Paused, Pending, Rejected};

/// All transitions. Any other combination is rejected.
pub static TRANSITIONS: &[Transition] = &[
    row(
        &[Pending, Approved, Rejected, Paused],
        Trigger::Edit,
        AutoReview,
        Effect::SetVersionStatus(Approved),
        EventType::Edited,
    ),
    row(
        &[Pending, Approved, Rejected, Paused],
        Trigger::Edit,
        ManualReview,
        Effect::SetVersionStatus(Pending),
        EventType::Edited,
    ),
    row(
        &[Pending, Paused],
        Trigger::Approve,
        VersionPending,
        Effect::SetVersionStatus(Approved),
        EventType::Approved,
    ),
    row(
        &[Pending, Paused],
        Trigger::Reject,
        VersionPending,
        Effect::SetVersionStatus(Rejected),
        EventType::Rejected,
    ),
    row(&[Approved], Trigger::Pause, Always, Effect::SetHold(Hold::Paused), EventType::Paused),
    row(
        &[Pending, Rejected],
        Trigger::Pause,
        HasApprovedVersion,
        Effect::SetHold(Hold::Paused),
        EventType::Paused,
    ),
    row(&[Paused], Trigger::Resume, Always, Effect::ClearHold, EventType::Resumed),
    row(
        &[Pending, Approved, Rejected, Paused],
        Trigger::Disable,
        Always,
        Effect::SetHold(Hold::Disabled),
        EventType::Disabled,
    ),
    row(
        &[Pending, Approved, Rejected, Paused, Disabled],
        Trigger::Delete,
        Always,
        Effect::Delete,
        EventType::Deleted,
    ),
];

const fn row(
    from: &'static [Status],
    trigger: Trigger,
    guard: Guard,
    effect: Effect,
    event: EventType,
) -> Transition {
    Transition { from, trigger, guard, effect, event }
}

/// The lifecycle state of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The number of its newest version.
    pub version: u64,
    /// The status of that version: PENDING, APPROVED or REJECTED.
    pub newest_status: Status,
    /// The newest approved version.
    pub approved_version: Option<u64>,
    /// The hold that prevents it from being sent.
    pub hold: Option<Hold>,
}

/// The transition is not possible in the template's current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTransition {
    /// The current status.
    pub status: Status,
    /// The triggers that are possible instead.
    pub possible: Vec<Trigger>,
}

impl State {
    /// The state of a new template.
    pub fn initial(review: Review) -> Self {
        let newest_status = review.initial_status();
        Self {
            version: 1,
            newest_status,
            approved_version: (newest_status == Approved).then_some(1),
            hold: None,
        }
    }

    /// The status of the template: its hold, or else the status of the newest version.
    pub fn status(&self) -> Status {
        match self.hold {
            Some(Hold::Paused) => Paused,
            Some(Hold::Disabled) => Disabled,
            None => self.newest_status,
        }
    }

    /// The version that may be sent.
    pub fn live_version(&self) -> Option<u64> {
        self.approved_version.filter(|_| self.hold.is_none())
    }

    /// Applies a trigger. Returns the new state and the event to emit.
    pub fn apply(
        self,
        trigger: Trigger,
        review: Review,
    ) -> Result<(Self, EventType), InvalidTransition> {
        let Some(transition) =
            TRANSITIONS.iter().find(|it| it.trigger == trigger && it.applies(&self, review))
        else {
            return Err(InvalidTransition {
                status: self.status(),
                possible: self.possible_triggers(review),
            });
        };
        let mut next = self;
        if trigger == Trigger::Edit {
            next.version += 1;
        }
        match transition.effect {
            Effect::SetVersionStatus(status) => next.newest_status = status,
            Effect::SetHold(hold) => next.hold = Some(hold),
            Effect::ClearHold => next.hold = None,
            Effect::Delete => {}
        }
        if next.newest_status == Approved {
            next.approved_version = Some(next.version);
        }
        Ok((next, transition.event))
    }

    /// The triggers that are possible in this state.
    pub fn possible_triggers(&self, review: Review) -> Vec<Trigger> {
        TRANSITIONS.iter().filter(|it| it.applies(self, review)).map(|it| it.trigger).collect()
    }
}

impl Transition {
    fn applies(&self, state: &State, review: Review) -> bool {
        let guard = match self.guard {
            Always => true,
            AutoReview => review == Review::Auto,
            ManualReview => review == Review::Manual,
            VersionPending => state.newest_status == Pending,
            HasApprovedVersion => state.approved_version.is_some(),
        };
        guard && self.from.contains(&state.status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_states() -> Vec<State> {
        let mut states = Vec::new();
        for newest_status in [Pending, Approved, Rejected] {
            for approved_version in [None, Some(1), Some(2)] {
                for hold in [None, Some(Hold::Paused), Some(Hold::Disabled)] {
                    let possible = (newest_status == Approved) == (approved_version == Some(2));
                    states.extend(possible.then_some(State {
                        version: 2,
                        newest_status,
                        approved_version,
                        hold,
                    }));
                }
            }
        }
        states
    }

    #[test]
    fn at_most_one_row_applies_to_a_state_and_trigger() {
        for state in all_states() {
            for review in [Review::Auto, Review::Manual] {
                let mut possible = state.possible_triggers(review);
                let before = possible.len();
                possible.dedup();
                assert_eq!(possible.len(), before, "{state:?}");
            }
        }
    }

    #[test]
    fn exactly_the_possible_triggers_succeed() {
        for state in all_states() {
            for value in Trigger::VALUES {
                let trigger = Trigger::parse(value).unwrap();
                let is_possible = state.possible_triggers(Review::Manual).contains(&trigger);
                assert_eq!(
                    state.apply(trigger, Review::Manual).is_ok(),
                    is_possible,
                    "{state:?} {value}"
                );
            }
        }
    }

    #[test]
    fn a_pending_or_rejected_edit_leaves_the_approved_version_live() {
        let state = State::initial(Review::Auto);
        let (edited, event) = state.apply(Trigger::Edit, Review::Manual).unwrap();
        assert_eq!((edited.status(), edited.live_version()), (Pending, Some(1)));
        assert_eq!(event, EventType::Edited);
        let (rejected, _) = edited.apply(Trigger::Reject, Review::Manual).unwrap();
        assert_eq!((rejected.status(), rejected.live_version()), (Rejected, Some(1)));
        let (approved, _) = edited.apply(Trigger::Approve, Review::Manual).unwrap();
        assert_eq!((approved.status(), approved.live_version()), (Approved, Some(2)));
    }

    #[test]
    fn a_hold_hides_the_live_version_and_survives_an_edit() {
        let (paused, _) = State::initial(Review::Auto).apply(Trigger::Pause, Review::Auto).unwrap();
        assert_eq!((paused.status(), paused.live_version()), (Paused, None));
        let (edited, _) = paused.apply(Trigger::Edit, Review::Auto).unwrap();
        assert_eq!((edited.status(), edited.live_version()), (Paused, None));
        let (resumed, _) = edited.apply(Trigger::Resume, Review::Auto).unwrap();
        assert_eq!((resumed.status(), resumed.live_version()), (Approved, Some(2)));
        let (pending, _) = paused.apply(Trigger::Edit, Review::Manual).unwrap();
        let (resumed, _) = pending.apply(Trigger::Resume, Review::Manual).unwrap();
        assert_eq!((resumed.status(), resumed.live_version()), (Pending, Some(1)));
    }

    #[test]
    fn an_edit_of_a_paused_template_can_be_approved_during_the_pause() {
        let (paused, _) =
            State::initial(Review::Auto).apply(Trigger::Pause, Review::Manual).unwrap();
        assert!(paused.apply(Trigger::Approve, Review::Manual).is_err(), "no version is pending");
        let (edited, _) = paused.apply(Trigger::Edit, Review::Manual).unwrap();
        let (approved, event) = edited.apply(Trigger::Approve, Review::Manual).unwrap();
        assert_eq!((approved.status(), approved.live_version()), (Paused, None));
        assert_eq!(event, EventType::Approved);
        let (resumed, _) = approved.apply(Trigger::Resume, Review::Manual).unwrap();
        assert_eq!((resumed.status(), resumed.live_version()), (Approved, Some(2)));
    }

    #[test]
    fn a_never_approved_template_cannot_be_paused_and_a_disabled_one_can_only_be_deleted() {
        let pending = State::initial(Review::Manual);
        let refused = pending.apply(Trigger::Pause, Review::Manual).unwrap_err();
        assert_eq!(refused.status, Pending);
        let possible: Vec<&str> = refused.possible.iter().map(|it| it.as_str()).collect();
        assert_eq!(possible, ["edit", "approve", "reject", "disable", "delete"]);
        let (disabled, _) = pending.apply(Trigger::Disable, Review::Manual).unwrap();
        assert_eq!(disabled.possible_triggers(Review::Manual), [Trigger::Delete]);
    }
}
