//! Webhook endpoints, as SQL: create, change, rotate, delete.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::delivery::DisableReason,
};
use jiff::Timestamp;

use super::{
    PostgresStore,
    batch::no_account,
    columns::{get, key, millis, webhook_id},
    emulator::{RESTART_STATUSES, SEND_ALL_STATUSES},
    events,
    pool::{PgPools, Values},
    transaction::{Transaction, transact},
};
use crate::{
    Author, CreateWebhookOutcome, NewWebhook, RotateOutcome, StoreError, StoredSecret, Webhook,
    WebhookChange, WebhookStore,
    decisions::audit::AuditedChange,
    decisions::{
        self,
        webhooks::{
            ChangedWebhook, NewSecret, apply_change, enables, event_list, registration_refusal,
            webhook,
        },
    },
};

#[async_trait]
impl WebhookStore for PostgresStore {
    async fn create_webhook(&self, new: NewWebhook) -> Result<CreateWebhookOutcome, StoreError> {
        self.ensure_may_change(new.account, new.by).await?;
        transact!(self, tx => create(tx, &new))
    }

    async fn webhooks(&self, account: AccountId) -> Result<Vec<Webhook>, StoreError> {
        of_account(&self.pools, account).await
    }

    async fn webhook(
        &self,
        account: AccountId,
        id: WebhookId,
    ) -> Result<Option<Webhook>, StoreError> {
        one(&self.pools, account, id).await
    }

    async fn change_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        wanted: WebhookChange,
        by: Author,
    ) -> Result<Option<Webhook>, StoreError> {
        self.ensure_may_change(account, by).await?;
        transact!(self, tx => change(tx, account, id, &wanted, by))
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
        transact!(self, tx => rotate(tx, account, id, &new))
    }

    async fn delete_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        by: Author,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => delete(tx, account, id, by))
    }
}

/// All columns of an endpoint. They are listed by name, here as everywhere: a newer release may add
/// columns while this one is running.
macro_rules! columns {
    () => {
        "w.id, w.account_id, w.url, w.events, w.format, w.subscribed, w.secret, w.former_secret, \
         w.former_until, w.cursor, w.failures, w.failing_since, w.failed_at, w.resting_until, \
         w.disabled_at, w.disabled_because, w.created_at, w.updated_at"
    };
}
pub(super) use columns;

/// Locks an endpoint until the transaction ends, and before any of its deliveries. A statement that
/// follows sees what other transactions committed before.
pub(super) const LOCK: &str = "SELECT 1 FROM webhook WHERE id = $1 FOR NO KEY UPDATE";

/// Deletes the position of an endpoint in the statuses of messages.
pub(super) const DELETE_CURSOR: &str = "DELETE FROM status_cursor WHERE webhook_id = $1";

/// Selects endpoints with their number of undelivered events.
const SELECT: &str = concat!(
    "SELECT ",
    columns!(),
    ", greatest(a.last_seq - w.cursor, 0) AS behind \
     FROM webhook w JOIN account a ON a.id = w.account_id"
);

pub(super) async fn create(
    transaction: &mut Transaction,
    new: &NewWebhook,
) -> Result<CreateWebhookOutcome, StoreError> {
    if !transaction.lock(new.account).await? {
        return Err(no_account());
    }
    let account = key(new.account.get());
    let statement = "SELECT id, subscribed FROM webhook WHERE account_id = $1";
    let mut existing = Vec::new();
    for row in transaction.query(statement, &[&account]).await? {
        existing.push((webhook_id(&row, "id")?, get(&row, "subscribed")?));
    }
    if let Some(refusal) = registration_refusal(new, &existing) {
        return Ok(refusal);
    }
    let newest = key(transaction.newest_seq(new.account));
    let oldest = "SELECT min(seq) AS oldest FROM event WHERE account_id = $1";
    let cursor = if new.from_start {
        let row = transaction.query_one(oldest, &[&account]).await?;
        let oldest: Option<i64> = row.map(|row| get(&row, "oldest")).transpose()?.flatten();
        oldest.map_or(newest, |oldest| oldest - 1)
    } else {
        newest
    };
    let insert = concat!(
        "INSERT INTO webhook AS w (account_id, url, events, secret, cursor, created_at, \
         updated_at, format, subscribed) VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8) RETURNING ",
        columns!(),
        ", $9::int8 AS behind"
    );
    let values: Values<'_> = &[
        &account,
        &new.url,
        &event_list(&new.events),
        &new.secret.0,
        &cursor,
        &millis(new.by.at),
        &new.format.as_str(),
        &new.subscribed,
        &(newest - cursor),
    ];
    let rows = transaction.query(insert, values).await?;
    let created = rows.iter().map(webhook).next().transpose()?;
    let created = created.ok_or_else(no_account)?;
    if new.from_start {
        transaction.execute(SEND_ALL_STATUSES, &[&key(created.id.get())]).await?;
    }
    transaction.audit(new.account, AuditedChange::WebhookCreated(&created), new.by);
    Ok(CreateWebhookOutcome::Created(Box::new(created)))
}

