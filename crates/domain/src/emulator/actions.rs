//! What a review script does to a template, and the result.

use super::rules::Outcome;
use crate::{
    rulebook::Category,
    template::{
        Review,
        lifecycle::{EventType, State, Trigger},
        quality::{Quality, QualityChange},
    },
    webhook::{PauseTitle, RejectionReason},
};

/// One action of a review script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Approves the newest version.
    Approve,
    /// Rejects the newest version.
    Reject(RejectionReason),
    /// Announces another category.
    AnnounceCategory(Category),
    /// Changes the category.
    ChangeCategory(Category),
    /// Pauses the template.
    Pause,
    /// Ends the pause.
    Resume,
    /// Disables the template.
    Disable,
    /// Warns that the template may be paused or disabled.
    Flag,
    /// Changes the quality.
    Quality(Quality),
}

/// The template that an action changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmulatedTemplate {
    /// Its lifecycle state.
    pub state: State,
    /// Its category.
    pub category: Category,
    /// The category that was announced last. If it equals the category, the change is done.
    pub announced_category: Option<Category>,
    /// Its quality.
    pub quality: Quality,
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The template after it.
    pub after: EmulatedTemplate,
    /// The event to emit.
    pub event: EventType,
    /// The reason of the event, and of the decision on the newest version.
    pub reason: Option<String>,
}

impl Action {
    /// The trigger in the lifecycle table.
    pub fn trigger(self) -> Trigger {
        match self {
            Self::Approve => Trigger::Approve,
            Self::Reject(_) => Trigger::Reject,
            Self::AnnounceCategory(_) => Trigger::AnnounceCategory,
            Self::ChangeCategory(_) => Trigger::ChangeCategory,
            Self::Pause => Trigger::Pause,
            Self::Resume => Trigger::Resume,
            Self::Disable => Trigger::Disable,
            Self::Flag => Trigger::Flag,
            Self::Quality(_) => Trigger::Quality,
        }
    }

    /// The name, as it is stored: that of the trigger.
    pub fn as_str(self) -> &'static str {
        self.trigger().as_str()
    }

    /// The argument, as it is stored.
    pub fn argument(self) -> Option<&'static str> {
        match self {
            Self::Reject(reason) => Some(reason.as_str()),
            Self::AnnounceCategory(category) | Self::ChangeCategory(category) => {
                Some(category.as_str())
            }
            Self::Quality(quality) => Some(quality.as_str()),
            Self::Approve | Self::Pause | Self::Resume | Self::Disable | Self::Flag => None,
        }
    }

    /// The action with this stored name and argument.
    pub fn parse(name: &str, argument: Option<&str>) -> Option<Self> {
        let category = || argument.and_then(Category::parse);
        Some(match Trigger::parse(name)? {
            Trigger::Approve => Self::Approve,
            Trigger::Reject => Self::Reject(argument.and_then(RejectionReason::parse)?),
            Trigger::AnnounceCategory => Self::AnnounceCategory(category()?),
            Trigger::ChangeCategory => Self::ChangeCategory(category()?),
            Trigger::Pause => Self::Pause,
            Trigger::Resume => Self::Resume,
            Trigger::Disable => Self::Disable,
            Trigger::Flag => Self::Flag,
            Trigger::Quality => Self::Quality(argument.and_then(Quality::parse)?),
            Trigger::Edit | Trigger::Delete | Trigger::Archive | Trigger::Unarchive => return None,
        })
    }
}

/// Decides on an action. `None` if it is skipped: the lifecycle table does not allow it now, or it
/// would change nothing.
pub fn decide(action: Action, before: EmulatedTemplate) -> Option<Applied> {
    let (state, event) = before.state.apply(action.trigger(), Review::Scripted).ok()?;
    let mut after = EmulatedTemplate { state, ..before };
    let reason = match action {
        Action::Reject(reason) => Some(reason.as_str().to_owned()),
        Action::AnnounceCategory(category) => {
            after.announced_category = Some(category);
            let is_new = category != before.category && after != before;
            is_new.then(|| Some(category.as_str().to_owned()))?
        }
        Action::ChangeCategory(category) => {
            after.category = category;
            after.announced_category = Some(category);
            (category != before.category).then_some(None)?
        }
        Action::Quality(quality) => {
            after.quality = quality;
            let change = QualityChange { from: before.quality, to: quality };
            (after != before).then(|| Some(change.to_string()))?
        }
        Action::Pause => Some(format!(
            "{}: Paused for 3 hours because of low quality.",
            PauseTitle::First.as_str()
        )),
        Action::Approve | Action::Resume | Action::Disable | Action::Flag => None,
    };
    Some(Applied { after, event, reason })
}

