//! Statuses of messages: which endpoints have due ones, and the lease of the next.

mod pending;

use std::ops::Range;

use galley_domain::id::WebhookId;
use jiff::Timestamp;

use self::pending::{
    EndpointStatuses, PendingStatuses, RECEIVES_STATUSES, SentMessage, latest_due_sends,
};
use super::{clock, lock};
use crate::{
    DueStatuses, Fenced, StatusCursor, StatusLease, Store, StoreError, StoreFuture, WebhookKey,
    encoding::key,
    engine::{ReadPath, Tx, Value, values},
    stored_row::{Row, StoredRow as _},
    webhooks,
};

impl Store {
    /// The endpoints to which statuses may have to be sent, of all accounts.
    pub fn endpoints_with_statuses(&self, at: Timestamp) -> StoreFuture<'_, Vec<WebhookKey>> {
        Box::pin(async move {
            let first = |position: &str| {
                format!(
                    "(SELECT m.sent_at FROM message m WHERE m.account_id = w.account_id AND \
                     m.number > s.{position} ORDER BY m.number LIMIT 1) AS first_{position}"
                )
            };
            let select = format!(
                "SELECT w.id, w.account_id, w.resting_until, c.at, c.since, c.last_message, s.sent, \
             s.delivered, s.read, s.leased_until, {}, {}, {} FROM emulator_clock c \
             JOIN account a ON a.id = c.account_id JOIN webhook w ON w.account_id = c.account_id \
             LEFT JOIN status_cursor s ON s.webhook_id = w.id \
             WHERE coalesce(s.read, 0) < c.last_message AND {RECEIVES_STATUSES} ORDER BY w.id",
                first("sent"),
                first("delivered"),
                first("read"),
            );
            let (method, path) = ("endpoints_with_statuses", ReadPath::Background);
            let found = self.read(method, path, select, [], |row| {
                let (account, id) = (row.account_id("account_id")?, row.webhook_id("id")?);
                Ok((WebhookKey { account, id }, EndpointStatuses::read(row)?))
            });
            let found = found.await?.into_iter().filter(|(_, statuses)| statuses.has_work(at));
            Ok(found.map(|(endpoint, _)| endpoint).collect())
        })
    }

    /// Leases the next statuses of an endpoint, at most `limit`.
    pub fn lease_statuses(
        &self,
        endpoint: WebhookId,
        limit: usize,
        times: Range<Timestamp>,
    ) -> StoreFuture<'_, StatusLease> {
        self.write("lease_statuses", (endpoint, limit, times), |(endpoint, limit, times), tx| {
            Box::pin(lease(tx, *endpoint, *limit, times))
        })
    }

    /// Records that all leased statuses up to these were sent, and ends the lease.
    pub fn record_statuses(
        &self,
        endpoint: WebhookId,
        lease_until: Timestamp,
        through: StatusCursor,
    ) -> StoreFuture<'_, Fenced<()>> {
        let input = (endpoint, lease_until, through);
        self.write("record_statuses", input, |&(endpoint, lease_until, through), tx| {
            Box::pin(async move {
                let [sent, delivered, read] = through.numbers();
                let update = "UPDATE status_cursor SET sent = $3, delivered = $4, read = $5, \
                              leased_until = NULL WHERE webhook_id = $1 AND leased_until = $2";
                let values = values![key(endpoint.get()), lease_until, sent, delivered, read];
                Ok(match tx.execute(update, &values).await? {
                    0 => Fenced::LeaseLost,
                    _ => Fenced::Done(()),
                })
            })
        })
    }
}

