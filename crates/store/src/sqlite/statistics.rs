//! Reads what the metrics report: pending reviews, undelivered events, the lag of the search index,
//! and sizes of files.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, LazyLock},
};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _};

use super::{
    SqliteStore,
    cancellation::Cancellation,
    columns::{number, timestamp},
    reader_pool::{self, ReaderPool},
    store_files::SEARCH_INDEX_SUFFIX,
};
use crate::{
    MAX_COUNTED_DELIVERIES, MAX_COUNTED_REVIEWS, MAX_DATED_REVIEWS, ReviewStatistics,
    SearchStatistics, StatisticsStore, StoreActivity, StoreError, StoreStatistics,
    UpstreamStatistics, WebhookStatistics,
    decisions::statistics::{CONNECTIONS, ConnectionSample, EndpointBacklog, IndexBacklog},
    partial_file::with_suffix,
    records::undecided,
};

#[async_trait]
impl StatisticsStore for SqliteStore {
    fn activity(&self) -> StoreActivity {
        StoreActivity {
            queued_writes: self.queue_depth.get(),
            max_queued_writes: self.max_queued_writes,
            batch_sizes: self.commit_counters.batch_sizes(),
            commit_micros: self.commit_counters.commit_micros(),
            pools: self.readers.activity(),
        }
    }

    async fn statistics(&self) -> Result<StoreStatistics, StoreError> {
        let space = Arc::clone(&self.space);
        // The sizes as well: a disk that hangs must not block a thread of the runtime.
        let read = move |readers: &ReaderPool, cancel: &Cancellation| {
            readers.read_with_index(cancel, |store, index| {
                Ok(StoreStatistics {
                    reviews: reviews(store)?,
                    webhooks: webhooks(store)?,
                    search: search(store, index)?,
                    upstream: upstream(store)?,
                    part_sizes: part_sizes(&space.path),
                    free_disk_bytes: space.free_bytes().ok(),
                })
            })
        };
        reader_pool::run_blocking_in_background(&self.readers, read).await
    }
}

/// The pending templates of each account on which its own reviewers decide: how many, and since when.
/// Lists are sorted by status first, so this reads only those. The times are those of the first
/// templates in each list bucket.
static REVIEWS: LazyLock<String> = LazyLock::new(|| {
    let pending = "FROM template t WHERE t.account_id = a.id AND t.unique_key IS NOT NULL \
                   AND t.bucket < 'PENDING!' AND t.bucket";
    let waits = format!("(u.account_id IS NULL OR ({}))", undecided("t"));
    format!(
        "SELECT (SELECT count(*) FROM (SELECT 1 {pending} >= 'PENDING ' AND {waits} LIMIT ?1)) \
         AS pending, (WITH RECURSIVE bucket (name) AS \
         (SELECT (SELECT t.bucket {pending} >= 'PENDING ' ORDER BY t.bucket LIMIT 1) UNION ALL \
         SELECT (SELECT t.bucket {pending} > bucket.name ORDER BY t.bucket LIMIT 1) \
         FROM bucket WHERE bucket.name IS NOT NULL) \
         SELECT min((SELECT min(at) FROM (SELECT coalesce(t.version_at, t.created_at) AS at \
         {pending} = bucket.name AND {waits} ORDER BY t.id LIMIT ?2))) FROM bucket) AS since \
         FROM account a LEFT JOIN upstream u ON u.account_id = a.id WHERE a.disabled_at IS NULL \
         AND NOT (a.review = 'auto' AND u.account_id IS NOT NULL)"
    )
});

fn reviews(store: &Connection) -> Result<ReviewStatistics, StoreError> {
    let mut query = store.prepare_cached(&REVIEWS)?;
    let mut rows = query.query([MAX_COUNTED_REVIEWS, MAX_DATED_REVIEWS])?;
    let mut total = ReviewStatistics::default();
    while let Some(row) = rows.next()? {
        total.add(row)?;
    }
    Ok(total)
}

/// The endpoints, with the deliveries that wait, the first events of each backlog, and what is due.
/// Leased deliveries are among the first that are due.
const ENDPOINTS: &str = "SELECT w.disabled_at IS NOT NULL OR a.disabled_at IS NOT NULL AS is_disabled, \
     w.failing_since IS NOT NULL AS is_failing, w.cursor, a.last_seq, \
     (SELECT count(*) FROM (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id \
     AND d.status = 'waiting' LIMIT ?1)) AS waiting, \
     (SELECT e.at FROM event e WHERE e.account_id = w.account_id AND e.seq = \
     (SELECT min(d.seq) FROM delivery d WHERE d.webhook_id = w.id AND d.status = 'waiting')) \
     AS waiting_since, \
     (SELECT e.at FROM event e WHERE e.account_id = w.account_id AND e.seq = w.cursor + 1) \
     AS next_event_at, \
     (SELECT min(d.due_at) FROM delivery d WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL) \
     AS due_at, \
     (SELECT max(leased_until) FROM (SELECT d.leased_until FROM delivery d WHERE d.webhook_id = w.id \
     AND d.due_at IS NOT NULL ORDER BY d.due_at LIMIT 16)) AS leased_until, w.resting_until \
     FROM webhook w JOIN account a ON a.id = w.account_id";

