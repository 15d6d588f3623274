//! SQL for webhook endpoints.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::delivery::DisableReason,
};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{
    SqliteStore, audit,
    columns::{key, millis},
    emulator, events,
    writer::Batch,
};
use crate::{
    Author, CreateWebhookOutcome, NewWebhook, RotateOutcome, StoreError, StoredSecret, Webhook,
    WebhookChange, WebhookStore,
    decisions::audit::AuditedChange,
    decisions::{
        self,
        endpoint_health::EndpointHealth,
        webhooks::{
            ChangedWebhook, NewSecret, apply_change, enables, event_list, registration_refusal,
            webhook,
        },
    },
};

#[async_trait]
impl WebhookStore for SqliteStore {
    async fn create_webhook(&self, new: NewWebhook) -> Result<CreateWebhookOutcome, StoreError> {
        self.ensure_may_change(new.account, new.by).await?;
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
        by: Author,
    ) -> Result<Option<Webhook>, StoreError> {
        self.ensure_may_change(account, by).await?;
        self.writer.write(move |batch| change(batch, account, id, &wanted, by)).await
    }

    async fn rotate_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        secret: StoredSecret,
        until: Timestamp,
        force: bool,
        by: Author,
    ) -> Result<RotateOutcome, StoreError> {
        self.ensure_may_change(account, by).await?;
        let new = NewSecret { secret, until, force, by };
        self.writer.write(move |batch| rotate(batch, account, id, &new)).await
    }

    async fn delete_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.writer.write(move |batch| delete(batch, account, id, by)).await
    }
}

/// All columns of an endpoint, with the number of events beyond its cursor.
const SELECT: &str = "SELECT w.*, max(a.last_seq - w.cursor, 0) AS behind \
     FROM webhook w JOIN account a ON a.id = w.account_id";

pub(super) fn create(
    batch: &mut Batch,
    new: &NewWebhook,
) -> Result<CreateWebhookOutcome, StoreError> {
    let account = key(new.account.get());
    let existing = of_account(batch.connection(), new.account)?;
    let existing: Vec<_> = existing.iter().map(|other| (other.id, other.subscribed)).collect();
    if let Some(refusal) = registration_refusal(new, &existing) {
        return Ok(refusal);
    }
    // The account's row does not contain the events of this transaction yet.
    let newest = batch.newest_seq(new.account)?;
    let cursor = if new.from_start {
        events::oldest(batch.connection(), new.account)?.saturating_sub(1)
    } else {
        newest
    };
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
            key(cursor),
            millis(new.by.at),
            new.format.as_str(),
            new.subscribed,
        ])?;
    let id = u64::try_from(batch.connection().last_insert_rowid()).ok().and_then(WebhookId::new);
    let created = id.map(|id| one(batch.connection(), new.account, id)).transpose()?.flatten();
    let created = created.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    if new.from_start {
        emulator::send_all_statuses(batch.connection(), created.id)?;
    }
    let change = AuditedChange::WebhookCreated(&created);
    audit::append(batch.connection(), new.account, change, new.by)?;
    let behind = newest.saturating_sub(cursor);
    Ok(CreateWebhookOutcome::Created(Box::new(Webhook { behind, ..created })))
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
    batch: &mut Batch,
    account: AccountId,
    id: WebhookId,
    change: &WebhookChange,
    by: Author,
) -> Result<Option<Webhook>, StoreError> {
    let Some(before) = one(batch.connection(), account, id)? else { return Ok(None) };
    let is_enabled = enables(&before, change);
    let oldest = if is_enabled { events::oldest(batch.connection(), account)? } else { 0 };
    let ChangedWebhook { webhook, resets_failures, is_changed } =
        apply_change(before, change, oldest, by.at);
    let (disabled_at, reason) = webhook.disabled.unzip();
    batch
        .connection()
        .prepare_cached(
            "UPDATE webhook SET url = ?2, events = ?3, cursor = ?4, disabled_at = ?5, \
             disabled_because = ?6, failing_since = ?7, resting_until = ?8, updated_at = ?9, \
             failures = iif(?10, 0, failures), failed_at = iif(?10, NULL, failed_at) \
             WHERE id = ?1",
        )?
        .execute(params![
            key(id.get()),
            webhook.url,
            event_list(&webhook.events),
            key(webhook.cursor),
            disabled_at.map(millis),
            reason.map(DisableReason::as_str),
            webhook.failing_since.map(millis),
            webhook.resting_until.map(millis),
            millis(webhook.updated_at),
            resets_failures,
        ])?;
    if is_enabled {
        emulator::restart_statuses(batch.connection(), account, id)?;
    }
    if is_changed {
        audit::append(batch.connection(), account, AuditedChange::WebhookChanged(&webhook), by)?;
    }
    Ok(Some(webhook))
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

pub(super) fn rotate(
    batch: &mut Batch,
    account: AccountId,
    id: WebhookId,
    new: &NewSecret,
) -> Result<RotateOutcome, StoreError> {
    let Some(before) = one(batch.connection(), account, id)? else {
        return Ok(RotateOutcome::NoWebhook);
    };
    let outcome = decisions::webhooks::rotate(before, new);
    if let RotateOutcome::Done(webhook) = &outcome {
        batch
            .connection()
            .prepare_cached(
                "UPDATE webhook SET former_secret = secret, former_until = ?3, secret = ?2, \
                 updated_at = ?4 WHERE id = ?1",
            )?
            .execute(params![key(id.get()), new.secret.0, millis(new.until), millis(new.by.at)])?;
        let change = AuditedChange::WebhookSecretRotated(webhook);
        audit::append(batch.connection(), account, change, new.by)?;
    }
    Ok(outcome)
}

/// Deletes an endpoint. Retention deletes its deliveries in batches, because there can be many.
pub(super) fn delete(
    batch: &mut Batch,
    account: AccountId,
    id: WebhookId,
    by: Author,
) -> Result<bool, StoreError> {
    let connection = batch.connection();
    let mut delete =
        connection.prepare_cached("DELETE FROM webhook WHERE id = ?1 AND account_id = ?2")?;
    let is_deleted = delete.execute([key(id.get()), key(account.get())])? > 0;
    if is_deleted {
        connection
            .prepare_cached("INSERT INTO former_webhook (id) VALUES (?1)")?
            .execute([key(id.get())])?;
        connection
            .prepare_cached("DELETE FROM status_cursor WHERE webhook_id = ?1")?
            .execute([key(id.get())])?;
        audit::append(connection, account, AuditedChange::WebhookDeleted(id), by)?;
    }
    Ok(is_deleted)
}

/// The failure history of an endpoint.
pub(super) fn health(connection: &Connection, id: WebhookId) -> Result<EndpointHealth, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT failures, failing_since, failed_at, resting_until FROM webhook WHERE id = ?1",
    )?;
    let mut rows = query.query([key(id.get())])?;
    let Some(row) = rows.next()? else { return Ok(EndpointHealth::default()) };
    decisions::webhooks::health(row)
}
