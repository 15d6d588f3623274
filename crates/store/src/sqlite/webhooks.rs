//! SQL for webhook endpoints.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, WebhookId},
    template::lifecycle::EventType,
    webhook::{Format, delivery::DisableReason},
};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::{
    SqliteStore,
    columns::{
        account_id, column, key, millis, number, optional, optional_timestamp, timestamp,
        webhook_id,
    },
    events,
    writer::Batch,
};
use crate::{
    CreateWebhookOutcome, MAX_WEBHOOKS, NewWebhook, RotateOutcome, StoreError, StoredSecret,
    Webhook, WebhookChange, WebhookStore,
};

#[async_trait]
impl WebhookStore for SqliteStore {
    async fn create_webhook(&self, new: NewWebhook) -> Result<CreateWebhookOutcome, StoreError> {
        self.writer.write(move |batch| create(batch, &new)).await
    }

    async fn webhooks(&self, account: AccountId) -> Result<Vec<Webhook>, StoreError> {
        self.readers.read(|connection| of_account(connection, account))
    }

    async fn webhook(
        &self,
        account: AccountId,
        id: WebhookId,
    ) -> Result<Option<Webhook>, StoreError> {
        self.point_readers.read(|connection| one(connection, account, id))
    }

    async fn change_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        wanted: WebhookChange,
        at: Timestamp,
    ) -> Result<Option<Webhook>, StoreError> {
        self.writer.write(move |batch| change(batch, account, id, &wanted, at)).await
    }

    async fn rotate_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        secret: StoredSecret,
        until: Timestamp,
        anyway: bool,
        at: Timestamp,
    ) -> Result<RotateOutcome, StoreError> {
        let new = NewSecret { secret, until, anyway, at };
        self.writer.write(move |batch| rotate(batch, account, id, &new)).await
    }

    async fn delete_webhook(&self, account: AccountId, id: WebhookId) -> Result<bool, StoreError> {
        self.writer.write(move |batch| delete(batch, account, id)).await
    }
}

/// All columns of an endpoint, with the number of events beyond its cursor.
const SELECT: &str = "SELECT w.*, max(a.last_seq - w.cursor, 0) AS behind \
     FROM webhook w JOIN account a ON a.id = w.account_id";

pub(super) fn create(
    batch: &mut Batch<'_>,
    new: &NewWebhook,
) -> Result<CreateWebhookOutcome, StoreError> {
    let account = key(new.account.get());
    let existing = of_account(batch.connection(), new.account)?;
    if let Some(other) = existing.iter().find(|other| new.subscribed && other.subscribed) {
        return Ok(CreateWebhookOutcome::Subscribed(other.id));
    }
    if existing.len() >= MAX_WEBHOOKS {
        return Ok(CreateWebhookOutcome::TooMany);
    }
    // The account's row does not contain the events of this transaction yet.
    let newest = batch.newest_seq(new.account)?;
    batch
        .connection()
        .prepare_cached(
            "INSERT INTO webhook (account_id, url, events, secret, cursor, created_at, updated_at, \
             format, subscribed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8)",
        )?
        .execute(params![
            account,
            new.url,
            event_list(&new.events),
            new.secret.0,
            key(newest),
            millis(new.at),
            new.format.as_str(),
            new.subscribed,
        ])?;
    let id = u64::try_from(batch.connection().last_insert_rowid()).ok().and_then(WebhookId::new);
    let created = id.map(|id| one(batch.connection(), new.account, id)).transpose()?.flatten();
    let created = created.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(CreateWebhookOutcome::Created(Box::new(Webhook { behind: 0, ..created })))
}

pub(super) fn of_account(
    connection: &Connection,
    account: AccountId,
) -> Result<Vec<Webhook>, StoreError> {
    let mut query =
        connection.prepare_cached(&format!("{SELECT} WHERE w.account_id = ?1 ORDER BY w.id"))?;
    let mut rows = query.query([key(account.get())])?;
    let mut webhooks = Vec::new();
    while let Some(row) = rows.next()? {
        webhooks.push(webhook(row)?);
    }
    Ok(webhooks)
}

pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    Ok(by_id(connection, id)?.filter(|webhook| webhook.account == account))
}

/// One endpoint of any account.
pub(super) fn by_id(connection: &Connection, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
    let mut query = connection.prepare_cached(&format!("{SELECT} WHERE w.id = ?1"))?;
    let mut rows = query.query([key(id.get())])?;
    rows.next()?.map(webhook).transpose()
}

pub(super) fn change(
    batch: &mut Batch<'_>,
    account: AccountId,
    id: WebhookId,
    change: &WebhookChange,
    at: Timestamp,
) -> Result<Option<Webhook>, StoreError> {
    let Some(before) = one(batch.connection(), account, id)? else { return Ok(None) };
    batch
        .connection()
        .prepare_cached(
            "UPDATE webhook SET url = coalesce(?2, url), events = coalesce(?3, events), \
             updated_at = ?4 WHERE id = ?1",
        )?
        .execute(params![
            key(id.get()),
            change.url,
            change.events.as_deref().map(event_list),
            millis(at)
        ])?;
    match change.disabled {
        Some(true) if before.disabled.is_none() => {
            disable(batch.connection(), id, DisableReason::SwitchedOff, at)?;
        }
        Some(false) if before.disabled.is_some() => enable(batch, &before)?,
        _ => {}
    }
    // A new URL has no failures.
    if change.url.as_ref().is_some_and(|url| *url != before.url) {
        reset_failures(batch.connection(), id)?;
    }
    one(batch.connection(), account, id)
}

