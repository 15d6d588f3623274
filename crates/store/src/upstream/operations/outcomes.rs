//! The outcome of the calls and probes of an operation.

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{CallDone, CallFailure, ProbeResult, ProviderError},
};
use jiff::Timestamp;

use super::{
    super::{leased_with_account, mirror, observations::write_change},
    BY_ID, find, write,
};
use crate::upstream::decisions::{FIRST_OPERATIONS, TemplateIdentity, called, next_dirty};
use crate::{
    Fence, Fenced, MirroredTemplate, StoreError, StoredOperation,
    engine::{Tx, Value, values},
    templates,
};

/// An operation of a leased connection, by a condition with its id as `$2`.
async fn leased_operation(
    tx: &mut Tx<'_>,
    fence: Fence,
    id: u64,
    condition: &str,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased_with_account(tx, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let values = [Value::from(fence.account), Value::bound(id)];
    let found = find(tx, condition, &values).await?;
    Ok(Fenced::Done(found.into_iter().next()))
}

/// Begins the call or the probe of an operation, if it is due.
pub(super) async fn begin(
    tx: &mut Tx<'_>,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    let condition = format!("{BY_ID} AND {FIRST_OPERATIONS}");
    let found = match leased_operation(tx, fence, id, &condition).await? {
        Fenced::Done(Some(found)) => found,
        refusal => return Ok(refusal),
    };
    let rows = mirror::of_template(tx, fence.account, found.template).await?;
    let begun = found.begun(&rows, at);
    if let Some(begun) = &begun {
        write(tx, begun).await?;
    }
    Ok(Fenced::Done(begun))
}

/// Records the outcome of a call, unless the operation is in a state without one.
pub(super) async fn record_call(
    tx: &mut Tx<'_>,
    fence: Fence,
    id: u64,
    outcome: &Result<CallDone, CallFailure>,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    let before = match leased_operation(tx, fence, id, BY_ID).await? {
        Fenced::Done(Some(before)) => before,
        refusal => return Ok(refusal),
    };
    let account = fence.account;
    let next = before.operation.after_call(outcome.clone(), at);
    if next == before.operation {
        return Ok(Fenced::Done(None));
    }
    if let Ok(done) = outcome {
        let rows = mirror::of_template(tx, account, before.template).await?;
        let identity = identity(tx, account, before.template).await?;
        if let Some(row) = called(done, before.version, &rows, identity.as_ref(), at) {
            mirror::write(tx, account, &row, None)?;
        }
    }
    let after = before.moved(next, at);
    settle(tx, account, &after, at).await?;
    Ok(Fenced::Done(Some(after)))
}

/// The name and language of a template, even if it is deleted.
async fn identity(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
) -> Result<Option<TemplateIdentity>, StoreError> {
    let statement = format!(
        "SELECT {} FROM template WHERE id = $1 AND account_id = $2",
        TemplateIdentity::COLUMNS
    );
    tx.query_one(&statement, &values![template, account], TemplateIdentity::read).await
}

/// Writes the state of an operation, and the event of its end.
async fn settle(
    tx: &mut Tx<'_>,
    account: AccountId,
    operation: &StoredOperation,
    at: Timestamp,
) -> Result<(), StoreError> {
    write(tx, operation).await?;
    if let Some(local) = templates::one(tx, account, operation.template).await?
        && let Some(change) = operation.told(account, &local, at)
    {
        write_change(tx, &change).await?;
    }
    Ok(())
}

/// Records the outcome of a probe, unless the operation is in a state without one.
pub(super) async fn record_probe(
    tx: &mut Tx<'_>,
    fence: Fence,
    id: u64,
    found: &ProbeResult,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    let before = match leased_operation(tx, fence, id, BY_ID).await? {
        Fenced::Done(Some(before)) => before,
        refusal => return Ok(refusal),
    };
    let next = before.operation.after_probe(found.clone(), at);
    if next == before.operation {
        return Ok(Fenced::Done(None));
    }
    let after = before.moved(next, at);
    if after.is_deleted() {
        let rows = mirror::of_template(tx, fence.account, before.template).await?;
        if let Some(row) = called(&CallDone::Deleted, before.version, &rows, None, at) {
            mirror::write(tx, fence.account, &row, None)?;
        }
    }
    settle(tx, fence.account, &after, at).await?;
    Ok(Fenced::Done(Some(after)))
}

/// Ends an operation whose call is not needed, and has the template of the provider read.
pub(super) async fn skip(
    tx: &mut Tx<'_>,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    let before = match leased_operation(tx, fence, id, BY_ID).await? {
        Fenced::Done(Some(before)) => before,
        refusal => return Ok(refusal),
    };
    let Some(next) = before.operation.unneeded() else { return Ok(Fenced::Done(None)) };
    // The version that the provider has is now another one.
    let rows = mirror::of_template(tx, fence.account, before.template).await?;
    if let Some(mut row) = rows.into_iter().find(MirroredTemplate::is_present) {
        row.dirty_at = Some(next_dirty(row.dirty_at, at));
        mirror::write(tx, fence.account, &row, None)?;
    }
    let after = before.moved(next, at);
    write(tx, &after).await?;
    Ok(Fenced::Done(Some(after)))
}

/// Ends an operation in a conflict.
pub(super) async fn conflict(
    tx: &mut Tx<'_>,
    fence: Fence,
    id: u64,
    error: &ProviderError,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    let before = match leased_operation(tx, fence, id, BY_ID).await? {
        Fenced::Done(Some(before)) => before,
        refusal => return Ok(refusal),
    };
    let next = before.operation.conflicting(error.clone());
    let Some(next) = next else { return Ok(Fenced::Done(None)) };
    let after = before.moved(next, at);
    write(tx, &after).await?;
    Ok(Fenced::Done(Some(after)))
}
