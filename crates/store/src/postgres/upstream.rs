//! Connected accounts, as SQL: their connections, leases and budgets. A write under a lease locks the
//! connection's row, so that no other worker takes the lease before the write is committed.

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

pub(super) use self::actions::{queue_deletion, queue_submission};
use super::{
    PostgresStore, accounts,
    columns::{key, millis},
    credentials, events,
    pool::Values,
    transaction::{Transaction, transact},
};
use crate::{
    Absence, Author, CallPermit, ConnectOutcome, ConnectionChange, DegradedReason, EndedApproval,
    Fence, Fenced, HintReport, Lease, LeaseState, MirrorCounts, MirrorFilter, MirroredTemplate,
    NewConnection, PageRecord, PageResult, ReadKind, ReadRecord, SecretHash, StoreError,
    SweepReport, ToRead, UpstreamConnection, UpstreamStore, UpstreamWork,
    decisions::{
        audit::AuditedChange,
        upstream::{
            CONNECTION_COLUMNS, ConnectionWork, OWN_APPROVALS, UNSEEN, connect_refusal,
            connection as decode, first_sweep_times, work_columns,
        },
    },
};

#[async_trait]
impl UpstreamStore for PostgresStore {
    async fn connect_upstream(&self, new: NewConnection) -> Result<ConnectOutcome, StoreError> {
        transact!(self, tx => connect(tx, &new))
    }

