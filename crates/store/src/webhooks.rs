//! Webhook endpoints: an account registers, changes and deletes them. A transaction locks an endpoint
//! before any of its deliveries.

use galley_domain::{
    id::{AccountId, WebhookId},
    template::lifecycle::EventType,
    webhook::{Format, delivery::DisableReason},
};
use jiff::Timestamp;
use serde_json::json;

use crate::{
    AuditKind, Author, CreateWebhookOutcome, NewWebhook, RotateOutcome, Store, StoreError,
    StoreFuture, StoredSecret, Webhook, WebhookChange, WebhookKey,
    audit::ensure_may_change,
    decisions::audit::AuditedChange,
    encoding::origin,
    engine::{ReadPath, Tx, values},
    error::no_account,
    stored_row::{Row, StoredRow as _},
};

/// How many webhook endpoints an account may have.
pub const MAX_WEBHOOKS: usize = 20;

/// Lets a new endpoint get the statuses of all messages that are kept.
const SEND_ALL_STATUSES: &str =
    "INSERT INTO status_cursor (webhook_id, sent, delivered, read) VALUES ($1, 0, 0, 0)";

/// Lets an endpoint that is enabled get only the statuses of later messages, and ends its lease. Does
/// nothing for an account that is not an emulator.
const RESTART_STATUSES: &str = "INSERT INTO status_cursor (webhook_id, sent, delivered, read) \
     SELECT $1, last_message, last_message, last_message FROM emulator_clock \
     WHERE account_id = $2 ON CONFLICT (webhook_id) DO UPDATE SET sent = excluded.sent, \
     delivered = excluded.delivered, read = excluded.read, leased_until = NULL";

/// The columns of an endpoint's own row, each after a prefix. They are listed by name, and in a join with
/// their table, here as everywhere: a newer release may add columns while this one is running.
macro_rules! columns {
    ($prefix:literal) => {
        concat!(
            columns!($prefix, id account_id url events format subscribed secret former_secret),
            columns!($prefix, former_until cursor failures failing_since failed_at resting_until),
            columns!($prefix, disabled_at disabled_because created_at),
            $prefix,
            "updated_at"
        )
    };
    ($prefix:literal, $($column:ident)+) => {
        concat!($($prefix, stringify!($column), ", "),+)
    };
}

/// The columns of an endpoint's own row.
const COLUMNS: &str = columns!("");

impl Store {
    /// Registers an endpoint, which receives the events committed after this call.
    pub fn create_webhook(&self, new: NewWebhook) -> StoreFuture<'_, CreateWebhookOutcome> {
        Box::pin(async move {
            ensure_may_change(&*self.engine, new.account, new.by).await?;
            self.write("create_webhook", new, |new, tx| Box::pin(create(tx, new))).await
        })
    }

    /// The endpoints of an account, oldest first.
    pub fn webhooks(&self, account: AccountId) -> StoreFuture<'_, Vec<Webhook>> {
        let statement = select("", "WHERE w.account_id = $1 ORDER BY w.id");
        self.read("webhooks", ReadPath::Point, statement, values![account], webhook)
    }

    /// One endpoint of an account.
    pub fn webhook(&self, account: AccountId, id: WebhookId) -> StoreFuture<'_, Option<Webhook>> {
        let statement = select("", "WHERE w.id = $1 AND w.account_id = $2");
        self.read_one("webhook", ReadPath::Point, statement, values![id, account], webhook)
    }

    /// Changes an endpoint and returns it; `None` if the account has no such endpoint.
    pub fn change_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        change: WebhookChange,
        by: Author,
    ) -> StoreFuture<'_, Option<Webhook>> {
        Box::pin(async move {
            ensure_may_change(&*self.engine, account, by).await?;
            let input = (WebhookKey { account, id }, change, by);
            self.write("change_webhook", input, |(key, change, by), tx| {
                Box::pin(apply(tx, *key, change, *by))
            })
            .await
        })
    }

    /// Replaces an endpoint's secret; the former one stays valid until `until`. While an earlier
    /// rotation is in progress, `force` is required.
    pub fn rotate_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        secret: StoredSecret,
        until: Timestamp,
        force: bool,
        by: Author,
    ) -> StoreFuture<'_, RotateOutcome> {
        Box::pin(async move {
            ensure_may_change(&*self.engine, account, by).await?;
            let input = (WebhookKey { account, id }, secret, until, force, by);
            self.write("rotate_webhook", input, |(key, secret, until, force, by), tx| {
                Box::pin(async move {
                    let Some(before) = locked(tx, *key).await? else {
                        return Ok(RotateOutcome::NoWebhook);
                    };
                    if let Some((_, former_end)) = before.former_secret
                        && former_end > by.at
                        && !force
                    {
                        return Ok(RotateOutcome::InProgress(former_end));
                    }
                    let update = "UPDATE webhook SET former_secret = secret, former_until = $3, \
                                  secret = $2, updated_at = $4 WHERE id = $1";
                    tx.defer(update, &values![key.id, secret, *until, by.at])?;
                    let details = json!({"origin": origin(&before.url)});
                    let rotated =
                        AuditedChange::new(AuditKind::WebhookSecretRotated, key.id, details);
                    tx.audit(key.account, rotated, *by)?;
                    Ok(RotateOutcome::Done(Box::new(Webhook {
                        former_secret: Some((before.secret, *until)),
                        secret: secret.clone(),
                        updated_at: by.at,
                        ..before
                    })))
                })
            })
            .await
        })
    }

    /// Deletes an endpoint with its deliveries; `false` if the account has no such endpoint.
    pub fn delete_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        by: Author,
    ) -> StoreFuture<'_, bool> {
        let input = (WebhookKey { account, id }, by);
        self.write("delete_webhook", input, |&(key, by), tx| {
            Box::pin(async move {
                let delete = "DELETE FROM webhook WHERE id = $1 AND account_id = $2";
                let is_deleted = tx.execute(delete, &values![key.id, key.account]).await? > 0;
                if is_deleted {
                    follow_deletion(tx, key, by)?;
                }
                Ok(is_deleted)
            })
        })
    }
}

