//! Connections of accounts: who connects, changes and ends them, and which of them have work.

use galley_domain::{id::AccountId, upstream::Operation};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::decisions::{
    CONNECTION_COLUMNS, UNSEEN, connect_refusal, connection, connection_work, first_sweep_times,
    work_columns,
};
use super::{one, operations, select};
use crate::{
    AuditKind, Author, ConnectOutcome, ConnectionChange, DueWork, NewConnection, SecretHash, Store,
    StoreError, UpstreamConnection, accounts,
    decisions::audit::AuditedChange,
    encoding::origin,
    engine::{ReadPath, Tx, Value, values},
    events::append_upstream,
};

impl Store {
    /// Connects an account to a provider.
    pub async fn connect_upstream(&self, new: NewConnection) -> Result<ConnectOutcome, StoreError> {
        self.write("connect_upstream", new, |new, tx| Box::pin(connect(tx, new))).await
    }

    /// Deletes a connection with its mirror and its operations; `false` if there is none. The
    /// templates stay as they are.
    pub async fn disconnect_upstream(
        &self,
        account: AccountId,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.write("disconnect_upstream", (account, by), |&(account, by), tx| {
            Box::pin(async move {
                tx.lock_credentials().await?;
                tx.lock(account).await?;
                let Some(before) = one(tx, account).await? else { return Ok(false) };
                delete_account(tx, account).await?;
                let (kind, details) =
                    (AuditKind::UpstreamDisconnected, json!({"waba": before.waba}));
                tx.audit(account, AuditedChange::new(kind, account, details), by)?;
                tx.credentials_changed().await?;
                Ok(true)
            })
        })
        .await
    }

    /// Changes a connection; `false` if there is none.
    pub async fn change_connection(
        &self,
        account: AccountId,
        change: ConnectionChange,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.write("change_connection", (account, change, by), |(account, change, by), tx| {
            Box::pin(apply_change(tx, *account, change, *by))
        })
        .await
    }

    /// The connection of an account.
    pub async fn connection(
        &self,
        account: AccountId,
    ) -> Result<Option<UpstreamConnection>, StoreError> {
        let statement = select("u.account_id = $1");
        self.read_one("connection", ReadPath::Point, statement, values![account], connection).await
    }

    /// All connections, by account.
    pub async fn connections(&self) -> Result<Vec<UpstreamConnection>, StoreError> {
        let statement = select("true ORDER BY u.account_id");
        self.read("connections", ReadPath::Point, statement, [], connection).await
    }

    /// The connection whose webhook has this secret in its path.
    pub async fn connection_by_hook(
        &self,
        hash: SecretHash,
    ) -> Result<Option<UpstreamConnection>, StoreError> {
        let (method, path) = ("connection_by_hook", ReadPath::Point);
        self.read_one(method, path, select("u.hook_hash = $1"), values![hash], connection).await
    }

    /// The connections to these accounts at providers, at most `limit`, by account. Several accounts
    /// of Galley may be connected to the same one.
    pub async fn connections_to(
        &self,
        wabas: Vec<String>,
        limit: usize,
    ) -> Result<Vec<UpstreamConnection>, StoreError> {
        let is_one = self.dialect().is_any("u.waba", "$1");
        let statement = select(&format!("{is_one} ORDER BY u.account_id LIMIT $2"));
        let wabas: Vec<&str> = wabas.iter().map(String::as_str).collect();
        let values = [Value::from(wabas), Value::size(limit)];
        self.read("connections_to", ReadPath::Point, statement, values, connection).await
    }

    /// The connections with work that no worker has leased: templates to read, a sweep that runs or
    /// is due this long after the last one, operations. Paused connections and those of disabled
    /// accounts have none.
    pub async fn connections_with_work(
        &self,
        at: Timestamp,
        sweep_interval: SignedDuration,
        calls_per_hour: u32,
    ) -> Result<DueWork<AccountId>, StoreError> {
        let statement = format!(
            "SELECT {CONNECTION_COLUMNS}, {} FROM upstream u JOIN account a \
             ON a.id = u.account_id WHERE a.disabled_at IS NULL AND u.paused_at IS NULL \
             ORDER BY u.account_id",
            work_columns()
        );
        let values = first_sweep_times(at, sweep_interval).map(Value::from);
        let (method, path) = ("connections_with_work", ReadPath::Background);
        let work = self.read(method, path, statement, values, move |row| {
            connection_work(row, at, sweep_interval, calls_per_hour)
        });
        Ok(DueWork::at(at, work.await?))
    }
}

