//! Which operation a change of a template causes at the provider, and what a person may ask for.

use galley_domain::{
    template::{Review, Status},
    upstream::{OperationKind, content::ContentKey},
};
use serde_json::json;

use crate::{
    Actor, AuditKind, ChangeOutcome, MirroredTemplate, StoredOperation, StoredTemplate,
    TemplateChange, UpstreamAction, UpstreamActionOutcome, decisions::audit::AuditedChange,
};

/// Operations that a later one can supersede, or has to wait for, as an SQL condition.
pub(crate) const UNFINISHED_OPERATIONS: &str = "state NOT IN ('done', 'superseded')";

/// What the provider has of a template, as far as it is known.
pub(crate) struct Provided<'a> {
    /// The rows of the mirror that belong to the template.
    pub(crate) rows: &'a [MirroredTemplate],
    /// The unfinished operations of the template, oldest first.
    pub(crate) operations: &'a [StoredOperation],
}

impl Provided<'_> {
    /// The row of the template that the provider has.
    fn present(&self) -> Option<&MirroredTemplate> {
        self.rows.iter().find(|row| row.is_present())
    }

    fn is_uncertain(&self) -> bool {
        let is_uncertain = |it: &StoredOperation| {
            it.operation.kind.is_submission() && it.operation.state.is_uncertain()
        };
        self.operations.iter().any(is_uncertain)
    }

    /// What submits a version. A create whose outcome is not known comes first, so that the version
    /// is an edit.
    pub(crate) fn submission(&self) -> OperationKind {
        if self.present().is_some() || self.is_uncertain() {
            OperationKind::Edit
        } else {
            OperationKind::Create
        }
    }

    /// Whether a deleted template has to be deleted at the provider. It does not if no call was ever
    /// made that may have created it, and cannot be if the provider generated it.
    pub(crate) fn needs_deletion(&self) -> bool {
        let was_sent = |it: &StoredOperation| {
            let operation = &it.operation;
            operation.kind.is_submission()
                && !operation.state.is_settled()
                && operation.attempts > 0
        };
        match self.present() {
            Some(row) => !row.is_generated(),
            None => self.operations.iter().any(was_sent),
        }
    }
}

/// What an action does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PlannedAction {
    /// Queues an operation of the newest version, or about the archive.
    Queue {
        kind: OperationKind,
        /// The content at the provider that the person has decided to replace.
        replaces: Option<ContentKey>,
    },
    /// Queues this operation again.
    Retry(Box<StoredOperation>),
    /// Makes the content of this row a new version.
    Accept(Box<MirroredTemplate>),
    /// Ends the hold because of the category, which this row shows.
    AcceptCategory(Box<MirroredTemplate>),
}

/// Plans an action on a stored template, or refuses it. `newest` is its newest operation.
pub(crate) fn plan_action(
    action: UpstreamAction,
    change: &TemplateChange,
    stored: Option<&StoredTemplate>,
    provided: &Provided<'_>,
    newest: Option<&StoredOperation>,
) -> Result<PlannedAction, Box<UpstreamActionOutcome>> {
    let refused = |why| Box::new(UpstreamActionOutcome::NotPossible(why));
    if let (Some(expected), Some(stored)) = (&change.expected, stored)
        && !expected.contains(&stored.revision)
    {
        return Err(Box::new(UpstreamActionOutcome::RevisionMismatch(stored.revision)));
    }
    if action == UpstreamAction::Retry && (stored.is_some() || newest.is_some()) {
        return retry(stored, newest).map_err(refused);
    }
    let stored = stored.ok_or(UpstreamActionOutcome::NoTemplate).map_err(Box::new)?;
    if provided.present().is_some_and(MirroredTemplate::is_generated) {
        return Err(refused(GENERATED));
    }
    let planned = match action {
        UpstreamAction::Submit => submit(change.review, stored, provided),
        UpstreamAction::Push => push(change.review, stored, provided),
        UpstreamAction::Accept => accept(stored, provided),
        UpstreamAction::Retry => retry(Some(stored), newest),
        UpstreamAction::Archive => archive(OperationKind::Archive, provided),
        UpstreamAction::Unarchive => archive(OperationKind::Unarchive, provided),
    };
    planned.map_err(refused)
}

/// Why nothing can be done about a generated template that was imported before its source was known.
const GENERATED: &str = "The provider generated this template from a message, and removes it by itself. It cannot be changed.";

fn submit(
    review: Review,
    stored: &StoredTemplate,
    provided: &Provided<'_>,
) -> Result<PlannedAction, &'static str> {
    let version = stored.state.version;
    let is_under_way = |it: &StoredOperation| {
        it.operation.kind.is_submission()
            && it.version == version
            && !it.operation.state.is_settled()
    };
    if provided.operations.iter().any(is_under_way) {
        return Err("The newest version is already being submitted.");
    }
    if let Some(row) = provided.present() {
        if row.drifted {
            return Err("The content at the provider was changed there. Accept it, or push yours.");
        }
        // A template that was not read since its creation has the version that was created.
        if row.version == Some(version) || row.content_key.is_none() {
            return Err("The provider already has the newest version.");
        }
    }
    released(review, stored)?;
    Ok(PlannedAction::Queue { kind: provided.submission(), replaces: None })
}

