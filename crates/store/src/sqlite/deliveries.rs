//! SQL for deliveries: finds the endpoints that have work, and lists the deliveries of one.

mod attempts;
mod leases;
mod replays;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::delivery::DeliveryStatus,
};
use jiff::Timestamp;
use rusqlite::{Connection, params};

pub(super) use self::attempts::schedule_next;
use self::{
    attempts::record,
    leases::lease,
    replays::{first_since, replay_event, replay_from},
};
use super::{
    SqliteStore,
    columns::{key, millis},
    webhooks,
};
use crate::{
    Attempt, Delivery, DeliveryLease, DeliveryQuery, DeliveryStore, ReadKind, RecordAttemptOutcome,
    Replay, ReplayOutcome, StoreError, WebhooksWithWork,
    decisions::deliveries::{EndpointWork, delivery},
};

#[async_trait]
impl DeliveryStore for SqliteStore {
    async fn deliveries(
        &self,
        account: AccountId,
        id: WebhookId,
        wanted: DeliveryQuery,
    ) -> Result<Option<Vec<Delivery>>, StoreError> {
        let read = move |connection: &Connection| page(connection, account, id, &wanted);
        self.read_blocking(ReadKind::List, account, read).await
    }

    async fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        replay: Replay,
        at: Timestamp,
    ) -> Result<ReplayOutcome, StoreError> {
        match replay {
            Replay::One(seq) => {
                self.writer.write(move |batch| replay_event(batch, account, id, seq, at)).await
            }
            Replay::Since(since) => {
                // This search can be slow, so the writer does not do it.
                let find = move |connection: &Connection| first_since(connection, account, since);
                let first = self.read_blocking(ReadKind::Feed, account, find).await?;
                self.writer.write(move |batch| replay_from(batch, account, id, first)).await
            }
        }
    }

    async fn webhooks_with_work(&self, at: Timestamp) -> Result<WebhooksWithWork, StoreError> {
        self.point_readers.read(|connection| webhooks_with_work(connection, at))
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
        self.writer.write(move |batch| record(batch, &attempt)).await
    }
}

/// The endpoints that have due deliveries or new events.
pub(super) fn webhooks_with_work(
    connection: &Connection,
    at: Timestamp,
) -> Result<WebhooksWithWork, StoreError> {
    // `ripe`: now, if a delivery is due and not leased; if all due ones are leased, the end of the
    // first lease.
    let mut query = connection.prepare_cached(
        "SELECT w.id, w.account_id, w.resting_until, w.cursor < a.last_seq AS behind, \
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
    let mut due = WebhooksWithWork::default();
    while let Some(row) = rows.next()? {
        due.add(&EndpointWork::from_row(row)?, at);
    }
    Ok(due)
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
