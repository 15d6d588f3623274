//! SQLite as an engine of operations that are written once.

use std::{
    future::Future,
    ops::ControlFlow,
    path::Path,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, Waker},
    time::Duration,
};

use async_trait::async_trait;
use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;
use rusqlite::{Connection, Statement, params};

use super::{
    SqliteStore, backup,
    idempotency::Expired,
    index_state, list, maintenance,
    open::LastBatch,
    point_readers,
    reader_pool::{self, Cancellation, ReaderPool, lock},
    search_indexer::SearchIndexer,
    store_files,
    writer::Batch,
};
use crate::{
    EventNotifier, Finding, IdempotencyRecord, IndexProgress, IndexStep, ListQuery, NameConflict,
    NewMessage, Page, PhaseObserver, ReadKind, RetentionCursor, Store, StoreActivity, StoreError,
    StoreStatistics, StoredMessage, StoredTemplate,
    emulator::{MessageCounter, sent, stored_callback_data},
    encoding::{self, idempotency_cutoff},
    engine::{
        AnyWrite, Decoder, Dialect, EachRow, Engine, Output, ReadPath, Select, Tx, Value,
        WriteKind, values,
    },
    error::{failed, unavailable},
    records::IntegrityCheck,
    stored_row::Row,
    templates::record,
};

/// After this long without a write, a readiness check writes something itself.
const PROBE_AFTER: Duration = Duration::from_secs(10);

impl From<SqliteStore> for Store {
    fn from(store: SqliteStore) -> Self {
        Self::of(store)
    }
}

#[async_trait]
impl Engine for SqliteStore {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn event_notifier(&self) -> &EventNotifier {
        &self.shared.event_notifier
    }

    fn check_files(&self) -> bool {
        // Both log what they find.
        let are_present = self.shared.files.check().is_ok();
        if are_present {
            self.shared.space.restore_reserve();
        }
        are_present
    }

    fn activity(&self) -> StoreActivity {
        StoreActivity {
            queued_writes: self.shared.queue_depth.load(Ordering::Relaxed),
            max_queued_writes: self.max_queued_writes,
            batch_sizes: self.shared.commit_counters.batch_sizes.snapshot(),
            commit_micros: self.shared.commit_counters.commit_micros.snapshot(),
            pools: self.readers.slots.activity(),
        }
    }

    async fn statistics(&self) -> Result<StoreStatistics, StoreError> {
        let shared = Arc::clone(&self.shared);
        // The sizes as well: a disk that hangs must not block a thread of the runtime.
        let read = move |readers: &ReaderPool, cancellation: &Cancellation| {
            readers.read_with_index(cancellation, |store, index| {
                Ok(StoreStatistics {
                    search: index_state::search_statistics(store, index)?,
                    part_sizes: store_files::part_sizes(&shared.space.path),
                    free_disk_bytes: shared.space.free_bytes().ok(),
                    ..StoreStatistics::default()
                })
            })
        };
        let slot = self.readers.background_slot().await;
        reader_pool::run_with_slot(&self.readers, slot, read).await
    }

    /// Writes only if no recent write tells.
    async fn ping(&self) -> Result<(), StoreError> {
        self.shared.files.check()?;
        self.shared.space.check()?;
        self.readers.read(|connection| {
            Ok(connection.query_row("SELECT epoch FROM credential_epoch", [], |_| Ok(()))?)
        })?;
        if let LastBatch::Committed(at) = *lock(&self.shared.last_batch)
            && at.elapsed() < PROBE_AFTER
        {
            return Ok(());
        }
        let probe = |batch: &mut Batch| {
            let probe = "UPDATE write_probe SET probes = probes + 1";
            execute(batch.connection(), probe, &[]).map(drop)
        };
        match self.writer.write(probe).await {
            // The queue is full because writes fail, not because there are many.
            Err(StoreError::Busy) if *lock(&self.shared.last_batch) == LastBatch::Failed => {
                Err(unavailable("the last writes failed, and the queue is full"))
            }
            outcome => outcome,
        }
    }

