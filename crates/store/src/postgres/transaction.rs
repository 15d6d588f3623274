//! Transactions. They lock in one order, so that they never wait for each other in a circle: the
//! credential epoch, endpoints by id (each with its status cursor), accounts by id, emulator clocks and
//! connections to providers by account, the audit feed. A transaction that changes an account locks its row, so that the account's
//! events are numbered in sequence.

use std::{collections::HashMap, sync::Arc};

use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;
use tokio::time::Instant;
use tokio_postgres::Row;

use super::{
    errors,
    ids::ids_exhausted,
    pending_audit::PendingEntries,
    pipeline::{DeferredWrite, MAX_STATEMENTS, PreparedPipeline, Query, bound},
    pool::{PgConnection, PgPools, Values, is_worth_retrying},
};
use crate::{
    Author, StoreError,
    decisions::audit::AuditedChange,
    engine::{AccountState, AnnouncedRead, Dialect, Value, values},
};

/// How often a transaction is attempted when it conflicts with others.
pub(super) const MAX_ATTEMPTS: u32 = 5;

/// Runs work in a transaction, commits it and notifies subscribers of its events. The work may run
/// more than once, but only one run is ever committed.
macro_rules! transact {
    ($store:expr, $tx:ident => $work:expr) => {{
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut open = $crate::postgres::transaction::Transaction::begin(&$store.pools).await?;
            let $tx = &mut open;
            let committed = match $work.await {
                Ok(done) => open.commit().await.map(|newest| (done, newest)),
                Err(error) => {
                    open.roll_back().await;
                    Err(error)
                }
            };
            match committed {
                Ok((done, newest)) => {
                    $store.event_notifier.notify(&newest);
                    break Ok(done);
                }
                Err(error) if $crate::postgres::transaction::should_retry(attempts, &error) => {}
                Err(error) => break Err(error),
            }
        }
    }};
}
pub(super) use transact;

/// Whether to attempt the transaction once more.
pub(super) fn should_retry(attempts: u32, error: &StoreError) -> bool {
    let may_succeed = errors::is_transient_conflict(error) || errors::is_unique_violation(error);
    attempts < MAX_ATTEMPTS && may_succeed
}

/// An open transaction. Dropping it before its end closes its connection ([`PgConnection`]), so
/// that nothing of it is ever committed.
pub(super) struct Transaction {
    /// `None` only while another one is being acquired.
    connection: Option<PgConnection>,
    pools: Arc<PgPools>,
    /// Whether `BEGIN` was sent. The first read of a body is sent with it.
    has_begun: bool,
    /// The accounts whose rows the transaction has locked.
    accounts: HashMap<AccountId, AccountState>,
    /// The rows of announced reads that the body has not run yet.
    read_ahead: Vec<ReadAhead>,
    /// Writes that are sent with the commit.
    deferred: Vec<DeferredWrite>,
    audit: PendingEntries,
    is_rollback_only: bool,
}

/// What an announced read has returned.
struct ReadAhead {
    statement: String,
    values: Vec<Value<'static>>,
    rows: Vec<Row>,
}

impl Transaction {
    /// A transaction that begins with its first statement.
    pub(super) async fn unbegun(pools: &Arc<PgPools>) -> Result<Self, StoreError> {
        Ok(Self {
            connection: Some(pools.acquire().await?),
            pools: Arc::clone(pools),
            has_begun: false,
            accounts: HashMap::new(),
            read_ahead: Vec::new(),
            deferred: Vec::new(),
            audit: PendingEntries::default(),
            is_rollback_only: false,
        })
    }

    pub(super) async fn begin(pools: &Arc<PgPools>) -> Result<Self, StoreError> {
        let mut transaction = Self::unbegun(pools).await?;
        transaction.ensure_begun().await?;
        Ok(transaction)
    }

