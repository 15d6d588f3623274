//! Reads what the metrics report: pending reviews, undelivered events, the lag of the search index,
//! and the size of the database.

use std::sync::LazyLock;

use async_trait::async_trait;

use super::{
    PostgresStore,
    columns::{get, number, optional_timestamp},
    list::bucket,
    pool::PgConnection,
};
use crate::{
    MAX_COUNTED_DELIVERIES, MAX_COUNTED_REVIEWS, MAX_DATED_REVIEWS, ReviewStatistics,
    SearchStatistics, StatisticsStore, StoreActivity, StoreError, StoreStatistics,
    UpstreamStatistics, WebhookStatistics,
    decisions::statistics::{
        CONNECTIONS, ConnectionSample, ENDPOINTS, EndpointBacklog, IndexBacklog, pending_reviews,
    },
};

#[async_trait]
impl StatisticsStore for PostgresStore {
    fn activity(&self) -> StoreActivity {
        let (queued_writes, max_queued_writes) = self.create_queue.depth();
        let mut pools = self.read_slots.activity();
        pools.push(self.read_slots.media_activity());
        pools.extend(self.pools.activity());
        StoreActivity {
            queued_writes,
            max_queued_writes,
            batch_sizes: self.pools.commit_counters.batch_sizes(),
            commit_micros: self.pools.commit_counters.commit_micros(),
            pools,
        }
    }

    async fn statistics(&self) -> Result<StoreStatistics, StoreError> {
        let connection = self.pools.acquire_slow().await?;
        Ok(StoreStatistics {
            reviews: reviews(&connection).await?,
            webhooks: webhooks(&connection).await?,
            search: search(&connection).await?,
            upstream: upstream(&connection).await?,
            part_sizes: vec![("database", database_size(&connection).await?)],
            free_disk_bytes: None,
        })
    }
}

/// The statement that counts the templates that wait for a review.
static REVIEWS: LazyLock<String> = LazyLock::new(|| pending_reviews(bucket!()));

async fn reviews(connection: &PgConnection) -> Result<ReviewStatistics, StoreError> {
    let limits = [MAX_COUNTED_REVIEWS, MAX_DATED_REVIEWS].map(i64::from);
    let mut total = ReviewStatistics::default();
    for row in connection.query(REVIEWS.as_str(), &[&limits[0], &limits[1]]).await? {
        total.add(&row)?;
    }
    Ok(total)
}

async fn webhooks(connection: &PgConnection) -> Result<WebhookStatistics, StoreError> {
    let limit = i64::from(MAX_COUNTED_DELIVERIES);
    let mut total = WebhookStatistics::default();
    for row in connection.query(ENDPOINTS, &[&limit]).await? {
        total.add(&EndpointBacklog::from_row(&row)?);
    }
    Ok(total)
}

async fn search(connection: &PgConnection) -> Result<SearchStatistics, StoreError> {
    let statement = "SELECT a.last_seq, coalesce(p.indexed, 0) AS indexed, \
         p.scanned IS NOT NULL AS is_scanning, (SELECT at FROM event e WHERE \
         e.account_id = a.id AND e.seq = coalesce(p.indexed, 0) + 1) AS next_event_at \
         FROM account a LEFT JOIN search_progress p ON p.account_id = a.id \
         WHERE a.last_seq > coalesce(p.indexed, 0) OR p.scanned IS NOT NULL";
    let mut total = SearchStatistics::default();
    for row in connection.query(statement, &[]).await? {
        total.add(&IndexBacklog {
            newest: number(&row, "last_seq")?,
            indexed: number(&row, "indexed")?,
            is_scanning: get(&row, "is_scanning")?,
            next_event_at: optional_timestamp(&row, "next_event_at")?,
        });
    }
    Ok(total)
}

async fn upstream(connection: &PgConnection) -> Result<UpstreamStatistics, StoreError> {
    let mut total = UpstreamStatistics::default();
    for row in connection.query(CONNECTIONS, &[]).await? {
        total.add(ConnectionSample::from_row(&row)?);
    }
    Ok(total)
}

async fn database_size(connection: &PgConnection) -> Result<u64, StoreError> {
    let rows = connection.query("SELECT pg_database_size(current_database())", &[]).await?;
    rows.first().map_or(Ok(0), |row| number(row, 0))
}
