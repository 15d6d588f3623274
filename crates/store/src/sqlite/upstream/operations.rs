//! SQL for operations.

mod outcomes;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{
        CallDone, CallFailure, HeldReason, Operation, OperationKind, ProbeResult, ProviderError,
    },
};
use jiff::Timestamp;
use rusqlite::{Connection, ToSql, params};

use super::{actions, leased};
use crate::{
    Author, Fence, Fenced, NewOperation, OperationStore, ReadKind, StoreError, StoredOperation,
    StoredTemplate, TemplateChange, UpstreamAction, UpstreamActionOutcome,
    decisions::upstream::{
        DUE_FIRST, EXPIRED_OPERATIONS, FIRST_OPERATIONS, OPERATION_COLUMNS, Release,
        SHOWN_OPERATIONS, UNFINISHED_OPERATIONS, VERSION_OPERATIONS, operation as decode,
        operation_cutoff, stored_error,
    },
    sqlite::{
        SqliteStore,
        columns::{key, millis},
        templates, versions,
        writer::Batch,
    },
};

#[async_trait]
impl OperationStore for SqliteStore {
    async fn operations(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredOperation>, StoreError> {
        let read = move |connection: &Connection| {
            let before = before.and_then(|it| i64::try_from(it).ok()).unwrap_or(i64::MAX);
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let condition = "o.account_id = ?1 AND o.id < ?2 ORDER BY o.id DESC LIMIT ?3";
            find(connection, condition, &[&key(account.get()), &before, &limit])
        };
        self.read_blocking(ReadKind::List, account, read).await
    }

    async fn open_operations(
        &self,
        account: AccountId,
        limit: usize,
    ) -> Result<Vec<StoredOperation>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let condition =
            format!("o.account_id = ?1 AND {FIRST_OPERATIONS} ORDER BY {DUE_FIRST} LIMIT ?2");
        self.readers.read(|connection| find(connection, &condition, &[&key(account.get()), &limit]))
    }

    async fn operation_template(
        &self,
        account: AccountId,
        template: TemplateId,
        version: u64,
    ) -> Result<Option<StoredTemplate>, StoreError> {
        self.readers.read(|connection| template_at(connection, account, template, version))
    }

    async fn begin_operation(
        &self,
        fence: Fence,
        id: u64,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        self.writer.write(move |batch| outcomes::begin(batch.connection(), fence, id, at)).await
    }

    async fn record_call(
        &self,
        fence: Fence,
        id: u64,
        outcome: Result<CallDone, CallFailure>,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        self.writer.write(move |batch| outcomes::record_call(batch, fence, id, &outcome, at)).await
    }

    async fn record_probe(
        &self,
        fence: Fence,
        id: u64,
        found: ProbeResult,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        self.writer.write(move |batch| outcomes::record_probe(batch, fence, id, &found, at)).await
    }

    async fn release_operations(
        &self,
        fence: Fence,
        reason: HeldReason,
        at: Timestamp,
    ) -> Result<Fenced<u64>, StoreError> {
        self.writer.write(move |batch| release(batch.connection(), fence, reason, at)).await
    }

    async fn skip_operation(
        &self,
        fence: Fence,
        id: u64,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        self.writer.write(move |batch| outcomes::skip(batch.connection(), fence, id, at)).await
    }

    async fn record_conflict(
        &self,
        fence: Fence,
        id: u64,
        error: ProviderError,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError> {
        self.writer
            .write(move |batch| outcomes::conflict(batch.connection(), fence, id, &error, at))
            .await
    }

    async fn operation(
        &self,
        account: AccountId,
        id: u64,
    ) -> Result<Option<StoredOperation>, StoreError> {
        self.point_readers.read(|connection| by_id(connection, account, id))
    }

    async fn newest_operation(
        &self,
        account: AccountId,
        template: TemplateId,
    ) -> Result<Option<StoredOperation>, StoreError> {
        self.point_readers
            .read(|connection| newest_of(connection, account, template, VERSION_OPERATIONS))
    }

    async fn operations_of(
        &self,
        account: AccountId,
        templates: Vec<TemplateId>,
    ) -> Result<Vec<StoredOperation>, StoreError> {
        let read = move |connection: &Connection| {
            let mut found = Vec::new();
            for id in &templates {
                found.extend(newest(connection, account, *id)?);
            }
            Ok(found)
        };
        self.read_blocking(ReadKind::List, account, read).await
    }

    async fn act_upstream(
        &self,
        change: TemplateChange,
        action: UpstreamAction,
    ) -> Result<UpstreamActionOutcome, StoreError> {
        self.writer.write(move |batch| actions::act(batch, &change, action)).await
    }

    async fn abandon_operations(
        &self,
        account: AccountId,
        template: TemplateId,
        by: Author,
    ) -> Result<u64, StoreError> {
        self.writer
            .write(move |batch| actions::abandon(batch.connection(), account, template, by))
            .await
    }
}

/// Number of expired operations that one write deletes.
const PURGED_OPERATIONS: i64 = 500;

impl SqliteStore {
    /// Deletes operations that were settled long ago.
    pub(in crate::sqlite) async fn delete_expired_operations(
        &self,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let cutoff = millis(operation_cutoff(at));
        let expired = format!(
            "SELECT o.id FROM upstream_operation o WHERE {EXPIRED_OPERATIONS} \
             LIMIT {PURGED_OPERATIONS}"
        );
        // Usually there is nothing to delete.
        while self.readers.read(|it| Ok(it.prepare_cached(&expired)?.exists([cutoff])?))? {
            let delete = format!("DELETE FROM upstream_operation WHERE id IN ({expired})");
            let delete = move |batch: &mut Batch| {
                Ok(batch.connection().prepare_cached(&delete)?.execute([cutoff])?)
            };
            self.writer.write(delete).await?;
        }
        Ok(())
    }
}

fn find(
    connection: &Connection,
    condition: &str,
    values: &[&dyn ToSql],
) -> Result<Vec<StoredOperation>, StoreError> {
    let query = format!("SELECT {OPERATION_COLUMNS} FROM upstream_operation o WHERE {condition}");
    let mut query = connection.prepare_cached(&query)?;
    let mut rows = query.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decode(row)?);
    }
    Ok(found)
}

