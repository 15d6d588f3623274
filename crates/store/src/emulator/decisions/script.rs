//! Review scripts: the steps of a new version, and what a step changes.

use std::borrow::Cow;

use galley_domain::{
    emulator::{
        NAME_LOCK,
        actions::{self, Action, EmulatedTemplate},
        rules::ReviewRules,
        script,
    },
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Status, Template,
        lifecycle::{EventType, State},
        quality::Quality,
    },
};
use jiff::Timestamp;

use super::Emulation;
use crate::{
    Actor, CreateOutcome, CreatedTemplate, NewTemplate, StoreError, StoredTemplate,
    events::NewEvent,
    stored_row::{Row, StoredRow as _},
    template_rows::{ChangedTemplate, ChangedText, NewDecision},
};

/// The script of a new version.
pub(crate) struct Script {
    /// What happens at once.
    pub(crate) now: Vec<Action>,
    /// What happens later, with its time on the account's clock.
    pub(crate) later: Vec<(Timestamp, Action)>,
}

impl Script {
    /// The script of a version of this template that is created at a time of the account's clock.
    pub(crate) fn new(template: &Template, rules: &ReviewRules, now: Timestamp) -> Self {
        let steps = script::steps(template.name(), template.category(), rules);
        let (at_once, later): (Vec<_>, Vec<_>) =
            steps.into_iter().partition(|step| step.after.is_zero());
        let due_at = |after| now.checked_add(after).unwrap_or(Timestamp::MAX);
        Self {
            now: at_once.into_iter().map(|step| step.action).collect(),
            later: later.into_iter().map(|step| (due_at(step.after), step.action)).collect(),
        }
    }
}

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
    pub(crate) id: TemplateId,
    pub(crate) template: EmulatedTemplate,
    pub(crate) previous_category: Option<Category>,
    pub(crate) revision: u64,
    /// The last decision on the newest version.
    pub(crate) decision: Option<NewDecision>,
    /// Whether a step has changed the template.
    pub(crate) is_changed: bool,
    changes_category: bool,
}

impl ScriptRun {
    /// Begins with a stored template.
    pub(crate) fn of(account: AccountId, stored: &StoredTemplate) -> Self {
        let template = EmulatedTemplate {
            state: stored.state,
            category: stored.template.category(),
            announced_category: stored.announced_category,
            quality: stored.quality,
        };
        let previous_category = stored.previous_category;
        Self { previous_category, ..Self::new(account, stored.id, template, stored.revision) }
    }

    /// Begins with a template that was just created in this state.
    pub(crate) fn of_new(new: &NewTemplate, id: TemplateId, state: State) -> Self {
        let template = EmulatedTemplate {
            state,
            category: new.template.category(),
            announced_category: None,
            quality: Quality::Unknown,
        };
        Self::new(new.account, id, template, 1)
    }

    fn new(account: AccountId, id: TemplateId, template: EmulatedTemplate, revision: u64) -> Self {
        Self {
            account,
            id,
            template,
            previous_category: None,
            revision,
            decision: None,
            is_changed: false,
            changes_category: false,
        }
    }

