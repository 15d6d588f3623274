//! Replays: delivers events again.

use galley_domain::id::{AccountId, WebhookId};
use jiff::{SignedDuration, Timestamp};

use crate::{
    EventSubject, ReadKind, Replay, ReplayOutcome, Store, StoreError, StoreFuture, Webhook,
    WebhookKey,
    engine::{Dialect, ReadPath, Tx, values},
    events,
    stored_row::{Row, StoredRow as _},
    webhooks::{locked, oldest_event},
};

/// Finds the first event at or after a time.
const FIRST_SINCE: &str = "SELECT min(seq) AS first FROM event WHERE account_id = $1 AND at >= $2";

/// Finds the same on PostgreSQL. Timestamps grow with the event numbers, except for clock skew between
/// instances: a binary search skips events older than the time by more than [`MAX_CLOCK_SKEW`], and the
/// rest is scanned in order.
const SEARCH_SINCE: &str = "WITH RECURSIVE half (low, high) AS ( \
       SELECT (SELECT min(seq) FROM event WHERE account_id = $1), last_seq \
       FROM account WHERE id = $1 \
     UNION ALL \
       SELECT CASE WHEN older THEN middle + 1 ELSE low END, \
       CASE WHEN older THEN high ELSE middle END FROM (SELECT low, high, \
         (low + high) / 2 AS middle, (SELECT at < $3 FROM event WHERE account_id = $1 AND \
         seq = (half.low + half.high) / 2) AS older FROM half WHERE low < high) AS halved) \
     SELECT (SELECT last_seq FROM account WHERE id = $1) AS newest, (SELECT seq FROM event \
     WHERE account_id = $1 AND seq >= (SELECT max(low) FROM half) AND at >= $2 \
     ORDER BY seq LIMIT 1) AS first";

/// Upper bound for the clock skew between instances.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_hours(1);

fn first(row: &Row<'_>) -> Result<Option<u64>, StoreError> {
    row.optional("first", |seq: i64| u64::try_from(seq).ok())
}

impl Store {
    /// Queues events for another delivery to an endpoint: a single one by its row, many by moving the
    /// cursor back.
    pub fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        replay: Replay,
        at: Timestamp,
    ) -> StoreFuture<'_, ReplayOutcome> {
        Box::pin(async move {
            let mut found = None;
            if let Replay::Since(since) = replay
                && self.dialect() == Dialect::Sqlite
            {
                // This search can be slow, so the writer does not make it.
                let path = ReadPath::Account(ReadKind::Feed, account);
                let values = values![account, since];
                found =
                    self.read_one("first_event_since", path, FIRST_SINCE, values, first).await?;
            }
            let input = (WebhookKey { account, id }, replay, at, found.flatten());
            self.write("replay", input, |&(key, replay, at, found), tx| {
                Box::pin(async move {
                    let Some(webhook) = locked(tx, key).await? else {
                        return Ok(ReplayOutcome::NoWebhook);
                    };
                    let since = match replay {
                        Replay::One(seq) => return replay_one(tx, &webhook, seq, at).await,
                        Replay::Since(since) => since,
                    };
                    let (first, newest) = match tx.dialect() {
                        Dialect::Sqlite => (found, tx.newest_event(webhook.account)?),
                        Dialect::Postgres => search(tx, &webhook, since).await?,
                    };
                    let (Some(first), Some(newest)) = (first, newest) else {
                        return Ok(ReplayOutcome::Queued(0));
                    };
                    let cursor = webhook.cursor.min(first.saturating_sub(1));
                    let update = "UPDATE webhook SET cursor = $2 WHERE id = $1";
                    tx.defer(update, &values![webhook.id, cursor])?;
                    Ok(ReplayOutcome::Queued(newest.saturating_sub(cursor)))
                })
            })
            .await
        })
    }
}

/// The first event since a time, and the newest one.
async fn search(
    tx: &mut Tx<'_>,
    webhook: &Webhook,
    since: Timestamp,
) -> Result<(Option<u64>, Option<u64>), StoreError> {
    let before = since.saturating_sub(MAX_CLOCK_SKEW).unwrap_or(Timestamp::MIN);
    let values = values![webhook.account, since, before];
    let found = tx
        .query_one(SEARCH_SINCE, &values, |row| Ok((first(row)?, Some(row.number("newest")?))))
        .await?;
    Ok(found.unwrap_or_default())
}

/// Schedules one event for delivery now, ahead of other events of its template. A delivery that is
/// already due or scheduled for a retry is attempted at once.
async fn replay_one(
    tx: &mut Tx<'_>,
    webhook: &Webhook,
    seq: u64,
    at: Timestamp,
) -> Result<ReplayOutcome, StoreError> {
    let account = webhook.account;
    let find = events::one(tx.dialect());
    let found = tx.query_one(&find, &values![account, seq], |row| events::event(row)).await?;
    let Some(event) = found else {
        let oldest = oldest_event(tx, account).await?;
        let is_deleted = (1..oldest).contains(&seq);
        return Ok(if is_deleted {
            ReplayOutcome::Expired(oldest)
        } else {
            ReplayOutcome::NoEvent
        });
    };
    // The event joins the queue of its template, or that of the events without one.
    let (template, status) = match event.subject {
        EventSubject::Template { id, status, .. } => (id.get(), Some(status)),
        EventSubject::Webhook { .. } | EventSubject::Upstream { .. } => (0, None),
    };
    if !webhook.format.includes(event.kind, status) {
        return Ok(ReplayOutcome::Queued(0));
    }
    let insert = "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
                  VALUES ($1, $2, $3, 'waiting', 0, $4) \
                  ON CONFLICT (webhook_id, seq) DO UPDATE SET due_at = $4, \
                  attempts = CASE WHEN delivery.status = 'waiting' THEN delivery.attempts ELSE 0 END, \
                  leased_until = CASE WHEN delivery.status = 'waiting' THEN delivery.leased_until END, \
                  status = 'waiting' WHERE delivery.status <> 'waiting' OR delivery.due_at IS NOT NULL";
    tx.defer(insert, &values![webhook.id, seq, template, at])?;
    Ok(ReplayOutcome::Queued(1))
}
