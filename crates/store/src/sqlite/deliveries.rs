//! SQL for deliveries: creates them from events, finds the due ones, and leases them to workers.

mod attempts;
mod replay;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::{Status, lifecycle::EventType},
    webhook::{
        Format,
        delivery::{DOWN_AFTER_FAILURES, DeliveryStatus},
    },
};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::{
    SqliteStore,
    columns::{column, key, millis, number, optional, optional_timestamp, webhook_id},
    events, versions, webhooks,
    writer::Batch,
};
use crate::{
    Attempt, Delivery, DeliveryLease, DeliveryQuery, DeliveryStore, DueDelivery, DueWebhooks,
    Event, EventSubject, RecordAttemptOutcome, Replay, ReplayOutcome, StoreError, Version, Webhook,
};

#[async_trait]
impl DeliveryStore for SqliteStore {
    async fn deliveries(
        &self,
        account: AccountId,
        id: WebhookId,
        wanted: DeliveryQuery,
    ) -> Result<Option<Vec<Delivery>>, StoreError> {
        self.read_blocking(move |connection| page(connection, account, id, &wanted)).await
    }

    async fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        what: Replay,
        at: Timestamp,
    ) -> Result<ReplayOutcome, StoreError> {
        // Finding the first event since a timestamp can be slow, so the writer does not do it.
        let first = self
            .read_blocking(move |connection| first_to_replay(connection, account, what))
            .await?;
        self.writer.write(move |batch| replay(batch, account, id, what, first, at)).await
    }

    async fn due_webhooks(&self, at: Timestamp) -> Result<DueWebhooks, StoreError> {
        self.point_readers.read(|connection| due_webhooks(connection, at))
    }

    async fn lease_delivery(
        &self,
        id: WebhookId,
        at: Timestamp,
        lease_until: Timestamp,
    ) -> Result<DeliveryLease, StoreError> {
        self.writer.write(move |batch| lease(batch, id, at, lease_until)).await
    }

    async fn record_attempt(&self, attempt: Attempt) -> Result<RecordAttemptOutcome, StoreError> {
        self.writer.write(move |batch| record_attempt(batch, &attempt)).await
    }
}

pub(super) use attempts::record_attempt;
pub(super) use replay::{first_to_replay, replay};

/// Number of events that one fan-out reads.
const FAN_OUT_EVENTS: u64 = 256;

/// Maximum number of fan-outs in one transaction, for an endpoint that subscribes to few of the
/// events.
const MAX_FAN_OUTS: usize = 8;

/// The endpoints that have due deliveries or new events.
pub(super) fn due_webhooks(
    connection: &Connection,
    at: Timestamp,
) -> Result<DueWebhooks, StoreError> {
    // `ripe`: now, if a delivery is due and not leased; if all due ones are leased, the end of the
    // first lease.
    let mut query = connection.prepare_cached(
        "SELECT w.id, w.resting_until, w.cursor < a.last_seq AS behind, \
         CASE WHEN EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id \
           AND d.due_at <= ?1 AND coalesce(d.leased_until, 0) <= ?1) THEN ?1 \
         ELSE (SELECT min(d.leased_until) FROM delivery d \
           WHERE d.webhook_id = w.id AND d.due_at <= ?1) END AS ripe, \
         (SELECT min(d.due_at) FROM delivery d \
          WHERE d.webhook_id = w.id AND d.due_at > ?1) AS later \
         FROM webhook w JOIN account a ON a.id = w.account_id \
         WHERE w.disabled_at IS NULL AND a.disabled_at IS NULL ORDER BY w.id",
    )?;
    let mut rows = query.query([millis(at)])?;
    let mut due = DueWebhooks::default();
    while let Some(row) = rows.next()? {
        let behind = row.get::<_, bool>("behind")?.then_some(at);
        let ready = [behind, optional_timestamp(row, "ripe")?, optional_timestamp(row, "later")?];
        let Some(first) = ready.into_iter().flatten().min() else { continue };
        let first = first.max(optional_timestamp(row, "resting_until")?.unwrap_or(first));
        if first <= at {
            due.now.push(webhook_id(row, "id")?);
        } else {
            due.next_at = Some(due.next_at.map_or(first, |next| next.min(first)));
        }
    }
    Ok(due)
}

