//! SQL for connected accounts: their connections, leases and budgets.

mod actions;
mod calls;
mod hints;
mod leases;
mod mirror;
mod observations;
mod operations;
mod sweeps;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{CallKind, Hint, Operation, ProviderError, RemoteId},
};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, ToSql, params};

pub(super) use self::actions::{queue_deletion, queue_submission};
use super::{
    SqliteStore, accounts, audit,
    columns::{key, millis},
    events,
    writer::Batch,
};
use crate::{
    Absence, Author, CallPermit, ConnectOutcome, ConnectionChange, DegradedReason, EndedApproval,
    Fence, Fenced, HintReport, Lease, LeaseState, MirrorCounts, MirrorFilter, MirroredTemplate,
    NewConnection, PageRecord, PageResult, ReadKind, ReadRecord, SecretHash, StoreError,
    SweepReport, ToRead, UpstreamConnection, UpstreamStore, UpstreamWork,
    decisions::{
        audit::AuditedChange,
        upstream::{
            CONNECTION_COLUMNS, ConnectionWork, UNSEEN, connect_refusal, connection as decode,
            first_sweep_times, work_columns,
        },
    },
};

#[async_trait]
impl UpstreamStore for SqliteStore {
    async fn connect_upstream(&self, new: NewConnection) -> Result<ConnectOutcome, StoreError> {
        self.writer.write(move |batch| connect(batch, &new)).await
    }

    async fn disconnect_upstream(
        &self,
        account: AccountId,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.writer.write(move |batch| disconnect(batch, account, by)).await
    }

    async fn change_connection(
        &self,
        account: AccountId,
        change: ConnectionChange,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.writer.write(move |batch| apply_change(batch, account, &change, by)).await
    }

    async fn connection(
        &self,
        account: AccountId,
    ) -> Result<Option<UpstreamConnection>, StoreError> {
        self.point_readers.read(|connection| one(connection, account))
    }

    async fn connections(&self) -> Result<Vec<UpstreamConnection>, StoreError> {
        self.readers.read(|connection| {
            let condition = "TRUE ORDER BY u.account_id";
            find(connection, condition, &[])
        })
    }

    async fn connection_by_hook(
        &self,
        hash: SecretHash,
    ) -> Result<Option<UpstreamConnection>, StoreError> {
        self.point_readers.read(|connection| {
            Ok(find(connection, "u.hook_hash = ?1", &[&hash.0])?.into_iter().next())
        })
    }

