//! Operations, as SQL.

use async_trait::async_trait;
use galley_domain::{
    id::AccountId,
    upstream::{CallDone, CallFailure, HeldReason, ProbeResult},
};
use jiff::Timestamp;

use super::{leased_with_account, mirror, observations::write_change, one};
use crate::{
    Fence, Fenced, NewOperation, OperationStore, ReadKind, StoreError, StoredOperation,
    decisions::upstream::{
        FIRST_OPERATIONS, OPERATION_COLUMNS, called, operation as decode, stored_error,
    },
    postgres::{
        PostgresStore,
        columns::{key, millis, number},
        pool::Values,
        templates,
        transaction::{Transaction, transact},
    },
};

#[async_trait]
impl OperationStore for PostgresStore {
    async fn queue_operation(&self, new: NewOperation) -> Result<Option<u64>, StoreError> {
        transact!(self, tx => queue(tx, new))
    }

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
        let condition = format!("o.account_id = $1 AND {FIRST_OPERATIONS} ORDER BY o.id LIMIT $2");
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.pools.read(&select(&condition), &[&key(account.get()), &limit]).await?;
        rows.iter().map(decode).collect()
    }

    async fn begin_operation(
        &self,
        fence: Fence,
        id: u64,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        transact!(self, tx => begin(tx, fence, id, at))
    }

    async fn record_call(
        &self,
        fence: Fence,
        id: u64,
        outcome: Result<CallDone, CallFailure>,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        transact!(self, tx => record_call(tx, fence, id, &outcome, at))
    }

    async fn record_probe(
        &self,
        fence: Fence,
        id: u64,
        found: ProbeResult,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        transact!(self, tx => record_probe(tx, fence, id, &found, at))
    }

    async fn release_operations(
        &self,
        fence: Fence,
        reason: HeldReason,
        at: Timestamp,
    ) -> Result<Fenced<u64>, StoreError> {
        transact!(self, tx => release(tx, fence, reason, at))
    }

    async fn retry_operation(
        &self,
        account: AccountId,
        id: u64,
        at: Timestamp,
    ) -> Result<Option<StoredOperation>, StoreError> {
        transact!(self, tx => retry(tx, account, id, at))
    }
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

async fn by_id(
    transaction: &Transaction,
    account: AccountId,
    id: u64,
) -> Result<Option<StoredOperation>, StoreError> {
    let Ok(id) = i64::try_from(id) else { return Ok(None) };
    let values: Values<'_> = &[&key(account.get()), &id];
    let found = find(transaction, "o.account_id = $1 AND o.id = $2", values).await?;
    Ok(found.into_iter().next())
}

/// Writes the state of an operation.
async fn write(transaction: &Transaction, operation: &StoredOperation) -> Result<(), StoreError> {
    let update = "UPDATE upstream_operation SET state = $2, held_reason = $3, held_until = $4, \
                  attempts = $5, error = $6, sent_at = $7, updated_at = $8 WHERE id = $1";
    let values: Values<'_> = &[
        &key(operation.id),
        &operation.operation.state.as_str(),
        &operation.held_reason(),
        &operation.operation.held_until.map(millis),
        &i64::from(operation.operation.attempts),
        &operation.operation.error.as_ref().map(stored_error),
        &operation.sent_at.map(millis),
        &millis(operation.updated_at),
    ];
    transaction.execute(update, values).await.map(drop)
}

async fn queue(
    transaction: &mut Transaction,
    new: NewOperation,
) -> Result<Option<u64>, StoreError> {
    let NewOperation { account, template, version, kind, at } = new;
    if !transaction.lock(account).await? || one(transaction, account).await?.is_none() {
        return Ok(None);
    }
    let (own, template) = (key(account.get()), key(template.get()));
    let condition = "o.account_id = $1 AND o.template_id = $2";
    for earlier in find(transaction, condition, &[&own, &template]).await? {
        let superseded = earlier.operation.superseded();
        if superseded != earlier.operation {
            write(transaction, &earlier.moved(superseded, at)).await?;
        }
    }
    let insert = "INSERT INTO upstream_operation (account_id, template_id, version, kind, state, \
                  created_at, updated_at) VALUES ($1, $2, $3, $4, 'queued', $5, $5) RETURNING id";
    let values: Values<'_> = &[&own, &template, &key(version), &kind.as_str(), &millis(at)];
    let row = transaction.query_one(insert, values).await?;
    row.map(|row| number(&row, 0)).transpose()
}

