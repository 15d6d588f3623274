//! Connection pools: one for each kind of work, so that slow statements never delay fast ones.

mod bounded_pool;
mod connection;
mod shared_reads;

use std::{
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use tokio::time::Instant;
use tokio_postgres::types::ToSql;

pub(super) use self::connection::{CopySink, PgConnection, deadline_exceeded};
use self::{bounded_pool::PgPool, shared_reads::SharedSlot};
use super::{
    PostgresOptions,
    address::{LIST_TIMEOUT, PostgresAddress, STATEMENT_TIMEOUT},
    ids::IdGenerator,
    tls::Tls,
};
use crate::{
    EventNotifier, PoolActivity, StoreError, activity::CommitCounters, engine::Value,
    error::unavailable,
};

/// Maximum wait for a connection, unless the options have another one.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of connections that single-statement reads share.
pub(super) const SHARED_CONNECTIONS: usize = 4;

/// The parameters of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The values as the driver takes them.
pub(super) fn bound<'v>(values: &'v [Value<'_>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// All connection pools of a store.
pub(super) struct PgPools {
    /// Exclusive connections for short statements.
    pub(super) fast: Arc<PgPool>,
    /// Exclusive connections for statements with the longer deadline of lists and searches.
    pub(super) slow: Arc<PgPool>,
    /// The connection of the create worker, whose runtime drives its I/O.
    pub(super) creates: Arc<PgPool>,
    /// Shared reads have a pool of their own, so that writes never take their connections.
    reads: Arc<PgPool>,
    shared: [SharedSlot; SHARED_CONNECTIONS],
    next_slot: AtomicUsize,
    /// Counts the commits of all pools.
    pub(super) commit_counters: Arc<CommitCounters>,
    /// Assigns the ids of templates that transactions of all pools create.
    pub(super) ids: Arc<IdGenerator>,
    /// Notified of the events that they commit.
    pub(super) event_notifier: EventNotifier,
}

impl PgPools {
    /// Sets up the pools. Connections are opened on demand.
    pub(super) fn new(
        address: &PostgresAddress,
        options: &PostgresOptions,
    ) -> Result<Self, StoreError> {
        let tls = Tls::new(address)?;
        let commits = Arc::<CommitCounters>::default();
        let pool = |config, deadline, size| {
            Arc::new(PgPool::new(&config, &tls, deadline, size, options, &commits))
        };
        let max_connections = options.connections;
        let fast = address.with_deadline(STATEMENT_TIMEOUT);
        Ok(Self {
            reads: pool(fast.clone(), STATEMENT_TIMEOUT, SHARED_CONNECTIONS),
            fast: pool(fast, STATEMENT_TIMEOUT, max_connections),
            slow: pool(address.generic_plan(LIST_TIMEOUT), LIST_TIMEOUT, max_connections),
            creates: pool(address.for_creates(), STATEMENT_TIMEOUT, 1),
            shared: Default::default(),
            next_slot: AtomicUsize::new(0),
            commit_counters: Arc::clone(&commits),
            ids: Arc::default(),
            event_notifier: EventNotifier::default(),
        })
    }

    /// How the pools are used. Shared reads never wait for a connection in use.
    pub(super) fn activity(&self) -> [PoolActivity; 2] {
        [self.fast.activity("write_connections"), self.slow.activity("read_connections")]
    }
}

/// Whether work that began at `started` and failed is retried on another connection. A connection
/// that broke while idle fails at once; a caller that waited for a response has waited long enough.
pub(super) fn is_worth_retrying(started: Instant) -> bool {
    started.elapsed() < ACQUIRE_TIMEOUT
}

fn connect_timeout() -> StoreError {
    unavailable("timed out connecting to the database")
}
