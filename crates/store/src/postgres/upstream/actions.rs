//! What changes of templates and people queue at the provider.

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::OperationKind,
};
use jiff::Timestamp;

use super::{mirror, one, operations};
use crate::{
    NewOperation, StoreError, TemplateChange, UpstreamAction, UpstreamActionOutcome,
    decisions::upstream::{PlannedAction, Provided, plan_action},
    postgres::{columns::key, templates, transaction::Transaction},
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
        operations::insert(transaction, NewOperation { account, template, version, kind, at })
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
        operations::insert(transaction, NewOperation { account, template, version, kind, at })
            .await?;
    } else {
        operations::supersede(transaction, account, template, at).await?;
    }
    Ok(())
}

pub(super) async fn act(
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
        Err(refusal) => return Ok(refusal),
    };
    match planned {
        PlannedAction::Queue(kind) => {
            let version = stored.map_or(0, |stored| stored.state.version);
            operations::insert(
                transaction,
                NewOperation { account, template: id, version, kind, at },
            )
            .await?;
        }
        PlannedAction::Retry(retried) => {
            if let Some(next) = retried.operation.retry() {
                operations::write(transaction, &retried.moved(next, at)).await?;
            }
        }
        PlannedAction::Accept(_) | PlannedAction::AcceptCategory(_) => {
            return Ok(UpstreamActionOutcome::NotPossible("Not available yet."));
        }
    }
    let queued = operations::newest(transaction, account, id).await?;
    Ok(queued.map_or(UpstreamActionOutcome::NoTemplate, UpstreamActionOutcome::Queued))
}
