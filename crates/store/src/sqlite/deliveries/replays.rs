//! SQL for replays: queues events for redelivery to an endpoint.

use galley_domain::id::{AccountId, WebhookId};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::{
    ReplayOutcome, StoreError,
    decisions::deliveries::{replay_refusal, replayed_template, rewind},
    sqlite::{
        columns::{key, millis, optional},
        events, webhooks,
        writer::Batch,
    },
};

/// Queues one event for redelivery now, ahead of the template's other deliveries. A delivery that
/// is already due or scheduled for a retry becomes due now.
fn replay_one(
    connection: &Connection,
    id: WebhookId,
    seq: u64,
    template: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let values = params![key(id.get()), key(seq), key(template), millis(at)];
    connection
        .prepare_cached(
            "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
             VALUES (?1, ?2, ?3, 'waiting', 0, ?4) \
             ON CONFLICT (webhook_id, seq) DO UPDATE SET due_at = ?4, \
             attempts = CASE WHEN status = 'waiting' THEN attempts ELSE 0 END, \
             leased_until = CASE WHEN status = 'waiting' THEN leased_until END, \
             status = 'waiting' WHERE status <> 'waiting' OR due_at IS NOT NULL",
        )?
        .execute(values)?;
    Ok(())
}

/// The sequence number of the account's first event since a time, if there is one.
pub(in crate::sqlite) fn first_since(
    connection: &Connection,
    account: AccountId,
    since: Timestamp,
) -> Result<Option<u64>, StoreError> {
    let mut query = connection
        .prepare_cached("SELECT min(seq) AS first FROM event WHERE account_id = ?1 AND at >= ?2")?;
    let mut rows = query.query([key(account.get()), millis(since)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    optional(row, "first", |seq: i64| u64::try_from(seq).ok())
}

/// Queues the events from `first` on for redelivery, by moving the cursor back.
pub(in crate::sqlite) fn replay_from(
    batch: &mut Batch,
    account: AccountId,
    id: WebhookId,
    first: Option<u64>,
) -> Result<ReplayOutcome, StoreError> {
    let Some(webhook) = webhooks::one(batch.connection(), account, id)? else {
        return Ok(ReplayOutcome::NoWebhook);
    };
    let Some(first) = first else { return Ok(ReplayOutcome::Queued(0)) };
    let (cursor, count) = rewind(&webhook, first, batch.newest_seq(account)?);
    batch
        .connection()
        .prepare_cached("UPDATE webhook SET cursor = ?2 WHERE id = ?1")?
        .execute([key(id.get()), key(cursor)])?;
    Ok(ReplayOutcome::Queued(count))
}

/// Queues a single event for redelivery, by its row.
pub(in crate::sqlite) fn replay_event(
    batch: &mut Batch,
    account: AccountId,
    id: WebhookId,
    seq: u64,
    at: Timestamp,
) -> Result<ReplayOutcome, StoreError> {
    let Some(webhook) = webhooks::one(batch.connection(), account, id)? else {
        return Ok(ReplayOutcome::NoWebhook);
    };
    let Some(event) = events::one(batch.connection(), account, seq)? else {
        return Ok(replay_refusal(seq, events::oldest(batch.connection(), account)?));
    };
    let Some(template) = replayed_template(&webhook, &event) else {
        return Ok(ReplayOutcome::Queued(0));
    };
    replay_one(batch.connection(), id, seq, template, at)?;
    Ok(ReplayOutcome::Queued(1))
}
