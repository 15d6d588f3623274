//! Reports what the store does and contains, for the metrics.

use galley_domain::upstream::budget::RollingHour;
use jiff::Timestamp;

use crate::{
    ConnectionState, MAX_COUNTED_DELIVERIES, MAX_COUNTED_REVIEWS, MAX_DATED_REVIEWS,
    ReviewStatistics, SearchStatistics, Store, StoreActivity, StoreError, StoreFuture,
    StoreStatistics, UpstreamStatistics, WebhookStatistics,
    engine::{self, Dialect, Engine, Read, ReadPath, Value},
    lists::{IndexBacklog, bucket_on_postgres},
    records::undecided,
    stored_row::{Row, StoredRow as _},
};

impl Store {
    /// What this process has counted in memory. Reads nothing from the database.
    pub fn activity(&self) -> StoreActivity {
        self.engine.activity()
    }

    /// Totals of all accounts. Takes a few index seeks per account and per endpoint, whatever the
    /// number of templates, and is not one transaction.
    pub fn statistics(&self) -> StoreFuture<'_, StoreStatistics> {
        self.with_faults_of("statistics", Box::pin(statistics(&*self.engine)))
    }
}

async fn statistics(engine: &dyn Engine) -> Result<StoreStatistics, StoreError> {
    let mut total = engine.statistics().await?;
    let reviews = pending_reviews(engine.dialect());
    let limits = [MAX_COUNTED_REVIEWS, MAX_DATED_REVIEWS];
    for account in engine::fetch(engine, scan(reviews, &limits, pending_review)).await? {
        total.reviews.add(account);
    }
    let endpoints = scan(ENDPOINTS.to_owned(), &[MAX_COUNTED_DELIVERIES], EndpointBacklog::read);
    for endpoint in engine::fetch(engine, endpoints).await? {
        total.webhooks.add(&endpoint);
    }
    let connections = scan(CONNECTIONS.to_owned(), &[], ConnectionSample::read);
    for connection in engine::fetch(engine, connections).await? {
        total.upstream.add(connection);
    }
    Ok(total)
}

fn scan<T: 'static>(
    statement: String,
    limits: &[u32],
    decode: fn(&Row<'_>) -> Result<T, StoreError>,
) -> Read<T> {
    Read::new(ReadPath::Scan, statement, limits.iter().map(|limit| Value::from(*limit)), decode)
}

/// The pending templates of each account on which its own reviewers decide: how many of the first `$1`,
/// and since when. The times are those of the first `$2` templates in each list bucket. Lists are sorted
/// by status first, so this reads only those.
pub(crate) fn pending_reviews(dialect: Dialect) -> String {
    let bucket = dialect.either("t.bucket", bucket_on_postgres!());
    let pending = format!(
        "FROM template t WHERE t.account_id = a.id AND t.unique_key IS NOT NULL \
         AND {bucket} < 'PENDING!' AND {bucket}"
    );
    let waits = format!("(u.account_id IS NULL OR ({}))", undecided("t"));
    format!(
        "SELECT (SELECT count(*) FROM (SELECT 1 {pending} >= 'PENDING ' AND {waits} LIMIT $1) \
         AS counted) AS pending, (WITH RECURSIVE bucket (name) AS \
         (SELECT (SELECT {bucket} {pending} >= 'PENDING ' ORDER BY {bucket} LIMIT 1) UNION ALL \
         SELECT (SELECT {bucket} {pending} > bucket.name ORDER BY {bucket} LIMIT 1) \
         FROM bucket WHERE bucket.name IS NOT NULL) \
         SELECT min((SELECT min(at) FROM (SELECT coalesce(t.version_at, t.created_at) AS at \
         {pending} = bucket.name AND {waits} ORDER BY t.id LIMIT $2) AS dated)) FROM bucket) AS since \
         FROM account a LEFT JOIN upstream u ON u.account_id = a.id WHERE a.disabled_at IS NULL \
         AND NOT (a.review = 'auto' AND u.account_id IS NOT NULL)"
    )
}

