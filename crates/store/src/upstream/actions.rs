//! What changes of templates cause at the provider, and what people may ask for there.

#[cfg(test)]
mod tests;

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{Review, Status},
    upstream::{OperationKind, content::ContentKey},
};
use jiff::Timestamp;
use serde_json::json;

use super::decisions::{LocalChange, imported_content};
use super::{
    mirror,
    observations::write_change,
    one,
    operations::{self, NewOperation},
};
use crate::{
    Actor, AuditKind, Author, ChangeOutcome, MirroredTemplate, SampleLink, Store, StoreError,
    StoreFuture, StoredOperation, StoredTemplate, TemplateChange, UpstreamAction,
    UpstreamActionOutcome,
    decisions::audit::AuditedChange,
    engine::{Tx, values},
    template_rows::{accepted_edit, write_edit},
    templates, uploads,
};

impl Store {
    /// Does what a person asks for a template, and records it. A queued operation supersedes the earlier
    /// ones, except those whose call has begun. One about the archive and one about a version leave each
    /// other.
    pub fn act_upstream(
        &self,
        change: TemplateChange,
        action: UpstreamAction,
    ) -> StoreFuture<'_, UpstreamActionOutcome> {
        self.write("act_upstream", (change, action), |&(ref change, action), tx| {
            Box::pin(async move {
                let outcome = apply(tx, change, action).await?;
                let (template, version) = match &outcome {
                    UpstreamActionOutcome::Queued(it) => (it.template, it.version),
                    UpstreamActionOutcome::Changed(it) => (it.id, it.state.version),
                    // Any other outcome is a refusal: the audit feed records each change.
                    _ => return Ok(tx.refuse(outcome)),
                };
                let details = json!({"action": action.as_str(), "version": version});
                let kind = AuditKind::TemplateUpstreamAction;
                let by = Author { actor: change.actor, at: change.at };
                tx.audit(change.account, AuditedChange::new(kind, template, details), by)?;
                Ok(outcome)
            })
        })
    }

    /// Supersedes the operations of a template, refused and conflicting ones, too, except those whose
    /// call has begun; returns how many. A person adopts what the provider has instead.
    pub fn abandon_operations(
        &self,
        account: AccountId,
        template: TemplateId,
        by: Author,
    ) -> StoreFuture<'_, u64> {
        let input = (account, template, by);
        self.write("abandon_operations", input, |&(account, template, by), tx| {
            Box::pin(async move {
                if !tx.lock(account).await? || !is_connected(tx, account).await? {
                    return Ok(0);
                }
                let (kind, details) =
                    (AuditKind::TemplateUpstreamAction, json!({"action": "adopt"}));
                tx.audit(account, AuditedChange::new(kind, template, details), by)?;
                operations::supersede(tx, account, template, OperationKind::Delete, by.at).await
            })
        })
    }
}

/// Whether an account is connected.
async fn is_connected(tx: &mut Tx<'_>, account: AccountId) -> Result<bool, StoreError> {
    tx.exists("SELECT 1 FROM upstream WHERE account_id = $1", &values![account]).await
}

/// What is known of a template at the provider, if the account is connected.
async fn provided(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
) -> Result<Option<Provided>, StoreError> {
    if !is_connected(tx, account).await? {
        return Ok(None);
    }
    let rows = mirror::of_template(tx, account, template).await?;
    Ok(Some(Provided { rows, operations: operations::unfinished(tx, account, template).await? }))
}

/// Queues the submission of a version, if the account is connected.
pub(crate) async fn queue_submission(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
    version: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let Some(provided) = provided(tx, account, template).await? else { return Ok(()) };
    let kind = provided.submission();
    let new = NewOperation { account, template, version, kind, replaces: None, at };
    operations::insert(tx, new).await
}

/// Queues the deletion of a deleted template, if the provider may have it. Other operations of the
/// template end.
pub(crate) async fn queue_deletion(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
    version: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let Some(provided) = provided(tx, account, template).await? else { return Ok(()) };
    let kind = OperationKind::Delete;
    if !provided.needs_deletion() {
        return operations::supersede(tx, account, template, kind, at).await.map(drop);
    }
    let new = NewOperation { account, template, version, kind, replaces: None, at };
    operations::insert(tx, new).await
}

/// Does what a person asks for a template. What it writes before a refusal is undone.
async fn apply(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    action: UpstreamAction,
) -> Result<UpstreamActionOutcome, StoreError> {
    let TemplateChange { account, id, at, .. } = *change;
    if !tx.lock(account).await? {
        return Ok(UpstreamActionOutcome::NoTemplate);
    }
    if one(tx, account).await?.is_none() {
        return Ok(UpstreamActionOutcome::NotConnected);
    }
    let stored = templates::one(tx, account, id).await?;
    let rows = mirror::of_template(tx, account, id).await?;
    let provided = Provided { rows, operations: operations::unfinished(tx, account, id).await? };
    let newest = operations::newest(tx, account, id).await?;
    let planned = plan_action(action, change, stored.as_ref(), &provided, newest.as_ref());
    let planned = match planned {
        Ok(planned) => planned,
        Err(refusal) => return Ok(*refusal),
    };
    match planned {
        PlannedAction::Queue { kind, replaces } => {
            let version = stored.map_or(0, |stored| stored.state.version);
            let new = NewOperation { account, template: id, version, kind, replaces, at };
            operations::insert(tx, new).await?;
        }
        PlannedAction::Retry(retried) => {
            if let Some(next) = retried.operation.retry() {
                operations::write(tx, &retried.moved(next, at)).await?;
            }
        }
        PlannedAction::Accept(row) => return accept_content(tx, change, stored, &row).await,
        PlannedAction::AcceptCategory(row) => {
            if let Some(stored) = stored
                && let Some(accepted) = LocalChange::accepted_category(change, &stored, &row)
            {
                write_change(tx, &accepted).await?;
            }
            return Ok(acted(ChangeOutcome::done(templates::one(tx, account, id).await?)));
        }
    }
    let queued = operations::newest(tx, account, id).await?;
    Ok(queued.map_or(UpstreamActionOutcome::NoTemplate, |it| {
        UpstreamActionOutcome::Queued(Box::new(it))
    }))
}

