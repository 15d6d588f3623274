//! SQL for the leases of connections.

use galley_domain::id::AccountId;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::one;
use crate::{
    Fence, Fenced, Lease, LeaseState, StoreError,
    decisions::upstream::IS_PAUSED,
    sqlite::columns::{key, millis, number},
};

pub(super) fn take(
    connection: &Connection,
    account: AccountId,
    at: Timestamp,
    until: Timestamp,
) -> Result<Option<Lease>, StoreError> {
    let mut update = connection.prepare_cached(
        "UPDATE upstream SET fence = fence + 1, leased_until = ?3 WHERE account_id = ?1 AND \
         (leased_until IS NULL OR leased_until <= ?2) RETURNING fence",
    )?;
    let mut rows = update.query([key(account.get()), millis(at), millis(until)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let fence = Fence { account, number: number(row, "fence")? };
    drop(rows);
    // The process that made a call or a probe is gone: its outcome is unknown.
    connection
        .prepare_cached(
            "UPDATE upstream_operation SET state = 'unknown', held_until = NULL, updated_at = ?2 \
             WHERE account_id = ?1 AND state IN ('sending', 'probing')",
        )?
        .execute([key(account.get()), millis(at)])?;
    Ok(one(connection, account)?.map(|connection| Lease { fence, connection }))
}

/// Extends a lease until `until`, or ends it.
pub(super) fn set(
    connection: &Connection,
    fence: Fence,
    until: Option<Timestamp>,
) -> Result<Fenced<LeaseState>, StoreError> {
    let is_paused = connection
        .prepare_cached(&format!(
            "UPDATE upstream SET leased_until = ?3 WHERE account_id = ?1 AND fence = ?2 AND \
             leased_until IS NOT NULL RETURNING {IS_PAUSED}"
        ))?
        .query_row(params![key(fence.account.get()), key(fence.number), until.map(millis)], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(LeaseState::fenced(is_paused))
}
