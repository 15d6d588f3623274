//! Review scripts: what a step changes.

use galley_domain::{
    emulator::{
        NAME_LOCK,
        actions::{self, Action, EmulatedTemplate},
    },
    id::{AccountId, TemplateId},
    template::{
        Status,
        lifecycle::{EventType, State},
    },
};
use jiff::Timestamp;

use crate::{
    StoreError,
    emulator::Emulation,
    events::NewEvent,
    stored_row::{Row, StoredRow as _},
    template_rows::{ChangedTemplate, ChangedText, NewDecision},
};

/// A step that is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedStep {
    pub(crate) id: i64,
    pub(crate) template: TemplateId,
    /// On the account's clock.
    pub(crate) due_at: Timestamp,
    pub(crate) action: Action,
}

impl QueuedStep {
    /// Reads a row of `script_step`.
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let argument: Option<String> = row.value("argument")?;
        Ok(Self {
            id: row.value("id")?,
            template: row.template_id("template_id")?,
            due_at: row.timestamp("due_at")?,
            action: row.parsed("action", |name| Action::parse(name, argument.as_deref()))?,
        })
    }
}

/// A template while the steps of its script change it. The result is written once.
pub(crate) struct ScriptRun {
    pub(crate) account: AccountId,
    /// The row, without its text.
    pub(crate) changed: ChangedTemplate,
    /// Whether a step has changed the template.
    pub(crate) is_changed: bool,
    changes_category: bool,
}

impl ScriptRun {
    /// Begins with the row before the steps.
    pub(crate) fn new(account: AccountId, changed: ChangedTemplate) -> Self {
        Self { account, changed, is_changed: false, changes_category: false }
    }

    /// Applies an action at a time of the account's clock; returns its event, or `None` if it is skipped.
    pub(crate) fn apply(
        &mut self,
        action: Action,
        emulated_at: Timestamp,
    ) -> Option<NewEvent<'static>> {
        let ChangedTemplate { state, category, announced_category, quality, .. } = self.changed;
        let before = EmulatedTemplate { state, category, announced_category, quality };
        let applied = actions::decide(action, before)?;
        let EmulatedTemplate { state, category, announced_category, quality } = applied.after;
        let changed = &mut self.changed;
        if category != before.category {
            changed.previous_category = Some(before.category);
            self.changes_category = true;
        }
        if matches!(applied.event, EventType::Approved | EventType::Rejected) {
            changed.decision = Some(NewDecision::Made(applied.reason.clone()));
        }
        (changed.state, changed.category) = (state, category);
        (changed.announced_category, changed.quality) = (announced_category, quality);
        self.is_changed = true;
        let event = changed.event(self.account, applied.event, applied.reason);
        Some(NewEvent { emulated_at: Some(emulated_at), ..event })
    }

    /// The template with this content after the steps, if they have changed it.
    pub(crate) fn changed(&self, content: &str) -> Option<ChangedTemplate> {
        let text = || ChangedText::of(self.account, self.changed.category, content);
        self.is_changed.then(|| ChangedTemplate {
            text: self.changes_category.then(text),
            ..self.changed.clone()
        })
    }
}

/// How many expired locks of names a new lock deletes.
pub(crate) const LOCK_CLEANUP_ROWS: i64 = 100;

/// Until when the deletion of a template locks its name, if it does. `has_approved_version`: one of
/// its former versions was APPROVED.
pub(crate) fn name_lock(
    emulation: Emulation,
    before: &State,
    has_approved_version: bool,
) -> Option<Timestamp> {
    let was_approved = before.newest_status == Status::Approved
        || before.approved_version.is_some()
        || has_approved_version;
    let until = emulation.now.checked_add(NAME_LOCK).unwrap_or(Timestamp::MAX);
    (emulation.kind.faithful && was_approved).then_some(until)
}

#[cfg(test)]
mod tests {
    use galley_domain::{emulator::EmulatorKind, rulebook::Category, template::quality::Quality};

    use super::*;
    use crate::Actor;

    fn run() -> ScriptRun {
        let changed = ChangedTemplate {
            id: TemplateId::new(2).unwrap(),
            state: State::initial(galley_domain::template::Review::Scripted),
            category: Category::Utility,
            previous_category: None,
            announced_category: None,
            quality: Quality::Unknown,
            revision: 1,
            decision: None,
            text: None,
            at: Timestamp::UNIX_EPOCH,
        };
        ScriptRun::new(AccountId::new(1).unwrap(), changed)
    }

    #[test]
    fn each_step_increases_the_revision_and_a_skipped_one_changes_nothing() {
        let (mut run, at) = (run(), Timestamp::UNIX_EPOCH);
        assert!(run.apply(Action::Resume, at).is_none());
        assert_eq!((run.changed.revision, run.is_changed), (1, false));
        let approved = run.apply(Action::Approve, at).unwrap();
        assert_eq!((approved.kind, approved.status), (EventType::Approved, Status::Approved));
        assert_eq!((approved.actor, approved.reason), (Actor::Service, None));
        let paused = run.apply(Action::Pause, at).unwrap();
        assert_eq!(paused.status, Status::Paused);
        assert_eq!((run.changed.revision, run.is_changed), (3, true));
        let decision = Some(NewDecision::Made(None));
        let changed = run.changed("{}").unwrap();
        assert_eq!(
            changed.decision, decision,
            "the reason of the pause is not that of the decision"
        );
        assert_eq!(changed.text, None);
    }

    #[test]
    fn a_changed_category_has_a_previous_one() {
        let (mut run, at) = (run(), Timestamp::UNIX_EPOCH);
        run.apply(Action::Approve, at).unwrap();
        let change = Action::ChangeCategory(Category::Authentication);
        let changed = run.apply(change, at).unwrap();
        assert_eq!(changed.category, Category::Authentication);
        assert_eq!(run.changed.previous_category, Some(Category::Utility));
        let text = run.changed("{}").unwrap().text;
        assert_eq!(text, Some(ChangedText { key: None }));
    }

    #[test]
    fn a_faithful_account_locks_the_name_of_a_template_that_was_ever_approved() {
        let emulation =
            |faithful| Emulation { kind: EmulatorKind { faithful }, now: Timestamp::UNIX_EPOCH };
        let pending = run().changed.state;
        let end = Timestamp::UNIX_EPOCH + NAME_LOCK;
        let until = Some(end);
        assert_eq!(name_lock(emulation(true), &pending, false), None);
        assert_eq!(name_lock(emulation(true), &pending, true), until);
        let approved = State { newest_status: Status::Approved, ..pending };
        assert_eq!(name_lock(emulation(true), &approved, false), until);
        assert_eq!(name_lock(emulation(false), &approved, true), None);
        let rejected =
            State { newest_status: Status::Rejected, approved_version: Some(1), ..pending };
        assert_eq!(name_lock(emulation(true), &rejected, false), until);
    }
}