pub(super) async fn of_account(
    pools: &PgPools,
    account: AccountId,
) -> Result<Vec<Webhook>, StoreError> {
    let statement = format!("{SELECT} WHERE w.account_id = $1 ORDER BY w.id");
    let rows = pools.read(&statement, &[&key(account.get())]).await?;
    rows.iter().map(webhook).collect()
}

pub(super) async fn one(
    pools: &PgPools,
    account: AccountId,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    let statement = format!("{SELECT} WHERE w.id = $1 AND w.account_id = $2");
    let row = pools.read_one(&statement, &[&key(id.get()), &key(account.get())]).await?;
    row.as_ref().map(webhook).transpose()
}

/// One endpoint of any account, locked until the transaction ends.
pub(super) async fn lock(
    transaction: &Transaction,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    let statement = format!("{SELECT} WHERE w.id = $1 FOR NO KEY UPDATE OF w");
    let row = transaction.query_one(&statement, &[&key(id.get())]).await?;
    row.as_ref().map(webhook).transpose()
}

/// One endpoint of any account, which can be changed but not deleted until the transaction ends.
pub(super) async fn keep(
    transaction: &Transaction,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    let statement = format!("{SELECT} WHERE w.id = $1 FOR KEY SHARE OF w");
    let row = transaction.query_one(&statement, &[&key(id.get())]).await?;
    row.as_ref().map(webhook).transpose()
}

/// Locks an endpoint if the account owns it.
pub(super) async fn lock_own(
    transaction: &Transaction,
    account: AccountId,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    Ok(lock(transaction, id).await?.filter(|webhook| webhook.account == account))
}

pub(super) async fn change(
    transaction: &mut Transaction,
    account: AccountId,
    id: WebhookId,
    change: &WebhookChange,
    by: Author,
) -> Result<Option<Webhook>, StoreError> {
    let Some(before) = lock_own(transaction, account, id).await? else { return Ok(None) };
    let is_enabled = enables(&before, change);
    let oldest = if is_enabled { events::oldest(transaction, account).await? } else { 0 };
    let ChangedWebhook { webhook, resets_failures, is_changed } =
        apply_change(before, change, oldest, by.at);
    let update = "UPDATE webhook SET url = $2, events = $3, cursor = $4, disabled_at = $5, \
                  disabled_because = $6, failing_since = $7, resting_until = $8, updated_at = $9, \
                  failures = CASE WHEN $10 THEN 0 ELSE failures END, \
                  failed_at = CASE WHEN $10 THEN NULL ELSE failed_at END WHERE id = $1";
    let (disabled_at, reason) = webhook.disabled.unzip();
    let values: Values<'_> = &[
        &key(id.get()),
        &webhook.url,
        &event_list(&webhook.events),
        &key(webhook.cursor),
        &disabled_at.map(millis),
        &reason.map(DisableReason::as_str),
        &webhook.failing_since.map(millis),
        &webhook.resting_until.map(millis),
        &millis(webhook.updated_at),
        &resets_failures,
    ];
    transaction.execute(update, values).await?;
    if is_enabled {
        transaction.execute(RESTART_STATUSES, &[&key(id.get()), &key(account.get())]).await?;
    }
    if is_changed {
        transaction.audit(account, AuditedChange::WebhookChanged(&webhook), by);
    }
    Ok(Some(webhook))
}

pub(super) async fn rotate(
    transaction: &mut Transaction,
    account: AccountId,
    id: WebhookId,
    new: &NewSecret,
) -> Result<RotateOutcome, StoreError> {
    let Some(before) = lock_own(transaction, account, id).await? else {
        return Ok(RotateOutcome::NoWebhook);
    };
    let outcome = decisions::webhooks::rotate(before, new);
    if let RotateOutcome::Done(webhook) = &outcome {
        let update = "UPDATE webhook SET former_secret = secret, former_until = $3, secret = $2, \
                      updated_at = $4 WHERE id = $1";
        let values: Values<'_> =
            &[&key(id.get()), &new.secret.0, &millis(new.until), &millis(new.by.at)];
        transaction.execute(update, values).await?;
        transaction.audit(account, AuditedChange::WebhookSecretRotated(webhook), new.by);
    }
    Ok(outcome)
}

/// Deletes an endpoint. It may have many deliveries; retention deletes them step by step.
pub(super) async fn delete(
    transaction: &mut Transaction,
    account: AccountId,
    id: WebhookId,
    by: Author,
) -> Result<bool, StoreError> {
    let delete = "DELETE FROM webhook WHERE id = $1 AND account_id = $2";
    let is_deleted = transaction.execute(delete, &[&key(id.get()), &key(account.get())]).await? > 0;
    if is_deleted {
        let note = "INSERT INTO former_webhook (id) VALUES ($1)";
        transaction.execute(note, &[&key(id.get())]).await?;
        transaction.execute(DELETE_CURSOR, &[&key(id.get())]).await?;
        transaction.audit(account, AuditedChange::WebhookDeleted(id), by);
    }
    Ok(is_deleted)
}