async fn lease(
    tx: &mut Tx<'_>,
    endpoint: WebhookId,
    limit: usize,
    &Range { start: at, end: until }: &Range<Timestamp>,
) -> Result<StatusLease, StoreError> {
    // Deliveries to the endpoint go on meanwhile; only its deletion waits.
    let Some(webhook) = webhooks::kept(tx, endpoint).await? else {
        return Ok(nothing_due(tx, None));
    };
    let select = format!(
        "SELECT c.at, c.since, c.last_message FROM webhook w JOIN account a \
         ON a.id = w.account_id JOIN emulator_clock c ON c.account_id = a.id \
         WHERE w.id = $1 AND {RECEIVES_STATUSES}"
    );
    let values = values![key(endpoint.get())];
    let found =
        tx.query_one(&select, &values, |row| Ok((clock(row)?, row.number("last_message")?)));
    let Some((clock, last_message)) = found.await? else { return Ok(nothing_due(tx, None)) };
    if let Some(until) = webhook.resting_until.filter(|until| *until > at) {
        return Ok(nothing_due(tx, Some(until)));
    }
    let id = key(webhook.id.get());
    let select = format!(
        "SELECT sent, delivered, read, leased_until FROM status_cursor WHERE webhook_id = $1{}",
        lock(tx.dialect())
    );
    let decode =
        |row: &Row<'_>| Ok((StatusCursor::from_row(row)?, row.optional_timestamp("leased_until")?));
    let mut found = tx.query_one(&select, &values![id], decode).await?;
    let is_new = found.is_none();
    if is_new {
        // The endpoint gets the statuses of messages that are not older than itself. Another instance may
        // insert the cursor meanwhile: then this statement waits for it, and locks its row.
        let insert = "INSERT INTO status_cursor (webhook_id, sent, delivered, read) \
                      SELECT $1, newest, newest, newest FROM (SELECT coalesce((SELECT number \
                      FROM message WHERE account_id = $2 AND created_at < $3 \
                      ORDER BY number DESC LIMIT 1), 0) AS newest) AS messages WHERE true \
                      ON CONFLICT (webhook_id) DO UPDATE SET sent = status_cursor.sent \
                      RETURNING sent, delivered, read, leased_until";
        let values = values![id, webhook.account, webhook.created_at];
        found = tx.query_one(insert, &values, decode).await?;
    }
    let Some((cursor, leased_until)) = found else { return Ok(nothing_due(tx, None)) };
    if let Some(until) = leased_until.filter(|until| *until > at) {
        return Ok(nothing_due(tx, Some(until)));
    }
    let now = clock.now(at);
    let account = webhook.account;
    let mut messages = [const { Vec::new() }; _];
    let positions = cursor.numbers().into_iter().zip(latest_due_sends(now));
    for (messages, (after, latest)) in messages.iter_mut().zip(positions) {
        if after < last_message {
            let limit = Value::size(limit);
            let values = values![account, after, last_message, limit, latest];
            *messages = tx.query(&due_messages(), &values, SentMessage::read).await?;
        }
    }
    let pending = PendingStatuses { account, cursor, last_message, messages, limit };
    let next = pending.next(now);
    if next.statuses.is_empty() {
        if next.cursor != cursor {
            let [sent, delivered, read] = next.cursor.numbers();
            let update = "UPDATE status_cursor SET sent = $2, delivered = $3, read = $4 \
                          WHERE webhook_id = $1";
            tx.defer(update, &values![id, sent, delivered, read])?;
        } else if !is_new {
            tx.undo();
        }
        let next_at = next.next_at.and_then(|next_at| clock.real_time_of(next_at, at));
        return Ok(StatusLease::NothingDue(next_at));
    }
    let update = "UPDATE status_cursor SET leased_until = $2 WHERE webhook_id = $1";
    tx.defer(update, &values![id, until])?;
    Ok(StatusLease::Due(Box::new(DueStatuses { webhook, statuses: next.statuses })))
}

/// The outcome of a lease that has written nothing: the locks need not be synced.
fn nothing_due(tx: &mut Tx<'_>, until: Option<Timestamp>) -> StatusLease {
    tx.refuse(StatusLease::NothingDue(until))
}

/// Messages beyond a cursor (`$2`), up to the first one that was sent after a time (`$5`), at most
/// `$4`. None is newer than the newest one (`$3`) that the clock's row was read with: all positions
/// are read from the same messages, although others are sent meanwhile.
fn due_messages() -> String {
    format!(
        "SELECT {} FROM message WHERE account_id = $1 AND number > $2 AND number <= coalesce( \
         (SELECT number FROM (SELECT number, sent_at FROM message WHERE account_id = $1 AND \
         number > $2 AND number <= $3 ORDER BY number LIMIT $4) AS ahead WHERE sent_at > $5 \
         ORDER BY number LIMIT 1), $3) ORDER BY number LIMIT $4",
        SentMessage::COLUMNS
    )
}
