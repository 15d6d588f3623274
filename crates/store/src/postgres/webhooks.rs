//! Endpoints, as SQL: registered, changed, taken away.

use galley_domain::{
    id::{AccountId, WebhookId},
    template::lifecycle::EventType,
    webhook::{Format, delivery::DisableReason},
};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    columns::{
        account_id, at as moment_at, column, key, maybe, millis, moment, number, plain, webhook_id,
    },
    pool::{Links, Values},
    transaction::Transaction,
};
use crate::{
    CreateWebhookOutcome, MAX_WEBHOOKS, NewWebhook, Rotation, StoreError, StoredSecret, Webhook,
    WebhookChange,
};

/// Everything of an endpoint. Columns are named, here as everywhere: a newer release may add some
/// while this one is running.
macro_rules! columns {
    () => {
        "w.id, w.account_id, w.url, w.events, w.format, w.subscribed, w.secret, w.former_secret, \
         w.former_until, w.cursor, w.failures, w.failing_since, w.failed_at, w.resting_until, \
         w.disabled_at, w.disabled_because, w.created_at, w.updated_at"
    };
}

/// The same with how far behind it is.
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
    let there = transaction.query(statement, &[&account]).await?;
    for other in &there {
        if new.subscribed && plain(other, "subscribed")? {
            return Ok(CreateWebhookOutcome::Subscribed(webhook_id(other, "id")?));
        }
    }
    if there.len() >= MAX_WEBHOOKS {
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
        &words(&new.events),
        &new.secret.0,
        &newest,
        &millis(new.at),
        &new.format.as_str(),
        &new.subscribed,
    ];
    let rows = transaction.query(insert, values).await?;
    let made = rows.iter().map(webhook).next().transpose()?;
    Ok(made.map_or(CreateWebhookOutcome::TooMany, |made| {
        CreateWebhookOutcome::Created(Box::new(made))
    }))
}

pub(super) async fn of_account(
    links: &Links,
    account: AccountId,
) -> Result<Vec<Webhook>, StoreError> {
    let statement = format!("{SELECT} WHERE w.account_id = $1 ORDER BY w.id");
    let rows = links.read(&statement, &[&key(account.get())]).await?;
    rows.iter().map(webhook).collect()
}

pub(super) async fn one(
    links: &Links,
    account: AccountId,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    let statement = format!("{SELECT} WHERE w.id = $1 AND w.account_id = $2");
    let row = links.read_one(&statement, &[&key(id.get()), &key(account.get())]).await?;
    row.as_ref().map(webhook).transpose()
}

/// One endpoint, of whatever account, which nobody else changes until the end.
pub(super) async fn lock(
    transaction: &Transaction,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    let statement = format!("{SELECT} WHERE w.id = $1 FOR NO KEY UPDATE OF w");
    let row = transaction.query_one(&statement, &[&key(id.get())]).await?;
    row.as_ref().map(webhook).transpose()
}

/// The same if it is the account's.
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
    let events = change.events.as_deref().map(words);
    transaction.execute(update, &[&key(id.get()), &change.url, &events, &millis(at)]).await?;
    match change.disabled {
        Some(true) if before.disabled.is_none() => {
            disable(transaction, id, DisableReason::SwitchedOff, at).await?;
        }
        Some(false) if before.disabled.is_some() => enable(transaction, &before).await?,
        _ => {}
    }
    // A new address has not failed yet.
    if change.url.as_ref().is_some_and(|url| *url != before.url) {
        forgive(transaction, id).await?;
    }
    lock_own(transaction, account, id).await
}

/// Nothing is sent any more; what waits, waits.
pub(super) async fn disable(
    transaction: &Transaction,
    id: WebhookId,
    because: DisableReason,
    at: Timestamp,
) -> Result<(), StoreError> {
    let update = "UPDATE webhook SET disabled_at = $2, disabled_because = $3, \
                  resting_until = NULL WHERE id = $1";
    let values: Values<'_> = &[&key(id.get()), &millis(at), &because.as_str()];
    transaction.execute(update, values).await.map(drop)
}

