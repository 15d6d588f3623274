//! A pooled connection: statements, transactions and their deadlines.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::{sync::Notify, task::JoinHandle, time::timeout};
use tokio_postgres::{Client, CopyInSink, Error, Row, Statement, error::SqlState};

use super::{ACQUIRE_TIMEOUT, Values, bounded_pool::PgPool};
use crate::{FairSlot, StoreError, error::unavailable, postgres::errors};

/// How much later than the server the client gives up on a statement.
const DEADLINE_GRACE: Duration = Duration::from_secs(1);

/// An open `COPY … FROM STDIN`.
pub(in crate::postgres) type CopySink = CopyInSink<Bytes>;

pub(in crate::postgres) fn deadline_exceeded() -> StoreError {
    unavailable("the database did not respond in time")
}

/// An open connection. Dropping it closes the connection at once.
pub(super) struct PgClient {
    client: Client,
    /// The task that drives the connection.
    driver: JoinHandle<()>,
    /// Prepared statements by their text. The store has a fixed set of statements.
    statements: Mutex<HashMap<String, Statement>>,
}

impl PgClient {
    pub(super) fn new(client: Client, driver: JoinHandle<()>) -> Self {
        Self { client, driver, statements: Mutex::default() }
    }

    /// Prepares a statement, unless it is already prepared.
    async fn prepare_cached(&self, text: &str) -> Result<Statement, Error> {
        let known = self.statements().get(text).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(text).await?;
        self.statements().insert(text.to_owned(), statement.clone());
        Ok(statement)
    }