fn push(
    review: Review,
    stored: &StoredTemplate,
    provided: &Provided<'_>,
) -> Result<PlannedAction, &'static str> {
    match (provided.present(), provided.rows.first()) {
        (Some(row), _) if row.drifted => {}
        (Some(row), _) if row.version == Some(stored.state.version) => {
            return Err("The provider has the same content.");
        }
        (Some(_), _) | (None, None) => {
            return Err("The content at the provider was not changed there. Submit yours.");
        }
        // It is gone at the provider.
        (None, Some(_)) => {}
    }
    released(review, stored)?;
    let replaces = provided.present().and_then(|row| row.content_key);
    Ok(PlannedAction::Queue { kind: provided.submission(), replaces })
}

fn accept(stored: &StoredTemplate, provided: &Provided<'_>) -> Result<PlannedAction, &'static str> {
    // Its outcome could be the content of the account, which would replace what is accepted.
    if provided.operations.iter().any(|it| it.operation.state.is_uncertain()) {
        return Err("A call about the template is being made. Try again in a minute.");
    }
    match provided.present() {
        None => Err("The provider does not have the template."),
        // The status may be that of a later content than the document.
        Some(row) if row.has_unread_change() => {
            Err("The content at the provider has to be read first. Try again in a minute.")
        }
        Some(row) if row.drifted => Ok(PlannedAction::Accept(Box::new(row.clone()))),
        Some(row) if stored.is_category_held() => {
            Ok(PlannedAction::AcceptCategory(Box::new(row.clone())))
        }
        Some(_) => Err("The provider shows nothing that could be accepted."),
    }
}

fn retry(
    stored: Option<&StoredTemplate>,
    newest: Option<&StoredOperation>,
) -> Result<PlannedAction, &'static str> {
    let retried = newest.filter(|it| it.operation.retry().is_some());
    let retried = retried.ok_or("The last operation is neither refused, in conflict nor held.")?;
    if stored.is_some_and(|stored| !retried.is_about(stored.state.version)) {
        return Err("The last operation is about a former version. Submit the newest one.");
    }
    Ok(PlannedAction::Retry(Box::new(retried.clone())))
}

/// The provider decides whether the status allows it.
fn archive(kind: OperationKind, provided: &Provided<'_>) -> Result<PlannedAction, &'static str> {
    if provided.present().is_some() {
        Ok(PlannedAction::Queue { kind, replaces: None })
    } else {
        Err("The provider does not have the template.")
    }
}

impl UpstreamActionOutcome {
    /// The entry of the audit feed, if the action changed something.
    pub(crate) fn audited(&self, action: UpstreamAction) -> Option<AuditedChange> {
        let (template, version) = match self {
            Self::Queued(operation) => (operation.template, operation.version),
            Self::Changed(template) => (template.id, template.state.version),
            _ => return None,
        };
        let details = json!({"action": action.as_str(), "version": version});
        Some(AuditedChange::new(AuditKind::TemplateUpstreamAction, template, details))
    }
}

/// The outcome of a change of the template that an action makes.
pub(crate) fn acted(changed: ChangeOutcome) -> UpstreamActionOutcome {
    match changed {
        ChangeOutcome::Done(changed) => UpstreamActionOutcome::Changed(changed),
        ChangeOutcome::NoTemplate => UpstreamActionOutcome::NoTemplate,
        // No other rule for changes applies to what the provider has.
        _ => UpstreamActionOutcome::NotPossible(
            "The templates of the account take all the space that they may.",
        ),
    }
}

impl MirroredTemplate {
    /// The row after a person has made its content this version.
    pub(crate) fn accepted_as(&self, version: u64) -> Self {
        Self { version: Some(version), sent_version: None, drifted: false, ..self.clone() }
    }
}

/// Refuses a version that the account's own reviewers have to approve first.
fn released(review: Review, stored: &StoredTemplate) -> Result<(), &'static str> {
    if review != Review::InHouseThenProvider || is_released(stored) {
        Ok(())
    } else {
        Err("A reviewer has to approve the newest version first.")
    }
}

/// Whether the newest version has passed a review: the provider approved it, or it was decided on and
/// not rejected.
fn is_released(stored: &StoredTemplate) -> bool {
    let state = &stored.state;
    let is_approved = state.approved_version == Some(state.version);
    is_approved || (stored.decided_by.is_some() && state.newest_status != Status::Rejected)
}

impl StoredTemplate {
    /// Whether a person, not a script or a provider, decided on the newest version.
    pub(crate) fn has_own_decision(&self) -> bool {
        matches!(self.decided_by, Some(Actor::Token(_) | Actor::Operator))
    }
}

#[cfg(test)]
mod tests;
