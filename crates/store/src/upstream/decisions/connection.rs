//! Connections: how a row is decoded, who may connect, when there is work, and which event a change
//! of the state causes.

use galley_domain::{
    id::AccountId,
    rulebook::WHATSAPP,
    template::lifecycle::EventType,
    upstream::{
        CallBudget, CallKind, ProviderError, SweepProgress,
        budget::{DEFAULT_CALLS_PER_HOUR, RollingHour},
    },
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::observe::OWN_APPROVALS;
use crate::{
    Account, ConnectOutcome, ConnectionChange, Degraded, DegradedReason, StoreError, StoredSecret,
    Sweep, SweepPosition, UpstreamConnection, stored_row::Row, stored_row::StoredRow as _,
};

/// The columns that [`connection`] reads.
pub(crate) const CONNECTION_COLUMNS: &str = "u.account_id, u.base_url, u.waba, u.app_id, u.token, \
     u.token_expires_at, u.app_secret, u.connected_at, u.paused_at, u.suspicious_at, u.degraded, \
     u.degraded_since, u.degraded_until, u.error, u.calls, u.sweep_calls, u.creates, u.rest_until, \
     u.sweep, u.sweep_began_at, u.sweep_full, u.sweep_cursor, u.sweep_seen, u.sweep_changed, \
     u.sweep_total, u.sweep_restarted, u.sweep_generated, u.sweep_idle, u.sweep_wanted, u.sweep_ended_at, u.swept_at, u.read_all_at, \
     u.template_limit, u.fence, u.leased_until";

/// Further columns that [`ConnectionWork`] reads, with `$1` as the time, and `$2` as the time at which
/// connections were made whose first sweep is due now. Only then approvals are looked for.
pub(crate) fn work_columns() -> String {
    format!(
        "{WORK_COLUMNS}, CASE WHEN u.sweep_began_at IS NULL AND u.sweep_ended_at IS NULL AND \
         (u.degraded_until IS NULL OR u.degraded_until <= $1) AND u.connected_at <= $2 THEN EXISTS \
         (SELECT 1 FROM template WHERE account_id = u.account_id AND {OWN_APPROVALS}) ELSE false END \
         AS has_own_approvals"
    )
}

/// The values of [`work_columns`].
pub(crate) fn first_sweep_times(at: Timestamp, sweep_interval: SignedDuration) -> [i64; 2] {
    let connected_by = at.checked_sub(sweep_interval).unwrap_or(Timestamp::MIN);
    [at, connected_by].map(Timestamp::as_millisecond)
}

const WORK_COLUMNS: &str = "(SELECT min(t.dirty_at) FROM upstream_template t WHERE \
     t.account_id = u.account_id AND t.dirty_at IS NOT NULL) AS dirty_at, EXISTS (SELECT 1 FROM upstream_template t \
     WHERE t.account_id = u.account_id AND t.gone_at IS NULL AND t.missing > 0 AND \
     t.missing >= 2 AND t.dirty_at IS NULL) AS is_missing, \
     (SELECT min(CASE WHEN o.state = 'held' THEN o.held_until ELSE coalesce(o.held_until, 0) END) \
     FROM upstream_operation o WHERE o.account_id = u.account_id AND \
     o.state IN ('queued', 'sending', 'unknown', 'probing', 'held')) AS operation_at";

/// The connection in a row.
pub(crate) fn connection(row: &Row<'_>) -> Result<UpstreamConnection, StoreError> {
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
        error: row.optional("error", |text: String| error(&text))?,
    }))
}

fn sweep(row: &Row<'_>) -> Result<Option<Sweep>, StoreError> {
    let Some(began_at) = row.optional_timestamp("sweep_began_at")? else { return Ok(None) };
    let count = |count: i64| u32::try_from(count).ok();
    Ok(Some(Sweep {
        number: row.number("sweep")?,
        began_at,
        full: row.value("sweep_full")?,
        position: SweepPosition::restored(row.value("sweep_cursor")?),
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

/// An error of the provider as it is stored.
pub(crate) fn stored_error(error: &ProviderError) -> String {
    let ProviderError { code, subcode, title, message } = error;
    json!({"code": code, "subcode": subcode, "title": title, "message": message}).to_string()
}

pub(super) fn error(text: &str) -> Option<ProviderError> {
    let value: Value = serde_json::from_str(text).ok()?;
    let number = |key| value.get(key).and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok());
    let text = |key| value.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(ProviderError {
        code: number("code")?,
        subcode: number("subcode"),
        title: text("title"),
        message: text("message")?,
    })
}

/// Why an account cannot be connected.
pub(crate) fn connect_refusal(
    account: Option<&Account>,
    is_connected: bool,
) -> Option<ConnectOutcome> {
    let Some(account) = account else { return Some(ConnectOutcome::NoAccount) };
    if account.rulebook != WHATSAPP.name {
        Some(ConnectOutcome::NotWhatsapp)
    } else if account.emulator.is_some() {
        Some(ConnectOutcome::Emulator)
    } else {
        is_connected.then_some(ConnectOutcome::Exists)
    }
}

/// How soon after a sweep a webhook about an unknown template causes another one.
const WANTED_SWEEP_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// The connection in a row with [`CONNECTION_COLUMNS`] and [`work_columns`], which is not paused, and
/// when its next work is due; `None` if it has none.
pub(crate) fn connection_work(
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

/// The event of a change of why calls fail, with its reason.
pub(crate) fn degraded_event(
    before: Option<&Degraded>,
    after: Option<DegradedReason>,
) -> Option<(EventType, &'static str)> {
    match (before.map(|it| it.reason), after) {
        (before, after) if before == after => None,
        (_, Some(reason)) => Some((EventType::UpstreamDegraded, reason.as_str())),
        (Some(before), None) => Some((EventType::UpstreamRecovered, before.as_str())),
        (None, None) => None,
    }
}

/// The reason of the events about a connection that becomes suspicious or no longer is.
pub(crate) const SUSPICIOUS: &str = "suspicious";

impl ConnectionChange {
    /// The event that the change of a connection causes, with its reason. The provider has accepted a
    /// new token, so calls succeed again.
    pub(crate) fn event(&self, before: &UpstreamConnection) -> Option<(EventType, &'static str)> {
        match self {
            Self::Token(..) => degraded_event(before.degraded.as_ref(), None),
            Self::Resumed | Self::MissingAccepted => {
                before.is_frozen().then_some((EventType::UpstreamRecovered, SUSPICIOUS))
            }
            Self::AppSecret(_) | Self::Hook(_) | Self::Paused => None,
        }
    }
}
