//! SQL for what calls tell about a connection: its budget, why calls fail, and when the token expires.

use galley_domain::upstream::{CallBudget, CallKind, ProviderError};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, params};

use super::leased;
use crate::{
    CallPermit, DegradedReason, Fence, Fenced, StoreError,
    decisions::upstream::{DegradedChange, stored_error},
    sqlite::{
        columns::{key, millis},
        events,
        writer::Batch,
    },
};

/// Counts a call, if the budget allows it.
pub(super) fn take(
    connection: &Connection,
    fence: Fence,
    (kind, is_sweep): (CallKind, bool),
    calls_per_hour: u32,
    at: Timestamp,
) -> Result<Fenced<CallPermit>, StoreError> {
    let Some(leased) = leased(connection, fence)? else { return Ok(Fenced::LeaseLost) };
    let budget = CallBudget { calls_per_hour, ..leased.budget };
    let taken = if is_sweep { budget.take_for_sweep(kind, at) } else { budget.take(kind, at) };
    let budget = match taken {
        Ok(budget) => budget,
        Err(until) => return Ok(Fenced::Done(CallPermit::NotBefore(until))),
    };
    connection
        .prepare_cached(
            "UPDATE upstream SET calls = ?2, sweep_calls = ?3, creates = ?4, rest_until = ?5 \
             WHERE account_id = ?1",
        )?
        .execute(params![
            key(fence.account.get()),
            budget.calls.to_text(),
            budget.sweep_calls.to_text(),
            budget.creates.to_text(),
            budget.rest_until.map(millis),
        ])?;
    Ok(Fenced::Done(CallPermit::Granted))
}

/// Stores until when no call is made.
pub(super) fn rest(
    connection: &Connection,
    fence: Fence,
    rest: SignedDuration,
    at: Timestamp,
) -> Result<Fenced<()>, StoreError> {
    let Some(leased) = leased(connection, fence)? else { return Ok(Fenced::LeaseLost) };
    let rest_until = leased.budget.resting(rest, at).rest_until;
    connection
        .prepare_cached("UPDATE upstream SET rest_until = ?2 WHERE account_id = ?1")?
        .execute(params![key(fence.account.get()), rest_until.map(millis)])?;
    Ok(Fenced::Done(()))
}

/// Stores why calls fail, or that they succeed.
pub(super) fn set_degraded(
    batch: &mut Batch,
    fence: Fence,
    degraded: Option<&(DegradedReason, Option<Timestamp>, Option<ProviderError>)>,
    at: Timestamp,
) -> Result<Fenced<()>, StoreError> {
    let Some(leased) = leased(batch.connection(), fence)? else { return Ok(Fenced::LeaseLost) };
    let reason = degraded.map(|(reason, ..)| *reason);
    if leased.degraded.is_none() && reason.is_none() {
        return Ok(Fenced::Done(()));
    }
    let change = DegradedChange::new(leased.degraded.as_ref(), reason, at);
    let until = degraded.and_then(|(_, until, _)| *until).map(millis);
    let error = degraded.and_then(|(.., error)| error.as_ref()).map(stored_error);
    batch
        .connection()
        .prepare_cached(
            "UPDATE upstream SET degraded = ?2, degraded_since = ?3, degraded_until = ?4, \
             error = ?5 WHERE account_id = ?1",
        )?
        .execute(params![
            key(fence.account.get()),
            reason.map(DegradedReason::as_str),
            change.since.map(millis),
            until,
            error,
        ])?;
    if let Some(event) = change.event {
        events::append_upstream(batch, &leased, event, at)?;
    }
    Ok(Fenced::Done(()))
}

/// Stores when the token expires.
pub(super) fn record_token_expiry(
    connection: &Connection,
    fence: Fence,
    expires_at: Option<Timestamp>,
) -> Result<Fenced<()>, StoreError> {
    if leased(connection, fence)?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    connection
        .prepare_cached("UPDATE upstream SET token_expires_at = ?2 WHERE account_id = ?1")?
        .execute(params![key(fence.account.get()), expires_at.map(millis)])?;
    Ok(Fenced::Done(()))
}