/// Makes the content of a row a new version with the status of the provider.
async fn accept_content(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    stored: Option<StoredTemplate>,
    row: &MirroredTemplate,
) -> Result<UpstreamActionOutcome, StoreError> {
    let TemplateChange { account, id, at, .. } = *change;
    let document = mirror::document(tx, account, &row.id).await?;
    let content = document.as_deref().and_then(imported_content);
    let (Some(stored), Some(document), Some(content)) = (stored, document, content) else {
        let unread = "The content at the provider was not read yet.";
        return Ok(UpstreamActionOutcome::NotPossible(unread));
    };
    let links = SampleLink::all(account, &row.id, &document);
    let content = uploads::kept_samples(tx, account, &links).await?.in_content(content, &links);
    let planned = accepted_edit(stored, content, Category::parse(&row.category));
    let edited = match write_edit(tx, change, &planned).await? {
        ChangeOutcome::Done(edited) => edited,
        refusal => return Ok(acted(refusal)),
    };
    if let Some(followed) = LocalChange::accepted(account, &edited, row, at) {
        write_change(tx, &followed).await?;
    }
    mirror::write(tx, account, &row.accepted_as(edited.state.version), None)?;
    operations::supersede(tx, account, id, OperationKind::Edit, at).await?;
    Ok(acted(ChangeOutcome::done(templates::one(tx, account, id).await?)))
}

/// What the provider has of a template, as far as it is known.
pub(super) struct Provided {
    /// The rows of the mirror that belong to the template.
    pub(super) rows: Vec<MirroredTemplate>,
    /// The unfinished operations of the template, oldest first.
    pub(super) operations: Vec<StoredOperation>,
}

impl Provided {
    /// The row of the template that the provider has.
    fn present(&self) -> Option<&MirroredTemplate> {
        self.rows.iter().find(|row| row.is_present())
    }

    /// What submits a version. A create whose outcome is not known comes first, so that the version
    /// is an edit.
    fn submission(&self) -> OperationKind {
        let is_uncertain = |it: &StoredOperation| {
            it.operation.kind.is_submission() && it.operation.state.is_uncertain()
        };
        if self.present().is_some() || self.operations.iter().any(is_uncertain) {
            OperationKind::Edit
        } else {
            OperationKind::Create
        }
    }

    /// Whether a deleted template has to be deleted at the provider. It does not if no call was ever
    /// made that may have created it, and cannot be if the provider generated it.
    fn needs_deletion(&self) -> bool {
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
pub(super) enum PlannedAction {
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
pub(super) fn plan_action(
    action: UpstreamAction,
    change: &TemplateChange,
    stored: Option<&StoredTemplate>,
    provided: &Provided,
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
    provided: &Provided,
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
    provided: &Provided,
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

fn accept(stored: &StoredTemplate, provided: &Provided) -> Result<PlannedAction, &'static str> {
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
fn archive(kind: OperationKind, provided: &Provided) -> Result<PlannedAction, &'static str> {
    if provided.present().is_some() {
        Ok(PlannedAction::Queue { kind, replaces: None })
    } else {
        Err("The provider does not have the template.")
    }
}

/// The outcome of a change of the template that an action makes.
fn acted(changed: ChangeOutcome) -> UpstreamActionOutcome {
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
    pub(super) fn accepted_as(&self, version: u64) -> Self {
        Self { version: Some(version), sent_version: None, drifted: false, ..self.clone() }
    }
}

/// Refuses a version that the account's own reviewers have to approve first: it has not passed a review
/// yet. It has if the provider approved it, or if it was decided on and not rejected.
fn released(review: Review, stored: &StoredTemplate) -> Result<(), &'static str> {
    let state = &stored.state;
    let is_approved = state.approved_version == Some(state.version);
    let is_decided = stored.decided_by.is_some() && state.newest_status != Status::Rejected;
    if review != Review::InHouseThenProvider || is_approved || is_decided {
        Ok(())
    } else {
        Err("A reviewer has to approve the newest version first.")
    }
}

impl StoredTemplate {
    /// Whether a person, not a script or a provider, decided on the newest version.
    pub(crate) fn has_own_decision(&self) -> bool {
        matches!(self.decided_by, Some(Actor::Token(_) | Actor::Operator))
    }
}
