//! Operations, as SQL.

mod outcomes;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{
        CallDone, CallFailure, HeldReason, Operation, OperationKind, ProbeResult, ProviderError,
    },
};
use jiff::Timestamp;

use super::{actions, leased_with_account};
use crate::{
    Author, Fence, Fenced, NewOperation, OperationStore, ReadKind, StoreError, StoredOperation,
    StoredTemplate, TemplateChange, UpstreamAction, UpstreamActionOutcome,
    decisions::upstream::{
        DUE_FIRST, EXPIRED_OPERATIONS, FIRST_OPERATIONS, OPERATION_COLUMNS, Release,
        SHOWN_OPERATIONS, UNFINISHED_OPERATIONS, VERSION_OPERATIONS, operation as decode,
        operation_cutoff, stored_error,
    },
    postgres::{
        PostgresStore,
        columns::{key, millis, number},
        pool::{PgPools, Values},
        templates,
        transaction::{Transaction, transact},
        versions,
    },
};

#[async_trait]
impl OperationStore for PostgresStore {
    async fn operations(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredOperation>, StoreError> {
        let statement = select("o.account_id = $1 AND o.id < $2 ORDER BY o.id DESC LIMIT $3");
        let before = before.and_then(|it| i64::try_from(it).ok()).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let connection = self.acquire_for(ReadKind::List, account).await?;
        let values: Values<'_> = &[&key(account.get()), &before, &limit];
        connection.query(&statement, values).await?.iter().map(decode).collect()
    }

    async fn open_operations(
        &self,
        account: AccountId,
        limit: usize,
    ) -> Result<Vec<StoredOperation>, StoreError> {
        let condition =
            format!("o.account_id = $1 AND {FIRST_OPERATIONS} ORDER BY {DUE_FIRST} LIMIT $2");
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.pools.read(&select(&condition), &[&key(account.get()), &limit]).await?;
        rows.iter().map(decode).collect()
    }

    async fn operation_template(
        &self,
        account: AccountId,
        template: TemplateId,
        version: u64,
    ) -> Result<Option<StoredTemplate>, StoreError> {
        template_at(&self.pools, account, template, version).await
    }

    async fn begin_operation(
        &self,
        fence: Fence,
        id: u64,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        transact!(self, tx => outcomes::begin(tx, fence, id, at))
    }

    async fn record_call(
        &self,
        fence: Fence,
        id: u64,
        outcome: Result<CallDone, CallFailure>,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        transact!(self, tx => outcomes::record_call(tx, fence, id, &outcome, at))
    }

    async fn record_probe(
        &self,
        fence: Fence,
        id: u64,
        found: ProbeResult,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        transact!(self, tx => outcomes::record_probe(tx, fence, id, &found, at))
    }

    async fn release_operations(
        &self,
        fence: Fence,
        reason: HeldReason,
        at: Timestamp,
    ) -> Result<Fenced<u64>, StoreError> {
        transact!(self, tx => release(tx, fence, reason, at))
    }

    async fn skip_operation(
        &self,
        fence: Fence,
        id: u64,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        transact!(self, tx => outcomes::skip(tx, fence, id, at))
    }

    async fn record_conflict(
        &self,
        fence: Fence,
        id: u64,
        error: ProviderError,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        transact!(self, tx => outcomes::conflict(tx, fence, id, &error, at))
    }

    async fn operation(
        &self,
        account: AccountId,
        id: u64,
    ) -> Result<Option<StoredOperation>, StoreError> {
        let Ok(id) = i64::try_from(id) else { return Ok(None) };
        let row = self.pools.read_one(&select(BY_ID), &[&key(account.get()), &id]).await?;
        row.as_ref().map(decode).transpose()
    }

    async fn newest_operation(
        &self,
        account: AccountId,
        template: TemplateId,
    ) -> Result<Option<StoredOperation>, StoreError> {
        let values: Values<'_> = &[&key(account.get()), &key(template.get())];
        let statement = select(&newest_of(VERSION_OPERATIONS));
        let row = self.pools.read_one(&statement, values).await?;
        row.as_ref().map(decode).transpose()
    }

    async fn operations_of(
        &self,
        account: AccountId,
        templates: Vec<TemplateId>,
    ) -> Result<Vec<StoredOperation>, StoreError> {
        let statement = select(&format!(
            "o.id IN (SELECT max(o.id) FROM upstream_operation o WHERE o.account_id = $1 AND \
             o.template_id = ANY($2) AND {SHOWN_OPERATIONS} GROUP BY o.template_id) \
             ORDER BY array_position($2, o.template_id)"
        ));
        let templates: Vec<i64> = templates.iter().map(|id| key(id.get())).collect();
        let connection = self.acquire_for(ReadKind::List, account).await?;
        let rows = connection.query(&statement, &[&key(account.get()), &templates]).await?;
        rows.iter().map(decode).collect()
    }

    async fn act_upstream(
        &self,
        change: TemplateChange,
        action: UpstreamAction,
    ) -> Result<UpstreamActionOutcome, StoreError> {
        transact!(self, tx => actions::act(tx, &change, action))
    }

    async fn abandon_operations(
        &self,
        account: AccountId,
        template: TemplateId,
        by: Author,
    ) -> Result<u64, StoreError> {
        transact!(self, tx => actions::abandon(tx, account, template, by))
    }
}

impl PostgresStore {
    /// Deletes operations that were settled long ago.
    pub(in crate::postgres) async fn delete_expired_operations(
        &self,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let delete = format!(
            "DELETE FROM upstream_operation WHERE id = ANY(ARRAY(SELECT o.id \
             FROM upstream_operation o WHERE {EXPIRED_OPERATIONS} LIMIT {PURGED_OPERATIONS}))"
        );
        let connection = self.pools.acquire_slow().await?;
        while connection.execute(&delete, &[&millis(operation_cutoff(at))]).await? > 0 {}
        Ok(())
    }
}

/// Number of expired operations that one statement deletes.
const PURGED_OPERATIONS: i64 = 500;

/// An operation (`$2`) of an account (`$1`).
const BY_ID: &str = "o.account_id = $1 AND o.id = $2";

/// The newest of `those` operations of a template (`$2`) of an account (`$1`).
fn newest_of(those: &str) -> String {
    format!("o.account_id = $1 AND o.template_id = $2 AND {those} ORDER BY o.id DESC LIMIT 1")
}

fn select(condition: &str) -> String {
    format!("SELECT {OPERATION_COLUMNS} FROM upstream_operation o WHERE {condition}")
}

async fn find(
    transaction: &Transaction,
    condition: &str,
    values: Values<'_>,
) -> Result<Vec<StoredOperation>, StoreError> {
    transaction.query(&select(condition), values).await?.iter().map(decode).collect()
}

async fn template_at(
    pools: &PgPools,
    account: AccountId,
    template: TemplateId,
    version: u64,
) -> Result<Option<StoredTemplate>, StoreError> {
    let newest = templates::even_deleted(pools, account, template).await?;
    match newest {
        Some(newest) if newest.state.version != version => {
            let version = versions::even_deleted(pools, template, version).await?;
            Ok(version.map(|version| newest.at_version(version)))
        }
        newest => Ok(newest),
    }
}

async fn by_id(
    transaction: &Transaction,
    account: AccountId,
    id: u64,
) -> Result<Option<StoredOperation>, StoreError> {
    let Ok(id) = i64::try_from(id) else { return Ok(None) };
    let values: Values<'_> = &[&key(account.get()), &id];
    let found = find(transaction, BY_ID, values).await?;
    Ok(found.into_iter().next())
}

/// The newest operation of a template that tells its state.
pub(super) async fn newest(
    transaction: &Transaction,
    account: AccountId,
    template: TemplateId,
) -> Result<Option<StoredOperation>, StoreError> {
    let values: Values<'_> = &[&key(account.get()), &key(template.get())];
    Ok(find(transaction, &newest_of(SHOWN_OPERATIONS), values).await?.into_iter().next())
}

/// The unfinished operations of a template, oldest first.
pub(super) async fn unfinished(
    transaction: &Transaction,
    account: AccountId,
    template: TemplateId,
) -> Result<Vec<StoredOperation>, StoreError> {
    let condition = format!(
        "o.account_id = $1 AND o.template_id = $2 AND o.{UNFINISHED_OPERATIONS} ORDER BY o.id"
    );
    find(transaction, &condition, &[&key(account.get()), &key(template.get())]).await
}

/// Supersedes the operations of a template that an operation of this kind replaces and whose calls
/// have not begun; returns how many.
pub(super) async fn supersede(
    transaction: &Transaction,
    account: AccountId,
    template: TemplateId,
    by: OperationKind,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let mut count = 0;
    for earlier in unfinished(transaction, account, template).await? {
        let superseded = earlier.operation.superseded();
        if by.supersedes(earlier.operation.kind) && superseded != earlier.operation {
            write(transaction, &earlier.moved(superseded, at)).await?;
            count += 1;
        }
    }
    Ok(count)
}

/// Writes the state of an operation.
pub(super) async fn write(
    transaction: &Transaction,
    operation: &StoredOperation,
) -> Result<(), StoreError> {
    let update = "UPDATE upstream_operation SET state = $2, held_reason = $3, held_until = $4, \
                  attempts = $5, error = $6, sent_at = $7, updated_at = $8, \
                  unknown_calls = $9, replaces = $10 WHERE id = $1";
    let values: Values<'_> = &[
        &key(operation.id),
        &operation.operation.state.as_str(),
        &operation.held_reason(),
        &operation.operation.held_until.map(millis),
        &i64::from(operation.operation.attempts),
        &operation.operation.error.as_ref().map(stored_error),
        &operation.sent_at.map(millis),
        &millis(operation.updated_at),
        &i64::from(operation.operation.unknown_calls),
        &operation.replaces.map(|key| key.to_vec()),
    ];
    transaction.execute(update, values).await.map(drop)
}