/// Leases the endpoint's next due delivery to the calling worker, until `lease`.
pub(super) fn lease(
    batch: &mut Batch<'_>,
    id: WebhookId,
    at: Timestamp,
    lease: Timestamp,
) -> Result<DeliveryLease, StoreError> {
    let Some(webhook) = active_webhook(batch.connection(), id)? else {
        return Ok(DeliveryLease::NothingDue(None));
    };
    if let Some(until) = webhook.resting_until.filter(|until| *until > at) {
        return Ok(DeliveryLease::NothingDue(Some(until)));
    }
    if let Some(until) = probe_lease(batch.connection(), id, at)? {
        return Ok(DeliveryLease::NothingDue(Some(until)));
    }
    let mut first = first_due(batch.connection(), id, at)?;
    let (mut cursor, mut fan_outs, mut created) = (webhook.cursor, 0, 0);
    let newest = batch.newest_seq(webhook.account)?;
    // Skip events that the endpoint does not subscribe to, but insert the rows of only one fan-out.
    while first.is_none() && cursor < newest && fan_outs < MAX_FAN_OUTS && created == 0 {
        (cursor, created) = fan_out(batch, &webhook, cursor, newest, at)?;
        first = first_due(batch.connection(), id, at)?;
        fan_outs += 1;
    }
    let Some((seq, attempts)) = first else {
        // Events beyond the cursor are left for the next call.
        let next = if cursor < newest { Some(at) } else { next_due(batch.connection(), id, at)? };
        return Ok(DeliveryLease::NothingDue(next));
    };
    let (event, version) = match payload(batch.connection(), &webhook, seq) {
        Ok(Some(payload)) => payload,
        // The event or its version was deleted: there is nothing to deliver.
        Ok(None) => {
            delete(batch.connection(), id, seq, at)?;
            return Ok(DeliveryLease::NothingDue(Some(at)));
        }
        // A damaged event must not hold up the later ones.
        Err(StoreError::Damaged(cause)) => {
            tracing::error!(webhook = %id, event = seq, %cause, "an event cannot be delivered");
            fail_damaged(batch.connection(), id, seq, at)?;
            return Ok(DeliveryLease::NothingDue(Some(at)));
        }
        Err(error) => return Err(error),
    };
    batch
        .connection()
        .prepare_cached("UPDATE delivery SET leased_until = ?3 WHERE webhook_id = ?1 AND seq = ?2")?
        .execute([key(id.get()), key(seq), millis(lease)])?;
    Ok(DeliveryLease::Due(Box::new(DueDelivery {
        webhook,
        event,
        version,
        attempts,
        lease_until: lease,
    })))
}

/// The event to deliver; `None` if it or its version was deleted.
fn payload(
    connection: &Connection,
    webhook: &Webhook,
    seq: u64,
) -> Result<Option<(Event, Option<Version>)>, StoreError> {
    match events::one(connection, webhook.account, seq)? {
        Some(event) => with_version(connection, webhook, event),
        None => Ok(None),
    }
}

/// An event with the version that the endpoint's format includes; `None` if that version was
/// deleted.
fn with_version(
    connection: &Connection,
    webhook: &Webhook,
    event: Event,
) -> Result<Option<(Event, Option<Version>)>, StoreError> {
    let edit = matches!(event.kind, EventType::Edited | EventType::CategoryChanged);
    match event.subject {
        EventSubject::Template { id, version, .. }
            if edit && webhook.format == Format::Whatsapp =>
        {
            let version = versions::even_if_deleted(connection, id, version)?;
            Ok(version.map(|version| (event, Some(version))))
        }
        _ => Ok(Some((event, None))),
    }
}