    /// Applies an action at a time of the account's clock and a real time; returns its event, or `None`
    /// if it is skipped.
    pub(crate) fn apply(
        &mut self,
        action: Action,
        emulated_at: Timestamp,
        at: Timestamp,
    ) -> Option<NewEvent<'static>> {
        let applied = actions::decide(action, self.template)?;
        if applied.after.category != self.template.category {
            self.previous_category = Some(self.template.category);
            self.changes_category = true;
        }
        if matches!(applied.event, EventType::Approved | EventType::Rejected) {
            self.decision = Some(NewDecision::Made(applied.reason.clone()));
        }
        self.template = applied.after;
        self.revision += 1;
        self.is_changed = true;
        let EmulatedTemplate { state, category, .. } = self.template;
        Some(NewEvent {
            account: self.account,
            kind: applied.event,
            template: self.id,
            version: state.version,
            at,
            emulated_at: Some(emulated_at),
            actor: Actor::Service,
            category,
            status: state.status(),
            reason: applied.reason.map(Cow::Owned),
            trace: None,
        })
    }

    /// The template with this content after the steps, if they have changed it.
    pub(crate) fn changed(&self, content: &str, at: Timestamp) -> Option<ChangedTemplate> {
        let EmulatedTemplate { state, category, announced_category, quality } = self.template;
        let text = || ChangedText::of(self.account, category, content);
        self.is_changed.then(|| ChangedTemplate {
            id: self.id,
            state,
            category,
            previous_category: self.previous_category,
            announced_category,
            quality,
            revision: self.revision,
            decision: self.decision.clone(),
            text: self.changes_category.then(text),
            at,
        })
    }

    /// The created template after its script.
    pub(crate) fn created(&self) -> CreatedTemplate {
        let EmulatedTemplate { state, category, .. } = self.template;
        CreatedTemplate { id: self.id, status: state.status(), category }
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

/// The refusal of a template whose name is locked until this time of the account's clock.
pub(crate) fn locked_name(emulation: Emulation, until: Timestamp) -> Option<CreateOutcome> {
    (until > emulation.now).then_some(CreateOutcome::NameLocked { until })
}

#[cfg(test)]
mod tests {
    use galley_domain::emulator::EmulatorKind;

    use super::*;

    fn run() -> ScriptRun {
        let template = EmulatedTemplate {
            state: State::initial(galley_domain::template::Review::Scripted),
            category: Category::Utility,
            announced_category: None,
            quality: Quality::Unknown,
        };
        let (account, id) = (AccountId::new(1).unwrap(), TemplateId::new(2).unwrap());
        ScriptRun::new(account, id, template, 1)
    }

    #[test]
    fn each_step_increases_the_revision_and_a_skipped_one_changes_nothing() {
        let (mut run, at) = (run(), Timestamp::UNIX_EPOCH);
        assert!(run.apply(Action::Resume, at, at).is_none());
        assert_eq!((run.revision, run.is_changed), (1, false));
        let approved = run.apply(Action::Approve, at, at).unwrap();
        assert_eq!((approved.kind, approved.status), (EventType::Approved, Status::Approved));
        assert_eq!((approved.actor, approved.reason), (Actor::Service, None));
        let paused = run.apply(Action::Pause, at, at).unwrap();
        assert_eq!(paused.status, Status::Paused);
        assert_eq!((run.revision, run.is_changed), (3, true));
        let decision = Some(NewDecision::Made(None));
        assert_eq!(run.decision, decision, "the reason of the pause is not that of the decision");
        assert_eq!(run.changed("{}", at).unwrap().text, None);
    }

    #[test]
    fn a_changed_category_has_a_previous_one() {
        let (mut run, at) = (run(), Timestamp::UNIX_EPOCH);
        run.apply(Action::Approve, at, at).unwrap();
        let change = Action::ChangeCategory(Category::Authentication);
        let changed = run.apply(change, at, at).unwrap();
        assert_eq!(changed.category, Category::Authentication);
        assert_eq!(run.previous_category, Some(Category::Utility));
        let text = run.changed("{}", at).unwrap().text;
        assert_eq!(text, Some(ChangedText { key: None }));
    }

    #[test]
    fn a_faithful_account_locks_the_name_of_a_template_that_was_ever_approved() {
        let emulation =
            |faithful| Emulation { kind: EmulatorKind { faithful }, now: Timestamp::UNIX_EPOCH };
        let pending = run().template.state;
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
        let refusal = Some(CreateOutcome::NameLocked { until: end });
        assert_eq!(locked_name(emulation(true), end), refusal);
        let later = Emulation { now: end, ..emulation(true) };
        assert_eq!(locked_name(later, end), None);
    }
}
