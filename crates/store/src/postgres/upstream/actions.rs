//! What changes of templates and people queue at the provider.

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::OperationKind,
};
use jiff::Timestamp;

use super::{mirror, observations::write_change, one, operations};
use crate::{
    Author, ChangeOutcome, MirroredTemplate, NewOperation, SampleLink, StoreError, StoredTemplate,
    TemplateChange, UpstreamAction, UpstreamActionOutcome,
    decisions::{
        changes::done,
        upstream::{
            LocalChange, PlannedAction, Provided, UNREAD, accepted_version, acted, adopted,
            plan_action,
        },
    },
    postgres::{changes, columns::key, media, templates, transaction::Transaction},
};

/// Whether an account is connected.
async fn is_connected(transaction: &Transaction, account: AccountId) -> Result<bool, StoreError> {
    let statement = "SELECT 1 FROM upstream WHERE account_id = $1";
    Ok(transaction.query_one(statement, &[&key(account.get())]).await?.is_some())
}

/// Queues the submission of a version, if the account is connected.
pub(in crate::postgres) async fn queue_submission(
    transaction: &Transaction,
    (account, template, version): (AccountId, TemplateId, u64),
    at: Timestamp,
) -> Result<(), StoreError> {
    if is_connected(transaction, account).await? {
        let rows = mirror::of_template_in(transaction, account, template).await?;
        let operations = operations::unfinished(transaction, account, template).await?;
        let kind = Provided { rows: &rows, operations: &operations }.submission();
        operations::insert(
            transaction,
            NewOperation { account, template, version, kind, replaces: None, at },
        )
        .await?;
    }
    Ok(())
}

/// Queues the deletion of a deleted template, if the provider may have it. Other operations of the
/// template end.
pub(in crate::postgres) async fn queue_deletion(
    transaction: &Transaction,
    (account, template, version): (AccountId, TemplateId, u64),
    at: Timestamp,
) -> Result<(), StoreError> {
    if !is_connected(transaction, account).await? {
        return Ok(());
    }
    let rows = mirror::of_template_in(transaction, account, template).await?;
    let operations = operations::unfinished(transaction, account, template).await?;
    if (Provided { rows: &rows, operations: &operations }).needs_deletion() {
        let kind = OperationKind::Delete;
        operations::insert(
            transaction,
            NewOperation { account, template, version, kind, replaces: None, at },
        )
        .await?;
    } else {
        operations::supersede(transaction, account, template, OperationKind::Delete, at).await?;
    }
    Ok(())
}

/// Makes the content of a row a new version with the status of the provider.
async fn accept(
    transaction: &mut Transaction,
    change: &TemplateChange,
    stored: Option<StoredTemplate>,
    row: &MirroredTemplate,
) -> Result<UpstreamActionOutcome, StoreError> {
    let TemplateChange { account, id, at, .. } = *change;
    let document = mirror::document_in(transaction, account, &row.id).await?;
    let links = document.as_deref().map(|text| SampleLink::all(account, &row.id, text));
    let links = links.unwrap_or_default();
    let kept = media::kept_samples(transaction, account, &links).await?;
    let samples = (&*links, &kept);
    let planned = stored.and_then(|it| accepted_version(it, row, document.as_deref(), samples));
    let Some(planned) = planned else { return Ok(UNREAD) };
    let edited = match changes::write_edit(transaction, change, &planned).await? {
        ChangeOutcome::Done(edited) => edited,
        refusal => return Ok(acted(refusal)),
    };
    if let Some(followed) = LocalChange::accepted(account, &edited, row, at) {
        write_change(transaction, &followed).await?;
    }
    mirror::write(transaction, account, &row.accepted_as(edited.state.version), None);
    operations::supersede(transaction, account, id, OperationKind::Edit, at).await?;
    Ok(acted(done(templates::one_in(transaction, account, id).await?)))
}

async fn accept_category(
    transaction: &mut Transaction,
    change: &TemplateChange,
    stored: Option<StoredTemplate>,
    row: &MirroredTemplate,
) -> Result<UpstreamActionOutcome, StoreError> {
    if let Some(stored) = stored
        && let Some(accepted) = LocalChange::accepted_category(change, &stored, row)
    {
        write_change(transaction, &accepted).await?;
    }
    Ok(acted(done(templates::one_in(transaction, change.account, change.id).await?)))
}

pub(super) async fn act(
    transaction: &mut Transaction,
    change: &TemplateChange,
    action: UpstreamAction,
) -> Result<UpstreamActionOutcome, StoreError> {
    let outcome = apply(transaction, change, action).await?;
    if let Some(audited) = outcome.audited(action) {
        let by = Author { actor: change.actor, at: change.at };
        transaction.audit(change.account, audited, by);
    }
    Ok(outcome)
}

/// Ends the operations of a template, because a person adopts what the provider has.
pub(super) async fn abandon(
    transaction: &mut Transaction,
    account: AccountId,
    template: TemplateId,
    by: Author,
) -> Result<u64, StoreError> {
    if !transaction.lock(account).await? || !is_connected(transaction, account).await? {
        return Ok(0);
    }
    transaction.audit(account, adopted(template), by);
    operations::supersede(transaction, account, template, OperationKind::Delete, by.at).await
}

async fn apply(
    transaction: &mut Transaction,
    change: &TemplateChange,
    action: UpstreamAction,
) -> Result<UpstreamActionOutcome, StoreError> {
    let TemplateChange { account, id, at, .. } = *change;
    if !transaction.lock(account).await? {
        return Ok(UpstreamActionOutcome::NoTemplate);
    }
    if one(transaction, account).await?.is_none() {
        return Ok(UpstreamActionOutcome::NotConnected);
    }
    let stored = templates::one_in(transaction, account, id).await?;
    let rows = mirror::of_template_in(transaction, account, id).await?;
    let unfinished = operations::unfinished(transaction, account, id).await?;
    let newest = operations::newest(transaction, account, id).await?;
    let provided = Provided { rows: &rows, operations: &unfinished };
    let planned = plan_action(action, change, stored.as_ref(), &provided, newest.as_ref());
    let planned = match planned {
        Ok(planned) => planned,
        Err(refusal) => return Ok(*refusal),
    };
    match planned {
        PlannedAction::Queue { kind, replaces } => {
            let version = stored.map_or(0, |stored| stored.state.version);
            operations::insert(
                transaction,
                NewOperation { account, template: id, version, kind, replaces, at },
            )
            .await?;
        }
        PlannedAction::Retry(retried) => {
            if let Some(next) = retried.operation.retry() {
                operations::write(transaction, &retried.moved(next, at)).await?;
            }
        }
        PlannedAction::Accept(row) => return accept(transaction, change, stored, &row).await,
        PlannedAction::AcceptCategory(row) => {
            return accept_category(transaction, change, stored, &row).await;
        }
    }
    let queued = operations::newest(transaction, account, id).await?;
    Ok(queued.map_or(UpstreamActionOutcome::NoTemplate, |it| {
        UpstreamActionOutcome::Queued(Box::new(it))
    }))
}
