//! What calls tell about a connection, as SQL: its budget, why calls fail, and when the token expires.

use galley_domain::upstream::{CallBudget, CallKind, ProviderError};
use jiff::{SignedDuration, Timestamp};

use super::{leased, leased_with_account};
use crate::{
    CallPermit, DegradedReason, Fence, Fenced, StoreError,
    decisions::upstream::{DegradedChange, stored_error},
    postgres::{
        columns::{key, millis},
        events,
        pool::Values,
        transaction::Transaction,
    },
};

/// Counts a call, if the budget allows it.
pub(super) async fn take(
    transaction: &Transaction,
    fence: Fence,
    (kind, is_sweep): (CallKind, bool),
    calls_per_hour: u32,
    at: Timestamp,
) -> Result<Fenced<CallPermit>, StoreError> {
    let Some(leased) = leased(transaction, fence).await? else { return Ok(Fenced::LeaseLost) };
    let budget = CallBudget { calls_per_hour, ..leased.budget };
    let taken = if is_sweep { budget.take_for_sweep(kind, at) } else { budget.take(kind, at) };
    let budget = match taken {
        Ok(budget) => budget,
        Err(until) => return Ok(Fenced::Done(CallPermit::NotBefore(until))),
    };
    let update = "UPDATE upstream SET calls = $2, sweep_calls = $3, creates = $4, \
                  rest_until = $5 WHERE account_id = $1";
    let values: Values<'_> = &[
        &key(fence.account.get()),
        &budget.calls.to_text(),
        &budget.sweep_calls.to_text(),
        &budget.creates.to_text(),
        &budget.rest_until.map(millis),
    ];
    transaction.execute(update, values).await?;
    Ok(Fenced::Done(CallPermit::Granted))
}

/// Stores until when no call is made.
pub(super) async fn rest(
    transaction: &Transaction,
    fence: Fence,
    rest: SignedDuration,
    at: Timestamp,
) -> Result<Fenced<()>, StoreError> {
    let Some(leased) = leased(transaction, fence).await? else { return Ok(Fenced::LeaseLost) };
    let rest_until = leased.budget.resting(rest, at).rest_until;
    let update = "UPDATE upstream SET rest_until = $2 WHERE account_id = $1";
    let values: Values<'_> = &[&key(fence.account.get()), &rest_until.map(millis)];
    transaction.execute(update, values).await?;
    Ok(Fenced::Done(()))
}

/// Stores why calls fail, or that they succeed.
pub(super) async fn set_degraded(
    transaction: &mut Transaction,
    fence: Fence,
    degraded: Option<&(DegradedReason, Option<Timestamp>, Option<ProviderError>)>,
    at: Timestamp,
) -> Result<Fenced<()>, StoreError> {
    let Some(leased) = leased_with_account(transaction, fence).await? else {
        return Ok(Fenced::LeaseLost);
    };
    let reason = degraded.map(|(reason, ..)| *reason);
    if leased.degraded.is_none() && reason.is_none() {
        // Nothing has to be synced.
        transaction.set_rollback_only();
        return Ok(Fenced::Done(()));
    }
    let change = DegradedChange::new(leased.degraded.as_ref(), reason, at);
    let update = "UPDATE upstream SET degraded = $2, degraded_since = $3, degraded_until = $4, \
                  error = $5 WHERE account_id = $1";
    let values: Values<'_> = &[
        &key(fence.account.get()),
        &reason.map(DegradedReason::as_str),
        &change.since.map(millis),
        &degraded.and_then(|(_, until, _)| *until).map(millis),
        &degraded.and_then(|(.., error)| error.as_ref()).map(stored_error),
    ];
    transaction.execute(update, values).await?;
    if let Some(event) = change.event {
        events::append_upstream(transaction, &leased, event, at);
    }
    Ok(Fenced::Done(()))
}

/// Stores when the token expires.
pub(super) async fn record_token_expiry(
    transaction: &Transaction,
    fence: Fence,
    expires_at: Option<Timestamp>,
) -> Result<Fenced<()>, StoreError> {
    if leased(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let update = "UPDATE upstream SET token_expires_at = $2 WHERE account_id = $1";
    let values: Values<'_> = &[&key(fence.account.get()), &expires_at.map(millis)];
    transaction.execute(update, values).await?;
    Ok(Fenced::Done(()))
}
