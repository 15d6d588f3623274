//! Webhook endpoints, as SQL: create, change, rotate, delete.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, WebhookId},
    template::lifecycle::EventType,
    webhook::{Format, delivery::DisableReason},
};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    columns::{
        account_id, decode, get, key, millis, number, optional, optional_timestamp, timestamp,
        webhook_id,
    },
    pool::{PgPools, Values},
    transaction::{Transaction, transact},
};
use crate::{
    CreateWebhookOutcome, MAX_WEBHOOKS, NewWebhook, RotateOutcome, StoreError, StoredSecret,
    Webhook, WebhookChange, WebhookStore,
};

#[async_trait]
impl WebhookStore for PostgresStore {
    async fn create_webhook(&self, new: NewWebhook) -> Result<CreateWebhookOutcome, StoreError> {
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
        at: Timestamp,
    ) -> Result<Option<Webhook>, StoreError> {
        transact!(self, tx => change(tx, account, id, &wanted, at))
    }

    async fn rotate_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        secret: StoredSecret,
        until: Timestamp,
        force: bool,
        at: Timestamp,
    ) -> Result<RotateOutcome, StoreError> {
        let new = NewSecret { secret, until, force, at };
        transact!(self, tx => rotate(tx, account, id, &new))
    }

    async fn delete_webhook(&self, account: AccountId, id: WebhookId) -> Result<bool, StoreError> {
        transact!(self, tx => delete(tx, account, id))
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
        return Ok(CreateWebhookOutcome::TooMany);
    }
    let account = key(new.account.get());
    let statement = "SELECT id, subscribed FROM webhook WHERE account_id = $1";
    let existing = transaction.query(statement, &[&account]).await?;
    for other in &existing {
        if new.subscribed && get(other, "subscribed")? {
            return Ok(CreateWebhookOutcome::Subscribed(webhook_id(other, "id")?));
        }
    }
    if existing.len() >= MAX_WEBHOOKS {
        return Ok(CreateWebhookOutcome::TooMany);
    }
    let newest = key(transaction.newest_seq(new.account));
    let insert = concat!(
        "INSERT INTO webhook AS w (account_id, url, events, secret, cursor, created_at, \
         updated_at, format, subscribed) VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8) RETURNING ",
        columns!(),
        ", 0::int8 AS behind"
    );
    let values: Values<'_> = &[
        &account,
        &new.url,
        &joined(&new.events),
        &new.secret.0,
        &newest,
        &millis(new.at),
        &new.format.as_str(),
        &new.subscribed,
    ];
    let rows = transaction.query(insert, values).await?;
    let created = rows.iter().map(webhook).next().transpose()?;
    Ok(created.map_or(CreateWebhookOutcome::TooMany, |created| {
        CreateWebhookOutcome::Created(Box::new(created))
    }))
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

/// Locks an endpoint if the account owns it.
pub(super) async fn lock_own(
    transaction: &Transaction,
    account: AccountId,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    Ok(lock(transaction, id).await?.filter(|webhook| webhook.account == account))
}

pub(super) async fn change(
    transaction: &Transaction,
    account: AccountId,
    id: WebhookId,
    change: &WebhookChange,
    at: Timestamp,
) -> Result<Option<Webhook>, StoreError> {
    let Some(before) = lock_own(transaction, account, id).await? else { return Ok(None) };
    let update = "UPDATE webhook SET url = coalesce($2, url), events = coalesce($3, events), \
                  updated_at = $4 WHERE id = $1";
    let events = change.events.as_deref().map(joined);
    transaction.execute(update, &[&key(id.get()), &change.url, &events, &millis(at)]).await?;
    match change.disabled {
        Some(true) if before.disabled.is_none() => {
            disable(transaction, id, DisableReason::SwitchedOff, at).await?;
        }
        Some(false) if before.disabled.is_some() => enable(transaction, &before).await?,
        _ => {}
    }
    // A new URL starts without failures.
    if change.url.as_ref().is_some_and(|url| *url != before.url) {
        reset_failures(transaction, id).await?;
    }
    lock_own(transaction, account, id).await
}

