//! Accounts that are connected to a provider: their connections, the mirror of what the provider shows,
//! and the operations to make there. For any other account these methods find nothing and change nothing.
//!
//! A write under a lease locks the connection's row, so that no other worker takes the lease before the
//! write is committed.

mod actions;
mod connections;
mod decisions;
mod hints;
mod leases;
mod mirror;
mod observations;
mod operations;
#[cfg(feature = "testing")]
mod planted;
mod sweeps;

pub(crate) use self::{
    actions::{queue_deletion, queue_submission},
    connections::delete_account,
    operations::{expired_operations, operation_deletion},
};
pub use self::{decisions::ImportPreview, sweeps::MAX_WITHDRAWN};
use galley_domain::id::AccountId;

use self::connections::{CONNECTION_COLUMNS, connection};
use crate::{
    Fence, StoreError, UpstreamConnection,
    engine::{Tx, Value, values},
};

fn select(condition: &str) -> String {
    format!("SELECT {CONNECTION_COLUMNS} FROM upstream u WHERE {condition}")
}

/// The connection that fulfils a condition, locked.
async fn locked(
    tx: &mut Tx<'_>,
    condition: &str,
    values: &[Value<'_>],
) -> Result<Option<UpstreamConnection>, StoreError> {
    let statement = select(&format!("{condition}{}", tx.dialect().for_update()));
    tx.query_one(&statement, values, connection).await
}

/// The connection of an account, locked.
async fn one(
    tx: &mut Tx<'_>,
    account: AccountId,
) -> Result<Option<UpstreamConnection>, StoreError> {
    locked(tx, "u.account_id = $1", &values![account]).await
}

/// The connection, locked, if the lease still lasts.
async fn leased(tx: &mut Tx<'_>, fence: Fence) -> Result<Option<UpstreamConnection>, StoreError> {
    let condition = "u.account_id = $1 AND u.fence = $2 AND u.leased_until IS NOT NULL";
    locked(tx, condition, &values![fence.account, fence.number]).await
}

/// The same with the account locked before, for a write that changes the account.
async fn leased_with_account(
    tx: &mut Tx<'_>,
    fence: Fence,
) -> Result<Option<UpstreamConnection>, StoreError> {
    if tx.lock(fence.account).await? { leased(tx, fence).await } else { Ok(None) }
}