/// The endpoint, unless it or its account is disabled.
fn active_webhook(connection: &Connection, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
    let Some(webhook) = webhooks::by_id(connection, id)? else { return Ok(None) };
    let account_is_disabled: bool = connection
        .prepare_cached("SELECT disabled_at IS NOT NULL FROM account WHERE id = ?1")?
        .query_row([key(webhook.account.get())], |row| row.get(0))?;
    Ok(Some(webhook).filter(|webhook| webhook.disabled.is_none() && !account_is_disabled))
}

/// The end of the lease of the one delivery that probes an endpoint that is down. No other delivery
/// is attempted until then.
fn probe_lease(
    connection: &Connection,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT max(d.leased_until) AS until FROM webhook w JOIN delivery d ON d.webhook_id = w.id \
         WHERE w.id = ?1 AND w.failures >= ?3 AND d.due_at <= ?2 AND d.leased_until > ?2",
    )?;
    let mut rows = query.query(params![key(id.get()), millis(at), DOWN_AFTER_FAILURES])?;
    rows.next()?.map_or(Ok(None), |row| optional_timestamp(row, "until"))
}

/// Sequence number and attempts of the first delivery that is due and not leased.
fn first_due(
    connection: &Connection,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<(u64, u32)>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT seq, attempts FROM delivery WHERE webhook_id = ?1 AND due_at <= ?2 \
         AND coalesce(leased_until, 0) <= ?2 ORDER BY due_at, seq LIMIT 1",
    )?;
    let mut rows = query.query([key(id.get()), millis(at)])?;
    rows.next()?.map(|row| Ok((number(row, "seq")?, row.get("attempts")?))).transpose()
}

/// When the next delivery becomes available: a lease ends, or a retry is due.
fn next_due(
    connection: &Connection,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT (SELECT min(leased_until) FROM delivery WHERE webhook_id = ?1 AND due_at <= ?2) \
         AS lease_expires_at, (SELECT min(due_at) FROM delivery WHERE webhook_id = ?1 AND \
         due_at > ?2) AS due",
    )?;
    let mut rows = query.query([key(id.get()), millis(at)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let times = [optional_timestamp(row, "lease_expires_at")?, optional_timestamp(row, "due")?];
    Ok(times.into_iter().flatten().min())
}

/// Creates deliveries for the next events that the endpoint subscribes to. Returns the new cursor
/// and the number of deliveries created.
fn fan_out(
    batch: &mut Batch<'_>,
    webhook: &Webhook,
    cursor: u64,
    newest: u64,
    at: Timestamp,
) -> Result<(u64, usize), StoreError> {
    let to = newest.min(cursor + FAN_OUT_EVENTS);
    let connection = batch.connection();
    let mut query = connection.prepare_cached(
        "SELECT seq, type, template_id, status FROM event \
         WHERE account_id = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq",
    )?;
    let mut rows = query.query([key(webhook.account.get()), key(cursor), key(to)])?;
    let mut created = 0;
    while let Some(row) = rows.next()? {
        let kind = column(row, "type", |value: String| EventType::parse(&value))?;
        let status = row.get_ref("status")?.as_str().ok().and_then(Status::parse);
        let is_subscribed = webhook.events.is_empty() || webhook.events.contains(&kind);
        if is_subscribed && webhook.format.includes(kind, status) {
            enqueue(connection, webhook.id, row.get("seq")?, row.get("template_id")?, at)?;
            created += 1;
        }
    }
    connection
        .prepare_cached("UPDATE webhook SET cursor = ?2 WHERE id = ?1")?
        .execute([key(webhook.id.get()), key(to)])?;
    Ok((to, created))
}

/// Queues a delivery behind the template's earlier ones. A finished delivery is queued again.
fn enqueue(
    connection: &Connection,
    id: WebhookId,
    seq: i64,
    template: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
             VALUES (?1, ?2, ?3, 'waiting', 0, CASE WHEN EXISTS (SELECT 1 FROM delivery \
             WHERE webhook_id = ?1 AND template_id = ?3 AND status = 'waiting') \
             THEN NULL ELSE ?4 END) \
             ON CONFLICT (webhook_id, seq) DO UPDATE SET status = 'waiting', attempts = 0, \
             due_at = excluded.due_at, leased_until = NULL, answer = NULL, failure = NULL \
             WHERE status <> 'waiting'",
        )?
        .execute(params![key(id.get()), seq, template, millis(at)])?;
    Ok(())
}