    async fn connections_to(
        &self,
        wabas: Vec<String>,
        limit: usize,
    ) -> Result<Vec<UpstreamConnection>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let places: Vec<String> = (2..wabas.len() + 2).map(|place| format!("?{place}")).collect();
        let places = places.join(", ");
        let condition = format!("u.waba IN ({places}) ORDER BY u.account_id LIMIT ?1");
        let wabas = wabas.iter().map(|waba| waba as &dyn ToSql);
        let values: Vec<&dyn ToSql> = std::iter::once(&limit as _).chain(wabas).collect();
        self.readers.read(|connection| find(connection, &condition, &values))
    }

    async fn connections_with_work(
        &self,
        at: Timestamp,
        sweep_interval: SignedDuration,
        calls_per_hour: u32,
    ) -> Result<UpstreamWork, StoreError> {
        self.readers.read(|connection| with_work(connection, at, sweep_interval, calls_per_hour))
    }

    async fn lease_connection(
        &self,
        account: AccountId,
        at: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        self.writer.write(move |batch| leases::take(batch.connection(), account, at, until)).await
    }

    async fn extend_lease(
        &self,
        fence: Fence,
        until: Timestamp,
    ) -> Result<Fenced<LeaseState>, StoreError> {
        self.writer.write(move |batch| leases::set(batch.connection(), fence, Some(until))).await
    }

    async fn release_connection(&self, fence: Fence) -> Result<Fenced<()>, StoreError> {
        let released = self.writer.write(move |batch| leases::set(batch.connection(), fence, None));
        Ok(released.await?.map(drop))
    }

    async fn take_call(
        &self,
        fence: Fence,
        kind: CallKind,
        is_sweep: bool,
        calls_per_hour: u32,
        at: Timestamp,
    ) -> Result<Fenced<CallPermit>, StoreError> {
        self.writer
            .write(move |batch| {
                calls::take(batch.connection(), fence, (kind, is_sweep), calls_per_hour, at)
            })
            .await
    }

    async fn rest_calls(
        &self,
        fence: Fence,
        rest: SignedDuration,
        at: Timestamp,
    ) -> Result<Fenced<()>, StoreError> {
        self.writer.write(move |batch| calls::rest(batch.connection(), fence, rest, at)).await
    }

    async fn set_degraded(
        &self,
        fence: Fence,
        degraded: Option<(DegradedReason, Option<Timestamp>, Option<ProviderError>)>,
        at: Timestamp,
    ) -> Result<Fenced<()>, StoreError> {
        self.writer
            .write(move |batch| calls::set_degraded(batch, fence, degraded.as_ref(), at))
            .await
    }

    async fn record_token_expiry(
        &self,
        fence: Fence,
        expires_at: Option<Timestamp>,
    ) -> Result<Fenced<()>, StoreError> {
        self.writer
            .write(move |batch| calls::record_token_expiry(batch.connection(), fence, expires_at))
            .await
    }

    async fn begin_sweep(
        &self,
        fence: Fence,
        full: bool,
        at: Timestamp,
    ) -> Result<Fenced<u64>, StoreError> {
        self.writer.write(move |batch| sweeps::begin(batch.connection(), fence, full, at)).await
    }

    async fn record_page(
        &self,
        fence: Fence,
        page: PageRecord,
        at: Timestamp,
    ) -> Result<Fenced<PageResult>, StoreError> {
        self.writer.write(move |batch| sweeps::record_page(batch, fence, &page, at)).await
    }

    async fn finish_sweep(
        &self,
        fence: Fence,
        at: Timestamp,
    ) -> Result<Fenced<SweepReport>, StoreError> {
        self.writer.write(move |batch| sweeps::finish(batch, fence, at)).await
    }

    async fn withdraw_approvals(
        &self,
        fence: Fence,
        at: Timestamp,
    ) -> Result<Fenced<Vec<EndedApproval>>, StoreError> {
        self.writer.write(move |batch| sweeps::withdraw_approvals(batch, fence, at)).await
    }

    async fn has_own_approvals(&self, account: AccountId) -> Result<bool, StoreError> {
        self.readers.read(|connection| sweeps::has_own_approvals(connection, account))
    }

    async fn templates_to_read(
        &self,
        account: AccountId,
        limit: usize,
    ) -> Result<Vec<ToRead>, StoreError> {
        self.readers.read(|connection| mirror::to_read(connection, account, limit))
    }

    async fn record_read(
        &self,
        fence: Fence,
        read: ReadRecord,
        at: Timestamp,
    ) -> Result<Fenced<Option<EndedApproval>>, StoreError> {
        self.writer.write(move |batch| observations::record_read(batch, fence, &read, at)).await
    }

    async fn postpone_read(
        &self,
        fence: Fence,
        id: RemoteId,
        asked: Option<Timestamp>,
        until: Timestamp,
    ) -> Result<Fenced<()>, StoreError> {
        self.writer
            .write(move |batch| observations::postpone_read(batch, fence, &id, asked, until))
            .await
    }

    async fn record_absent(
        &self,
        fence: Fence,
        id: RemoteId,
        asked: Option<Timestamp>,
        at: Timestamp,
    ) -> Result<Fenced<Absence>, StoreError> {
        self.writer
            .write(move |batch| observations::record_absent(batch, fence, &id, asked, at))
            .await
    }

    async fn record_hints(
        &self,
        account: AccountId,
        hints: Vec<Hint>,
        at: Timestamp,
    ) -> Result<HintReport, StoreError> {
        self.writer.write(move |batch| hints::record(batch.connection(), account, &hints, at)).await
    }

    async fn mirror_of(
        &self,
        account: AccountId,
        templates: Vec<TemplateId>,
    ) -> Result<Vec<MirroredTemplate>, StoreError> {
        let read =
            move |connection: &Connection| mirror::of_templates(connection, account, &templates);
        self.read_blocking(ReadKind::List, account, read).await
    }

    async fn mirrored(
        &self,
        account: AccountId,
        filter: MirrorFilter,
        after: Option<RemoteId>,
        limit: usize,
    ) -> Result<Vec<MirroredTemplate>, StoreError> {
        let read = move |it: &Connection| mirror::page(it, account, &filter, after.as_ref(), limit);
        self.read_blocking(ReadKind::List, account, read).await
    }

    async fn mirror_counts(&self, account: AccountId) -> Result<MirrorCounts, StoreError> {
        let read = move |connection: &Connection| mirror::count(connection, account);
        self.read_blocking(ReadKind::List, account, read).await
    }

    async fn mirrored_template(
        &self,
        account: AccountId,
        id: RemoteId,
    ) -> Result<Option<MirroredTemplate>, StoreError> {
        self.point_readers.read(|connection| mirror::one(connection, account, &id))
    }

    async fn mirrored_document(
        &self,
        account: AccountId,
        id: RemoteId,
    ) -> Result<Option<String>, StoreError> {
        self.point_readers.read(|connection| mirror::document(connection, account, &id))
    }
}

