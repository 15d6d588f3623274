//! The outcome of the calls and probes of an operation.

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{CallDone, CallFailure, ProbeResult, ProviderError},
};
use jiff::Timestamp;

use super::{
    super::{leased_with_account, mirror, observations::write_change},
    by_id, find, write,
};
use crate::{
    Fence, Fenced, MirroredTemplate, StoreError, StoredOperation,
    decisions::upstream::{FIRST_OPERATIONS, TemplateIdentity, called, next_dirty},
    postgres::{columns::key, pool::Values, templates, transaction::Transaction},
};

pub(super) async fn begin(
    transaction: &mut Transaction,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let Ok(id) = i64::try_from(id) else { return Ok(Fenced::Done(None)) };
    let condition = format!("o.account_id = $1 AND o.id = $2 AND {FIRST_OPERATIONS}");
    let found = find(transaction, &condition, &[&key(fence.account.get()), &id]).await?;
    let Some(found) = found.first() else { return Ok(Fenced::Done(None)) };
    let rows = mirror::of_template_in(transaction, fence.account, found.template).await?;
    let begun = found.begun(&rows, at);
    if let Some(begun) = &begun {
        write(transaction, begun).await?;
    }
    Ok(Fenced::Done(begun))
}

pub(super) async fn record_call(
    transaction: &mut Transaction,
    fence: Fence,
    id: u64,
    outcome: &Result<CallDone, CallFailure>,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let account = fence.account;
    let Some(before) = by_id(transaction, account, id).await? else {
        return Ok(Fenced::Done(None));
    };
    let next = before.operation.after_call(outcome.clone(), at);
    if next == before.operation {
        return Ok(Fenced::Done(None));
    }
    if let Ok(done) = outcome {
        let rows = mirror::of_template_in(transaction, account, before.template).await?;
        let identity = identity(transaction, account, before.template).await?;
        if let Some(row) = called(done, before.version, &rows, identity.as_ref(), at) {
            mirror::write(transaction, account, &row, None);
        }
    }
    let after = before.moved(next, at);
    settle(transaction, account, &after, at).await?;
    Ok(Fenced::Done(Some(after)))
}

/// The name and language of a template, even if it is deleted.
async fn identity(
    transaction: &Transaction,
    account: AccountId,
    template: TemplateId,
) -> Result<Option<TemplateIdentity>, StoreError> {
    let statement = format!(
        "SELECT {} FROM template WHERE id = $1 AND account_id = $2",
        TemplateIdentity::COLUMNS
    );
    let values: Values<'_> = &[&key(template.get()), &key(account.get())];
    let row = transaction.query_one(&statement, values).await?;
    row.as_ref().map(TemplateIdentity::read).transpose()
}

/// Writes the state of an operation, and the event of its end.
async fn settle(
    transaction: &mut Transaction,
    account: AccountId,
    operation: &StoredOperation,
    at: Timestamp,
) -> Result<(), StoreError> {
    write(transaction, operation).await?;
    if let Some(local) = templates::one_in(transaction, account, operation.template).await?
        && let Some(change) = operation.told(account, &local, at)
    {
        write_change(transaction, &change).await?;
    }
    Ok(())
}

pub(super) async fn record_probe(
    transaction: &mut Transaction,
    fence: Fence,
    id: u64,
    found: &ProbeResult,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let Some(before) = by_id(transaction, fence.account, id).await? else {
        return Ok(Fenced::Done(None));
    };
    let next = before.operation.after_probe(found.clone(), at);
    if next == before.operation {
        return Ok(Fenced::Done(None));
    }
    let after = before.moved(next, at);
    if after.is_deleted() {
        let rows = mirror::of_template_in(transaction, fence.account, before.template).await?;
        if let Some(row) = called(&CallDone::Deleted, before.version, &rows, None, at) {
            mirror::write(transaction, fence.account, &row, None);
        }
    }
    settle(transaction, fence.account, &after, at).await?;
    Ok(Fenced::Done(Some(after)))
}

pub(super) async fn skip(
    transaction: &mut Transaction,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let account = fence.account;
    let Some(before) = by_id(transaction, account, id).await? else {
        return Ok(Fenced::Done(None));
    };
    let Some(next) = before.operation.unneeded() else { return Ok(Fenced::Done(None)) };
    // The version that the provider has is now another one.
    let rows = mirror::of_template_in(transaction, account, before.template).await?;
    if let Some(mut row) = rows.into_iter().find(MirroredTemplate::is_present) {
        row.dirty_at = Some(next_dirty(row.dirty_at, at));
        mirror::write(transaction, account, &row, None);
    }
    let after = before.moved(next, at);
    write(transaction, &after).await?;
    Ok(Fenced::Done(Some(after)))
}

pub(super) async fn conflict(
    transaction: &mut Transaction,
    fence: Fence,
    id: u64,
    error: &ProviderError,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let before = by_id(transaction, fence.account, id).await?;
    let Some(before) = before else { return Ok(Fenced::Done(None)) };
    let next = before.operation.conflicting(error.clone());
    let Some(next) = next else { return Ok(Fenced::Done(None)) };
    let after = before.moved(next, at);
    write(transaction, &after).await?;
    Ok(Fenced::Done(Some(after)))
}
