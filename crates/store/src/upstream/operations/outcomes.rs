//! The outcome of operations, of their calls and of their probes.

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{CallDone, CallFailure, Operation, ProbeResult, ProviderError},
};
use jiff::Timestamp;

use super::{
    super::{hints::next_dirty, leased_with_account, mirror, observations::write_change},
    BY_ID, find, write,
};
use crate::upstream::decisions::{FIRST_OPERATIONS, TemplateIdentity, called};
use crate::{
    Fence, Fenced, MirroredTemplate, StoreError, StoredOperation,
    engine::{Tx, Value, values},
    templates,
};

/// What came of an operation.
pub(super) enum Outcome {
    /// The outcome of its call.
    Call(Result<CallDone, CallFailure>),
    /// The outcome of its probe.
    Probe(ProbeResult),
    /// No call is needed: the provider has what it wants.
    Unneeded,
    /// No call is made: a person decides about what the provider shows.
    Conflict(ProviderError),
}

impl Outcome {
    /// The operation after it; `None` if the operation is in a state without such an outcome.
    fn after(&self, before: &Operation, at: Timestamp) -> Option<Operation> {
        let next = match self {
            Self::Call(outcome) => before.after_call(outcome.clone(), at),
            Self::Probe(found) => before.after_probe(found.clone(), at),
            Self::Unneeded => before.unneeded()?,
            Self::Conflict(error) => before.conflicting(error.clone())?,
        };
        (next != *before).then_some(next)
    }
}

/// An operation of a leased connection, by a condition with its id as `$2`.
async fn leased_operation(
    tx: &mut Tx<'_>,
    fence: Fence,
    id: u64,
    condition: &str,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased_with_account(tx, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let values = [Value::from(fence.account), Value::bound(id)];
    let found = find(tx, condition, &values).await?;
    Ok(Fenced::Done(found.into_iter().next()))
}

/// Begins the call or the probe of an operation, if it is due.
pub(in crate::upstream) async fn begin(
    tx: &mut Tx<'_>,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    let condition = format!("{BY_ID} AND {FIRST_OPERATIONS}");
    let found = match leased_operation(tx, fence, id, &condition).await? {
        Fenced::Done(Some(found)) => found,
        refusal => return Ok(refusal),
    };
    let rows = mirror::of_template(tx, fence.account, found.template).await?;
    let begun = found.begun(&rows, at);
    if let Some(begun) = &begun {
        write(tx, begun).await?;
    }
    Ok(Fenced::Done(begun))
}

/// Records an outcome, unless the operation is in a state without such a one.
pub(super) async fn record(
    tx: &mut Tx<'_>,
    fence: Fence,
    id: u64,
    outcome: &Outcome,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    let before = match leased_operation(tx, fence, id, BY_ID).await? {
        Fenced::Done(Some(before)) => before,
        refusal => return Ok(refusal),
    };
    let Some(next) = outcome.after(&before.operation, at) else { return Ok(Fenced::Done(None)) };
    let (account, after) = (fence.account, before.moved(next, at));
    if let Some(row) = changed_row(tx, account, &after, outcome, at).await? {
        mirror::write(tx, account, &row, None)?;
    }
    write(tx, &after).await?;
    if let Outcome::Call(_) | Outcome::Probe(_) = outcome
        && let Some(local) = templates::one(tx, account, after.template).await?
        && let Some(change) = after.told(account, &local, at)
    {
        write_change(tx, &change).await?;
    }
    Ok(Fenced::Done(Some(after)))
}

/// The row of the mirror that an outcome changes.
async fn changed_row(
    tx: &mut Tx<'_>,
    account: AccountId,
    after: &StoredOperation,
    outcome: &Outcome,
    at: Timestamp,
) -> Result<Option<MirroredTemplate>, StoreError> {
    let StoredOperation { template, version, .. } = *after;
    Ok(match outcome {
        Outcome::Call(Ok(done)) => {
            let rows = mirror::of_template(tx, account, template).await?;
            let identity = identity(tx, account, template).await?;
            called(done, version, &rows, identity.as_ref(), at)
        }
        Outcome::Probe(_) if after.is_deleted() => {
            let rows = mirror::of_template(tx, account, template).await?;
            called(&CallDone::Deleted, version, &rows, None, at)
        }
        // The version that the provider has is now another one: it has to be read.
        Outcome::Unneeded => {
            let rows = mirror::of_template(tx, account, template).await?;
            let present = rows.into_iter().find(MirroredTemplate::is_present);
            present.map(|row| {
                let dirty_at = Some(next_dirty(row.dirty_at, at));
                MirroredTemplate { dirty_at, ..row }
            })
        }
        Outcome::Call(Err(_)) | Outcome::Probe(_) | Outcome::Conflict(_) => None,
    })
}

/// The name and language of a template, even if it is deleted.
async fn identity(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
) -> Result<Option<TemplateIdentity>, StoreError> {
    let statement = format!(
        "SELECT {} FROM template WHERE id = $1 AND account_id = $2",
        TemplateIdentity::COLUMNS
    );
    tx.query_one(&statement, &values![template, account], TemplateIdentity::read).await
}
