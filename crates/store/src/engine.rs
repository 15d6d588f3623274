//! What an operation runs on that is written once for all engines: its body on a [`Tx`], its reads on a
//! [`ReadPath`], with [`Value`]s as parameters.
//!
//! An engine is a database with its driver. It implements [`Engine`] and [`EngineTx`], and knows
//! nothing of the operations that it runs.

mod account;
mod faults;
mod store;
mod tx;
mod value;

use std::{any::Any, borrow::Cow, path::Path, sync::Arc};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;

#[cfg(feature = "testing")]
pub(crate) use self::faults::FaultPoints;
#[cfg(feature = "testing")]
pub use self::faults::{Fault, Faults, PlantedError};
pub use self::store::{Store, StoreFuture};
pub(crate) use self::{
    account::{AccountState, account_state_columns},
    tx::{AnnouncedRead, Dialect, EachRow, EngineTx, Tx},
    value::{Value, values},
};
use crate::{
    CreateOutcome, EventNotifier, Finding, IdempotencyRecord, IndexProgress, IndexStep, ListQuery,
    NameConflict, NewMessage, NewTemplate, Page, PhaseObserver, ReadKind, RetentionCursor,
    StoreActivity, StoreError, StoreStatistics, StoredMessage, StoredTemplate,
    encoding::LookupKeys, records::IntegrityCheck, stored_row::Row,
};

/// The body of a write: decides, and runs its statements. An engine may run it several times with the
/// same input.
pub(crate) type Body<I, T> =
    for<'t, 'c> fn(&'t I, &'t mut Tx<'c>) -> BoxFuture<'t, Result<T, StoreError>>;

/// A database that runs operations.
#[async_trait]
pub(crate) trait Engine: Send + Sync {
    fn dialect(&self) -> Dialect;

    /// Notifies subscribers of the events that it commits.
    fn event_notifier(&self) -> &EventNotifier;

    /// Looks after the files of the database, if they are on this machine; `false` if they are gone.
    fn check_files(&self) -> bool;

    /// What this process has counted in memory.
    fn activity(&self) -> StoreActivity;

    /// The statistics of what each engine has of its own: the search index, and where the data is. The
    /// others are empty.
    async fn statistics(&self) -> Result<StoreStatistics, StoreError>;

    /// Checks that the store can be read and written.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Runs these checks, and those of what each engine has of its own.
    async fn check_integrity(
        &self,
        checks: Vec<IntegrityCheck>,
    ) -> Result<Vec<Finding>, StoreError>;

    /// Writes a consistent copy to a new file. PostgreSQL refuses.
    async fn backup(
        &self,
        path: &Path,
        allow_damaged: bool,
        observer: PhaseObserver<'_>,
    ) -> Result<(), StoreError>;

    /// Deletes the expired ones of the idempotency records after this key. SQLite has them in a buffered
    /// index.
    async fn delete_expired_idempotency_records(
        &self,
        after: Option<[u8; 16]>,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError>;

    /// Runs a write in one transaction; returns when it is durable.
    async fn run(&self, write: Box<dyn AnyWrite>) -> Result<Output, StoreError>;

    /// Runs a statement that only reads; returns the decoder with the rows.
    async fn fetch(
        &self,
        select: Select,
        decoder: Box<dyn Decoder>,
    ) -> Result<Box<dyn Decoder>, StoreError>;

    /// Creates templates in batches, if the engine does that. SQLite groups all writes.
    fn create_queue(&self) -> Option<&dyn CreateQueue> {
        None
    }

    /// Adds a sandbox message, together with others that are sent at the same time; `None` if the
    /// account is not an emulator.
    async fn add_message(&self, new: NewMessage) -> Result<Option<StoredMessage>, StoreError>;

    /// A page of a list. The indexes that make lists and searches fast differ, and so do their statements.
    async fn list(&self, query: ListQuery) -> Result<Page, StoreError>;

    /// The number of templates in a list.
    async fn count_templates(&self, query: ListQuery) -> Result<u64, StoreError>;

    /// Advances the search index by one step.
    async fn update_search_index(&self) -> Result<IndexProgress, StoreError>;

    /// Advances the search index by one step for one account.
    async fn index_account(&self, account: AccountId, newest: u64)
    -> Result<IndexStep, StoreError>;

    /// A template, unless it is deleted: SQLite has a cache, and PostgreSQL reads several at once.
    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError>;

    /// The conflict with the template that has this hash of its unique key.
    async fn name_conflict(
        &self,
        account: AccountId,
        unique_key: [u8; 16],
    ) -> Result<Option<NameConflict>, StoreError>;

    /// The record of an account with this hash of its Idempotency-Key, if it has not expired. What it
    /// records is durable.
    async fn idempotency_record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError>;
}

/// Creates templates, several in one transaction. None of them is reviewed by a script or a provider.
#[async_trait]
pub(crate) trait CreateQueue: Send + Sync {
    async fn create(&self, new: NewTemplate, keys: LookupKeys)
    -> Result<CreateOutcome, StoreError>;
}

/// A write whose types the engine does not know.
pub(crate) trait AnyWrite: Send + Sync {
    fn kind(&self) -> WriteKind;

    fn run<'t>(&'t self, tx: &'t mut Tx<'_>) -> BoxFuture<'t, Result<Output, StoreError>>;
}

/// What an engine must know of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Ordinary,
    /// A small change that an operator must be able to make on a full disk.
    ForOperator,
    /// It carries many bytes, so that only a few such writes may be queued at a time.
    Large,
    /// On SQLite it refuses only before its first write: it needs no savepoint, which would copy each
    /// page that the body changes.
    AfterChecks,
}