/// Disables an endpoint. Its pending deliveries stay queued.
pub(super) async fn disable(
    transaction: &Transaction,
    id: WebhookId,
    reason: DisableReason,
    at: Timestamp,
) -> Result<(), StoreError> {
    let update = "UPDATE webhook SET disabled_at = $2, disabled_because = $3, \
                  resting_until = NULL WHERE id = $1";
    let values: Values<'_> = &[&key(id.get()), &millis(at), &reason.as_str()];
    transaction.execute(update, values).await.map(drop)
}

/// Enables an endpoint. It continues at its cursor, or at the oldest stored event if that is later.
async fn enable(transaction: &Transaction, webhook: &Webhook) -> Result<(), StoreError> {
    let update = "UPDATE webhook SET disabled_at = NULL, disabled_because = NULL, \
                  cursor = greatest(cursor, coalesce((SELECT min(seq) FROM event \
                  WHERE account_id = $2) - 1, (SELECT last_seq FROM account WHERE id = $2))) \
                  WHERE id = $1";
    let values: Values<'_> = &[&key(webhook.id.get()), &key(webhook.account.get())];
    transaction.execute(update, values).await?;
    reset_failures(transaction, webhook.id).await
}

/// Resets the failure counters.
async fn reset_failures(transaction: &Transaction, id: WebhookId) -> Result<(), StoreError> {
    let update = "UPDATE webhook SET failing_since = NULL, failed_at = NULL, failures = 0, \
                  resting_until = NULL WHERE id = $1";
    transaction.execute(update, &[&key(id.get())]).await.map(drop)
}

/// The new secret of an endpoint.
pub(super) struct NewSecret {
    pub(super) secret: StoredSecret,
    pub(super) until: Timestamp,
    pub(super) force: bool,
    pub(super) at: Timestamp,
}

pub(super) async fn rotate(
    transaction: &Transaction,
    account: AccountId,
    id: WebhookId,
    new: &NewSecret,
) -> Result<RotateOutcome, StoreError> {
    let Some(before) = lock_own(transaction, account, id).await? else {
        return Ok(RotateOutcome::NoWebhook);
    };
    let open = before.former_secret.map(|(_, until)| until).filter(|until| *until > new.at);
    if let Some(until) = open.filter(|_| !new.force) {
        return Ok(RotateOutcome::InProgress(until));
    }
    let update = "UPDATE webhook SET former_secret = secret, former_until = $3, secret = $2, \
                  updated_at = $4 WHERE id = $1";
    let values: Values<'_> = &[&key(id.get()), &new.secret.0, &millis(new.until), &millis(new.at)];
    transaction.execute(update, values).await?;
    let rotated = lock_own(transaction, account, id).await?;
    Ok(rotated.map_or(RotateOutcome::NoWebhook, |webhook| RotateOutcome::Done(Box::new(webhook))))
}

/// Deletes an endpoint. It may have many deliveries; retention deletes them step by step.
pub(super) async fn delete(
    transaction: &Transaction,
    account: AccountId,
    id: WebhookId,
) -> Result<bool, StoreError> {
    let delete = "DELETE FROM webhook WHERE id = $1 AND account_id = $2";
    let is_deleted = transaction.execute(delete, &[&key(id.get()), &key(account.get())]).await? > 0;
    if is_deleted {
        let note = "INSERT INTO former_webhook (id) VALUES ($1)";
        transaction.execute(note, &[&key(id.get())]).await?;
    }
    Ok(is_deleted)
}

/// Event types as stored: separated by commas.
fn joined(events: &[EventType]) -> String {
    let types: Vec<_> = events.iter().map(|it| it.as_str()).collect();
    types.join(",")
}

fn webhook(row: &Row) -> Result<Webhook, StoreError> {
    let reason = optional(row, "disabled_because", |text: String| DisableReason::parse(&text))?;
    let former: Option<Vec<u8>> = get(row, "former_secret")?;
    let former = former.map(StoredSecret);
    Ok(Webhook {
        id: webhook_id(row, "id")?,
        account: account_id(row, "account_id")?,
        url: get(row, "url")?,
        events: decode(row, "events", |text: String| {
            let types = text.split(',').filter(|it| !it.is_empty());
            types.map(EventType::parse).collect()
        })?,
        format: decode(row, "format", |text: String| Format::parse(&text))?,
        subscribed: get(row, "subscribed")?,
        secret: StoredSecret(get(row, "secret")?),
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