async fn begin(
    transaction: &mut Transaction,
    fence: Fence,
    id: u64,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let Ok(id) = i64::try_from(id) else { return Ok(Fenced::Done(None)) };
    let condition = format!("o.account_id = $1 AND o.id = $2 AND {FIRST_OPERATIONS}");
    let found = find(transaction, &condition, &[&key(fence.account.get()), &id]).await?;
    let begun = found.first().and_then(|operation| operation.begun(at));
    if let Some(begun) = &begun {
        write(transaction, begun).await?;
    }
    Ok(Fenced::Done(begun))
}

async fn record_call(
    transaction: &mut Transaction,
    fence: Fence,
    id: u64,
    outcome: &Result<CallDone, CallFailure>,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let account = fence.account;
    let Some(before) = by_id(transaction, account, id).await? else {
        return Ok(Fenced::Done(None));
    };
    let next = before.operation.after_call(outcome.clone(), at);
    if next == before.operation {
        return Ok(Fenced::Done(None));
    }
    if let Ok(done) = outcome {
        let rows = mirror::of_template_in(transaction, account, before.template).await?;
        let local = templates::one_in(transaction, account, before.template).await?;
        if let Some(row) = called(done, rows.first(), local.as_ref(), at) {
            mirror::unlink_others(transaction, account, &row);
            mirror::write(transaction, account, &row, None);
        }
    }
    let after = before.moved(next, at);
    settle(transaction, account, &after, at).await?;
    Ok(Fenced::Done(Some(after)))
}

/// Writes the state of an operation, and the event of its end.
async fn settle(
    transaction: &mut Transaction,
    account: AccountId,
    operation: &StoredOperation,
    at: Timestamp,
) -> Result<(), StoreError> {
    write(transaction, operation).await?;
    if let Some(local) = templates::one_in(transaction, account, operation.template).await?
        && let Some(change) = operation.told(account, &local, at)
    {
        write_change(transaction, &change).await?;
    }
    Ok(())
}

async fn record_probe(
    transaction: &mut Transaction,
    fence: Fence,
    id: u64,
    found: &ProbeResult,
    at: Timestamp,
) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let Some(before) = by_id(transaction, fence.account, id).await? else {
        return Ok(Fenced::Done(None));
    };
    let next = before.operation.after_probe(found.clone(), at);
    if next == before.operation {
        return Ok(Fenced::Done(None));
    }
    let after = before.moved(next, at);
    settle(transaction, fence.account, &after, at).await?;
    Ok(Fenced::Done(Some(after)))
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
    let condition = "o.account_id = $1 AND o.state = 'held'";
    let mut released = 0;
    for held in find(transaction, condition, &[&key(fence.account.get())]).await? {
        if let Some(next) = held.operation.released(reason) {
            write(transaction, &held.moved(next, at)).await?;
            released += 1;
        }
    }
    Ok(Fenced::Done(released))
}

async fn retry(
    transaction: &mut Transaction,
    account: AccountId,
    id: u64,
    at: Timestamp,
) -> Result<Option<StoredOperation>, StoreError> {
    if !transaction.lock(account).await? {
        return Ok(None);
    }
    let Some(before) = by_id(transaction, account, id).await? else { return Ok(None) };
    let Some(next) = before.operation.retry() else { return Ok(None) };
    let after = before.moved(next, at);
    write(transaction, &after).await?;
    Ok(Some(after))
}