async fn create(tx: &mut Tx<'_>, new: &NewWebhook) -> Result<CreateWebhookOutcome, StoreError> {
    if !tx.lock(new.account).await? {
        return Err(no_account());
    }
    let find = "SELECT id, subscribed FROM webhook WHERE account_id = $1";
    let existing = tx
        .query(find, &values![new.account], |row| {
            Ok((row.webhook_id("id")?, row.value::<bool>("subscribed")?))
        })
        .await?;
    let subscription = existing.iter().find(|(_, is_subscribed)| new.subscribed && *is_subscribed);
    if let Some((id, _)) = subscription {
        return Ok(CreateWebhookOutcome::Subscribed(*id));
    }
    if existing.len() >= MAX_WEBHOOKS {
        return Ok(CreateWebhookOutcome::TooMany);
    }
    let newest = tx.newest_event(new.account)?.ok_or_else(no_account)?;
    let cursor = if new.from_start {
        oldest_event(tx, new.account).await?.saturating_sub(1)
    } else {
        newest
    };
    let insert = format!(
        "INSERT INTO webhook (account_id, url, events, secret, cursor, created_at, updated_at, \
         format, subscribed) VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8) \
         RETURNING {COLUMNS}, CAST($9 AS bigint) AS behind"
    );
    let values = values![
        new.account,
        &new.url,
        event_list(&new.events),
        &new.secret,
        cursor,
        new.by.at,
        new.format.as_str(),
        new.subscribed,
        newest.saturating_sub(cursor),
    ];
    let created = tx.query_one(&insert, &values, webhook).await?.ok_or_else(no_account)?;
    if new.from_start {
        tx.defer(SEND_ALL_STATUSES, &values![created.id])?;
    }
    let audited = AuditedChange::of_webhook(AuditKind::WebhookCreated, &created);
    tx.audit(new.account, audited, new.by)?;
    Ok(CreateWebhookOutcome::Created(Box::new(created)))
}

/// The number of the oldest stored event of an account, or of the next event if none is stored.
pub(crate) async fn oldest_event(tx: &mut Tx<'_>, account: AccountId) -> Result<u64, StoreError> {
    let statement = "SELECT coalesce((SELECT min(seq) FROM event WHERE account_id = $1), \
                     (SELECT last_seq + 1 FROM account WHERE id = $1), 1) AS oldest";
    let oldest = tx.query_one(statement, &values![account], |row| row.number("oldest")).await?;
    Ok(oldest.unwrap_or(1))
}

/// An endpoint of an account, locked until the transaction ends.
pub(crate) async fn locked(
    tx: &mut Tx<'_>,
    key: WebhookKey,
) -> Result<Option<Webhook>, StoreError> {
    let lock = tx.dialect().either("", " FOR NO KEY UPDATE OF w");
    let statement = select("", &format!("WHERE w.id = $1 AND w.account_id = $2{lock}"));
    tx.query_one(&statement, &values![key.id, key.account], webhook).await
}

/// An endpoint of any account, which can be changed but not deleted until the transaction ends.
pub(crate) async fn kept(tx: &mut Tx<'_>, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
    let lock = tx.dialect().either("", " FOR KEY SHARE OF w");
    tx.query_one(&select("", &format!("WHERE w.id = $1{lock}")), &values![id], webhook).await
}