    fn statements(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for PgClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for PgClient {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A pooled connection. It is closed instead of returned to the pool if it is dropped in the
/// middle of a statement or a transaction: the next user must never inherit an open transaction or
/// wait behind an abandoned statement.
pub(in crate::postgres) struct PgConnection {
    /// `Some` until the connection is dropped.
    lease: Option<Lease>,
    pool: Arc<PgPool>,
    /// Number of statements without a response.
    in_flight: AtomicUsize,
    in_transaction: AtomicBool,
    /// Whether a commit was sent and has no response yet.
    is_committing: AtomicBool,
    is_discarded: AtomicBool,
    is_late: AtomicBool,
    /// Wakes all tasks that wait for a response on this connection.
    became_late: Notify,
}

/// What a connection has from its pool. Dropping it closes the connection, then releases the permit,
/// then the slot.
struct Lease {
    client: PgClient,
    permit: FairSlot<()>,
    /// The right to use the connection, if its user needs one. Released last, so that who gets it
    /// next finds a connection.
    slot: Option<Slot>,
}

/// Anything that is released by dropping it.
type Slot = Box<dyn Send + Sync>;

impl PgConnection {
    pub(super) fn new(client: PgClient, permit: FairSlot<()>, pool: Arc<PgPool>) -> Self {
        Self {
            lease: Some(Lease { client, permit, slot: None }),
            pool,
            in_flight: AtomicUsize::new(0),
            in_transaction: AtomicBool::new(false),
            is_committing: AtomicBool::new(false),
            is_discarded: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
            became_late: Notify::new(),
        }
    }

    /// Keeps the slot of a read until the pool has the connection back, even if the read is dropped
    /// and the server is still told to cancel its statement.
    pub(in crate::postgres) fn with_slot(mut self, slot: impl Send + Sync + 'static) -> Self {
        if let Some(lease) = &mut self.lease {
            lease.slot = Some(Box::new(slot));
        }
        self
    }

    fn client(&self) -> &PgClient {
        &self.lease.as_ref().expect("present until the connection is dropped").client
    }

    pub(in crate::postgres) async fn query(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let run = async {
            let prepared = self.client().prepare_cached(statement).await?;
            self.client().query(&prepared, values).await
        };
        self.in_time(run).await
    }

    /// Prepares a statement, unless it is cached. Statements that are pipelined have to be prepared
    /// beforehand: preparing waits for a response, so later statements would overtake this one.
    pub(in crate::postgres) async fn prepare(&self, statement: &str) -> Result<(), StoreError> {
        self.in_time(self.client().prepare_cached(statement)).await.map(drop)
    }

    /// Starts a `COPY` into a table. The connection accepts no other statement until it is
    /// finished.
    pub(in crate::postgres) async fn copy(&self, statement: &str) -> Result<CopySink, StoreError> {
        let run = async {
            let prepared = self.client().prepare_cached(statement).await?;
            self.client().copy_in(&prepared).await
        };
        self.in_time(run).await
    }

    /// Runs a statement that returns no rows; returns the number of affected rows.
    pub(in crate::postgres) async fn execute(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<u64, StoreError> {
        let run = async {
            let prepared = self.client().prepare_cached(statement).await?;
            self.client().execute(&prepared, values).await
        };
        self.in_time(run).await
    }

    /// Begins a transaction. The isolation level is explicit, whatever the database's default is:
    /// a transaction that waited for a lock has to see what was committed meanwhile.
    pub(in crate::postgres) async fn begin(&self) -> Result<(), StoreError> {
        self.begin_as("ISOLATION LEVEL READ COMMITTED READ WRITE").await
    }

    /// Begins a transaction for a batch of creates. A retry uses a fifth of the lock timeout.
    pub(in crate::postgres) async fn begin_creates(
        &self,
        is_retry: bool,
    ) -> Result<(), StoreError> {
        const SHORT_LOCK_TIMEOUT: &str = "ISOLATION LEVEL READ COMMITTED READ WRITE; \
             SELECT set_config(name, ceil(setting::float8 / 5)::text, true) FROM pg_settings \
             WHERE name = 'lock_timeout'";
        if is_retry { self.begin_as(SHORT_LOCK_TIMEOUT).await } else { self.begin().await }
    }

    /// Begins a read-only transaction on a snapshot of the database.
    pub(in crate::postgres) async fn begin_snapshot(&self) -> Result<(), StoreError> {
        self.begin_as("ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    async fn begin_as(&self, mode: &str) -> Result<(), StoreError> {
        self.in_transaction.store(true, Ordering::Relaxed);
        self.in_time(self.client().batch_execute(&format!("BEGIN {mode}"))).await
    }

    /// Commits the transaction durably. If the commit fails, its outcome is unknown.
    pub(in crate::postgres) async fn commit(&self) -> Result<(), StoreError> {
        self.is_committing.store(true, Ordering::Relaxed);
        let began = Instant::now();
        let committed = self.in_time(self.client().batch_execute("COMMIT")).await;
        self.pool.commit_counters.record_commit(began);
        committed.map_err(errors::at_commit)?;
        self.is_committing.store(false, Ordering::Relaxed);
        self.in_transaction.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Rolls the transaction back. If that fails, the connection closes, which rolls back as well.
    pub(in crate::postgres) async fn roll_back(&self) {
        if self.in_time(self.client().batch_execute("ROLLBACK")).await.is_ok() {
            self.in_transaction.store(false, Ordering::Relaxed);
        }
    }

    /// Whether no further statement may start on the connection.
    pub(in crate::postgres) fn is_unusable(&self) -> bool {
        self.is_discarded() || self.client().is_closed()
    }

    /// Closes the connection once its last user drops it.
    pub(super) fn discard(&self) {
        self.is_discarded.store(true, Ordering::Relaxed);
    }

    fn is_discarded(&self) -> bool {
        self.is_discarded.load(Ordering::Relaxed) || self.is_late()
    }

    /// Whether a statement exceeded its deadline.
    pub(super) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    /// Waits for a response until the deadline. When one statement exceeds it, all statements on
    /// the connection fail and no further one is sent, not even a rollback: the connection closes
    /// and releases its pool permit.
    pub(in crate::postgres) async fn in_time<T>(
        &self,
        run: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        let deadline = self.pool.deadline + DEADLINE_GRACE;
        // Subscribe before checking the flag, so that no notification is missed. Boxed, because a
        // batch has many of these futures at a time.
        let after_deadline = Box::pin(timeout(deadline, self.became_late.notified()));
        if self.is_late() {
            return Err(deadline_exceeded());
        }
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        // If the caller is cancelled here, the statement stays counted as in flight.
        let done = tokio::select! {
            biased;
            done = run => done,
            _ = after_deadline => return Err(self.give_up()),
        };
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        done.map_err(|error| {
            // After one statement of a pipeline has failed, the server refuses the others: the
            // transaction is rolled back, and the connection stays usable.
            let is_aborted = error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
                && self.in_transaction.load(Ordering::Relaxed);
            if errors::breaks_connection(&error) && !is_aborted {
                self.discard();
            }
            error.into()
        })
    }

    fn give_up(&self) -> StoreError {
        if !self.is_late.swap(true, Ordering::Relaxed) {
            self.became_late.notify_waiters();
            // The server did not even report its own statement timeout. Idle connections lead to
            // the same server, so close them, too.
            self.pool.close_idle();
        }
        deadline_exceeded()
    }
}

impl Drop for PgConnection {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        let is_busy = *self.in_flight.get_mut() > 0;
        if !is_busy && !*self.in_transaction.get_mut() && !self.is_discarded() {
            let Lease { client, permit, slot } = lease;
            self.pool.put_back(client);
            drop(permit);
            drop(slot);
            return;
        }
        // Never cancel a commit: one that waits for a standby would then complete without it. And
        // a server that does not respond would not handle the cancellation, either, while callers
        // wait for the pool permit.
        let is_committing = *self.is_committing.get_mut();
        let should_cancel =
            is_busy && !is_committing && !self.is_late() && !lease.client.is_closed();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if should_cancel => {
                let tls = self.pool.connector.tls.clone();
                // Keep the pool permit until the server has the cancellation, so that many
                // cancelled callers never exceed the maximum number of connections.
                runtime.spawn(async move {
                    let cancel = lease.client.cancel_token();
                    let _ = timeout(ACQUIRE_TIMEOUT, cancel.cancel_query(tls)).await;
                    drop(lease);
                });
            }
            _ => drop(lease),
        }
    }
}