/// Goes on where it was, or where the events that are still kept begin.
async fn enable(transaction: &Transaction, webhook: &Webhook) -> Result<(), StoreError> {
    let update = "UPDATE webhook SET disabled_at = NULL, disabled_because = NULL, \
                  cursor = greatest(cursor, coalesce((SELECT min(seq) FROM event \
                  WHERE account_id = $2) - 1, (SELECT last_seq FROM account WHERE id = $2))) \
                  WHERE id = $1";
    let values: Values<'_> = &[&key(webhook.id.get()), &key(webhook.account.get())];
    transaction.execute(update, values).await?;
    forgive(transaction, webhook.id).await
}

/// Begins anew to count failures.
async fn forgive(transaction: &Transaction, id: WebhookId) -> Result<(), StoreError> {
    let update = "UPDATE webhook SET failing_since = NULL, failed_at = NULL, failures = 0, \
                  resting_until = NULL WHERE id = $1";
    transaction.execute(update, &[&key(id.get())]).await.map(drop)
}

/// Another secret for an endpoint.
pub(super) struct NewSecret {
    pub(super) secret: StoredSecret,
    pub(super) until: Timestamp,
    pub(super) anyway: bool,
    pub(super) at: Timestamp,
}

pub(super) async fn rotate(
    transaction: &Transaction,
    account: AccountId,
    id: WebhookId,
    new: &NewSecret,
) -> Result<Rotation, StoreError> {
    let Some(before) = lock_own(transaction, account, id).await? else {
        return Ok(Rotation::NoWebhook);
    };
    let open = before.former_secret.map(|(_, until)| until).filter(|until| *until > new.at);
    if let Some(until) = open.filter(|_| !new.anyway) {
        return Ok(Rotation::Open(until));
    }
    let update = "UPDATE webhook SET former_secret = secret, former_until = $3, secret = $2, \
                  updated_at = $4 WHERE id = $1";
    let values: Values<'_> = &[&key(id.get()), &new.secret.0, &millis(new.until), &millis(new.at)];
    transaction.execute(update, values).await?;
    let now = lock_own(transaction, account, id).await?;
    Ok(now.map_or(Rotation::NoWebhook, |webhook| Rotation::Done(Box::new(webhook))))
}

/// Its deliveries can be many: they are forgotten bit by bit, with the events.
pub(super) async fn delete(
    transaction: &Transaction,
    account: AccountId,
    id: WebhookId,
) -> Result<bool, StoreError> {
    let delete = "DELETE FROM webhook WHERE id = $1 AND account_id = $2";
    let gone = transaction.execute(delete, &[&key(id.get()), &key(account.get())]).await? > 0;
    if gone {
        let note = "INSERT INTO former_webhook (id) VALUES ($1)";
        transaction.execute(note, &[&key(id.get())]).await?;
    }
    Ok(gone)
}

fn words(events: &[EventType]) -> String {
    let words: Vec<_> = events.iter().map(|it| it.as_str()).collect();
    words.join(",")
}

fn webhook(row: &Row) -> Result<Webhook, StoreError> {
    let because = maybe(row, "disabled_because", |word: String| DisableReason::parse(&word))?;
    let former: Option<Vec<u8>> = plain(row, "former_secret")?;
    let former = former.map(StoredSecret);
    Ok(Webhook {
        id: webhook_id(row, "id")?,
        account: account_id(row, "account_id")?,
        url: plain(row, "url")?,
        events: column(row, "events", |words: String| {
            let words = words.split(',').filter(|word| !word.is_empty());
            words.map(EventType::parse).collect()
        })?,
        format: column(row, "format", |word: String| Format::parse(&word))?,
        subscribed: plain(row, "subscribed")?,
        secret: StoredSecret(plain(row, "secret")?),
        former_secret: former.zip(moment(row, "former_until")?),
        cursor: number(row, "cursor")?,
        behind: number(row, "behind")?,
        failing_since: moment(row, "failing_since")?,
        resting_until: moment(row, "resting_until")?,
        disabled: moment(row, "disabled_at")?.zip(because),
        created_at: moment_at(row, "created_at")?,
        updated_at: moment_at(row, "updated_at")?,
    })
}