/// Disables an endpoint. Its waiting deliveries stay.
pub(super) fn disable(
    connection: &Connection,
    id: WebhookId,
    reason: DisableReason,
    at: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE webhook SET disabled_at = ?2, disabled_because = ?3, resting_until = NULL \
             WHERE id = ?1",
        )?
        .execute(params![key(id.get()), millis(at), reason.as_str()])?;
    Ok(())
}

/// Enables an endpoint. It continues at its cursor, or at the oldest event that is still stored.
fn enable(batch: &Batch<'_>, webhook: &Webhook) -> Result<(), StoreError> {
    let before_oldest = events::oldest(batch.connection(), webhook.account)? - 1;
    batch
        .connection()
        .prepare_cached(
            "UPDATE webhook SET disabled_at = NULL, disabled_because = NULL, \
             cursor = max(cursor, ?2) WHERE id = ?1",
        )?
        .execute([key(webhook.id.get()), key(before_oldest)])?;
    reset_failures(batch.connection(), webhook.id)
}

/// Resets the failure count of an endpoint.
pub(super) fn reset_failures(connection: &Connection, id: WebhookId) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE webhook SET failing_since = NULL, failed_at = NULL, failures = 0, \
             resting_until = NULL WHERE id = ?1",
        )?
        .execute([key(id.get())])?;
    Ok(())
}

pub(super) fn rotate(
    batch: &mut Batch<'_>,
    account: AccountId,
    id: WebhookId,
    rotation: &NewSecret,
) -> Result<RotateOutcome, StoreError> {
    let Some(before) = one(batch.connection(), account, id)? else {
        return Ok(RotateOutcome::NoWebhook);
    };
    let open = before.former_secret.map(|(_, until)| until).filter(|until| *until > rotation.at);
    if let Some(until) = open.filter(|_| !rotation.anyway) {
        return Ok(RotateOutcome::InProgress(until));
    }
    batch
        .connection()
        .prepare_cached(
            "UPDATE webhook SET former_secret = secret, former_until = ?3, secret = ?2, \
             updated_at = ?4 WHERE id = ?1",
        )?
        .execute(params![
            key(id.get()),
            rotation.secret.0,
            millis(rotation.until),
            millis(rotation.at)
        ])?;
    let now = one(batch.connection(), account, id)?;
    Ok(now.map_or(RotateOutcome::NoWebhook, |webhook| RotateOutcome::Done(Box::new(webhook))))
}

/// A new secret for an endpoint; the former one is valid until `until`.
pub(super) struct NewSecret {
    pub(super) secret: StoredSecret,
    pub(super) until: Timestamp,
    pub(super) anyway: bool,
    pub(super) at: Timestamp,
}

/// Deletes an endpoint. Retention deletes its deliveries in batches, because there can be many.
pub(super) fn delete(
    batch: &mut Batch<'_>,
    account: AccountId,
    id: WebhookId,
) -> Result<bool, StoreError> {
    let connection = batch.connection();
    let mut delete =
        connection.prepare_cached("DELETE FROM webhook WHERE id = ?1 AND account_id = ?2")?;
    let is_deleted = delete.execute([key(id.get()), key(account.get())])? > 0;
    if is_deleted {
        connection
            .prepare_cached("INSERT INTO former_webhook (id) VALUES (?1)")?
            .execute([key(id.get())])?;
    }
    Ok(is_deleted)
}

/// Event types as they are stored: separated by commas.
fn event_list(events: &[EventType]) -> String {
    let names: Vec<_> = events.iter().map(|it| it.as_str()).collect();
    names.join(",")
}

fn webhook(row: &Row<'_>) -> Result<Webhook, StoreError> {
    let reason = optional(row, "disabled_because", |value: String| DisableReason::parse(&value))?;
    let former: Option<Vec<u8>> = row.get("former_secret")?;
    let former = former.map(StoredSecret);
    Ok(Webhook {
        id: webhook_id(row, "id")?,
        account: account_id(row, "account_id")?,
        url: row.get("url")?,
        events: column(row, "events", |list: String| {
            let names = list.split(',').filter(|name| !name.is_empty());
            names.map(EventType::parse).collect()
        })?,
        format: column(row, "format", |value: String| Format::parse(&value))?,
        subscribed: row.get("subscribed")?,
        secret: StoredSecret(row.get("secret")?),
        former_secret: former.zip(optional_timestamp(row, "former_until")?),
        cursor: number(row, "cursor")?,
        behind: number(row, "behind")?,
        failing_since: optional_timestamp(row, "failing_since")?,
        resting_until: optional_timestamp(row, "resting_until")?,
        disabled: optional_timestamp(row, "disabled_at")?.zip(reason),
        created_at: timestamp(row, "created_at")?,
        updated_at: timestamp(row, "updated_at")?,
    })
}