/// Makes the template's first waiting delivery due now.
pub(super) fn make_next_due(
    connection: &Connection,
    id: WebhookId,
    template: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE delivery SET due_at = ?3 WHERE webhook_id = ?1 AND due_at IS NULL AND seq = \
             (SELECT min(seq) FROM delivery WHERE webhook_id = ?1 AND template_id = ?2 \
              AND status = 'waiting')",
        )?
        .execute(params![key(id.get()), template, millis(at)])?;
    Ok(())
}

/// Deletes a delivery and makes the template's next one due.
fn delete(
    connection: &Connection,
    id: WebhookId,
    seq: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let template: i64 = connection
        .prepare_cached(
            "DELETE FROM delivery WHERE webhook_id = ?1 AND seq = ?2 RETURNING template_id",
        )?
        .query_row([key(id.get()), key(seq)], |row| row.get(0))?;
    make_next_due(connection, id, template, at)
}

/// Ends a delivery whose event is damaged. A replay can repeat it after a restore.
fn fail_damaged(
    connection: &Connection,
    id: WebhookId,
    seq: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let template: i64 = connection
        .prepare_cached(
            "UPDATE delivery SET status = ?3, due_at = NULL, leased_until = NULL, failure = ?4 \
             WHERE webhook_id = ?1 AND seq = ?2 RETURNING template_id",
        )?
        .query_row(
            params![
                key(id.get()),
                key(seq),
                DeliveryStatus::Failed.as_str(),
                "the stored event is damaged"
            ],
            |row| row.get(0),
        )?;
    make_next_due(connection, id, template, at)
}

/// One page of the endpoint's deliveries, newest event first.
pub(super) fn page(
    connection: &Connection,
    account: AccountId,
    id: WebhookId,
    wanted: &DeliveryQuery,
) -> Result<Option<Vec<Delivery>>, StoreError> {
    if webhooks::one(connection, account, id)?.is_none() {
        return Ok(None);
    }
    let columns = "SELECT d.*, e.type FROM delivery d \
         JOIN event e ON e.account_id = ?1 AND e.seq = d.seq WHERE d.webhook_id = ?2";
    let status = if wanted.status.is_some() { " AND d.status = ?5" } else { " AND ?5 IS NULL" };
    let text = format!("{columns} AND d.seq < ?3{status} ORDER BY d.seq DESC LIMIT ?4");
    let mut query = connection.prepare_cached(&text)?;
    let mut rows = query.query(params![
        key(account.get()),
        key(id.get()),
        wanted.before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX)),
        i64::try_from(wanted.limit).unwrap_or(i64::MAX),
        wanted.status.map(DeliveryStatus::as_str),
    ])?;
    let mut deliveries = Vec::new();
    while let Some(row) = rows.next()? {
        deliveries.push(delivery(row)?);
    }
    Ok(Some(deliveries))
}

fn delivery(row: &Row<'_>) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        seq: number(row, "seq")?,
        kind: column(row, "type", |value: String| EventType::parse(&value))?,
        template: TemplateId::new(number(row, "template_id")?),
        status: column(row, "status", |value: String| DeliveryStatus::parse(&value))?,
        attempts: row.get("attempts")?,
        attempted_at: optional_timestamp(row, "attempted_at")?,
        due_at: optional_timestamp(row, "due_at")?,
        response_status: optional(row, "answer", |status: i64| u16::try_from(status).ok())?,
        failure: row.get("failure")?,
    })
}
