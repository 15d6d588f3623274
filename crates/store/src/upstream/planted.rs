//! Errors in how the work on operations is stored, as a bug could cause them. The test that kills the
//! worker must find each of them.

use galley_domain::upstream::{CallDone, CallFailure, OperationKind, OperationState, ProbeResult};
use jiff::{SignedDuration, Timestamp};

use crate::{Fence, Fenced, Store, StoreError, StoredOperation, engine::PlantedError};

/// How many open operations are searched.
const MAX_OPERATIONS: usize = 2_000;

/// Longer than any backoff of an operation.
const AFTER_BACKOFF: SignedDuration = SignedDuration::from_hours(24);

/// Begins a call; with [`PlantedError::ClaimAfterCall`] without a write.
pub(crate) async fn begin_operation(
    store: &Store,
    planted: PlantedError,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if planted == PlantedError::ClaimAfterCall {
        let open = store.open_operations(fence.account, MAX_OPERATIONS).await?;
        let begun = open.into_iter().find(|it| it.id == id).and_then(|it| {
            it.operation.begin(at).map(|operation| StoredOperation { operation, ..it })
        });
        if begun.is_some() {
            return Ok(Fenced::Done(begun));
        }
    }
    store.begin_operation_unplanted(fence, id, at).await
}

/// Records a call.
pub(crate) async fn record_call(
    store: &Store,
    planted: PlantedError,
    fence: Fence,
    id: u64,
    outcome: Result<CallDone, CallFailure>,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if planted == PlantedError::ClaimAfterCall {
        let _ = store.begin_operation_unplanted(fence, id, at).await?;
    }
    let recorded = store.record_call_unplanted(fence, id, outcome, at).await?;
    if planted == PlantedError::RetryWithoutProbe {
        forget_calls(store, fence, at).await?;
    }
    Ok(recorded)
}

/// Does what follows a lease.
pub(crate) async fn after_lease(
    store: &Store,
    planted: PlantedError,
    fence: Fence,
    at: Timestamp,
) -> Result<(), StoreError> {
    if planted == PlantedError::RetryWithoutProbe {
        forget_calls(store, fence, at).await?;
    }
    Ok(())
}

/// Queues the operations again whose call has an unknown outcome, as if a probe had shown that the call
/// had no effect.
async fn forget_calls(store: &Store, fence: Fence, at: Timestamp) -> Result<(), StoreError> {
    for unknown in store.open_operations(fence.account, MAX_OPERATIONS).await? {
        if unknown.operation.state != OperationState::Unknown {
            continue;
        }
        let _ = store.begin_operation_unplanted(fence, unknown.id, at + AFTER_BACKOFF).await?;
        let not_made = match unknown.operation.kind {
            OperationKind::Create => ProbeResult::Absent,
            _ => ProbeResult::Different,
        };
        let _ = store.record_probe(fence, unknown.id, not_made, at).await?;
    }
    Ok(())
}