    /// Begins the transaction and runs its first statements, in one round trip; returns the rows of
    /// each statement, or the error of the first that failed. The outer error is that of the `BEGIN`. The
    /// statements must not write: if the `BEGIN` failed, they would run outside a transaction.
    async fn begin_with(
        &mut self,
        reads: &[Query<'_>],
    ) -> Result<Result<Vec<Vec<Row>>, StoreError>, StoreError> {
        let started = Instant::now();
        let rows = match begin_on(self.open(), reads).await {
            Ok(rows) => rows,
            Err(error) if !is_worth_retrying(started) => return Err(error),
            Err(_) => {
                // The connection may have broken while it was idle: try another one. It must not keep
                // its place in the pool while this one waits for a place.
                self.connection = None;
                self.connection = Some(self.pools.acquire().await?);
                begin_on(self.open(), reads).await?
            }
        };
        self.has_begun = true;
        Ok(rows)
    }

    /// Begins the transaction unless it has begun.
    pub(crate) async fn ensure_begun(&mut self) -> Result<(), StoreError> {
        if self.has_begun { Ok(()) } else { self.begin_with(&[]).await?.map(drop) }
    }

    /// Runs reads in one round trip, together with the `BEGIN` if they are the first statements; the
    /// body gets their rows when it runs them.
    pub(crate) async fn read_ahead(
        &mut self,
        reads: &[AnnouncedRead<'_>],
    ) -> Result<(), StoreError> {
        let values: Vec<_> = reads.iter().map(|read| bound(read.values)).collect();
        let queries = reads.iter().zip(&values).map(|(read, values)| (read.statement, &**values));
        let queries: Vec<Query<'_>> = queries.collect();
        let rows = if self.has_begun {
            let mut rows = Vec::with_capacity(queries.len());
            for part in queries.chunks(MAX_STATEMENTS) {
                rows.extend(PreparedPipeline::prepare(self.open(), part).await?.run().await?);
            }
            rows
        } else {
            self.begin_with(&queries).await??
        };
        let announced = reads.iter().zip(rows).map(|(read, rows)| ReadAhead {
            statement: read.statement.to_owned(),
            values: read.values.iter().cloned().map(Value::into_owned).collect(),
            rows,
        });
        self.read_ahead = announced.collect();
        Ok(())
    }

    /// Runs a statement that returns rows. If it is the first one and only reads, it is sent together
    /// with the `BEGIN`; a write must not be: if the `BEGIN` failed, it would run outside a transaction.
    pub(crate) async fn run(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let is_this = |read: &ReadAhead| read.statement == statement && read.values == values;
        if let Some(read) = self.read_ahead.iter().position(is_this) {
            return Ok(self.read_ahead.swap_remove(read).rows);
        }
        let values = bound(values);
        if !self.has_begun && statement.starts_with("SELECT") {
            let rows = self.begin_with(&[(statement, &values)]).await??;
            return Ok(rows.into_iter().next().unwrap_or_default());
        }
        self.ensure_begun().await?;
        self.query(statement, &values).await
    }

    /// Runs a statement that returns no rows; returns the number of affected rows.
    pub(crate) async fn write(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        // It may change what they have read.
        self.read_ahead.clear();
        self.ensure_begun().await?;
        self.execute(statement, &bound(values)).await
    }

    /// Assigns the id of a new template of a locked account.
    pub(super) fn next_template(
        &mut self,
        account: AccountId,
        at: Timestamp,
    ) -> Result<TemplateId, StoreError> {
        let ids = Arc::clone(&self.pools.ids);
        let last = &mut self.account(account).last_template;
        *last = ids.next(*last, at);
        let id = TemplateId::new(*last).ok_or_else(ids_exhausted)?;
        let update = "UPDATE account SET last_template = $2 WHERE id = $1";
        self.defer(update, values![account, id].into());
        Ok(id)
    }

    fn open(&self) -> &PgConnection {
        self.connection.as_ref().expect("a transaction ends when no connection is acquired")
    }

    /// The connection, whose transaction has begun.
    pub(super) fn connection(&self) -> &PgConnection {
        debug_assert!(self.has_begun, "a statement would run outside of the transaction");
        self.open()
    }

    pub(super) async fn query(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        self.connection().query(statement, values).await
    }

    pub(super) async fn query_one(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.query(statement, values).await?.into_iter().next())
    }

    pub(super) async fn execute(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<u64, StoreError> {
        self.connection().execute(statement, values).await
    }

    /// Locks an account until the transaction ends; `false` if it does not exist or is deleted. A
    /// transaction locks its accounts in the order of their ids.
    pub(super) async fn lock(&mut self, account: AccountId) -> Result<bool, StoreError> {
        Ok(self.lock_any(account).await? && !self.accounts[&account].is_deleted)
    }

    /// Locks an account that may be deleted: its events, versions and files still expire.
    pub(super) async fn lock_any(&mut self, account: AccountId) -> Result<bool, StoreError> {
        if self.has_locked(account) {
            return Ok(true);
        }
        let statement = AccountState::select(Dialect::Postgres);
        let rows = self.run(statement, &[Value::from(account)]).await?;
        let Some(row) = rows.first() else { return Ok(false) };
        self.accounts.insert(account, AccountState::read(row)?);
        Ok(true)
    }

    pub(super) fn has_locked(&self, account: AccountId) -> bool {
        self.accounts.contains_key(&account)
    }

    /// A locked account with the changes of this transaction.
    pub(super) fn account(&mut self, account: AccountId) -> &mut AccountState {
        self.accounts.get_mut(&account).expect("locked before it is changed")
    }

    /// Defers a write until the commit, which sends the deferred writes together, in this order. The
    /// work does not read its result.
    pub(super) fn defer(&mut self, statement: &'static str, values: Vec<Value<'static>>) {
        self.deferred.push(DeferredWrite { statement, values });
    }

    /// Records a change in the audit feed, with the commit.
    pub(super) fn audit(&mut self, account: AccountId, change: AuditedChange<'_>, by: Author) {
        self.audit.add(account, change, by);
    }

    /// Makes the commit roll back: for work that returns a refusal after it changed something, or
    /// that changed nothing and need not wait for a sync.
    pub(super) fn set_rollback_only(&mut self) {
        self.is_rollback_only = true;
    }

    /// Commits durably, unless the transaction is rollback-only; returns the newest event of each
    /// account that has new ones. After an error, either everything is rolled back or the error is
    /// [`StoreError::OutcomeUnknown`].
    pub(super) async fn commit(mut self) -> Result<Vec<(AccountId, u64)>, StoreError> {
        if self.is_rollback_only {
            self.roll_back().await;
            return Ok(Vec::new());
        }
        let (mut newest, mut updates) = (Vec::new(), Vec::new());
        for (account, locked) in &self.accounts {
            updates.extend(locked.changes(*account));
            newest.extend(locked.new_event().map(|event| (*account, event)));
        }
        for values in updates {
            self.defer(AccountState::UPDATE, values.into());
        }
        self.deferred.extend(std::mem::take(&mut self.audit).into_writes());
        if !self.has_begun {
            if self.deferred.is_empty() {
                return Ok(newest);
            }
            self.ensure_begun().await?;
        }
        let writes: Vec<_> = self.deferred.iter().map(DeferredWrite::as_query).collect();
        let writes: Vec<Query<'_>> = writes.iter().map(|(write, it)| (*write, &**it)).collect();
        // A page of a sweep writes more rows than one pipeline takes.
        let (early, last) = writes.split_at(writes.len().saturating_sub(MAX_STATEMENTS));
        for part in early.chunks(MAX_STATEMENTS) {
            let written = match PreparedPipeline::prepare(self.open(), part).await {
                Ok(writes) => writes.run().await.map(drop),
                Err(error) => Err(error),
            };
            if let Err(error) = written {
                self.open().roll_back().await;
                return Err(error);
            }
        }
        let writes = match PreparedPipeline::prepare(self.open(), last).await {
            Ok(writes) => writes,
            Err(error) => {
                self.open().roll_back().await;
                return Err(error);
            }
        };
        let (written, committed) = tokio::join!(
            biased;
            writes.run(),
            self.open().commit(),
        );
        // After a write that the server refused, the commit rolled back. The values of a deferred
        // write always fit their statement, so that each one reaches the server.
        written.map_err(errors::beside_commit)?;
        committed?;
        Ok(newest)
    }

    pub(super) async fn roll_back(self) {
        if self.has_begun {
            self.open().roll_back().await;
        }
    }
}

/// Begins a transaction; the outer error is that of the `BEGIN`.
async fn begin_on(
    connection: &PgConnection,
    reads: &[Query<'_>],
) -> Result<Result<Vec<Vec<Row>>, StoreError>, StoreError> {
    let reads = PreparedPipeline::prepare(connection, reads).await?;
    let (begun, rows) = tokio::join!(
        biased;
        connection.begin(),
        reads.run(),
    );
    begun.map(|()| rows)
}
