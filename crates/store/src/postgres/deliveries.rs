//! Webhook deliveries, as SQL: events become deliveries of an endpoint, which are leased, attempted
//! and completed. The endpoint's row is locked while one of its deliveries is leased or recorded,
//! so that exactly one of any number of instances leases each delivery.

mod attempts;
mod leases;
mod replays;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::delivery::DeliveryStatus,
};
use jiff::Timestamp;

pub(super) use self::attempts::schedule_next;
use self::{attempts::record, leases::lease, replays::replay};
use super::{
    PostgresStore,
    columns::{key, millis},
    pipeline::Query,
    pool::{PgConnection, PgPools, Values},
    transaction::transact,
    webhooks,
};
use crate::{
    Attempt, Delivery, DeliveryLease, DeliveryQuery, DeliveryStore, ReadKind, RecordAttemptOutcome,
    Replay, ReplayOutcome, StoreError, WebhooksWithWork,
    decisions::deliveries::{EndpointWork, MAX_FAN_OUT_EVENTS, MIN_FAILURES_TO_PROBE, delivery},
};

#[async_trait]
impl DeliveryStore for PostgresStore {
    async fn deliveries(
        &self,
        account: AccountId,
        id: WebhookId,
        query: DeliveryQuery,
    ) -> Result<Option<Vec<Delivery>>, StoreError> {
        if webhooks::one(&self.pools, account, id).await?.is_none() {
            return Ok(None);
        }
        // A status that few deliveries have is looked for among all of them.
        let connection = self.acquire_for(ReadKind::Search, account).await?;
        page(&connection, account, id, &query).await.map(Some)
    }

    async fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        wanted: Replay,
        at: Timestamp,
    ) -> Result<ReplayOutcome, StoreError> {
        transact!(self, tx => replay(tx, account, id, wanted, at))
    }

    async fn webhooks_with_work(&self, at: Timestamp) -> Result<WebhooksWithWork, StoreError> {
        webhooks_with_work(&self.pools, at).await
    }

    async fn lease_delivery(
        &self,
        id: WebhookId,
        at: Timestamp,
        lease_until: Timestamp,
    ) -> Result<DeliveryLease, StoreError> {
        let (webhook, now, limit) = (key(id.get()), millis(at), i64::from(MAX_FAN_OUT_EVENTS));
        let reads: &[Query<'_>] = &[
            (webhooks::LOCK, &[&webhook]),
            (leases::ENDPOINT, &[&webhook, &now, &MIN_FAILURES_TO_PROBE]),
            (&leases::FIRST_DUE, &[&webhook, &now]),
            (leases::PENDING, &[&webhook, &now, &limit]),
        ];
        transact!(self, reads, tx, rows => lease(tx, rows, at, lease_until))
    }

    async fn record_attempt(&self, attempt: Attempt) -> Result<RecordAttemptOutcome, StoreError> {
        let (webhook, seq) = (key(attempt.webhook.get()), key(attempt.seq));
        let reads: &[Query<'_>] = &[
            (webhooks::LOCK, &[&webhook]),
            (attempts::LEASED, &[&webhook, &seq, &millis(attempt.lease_until)]),
        ];
        transact!(self, reads, tx, rows => record(tx, &rows, &attempt))
    }
}

/// Endpoints that have work: those with a scheduled delivery, found with one index seek each, and
/// those whose cursor is behind the events of their account.
const DUE: &str = "WITH RECURSIVE sent_to (id) AS ( \
       (SELECT webhook_id FROM delivery WHERE due_at IS NOT NULL ORDER BY webhook_id LIMIT 1) \
     UNION ALL \
       SELECT (SELECT webhook_id FROM delivery WHERE due_at IS NOT NULL AND \
         webhook_id > sent_to.id ORDER BY webhook_id LIMIT 1) \
       FROM sent_to WHERE sent_to.id IS NOT NULL) \
     SELECT w.id, w.account_id, w.resting_until, w.cursor < a.last_seq AS behind, ripe, later \
     FROM webhook w JOIN account a ON a.id = w.account_id \
     LEFT JOIN (SELECT id, \
       CASE WHEN EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = sent_to.id AND \
         d.due_at <= $1 AND coalesce(d.leased_until, 0) <= $1) THEN $1 \
       ELSE (SELECT min(d.leased_until) FROM delivery d WHERE d.webhook_id = sent_to.id AND \
         d.due_at <= $1) END AS ripe, \
       (SELECT min(d.due_at) FROM delivery d WHERE d.webhook_id = sent_to.id AND \
         d.due_at > $1) AS later FROM sent_to WHERE id IS NOT NULL OFFSET 0) AS sent \
     ON sent.id = w.id \
     WHERE w.disabled_at IS NULL AND a.disabled_at IS NULL AND \
     (w.cursor < a.last_seq OR sent.id IS NOT NULL) ORDER BY w.id";

/// Endpoints that have work now, and when the next one will have some. `ripe` is `$1` if a due
/// delivery is not leased, else the end of the first lease; there are few leases.
pub(super) async fn webhooks_with_work(
    pools: &PgPools,
    at: Timestamp,
) -> Result<WebhooksWithWork, StoreError> {
    // The time grows with the number of endpoints, so do not delay the shared reads.
    let connection = pools.acquire_slow().await?;
    let mut due = WebhooksWithWork::default();
    for row in connection.query(DUE, &[&millis(at)]).await? {
        due.add(&EndpointWork::from_row(&row)?, at);
    }
    Ok(due)
}

async fn page(
    connection: &PgConnection,
    account: AccountId,
    id: WebhookId,
    query: &DeliveryQuery,
) -> Result<Vec<Delivery>, StoreError> {
    let status_filter = if query.status.is_some() { "d.status = $5" } else { "$5::text IS NULL" };
    let statement = format!(
        "SELECT d.seq, e.type, d.template_id, d.status, d.attempts, d.attempted_at, d.due_at, \
         d.response_status, d.failure FROM delivery d JOIN event e ON e.account_id = $1 AND \
         e.seq = d.seq WHERE d.webhook_id = $2 AND d.seq < $3 AND {status_filter} \
         ORDER BY d.seq DESC LIMIT $4"
    );
    let before = query.before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let status = query.status.map(DeliveryStatus::as_str);
    let values: Values<'_> = &[&key(account.get()), &key(id.get()), &before, &limit, &status];
    let rows = connection.query(&statement, values).await?;
    rows.iter().map(delivery).collect()
}
