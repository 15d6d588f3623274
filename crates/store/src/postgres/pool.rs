//! Connection pools: one for each kind of work, so that slow statements never delay fast ones.

mod connection;
mod shared_reads;

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicUsize},
    time::Duration,
};

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio::time::{Instant, timeout};
use tokio_postgres::{Config, types::ToSql};

pub(super) use self::connection::{CopySink, DeadlineExceeded, PgConnection};
use self::shared_reads::SharedSlot;
use super::{
    address::{LIST_TIMEOUT, PostgresAddress, STATEMENT_TIMEOUT},
    failover::{CONNECT_TIMEOUT, FailoverConnector},
    tls::Tls,
};
use crate::StoreError;

/// Maximum wait for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(1);

/// Added to [`ACQUIRE_TIMEOUT`] when waiting for the pool, so that the pool's own timeout, which
/// reports that all connections are in use, fires first.
const ACQUIRE_MARGIN: Duration = Duration::from_millis(100);

/// Pause after a failed connect, to avoid a thundering herd on a database that restarts.
const CONNECT_BACKOFF: Duration = Duration::from_millis(100);

/// Number of connections that single-statement reads share.
pub(super) const SHARED_CONNECTIONS: usize = 4;

/// The parameters of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// All connection pools of a store.
pub(super) struct PgPools {
    fast: PgPool,
    slow: PgPool,
    creates: PgPool,
    /// Shared reads have a pool of their own, so that writes never take their connections.
    reads: PgPool,
    shared: [SharedSlot; SHARED_CONNECTIONS],
    next_slot: AtomicUsize,
}

impl PgPools {
    /// Sets up the pools. Connections are opened on demand.
    pub(super) fn new(
        address: &PostgresAddress,
        max_connections: usize,
    ) -> Result<Self, StoreError> {
        let tls = Tls::new(address)?;
        let pool = |config, deadline, size| PgPool::new(config, &tls, deadline, size);
        Ok(Self {
            fast: pool(
                address.with_deadline(STATEMENT_TIMEOUT),
                STATEMENT_TIMEOUT,
                max_connections,
            )?,
            slow: pool(address.generic_plan(LIST_TIMEOUT), LIST_TIMEOUT, max_connections)?,
            creates: pool(address.for_creates(), STATEMENT_TIMEOUT, 1)?,
            reads: pool(
                address.with_deadline(STATEMENT_TIMEOUT),
                STATEMENT_TIMEOUT,
                SHARED_CONNECTIONS,
            )?,
            shared: Default::default(),
            next_slot: AtomicUsize::new(0),
        })
    }

    /// An exclusive connection for short statements.
    pub(super) async fn acquire(&self) -> Result<PgConnection, StoreError> {
        self.fast.get().await
    }

    /// An exclusive connection for statements with the longer deadline of lists and searches.
    pub(super) async fn acquire_slow(&self) -> Result<PgConnection, StoreError> {
        self.slow.get().await
    }

    /// The connection of the create worker. The calling runtime drives its I/O.
    pub(super) async fn acquire_for_creates(&self) -> Result<PgConnection, StoreError> {
        self.creates.get().await
    }
}

/// Whether work that began at `started` and failed is retried on another connection. A connection
/// that broke while idle fails at once; a caller that waited for a response has waited long enough.
pub(super) fn is_worth_retrying(started: Instant) -> bool {
    started.elapsed() < ACQUIRE_TIMEOUT
}

/// One pool of connections with the same settings.
struct PgPool {
    pool: Pool,
    tls: Tls,
    /// Statement deadline.
    deadline: Duration,
    backs_off_until: Mutex<Option<Instant>>,
}

impl PgPool {
    fn new(
        config: Config,
        tls: &Tls,
        deadline: Duration,
        max_size: usize,
    ) -> Result<Self, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let connector = FailoverConnector::new(&config, tls);
        let manager = Manager::from_connect(config, connector, recycling);
        let pool = Pool::builder(manager)
            .max_size(max_size)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(ACQUIRE_TIMEOUT))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .build()
            .map_err(|error| StoreError::Failed(Arc::new(error)))?;
        Ok(Self { pool, tls: tls.clone(), deadline, backs_off_until: Mutex::default() })
    }

    async fn get(&self) -> Result<PgConnection, StoreError> {
        // The backoff does not apply to idle connections.
        if self.is_backing_off() && self.pool.status().available == 0 {
            return Err(connect_timeout());
        }
        let pool = self.pool.clone();
        // The task continues after the timeout, so the next caller finds the connection ready.
        let acquired = tokio::spawn(async move { pool.get().await });
        let acquired = match timeout(ACQUIRE_TIMEOUT + ACQUIRE_MARGIN, acquired).await {
            Ok(Ok(acquired)) => acquired.map_err(|error| match error.into() {
                StoreError::Busy if self.is_opening_connections() => connect_timeout(),
                other => other,
            }),
            Ok(Err(_)) | Err(_) => Err(connect_timeout()),
        };
        if let Err(StoreError::Unavailable(_)) = &acquired {
            self.back_off();
        }
        Ok(PgConnection::new(acquired?, self))
    }

    /// Whether the pool has fewer connections than its maximum. If callers wait nevertheless, the
    /// missing connections are being opened.
    fn is_opening_connections(&self) -> bool {
        let status = self.pool.status();
        status.size < status.max_size
    }

    fn back_off(&self) {
        *self.backs_off_until.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Instant::now() + CONNECT_BACKOFF);
    }

    fn is_backing_off(&self) -> bool {
        let until = *self.backs_off_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("timed out connecting to the database")]
struct ConnectTimeout;

fn connect_timeout() -> StoreError {
    StoreError::Unavailable(Arc::new(ConnectTimeout))
}
