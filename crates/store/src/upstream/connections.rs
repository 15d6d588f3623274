//! Connections of accounts: who connects, changes and ends them, and which of them have work.

use galley_domain::{
    id::AccountId,
    rulebook::WHATSAPP,
    template::lifecycle::EventType,
    upstream::{
        CallBudget, CallKind, HeldReason, Operation, SweepProgress,
        budget::{DEFAULT_CALLS_PER_HOUR, RollingHour},
        sweep::SWEEPS_UNTIL_GONE,
    },
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::decisions::OWN_APPROVALS;
use super::{one, operations::release_held, select, sweeps::UNSEEN};
use crate::{
    AuditKind, Author, ConnectOutcome, ConnectionChange, Degraded, DegradedReason, DueWork,
    NewConnection, SecretHash, Store, StoreError, StoreFuture, StoredSecret, Sweep, SweepPosition,
    UpstreamConnection, accounts,
    decisions::audit::AuditedChange,
    encoding::origin,
    engine::{ReadPath, Tx, Value, values},
    events::append_upstream,
    stored_row::{Row, StoredRow as _},
};

impl Store {
    /// Connects an account to a provider.
    pub fn connect_upstream(&self, new: NewConnection) -> StoreFuture<'_, ConnectOutcome> {
        self.write("connect_upstream", new, |new, tx| {
            Box::pin(async move {
                tx.lock_credentials().await?;
                tx.lock(new.account).await?;
                let Some(account) = accounts::one(tx, new.account).await? else {
                    return Ok(ConnectOutcome::NoAccount);
                };
                if account.rulebook != WHATSAPP.name {
                    return Ok(ConnectOutcome::NotWhatsapp);
                }
                if account.emulator.is_some() {
                    return Ok(ConnectOutcome::Emulator);
                }
                if one(tx, new.account).await?.is_some() {
                    return Ok(ConnectOutcome::Exists);
                }
                // The fence begins with the time: no lease of an earlier connection has a number of
                // this one.
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
                let connected =
                    AuditedChange::new(AuditKind::UpstreamConnected, new.account, details);
                tx.audit(new.account, connected, new.by)?;
                // Cached accounts have another review now.
                tx.credentials_changed().await?;
                Ok(ConnectOutcome::Connected)
            })
        })
    }

    /// Deletes a connection with its mirror and its operations; `false` if there is none. The
    /// templates stay as they are.
    pub fn disconnect_upstream(&self, account: AccountId, by: Author) -> StoreFuture<'_, bool> {
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
    }

    /// Changes a connection; `false` if there is none.
    pub fn change_connection(
        &self,
        account: AccountId,
        change: ConnectionChange,
        by: Author,
    ) -> StoreFuture<'_, bool> {
        self.write("change_connection", (account, change, by), |&(account, ref change, by), tx| {
            Box::pin(async move {
                tx.lock(account).await?;
                let Some(before) = one(tx, account).await? else { return Ok(false) };
                let recovered = match change {
                    ConnectionChange::Token(token, expires_at) => {
                        let update = "UPDATE upstream SET token = $2, token_expires_at = $3, \
                                      degraded = NULL, degraded_since = NULL, \
                                      degraded_until = NULL, error = NULL WHERE account_id = $1";
                        tx.execute(update, &values![account, token, *expires_at]).await?;
                        // The provider has accepted the token, so calls succeed again.
                        before.degraded.as_ref().map(|it| it.reason.as_str())
                    }
                    ConnectionChange::AppSecret(secret) => {
                        let update = "UPDATE upstream SET app_secret = $2 WHERE account_id = $1";
                        tx.execute(update, &values![account, secret.as_ref()]).await?;
                        None
                    }
                    ConnectionChange::Hook(hash) => {
                        let update = "UPDATE upstream SET hook_hash = $2 WHERE account_id = $1";
                        tx.execute(update, &values![account, *hash]).await?;
                        None
                    }
                    ConnectionChange::Paused => {
                        let update = "UPDATE upstream SET paused_at = coalesce(paused_at, $2) \
                                      WHERE account_id = $1";
                        tx.execute(update, &values![account, by.at]).await?;
                        None
                    }
                    ConnectionChange::Resumed | ConnectionChange::MissingAccepted => {
                        if before.is_frozen() {
                            let is_accepted = *change == ConnectionChange::MissingAccepted;
                            let missing = if is_accepted { SWEEPS_UNTIL_GONE } else { 0 };
                            let update = format!(
                                "UPDATE upstream_template SET missing = {missing} WHERE {UNSEEN}"
                            );
                            tx.execute(&update, &values![account]).await?;
                        }
                        let update = "UPDATE upstream SET paused_at = NULL, suspicious_at = NULL, \
                                      degraded_until = NULL, rest_until = NULL \
                                      WHERE account_id = $1";
                        tx.execute(update, &values![account]).await?;
                        before.is_frozen().then_some(SUSPICIOUS)
                    }
                };
                // Calls are made again that had to wait for the change.
                if matches!(
                    change,
                    ConnectionChange::Token(..)
                        | ConnectionChange::Resumed
                        | ConnectionChange::MissingAccepted
                ) {
                    for reason in [HeldReason::Credentials, HeldReason::Restricted] {
                        release_held(tx, account, reason, Operation::released, by.at).await?;
                    }
                }
                let details = json!({"change": change.as_str()});
                let changed = AuditedChange::new(AuditKind::UpstreamChanged, account, details);
                tx.audit(account, changed, by)?;
                if let Some(reason) = recovered {
                    append_upstream(tx, &before, EventType::UpstreamRecovered, reason, by.at)?;
                }
                Ok(true)
            })
        })
    }

    /// The connection of an account.
    pub fn connection(&self, account: AccountId) -> StoreFuture<'_, Option<UpstreamConnection>> {
        let statement = select("u.account_id = $1");
        self.read_one("connection", ReadPath::Point, statement, values![account], connection)
    }

    /// All connections, by account.
    pub fn connections(&self) -> StoreFuture<'_, Vec<UpstreamConnection>> {
        let statement = select("true ORDER BY u.account_id");
        self.read("connections", ReadPath::Point, statement, [], connection)
    }

    /// The connection whose webhook has this secret in its path.
    pub fn connection_by_hook(
        &self,
        hash: SecretHash,
    ) -> StoreFuture<'_, Option<UpstreamConnection>> {
        let (method, path) = ("connection_by_hook", ReadPath::Point);
        self.read_one(method, path, select("u.hook_hash = $1"), values![hash], connection)
    }

    /// The connections to these accounts at providers, at most `limit`, by account. Several accounts
    /// of Galley may be connected to the same one.
    pub fn connections_to(
        &self,
        wabas: &[String],
        limit: usize,
    ) -> StoreFuture<'_, Vec<UpstreamConnection>> {
        let is_one = self.dialect().is_any("u.waba", "$1");
        let statement = select(&format!("{is_one} ORDER BY u.account_id LIMIT $2"));
        let wabas: Vec<&str> = wabas.iter().map(String::as_str).collect();
        let values = [Value::from(wabas), Value::size(limit)];
        self.read("connections_to", ReadPath::Point, statement, values, connection)
    }

    /// The connections with work that no worker has leased: templates to read, a sweep that runs or
    /// is due this long after the last one, operations. Paused connections and those of disabled
    /// accounts have none.
    pub fn connections_with_work(
        &self,
        at: Timestamp,
        sweep_interval: SignedDuration,
        calls_per_hour: u32,
    ) -> StoreFuture<'_, DueWork<AccountId>> {
        Box::pin(async move {
            // Approvals are looked for only if a first sweep is due now.
            let statement = format!(
                "SELECT {CONNECTION_COLUMNS}, (SELECT min(t.dirty_at) FROM upstream_template t WHERE \
             t.account_id = u.account_id AND t.dirty_at IS NOT NULL) AS dirty_at, \
             EXISTS (SELECT 1 FROM upstream_template t WHERE t.account_id = u.account_id AND \
             t.gone_at IS NULL AND t.missing > 0 AND t.missing >= 2 AND t.dirty_at IS NULL) \
             AS is_missing, (SELECT min(CASE WHEN o.state = 'held' THEN o.held_until \
             ELSE coalesce(o.held_until, 0) END) FROM upstream_operation o WHERE \
             o.account_id = u.account_id AND \
             o.state IN ('queued', 'sending', 'unknown', 'probing', 'held')) AS operation_at, \
             CASE WHEN u.sweep_began_at IS NULL AND u.sweep_ended_at IS NULL AND \
             (u.degraded_until IS NULL OR u.degraded_until <= $1) AND u.connected_at <= $2 \
             THEN EXISTS (SELECT 1 FROM template WHERE account_id = u.account_id AND \
             {OWN_APPROVALS}) ELSE false END AS has_own_approvals FROM upstream u JOIN account a \
             ON a.id = u.account_id WHERE a.disabled_at IS NULL AND u.paused_at IS NULL \
             ORDER BY u.account_id"
            );
            let connected_by = at.checked_sub(sweep_interval).unwrap_or(Timestamp::MIN);
            let values = values![at, connected_by];
            let (method, path) = ("connections_with_work", ReadPath::Background);
            let work = self.read(method, path, statement, values, move |row| {
                connection_work(row, at, sweep_interval, calls_per_hour)
            });
            Ok(DueWork::at(at, work.await?))
        })
    }
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

