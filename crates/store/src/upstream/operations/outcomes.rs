//! The outcome of operations, of their calls and of their probes.

use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::EventType,
    upstream::{
        CallDone, CallFailure, Created, Operation, OperationKind, OperationState, ProbeResult,
        ProviderError,
    },
};
use jiff::Timestamp;

use super::{
    super::{hints::next_dirty, leased_with_account, mirror, observations::write_change},
    BY_ID, FIRST_OPERATIONS, find, write,
};
use crate::{
    Fence, Fenced, MirroredTemplate, StoreError, StoredOperation, StoredTemplate,
    engine::{Tx, Value, values},
    stored_row::{Row, StoredRow as _},
    templates,
    upstream::decisions::LocalChange,
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
    let StoredOperation { template, version, operation: Operation { kind, state, .. }, .. } =
        *after;
    Ok(match outcome {
        Outcome::Call(Ok(done)) => {
            let rows = mirror::of_template(tx, account, template).await?;
            let identity = identity(tx, account, template).await?;
            called(done, version, &rows, identity.as_ref(), at)
        }
        Outcome::Probe(_) if (kind, state) == (OperationKind::Delete, OperationState::Done) => {
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
    let statement =
        "SELECT id, name, language, category FROM template WHERE id = $1 AND account_id = $2";
    let identity = |row: &Row<'_>| {
        Ok(TemplateIdentity {
            id: row.template_id("id")?,
            name: row.value("name")?,
            language: row.value("language")?,
            category: row.value("category")?,
        })
    };
    tx.query_one(statement, &values![template, account], identity).await
}

impl StoredOperation {
    /// The operation when its call or its probe begins, if one of them is due. `rows` are those of the
    /// template in the mirror: a call replaces what they show. What was changed at the provider is
    /// replaced only if a person has decided that, not because a call begins.
    pub(in crate::upstream) fn begun(
        &self,
        rows: &[MirroredTemplate],
        at: Timestamp,
    ) -> Option<Self> {
        if let Some(call) = self.operation.begin(at) {
            let shown = rows.iter().find(|row| row.is_present() && !row.drifted);
            let replaces = shown.map_or(self.replaces, |row| row.content_key);
            return Some(Self { replaces, ..self.moved(call, at) });
        }
        Some(self.moved(self.operation.begin_probe(at)?, at))
    }

    /// The event of its end, given the template of the account, unless that is deleted. The end of a call
    /// for a former version tells nothing about the newest one.
    pub(in crate::upstream) fn told(
        &self,
        account: AccountId,
        local: &StoredTemplate,
        at: Timestamp,
    ) -> Option<LocalChange> {
        if !self.is_about(local.state.version) {
            return None;
        }
        let error = self.operation.error.as_ref().map(ToString::to_string);
        match (self.operation.state, self.operation.kind) {
            (OperationState::Done, OperationKind::Create | OperationKind::Edit) => {
                LocalChange::told(account, local, EventType::Submitted, None, at)
            }
            (OperationState::Refused, _) => {
                LocalChange::told(account, local, EventType::UpstreamRefused, error, at)
            }
            _ => None,
        }
    }
}

/// What a row of the mirror has of the account's template, even if that is deleted: the delete at the
/// provider finds the row.
pub(in crate::upstream) struct TemplateIdentity {
    pub(in crate::upstream) id: TemplateId,
    pub(in crate::upstream) name: String,
    pub(in crate::upstream) language: String,
    pub(in crate::upstream) category: String,
}

/// The row of the mirror after a call that sent this version. `rows` are those of the template, the
/// current one first. A created or edited template has to be read, so that its content is compared.
pub(in crate::upstream) fn called(
    done: &CallDone,
    version: u64,
    rows: &[MirroredTemplate],
    local: Option<&TemplateIdentity>,
    at: Timestamp,
) -> Option<MirroredTemplate> {
    let sent_version = Some(version);
    let dirty = |row: MirroredTemplate| {
        let dirty_at = Some(next_dirty(row.dirty_at, at));
        Some(MirroredTemplate { dirty_at, ..row })
    };
    match done {
        CallDone::Created(created) => {
            let known = rows.iter().find(|row| row.id == created.id).cloned();
            let row = known.or_else(|| Some(new_row(created, local?, at)))?;
            dirty(MirroredTemplate { sent_version, ..row })
        }
        // The provider has taken the content of the account; the read tells if that is not so.
        CallDone::Edited => {
            dirty(MirroredTemplate { sent_version, drifted: false, ..rows.first()?.clone() })
        }
        CallDone::Deleted => Some(MirroredTemplate {
            template: None,
            gone_at: Some(at),
            changed_at: at,
            dirty_at: None,
            ..rows.first()?.clone()
        }),
        // The read tells the status.
        CallDone::Archived | CallDone::Unarchived => dirty(rows.first()?.clone()),
    }
}

fn new_row(created: &Created, local: &TemplateIdentity, at: Timestamp) -> MirroredTemplate {
    MirroredTemplate {
        id: created.id.clone(),
        template: Some(local.id),
        name: local.name.clone(),
        language: local.language.clone(),
        status: created.status.clone(),
        category: created.category.clone().unwrap_or_else(|| local.category.clone()),
        correct_category: None,
        quality: None,
        reason: None,
        remote_updated_at: None,
        content_key: None,
        version: None,
        sent_version: None,
        drifted: false,
        observed_at: at,
        changed_at: at,
        sweep: 0,
        missing: 0,
        gone_at: None,
        dirty_at: None,
        info: None,
        source: None,
    }
}
