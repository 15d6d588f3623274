//! What a store reports about itself: counts of this process, and totals of the database.

use std::time::Duration;

use galley_domain::upstream::budget::RollingHour;
use jiff::Timestamp;

/// What this process has counted since it opened the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreActivity {
    /// Number of writes in the queue.
    pub queued_writes: usize,
    /// Number of writes that the queue can hold.
    pub max_queued_writes: usize,
    /// Number of writes in each batch.
    pub batch_sizes: HistogramSnapshot,
    /// Duration of each commit with its sync, in microseconds.
    pub commit_micros: HistogramSnapshot,
    /// The pools of slots and connections.
    pub pools: Vec<PoolActivity>,
}

/// Values counted by bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// The upper bound of each bucket, and the number of values up to it.
    pub buckets: Vec<(u64, u64)>,
    /// The number of values.
    pub count: u64,
    /// The sum of the values.
    pub sum: u64,
}

/// A pool of slots or connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolActivity {
    /// What the pool is for.
    pub name: &'static str,
    /// How many slots or connections it has.
    pub size: usize,
    /// How many of them are in use.
    pub in_use: usize,
    /// How many callers had to wait.
    pub waits: u64,
    /// How long they waited, in total.
    pub waited: Duration,
}

/// Totals of all accounts. Counts that would take long are bounded, so they are minima.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Templates that wait for a review.
    pub reviews: ReviewStatistics,
    /// The endpoints of all accounts, and what was not delivered to them yet.
    pub webhooks: WebhookStatistics,
    /// What is not in the search index yet.
    pub search: SearchStatistics,
    /// The connections to providers.
    pub upstream: UpstreamStatistics,
    /// The size of each part of the store, in bytes.
    pub part_sizes: Vec<(&'static str, u64)>,
    /// Free space on the disk of the store; `None` if it is on another machine.
    pub free_disk_bytes: Option<u64>,
}

/// Templates that wait for a review, of accounts that are not disabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewStatistics {
    /// Number of templates with the status PENDING, at most [`MAX_COUNTED_REVIEWS`] per account.
    pub pending: u64,
    /// When the oldest of them was submitted. Considers the first
    /// [`MAX_DATED_REVIEWS`] of each category and language.
    pub oldest: Option<Timestamp>,
}

/// Maximum number of pending templates that are counted per account.
pub const MAX_COUNTED_REVIEWS: u32 = 10_000;

/// Maximum number of pending templates per account, category and language whose time is read. They
/// are read in the order of their creation; edits make the time of one later.
pub const MAX_DATED_REVIEWS: u32 = 20;

/// Webhook endpoints, and events that they have not received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookStatistics {
    /// Endpoints that work, as far as is known.
    pub healthy: u64,
    /// Endpoints whose last attempts have failed.
    pub failing: u64,
    /// Endpoints that receive nothing because they, or their accounts, are disabled.
    pub disabled: u64,
    /// Events that endpoints which are not disabled have not received yet. Counts at most
    /// [`MAX_COUNTED_DELIVERIES`] deliveries per endpoint, and all events beyond them.
    pub backlog: u64,
    /// When the oldest of them happened.
    pub oldest: Option<Timestamp>,
    /// Since when something of an endpoint could have been attempted, but was not. May be in the
    /// future: an endpoint rests, a retry is not due yet, or an attempt runs.
    pub due_since: Option<Timestamp>,
}

/// Maximum number of waiting deliveries that are counted per endpoint.
pub const MAX_COUNTED_DELIVERIES: u32 = 1_000;

/// What is not in the search index yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchStatistics {
    /// Number of events that are not indexed.
    pub unindexed_events: u64,
    /// When the oldest of them happened.
    pub oldest: Option<Timestamp>,
    /// Whether templates of an account are being indexed from the beginning.
    pub is_rebuilding: bool,
}

/// Connections to providers, each in one state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamStatistics {
    /// Connections whose calls succeed, as far as is known.
    pub connected: u64,
    /// Connections whose last call failed.
    pub degraded: u64,
    /// Connections whose last sweep did not see many templates.
    pub suspicious: u64,
    /// Connections that a person has paused.
    pub paused: u64,
    /// Connections of disabled accounts.
    pub disabled: u64,
    /// When the oldest operation that is not settled was queued; not of paused and disabled ones, nor
    /// one that the provider holds back for days.
    pub oldest_operation: Option<Timestamp>,
    /// The earliest of the ends of the last counted sweeps, or of the connections without one; not of
    /// paused and disabled ones.
    pub oldest_sweep: Option<Timestamp>,
    /// When the first token expires; not of disabled ones.
    pub token_expires_at: Option<Timestamp>,
    /// The calls of each connection in the last hour; not of disabled ones.
    pub calls: Vec<RollingHour>,
}
