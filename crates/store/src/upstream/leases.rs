//! Leases: at most one worker works on a connection. What its calls tell: the budget, why calls fail, and
//! when the token expires.

use std::ops::Range;

use galley_domain::{
    id::AccountId,
    template::lifecycle::EventType,
    upstream::{CallBudget, CallKind},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{connections::connection, leased, leased_with_account, select};
use crate::{
    CallPermit, Degraded, Fence, Fenced, Lease, LeaseState, Store, StoreError, StoreFuture,
    engine::{Tx, values},
    events::append_upstream,
    stored_row::StoredRow as _,
};

impl Store {
    /// Leases a connection; `None` while another lease lasts. Calls and probes of earlier
    /// workers, whose outcome is not recorded, become unknown.
    pub fn lease_connection(
        &self,
        account: AccountId,
        lease: Range<Timestamp>,
    ) -> StoreFuture<'_, Option<Lease>> {
        #[cfg(feature = "testing")]
        let now = lease.start;
        let leasing = self.write("lease_connection", (account, lease), |(account, lease), tx| {
            Box::pin(begin_lease(tx, *account, lease))
        });
        Box::pin(async move {
            let lease = leasing.await?;
            #[cfg(feature = "testing")]
            if let Some(lease) = &lease {
                super::planted::forget_calls(self, lease.fence, now).await?;
            }
            Ok(lease)
        })
    }

    /// Extends a lease. Tells whether a worker should go on.
    pub fn extend_lease(
        &self,
        fence: Fence,
        until: Timestamp,
    ) -> StoreFuture<'_, Fenced<LeaseState>> {
        self.write("extend_lease", (fence, until), |&(fence, until), tx| {
            Box::pin(set(tx, fence, Some(until)))
        })
    }

    /// Ends a lease.
    pub fn release_connection(&self, fence: Fence) -> StoreFuture<'_, Fenced<()>> {
        Box::pin(async move {
            let released = self
                .write("release_connection", fence, |fence, tx| Box::pin(set(tx, *fence, None)))
                .await?;
            Ok(match released {
                Fenced::Done(_) => Fenced::Done(()),
                Fenced::LeaseLost => Fenced::LeaseLost,
            })
        })
    }

    /// Counts a call before it is made. `is_sweep`: it is part of a sweep, which may use only a part
    /// of the budget.
    pub fn take_call(
        &self,
        fence: Fence,
        kind: CallKind,
        is_sweep: bool,
        calls_per_hour: u32,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<CallPermit>> {
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
    }

    /// Makes no call for this long, or longer if calls already rest, because the provider says that
    /// its budget is almost used up. Calls do not fail, so that the connection is not degraded.
    pub fn rest_calls(
        &self,
        fence: Fence,
        rest: SignedDuration,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<()>> {
        self.write("rest_calls", (fence, rest, at), |&(fence, rest, at), tx| {
            Box::pin(async move {
                let Some(leased) = leased(tx, fence).await? else { return Ok(Fenced::LeaseLost) };
                let rest_until = leased.budget.resting(rest, at).rest_until;
                let update = "UPDATE upstream SET rest_until = $2 WHERE account_id = $1";
                tx.defer(update, &values![fence.account, rest_until])?;
                Ok(Fenced::Done(()))
            })
        })
    }

    /// Records why calls fail and until when none is made, or that they succeed again. An event tells
    /// of each change of the reason; with the same one, they have failed since before.
    pub fn set_degraded(
        &self,
        fence: Fence,
        degraded: Option<Degraded>,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<()>> {
        self.write("set_degraded", (fence, degraded, at), |&(fence, ref degraded, at), tx| {
            Box::pin(async move {
                let Some(leased) = leased_with_account(tx, fence).await? else {
                    return Ok(Fenced::LeaseLost);
                };
                let (kind, reason) = match (degraded, &leased.degraded) {
                    (Some(after), _) => (EventType::UpstreamDegraded, after.reason),
                    (None, Some(before)) => (EventType::UpstreamRecovered, before.reason),
                    // Nothing has to be synced.
                    (None, None) => return Ok(tx.refuse(Fenced::Done(()))),
                };
                let after = degraded.as_ref();
                let before = leased.degraded.as_ref();
                let same = before.filter(|it| after.is_some_and(|after| after.reason == it.reason));
                let update = "UPDATE upstream SET degraded = $2, degraded_since = $3, \
                              degraded_until = $4, error = $5 WHERE account_id = $1";
                let values = values![
                    fence.account,
                    after.map(|it| it.reason.as_str()),
                    after.map(|_| same.map_or(at, |it| it.since)),
                    after.and_then(|it| it.until),
                    after.and_then(|it| it.error.as_ref()).map(|it| json!(it).to_string()),
                ];
                tx.defer(update, &values)?;
                if same.is_none() {
                    append_upstream(tx, &leased, kind, reason.as_str(), at)?;
                }
                Ok(Fenced::Done(()))
            })
        })
    }

    /// Records when the token expires; `None` if it does not.
    pub fn record_token_expiry(
        &self,
        fence: Fence,
        expires_at: Option<Timestamp>,
    ) -> StoreFuture<'_, Fenced<()>> {
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
    }
}

/// Whether workers make no calls of a connection, as an SQL expression in an update of `upstream`.
const IS_PAUSED: &str = "upstream.paused_at IS NOT NULL OR EXISTS (SELECT 1 \
     FROM account a WHERE a.id = upstream.account_id AND a.disabled_at IS NOT NULL)";

/// Extends a lease until `until`, or ends it.
async fn set(
    tx: &mut Tx<'_>,
    fence: Fence,
    until: Option<Timestamp>,
) -> Result<Fenced<LeaseState>, StoreError> {
    let update = format!(
        "UPDATE upstream SET leased_until = $3 WHERE account_id = $1 AND fence = $2 AND \
         leased_until IS NOT NULL RETURNING {IS_PAUSED} AS is_paused"
    );
    let values = values![fence.account, fence.number, until];
    let state = tx.query_one(&update, &values, |row| {
        let is_paused = row.value("is_paused")?;
        Ok(if is_paused { LeaseState::Paused } else { LeaseState::Active })
    });
    Ok(state.await?.map_or(Fenced::LeaseLost, Fenced::Done))
}

/// Leases a connection that no worker has, from the beginning to the end of `lease`.
async fn begin_lease(
    tx: &mut Tx<'_>,
    account: AccountId,
    lease: &Range<Timestamp>,
) -> Result<Option<Lease>, StoreError> {
    let statement = select(&format!("u.account_id = $1{}", tx.dialect().for_update()));
    let values = values![account];
    let found =
        tx.query_one(&statement, &values, |row| Ok((connection(row)?, row.number("fence")?)));
    let Some((mut connection, last)) = found.await? else { return Ok(None) };
    if connection.leased_until.is_some_and(|leased_until| leased_until > lease.start) {
        // A commit would wait for the disk, although nothing has changed.
        return Ok(tx.refuse(None));
    }
    let fence = Fence { account, number: last + 1 };
    let update = "UPDATE upstream SET fence = $2, leased_until = $3 WHERE account_id = $1";
    tx.defer(update, &values![account, fence.number, lease.end])?;
    connection.leased_until = Some(lease.end);
    // The process that made a call or a probe is gone: its outcome is unknown.
    let recover = "UPDATE upstream_operation SET state = 'unknown', held_until = NULL, \
                   updated_at = $2 WHERE account_id = $1 AND state IN ('sending', 'probing')";
    tx.defer(recover, &values![account, lease.start])?;
    Ok(Some(Lease { fence, connection }))
}