/// The columns that [`connection`] reads.
pub(super) const CONNECTION_COLUMNS: &str = "u.account_id, u.base_url, u.waba, u.app_id, u.token, \
     u.token_expires_at, u.app_secret, u.connected_at, u.paused_at, u.suspicious_at, u.degraded, \
     u.degraded_since, u.degraded_until, u.error, u.calls, u.sweep_calls, u.creates, u.rest_until, \
     u.sweep, u.sweep_began_at, u.sweep_full, u.sweep_cursor, u.sweep_seen, u.sweep_changed, \
     u.sweep_total, u.sweep_restarted, u.sweep_generated, u.sweep_idle, u.sweep_wanted, u.sweep_ended_at, u.swept_at, u.read_all_at, \
     u.template_limit, u.fence, u.leased_until";

/// The connection in a row.
pub(super) fn connection(row: &Row<'_>) -> Result<UpstreamConnection, StoreError> {
    let hour = |column: &str| row.parsed(column, |text| Some(RollingHour::parse(text)));
    let secret = |bytes: Vec<u8>| Some(StoredSecret(bytes));
    Ok(UpstreamConnection {
        account: row.account_id("account_id")?,
        base_url: row.value("base_url")?,
        waba: row.value("waba")?,
        app_id: row.value("app_id")?,
        token: row.decoded("token", secret)?,
        token_expires_at: row.optional_timestamp("token_expires_at")?,
        app_secret: row.optional("app_secret", secret)?,
        connected_at: row.timestamp("connected_at")?,
        paused_at: row.optional_timestamp("paused_at")?,
        suspicious_at: row.optional_timestamp("suspicious_at")?,
        degraded: degraded(row)?,
        budget: CallBudget {
            calls_per_hour: DEFAULT_CALLS_PER_HOUR,
            calls: hour("calls")?,
            sweep_calls: hour("sweep_calls")?,
            creates: hour("creates")?,
            rest_until: row.optional_timestamp("rest_until")?,
        },
        sweep: sweep(row)?,
        sweep_wanted: row.value("sweep_wanted")?,
        sweep_ended_at: row.optional_timestamp("sweep_ended_at")?,
        swept_at: row.optional_timestamp("swept_at")?,
        read_all_at: row.optional_timestamp("read_all_at")?,
        template_limit: row.optional("template_limit", |limit: i64| u64::try_from(limit).ok())?,
        leased_until: row.optional_timestamp("leased_until")?,
    })
}