/// The templates of an account that wait for a review.
fn pending_review(row: &Row<'_>) -> Result<ReviewStatistics, StoreError> {
    let oldest = row.optional_timestamp("since")?;
    Ok(ReviewStatistics { pending: row.number("pending")?, oldest })
}

impl ReviewStatistics {
    fn add(&mut self, account: Self) {
        self.pending += account.pending;
        self.oldest = earliest(self.oldest, account.oldest);
    }
}

/// The endpoints, with the deliveries that wait, the first events of each backlog, and what is due.
/// Leased deliveries are among the first that are due.
pub(crate) const ENDPOINTS: &str = "SELECT w.disabled_at IS NOT NULL OR a.disabled_at IS NOT NULL AS is_disabled, \
     w.failing_since IS NOT NULL AS is_failing, w.cursor, a.last_seq, \
     (SELECT count(*) FROM (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id \
     AND d.status = 'waiting' LIMIT $1) AS counted) AS waiting, \
     (SELECT e.at FROM event e WHERE e.account_id = w.account_id AND e.seq = \
     (SELECT min(d.seq) FROM delivery d WHERE d.webhook_id = w.id AND d.status = 'waiting')) \
     AS waiting_since, \
     (SELECT e.at FROM event e WHERE e.account_id = w.account_id AND e.seq = w.cursor + 1) \
     AS next_event_at, \
     (SELECT min(d.due_at) FROM delivery d WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL) \
     AS due_at, \
     (SELECT max(leased_until) FROM (SELECT d.leased_until FROM delivery d WHERE d.webhook_id = w.id \
     AND d.due_at IS NOT NULL ORDER BY d.due_at LIMIT 16) AS due) AS leased_until, w.resting_until \
     FROM webhook w JOIN account a ON a.id = w.account_id";

/// An endpoint and the events that it has not received.
#[derive(Clone, Copy, Debug)]
struct EndpointBacklog {
    is_disabled: bool,
    is_failing: bool,
    /// Deliveries that wait.
    waiting: u64,
    /// The time of the first event of these.
    waiting_since: Option<Timestamp>,
    /// The endpoint's cursor: later events have no deliveries yet.
    cursor: u64,
    /// The account's newest event.
    newest: u64,
    /// The time of the first event after the cursor.
    next_event_at: Option<Timestamp>,
    /// When the first delivery is due.
    due_at: Option<Timestamp>,
    /// The end of the last lease: an attempt may run until then.
    leased_until: Option<Timestamp>,
    resting_until: Option<Timestamp>,
}

impl EndpointBacklog {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            is_disabled: row.value("is_disabled")?,
            is_failing: row.value("is_failing")?,
            waiting: row.number("waiting")?,
            waiting_since: row.optional_timestamp("waiting_since")?,
            cursor: row.number("cursor")?,
            newest: row.number("last_seq")?,
            next_event_at: row.optional_timestamp("next_event_at")?,
            due_at: row.optional_timestamp("due_at")?,
            leased_until: row.optional_timestamp("leased_until")?,
            resting_until: row.optional_timestamp("resting_until")?,
        })
    }

    /// Since when something could have been attempted. While an attempt runs, the endpoint is not
    /// late, however slow it is.
    fn due_since(&self) -> Option<Timestamp> {
        let first = earliest(self.due_at, self.next_event_at)?;
        Some([self.leased_until, self.resting_until].into_iter().flatten().fold(first, Ord::max))
    }
}

impl WebhookStatistics {
    fn add(&mut self, endpoint: &EndpointBacklog) {
        if endpoint.is_disabled {
            self.disabled += 1;
            return;
        }
        *(if endpoint.is_failing { &mut self.failing } else { &mut self.healthy }) += 1;
        self.backlog += endpoint.waiting + endpoint.newest.saturating_sub(endpoint.cursor);
        let since = earliest(endpoint.waiting_since, endpoint.next_event_at);
        self.oldest = earliest(self.oldest, since);
        self.due_since = earliest(self.due_since, endpoint.due_since());
    }
}