/// The connections that fulfil a condition.
fn find(
    connection: &Connection,
    condition: &str,
    values: &[&dyn ToSql],
) -> Result<Vec<UpstreamConnection>, StoreError> {
    let query = format!("SELECT {CONNECTION_COLUMNS} FROM upstream u WHERE {condition}");
    let mut query = connection.prepare_cached(&query)?;
    let mut rows = query.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decode(row)?);
    }
    Ok(found)
}

fn one(
    connection: &Connection,
    account: AccountId,
) -> Result<Option<UpstreamConnection>, StoreError> {
    Ok(find(connection, "u.account_id = ?1", &[&key(account.get())])?.into_iter().next())
}

/// The connection, if the lease still lasts.
fn leased(connection: &Connection, fence: Fence) -> Result<Option<UpstreamConnection>, StoreError> {
    let condition = "u.account_id = ?1 AND u.fence = ?2 AND u.leased_until IS NOT NULL";
    let values: [&dyn ToSql; 2] = [&key(fence.account.get()), &key(fence.number)];
    Ok(find(connection, condition, &values)?.into_iter().next())
}

fn connect(batch: &mut Batch, new: &NewConnection) -> Result<ConnectOutcome, StoreError> {
    let connection = batch.connection();
    let account = accounts::one(connection, new.account)?;
    let is_connected = one(connection, new.account)?.is_some();
    if let Some(refusal) = connect_refusal(account.as_ref(), is_connected) {
        return Ok(refusal);
    }
    // The fence begins with the time: no lease of an earlier connection has a number of this one.
    connection
        .prepare_cached(
            "INSERT INTO upstream (account_id, base_url, waba, app_id, token, token_expires_at, \
             app_secret, hook_hash, connected_at, fence) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)",
        )?
        .execute(params![
            key(new.account.get()),
            new.base_url,
            new.waba,
            new.app_id,
            new.token.0,
            new.token_expires_at.map(millis),
            new.app_secret.as_ref().map(|secret| &secret.0),
            new.hook_hash.0,
            millis(new.by.at),
        ])?;
    audit::append(connection, new.account, AuditedChange::UpstreamConnected(new), new.by)?;
    // Cached accounts have another review now.
    batch.credentials_changed();
    Ok(ConnectOutcome::Connected)
}

