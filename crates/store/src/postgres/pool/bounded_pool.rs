//! One pool: a bounded number of connections with the same settings, opened on demand.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::Config;

use super::{
    connect_timeout,
    connection::{PgClient, PgConnection},
};
use crate::{
    FairSlot, KeyShare, PoolActivity, StoreError,
    activity::{CommitCounters, CountedSlots},
    postgres::{
        PostgresOptions, errors,
        failover::{CONNECT_TIMEOUT, FailoverConnector},
        tls::Tls,
    },
};

/// Pause after a failed connect, to avoid a thundering herd on a database that restarts.
const CONNECT_BACKOFF: Duration = Duration::from_millis(100);

/// A pool of connections. A connection that is in use or being opened holds a permit; an idle one
/// does not. A caller with a permit opens a connection only if none is idle, so there are never
/// more connections than permits.
pub(in crate::postgres) struct PgPool {
    pub(super) connector: FailoverConnector,
    /// Statement deadline.
    pub(super) deadline: Duration,
    /// Maximum wait for a connection.
    pub(super) acquire_timeout: Duration,
    permits: CountedSlots<()>,
    pub(super) commit_counters: Arc<CommitCounters>,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    /// The connection that was used last is used next.
    idle: Vec<PgClient>,
    /// Number of connections that are being opened.
    opening: usize,
    /// The last failure to connect, and how long calls that need a new connection fail with it.
    backoff: Option<(Instant, StoreError)>,
}

impl PgPool {
    pub(super) fn new(
        config: &Config,
        tls: &Tls,
        deadline: Duration,
        max_size: usize,
        options: &PostgresOptions,
        commit_counters: &Arc<CommitCounters>,
    ) -> Self {
        Self {
            connector: FailoverConnector::new(config, tls),
            deadline,
            acquire_timeout: options.acquire_timeout,
            permits: CountedSlots::new(max_size, KeyShare::AtMost(max_size)),
            commit_counters: Arc::clone(commit_counters),
            state: Mutex::default(),
        }
    }

    /// An idle connection, or a new one. Waits for a limited time; fails with [`StoreError::Busy`] if
    /// all connections are in use.
    pub(in crate::postgres) async fn get(self: &Arc<Self>) -> Result<PgConnection, StoreError> {
        if let Some(failure) = self.backoff_failure() {
            return Err(failure);
        }
        let acquired = self.get_until(Instant::now() + self.acquire_timeout).await;
        if let Err(failure @ StoreError::Unavailable(_)) = &acquired {
            self.back_off(failure);
        }
        acquired
    }

    async fn get_until(self: &Arc<Self>, deadline: Instant) -> Result<PgConnection, StoreError> {
        let acquired = timeout_at(deadline, self.permits.acquire(())).await;
        let Ok(permit) = acquired else {
            // Connections that take long to open are not in use: the server does not respond.
            let is_opening = self.state().opening > 0;
            return Err(if is_opening { connect_timeout() } else { StoreError::Busy });
        };
        if let Some(client) = self.take_idle() {
            return Ok(PgConnection::new(client, permit, Arc::clone(self)));
        }
        self.state().opening += 1;
        // The task continues after the timeout, so the next caller finds the connection ready.
        let opening = tokio::spawn(Arc::clone(self).open(permit));
        match timeout_at(deadline, opening).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(_)) | Err(_) => Err(connect_timeout()),
        }
    }

    async fn open(self: Arc<Self>, permit: FairSlot<()>) -> Result<PgConnection, StoreError> {
        let connected = timeout(CONNECT_TIMEOUT, self.connector.connect_any()).await;
        self.state().opening -= 1;
        let connected = connected.map_err(|_| connect_timeout())?;
        let (client, driver) = connected.map_err(errors::at_connect)?;
        Ok(PgConnection::new(PgClient::new(client, driver), permit, self))
    }

    /// How the connections are used.
    pub(super) fn activity(&self, name: &'static str) -> PoolActivity {
        self.permits.activity(name)
    }

    /// The idle connection that was used last, unless it was closed meanwhile.
    fn take_idle(&self) -> Option<PgClient> {
        let mut state = self.state();
        std::iter::from_fn(|| state.idle.pop()).find(|client| !client.is_closed())
    }

    /// Takes back a connection. Its user releases the permit afterwards.
    pub(super) fn put_back(&self, client: PgClient) {
        self.state().idle.push(client);
    }

    /// Closes all idle connections.
    pub(super) fn close_idle(&self) {
        let idle = std::mem::take(&mut self.state().idle);
        drop(idle);
    }

    /// Makes calls that need a new connection fail at once for a short time.
    pub(super) fn back_off(&self, failure: &StoreError) {
        self.state().backoff = Some((Instant::now() + CONNECT_BACKOFF, failure.clone()));
    }

    /// What calls fail with at once, while they do. Idle connections are used nevertheless.
    fn backoff_failure(&self) -> Option<StoreError> {
        let state = self.state();
        let (until, failure) = state.backoff.as_ref()?;
        (state.idle.is_empty() && Instant::now() < *until).then(|| failure.clone())
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