impl SearchStatistics {
    pub(crate) fn add(&mut self, account: &IndexBacklog) {
        let unindexed = account.newest.saturating_sub(account.indexed);
        self.unindexed_events += unindexed;
        if unindexed > 0 {
            self.oldest = earliest(self.oldest, account.next_event_at);
        }
        self.is_rebuilding |= account.scan_after().is_some() && account.newest > 0;
    }
}

/// The connections, with what [`ConnectionSample::read`] reads. The index of open operations
/// contains only those that are not settled. A provider holds edits back for a day (`quota`) and names
/// of deleted templates for weeks (`name_lock`): such operations are not late.
pub(crate) const CONNECTIONS: &str = "SELECT a.disabled_at IS NOT NULL AS is_disabled, \
     u.paused_at IS NOT NULL AS is_paused, u.suspicious_at IS NOT NULL AS is_suspicious, \
     u.degraded IS NOT NULL AS is_degraded, u.connected_at, u.swept_at, u.token_expires_at, u.calls, \
     (SELECT min(o.created_at) FROM upstream_operation o WHERE o.account_id = u.account_id AND \
     o.state IN ('queued', 'sending', 'unknown', 'probing', 'held') AND \
     coalesce(o.held_reason, '') NOT IN ('quota', 'name_lock')) AS operation_since \
     FROM upstream u JOIN account a ON a.id = u.account_id";

/// A connection to a provider.
#[derive(Clone, Debug)]
struct ConnectionSample {
    is_disabled: bool,
    state: ConnectionState,
    /// When the last counted sweep ended, or when the account was connected.
    swept_at: Timestamp,
    token_expires_at: Option<Timestamp>,
    calls: RollingHour,
    /// When the oldest operation that is not settled, nor held back for days, was queued.
    operation_since: Option<Timestamp>,
}

impl ConnectionSample {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let swept_at = row.optional_timestamp("swept_at")?;
        Ok(Self {
            is_disabled: row.value("is_disabled")?,
            state: ConnectionState::new(
                row.value("is_paused")?,
                row.value("is_suspicious")?,
                row.value("is_degraded")?,
            ),
            swept_at: swept_at.map_or_else(|| row.timestamp("connected_at"), Ok)?,
            token_expires_at: row.optional_timestamp("token_expires_at")?,
            calls: row.parsed("calls", |text| Some(RollingHour::parse(text)))?,
            operation_since: row.optional_timestamp("operation_since")?,
        })
    }
}

