//! Errors in how the work on operations is stored, as a bug could cause them. The test that kills the
//! worker must find each of them.

use galley_domain::upstream::{OperationKind, OperationState, ProbeResult};
use jiff::{SignedDuration, Timestamp};

use super::operations::outcomes;
use crate::{Fence, Store, StoreError, StoredOperation, engine::PlantedError};

/// How many open operations are searched.
const MAX_OPERATIONS: usize = 2_000;

/// Longer than any backoff of an operation.
const AFTER_BACKOFF: SignedDuration = SignedDuration::from_hours(24);

/// Begins a call without a write, with [`PlantedError::ClaimAfterCall`].
pub(super) async fn begin_unwritten(
    store: &Store,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Option<StoredOperation>, StoreError> {
    if store.faults.planted() != Some(PlantedError::ClaimAfterCall) {
        return Ok(None);
    }
    let open = store.open_operations(fence.account, MAX_OPERATIONS).await?;
    Ok(open
        .into_iter()
        .find(|it| it.id == id)
        .and_then(|it| it.operation.begin(at).map(|operation| StoredOperation { operation, ..it })))
}

/// Writes after a call that it has begun, with [`PlantedError::ClaimAfterCall`].
pub(super) async fn begin_late(
    store: &Store,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    if store.faults.planted() == Some(PlantedError::ClaimAfterCall) {
        let begun = store.write("begin_operation", (fence, id, at), |&(fence, id, at), tx| {
            Box::pin(outcomes::begin(tx, fence, id, at))
        });
        let _ = begun.await?;
    }
    Ok(())
}

/// Queues the operations again whose call has an unknown outcome, as if a probe had shown that the call
/// had no effect, with [`PlantedError::RetryWithoutProbe`].
pub(super) async fn forget_calls(
    store: &Store,
    fence: Fence,
    at: Timestamp,
) -> Result<(), StoreError> {
    if store.faults.planted() != Some(PlantedError::RetryWithoutProbe) {
        return Ok(());
    }
    for unknown in store.open_operations(fence.account, MAX_OPERATIONS).await? {
        if unknown.operation.state != OperationState::Unknown {
            continue;
        }
        let _ = store.begin_operation(fence, unknown.id, at + AFTER_BACKOFF).await?;
        let not_made = match unknown.operation.kind {
            OperationKind::Create => ProbeResult::Absent,
            _ => ProbeResult::Different,
        };
        let _ = store.record_probe(fence, unknown.id, not_made, at).await?;
    }
    Ok(())
}
