//! Statuses of messages, as SQL: which endpoints have due ones, and the lease of the next.

use std::sync::LazyLock;

use galley_domain::id::{AccountId, WebhookId};
use jiff::Timestamp;

use crate::{
    DueStatuses, RecordStatusesOutcome, StatusCursor, StatusLease, StoreError, Webhook, WebhookKey,
    decisions::emulator::{
        EndpointStatuses, PendingStatuses, RECEIVES_STATUSES, SentMessage, clock, latest_due_sends,
    },
    engine::Tx,
    postgres::{
        batch::no_account,
        columns::{account_id, key, millis, number, optional_timestamp, webhook_id},
        pool::{PgPools, Values},
        transaction::Transaction,
    },
    webhooks,
};

static ENDPOINTS: LazyLock<String> = LazyLock::new(|| {
    let first = |position: &str| {
        format!(
            "(SELECT m.sent_at FROM message m WHERE m.account_id = w.account_id AND \
             m.number > s.{position} ORDER BY m.number LIMIT 1) AS first_{position}"
        )
    };
    format!(
        "SELECT w.id, w.account_id, w.resting_until, c.at, c.since, c.last_message, s.sent, \
         s.delivered, s.read, s.leased_until, {}, {}, {} FROM emulator_clock c \
         JOIN account a ON a.id = c.account_id JOIN webhook w ON w.account_id = c.account_id \
         LEFT JOIN status_cursor s ON s.webhook_id = w.id \
         WHERE coalesce(s.read, 0) < c.last_message AND {RECEIVES_STATUSES} ORDER BY w.id",
        first("sent"),
        first("delivered"),
        first("read"),
    )
});

pub(super) async fn endpoints(
    pools: &PgPools,
    at: Timestamp,
) -> Result<Vec<WebhookKey>, StoreError> {
    let mut endpoints = Vec::new();
    for row in &pools.acquire_slow().await?.query(&ENDPOINTS, &[]).await? {
        if EndpointStatuses::read(row)?.has_work(at) {
            let (account, id) = (account_id(row, "account_id")?, webhook_id(row, "id")?);
            endpoints.push(WebhookKey { account, id });
        }
    }
    Ok(endpoints)
}

/// The clock of an endpoint's account, if the endpoint gets statuses.
static CLOCK: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT c.at, c.since, c.last_message FROM webhook w JOIN account a \
         ON a.id = w.account_id JOIN emulator_clock c ON c.account_id = a.id \
         WHERE w.id = $1 AND {RECEIVES_STATUSES}"
    )
});

/// Messages beyond a cursor (`$2`), up to the first one that was sent after a time (`$5`), at most
/// `$4`. None is newer than the newest one (`$3`) that the clock's row was read with: all positions are
/// read from the same messages, although others are sent meanwhile.
static MESSAGES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {} FROM message WHERE account_id = $1 AND number > $2 AND number <= coalesce( \
         (SELECT number FROM (SELECT number, sent_at FROM message WHERE account_id = $1 AND \
         number > $2 AND number <= $3 ORDER BY number LIMIT $4) AS first WHERE sent_at > $5 \
         ORDER BY number LIMIT 1), $3) ORDER BY number LIMIT $4",
        SentMessage::COLUMNS
    )
});

pub(super) async fn lease(
    transaction: &mut Transaction,
    id: WebhookId,
    limit: usize,
    at: Timestamp,
    lease_until: Timestamp,
) -> Result<StatusLease, StoreError> {
    // Deliveries to the endpoint go on meanwhile; only its deletion waits.
    let Some(webhook) = webhooks::kept(&mut Tx::new(transaction), id).await? else {
        return Ok(nothing_due(transaction, None));
    };
    let Some(row) = transaction.query_one(&CLOCK, &[&key(id.get())]).await? else {
        return Ok(nothing_due(transaction, None));
    };
    if let Some(until) = webhook.resting_until.filter(|until| *until > at) {
        return Ok(nothing_due(transaction, Some(until)));
    }
    let LockedCursor { cursor, leased_until, is_new } = lock_cursor(transaction, &webhook).await?;
    if let Some(until) = leased_until.filter(|until| *until > at) {
        return Ok(nothing_due(transaction, Some(until)));
    }
    let (clock, last_message) = (clock(&row)?, number(&row, "last_message")?);
    let now = clock.now(at);
    let mut messages = [const { Vec::new() }; _];
    let positions = cursor.numbers().into_iter().zip(latest_due_sends(now));
    for (messages, (after, latest)) in messages.iter_mut().zip(positions) {
        let range = (after, last_message);
        *messages = messages_after(transaction, webhook.account, range, latest, limit).await?;
    }
    let pending =
        PendingStatuses { account: webhook.account, cursor, last_message, messages, limit };
    let next = pending.next(now);
    if next.statuses.is_empty() {
        if next.cursor != cursor {
            write_cursor(transaction, id, next.cursor).await?;
        } else if !is_new {
            transaction.set_rollback_only();
        }
        return Ok(next.nothing_due(clock, at));
    }
    let update = "UPDATE status_cursor SET leased_until = $2 WHERE webhook_id = $1";
    transaction.execute(update, &[&key(id.get()), &millis(lease_until)]).await?;
    Ok(StatusLease::Due(Box::new(DueStatuses { webhook, statuses: next.statuses })))
}