fn template_at(
    connection: &Connection,
    account: AccountId,
    template: TemplateId,
    version: u64,
) -> Result<Option<StoredTemplate>, StoreError> {
    let newest = templates::even_deleted(connection, account, template)?;
    match newest {
        Some(newest) if newest.state.version != version => {
            let version = versions::even_deleted(connection, template, version)?;
            Ok(version.map(|version| newest.at_version(version)))
        }
        newest => Ok(newest),
    }
}

fn by_id(
    connection: &Connection,
    account: AccountId,
    id: u64,
) -> Result<Option<StoredOperation>, StoreError> {
    let Ok(id) = i64::try_from(id) else { return Ok(None) };
    let found = find(connection, "o.account_id = ?1 AND o.id = ?2", &[&key(account.get()), &id])?;
    Ok(found.into_iter().next())
}

/// The newest operation of a template that tells its state.
pub(super) fn newest(
    connection: &Connection,
    account: AccountId,
    template: TemplateId,
) -> Result<Option<StoredOperation>, StoreError> {
    newest_of(connection, account, template, SHOWN_OPERATIONS)
}

fn newest_of(
    connection: &Connection,
    account: AccountId,
    template: TemplateId,
    those: &str,
) -> Result<Option<StoredOperation>, StoreError> {
    let condition =
        format!("o.account_id = ?1 AND o.template_id = ?2 AND {those} ORDER BY o.id DESC LIMIT 1");
    let found = find(connection, &condition, &[&key(account.get()), &key(template.get())])?;
    Ok(found.into_iter().next())
}

/// The unfinished operations of a template, oldest first.
pub(super) fn unfinished(
    connection: &Connection,
    account: AccountId,
    template: TemplateId,
) -> Result<Vec<StoredOperation>, StoreError> {
    let condition = format!(
        "o.account_id = ?1 AND o.template_id = ?2 AND o.{UNFINISHED_OPERATIONS} ORDER BY o.id"
    );
    find(connection, &condition, &[&key(account.get()), &key(template.get())])
}

/// Supersedes the operations of a template that an operation of this kind replaces and whose calls
/// have not begun; returns how many.
pub(super) fn supersede(
    connection: &Connection,
    account: AccountId,
    template: TemplateId,
    by: OperationKind,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let mut count = 0;
    for earlier in unfinished(connection, account, template)? {
        let superseded = earlier.operation.superseded();
        if by.supersedes(earlier.operation.kind) && superseded != earlier.operation {
            write(connection, &earlier.moved(superseded, at))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Writes the state of an operation.
pub(super) fn write(
    connection: &Connection,
    operation: &StoredOperation,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE upstream_operation SET state = ?2, held_reason = ?3, held_until = ?4, \
             attempts = ?5, error = ?6, sent_at = ?7, updated_at = ?8, \
             unknown_calls = ?9, replaces = ?10 WHERE id = ?1",
        )?
        .execute(params![
            key(operation.id),
            operation.operation.state.as_str(),
            operation.held_reason(),
            operation.operation.held_until.map(millis),
            operation.operation.attempts,
            operation.operation.error.as_ref().map(stored_error),
            operation.sent_at.map(millis),
            millis(operation.updated_at),
            operation.operation.unknown_calls,
            operation.replaces,
        ])?;
    Ok(())
}

/// Queues an operation of a connected account, and supersedes those that it replaces.
pub(super) fn insert(connection: &Connection, new: NewOperation) -> Result<u64, StoreError> {
    let NewOperation { account, template, version, kind, replaces, at } = new;
    supersede(connection, account, template, kind, at)?;
    let own = key(account.get());
    connection
        .prepare_cached(
            "INSERT INTO upstream_operation (account_id, template_id, version, kind, state, \
             replaces, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 'queued', ?5, ?6, ?6)",
        )?
        .execute(params![
            own,
            key(template.get()),
            key(version),
            kind.as_str(),
            replaces,
            millis(at)
        ])?;
    Ok(u64::try_from(connection.last_insert_rowid()).unwrap_or_default())
}

fn release(
    connection: &Connection,
    fence: Fence,
    reason: HeldReason,
    at: Timestamp,
) -> Result<Fenced<u64>, StoreError> {
    if leased(connection, fence)?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let released = Operation::released_by_success;
    release_held(connection, fence.account, reason, released, at).map(Fenced::Done)
}

/// Queues the operations again that were held for a reason which has ended; returns how many.
pub(super) fn release_held(
    connection: &Connection,
    account: AccountId,
    reason: HeldReason,
    released: Release,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let condition = "o.account_id = ?1 AND o.state = 'held'";
    let mut count = 0;
    for held in find(connection, condition, &[&key(account.get())])? {
        if let Some(next) = released(&held.operation, reason) {
            write(connection, &held.moved(next, at))?;
            count += 1;
        }
    }
    Ok(count)
}