    async fn check_integrity(
        &self,
        checks: Vec<IntegrityCheck>,
    ) -> Result<Vec<Finding>, StoreError> {
        self.readers.read(|connection| maintenance::check_integrity(connection, &checks))
    }

    async fn backup(
        &self,
        path: &Path,
        allow_damaged: bool,
        observer: PhaseObserver<'_>,
    ) -> Result<(), StoreError> {
        self.readers.read(|connection| backup::backup(connection, path, allow_damaged, observer))
    }

    async fn delete_expired_idempotency_records(
        &self,
        after: Option<[u8; 16]>,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        let expired = self.readers.read(|connection| Expired::find(connection, after, at))?;
        let last_key = expired.last_key;
        let deleted_records = if expired.is_empty() {
            0
        } else {
            self.writer.write(move |batch| expired.delete(batch, at)).await?
        };
        Ok(RetentionCursor { last_key, deleted_records, deleted_uploads: 0 })
    }

    async fn run(&self, write: Box<dyn AnyWrite>) -> Result<Output, StoreError> {
        let kind = write.kind();
        let work = move |batch: &mut Batch| match kind {
            WriteKind::AfterChecks => ready(write.run(&mut Tx::new(batch))),
            _ => batch.with_savepoint(|batch| ready(write.run(&mut Tx::new(batch)))),
        };
        let is_large = kind == WriteKind::Large;
        let _permit = if is_large { self.large_write_permits.acquire().await.ok() } else { None };
        self.writer.queue(Box::new(work), kind == WriteKind::ForOperator).await
    }

    async fn fetch(
        &self,
        select: Select,
        mut decoder: Box<dyn Decoder>,
    ) -> Result<Box<dyn Decoder>, StoreError> {
        let Select { path, statement, values } = select;
        let run = move |connection: &Connection| {
            rows(connection, &statement, &values, &mut |row| {
                decoder.add(row).map(ControlFlow::Continue)
            })?;
            Ok(decoder)
        };
        let slot: Box<dyn Send> = match path {
            ReadPath::Point => return self.shared.point_readers.read(run),
            ReadPath::Background => return self.readers.read(run),
            ReadPath::Scan | ReadPath::FullScan => Box::new(self.readers.background_slot().await),
            ReadPath::Media => Box::new(self.readers.slots.media.acquire(()).await),
            ReadPath::Account(kind, account) => {
                Box::new(self.readers.slots.acquire(kind, account).await?)
            }
        };
        let read = move |readers: &ReaderPool, cancellation: &Cancellation| {
            readers.cancellable_read(cancellation, run)
        };
        reader_pool::run_with_slot(&self.readers, slot, read).await
    }

    async fn add_message(&self, new: NewMessage) -> Result<Option<StoredMessage>, StoreError> {
        self.writer.write(move |batch| add_message(batch, &new)).await
    }

    async fn list(&self, query: ListQuery) -> Result<Page, StoreError> {
        reader_pool::search(&self.readers, query.read_kind(), query, list::page).await
    }

    async fn count_templates(&self, query: ListQuery) -> Result<u64, StoreError> {
        reader_pool::search(&self.readers, ReadKind::Search, query, list::count).await
    }

    async fn update_search_index(&self) -> Result<IndexProgress, StoreError> {
        // The index can wait until there is space again.
        if self.shared.space.check().is_err() {
            return Ok(IndexProgress::default());
        }
        reader_pool::run_indexing(&self.readers, SearchIndexer::run).await
    }

    async fn index_account(
        &self,
        account: AccountId,
        newest: u64,
    ) -> Result<IndexStep, StoreError> {
        if self.shared.space.check().is_err() {
            return Ok(IndexStep::Blocked);
        }
        let step = move |indexer: &mut SearchIndexer| indexer.run_for(account, newest);
        reader_pool::run_indexing(&self.readers, step).await
    }

    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError> {
        self.shared.point_readers.template(account, id)
    }

    async fn name_conflict(
        &self,
        account: AccountId,
        unique_key: [u8; 16],
    ) -> Result<Option<NameConflict>, StoreError> {
        let lookup = self.shared.indexes.names.lookup(unique_key);
        self.shared.point_readers.read(|connection| {
            let id = lookup.finish(connection)?;
            point_readers::name_conflict(connection, account, id, unique_key)
        })
    }