impl UpstreamStatistics {
    fn add(&mut self, connection: ConnectionSample) {
        if connection.is_disabled {
            self.disabled += 1;
            return;
        }
        *(match connection.state {
            ConnectionState::Paused => &mut self.paused,
            ConnectionState::Suspicious => &mut self.suspicious,
            ConnectionState::Degraded => &mut self.degraded,
            ConnectionState::Connected => &mut self.connected,
        }) += 1;
        self.token_expires_at = earliest(self.token_expires_at, connection.token_expires_at);
        self.calls.push(connection.calls);
        if connection.state == ConnectionState::Paused {
            return;
        }
        self.oldest_operation = earliest(self.oldest_operation, connection.operation_since);
        self.oldest_sweep = earliest(self.oldest_sweep, Some(connection.swept_at));
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Option<Timestamp> {
        Timestamp::from_second(second).ok()
    }

    #[test]
    fn a_disabled_endpoint_has_no_backlog() {
        let healthy = EndpointBacklog {
            is_disabled: false,
            is_failing: false,
            waiting: 2,
            waiting_since: at(50),
            cursor: 7,
            newest: 10,
            next_event_at: at(60),
            due_at: at(55),
            leased_until: None,
            resting_until: None,
        };
        let mut total = WebhookStatistics::default();
        total.add(&healthy);
        assert_eq!((total.healthy, total.backlog, total.oldest), (1, 5, at(50)));
        let failing = EndpointBacklog { is_failing: true, waiting_since: at(20), ..healthy };
        total.add(&failing);
        total.add(&EndpointBacklog { is_disabled: true, waiting_since: at(10), ..failing });
        let expected = WebhookStatistics {
            healthy: 1,
            failing: 1,
            disabled: 1,
            backlog: 10,
            oldest: at(20),
            due_since: at(55),
        };
        assert_eq!(total, expected);
    }

    #[test]
    fn an_endpoint_that_rests_or_is_being_called_is_not_late() {
        let idle = EndpointBacklog {
            is_disabled: false,
            is_failing: false,
            waiting: 0,
            waiting_since: None,
            cursor: 7,
            newest: 7,
            next_event_at: None,
            due_at: None,
            leased_until: None,
            resting_until: at(900),
        };
        assert_eq!(idle.due_since(), None, "it has received everything");
        let due = EndpointBacklog { due_at: at(50), resting_until: None, ..idle };
        assert_eq!(due.due_since(), at(50));
        // A retry of one event does not delay the events after the cursor.
        let behind = EndpointBacklog { due_at: at(700), next_event_at: at(60), ..due };
        assert_eq!(behind.due_since(), at(60));
        assert_eq!(EndpointBacklog { leased_until: at(80), ..due }.due_since(), at(80));
        assert_eq!(EndpointBacklog { resting_until: at(900), ..behind }.due_since(), at(900));
        let mut total = WebhookStatistics::default();
        total.add(&EndpointBacklog { resting_until: at(900), is_failing: true, ..behind });
        total.add(&due);
        assert_eq!(total.due_since, at(50), "a failing endpoint does not hide another one");
    }

    #[test]
    fn the_oldest_event_of_all_accounts_that_is_not_indexed_counts() {
        let current = IndexBacklog { newest: 9, indexed: 9, ..IndexBacklog::default() };
        let mut total = SearchStatistics::default();
        total.add(&current);
        // The index can advance between the two reads.
        total.add(&IndexBacklog { indexed: 10, ..current });
        assert_eq!(total, SearchStatistics::default());
        for (indexed, since) in [(4, 40), (8, 30)] {
            total.add(&IndexBacklog { indexed, next_event_at: at(since), ..current });
        }
        assert_eq!(
            total,
            SearchStatistics { unindexed_events: 6, oldest: at(30), is_rebuilding: false }
        );
    }

    #[test]
    fn a_scan_and_a_deleted_event_are_a_rebuild() {
        let behind = IndexBacklog { newest: 9, indexed: 3, scanned: None, next_event_at: at(1) };
        let is_rebuilding = |account| {
            let mut total = SearchStatistics::default();
            total.add(&account);
            total.is_rebuilding
        };
        assert!(!is_rebuilding(behind));
        assert!(is_rebuilding(IndexBacklog { next_event_at: None, ..behind }));
        assert!(is_rebuilding(IndexBacklog { scanned: Some(1), indexed: 9, ..behind }));
        let empty = IndexBacklog { scanned: Some(0), ..IndexBacklog::default() };
        assert!(!is_rebuilding(empty), "there is nothing to index");
    }

    #[test]
    fn connections_are_counted_by_state_and_only_active_ones_can_be_late() {
        let mut total = UpstreamStatistics::default();
        for (is_disabled, state, swept_at) in [
            (false, ConnectionState::Connected, 50),
            (false, ConnectionState::Degraded, 40),
            (false, ConnectionState::Suspicious, 30),
            (false, ConnectionState::Paused, 20),
            (true, ConnectionState::Connected, 10),
        ] {
            total.add(ConnectionSample {
                is_disabled,
                state,
                swept_at: at(swept_at).unwrap(),
                token_expires_at: at(1_000 + swept_at),
                calls: RollingHour::default(),
                operation_since: at(swept_at + 1),
            });
        }
        let expected = UpstreamStatistics {
            connected: 1,
            degraded: 1,
            suspicious: 1,
            paused: 1,
            disabled: 1,
            oldest_operation: at(31),
            oldest_sweep: at(30),
            token_expires_at: at(1_020),
            calls: vec![RollingHour::default(); 4],
        };
        assert_eq!(total, expected);
    }
}
