//! Transactions. They lock in one order, so that they never wait for each other in a circle: the
//! credential epoch, endpoints by id (each with its status cursor), accounts by id, emulator clocks and
//! connections to providers by account, the audit feed. A transaction that changes an account locks its row, so that the account's
//! events are numbered in sequence.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, join_all};
use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;
use tokio::time::Instant;
use tokio_postgres::Row;

use super::{
    errors,
    ids::ids_exhausted,
    pending_audit::PendingEntries,
    pool::{PgConnection, PgPools, Values, bound, is_worth_retrying},
};
use crate::{
    Author, StoreError,
    decisions::audit::AuditedChange,
    engine::{AccountState, AnnouncedRead, Dialect, EachRow, EngineTx, Value, values},
    stored_row as row,
};

/// How often a transaction is attempted when it conflicts with others.
pub(super) const MAX_ATTEMPTS: u32 = 5;

/// A statement with its parameters.
type Query<'a> = (&'a str, Values<'a>);

/// A write that is sent with the commit.
pub(super) type DeferredWrite = (&'static str, Vec<Value<'static>>);

/// Maximum number of statements that are sent together: up to this many futures, `join_all` polls each
/// in order, so the driver queues the statements in order and a `COMMIT` comes last.
const MAX_STATEMENTS: usize = 30;

/// Runs work in a transaction, commits it, and notifies subscribers of its events. The work may run
/// more than once, but only one run is ever committed.
pub(super) async fn transact<I: Sync, T>(
    pools: &Arc<PgPools>,
    input: &I,
    work: for<'t> fn(&'t I, &'t mut Transaction) -> BoxFuture<'t, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        // It begins with its first statement.
        let mut open = Transaction {
            connection: Some(pools.fast.get().await?),
            pools: Arc::clone(pools),
            has_begun: false,
            accounts: HashMap::new(),
            read_ahead: Vec::new(),
            deferred: Vec::new(),
            audit: PendingEntries::default(),
            is_rollback_only: false,
        };
        let committed = match work(input, &mut open).await {
            Ok(done) => open.commit().await.map(|()| done),
            Err(error) => {
                open.roll_back().await;
                Err(error)
            }
        };
        match committed {
            Err(error) if should_retry(attempts, &error) => {}
            committed => return committed,
        }
    }
}

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
                self.connection = Some(self.pools.fast.get().await?);
                begin_on(self.open(), reads).await?
            }
        };
        self.has_begun = true;
        Ok(rows)
    }

    /// Begins the transaction unless it has begun.
    pub(super) async fn ensure_begun(&mut self) -> Result<(), StoreError> {
        if self.has_begun { Ok(()) } else { self.begin_with(&[]).await?.map(drop) }
    }

    /// Runs a statement that returns rows. If it is the first one and only reads, it is sent together
    /// with the `BEGIN`; a write must not be: if the `BEGIN` failed, it would run outside a transaction.
    async fn run(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
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
        self.connection().query(statement, &values).await
    }

    fn open(&self) -> &PgConnection {
        self.connection.as_ref().expect("a transaction ends when no connection is acquired")
    }

    /// The connection, whose transaction has begun.
    pub(super) fn connection(&self) -> &PgConnection {
        debug_assert!(self.has_begun, "a statement would run outside of the transaction");
        self.open()
    }

    /// Commits durably, unless the transaction is rollback-only. After an error, either everything is
    /// rolled back or the error is [`StoreError::OutcomeUnknown`].
    async fn commit(mut self) -> Result<(), StoreError> {
        if self.is_rollback_only {
            self.roll_back().await;
            return Ok(());
        }
        let mut newest = Vec::new();
        for (account, locked) in &self.accounts {
            let update = locked.changes(*account).map(|it| (AccountState::UPDATE, it.into()));
            self.deferred.extend(update);
            newest.extend(locked.new_event().map(|event| (*account, event)));
        }
        self.deferred.extend(std::mem::take(&mut self.audit).into_writes());
        if !self.has_begun {
            if self.deferred.is_empty() {
                return Ok(());
            }
            self.ensure_begun().await?;
        }
        let values: Vec<_> = self.deferred.iter().map(|(_, values)| bound(values)).collect();
        let writes =
            self.deferred.iter().zip(&values).map(|((write, _), values)| (*write, &**values));
        let writes: Vec<Query<'_>> = writes.collect();
        // A page of a sweep writes more rows than one pipeline takes.
        let (early, last) = writes.split_at(writes.len().saturating_sub(MAX_STATEMENTS));
        let prepared = async {
            run_all(self.open(), early).await?;
            prepare(self.open(), last).await
        };
        if let Err(error) = prepared.await {
            self.open().roll_back().await;
            return Err(error);
        }
        let (written, committed) = tokio::join!(
            biased;
            run_prepared(self.open(), last),
            self.open().commit(),
        );
        // After a write that the server refused, the commit rolled back. The values of a deferred
        // write always fit their statement, so that each one reaches the server.
        written.map_err(errors::beside_commit)?;
        committed?;
        self.pools.event_notifier.notify(&newest);
        Ok(())
    }

    async fn roll_back(self) {
        if self.has_begun {
            self.open().roll_back().await;
        }
    }
}

