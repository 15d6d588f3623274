//! Operations: what a connected account has to create, edit, delete and archive at its provider. A lease
//! on the connection is the right to work on them: [`Store::lease_connection`] makes calls and probes of
//! earlier workers, whose outcome is not recorded, unknown.

pub(super) mod outcomes;

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{
        CallDone, CallFailure, HeldReason, Operation, OperationKind, OperationState, ProbeResult,
        ProviderError, content::ContentKey,
    },
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use self::outcomes::Outcome;
use super::leased_with_account;
use crate::{
    Fence, Fenced, OPERATION_DAYS, ReadKind, Store, StoreError, StoreFuture, StoredOperation,
    StoredTemplate,
    encoding::key,
    engine::{Read, ReadPath, Tx, Value, Write, values},
    stored_row::{Row, StoredRow as _},
    templates::{self, stored, versions},
};

impl Store {
    /// A page of the operations of an account, newest first.
    pub fn operations(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<StoredOperation>> {
        let statement = select("o.account_id = $1 AND o.id < $2 ORDER BY o.id DESC LIMIT $3");
        let before = Value::bound(before.unwrap_or(u64::MAX));
        let values = [account.into(), before, Value::size(limit)];
        let path = ReadPath::Account(ReadKind::List, account);
        self.read("operations", path, statement, values, operation)
    }

    /// The operations of an account that are not settled and are the first ones of their templates,
    /// oldest first.
    pub fn open_operations(
        &self,
        account: AccountId,
        limit: usize,
    ) -> StoreFuture<'_, Vec<StoredOperation>> {
        // Those that are held come last, so that they do not keep others from being read.
        let statement = select(&format!(
            "o.account_id = $1 AND {FIRST_OPERATIONS} ORDER BY CASE WHEN o.state = 'held' \
             THEN coalesce(o.held_until, 9000000000000000) ELSE 0 END, o.id LIMIT $2"
        ));
        let values = [Value::from(account), Value::size(limit)];
        self.read("open_operations", ReadPath::Point, statement, values, operation)
    }