fn degraded(row: &Row<'_>) -> Result<Option<Degraded>, StoreError> {
    let reason = row.optional("degraded", |word: String| DegradedReason::parse(&word))?;
    let Some(reason) = reason else { return Ok(None) };
    Ok(Some(Degraded {
        reason,
        since: row.timestamp("degraded_since")?,
        until: row.optional_timestamp("degraded_until")?,
        error: row.optional("error", |text: String| serde_json::from_str(&text).ok())?,
    }))
}

fn sweep(row: &Row<'_>) -> Result<Option<Sweep>, StoreError> {
    let Some(began_at) = row.optional_timestamp("sweep_began_at")? else { return Ok(None) };
    let count = |count: i64| u32::try_from(count).ok();
    Ok(Some(Sweep {
        number: row.number("sweep")?,
        began_at,
        full: row.value("sweep_full")?,
        position: match row.value::<Option<String>>("sweep_cursor")? {
            None => SweepPosition::Start,
            Some(cursor) if cursor.is_empty() => SweepPosition::End,
            Some(cursor) => SweepPosition::After(cursor),
        },
        progress: SweepProgress {
            seen: row.decoded("sweep_seen", count)?,
            restarted: row.value("sweep_restarted")?,
            failed: false,
            total: row.optional("sweep_total", count)?,
            generated: row.decoded("sweep_generated", count)?,
            idle: row.decoded("sweep_idle", count)?,
        },
        changed: row.number("sweep_changed")?,
    }))
}