fn disconnect(batch: &mut Batch, account: AccountId, by: Author) -> Result<bool, StoreError> {
    let connection = batch.connection();
    let Some(before) = one(connection, account)? else { return Ok(false) };
    delete_account(connection, account)?;
    let change = AuditedChange::UpstreamDisconnected { waba: &before.waba };
    audit::append(connection, account, change, by)?;
    batch.credentials_changed();
    Ok(true)
}

/// Deletes what only a connected account has.
pub(super) fn delete_account(
    connection: &Connection,
    account: AccountId,
) -> Result<(), StoreError> {
    for statement in [
        "DELETE FROM upstream_operation WHERE account_id = ?1",
        "DELETE FROM upstream_template WHERE account_id = ?1",
        "DELETE FROM upstream WHERE account_id = ?1",
    ] {
        connection.execute(statement, [key(account.get())])?;
    }
    Ok(())
}

fn apply_change(
    batch: &mut Batch,
    account: AccountId,
    change: &ConnectionChange,
    by: Author,
) -> Result<bool, StoreError> {
    let connection = batch.connection();
    let Some(before) = one(connection, account)? else { return Ok(false) };
    let own = key(account.get());
    match change {
        ConnectionChange::Token(token, expires_at) => connection
            .prepare_cached(
                "UPDATE upstream SET token = ?2, token_expires_at = ?3, degraded = NULL, \
                 degraded_since = NULL, degraded_until = NULL, error = NULL WHERE account_id = ?1",
            )?
            .execute(params![own, token.0, expires_at.map(millis)])?,
        ConnectionChange::AppSecret(secret) => connection
            .prepare_cached("UPDATE upstream SET app_secret = ?2 WHERE account_id = ?1")?
            .execute(params![own, secret.as_ref().map(|secret| &secret.0)])?,
        ConnectionChange::Hook(hash) => connection
            .prepare_cached("UPDATE upstream SET hook_hash = ?2 WHERE account_id = ?1")?
            .execute(params![own, hash.0])?,
        ConnectionChange::Paused => connection
            .prepare_cached(
                "UPDATE upstream SET paused_at = coalesce(paused_at, ?2) WHERE account_id = ?1",
            )?
            .execute([own, millis(by.at)])?,
        ConnectionChange::Resumed | ConnectionChange::MissingAccepted => {
            if let Some(missing) = change.missing_after().filter(|_| before.is_frozen()) {
                let update =
                    format!("UPDATE upstream_template SET missing = {missing} WHERE {UNSEEN}");
                connection.prepare_cached(&update)?.execute([own])?;
            }
            connection
                .prepare_cached(
                    "UPDATE upstream SET paused_at = NULL, suspicious_at = NULL, \
                     degraded_until = NULL, rest_until = NULL WHERE account_id = ?1",
                )?
                .execute([own])?
        }
    };
    for reason in change.ended_reasons() {
        operations::release_held(connection, account, *reason, Operation::released, by.at)?;
    }
    let audited = AuditedChange::UpstreamChanged { change: change.as_str() };
    audit::append(connection, account, audited, by)?;
    if let Some(event) = change.event(&before, by.at) {
        events::append_upstream(batch, &before, event, by.at)?;
    }
    Ok(true)
}

fn with_work(
    connection: &Connection,
    at: Timestamp,
    sweep_interval: SignedDuration,
    calls_per_hour: u32,
) -> Result<UpstreamWork, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT {CONNECTION_COLUMNS}, {} FROM upstream u JOIN account a \
         ON a.id = u.account_id WHERE a.disabled_at IS NULL AND u.paused_at IS NULL \
         ORDER BY u.account_id",
        work_columns()
    ))?;
    let mut rows = query.query(first_sweep_times(at, sweep_interval))?;
    let mut work = UpstreamWork::default();
    while let Some(row) = rows.next()? {
        work.add(&ConnectionWork::read(row)?, at, sweep_interval, calls_per_hour);
    }
    Ok(work)
}