#[async_trait]
impl EngineTx for Transaction {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn rows(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        each: &mut EachRow<'_>,
    ) -> Result<(), StoreError> {
        for row in &self.run(statement, values).await? {
            if each(&row::Row::Postgres(row))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Runs the reads in one round trip, together with the `BEGIN` if they are the first statements; the
    /// body gets their rows when it runs them.
    async fn read_ahead(&mut self, reads: &[AnnouncedRead<'_>]) -> Result<(), StoreError> {
        let values: Vec<_> = reads.iter().map(|read| bound(read.values)).collect();
        let queries = reads.iter().zip(&values).map(|(read, values)| (read.statement, &**values));
        let queries: Vec<Query<'_>> = queries.collect();
        let rows = if self.has_begun {
            run_all(self.open(), &queries).await?
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

    async fn execute(&mut self, statement: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        // It may change what they have read.
        self.read_ahead.clear();
        self.ensure_begun().await?;
        self.connection().execute(statement, &bound(values)).await
    }

    /// The commit sends the deferred writes together, in this order.
    fn defer(&mut self, statement: &'static str, values: &[Value<'_>]) -> Result<(), StoreError> {
        let values = values.iter().cloned().map(Value::into_owned).collect();
        self.deferred.push((statement, values));
        Ok(())
    }

    async fn lock_credentials(&mut self) -> Result<(), StoreError> {
        self.run("SELECT epoch FROM credential_epoch FOR UPDATE", &[]).await.map(drop)
    }

    async fn credentials_changed(&mut self) -> Result<(), StoreError> {
        self.defer("UPDATE credential_epoch SET epoch = epoch + 1", &[])
    }

    fn name_parameter(&mut self, unique_key: [u8; 16]) -> Result<Value<'static>, StoreError> {
        Ok(unique_key.into())
    }

    fn record_parameter(&mut self, key: [u8; 16]) -> Result<Value<'static>, StoreError> {
        Ok(key.into())
    }

    fn next_template(
        &mut self,
        account: AccountId,
        at: Timestamp,
    ) -> Result<TemplateId, StoreError> {
        let ids = Arc::clone(&self.pools.ids);
        let last = &mut self.account(account)?.last_template;
        *last = ids.next(*last, at);
        let id = TemplateId::new(*last).ok_or_else(ids_exhausted)?;
        self.defer("UPDATE account SET last_template = $2 WHERE id = $1", &values![account, id])?;
        Ok(id)
    }

    /// Makes the commit roll back: also for work that changed nothing and need not wait for a sync.
    fn undo(&mut self) {
        self.is_rollback_only = true;
    }

    /// A transaction locks its accounts in the order of their ids. A deleted one is locked, too: its
    /// events, versions and files still expire.
    async fn lock(&mut self, account: AccountId) -> Result<bool, StoreError> {
        if !self.accounts.contains_key(&account) {
            let statement = AccountState::select(Dialect::Postgres);
            let rows = self.run(statement, &values![account]).await?;
            let Some(row) = rows.first() else { return Ok(false) };
            self.accounts.insert(account, AccountState::read(row)?);
        }
        Ok(!self.accounts[&account].is_deleted)
    }

    fn account(&mut self, account: AccountId) -> Result<&mut AccountState, StoreError> {
        Ok(self.accounts.get_mut(&account).expect("locked before it is changed"))
    }

    fn newest_event(&mut self, account: AccountId) -> Result<Option<u64>, StoreError> {
        Ok(self.accounts.get(&account).map(AccountState::newest_event))
    }

    /// With the commit.
    fn audit(
        &mut self,
        account: AccountId,
        change: AuditedChange,
        by: Author,
    ) -> Result<(), StoreError> {
        self.audit.add(account, change, by);
        Ok(())
    }
}

/// Begins a transaction; the outer error is that of the `BEGIN`.
async fn begin_on(
    connection: &PgConnection,
    reads: &[Query<'_>],
) -> Result<Result<Vec<Vec<Row>>, StoreError>, StoreError> {
    prepare(connection, reads).await?;
    let (begun, rows) = tokio::join!(
        biased;
        connection.begin(),
        run_prepared(connection, reads),
    );
    begun.map(|()| rows)
}

/// Prepares statements that are sent together. Preparing waits for a response, so all are prepared
/// before the first is sent.
async fn prepare(connection: &PgConnection, queries: &[Query<'_>]) -> Result<(), StoreError> {
    assert!(queries.len() <= MAX_STATEMENTS, "join_all may poll longer lists out of order");
    for (statement, _) in queries {
        connection.prepare(statement).await?;
    }
    Ok(())
}

/// Runs prepared statements in order, in one round trip; returns the rows of each, or the error of the
/// first that failed. In a transaction, the server refuses the statements after that one.
async fn run_prepared(
    connection: &PgConnection,
    queries: &[Query<'_>],
) -> Result<Vec<Vec<Row>>, StoreError> {
    let runs = queries.iter().map(|(statement, values)| connection.query(statement, values));
    join_all(runs).await.into_iter().collect()
}

/// Prepares and runs any number of statements.
async fn run_all(
    connection: &PgConnection,
    queries: &[Query<'_>],
) -> Result<Vec<Vec<Row>>, StoreError> {
    let mut rows = Vec::with_capacity(queries.len());
    for part in queries.chunks(MAX_STATEMENTS) {
        prepare(connection, part).await?;
        rows.extend(run_prepared(connection, part).await?);
    }
    Ok(rows)
}
