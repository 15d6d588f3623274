//! Leases of connections, as SQL.

use galley_domain::id::AccountId;
use jiff::Timestamp;

use crate::{
    Fence, Fenced, Lease, LeaseState, StoreError,
    decisions::upstream::{CONNECTION_COLUMNS, IS_PAUSED, connection as decode},
    postgres::{
        columns::{get, key, millis, number},
        pool::Values,
        transaction::Transaction,
    },
};

pub(super) async fn take(
    transaction: &Transaction,
    account: AccountId,
    at: Timestamp,
    until: Timestamp,
) -> Result<Option<Lease>, StoreError> {
    let update = format!(
        "UPDATE upstream u SET fence = fence + 1, leased_until = $3 WHERE account_id = $1 AND \
         (leased_until IS NULL OR leased_until <= $2) RETURNING {CONNECTION_COLUMNS}"
    );
    let values: Values<'_> = &[&key(account.get()), &millis(at), &millis(until)];
    let Some(row) = transaction.query_one(&update, values).await? else { return Ok(None) };
    let fence = Fence { account, number: number(&row, "fence")? };
    // The process that made a call or a probe is gone: its outcome is unknown.
    let recover = "UPDATE upstream_operation SET state = 'unknown', held_until = NULL, \
                   updated_at = $2 WHERE account_id = $1 AND state IN ('sending', 'probing')";
    transaction.execute(recover, &[&key(account.get()), &millis(at)]).await?;
    Ok(Some(Lease { fence, connection: decode(&row)? }))
}

/// Extends a lease until `until`, or ends it.
pub(super) async fn set(
    transaction: &Transaction,
    fence: Fence,
    until: Option<Timestamp>,
) -> Result<Fenced<LeaseState>, StoreError> {
    let update = format!(
        "UPDATE upstream SET leased_until = $3 WHERE account_id = $1 AND fence = $2 AND \
         leased_until IS NOT NULL RETURNING {IS_PAUSED}"
    );
    let values: Values<'_> = &[&key(fence.account.get()), &key(fence.number), &until.map(millis)];
    let row = transaction.query_one(&update, values).await?;
    Ok(LeaseState::fenced(row.map(|row| get(&row, 0)).transpose()?))
}
