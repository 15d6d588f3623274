//! What calls tell about a connection: its budget, why calls fail, and when the token expires.

use galley_domain::upstream::{CallBudget, CallKind, ProviderError};
use jiff::{SignedDuration, Timestamp};

use super::{
    connections::{degraded_event, stored_error},
    leased, leased_with_account,
};
use crate::{
    CallPermit, DegradedReason, Fence, Fenced, Store, StoreError, engine::values,
    events::append_upstream,
};

impl Store {
    /// Counts a call before it is made. `is_sweep`: it is part of a sweep, which may use only a part
    /// of the budget.
    pub async fn take_call(
        &self,
        fence: Fence,
        kind: CallKind,
        is_sweep: bool,
        calls_per_hour: u32,
        at: Timestamp,
    ) -> Result<Fenced<CallPermit>, StoreError> {
        let input = (fence, kind, is_sweep, calls_per_hour, at);
        self.write("take_call", input, |&(fence, kind, is_sweep, calls_per_hour, at), tx| {
            Box::pin(async move {
                let Some(leased) = leased(tx, fence).await? else { return Ok(Fenced::LeaseLost) };
                let budget = CallBudget { calls_per_hour, ..leased.budget };
                let taken =
                    if is_sweep { budget.take_for_sweep(kind, at) } else { budget.take(kind, at) };
                let budget = match taken {
                    Ok(budget) => budget,
                    Err(until) => return Ok(tx.refuse(Fenced::Done(CallPermit::NotBefore(until)))),
                };
                let update = "UPDATE upstream SET calls = $2, sweep_calls = $3, creates = $4, \
                              rest_until = $5 WHERE account_id = $1";
                let values = values![
                    fence.account,
                    budget.calls.to_text(),
                    budget.sweep_calls.to_text(),
                    budget.creates.to_text(),
                    budget.rest_until,
                ];
                tx.defer(update, &values)?;
                Ok(Fenced::Done(CallPermit::Granted))
            })
        })
        .await
    }

    /// Makes no call for this long, or longer if calls already rest, because the provider says that
    /// its budget is almost used up. Calls do not fail, so that the connection is not degraded.
    pub async fn rest_calls(
        &self,
        fence: Fence,
        rest: SignedDuration,
        at: Timestamp,
    ) -> Result<Fenced<()>, StoreError> {
        self.write("rest_calls", (fence, rest, at), |&(fence, rest, at), tx| {
            Box::pin(async move {
                let Some(leased) = leased(tx, fence).await? else { return Ok(Fenced::LeaseLost) };
                let rest_until = leased.budget.resting(rest, at).rest_until;
                let update = "UPDATE upstream SET rest_until = $2 WHERE account_id = $1";
                tx.defer(update, &values![fence.account, rest_until])?;
                Ok(Fenced::Done(()))
            })
        })
        .await
    }

    /// Records why calls fail and until when none is made, or that they succeed again. An event tells
    /// of each change of the reason.
    pub async fn set_degraded(
        &self,
        fence: Fence,
        degraded: Option<(DegradedReason, Option<Timestamp>, Option<ProviderError>)>,
        at: Timestamp,
    ) -> Result<Fenced<()>, StoreError> {
        self.write("set_degraded", (fence, degraded, at), |&(fence, ref degraded, at), tx| {
            Box::pin(async move {
                let Some(leased) = leased_with_account(tx, fence).await? else {
                    return Ok(Fenced::LeaseLost);
                };
                let reason = degraded.as_ref().map(|(reason, ..)| *reason);
                let before = leased.degraded.as_ref();
                if before.is_none() && reason.is_none() {
                    // Nothing has to be synced.
                    return Ok(tx.refuse(Fenced::Done(())));
                }
                let same = before.filter(|it| Some(it.reason) == reason);
                let update = "UPDATE upstream SET degraded = $2, degraded_since = $3, \
                              degraded_until = $4, error = $5 WHERE account_id = $1";
                let values = values![
                    fence.account,
                    reason.map(DegradedReason::as_str),
                    reason.map(|_| same.map_or(at, |it| it.since)),
                    degraded.as_ref().and_then(|(_, until, _)| *until),
                    degraded.as_ref().and_then(|(.., error)| error.as_ref()).map(stored_error),
                ];
                tx.defer(update, &values)?;
                if let Some((kind, reason)) = degraded_event(before, reason) {
                    append_upstream(tx, &leased, kind, reason, at)?;
                }
                Ok(Fenced::Done(()))
            })
        })
        .await
    }

    /// Records when the token expires; `None` if it does not.
    pub async fn record_token_expiry(
        &self,
        fence: Fence,
        expires_at: Option<Timestamp>,
    ) -> Result<Fenced<()>, StoreError> {
        self.write("record_token_expiry", (fence, expires_at), |&(fence, expires_at), tx| {
            Box::pin(async move {
                if leased(tx, fence).await?.is_none() {
                    return Ok(Fenced::LeaseLost);
                }
                let update = "UPDATE upstream SET token_expires_at = $2 WHERE account_id = $1";
                tx.defer(update, &values![fence.account, expires_at])?;
                Ok(Fenced::Done(()))
            })
        })
        .await
    }
}