    async fn idempotency_record(
        &self,
        _account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let lookup = self.shared.indexes.idempotency_keys.lookup(key);
        self.shared.point_readers.read(|connection| {
            let Some(id) = lookup.finish(connection)? else { return Ok(None) };
            let mut query = connection.prepare_cached(
                "SELECT payload, template_id, category, status FROM idempotency \
                 WHERE template_id = ?1 AND key = ?2 AND created_at > ?3",
            )?;
            let mut rows =
                query.query(params![encoding::key(id.get()), key, idempotency_cutoff(at)])?;
            rows.next()?.map(record).transpose()
        })
    }
}

/// Adds a message of the sandbox.
fn add_message(batch: &Batch, new: &NewMessage) -> Result<Option<StoredMessage>, StoreError> {
    let connection = batch.connection();
    let mut query = connection.prepare_cached(
        "SELECT at, since, last_message, last_sent_at FROM emulator_clock WHERE account_id = ?1",
    )?;
    let mut rows = query.query([encoding::key(new.account.get())])?;
    let Some(clock) = rows.next()? else { return Ok(None) };
    let mut counter = MessageCounter::read(&Row::Sqlite(clock))?;
    drop(rows);
    let (number, sent_at) = counter.next(new.at);
    let count =
        "UPDATE emulator_clock SET last_message = $2, last_sent_at = $3 WHERE account_id = $1";
    execute(connection, count, &values![new.account, number, sent_at])?;
    let insert = "INSERT INTO message (account_id, number, sent_at, created_at, template_id, \
                  version, failure, phone_id, recipient, category, callback_data, texts) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let values = values![
        new.account,
        number,
        sent_at,
        new.at,
        new.template,
        new.version,
        new.failure,
        &new.phone,
        &new.to,
        new.category.as_str(),
        stored_callback_data(new),
        &new.texts,
    ];
    execute(connection, insert, &values)?;
    if let Some(last) = counter.last_surplus() {
        let delete = "DELETE FROM message WHERE account_id = $1 AND number <= $2";
        execute(connection, delete, &values![new.account, last])?;
    }
    Ok(Some(sent(new, number, sent_at)))
}

/// The output of a body. SQLite never waits, so it is ready at once.
pub(super) fn ready<T>(body: impl Future<Output = T>) -> T {
    match pin!(body).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a body waits only for its statements"),
    }
}

/// Runs a statement that returns rows.
pub(in crate::sqlite) fn rows(
    connection: &Connection,
    statement: &str,
    values: &[Value<'_>],
    each: &mut EachRow<'_>,
) -> Result<(), StoreError> {
    let mut prepared = connection.prepare_cached(statement)?;
    bind(&mut prepared, values)?;
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next()?
        && each(&Row::Sqlite(row))?.is_continue()
    {}
    Ok(())
}

/// Runs a statement that returns no rows; returns the number of affected rows.
pub(in crate::sqlite) fn execute(
    connection: &Connection,
    statement: &str,
    values: &[Value<'_>],
) -> Result<u64, StoreError> {
    let mut prepared = connection.prepare_cached(statement)?;
    bind(&mut prepared, values)?;
    let affected = prepared.raw_execute()?;
    Ok(u64::try_from(affected).unwrap_or(u64::MAX))
}

/// Binds the values by the numbers in the names of the parameters: SQLite itself numbers `$2` and
/// `$1` in the order in which they appear.
fn bind(prepared: &mut Statement<'_>, values: &[Value<'_>]) -> Result<(), StoreError> {
    for index in 1..=prepared.parameter_count() {
        let number: Option<usize> =
            prepared.parameter_name(index).and_then(|name| name.get(1..)?.parse().ok());
        let value = number.and_then(|number| values.get(number.checked_sub(1)?));
        let value = value.ok_or_else(|| failed("a statement has more parameters than values"))?;
        prepared.raw_bind_parameter(index, value)?;
    }
    Ok(())
}
