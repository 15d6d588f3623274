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
        /// Puts it aside; only the Graph surface offers it.
        Archive "archive",
        /// Takes it back from the archive.
        Unarchive "unarchive",
        /// The review script warns that it may be paused or disabled.
        Flag "flag",
        /// The review script changes its quality.
        Quality "quality",
        /// The review script announces another category.
        AnnounceCategory "announce_category",
        /// The review script changes its category without a new version.
        ChangeCategory "change_category",
    }
);

string_enum!(
    /// A state that prevents a template from being sent, whatever the status of its versions.
    Hold {
        /// Temporarily.
        Paused "PAUSED",
        /// Permanently.
        Disabled "DISABLED",
        /// Until it is unarchived.
        Archived "ARCHIVED",
    }
);

string_enum!(
    /// The type of an event.
    EventType {
        /// The template was created.
        Created "template.created",
        /// The template has a new version.
        Edited "template.edited",
        /// The newest version has another category than the previous one, or the review script of
        /// an emulator account has changed the category.
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
        /// The template was archived.
        Archived "template.archived",
        /// The template is no longer archived.
        Unarchived "template.unarchived",
        /// The review script warned that the template may be paused or disabled.
        Flagged "template.flagged",
        /// The quality has changed.
        QualityChanged "template.quality_changed",
        /// The category will change.
        CategoryAnnounced "template.category_announced",
        /// The provider of a connected account reviews the template.
        Submitted "template.submitted",
        /// The provider of a connected account refused to create, edit, delete, archive or unarchive
        /// the template.
        UpstreamRefused "template.upstream_refused",
        /// The provider shows another content than the newest version has.
        Drifted "template.drifted",
        /// The provider no longer has the template.
        Gone "template.gone",
        /// Calls to the provider of a connected account fail, or its list is not plausible; not about
        /// a template.
        UpstreamDegraded "upstream.degraded",
        /// The provider of a connected account answers again; not about a template.
        UpstreamRecovered "upstream.recovered",
        /// A reviewer approved the newest version, which is submitted to the provider of the
        /// connected account.
        ReviewPassed "template.review_passed",
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
    /// The account requires a review, by a person, a script or a provider.
    ManualReview,
    /// The account is an emulator, whose reviews a script decides.
    ScriptedReview,
    /// The account is not connected to a provider, which would own status and holds.
    NotConnected,
    /// The newest version is PENDING, and the account is not connected to a provider.
    VersionPending,
    /// A version has been approved, so there is one to pause, and the account is not connected to a
    /// provider.
    HasApprovedVersion,
    /// The account is connected and its reviewers decide first; the newest version is not rejected,
    /// and the provider has not approved it.
    BeforeProvider,
    /// The account is connected and its reviewers decide first; the newest version is PENDING.
    PendingBeforeProvider,
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
    /// Versions and hold stay as they are; the event tells what has changed.
    Keep,
}

use Guard::{
    Always, AutoReview, BeforeProvider, HasApprovedVersion, ManualReview, NotConnected,
    PendingBeforeProvider, ScriptedReview, VersionPending,
};
use Status::{Approved, Archived, Disabled, Paused, Pending, Rejected};

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
    // A drifted template has the status of the provider, which is about another content.
    row(
        &[Pending, Approved, Paused],
        Trigger::Approve,
        BeforeProvider,
        Effect::Keep,
        EventType::ReviewPassed,
    ),
    row(
        &[Pending, Paused],
        Trigger::Reject,
        VersionPending,
        Effect::SetVersionStatus(Rejected),
        EventType::Rejected,
    ),
    row(
        &[Pending, Paused],
        Trigger::Reject,
        PendingBeforeProvider,
        Effect::SetVersionStatus(Rejected),
        EventType::Rejected,
    ),
    row(
        &[Approved],
        Trigger::Pause,
        NotConnected,
        Effect::SetHold(Hold::Paused),
        EventType::Paused,
    ),
    row(
        &[Pending, Rejected],
        Trigger::Pause,
        HasApprovedVersion,
        Effect::SetHold(Hold::Paused),
        EventType::Paused,
    ),
    row(&[Paused], Trigger::Resume, NotConnected, Effect::ClearHold, EventType::Resumed),
    row(
        &[Pending, Approved, Rejected, Paused],
        Trigger::Disable,
        NotConnected,
        Effect::SetHold(Hold::Disabled),
        EventType::Disabled,
    ),
    row(
        &[Pending, Approved, Rejected, Paused, Disabled, Archived],
        Trigger::Delete,
        Always,
        Effect::Delete,
        EventType::Deleted,
    ),
    row(
        &[Approved, Rejected],
        Trigger::Archive,
        NotConnected,
        Effect::SetHold(Hold::Archived),
        EventType::Archived,
    ),
    row(&[Archived], Trigger::Unarchive, NotConnected, Effect::ClearHold, EventType::Unarchived),
    row(&[Approved], Trigger::Flag, ScriptedReview, Effect::Keep, EventType::Flagged),
    row(
        &[Approved, Paused],
        Trigger::Quality,
        ScriptedReview,
        Effect::Keep,
        EventType::QualityChanged,
    ),
    row(
        &[Approved, Paused],
        Trigger::AnnounceCategory,
        ScriptedReview,
        Effect::Keep,
        EventType::CategoryAnnounced,
    ),
    row(
        &[Approved, Paused],
        Trigger::ChangeCategory,
        ScriptedReview,
        Effect::Keep,
        EventType::CategoryChanged,
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

impl Trigger {
    /// Whether a client can ask for it on every surface that has such templates. Archiving is a call
    /// of the Graph surface alone, and the triggers of a review script are not calls.
    pub fn is_action(self) -> bool {
        !matches!(
            self,
            Self::Archive
                | Self::Unarchive
                | Self::Flag
                | Self::Quality
                | Self::AnnounceCategory
                | Self::ChangeCategory
        )
    }
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
    /// The actions that are possible instead.
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
            Some(Hold::Archived) => Archived,
            None => self.newest_status,
        }
    }

    /// The version that may be sent.
    pub fn live_version(&self) -> Option<u64> {
        self.approved_version.filter(|_| self.hold.is_none())
    }

    /// Whether a reviewer can decide on the newest version.
    pub fn is_awaiting_review(&self) -> bool {
        self.newest_status == Pending && self.hold != Some(Hold::Disabled)
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
            return Err(self.refusal(review));
        };
        let mut next = self;
        if trigger == Trigger::Edit {
            next.version += 1;
        }
        match transition.effect {
            Effect::SetVersionStatus(status) => next.newest_status = status,
            Effect::SetHold(hold) => next.hold = Some(hold),
            Effect::ClearHold => next.hold = None,
            Effect::Delete | Effect::Keep => {}
        }
        // The provider of a connected account says which version is approved.
        if next.newest_status == Approved && !review.is_by_provider() {
            next.approved_version = Some(next.version);
        }
        Ok((next, transition.event))
    }

    /// Applies an edit as Meta does: the new content replaces the old one, so no older version stays
    /// live, a pause ends, and a PENDING template cannot be edited.
    pub fn edited_in_place(self) -> Result<(Self, EventType), InvalidTransition> {
        let review = Review::Scripted;
        if self.status() == Pending {
            let mut refusal = self.refusal(review);
            refusal.possible.retain(|trigger| *trigger != Trigger::Edit);
            return Err(refusal);
        }
        let (next, event) = self.apply(Trigger::Edit, review)?;
        Ok((Self { approved_version: None, hold: None, ..next }, event))
    }

    fn refusal(&self, review: Review) -> InvalidTransition {
        let mut possible = self.possible_triggers(review);
        possible.retain(|trigger| trigger.is_action());
        InvalidTransition { status: self.status(), possible }
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
            ManualReview => review != Review::Auto,
            ScriptedReview => review == Review::Scripted,
            NotConnected => !review.is_by_provider(),
            VersionPending => state.newest_status == Pending && !review.is_by_provider(),
            HasApprovedVersion => state.approved_version.is_some() && !review.is_by_provider(),
            BeforeProvider => {
                review == Review::InHouseThenProvider
                    && state.newest_status != Rejected
                    && state.approved_version != Some(state.version)
            }
            PendingBeforeProvider => {
                review == Review::InHouseThenProvider && state.newest_status == Pending
            }
        };
        guard && self.from.contains(&state.status())
    }
}

#[cfg(test)]
mod tests;