/// The outcome of a lease that has written nothing: the locks need not be synced.
fn nothing_due(transaction: &mut Transaction, until: Option<Timestamp>) -> StatusLease {
    transaction.set_rollback_only();
    StatusLease::NothingDue(until)
}

/// The cursor of an endpoint, locked until the transaction ends.
struct LockedCursor {
    cursor: StatusCursor,
    leased_until: Option<Timestamp>,
    /// Whether it was missing before.
    is_new: bool,
}

/// Locks the cursor of an endpoint. The first lease inserts it: the endpoint gets the statuses of messages that are not older than itself.
async fn lock_cursor(
    transaction: &Transaction,
    webhook: &Webhook,
) -> Result<LockedCursor, StoreError> {
    let id = key(webhook.id.get());
    let lock = "SELECT sent, delivered, read, leased_until FROM status_cursor \
                WHERE webhook_id = $1 FOR NO KEY UPDATE";
    let mut row = transaction.query_one(lock, &[&id]).await?;
    let is_new = row.is_none();
    if is_new {
        let insert = "INSERT INTO status_cursor (webhook_id, sent, delivered, read) \
                      SELECT $1, newest, newest, newest FROM (SELECT coalesce((SELECT number \
                      FROM message WHERE account_id = $2 AND created_at < $3 \
                      ORDER BY number DESC LIMIT 1), 0) AS newest) AS messages \
                      ON CONFLICT DO NOTHING";
        let created_at = millis(webhook.created_at);
        let values: Values<'_> = &[&id, &key(webhook.account.get()), &created_at];
        transaction.execute(insert, values).await?;
        row = transaction.query_one(lock, &[&id]).await?;
    }
    let row = row.ok_or_else(no_account)?;
    let (cursor, leased_until) =
        (StatusCursor::from_row(&row)?, optional_timestamp(&row, "leased_until")?);
    Ok(LockedCursor { cursor, leased_until, is_new })
}

async fn messages_after(
    transaction: &Transaction,
    account: AccountId,
    (after, through): (u64, u64),
    latest: Timestamp,
    limit: usize,
) -> Result<Vec<SentMessage>, StoreError> {
    if after >= through {
        return Ok(Vec::new());
    }
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values: Values<'_> =
        &[&key(account.get()), &key(after), &key(through), &limit, &millis(latest)];
    transaction.query(&MESSAGES, values).await?.iter().map(SentMessage::read).collect()
}

async fn write_cursor(
    transaction: &Transaction,
    id: WebhookId,
    cursor: StatusCursor,
) -> Result<(), StoreError> {
    let [sent, delivered, read] = cursor.numbers().map(key);
    let update = "UPDATE status_cursor SET sent = $2, delivered = $3, read = $4 \
                  WHERE webhook_id = $1";
    transaction.execute(update, &[&key(id.get()), &sent, &delivered, &read]).await.map(drop)
}

pub(super) async fn record(
    transaction: &Transaction,
    id: WebhookId,
    lease_until: Timestamp,
    through: StatusCursor,
) -> Result<RecordStatusesOutcome, StoreError> {
    let [sent, delivered, read] = through.numbers().map(key);
    let update = "UPDATE status_cursor SET sent = $3, delivered = $4, read = $5, \
                  leased_until = NULL WHERE webhook_id = $1 AND leased_until = $2";
    let values: Values<'_> = &[&key(id.get()), &millis(lease_until), &sent, &delivered, &read];
    Ok(match transaction.execute(update, values).await? {
        0 => RecordStatusesOutcome::LeaseLost,
        _ => RecordStatusesOutcome::Recorded,
    })
}