/// Queues an operation of a connected and locked account, and supersedes those that it replaces.
pub(super) async fn insert(
    transaction: &Transaction,
    new: NewOperation,
) -> Result<u64, StoreError> {
    let NewOperation { account, template, version, kind, replaces, at } = new;
    supersede(transaction, account, template, kind, at).await?;
    let (own, template) = (key(account.get()), key(template.get()));
    let insert = "INSERT INTO upstream_operation (account_id, template_id, version, kind, state, \
                  replaces, created_at, updated_at) VALUES ($1, $2, $3, $4, 'queued', $5, $6, $6) \
                  RETURNING id";
    let replaces = replaces.map(|key| key.to_vec());
    let values: Values<'_> =
        &[&own, &template, &key(version), &kind.as_str(), &replaces, &millis(at)];
    let row = transaction.query_one(insert, values).await?;
    row.map_or(Ok(0), |row| number(&row, 0))
}

async fn release(
    transaction: &mut Transaction,
    fence: Fence,
    reason: HeldReason,
    at: Timestamp,
) -> Result<Fenced<u64>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let released = Operation::released_by_success;
    release_held(transaction, fence.account, reason, released, at).await.map(Fenced::Done)
}

/// Queues the operations again that were held for a reason which has ended; returns how many.
pub(super) async fn release_held(
    transaction: &Transaction,
    account: AccountId,
    reason: HeldReason,
    released: Release,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let condition = "o.account_id = $1 AND o.state = 'held'";
    let mut count = 0;
    for held in find(transaction, condition, &[&key(account.get())]).await? {
        if let Some(next) = released(&held.operation, reason) {
            write(transaction, &held.moved(next, at)).await?;
            count += 1;
        }
    }
    Ok(count)
}