async fn connect(tx: &mut Tx<'_>, new: &NewConnection) -> Result<ConnectOutcome, StoreError> {
    tx.lock_credentials().await?;
    tx.lock(new.account).await?;
    let account = accounts::one(tx, new.account).await?;
    let is_connected = one(tx, new.account).await?.is_some();
    if let Some(refusal) = connect_refusal(account.as_ref(), is_connected) {
        return Ok(refusal);
    }
    // The fence begins with the time: no lease of an earlier connection has a number of this one.
    let insert = "INSERT INTO upstream (account_id, base_url, waba, app_id, token, \
                  token_expires_at, app_secret, hook_hash, connected_at, fence) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)";
    let values = values![
        new.account,
        &new.base_url,
        &new.waba,
        new.app_id.as_ref(),
        &new.token,
        new.token_expires_at,
        new.app_secret.as_ref(),
        new.hook_hash,
        new.by.at,
    ];
    tx.execute(insert, &values).await?;
    let details = json!({"origin": origin(&new.base_url), "waba": new.waba});
    let connected = AuditedChange::new(AuditKind::UpstreamConnected, new.account, details);
    tx.audit(new.account, connected, new.by)?;
    // Cached accounts have another review now.
    tx.credentials_changed().await?;
    Ok(ConnectOutcome::Connected)
}

/// Deletes what only a connected account has.
pub(crate) async fn delete_account(tx: &mut Tx<'_>, account: AccountId) -> Result<(), StoreError> {
    for statement in [
        "DELETE FROM upstream WHERE account_id = $1",
        "DELETE FROM upstream_operation WHERE account_id = $1",
        "DELETE FROM upstream_template WHERE account_id = $1",
    ] {
        tx.execute(statement, &values![account]).await?;
    }
    Ok(())
}

async fn apply_change(
    tx: &mut Tx<'_>,
    account: AccountId,
    change: &ConnectionChange,
    by: Author,
) -> Result<bool, StoreError> {
    tx.lock(account).await?;
    let Some(before) = one(tx, account).await? else { return Ok(false) };
    match change {
        ConnectionChange::Token(token, expires_at) => {
            let update = "UPDATE upstream SET token = $2, token_expires_at = $3, degraded = NULL, \
                          degraded_since = NULL, degraded_until = NULL, error = NULL \
                          WHERE account_id = $1";
            tx.execute(update, &values![account, token, *expires_at]).await?;
        }
        ConnectionChange::AppSecret(secret) => {
            let update = "UPDATE upstream SET app_secret = $2 WHERE account_id = $1";
            tx.execute(update, &values![account, secret.as_ref()]).await?;
        }
        ConnectionChange::Hook(hash) => {
            let update = "UPDATE upstream SET hook_hash = $2 WHERE account_id = $1";
            tx.execute(update, &values![account, *hash]).await?;
        }
        ConnectionChange::Paused => {
            let update =
                "UPDATE upstream SET paused_at = coalesce(paused_at, $2) WHERE account_id = $1";
            tx.execute(update, &values![account, by.at]).await?;
        }
        ConnectionChange::Resumed | ConnectionChange::MissingAccepted => {
            if let Some(missing) = change.missing_after().filter(|_| before.is_frozen()) {
                let update =
                    format!("UPDATE upstream_template SET missing = {missing} WHERE {UNSEEN}");
                tx.execute(&update, &values![account]).await?;
            }
            let update = "UPDATE upstream SET paused_at = NULL, suspicious_at = NULL, \
                          degraded_until = NULL, rest_until = NULL WHERE account_id = $1";
            tx.execute(update, &values![account]).await?;
        }
    }
    for reason in change.ended_reasons() {
        operations::release_held(tx, account, *reason, Operation::released, by.at).await?;
    }
    let details = json!({"change": change.as_str()});
    tx.audit(account, AuditedChange::new(AuditKind::UpstreamChanged, account, details), by)?;
    if let Some((kind, reason)) = change.event(&before) {
        append_upstream(tx, &before, kind, reason, by.at)?;
    }
    Ok(true)
}
