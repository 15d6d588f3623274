//! What changes of templates and people queue at the provider.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    upstream::OperationKind,
};
use jiff::Timestamp;
use serde_json::json;

use super::decisions::{
    LocalChange, PlannedAction, Provided, acted, imported_content, plan_action,
};
use super::{mirror, observations::write_change, one, operations};
use crate::{
    AuditKind, Author, ChangeOutcome, MirroredTemplate, NewOperation, SampleLink, Store,
    StoreError, StoredOperation, StoredTemplate, TemplateChange, UpstreamAction,
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
    pub async fn act_upstream(
        &self,
        change: TemplateChange,
        action: UpstreamAction,
    ) -> Result<UpstreamActionOutcome, StoreError> {
        self.write("act_upstream", (change, action), |&(ref change, action), tx| {
            Box::pin(async move {
                let outcome = apply(tx, change, action).await?;
                // Any other outcome is a refusal: the audit feed records each change.
                let Some(audited) = outcome.audited(action) else {
                    return Ok(tx.refuse(outcome));
                };
                let by = Author { actor: change.actor, at: change.at };
                tx.audit(change.account, audited, by)?;
                Ok(outcome)
            })
        })
        .await
    }

    /// Supersedes the operations of a template, refused and conflicting ones, too, except those whose
    /// call has begun; returns how many. A person adopts what the provider has instead.
    pub async fn abandon_operations(
        &self,
        account: AccountId,
        template: TemplateId,
        by: Author,
    ) -> Result<u64, StoreError> {
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
        .await
    }
}

/// Whether an account is connected.
async fn is_connected(tx: &mut Tx<'_>, account: AccountId) -> Result<bool, StoreError> {
    tx.exists("SELECT 1 FROM upstream WHERE account_id = $1", &values![account]).await
}

/// What is known of a template at the provider: its rows of the mirror, and its unfinished operations.
async fn known(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
) -> Result<(Vec<MirroredTemplate>, Vec<StoredOperation>), StoreError> {
    let rows = mirror::of_template(tx, account, template).await?;
    Ok((rows, operations::unfinished(tx, account, template).await?))
}

/// Queues the submission of a version, if the account is connected.
pub(crate) async fn queue_submission(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
    version: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    if !is_connected(tx, account).await? {
        return Ok(());
    }
    let (rows, operations) = known(tx, account, template).await?;
    let kind = Provided { rows: &rows, operations: &operations }.submission();
    let new = NewOperation { account, template, version, kind, replaces: None, at };
    operations::insert(tx, new).await.map(drop)
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
    if !is_connected(tx, account).await? {
        return Ok(());
    }
    let (rows, operations) = known(tx, account, template).await?;
    let kind = OperationKind::Delete;
    if (Provided { rows: &rows, operations: &operations }).needs_deletion() {
        let new = NewOperation { account, template, version, kind, replaces: None, at };
        operations::insert(tx, new).await.map(drop)
    } else {
        operations::supersede(tx, account, template, kind, at).await.map(drop)
    }
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
    let (rows, unfinished) = known(tx, account, id).await?;
    let newest = operations::newest(tx, account, id).await?;
    let provided = Provided { rows: &rows, operations: &unfinished };
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
        PlannedAction::Accept(row) => return accept(tx, change, stored, &row).await,
        PlannedAction::AcceptCategory(row) => {
            return accept_category(tx, change, stored, &row).await;
        }
    }
    let queued = operations::newest(tx, account, id).await?;
    Ok(queued.map_or(UpstreamActionOutcome::NoTemplate, |it| {
        UpstreamActionOutcome::Queued(Box::new(it))
    }))
}

/// Makes the content of a row a new version with the status of the provider.
async fn accept(
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

/// Ends the hold of a template because of the category that a row shows.
async fn accept_category(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    stored: Option<StoredTemplate>,
    row: &MirroredTemplate,
) -> Result<UpstreamActionOutcome, StoreError> {
    if let Some(stored) = stored
        && let Some(accepted) = LocalChange::accepted_category(change, &stored, row)
    {
        write_change(tx, &accepted).await?;
    }
    Ok(acted(ChangeOutcome::done(templates::one(tx, change.account, change.id).await?)))
}