    async fn disconnect_upstream(
        &self,
        account: AccountId,
        by: Author,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => disconnect(tx, account, by))
    }

    async fn change_connection(
        &self,
        account: AccountId,
        change: ConnectionChange,
        by: Author,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => apply_change(tx, account, &change, by))
    }

    async fn connection(
        &self,
        account: AccountId,
    ) -> Result<Option<UpstreamConnection>, StoreError> {
        let row = self.pools.read_one(&select(OF_ACCOUNT), &[&key(account.get())]).await?;
        row.as_ref().map(decode).transpose()
    }

    async fn connections(&self) -> Result<Vec<UpstreamConnection>, StoreError> {
        let rows = self.pools.read(&select("true ORDER BY u.account_id"), &[]).await?;
        rows.iter().map(decode).collect()
    }

    async fn connection_by_hook(
        &self,
        hash: SecretHash,
    ) -> Result<Option<UpstreamConnection>, StoreError> {
        let row = self.pools.read_one(&select("u.hook_hash = $1"), &[&&hash.0[..]]).await?;
        row.as_ref().map(decode).transpose()
    }

    async fn connections_to(
        &self,
        wabas: Vec<String>,
        limit: usize,
    ) -> Result<Vec<UpstreamConnection>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let statement = select("u.waba = ANY($1) ORDER BY u.account_id LIMIT $2");
        let rows = self.pools.read(&statement, &[&wabas, &limit]).await?;
        rows.iter().map(decode).collect()
    }

    async fn connections_with_work(
        &self,
        at: Timestamp,
        sweep_interval: SignedDuration,
        calls_per_hour: u32,
    ) -> Result<UpstreamWork, StoreError> {
        let statement = format!(
            "SELECT {CONNECTION_COLUMNS}, {} FROM upstream u JOIN account a \
             ON a.id = u.account_id WHERE a.disabled_at IS NULL AND u.paused_at IS NULL \
             ORDER BY u.account_id",
            work_columns()
        );
        let [at_millis, connected_by] = first_sweep_times(at, sweep_interval);
        let values: Values<'_> = &[&at_millis, &connected_by];
        let mut work = UpstreamWork::default();
        for row in &self.pools.acquire_slow().await?.query(&statement, values).await? {
            work.add(&ConnectionWork::read(row)?, at, sweep_interval, calls_per_hour);
        }
        Ok(work)
    }

    async fn lease_connection(
        &self,
        account: AccountId,
        at: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        transact!(self, tx => leases::take(tx, account, at, until))
    }

    async fn extend_lease(
        &self,
        fence: Fence,
        until: Timestamp,
    ) -> Result<Fenced<LeaseState>, StoreError> {
        transact!(self, tx => leases::set(tx, fence, Some(until)))
    }

    async fn release_connection(&self, fence: Fence) -> Result<Fenced<()>, StoreError> {
        let released: Result<_, StoreError> = transact!(self, tx => leases::set(tx, fence, None));
        Ok(released?.map(drop))
    }

    async fn take_call(
        &self,
        fence: Fence,
        kind: CallKind,
        is_sweep: bool,
        calls_per_hour: u32,
        at: Timestamp,
    ) -> Result<Fenced<CallPermit>, StoreError> {
        transact!(self, tx => calls::take(tx, fence, (kind, is_sweep), calls_per_hour, at))
    }

    async fn rest_calls(
        &self,
        fence: Fence,
        rest: SignedDuration,
        at: Timestamp,
    ) -> Result<Fenced<()>, StoreError> {
        transact!(self, tx => calls::rest(tx, fence, rest, at))
    }

    async fn set_degraded(
        &self,
        fence: Fence,
        degraded: Option<(DegradedReason, Option<Timestamp>, Option<ProviderError>)>,
        at: Timestamp,
    ) -> Result<Fenced<()>, StoreError> {
        transact!(self, tx => calls::set_degraded(tx, fence, degraded.as_ref(), at))
    }

    async fn record_token_expiry(
        &self,
        fence: Fence,
        expires_at: Option<Timestamp>,
    ) -> Result<Fenced<()>, StoreError> {
        transact!(self, tx => calls::record_token_expiry(tx, fence, expires_at))
    }

    async fn begin_sweep(
        &self,
        fence: Fence,
        full: bool,
        at: Timestamp,
    ) -> Result<Fenced<u64>, StoreError> {
        transact!(self, tx => sweeps::begin(tx, fence, full, at))
    }

    async fn record_page(
        &self,
        fence: Fence,
        page: PageRecord,
        at: Timestamp,
    ) -> Result<Fenced<PageResult>, StoreError> {
        transact!(self, tx => sweeps::record_page(tx, fence, &page, at))
    }

    async fn finish_sweep(
        &self,
        fence: Fence,
        at: Timestamp,
    ) -> Result<Fenced<SweepReport>, StoreError> {
        transact!(self, tx => sweeps::finish(tx, fence, at))
    }

    async fn withdraw_approvals(
        &self,
        fence: Fence,
        at: Timestamp,
    ) -> Result<Fenced<Vec<EndedApproval>>, StoreError> {
        transact!(self, tx => sweeps::withdraw_approvals(tx, fence, at))
    }

    async fn has_own_approvals(&self, account: AccountId) -> Result<bool, StoreError> {
        let query =
            format!("SELECT 1 FROM template WHERE account_id = $1 AND {OWN_APPROVALS} LIMIT 1");
        let found = self.pools.acquire().await?.query(&query, &[&key(account.get())]).await?;
        Ok(!found.is_empty())
    }

    async fn templates_to_read(
        &self,
        account: AccountId,
        limit: usize,
    ) -> Result<Vec<ToRead>, StoreError> {
        mirror::to_read(&self.pools, account, limit).await
    }

    async fn record_read(
        &self,
        fence: Fence,
        read: ReadRecord,
        at: Timestamp,
    ) -> Result<Fenced<Option<EndedApproval>>, StoreError> {
        transact!(self, tx => observations::record_read(tx, fence, &read, at))
    }

    async fn postpone_read(
        &self,
        fence: Fence,
        id: RemoteId,
        asked: Option<Timestamp>,
        until: Timestamp,
    ) -> Result<Fenced<()>, StoreError> {
        transact!(self, tx => observations::postpone_read(tx, fence, &id, asked, until))
    }

    async fn record_absent(
        &self,
        fence: Fence,
        id: RemoteId,
        asked: Option<Timestamp>,
        at: Timestamp,
    ) -> Result<Fenced<Absence>, StoreError> {
        transact!(self, tx => observations::record_absent(tx, fence, &id, asked, at))
    }

    async fn record_hints(
        &self,
        account: AccountId,
        hints: Vec<Hint>,
        at: Timestamp,
    ) -> Result<HintReport, StoreError> {
        transact!(self, tx => hints::record(tx, account, &hints, at))
    }

    async fn mirror_of(
        &self,
        account: AccountId,
        templates: Vec<TemplateId>,
    ) -> Result<Vec<MirroredTemplate>, StoreError> {
        let connection = self.acquire_for(ReadKind::List, account).await?;
        mirror::of_templates(&connection, account, &templates).await
    }

    async fn mirrored(
        &self,
        account: AccountId,
        filter: MirrorFilter,
        after: Option<RemoteId>,
        limit: usize,
    ) -> Result<Vec<MirroredTemplate>, StoreError> {
        let connection = self.acquire_for(ReadKind::List, account).await?;
        mirror::page(&connection, account, &filter, after.as_ref(), limit).await
    }

    async fn mirror_counts(&self, account: AccountId) -> Result<MirrorCounts, StoreError> {
        let connection = self.acquire_for(ReadKind::List, account).await?;
        mirror::count(&connection, account).await
    }

    async fn mirrored_template(
        &self,
        account: AccountId,
        id: RemoteId,
    ) -> Result<Option<MirroredTemplate>, StoreError> {
        mirror::one(&self.pools, account, &id).await
    }

    async fn mirrored_document(
        &self,
        account: AccountId,
        id: RemoteId,
    ) -> Result<Option<String>, StoreError> {
        mirror::document(&self.pools, account, &id).await
    }
}