/// What a write returns.
pub(crate) type Output = Box<dyn Any + Send>;

/// A write that an engine runs in one transaction.
pub(crate) struct Write<I, T> {
    input: I,
    body: Body<I, T>,
    kind: WriteKind,
    /// The error of a fault that a test injects when the body has run.
    at_commit: Option<fn() -> StoreError>,
}

impl<I, T> Write<I, T> {
    pub(crate) fn new(input: I, body: Body<I, T>) -> Self {
        Self { input, body, kind: WriteKind::Ordinary, at_commit: None }
    }
}

impl<I: Send + Sync, T: Send + 'static> AnyWrite for Write<I, T> {
    fn kind(&self) -> WriteKind {
        self.kind
    }

    fn run<'t>(&'t self, tx: &'t mut Tx<'_>) -> BoxFuture<'t, Result<Output, StoreError>> {
        let body = (self.body)(&self.input, tx);
        Box::pin(async move {
            let done: Output = Box::new(body.await?);
            self.at_commit.map_or(Ok(done), |error| Err(error()))
        })
    }
}

/// A statement that only reads.
pub(crate) struct Select {
    pub(crate) path: ReadPath,
    pub(crate) statement: Cow<'static, str>,
    pub(crate) values: Vec<Value<'static>>,
}

/// Where a read runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadPath {
    /// A few rows by a key: on the calling thread, or on the connections that such reads share.
    Point,
    /// Work of the service itself.
    Background,
    /// Work of the service that reads many rows: never on the calling thread.
    Scan,
    /// The same, without a deadline: it reads whole tables.
    FullScan,
    /// A part of a file, for a client that belongs to no account.
    Media,
    /// A longer read for an account, which takes one of its slots.
    Account(ReadKind, AccountId),
}

/// Decodes and collects rows whose type the engine does not know.
pub(crate) trait Decoder: Send {
    fn add(&mut self, row: &Row<'_>) -> Result<(), StoreError>;

    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// Decodes a row.
type Decode<T> = Box<dyn Fn(&Row<'_>) -> Result<T, StoreError> + Send>;

/// A read of one statement, and how its rows are decoded.
pub(crate) struct Read<T> {
    select: Select,
    decode: Decode<T>,
}

impl<T> Read<T> {
    pub(crate) fn new<'v>(
        path: ReadPath,
        statement: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value<'v>>,
        decode: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Self {
        let values = values.into_iter().map(Value::into_owned).collect();
        let select = Select { path, statement: statement.into(), values };
        Self { select, decode: Box::new(decode) }
    }
}

struct Collected<T> {
    decode: Decode<T>,
    rows: Vec<T>,
}

impl<T: Send + 'static> Decoder for Collected<T> {
    fn add(&mut self, row: &Row<'_>) -> Result<(), StoreError> {
        self.rows.push((self.decode)(row)?);
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Runs a write on an engine.
pub(crate) async fn run<I, T>(engine: &dyn Engine, write: Write<I, T>) -> Result<T, StoreError>
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    let output = engine.run(Box::new(write)).await?;
    Ok(*output.downcast().expect("the output of this write"))
}

/// Runs a read on an engine.
pub(crate) async fn fetch<T: Send + 'static>(
    engine: &dyn Engine,
    read: Read<T>,
) -> Result<Vec<T>, StoreError> {
    let decoder = Box::new(Collected { decode: read.decode, rows: Vec::new() });
    let decoder = engine.fetch(read.select, decoder).await?;
    let collected: Box<Collected<T>> = decoder.into_any().downcast().expect("the same decoder");
    Ok(collected.rows)
}