fn webhooks(store: &Connection) -> Result<WebhookStatistics, StoreError> {
    let mut query = store.prepare_cached(ENDPOINTS)?;
    let mut rows = query.query([MAX_COUNTED_DELIVERIES])?;
    let mut total = WebhookStatistics::default();
    while let Some(row) = rows.next()? {
        total.add(&EndpointBacklog::from_row(row)?);
    }
    Ok(total)
}

fn search(store: &Connection, index: Option<&Connection>) -> Result<SearchStatistics, StoreError> {
    let (indexed, is_scanning) = match index {
        Some(index) => index_progress(index)?,
        None => (HashMap::new(), true),
    };
    let mut accounts = store.prepare_cached("SELECT id, last_seq FROM account")?;
    let mut next_event =
        store.prepare_cached("SELECT at FROM event WHERE account_id = ?1 AND seq = ?2")?;
    let mut rows = accounts.query([])?;
    let mut total = SearchStatistics::default();
    while let Some(row) = rows.next()? {
        let (id, last_seq): (i64, i64) = (row.get("id")?, row.get("last_seq")?);
        let seq = indexed.get(&id).copied().unwrap_or(0);
        let next_event_at = if seq < last_seq {
            let read = next_event.query_row([id, seq + 1], |row| Ok(timestamp(row, 0))).optional();
            read?.transpose()?
        } else {
            None
        };
        total.add(&IndexBacklog {
            newest: number(row, "last_seq")?,
            indexed: u64::try_from(seq).unwrap_or(0),
            is_scanning,
            next_event_at,
        });
    }
    Ok(total)
}

/// The last indexed event of each account, and whether all templates are scanned.
fn index_progress(index: &Connection) -> Result<(HashMap<i64, i64>, bool), StoreError> {
    let scanned: Option<i64> =
        index.prepare_cached("SELECT scanned FROM progress")?.query_row([], |row| row.get(0))?;
    let mut events = index.prepare_cached("SELECT account_id, seq FROM indexed_event")?;
    let indexed = events.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((indexed.collect::<Result<_, _>>()?, scanned.is_some()))
}

fn upstream(store: &Connection) -> Result<UpstreamStatistics, StoreError> {
    let mut query = store.prepare_cached(CONNECTIONS)?;
    let mut rows = query.query([])?;
    let mut total = UpstreamStatistics::default();
    while let Some(row) = rows.next()? {
        total.add(ConnectionSample::from_row(row)?);
    }
    Ok(total)
}

/// The sizes of the files that grow. A file that does not exist has size 0.
fn part_sizes(store: &Path) -> Vec<(&'static str, u64)> {
    let size = |suffix: &str| with_suffix(store, suffix).metadata().map_or(0, |it| it.len());
    let index_wal = format!("{SEARCH_INDEX_SUFFIX}-wal");
    vec![
        ("database", size("")),
        ("wal", size("-wal")),
        ("search_index", size(SEARCH_INDEX_SUFFIX) + size(&index_wal)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SchemaPolicy, sqlite::connection};

    #[test]
    fn the_statements_use_an_index_of_templates_events_and_deliveries() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        connection::create_if_missing(&path, false).unwrap();
        let store = connection::open_for_writing(&path, SchemaPolicy::Migrate).unwrap();
        for statement in [REVIEWS.as_str(), ENDPOINTS, CONNECTIONS] {
            let mut plan = store.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
            let steps = plan.raw_query();
            let steps: Vec<String> =
                steps.mapped(|row| row.get("detail")).map(Result::unwrap).collect();
            assert!(steps.iter().any(|it| it.starts_with("SEARCH")), "{steps:?}");
            // Only the tables with a row per account or endpoint are read completely.
            for step in steps.iter().filter(|it| it.starts_with("SCAN")) {
                let is_small = [
                    "SCAN a",
                    "SCAN u",
                    "SCAN w",
                    "SCAN (subquery",
                    "SCAN bucket",
                    "SCAN CONSTANT ROW",
                ];
                assert!(is_small.iter().any(|it| step.starts_with(it)), "{steps:?}");
            }
        }
    }
}
