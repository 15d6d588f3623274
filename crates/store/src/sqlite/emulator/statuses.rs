//! SQL for statuses of messages: which endpoints have due ones, and the lease of the next.

use galley_domain::id::{AccountId, WebhookId};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::{
    DueStatuses, RecordStatusesOutcome, StatusCursor, StatusLease, StoreError, WebhookKey,
    decisions::emulator::{
        EndpointStatuses, PendingStatuses, RECEIVES_STATUSES, SentMessage, clock, latest_due_sends,
    },
    engine::Tx,
    sqlite::{
        columns::{account_id, key, millis, number, optional_timestamp, webhook_id},
        statements::ready,
        writer::Batch,
    },
    webhooks,
};

pub(super) fn endpoints(
    connection: &Connection,
    at: Timestamp,
) -> Result<Vec<WebhookKey>, StoreError> {
    let first = |position: &str| {
        format!(
            "(SELECT m.sent_at FROM message m WHERE m.account_id = w.account_id AND \
             m.number > s.{position} ORDER BY m.number LIMIT 1) AS first_{position}"
        )
    };
    let mut query = connection.prepare_cached(&format!(
        "SELECT w.id, w.account_id, w.resting_until, c.at, c.since, c.last_message, s.sent, \
         s.delivered, s.read, s.leased_until, {}, {}, {} FROM emulator_clock c \
         JOIN account a ON a.id = c.account_id JOIN webhook w ON w.account_id = c.account_id \
         LEFT JOIN status_cursor s ON s.webhook_id = w.id \
         WHERE coalesce(s.read, 0) < c.last_message AND {RECEIVES_STATUSES} ORDER BY w.id",
        first("sent"),
        first("delivered"),
        first("read"),
    ))?;
    let mut rows = query.query([])?;
    let mut endpoints = Vec::new();
    while let Some(row) = rows.next()? {
        if EndpointStatuses::read(row)?.has_work(at) {
            let (account, id) = (account_id(row, "account_id")?, webhook_id(row, "id")?);
            endpoints.push(WebhookKey { account, id });
        }
    }
    Ok(endpoints)
}

pub(super) fn lease(
    batch: &mut Batch,
    id: WebhookId,
    limit: usize,
    at: Timestamp,
    lease_until: Timestamp,
) -> Result<StatusLease, StoreError> {
    let Some(webhook) = ready(webhooks::kept(&mut Tx::new(batch), id))? else {
        return Ok(StatusLease::NothingDue(None));
    };
    let connection = batch.connection();
    let mut query = connection.prepare_cached(&format!(
        "SELECT c.at, c.since, c.last_message, s.leased_until FROM webhook w \
         JOIN account a ON a.id = w.account_id JOIN emulator_clock c ON c.account_id = a.id \
         LEFT JOIN status_cursor s ON s.webhook_id = w.id WHERE w.id = ?1 AND {RECEIVES_STATUSES}"
    ))?;
    let mut rows = query.query([key(id.get())])?;
    let Some(row) = rows.next()? else { return Ok(StatusLease::NothingDue(None)) };
    let (clock, last_message) = (clock(row)?, number(row, "last_message")?);
    let other_lease = optional_timestamp(row, "leased_until")?;
    drop(rows);
    let waits_until = [other_lease, webhook.resting_until].into_iter().flatten().max();
    if let Some(until) = waits_until.filter(|until| *until > at) {
        return Ok(StatusLease::NothingDue(Some(until)));
    }
    let cursor = cursor(connection, (webhook.account, id), webhook.created_at)?;
    let now = clock.now(at);
    let mut messages = [const { Vec::new() }; _];
    let positions = cursor.numbers().into_iter().zip(latest_due_sends(now));
    for (messages, (number, latest)) in messages.iter_mut().zip(positions) {
        *messages = messages_after(connection, webhook.account, number, latest, limit)?;
    }
    let pending =
        PendingStatuses { account: webhook.account, cursor, last_message, messages, limit };
    let next = pending.next(now);
    if next.statuses.is_empty() {
        if next.cursor != cursor {
            write_cursor(connection, id, next.cursor)?;
        }
        return Ok(next.nothing_due(clock, at));
    }
    connection
        .prepare_cached("UPDATE status_cursor SET leased_until = ?2 WHERE webhook_id = ?1")?
        .execute([key(id.get()), millis(lease_until)])?;
    Ok(StatusLease::Due(Box::new(DueStatuses { webhook, statuses: next.statuses })))
}

/// The cursor of an endpoint. The first lease inserts it: the endpoint gets the statuses of messages
/// that are not older than itself.
fn cursor(
    connection: &Connection,
    (account, id): (AccountId, WebhookId),
    created_at: Timestamp,
) -> Result<StatusCursor, StoreError> {
    let mut query = connection
        .prepare_cached("SELECT sent, delivered, read FROM status_cursor WHERE webhook_id = ?1")?;
    let mut rows = query.query([key(id.get())])?;
    if let Some(row) = rows.next()? {
        return StatusCursor::from_row(row);
    }
    drop(rows);
    let mut newest = connection.prepare_cached(
        "SELECT number FROM message WHERE account_id = ?1 AND created_at < ?2 \
         ORDER BY number DESC LIMIT 1",
    )?;
    let mut rows = newest.query([key(account.get()), millis(created_at)])?;
    let newest = rows.next()?.map_or(Ok(0), |row| number(row, "number"))?;
    connection
        .prepare_cached(
            "INSERT INTO status_cursor (webhook_id, sent, delivered, read) VALUES (?1, ?2, ?2, ?2)",
        )?
        .execute([key(id.get()), key(newest)])?;
    Ok(StatusCursor::after(newest))
}

/// The messages beyond a number, up to the first one that was sent after `latest`, at most `limit`.
fn messages_after(
    connection: &Connection,
    account: AccountId,
    number: u64,
    latest: Timestamp,
    limit: usize,
) -> Result<Vec<SentMessage>, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT {} FROM message WHERE account_id = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
        SentMessage::COLUMNS
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![key(account.get()), key(number), limit])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let message = SentMessage::read(row)?;
        let is_last = message.sent_at > latest;
        messages.push(message);
        if is_last {
            break;
        }
    }
    Ok(messages)
}

fn write_cursor(
    connection: &Connection,
    id: WebhookId,
    cursor: StatusCursor,
) -> Result<(), StoreError> {
    let [sent, delivered, read] = cursor.numbers().map(key);
    connection
        .prepare_cached(
            "UPDATE status_cursor SET sent = ?2, delivered = ?3, read = ?4 WHERE webhook_id = ?1",
        )?
        .execute([key(id.get()), sent, delivered, read])?;
    Ok(())
}

pub(super) fn record(
    batch: &Batch,
    id: WebhookId,
    lease_until: Timestamp,
    through: StatusCursor,
) -> Result<RecordStatusesOutcome, StoreError> {
    let [sent, delivered, read] = through.numbers().map(key);
    let recorded = batch
        .connection()
        .prepare_cached(
            "UPDATE status_cursor SET sent = ?3, delivered = ?4, read = ?5, leased_until = NULL \
             WHERE webhook_id = ?1 AND leased_until = ?2",
        )?
        .execute([key(id.get()), millis(lease_until), sent, delivered, read])?;
    Ok(match recorded {
        0 => RecordStatusesOutcome::LeaseLost,
        _ => RecordStatusesOutcome::Recorded,
    })
}
