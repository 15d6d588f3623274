//! Leases: at most one worker works on a connection.

use galley_domain::id::AccountId;
use jiff::Timestamp;

use super::{connections::connection, select};
use crate::{
    Fence, Fenced, Lease, LeaseState, Store, StoreError, UpstreamConnection,
    engine::{Tx, values},
    stored_row::Row,
    stored_row::StoredRow as _,
};

impl Store {
    /// Leases a connection until `until`; `None` while another lease lasts. Calls and probes of earlier
    /// workers, whose outcome is not recorded, become unknown.
    pub async fn lease_connection(
        &self,
        account: AccountId,
        at: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        let input = (account, at, until);
        let leasing = self.write("lease_connection", input, |&(account, at, until), tx| {
            Box::pin(async move {
                let statement = select(&format!("u.account_id = $1{}", tx.dialect().for_update()));
                let found = tx.query_one(&statement, &values![account], with_fence).await?;
                let Some((mut connection, last)) = found else { return Ok(None) };
                if connection.leased_until.is_some_and(|leased_until| leased_until > at) {
                    // A commit would wait for the disk, although nothing has changed.
                    return Ok(tx.refuse(None));
                }
                let fence = Fence { account, number: last + 1 };
                let update = "UPDATE upstream SET fence = $2, leased_until = $3 \
                              WHERE account_id = $1";
                tx.defer(update, &values![account, fence.number, until])?;
                connection.leased_until = Some(until);
                // The process that made a call or a probe is gone: its outcome is unknown.
                let recover = "UPDATE upstream_operation SET state = 'unknown', held_until = NULL, \
                               updated_at = $2 WHERE account_id = $1 AND \
                               state IN ('sending', 'probing')";
                tx.defer(recover, &values![account, at])?;
                Ok(Some(Lease { fence, connection }))
            })
        });
        let lease = leasing.await?;
        #[cfg(feature = "testing")]
        if let Some(lease) = &lease {
            super::planted::forget_calls(self, lease.fence, at).await?;
        }
        Ok(lease)
    }

    /// Extends a lease. Tells whether a worker should go on.
    pub async fn extend_lease(
        &self,
        fence: Fence,
        until: Timestamp,
    ) -> Result<Fenced<LeaseState>, StoreError> {
        self.write("extend_lease", (fence, until), |&(fence, until), tx| {
            Box::pin(set(tx, fence, Some(until)))
        })
        .await
    }

    /// Ends a lease.
    pub async fn release_connection(&self, fence: Fence) -> Result<Fenced<()>, StoreError> {
        let released = self
            .write("release_connection", fence, |fence, tx| Box::pin(set(tx, *fence, None)))
            .await?;
        Ok(match released {
            Fenced::Done(_) => Fenced::Done(()),
            Fenced::LeaseLost => Fenced::LeaseLost,
        })
    }
}

/// A connection, and the number of its last lease.
fn with_fence(row: &Row<'_>) -> Result<(UpstreamConnection, u64), StoreError> {
    Ok((connection(row)?, row.number("fence")?))
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