    /// A template at one of its versions, even if the account has deleted it since: a call whose
    /// outcome is unknown may have created it at the provider.
    pub fn operation_template(
        &self,
        account: AccountId,
        template: TemplateId,
        version: u64,
    ) -> StoreFuture<'_, Option<StoredTemplate>> {
        Box::pin(async move {
            let (method, path) = ("operation_template", ReadPath::Point);
            let statement = templates::select_even_deleted(self.dialect());
            let values = values![template, account];
            match self.read_one(method, path, statement, values, |row| stored(row)).await? {
                Some(newest) if newest.state.version != version => {
                    let (method, values) = ("operation_version", values![template, version]);
                    let statement = versions::select_version(self.dialect());
                    let former = self.read_one(method, path, statement, values, versions::version);
                    Ok(former.await?.map(|version| newest.at_version(version)))
                }
                newest => Ok(newest),
            }
        })
    }

    /// Begins the call of an operation, or its probe if the outcome of a call is unknown. The caller
    /// makes the call after this has returned. `None` if the operation is not due, or an earlier one
    /// of its template is not settled.
    pub fn begin_operation(
        &self,
        fence: Fence,
        id: u64,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<Option<StoredOperation>>> {
        Box::pin(async move {
            #[cfg(feature = "testing")]
            if let Some(begun) = super::planted::begin_unwritten(self, fence, id, at).await? {
                return Ok(Fenced::Done(Some(begun)));
            }
            self.write("begin_operation", (fence, id, at), |&(fence, id, at), tx| {
                Box::pin(outcomes::begin(tx, fence, id, at))
            })
            .await
        })
    }

    /// Records the outcome of a call. What was created or edited will be read.
    pub fn record_call(
        &self,
        fence: Fence,
        id: u64,
        outcome: Result<CallDone, CallFailure>,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<Option<StoredOperation>>> {
        Box::pin(async move {
            #[cfg(feature = "testing")]
            super::planted::begin_late(self, fence, id, at).await?;
            let outcome = Outcome::Call(outcome);
            let recorded = self.record_outcome("record_call", fence, id, outcome, at).await?;
            #[cfg(feature = "testing")]
            super::planted::forget_calls(self, fence, at).await?;
            Ok(recorded)
        })
    }

    /// Records the outcome of a probe. The caller has recorded a template that it found
    /// ([`record_read`](Self::record_read)).
    pub fn record_probe(
        &self,
        fence: Fence,
        id: u64,
        found: ProbeResult,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<Option<StoredOperation>>> {
        self.record_outcome("record_probe", fence, id, Outcome::Probe(found), at)
    }

    /// Queues the operations again that are held for a reason until a call succeeds; returns how many. A
    /// hold with an end of its own stays.
    pub fn release_operations(
        &self,
        fence: Fence,
        reason: HeldReason,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<u64>> {
        self.write("release_operations", (fence, reason, at), |&(fence, reason, at), tx| {
            Box::pin(async move {
                if leased_with_account(tx, fence).await?.is_none() {
                    return Ok(Fenced::LeaseLost);
                }
                let released = Operation::released_by_success;
                release_held(tx, fence.account, reason, released, at).await.map(Fenced::Done)
            })
        })
    }

    /// Ends a queued or held operation without a call, because the provider already has what it
    /// wants. The template of the provider will be read. `None` if the operation is in another state.
    pub fn skip_operation(
        &self,
        fence: Fence,
        id: u64,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<Option<StoredOperation>>> {
        self.record_outcome("skip_operation", fence, id, Outcome::Unneeded, at)
    }

    /// Ends a queued or held operation without a call, in a conflict that a person decides about.
    /// `None` if the operation is in another state.
    pub fn record_conflict(
        &self,
        fence: Fence,
        id: u64,
        error: ProviderError,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<Option<StoredOperation>>> {
        self.record_outcome("record_conflict", fence, id, Outcome::Conflict(error), at)
    }

    fn record_outcome(
        &self,
        method: &'static str,
        fence: Fence,
        id: u64,
        outcome: Outcome,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<Option<StoredOperation>>> {
        self.write(method, (fence, id, outcome, at), |(fence, id, outcome, at), tx| {
            Box::pin(outcomes::record(tx, *fence, *id, outcome, *at))
        })
    }

    /// An operation.
    pub fn operation(
        &self,
        account: AccountId,
        id: u64,
    ) -> StoreFuture<'_, Option<StoredOperation>> {
        let values = [Value::from(account), Value::bound(id)];
        self.read_one("operation", ReadPath::Point, select(BY_ID), values, operation)
    }

    /// The newest operation that gives the provider a version of a template or deletes it, even if the
    /// account has deleted the template.
    pub fn newest_operation(
        &self,
        account: AccountId,
        template: TemplateId,
    ) -> StoreFuture<'_, Option<StoredOperation>> {
        let statement = select(&newest_of("o.kind NOT IN ('archive', 'unarchive')"));
        let values = values![account, template];
        self.read_one("newest_operation", ReadPath::Point, statement, values, operation)
    }

    /// The newest operation of each of these templates, which tells its state: one about the archive
    /// that is done or superseded does not count. Templates without one are left out.
    pub fn operations_of(
        &self,
        account: AccountId,
        templates: Vec<TemplateId>,
    ) -> StoreFuture<'_, Vec<StoredOperation>> {
        Box::pin(async move {
            let is_asked = self.dialect().is_any("o.template_id", "$2");
            let statement = select(&format!(
                "o.id IN (SELECT max(o.id) FROM upstream_operation o WHERE o.account_id = $1 AND \
                 {is_asked} AND {SHOWN_OPERATIONS} GROUP BY o.template_id)"
            ));
            let keys: Vec<i64> = templates.iter().map(|id| key(id.get())).collect();
            let path = ReadPath::Account(ReadKind::List, account);
            let values = values![account, keys];
            let mut found = self.read("operations_of", path, statement, values, operation).await?;
            found.sort_by_key(|it| templates.iter().position(|id| *id == it.template));
            Ok(found)
        })
    }
}

/// The operations that retention deletes, as an SQL condition; `$1` is the time before which they were
/// settled. The newest one of a template stays, and the newest one about a version.
const EXPIRED_OPERATIONS: &str = "o.updated_at < $1 AND \
     o.state IN ('done', 'refused', 'conflict', 'superseded') AND (EXISTS (SELECT 1 \
     FROM upstream_operation n WHERE n.account_id = o.account_id AND \
     n.template_id = o.template_id AND n.id > o.id AND (n.kind NOT IN ('archive', 'unarchive') \
     OR o.kind IN ('archive', 'unarchive'))) OR NOT EXISTS (SELECT 1 FROM template t \
     WHERE t.id = o.template_id AND t.unique_key IS NOT NULL))";

/// The time before which settled operations expire.
fn operation_cutoff(at: Timestamp) -> Timestamp {
    at.checked_sub(SignedDuration::from_hours(24 * OPERATION_DAYS)).unwrap_or(Timestamp::MIN)
}

/// An operation that was settled long ago, if there is one.
pub(crate) fn expired_operations(at: Timestamp) -> Read<()> {
    let statement =
        format!("SELECT 1 FROM upstream_operation o WHERE {EXPIRED_OPERATIONS} LIMIT 1");
    Read::new(ReadPath::Background, statement, values![operation_cutoff(at)], |_| Ok(()))
}

/// Number of expired operations that one write deletes.
const PURGED_OPERATIONS: i64 = 500;

/// Deletes some of the operations that were settled long ago; returns how many.
pub(crate) fn operation_deletion(at: Timestamp) -> Write<Timestamp, u64> {
    Write::new(at, |&at, tx| {
        Box::pin(async move {
            let delete = format!(
                "DELETE FROM upstream_operation WHERE id IN (SELECT o.id \
                 FROM upstream_operation o WHERE {EXPIRED_OPERATIONS} LIMIT {PURGED_OPERATIONS})"
            );
            tx.execute(&delete, &values![operation_cutoff(at)]).await
        })
    })
}

/// Operations before which no other of their template is open, as an SQL condition. A version that is
/// held does not keep the archive waiting, nor the archive a version. The delete of an earlier template
/// with the same name and language comes before a create, too.
const FIRST_OPERATIONS: &str = "o.state IN ('queued', 'sending', 'unknown', 'probing', \
     'held') AND NOT EXISTS (SELECT 1 FROM upstream_operation e WHERE \
     e.account_id = o.account_id AND e.template_id = o.template_id AND e.id < o.id AND \
     e.state IN ('queued', 'sending', 'unknown', 'probing', 'held') AND NOT (e.state = 'held' AND \
     (e.kind IN ('archive', 'unarchive')) <> (o.kind IN ('archive', 'unarchive')))) AND \
     (o.kind <> 'create' OR NOT EXISTS (SELECT 1 FROM upstream_operation e \
     JOIN template former ON former.id = e.template_id JOIN template own ON \
     own.id = o.template_id AND own.name = former.name AND own.language = former.language \
     WHERE e.account_id = o.account_id AND e.kind = 'delete' AND e.id < o.id AND \
     e.state IN ('queued', 'sending', 'unknown', 'probing', 'held')))";

/// Operations that tell the state of their template, as an SQL condition: one about the archive that
/// has ended well does not hide what became of the newest version.
const SHOWN_OPERATIONS: &str =
    "(o.kind NOT IN ('archive', 'unarchive') OR o.state NOT IN ('done', 'superseded'))";

/// An operation (`$2`) of an account (`$1`).
const BY_ID: &str = "o.account_id = $1 AND o.id = $2";

/// The newest of `those` operations of a template (`$2`) of an account (`$1`).
fn newest_of(those: &str) -> String {
    format!("o.account_id = $1 AND o.template_id = $2 AND {those} ORDER BY o.id DESC LIMIT 1")
}

/// The columns that [`operation`] reads.
const OPERATION_COLUMNS: &str = "o.id, o.template_id, \
     (SELECT name FROM template WHERE id = o.template_id) AS name, \
     (SELECT language FROM template WHERE id = o.template_id) AS language, o.version, o.kind, o.state, \
     o.held_reason, o.held_until, o.attempts, o.unknown_calls, o.error, o.replaces, o.created_at, \
     o.sent_at, o.updated_at";

/// The operation in a row.
fn operation(row: &Row<'_>) -> Result<StoredOperation, StoreError> {
    let reason = row.optional("held_reason", |word: String| HeldReason::parse(&word))?;
    Ok(StoredOperation {
        id: row.number("id")?,
        template: row.template_id("template_id")?,
        name: row.value("name")?,
        language: row.value("language")?,
        version: row.number("version")?,
        operation: Operation {
            kind: row.parsed("kind", OperationKind::parse)?,
            state: row.parsed("state", |word| OperationState::parse(word, reason))?,
            attempts: row.decoded("attempts", |count: i64| u32::try_from(count).ok())?,
            unknown_calls: row.decoded("unknown_calls", |count: i64| u32::try_from(count).ok())?,
            held_until: row.optional_timestamp("held_until")?,
            error: row.optional("error", |text: String| serde_json::from_str(&text).ok())?,
        },
        replaces: row.optional("replaces", |key: Vec<u8>| key.try_into().ok())?,
        created_at: row.timestamp("created_at")?,
        sent_at: row.optional_timestamp("sent_at")?,
        updated_at: row.timestamp("updated_at")?,
    })
}

impl StoredOperation {
    /// The operation in another state.
    pub(super) fn moved(&self, operation: Operation, at: Timestamp) -> Self {
        let begins = operation.state == OperationState::Sending;
        let sent_at = if begins { Some(at) } else { self.sent_at };
        Self { operation, sent_at, updated_at: at, ..self.clone() }
    }
}

fn select(condition: &str) -> String {
    format!("SELECT {OPERATION_COLUMNS} FROM upstream_operation o WHERE {condition}")
}

/// The operations that fulfil a condition.
async fn find(
    tx: &mut Tx<'_>,
    condition: &str,
    values: &[Value<'_>],
) -> Result<Vec<StoredOperation>, StoreError> {
    tx.query(&select(condition), values, operation).await
}

/// The newest operation of a template that tells its state.
pub(super) async fn newest(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
) -> Result<Option<StoredOperation>, StoreError> {
    let found = find(tx, &newest_of(SHOWN_OPERATIONS), &values![account, template]).await?;
    Ok(found.into_iter().next())
}

/// The operations of a template that a later one can supersede, or has to wait for, oldest first.
pub(super) async fn unfinished(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
) -> Result<Vec<StoredOperation>, StoreError> {
    let condition = "o.account_id = $1 AND o.template_id = $2 AND \
                     o.state NOT IN ('done', 'superseded') ORDER BY o.id";
    find(tx, condition, &values![account, template]).await
}

/// Supersedes the operations of a template that an operation of this kind replaces and whose calls
/// have not begun; returns how many.
pub(super) async fn supersede(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
    by: OperationKind,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let mut count = 0;
    for earlier in unfinished(tx, account, template).await? {
        let superseded = earlier.operation.superseded();
        if by.supersedes(earlier.operation.kind) && superseded != earlier.operation {
            write(tx, &earlier.moved(superseded, at)).await?;
            count += 1;
        }
    }
    Ok(count)
}

/// Writes the state of an operation.
pub(super) async fn write(tx: &mut Tx<'_>, operation: &StoredOperation) -> Result<(), StoreError> {
    let held_reason = match operation.operation.state {
        OperationState::Held(reason) => Some(reason.as_str()),
        _ => None,
    };
    let update = "UPDATE upstream_operation SET state = $2, held_reason = $3, held_until = $4, \
                  attempts = $5, error = $6, sent_at = $7, updated_at = $8, \
                  unknown_calls = $9, replaces = $10 WHERE id = $1";
    let values = values![
        operation.id,
        operation.operation.state.as_str(),
        held_reason,
        operation.operation.held_until,
        operation.operation.attempts,
        operation.operation.error.as_ref().map(|it| json!(it).to_string()),
        operation.sent_at,
        operation.updated_at,
        operation.operation.unknown_calls,
        operation.replaces,
    ];
    tx.execute(update, &values).await.map(drop)
}

/// An operation to queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewOperation {
    pub(super) account: AccountId,
    pub(super) template: TemplateId,
    /// The version to create or to replace the content with; otherwise the newest one.
    pub(super) version: u64,
    pub(super) kind: OperationKind,
    /// The fingerprint of the content at the provider that a person has decided to replace.
    pub(super) replaces: Option<ContentKey>,
    pub(super) at: Timestamp,
}

/// Queues an operation of a connected and locked account, and supersedes those that it replaces.
pub(super) async fn insert(tx: &mut Tx<'_>, new: NewOperation) -> Result<(), StoreError> {
    let NewOperation { account, template, version, kind, replaces, at } = new;
    supersede(tx, account, template, kind, at).await?;
    let insert = "INSERT INTO upstream_operation (account_id, template_id, version, kind, state, \
                  replaces, created_at, updated_at) VALUES ($1, $2, $3, $4, 'queued', $5, $6, $6)";
    let values = values![account, template, version, kind.as_str(), replaces, at];
    tx.execute(insert, &values).await.map(drop)
}

/// Queues the operations again that were held for a reason, if `released` tells that it has ended for
/// them; returns how many.
pub(super) async fn release_held(
    tx: &mut Tx<'_>,
    account: AccountId,
    reason: HeldReason,
    released: fn(&Operation, HeldReason) -> Option<Operation>,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let mut count = 0;
    for held in find(tx, "o.account_id = $1 AND o.state = 'held'", &values![account]).await? {
        if let Some(next) = released(&held.operation, reason) {
            write(tx, &held.moved(next, at)).await?;
            count += 1;
        }
    }
    Ok(count)
}
