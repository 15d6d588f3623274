//! Replays: delivers events again.

use galley_domain::id::{AccountId, WebhookId};
use jiff::{SignedDuration, Timestamp};

use crate::{
    Replay, ReplayOutcome, StoreError, Webhook,
    decisions::deliveries::{replay_refusal, replayed_template, rewind},
    postgres::{
        columns::{key, millis, number, optional},
        events,
        pool::Values,
        transaction::Transaction,
        webhooks,
    },
};

/// Finds the first event at or after a time. Timestamps grow with the event numbers, except for
/// clock skew between instances: a binary search skips events older than the time by more than
/// [`MAX_CLOCK_SKEW`], and the rest is scanned in order.
const FIRST_SINCE: &str = "WITH RECURSIVE half (low, high) AS ( \
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

/// Delivers events again: a single one by its row, many by moving the cursor back.
pub(in crate::postgres) async fn replay(
    transaction: &Transaction,
    account: AccountId,
    id: WebhookId,
    replay: Replay,
    at: Timestamp,
) -> Result<ReplayOutcome, StoreError> {
    let Some(webhook) = webhooks::lock_own(transaction, account, id).await? else {
        return Ok(ReplayOutcome::NoWebhook);
    };
    match replay {
        Replay::Since(since) => replay_since(transaction, &webhook, since).await,
        Replay::One(seq) => {
            let Some(event) = events::one_in(transaction, account, seq).await? else {
                return Ok(replay_refusal(seq, events::oldest(transaction, account).await?));
            };
            let Some(template) = replayed_template(&webhook, &event) else {
                return Ok(ReplayOutcome::Queued(0));
            };
            replay_one(transaction, id, seq, template, at).await?;
            Ok(ReplayOutcome::Queued(1))
        }
    }
}

/// Schedules one event for delivery now, ahead of other events of its template. A pending delivery
/// is attempted at once.
async fn replay_one(
    transaction: &Transaction,
    id: WebhookId,
    seq: u64,
    template: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
         VALUES ($1, $2, $3, 'waiting', 0, $4) \
         ON CONFLICT (webhook_id, seq) DO UPDATE SET due_at = $4, \
         attempts = CASE WHEN delivery.status = 'waiting' THEN delivery.attempts ELSE 0 END, \
         leased_until = CASE WHEN delivery.status = 'waiting' THEN delivery.leased_until END, \
         status = 'waiting' WHERE delivery.status <> 'waiting' OR delivery.due_at IS NOT NULL";
    let values: Values<'_> = &[&key(id.get()), &key(seq), &key(template), &millis(at)];
    transaction.execute(insert, values).await.map(drop)
}

async fn replay_since(
    transaction: &Transaction,
    webhook: &Webhook,
    since: Timestamp,
) -> Result<ReplayOutcome, StoreError> {
    let before = since.saturating_sub(MAX_CLOCK_SKEW).unwrap_or(Timestamp::MIN);
    let values: Values<'_> = &[&key(webhook.account.get()), &millis(since), &millis(before)];
    let Some(row) = transaction.query_one(FIRST_SINCE, values).await? else {
        return Ok(ReplayOutcome::Queued(0));
    };
    let first = optional(&row, "first", |seq: i64| u64::try_from(seq).ok())?;
    let Some(first) = first else { return Ok(ReplayOutcome::Queued(0)) };
    let (cursor, count) = rewind(webhook, first, number(&row, "newest")?);
    let update = "UPDATE webhook SET cursor = $2 WHERE id = $1";
    transaction.execute(update, &[&key(webhook.id.get()), &key(cursor)]).await?;
    Ok(ReplayOutcome::Queued(count))
}