async fn apply(
    tx: &mut Tx<'_>,
    key: WebhookKey,
    change: &WebhookChange,
    by: Author,
) -> Result<Option<Webhook>, StoreError> {
    let Some(before) = locked(tx, key).await? else { return Ok(None) };
    let is_enabled = enables(&before, change);
    let oldest = if is_enabled { oldest_event(tx, key.account).await? } else { 0 };
    let ChangedWebhook { webhook, resets_failures, is_changed } =
        apply_change(before, change, oldest, by.at);
    let update = "UPDATE webhook SET url = $2, events = $3, cursor = $4, disabled_at = $5, \
                  disabled_because = $6, failing_since = $7, resting_until = $8, updated_at = $9, \
                  failures = CASE WHEN $10 THEN 0 ELSE failures END, \
                  failed_at = CASE WHEN $10 THEN NULL ELSE failed_at END WHERE id = $1";
    let (disabled_at, reason) = webhook.disabled.unzip();
    let values = values![
        key.id,
        &webhook.url,
        event_list(&webhook.events),
        webhook.cursor,
        disabled_at,
        reason.map(DisableReason::as_str),
        webhook.failing_since,
        webhook.resting_until,
        webhook.updated_at,
        resets_failures,
    ];
    tx.defer(update, &values)?;
    if is_enabled {
        tx.defer(RESTART_STATUSES, &values![key.id, key.account])?;
    }
    if is_changed {
        let audited = AuditedChange::of_webhook(AuditKind::WebhookChanged, &webhook);
        tx.audit(key.account, audited, by)?;
    }
    Ok(Some(webhook))
}

/// Deletes all endpoints of an account that is being deleted, which has locked them before the account.
pub(crate) async fn delete_all(
    tx: &mut Tx<'_>,
    account: AccountId,
    by: Author,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM webhook WHERE account_id = $1 RETURNING id";
    for id in tx.query(delete, &values![account], |row| row.webhook_id("id")).await? {
        follow_deletion(tx, WebhookKey { account, id }, by)?;
    }
    Ok(())
}

/// Deletes what belongs to a deleted endpoint, except for its deliveries: there can be many, and
/// retention deletes them step by step.
fn follow_deletion(tx: &mut Tx<'_>, key: WebhookKey, by: Author) -> Result<(), StoreError> {
    tx.defer("INSERT INTO former_webhook (id) VALUES ($1)", &values![key.id])?;
    tx.defer("DELETE FROM status_cursor WHERE webhook_id = $1", &values![key.id])?;
    let audited = AuditedChange::new(AuditKind::WebhookDeleted, key.id, json!({}));
    tx.audit(key.account, audited, by)
}

/// Whether a change enables a disabled endpoint.
fn enables(before: &Webhook, change: &WebhookChange) -> bool {
    change.disabled == Some(false) && before.disabled.is_some()
}

/// An endpoint after a change.
#[derive(Debug, PartialEq, Eq)]
struct ChangedWebhook {
    webhook: Webhook,
    /// Whether its failure history is deleted.
    resets_failures: bool,
    /// Whether its URL, its events or its state differ from before, which the audit feed records.
    is_changed: bool,
}

/// Applies a change. `oldest` is the account's oldest stored event: an endpoint that is enabled
/// continues at its cursor, or there if that is later.
fn apply_change(
    before: Webhook,
    change: &WebhookChange,
    oldest: u64,
    at: Timestamp,
) -> ChangedWebhook {
    let is_enabled = enables(&before, change);
    // A new URL has no failures.
    let is_moved = change.url.as_ref().is_some_and(|url| *url != before.url);
    let resets_failures = is_enabled || is_moved;
    let disabled = match change.disabled {
        Some(true) => before.disabled.or(Some((at, DisableReason::SwitchedOff))),
        Some(false) => None,
        None => before.disabled,
    };
    let has_other_events = change.events.as_ref().is_some_and(|it| *it != before.events);
    let is_changed = is_moved || has_other_events || disabled != before.disabled;
    let is_newly_disabled = before.disabled.is_none() && disabled.is_some();
    let cursor =
        if is_enabled { before.cursor.max(oldest.saturating_sub(1)) } else { before.cursor };
    let webhook = Webhook {
        url: change.url.clone().unwrap_or(before.url),
        events: change.events.clone().unwrap_or(before.events),
        behind: before.behind.saturating_sub(cursor - before.cursor),
        cursor,
        failing_since: before.failing_since.filter(|_| !resets_failures),
        resting_until: before.resting_until.filter(|_| !resets_failures && !is_newly_disabled),
        disabled,
        updated_at: at,
        ..before
    };
    ChangedWebhook { webhook, resets_failures, is_changed }
}