/// How soon after a sweep a webhook about an unknown template causes another one.
const WANTED_SWEEP_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// The connection in a row of [`Store::connections_with_work`], and when its next work is due; `None` if it
/// has none.
fn connection_work(
    row: &Row<'_>,
    at: Timestamp,
    sweep_interval: SignedDuration,
    calls_per_hour: u32,
) -> Result<(AccountId, Option<Timestamp>), StoreError> {
    let connection = connection(row)?;
    let is_missing = row.value("is_missing")? && !connection.is_frozen();
    let dirty_at = row.optional_timestamp("dirty_at")?;
    let read_at = if is_missing { Some(Timestamp::UNIX_EPOCH) } else { dirty_at };
    let operation_at = row.optional_timestamp("operation_at")?;
    let operation_at = operation_at.filter(|_| !connection.is_frozen());
    // A first sweep may end them: a person begins it.
    let has_own_approvals: bool = row.value("has_own_approvals")?;
    let wanted = if connection.sweep_wanted { WANTED_SWEEP_INTERVAL } else { sweep_interval };
    let sweep_at = match (&connection.sweep, connection.sweep_ended_at) {
        (Some(_), _) => Some(at),
        (None, Some(end)) => {
            Some(end.checked_add(sweep_interval.min(wanted)).unwrap_or(Timestamp::MAX))
        }
        (None, None) => (!has_own_approvals).then(|| connection.first_sweep_at(sweep_interval)),
    };
    // Where no sweep shows it, a check shows whether calls succeed again.
    let is_checked = !connection.has_begun_import() && connection.degraded.is_some();
    let budget = CallBudget { calls_per_hour, ..connection.budget };
    let page_at = budget.take_for_sweep(CallKind::Page, at).err();
    let call_at = budget.take(CallKind::Read, at).err();
    let later =
        |first: Timestamp, limit: Option<Timestamp>| limit.map_or(first, |it| it.max(first));
    let times = [
        sweep_at.map(|first| later(first, page_at)),
        is_checked.then(|| later(at, call_at)),
        read_at.map(|first| later(first, call_at)),
        operation_at.map(|first| later(first, call_at)),
    ];
    let degraded_until = connection.degraded.and_then(|it| it.until);
    let rests_until = connection.leased_until.max(degraded_until);
    let first = times.into_iter().flatten().min();
    Ok((connection.account, first.map(|first| later(first, rests_until))))
}

/// The reason of the events about a connection that becomes suspicious or no longer is.
pub(super) const SUSPICIOUS: &str = "suspicious";