const OF_ACCOUNT: &str = "u.account_id = $1";

fn select(condition: &str) -> String {
    format!("SELECT {CONNECTION_COLUMNS} FROM upstream u WHERE {condition}")
}

/// The connection of an account, locked.
async fn one(
    transaction: &Transaction,
    account: AccountId,
) -> Result<Option<UpstreamConnection>, StoreError> {
    let statement = select("u.account_id = $1 FOR UPDATE");
    let row = transaction.query_one(&statement, &[&key(account.get())]).await?;
    row.as_ref().map(decode).transpose()
}

/// The connection, locked, if the lease still lasts.
async fn leased(
    transaction: &Transaction,
    fence: Fence,
) -> Result<Option<UpstreamConnection>, StoreError> {
    let statement =
        select("u.account_id = $1 AND u.fence = $2 AND u.leased_until IS NOT NULL FOR UPDATE");
    let values: Values<'_> = &[&key(fence.account.get()), &key(fence.number)];
    let row = transaction.query_one(&statement, values).await?;
    row.as_ref().map(decode).transpose()
}

/// The same with the account locked before, for a write that changes the account.
async fn leased_with_account(
    transaction: &mut Transaction,
    fence: Fence,
) -> Result<Option<UpstreamConnection>, StoreError> {
    if !transaction.lock(fence.account).await? {
        return Ok(None);
    }
    leased(transaction, fence).await
}

async fn connect(
    transaction: &mut Transaction,
    new: &NewConnection,
) -> Result<ConnectOutcome, StoreError> {
    credentials::lock_epoch(transaction).await?;
    transaction.lock(new.account).await?;
    let account = accounts::one(transaction, new.account).await?;
    let is_connected = one(transaction, new.account).await?.is_some();
    if let Some(refusal) = connect_refusal(account.as_ref(), is_connected) {
        return Ok(refusal);
    }
    // The fence begins with the time: no lease of an earlier connection has a number of this one.
    let insert = "INSERT INTO upstream (account_id, base_url, waba, app_id, token, \
                  token_expires_at, app_secret, hook_hash, connected_at, fence) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)";
    let values: Values<'_> = &[
        &key(new.account.get()),
        &new.base_url,
        &new.waba,
        &new.app_id,
        &new.token.0,
        &new.token_expires_at.map(millis),
        &new.app_secret.as_ref().map(|secret| &secret.0),
        &&new.hook_hash.0[..],
        &millis(new.by.at),
    ];
    transaction.execute(insert, values).await?;
    transaction.audit(new.account, AuditedChange::UpstreamConnected(new), new.by);
    // Cached accounts have another review now.
    credentials::increment_epoch(transaction).await?;
    Ok(ConnectOutcome::Connected)
}