/// Selects endpoints (`w`) with the number of events after their cursors, and with `more` columns: of
/// the account (`a`), or of what `rest` joins.
pub(crate) fn select(more: &str, rest: &str) -> String {
    format!(
        "SELECT {}, CASE WHEN a.last_seq > w.cursor THEN a.last_seq - w.cursor ELSE 0 END \
         AS behind{more} FROM webhook w JOIN account a ON a.id = w.account_id {rest}",
        columns!("w.")
    )
}

/// Event types as they are stored: separated by commas.
fn event_list(events: &[EventType]) -> String {
    let names: Vec<_> = events.iter().map(|it| it.as_str()).collect();
    names.join(",")
}

/// The endpoint in a row.
pub(crate) fn webhook(row: &Row<'_>) -> Result<Webhook, StoreError> {
    let former: Option<Vec<u8>> = row.value("former_secret")?;
    let reason = row.optional("disabled_because", |text: String| DisableReason::parse(&text))?;
    Ok(Webhook {
        id: row.webhook_id("id")?,
        account: row.account_id("account_id")?,
        url: row.value("url")?,
        events: row.parsed("events", |list| {
            list.split(',').filter(|name| !name.is_empty()).map(EventType::parse).collect()
        })?,
        format: row.parsed("format", Format::parse)?,
        subscribed: row.value("subscribed")?,
        secret: StoredSecret(row.value("secret")?),
        former_secret: former.map(StoredSecret).zip(row.optional_timestamp("former_until")?),
        cursor: row.number("cursor")?,
        behind: row.number("behind")?,
        failing_since: row.optional_timestamp("failing_since")?,
        resting_until: row.optional_timestamp("resting_until")?,
        disabled: row.optional_timestamp("disabled_at")?.zip(reason),
        created_at: row.timestamp("created_at")?,
        updated_at: row.timestamp("updated_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + seconds).unwrap()
    }

    fn id(id: u64) -> WebhookId {
        WebhookId::new(id).unwrap()
    }

    fn failing_webhook() -> Webhook {
        Webhook {
            id: id(7),
            account: AccountId::new(1).unwrap(),
            url: "https://example.com/old".to_owned(),
            events: vec![EventType::Paused],
            format: Format::Galley,
            subscribed: false,
            secret: StoredSecret(vec![1]),
            former_secret: None,
            cursor: 10,
            behind: 30,
            failing_since: Some(at(-60)),
            resting_until: Some(at(60)),
            disabled: None,
            created_at: at(-100),
            updated_at: at(-100),
        }
    }

    #[test]
    fn a_change_keeps_the_failures_unless_the_url_is_new() {
        let changed = |url: &str| {
            let change = WebhookChange { url: Some(url.to_owned()), ..WebhookChange::default() };
            apply_change(failing_webhook(), &change, 1, at(0))
        };
        let same = changed("https://example.com/old");
        let unchanged = Webhook { updated_at: at(0), ..failing_webhook() };
        assert_eq!(
            same,
            ChangedWebhook { webhook: unchanged, resets_failures: false, is_changed: false }
        );
        let moved = changed("https://example.com/new");
        assert!(moved.resets_failures && moved.is_changed);
        assert_eq!((moved.webhook.failing_since, moved.webhook.resting_until), (None, None));
        assert_eq!(moved.webhook.events, [EventType::Paused]);
    }

    #[test]
    fn a_disabled_endpoint_keeps_its_reason_and_an_enabled_one_skips_expired_events() {
        let set = |before, disabled, oldest| {
            let change = WebhookChange { disabled: Some(disabled), ..WebhookChange::default() };
            apply_change(before, &change, oldest, at(0))
        };
        let off = set(failing_webhook(), true, 1);
        assert_eq!(off.webhook.disabled, Some((at(0), DisableReason::SwitchedOff)));
        assert_eq!(off.webhook.resting_until, None);
        assert_eq!((off.webhook.failing_since, off.resets_failures), (Some(at(-60)), false));
        let gone = Some((at(-5), DisableReason::Gone));
        let still_off = set(Webhook { disabled: gone, ..failing_webhook() }, true, 1);
        assert_eq!(still_off.webhook.disabled, gone);
        let on = set(off.webhook, false, 16);
        assert_eq!((on.webhook.disabled, on.resets_failures), (None, true));
        assert_eq!((on.webhook.cursor, on.webhook.behind), (15, 25));
        assert_eq!(set(still_off.webhook, false, 5).webhook.cursor, 10);
        assert_eq!(set(failing_webhook(), false, 16).webhook.cursor, 10, "it was enabled before");
    }
}
