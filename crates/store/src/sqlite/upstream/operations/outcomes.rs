//! The outcome of the calls and probes of an operation.

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{CallDone, CallFailure, ProbeResult, ProviderError},
};
use jiff::Timestamp;
use rusqlite::Connection;

use super::{
    super::{leased, mirror, observations::write_change},
    by_id, find, write,
};
use crate::{
    Fence, Fenced, MirroredTemplate, StoreError, StoredOperation,
    decisions::upstream::{FIRST_OPERATIONS, TemplateIdentity, called, next_dirty},
    sqlite::{columns::key, templates, writer::Batch},
};

pub(super) fn begin(
    connection: &Connection,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased(connection, fence)?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let Ok(id) = i64::try_from(id) else { return Ok(Fenced::Done(None)) };
    let condition = format!("o.account_id = ?1 AND o.id = ?2 AND {FIRST_OPERATIONS}");
    let found = find(connection, &condition, &[&key(fence.account.get()), &id])?;
    let Some(found) = found.first() else { return Ok(Fenced::Done(None)) };
    let rows = mirror::of_templates(connection, fence.account, &[found.template])?;
    let begun = found.begun(&rows, at);
    if let Some(begun) = &begun {
        write(connection, begun)?;
    }
    Ok(Fenced::Done(begun))
}

pub(super) fn record_call(
    batch: &mut Batch,
    fence: Fence,
    id: u64,
    outcome: &Result<CallDone, CallFailure>,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    let connection = batch.connection();
    if leased(connection, fence)?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let account = fence.account;
    let Some(before) = by_id(connection, account, id)? else { return Ok(Fenced::Done(None)) };
    let next = before.operation.after_call(outcome.clone(), at);
    if next == before.operation {
        return Ok(Fenced::Done(None));
    }
    if let Ok(done) = outcome {
        let rows = mirror::of_templates(connection, account, &[before.template])?;
        let identity = identity(connection, account, before.template)?;
        if let Some(row) = called(done, before.version, &rows, identity.as_ref(), at) {
            mirror::write(connection, account, &row, None)?;
        }
    }
    let after = before.moved(next, at);
    settle(batch, account, &after, at)?;
    Ok(Fenced::Done(Some(after)))
}

/// The name and language of a template, even if it is deleted.
fn identity(
    connection: &Connection,
    account: AccountId,
    template: TemplateId,
) -> Result<Option<TemplateIdentity>, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT {} FROM template WHERE id = ?1 AND account_id = ?2",
        TemplateIdentity::COLUMNS
    ))?;
    let mut rows = query.query([key(template.get()), key(account.get())])?;
    rows.next()?.map(TemplateIdentity::read).transpose()
}

/// Writes the state of an operation, and the event of its end.
fn settle(
    batch: &mut Batch,
    account: AccountId,
    operation: &StoredOperation,
    at: Timestamp,
) -> Result<(), StoreError> {
    write(batch.connection(), operation)?;
    let id: TemplateId = operation.template;
    if let Some(local) = templates::one(batch.connection(), account, id)?
        && let Some(change) = operation.told(account, &local, at)
    {
        write_change(batch, &change)?;
    }
    Ok(())
}

pub(super) fn record_probe(
    batch: &mut Batch,
    fence: Fence,
    id: u64,
    found: &ProbeResult,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased(batch.connection(), fence)?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let before = by_id(batch.connection(), fence.account, id)?;
    let Some(before) = before else { return Ok(Fenced::Done(None)) };
    let next = before.operation.after_probe(found.clone(), at);
    if next == before.operation {
        return Ok(Fenced::Done(None));
    }
    let after = before.moved(next, at);
    if after.is_deleted() {
        let connection = batch.connection();
        let rows = mirror::of_templates(connection, fence.account, &[before.template])?;
        if let Some(row) = called(&CallDone::Deleted, before.version, &rows, None, at) {
            mirror::write(connection, fence.account, &row, None)?;
        }
    }
    settle(batch, fence.account, &after, at)?;
    Ok(Fenced::Done(Some(after)))
}

pub(super) fn skip(
    connection: &Connection,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased(connection, fence)?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let account = fence.account;
    let Some(before) = by_id(connection, account, id)? else { return Ok(Fenced::Done(None)) };
    let Some(next) = before.operation.unneeded() else { return Ok(Fenced::Done(None)) };
    // The version that the provider has is now another one.
    let rows = mirror::of_templates(connection, account, &[before.template])?;
    if let Some(mut row) = rows.into_iter().find(MirroredTemplate::is_present) {
        row.dirty_at = Some(next_dirty(row.dirty_at, at));
        mirror::write(connection, account, &row, None)?;
    }
    let after = before.moved(next, at);
    write(connection, &after)?;
    Ok(Fenced::Done(Some(after)))
}

pub(super) fn conflict(
    connection: &Connection,
    fence: Fence,
    id: u64,
    error: &ProviderError,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased(connection, fence)?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let before = by_id(connection, fence.account, id)?;
    let Some(before) = before else { return Ok(Fenced::Done(None)) };
    let next = before.operation.conflicting(error.clone());
    let Some(next) = next else { return Ok(Fenced::Done(None)) };
    let after = before.moved(next, at);
    write(connection, &after)?;
    Ok(Fenced::Done(Some(after)))
}