impl Outcome {
    /// The category to which the outcome moves a template.
    pub(super) fn category(self) -> Option<Category> {
        match self {
            Self::ToMarketing => Some(Category::Marketing),
            Self::ToUtility => Some(Category::Utility),
            Self::ToAuthentication => Some(Category::Authentication),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{Status, lifecycle::Hold};

    const ALL: [Action; 9] = [
        Action::Approve,
        Action::Reject(RejectionReason::Scam),
        Action::AnnounceCategory(Category::Marketing),
        Action::ChangeCategory(Category::Authentication),
        Action::Pause,
        Action::Resume,
        Action::Disable,
        Action::Flag,
        Action::Quality(Quality::Red),
    ];

    fn pending() -> EmulatedTemplate {
        EmulatedTemplate {
            state: State::initial(Review::Scripted),
            category: Category::Utility,
            announced_category: None,
            quality: Quality::Unknown,
        }
    }

    fn approved() -> EmulatedTemplate {
        decide(Action::Approve, pending()).unwrap().after
    }

    #[test]
    fn an_action_is_stored_as_a_name_and_an_argument() {
        for action in ALL {
            assert_eq!(Action::parse(action.as_str(), action.argument()), Some(action));
        }
        for (name, argument) in [
            ("reject", None),
            ("reject", Some("NONE")),
            ("quality", Some("BLUE")),
            ("change_category", None),
            ("edit", None),
            ("archive", None),
            ("", None),
        ] {
            assert_eq!(Action::parse(name, argument), None, "{name}");
        }
    }

    #[test]
    fn a_review_approves_or_rejects_a_pending_version_once() {
        let applied = decide(Action::Approve, pending()).unwrap();
        assert_eq!((applied.event, applied.reason), (EventType::Approved, None));
        assert_eq!(applied.after.state.status(), Status::Approved);
        assert_eq!(decide(Action::Approve, applied.after), None);
        let applied = decide(Action::Reject(RejectionReason::Scam), pending()).unwrap();
        assert_eq!((applied.event, applied.reason.as_deref()), (EventType::Rejected, Some("SCAM")));
        assert_eq!(applied.after.state.status(), Status::Rejected);
        assert_eq!(decide(Action::Approve, applied.after), None);
    }

    #[test]
    fn a_category_is_announced_then_changed() {
        let announce = Action::AnnounceCategory(Category::Marketing);
        let announced = decide(announce, approved()).unwrap();
        assert_eq!(announced.event, EventType::CategoryAnnounced);
        assert_eq!(announced.reason.as_deref(), Some("MARKETING"));
        assert_eq!(announced.after.category, Category::Utility);
        assert_eq!(decide(announce, announced.after), None, "it is announced already");
        let change = Action::ChangeCategory(Category::Marketing);
        let changed = decide(change, announced.after).unwrap();
        assert_eq!((changed.event, &changed.reason), (EventType::CategoryChanged, &None));
        assert_eq!(changed.after.category, Category::Marketing);
        assert_eq!(changed.after.announced_category, Some(Category::Marketing));
        assert_eq!(changed.after.state, approved().state, "there is no new version");
        for action in [announce, change] {
            assert_eq!(decide(action, changed.after), None, "it has the category already");
        }
        let same = Action::AnnounceCategory(Category::Utility);
        assert_eq!(decide(same, approved()), None, "it has the category already");
    }

    #[test]
    fn a_pause_tells_metas_title_and_ends() {
        let paused = decide(Action::Pause, approved()).unwrap();
        assert_eq!(paused.after.state.hold, Some(Hold::Paused));
        let title = PauseTitle::of(paused.reason.as_deref());
        assert_eq!(title, (PauseTitle::First, Some("Paused for 3 hours because of low quality.")));
        assert_eq!(decide(Action::Pause, paused.after), None);
        let resumed = decide(Action::Resume, paused.after).unwrap();
        assert_eq!((resumed.after, resumed.event), (approved(), EventType::Resumed));
        assert_eq!(decide(Action::Resume, resumed.after), None);
    }

    #[test]
    fn a_quality_changes_and_a_flag_changes_nothing_else() {
        let red = decide(Action::Quality(Quality::Red), approved()).unwrap();
        assert_eq!((red.event, red.after.quality), (EventType::QualityChanged, Quality::Red));
        assert_eq!(red.reason.as_deref(), Some("UNKNOWN to RED"));
        assert_eq!(decide(Action::Quality(Quality::Red), red.after), None);
        let flagged = decide(Action::Flag, red.after).unwrap();
        assert_eq!((flagged.after, flagged.event), (red.after, EventType::Flagged));
    }

    #[test]
    fn an_archived_or_disabled_template_skips_everything() {
        for hold in [Hold::Archived, Hold::Disabled] {
            let mut template = approved();
            template.state.hold = Some(hold);
            for action in ALL {
                assert_eq!(decide(action, template), None, "{action:?}");
            }
        }
        let disabled = decide(Action::Disable, approved()).unwrap();
        assert_eq!(disabled.event, EventType::Disabled);
    }
}