async fn disconnect(
    transaction: &mut Transaction,
    account: AccountId,
    by: Author,
) -> Result<bool, StoreError> {
    credentials::lock_epoch(transaction).await?;
    transaction.lock(account).await?;
    let Some(before) = one(transaction, account).await? else { return Ok(false) };
    delete_account(transaction, account).await?;
    let change = AuditedChange::UpstreamDisconnected { waba: &before.waba };
    transaction.audit(account, change, by);
    credentials::increment_epoch(transaction).await?;
    Ok(true)
}

/// Deletes what only a connected account has.
pub(super) async fn delete_account(
    transaction: &Transaction,
    account: AccountId,
) -> Result<(), StoreError> {
    for statement in [
        "DELETE FROM upstream WHERE account_id = $1",
        "DELETE FROM upstream_operation WHERE account_id = $1",
        "DELETE FROM upstream_template WHERE account_id = $1",
    ] {
        transaction.execute(statement, &[&key(account.get())]).await?;
    }
    Ok(())
}

async fn apply_change(
    transaction: &mut Transaction,
    account: AccountId,
    change: &ConnectionChange,
    by: Author,
) -> Result<bool, StoreError> {
    transaction.lock(account).await?;
    let Some(before) = one(transaction, account).await? else { return Ok(false) };
    let own = key(account.get());
    match change {
        ConnectionChange::Token(token, expires_at) => {
            let update = "UPDATE upstream SET token = $2, token_expires_at = $3, degraded = NULL, \
                          degraded_since = NULL, degraded_until = NULL, error = NULL \
                          WHERE account_id = $1";
            let values: Values<'_> = &[&own, &token.0, &expires_at.map(millis)];
            transaction.execute(update, values).await?;
        }
        ConnectionChange::AppSecret(secret) => {
            let update = "UPDATE upstream SET app_secret = $2 WHERE account_id = $1";
            let secret = secret.as_ref().map(|secret| &secret.0);
            transaction.execute(update, &[&own, &secret]).await?;
        }
        ConnectionChange::Hook(hash) => {
            let update = "UPDATE upstream SET hook_hash = $2 WHERE account_id = $1";
            transaction.execute(update, &[&own, &&hash.0[..]]).await?;
        }
        ConnectionChange::Paused => {
            let update =
                "UPDATE upstream SET paused_at = coalesce(paused_at, $2) WHERE account_id = $1";
            transaction.execute(update, &[&own, &millis(by.at)]).await?;
        }
        ConnectionChange::Resumed | ConnectionChange::MissingAccepted => {
            if let Some(missing) = change.missing_after().filter(|_| before.is_frozen()) {
                let update =
                    format!("UPDATE upstream_template SET missing = {missing} WHERE {UNSEEN}");
                transaction.execute(&update, &[&own]).await?;
            }
            let update = "UPDATE upstream SET paused_at = NULL, suspicious_at = NULL, \
                          degraded_until = NULL, rest_until = NULL WHERE account_id = $1";
            transaction.execute(update, &[&own]).await?;
        }
    }
    for reason in change.ended_reasons() {
        let released = Operation::released;
        operations::release_held(transaction, account, *reason, released, by.at).await?;
    }
    transaction.audit(account, AuditedChange::UpstreamChanged { change: change.as_str() }, by);
    if let Some(event) = change.event(&before, by.at) {
        events::append_upstream(transaction, &before, event, by.at);
    }
    Ok(true)
}
