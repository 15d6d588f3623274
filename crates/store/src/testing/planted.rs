//! Errors in how the work on operations is stored, as a bug could cause them. The test that kills the
//! worker must find each of them.

use galley_domain::{
    id::AccountId,
    upstream::{CallDone, CallFailure, OperationKind, OperationState, ProbeResult},
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    EngineSubjects, Fence, Fenced, Lease, StoreError, StoredOperation, engine::PlantedError,
};

/// How many open operations are searched.
const MAX_OPERATIONS: usize = 2_000;

/// Longer than any backoff of an operation.
const AFTER_BACKOFF: SignedDuration = SignedDuration::from_hours(24);

/// Begins a call; with [`PlantedError::ClaimAfterCall`] without a write.
pub(super) async fn begin_operation(
    inner: &dyn EngineSubjects,
    planted: Option<PlantedError>,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if planted == Some(PlantedError::ClaimAfterCall) {
        let open = inner.open_operations(fence.account, MAX_OPERATIONS).await?;
        let begun = open.into_iter().find(|it| it.id == id).and_then(|it| {
            it.operation.begin(at).map(|operation| StoredOperation { operation, ..it })
        });
        if begun.is_some() {
            return Ok(Fenced::Done(begun));
        }
    }
    inner.begin_operation(fence, id, at).await
}

/// Records a call.
pub(super) async fn record_call(
    inner: &dyn EngineSubjects,
    planted: Option<PlantedError>,
    fence: Fence,
    id: u64,
    outcome: Result<CallDone, CallFailure>,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if planted == Some(PlantedError::ClaimAfterCall) {
        let _ = inner.begin_operation(fence, id, at).await?;
    }
    let recorded = inner.record_call(fence, id, outcome, at).await?;
    if planted == Some(PlantedError::RetryWithoutProbe) {
        forget_calls(inner, fence, at).await?;
    }
    Ok(recorded)
}

/// Leases a connection.
pub(super) async fn lease_connection(
    inner: &dyn EngineSubjects,
    planted: Option<PlantedError>,
    account: AccountId,
    at: Timestamp,
    until: Timestamp,
) -> Result<Option<Lease>, StoreError> {
    let lease = inner.lease_connection(account, at, until).await?;
    if let (Some(PlantedError::RetryWithoutProbe), Some(lease)) = (planted, &lease) {
        forget_calls(inner, lease.fence, at).await?;
    }
    Ok(lease)
}

/// Queues the operations again whose call has an unknown outcome, as if a probe had shown that the call
/// had no effect.
async fn forget_calls(
    inner: &dyn EngineSubjects,
    fence: Fence,
    at: Timestamp,
) -> Result<(), StoreError> {
    for unknown in inner.open_operations(fence.account, MAX_OPERATIONS).await? {
        if unknown.operation.state != OperationState::Unknown {
            continue;
        }
        let _ = inner.begin_operation(fence, unknown.id, at + AFTER_BACKOFF).await?;
        let not_made = match unknown.operation.kind {
            OperationKind::Create => ProbeResult::Absent,
            _ => ProbeResult::Different,
        };
        let _ = inner.record_probe(fence, unknown.id, not_made, at).await?;
    }
    Ok(())
}
