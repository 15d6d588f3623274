//! SQL for replays: queues events for redelivery to an endpoint.

use galley_domain::id::{AccountId, WebhookId};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::{
    Replay, ReplayOutcome, StoreError,
    decisions::deliveries::{refuse_replay, replayed_template, rewind},
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

/// The sequence number of the first event to replay, if it is still stored.
pub(in crate::sqlite) fn first_to_replay(
    connection: &Connection,
    account: AccountId,
    what: Replay,
) -> Result<Option<u64>, StoreError> {
    match what {
        Replay::One(seq) => Ok(events::one(connection, account, seq)?.map(|event| event.seq)),
        Replay::Since(since) => {
            let mut query = connection.prepare_cached(
                "SELECT min(seq) AS first FROM event WHERE account_id = ?1 AND at >= ?2",
            )?;
            let mut rows = query.query([key(account.get()), millis(since)])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            optional(row, "first", |seq: i64| u64::try_from(seq).ok())
        }
    }
}

/// Queues events for redelivery: a single event by its delivery row, several by moving the cursor
/// back.
pub(in crate::sqlite) fn replay(
    batch: &mut Batch<'_>,
    account: AccountId,
    id: WebhookId,
    what: Replay,
    first: Option<u64>,
    at: Timestamp,
) -> Result<ReplayOutcome, StoreError> {
    let Some(webhook) = webhooks::one(batch.connection(), account, id)? else {
        return Ok(ReplayOutcome::NoWebhook);
    };
    match (what, first) {
        (Replay::Since(_), None) => Ok(ReplayOutcome::Queued(0)),
        (Replay::Since(_), Some(first)) => {
            let (cursor, count) = rewind(&webhook, first, batch.newest_seq(account)?);
            batch
                .connection()
                .prepare_cached("UPDATE webhook SET cursor = ?2 WHERE id = ?1")?
                .execute([key(id.get()), key(cursor)])?;
            Ok(ReplayOutcome::Queued(count))
        }
        (Replay::One(_), Some(seq)) => {
            let Some(event) = events::one(batch.connection(), account, seq)? else {
                return Ok(ReplayOutcome::NoEvent);
            };
            let Some(template) = replayed_template(&webhook, &event) else {
                return Ok(ReplayOutcome::Queued(0));
            };
            replay_one(batch.connection(), id, seq, template, at)?;
            Ok(ReplayOutcome::Queued(1))
        }
        (Replay::One(seq), None) => {
            Ok(refuse_replay(seq, events::oldest(batch.connection(), account)?))
        }
    }
}
