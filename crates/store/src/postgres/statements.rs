//! PostgreSQL as an engine of operations that are written once.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;

use super::{
    PostgresStore, list, maintenance,
    pipeline::bound,
    pool::Values,
    schema, search_indexer, statistics,
    templates::RECORD,
    tls::Tls,
    transaction::{Transaction, should_retry, transact},
};
use crate::{
    Author, EventNotifier, Finding, IdempotencyRecord, IndexProgress, IndexStep, ListQuery,
    NameConflict, NewMessage, Page, PhaseObserver, ReadKind, RetentionCursor, Store, StoreActivity,
    StoreError, StoreStatistics, StoredMessage, StoredTemplate,
    creates::KeyOwner,
    decisions::audit::AuditedChange,
    encoding::idempotency_cutoff,
    engine::{
        AccountState, AnnouncedRead, AnyWrite, CreateQueue, Decoder, Dialect, EachRow, Engine,
        EngineTx, Output, ReadPath, Select, Tx, Value,
    },
    records::IntegrityCheck,
    stored_row::Row,
    templates::record,
};

#[derive(Debug, thiserror::Error)]
#[error("galley does not back up PostgreSQL: use pg_dump or pg_basebackup")]
struct BackupUnsupported;

impl From<PostgresStore> for Store {
    fn from(store: PostgresStore) -> Self {
        Self::of(store)
    }
}

#[async_trait]
impl Engine for PostgresStore {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn event_notifier(&self) -> &EventNotifier {
        &self.event_notifier
    }

    fn check_files(&self) -> bool {
        true
    }

    fn activity(&self) -> StoreActivity {
        let (queued_writes, max_queued_writes) = self.create_queue.depth();
        let mut pools = self.read_slots.activity();
        pools.push(self.read_slots.media_activity());
        pools.extend(self.pools.activity());
        StoreActivity {
            queued_writes,
            max_queued_writes,
            batch_sizes: self.pools.commit_counters.batch_sizes(),
            commit_micros: self.pools.commit_counters.commit_micros(),
            pools,
        }
    }

    async fn statistics(&self) -> Result<StoreStatistics, StoreError> {
        let connection = self.pools.acquire_slow().await?;
        Ok(StoreStatistics {
            search: statistics::search(&connection).await?,
            part_sizes: vec![("database", statistics::database_size(&connection).await?)],
            ..StoreStatistics::default()
        })
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.readiness.check(&self.pools).await
    }

    async fn check_integrity(
        &self,
        checks: Vec<IntegrityCheck>,
    ) -> Result<Vec<Finding>, StoreError> {
        maintenance::check_integrity(&self.address, &checks).await
    }

    async fn backup(&self, _: &Path, _: bool, _: PhaseObserver<'_>) -> Result<(), StoreError> {
        Err(StoreError::Failed(Arc::new(BackupUnsupported)))
    }

    async fn delete_expired_idempotency_records(
        &self,
        after: Option<[u8; 16]>,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        maintenance::sweep_records(&self.pools, after, at).await
    }

    async fn run(&self, write: Box<dyn AnyWrite>) -> Result<Output, StoreError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut open = Transaction::unbegun(&self.pools).await?;
            let committed = match write.run(&mut Tx::new(&mut open)).await {
                Ok(done) => open.commit().await.map(|newest| (done, newest)),
                Err(error) => {
                    open.roll_back().await;
                    Err(error)
                }
            };
            match committed {
                Ok((done, newest)) => {
                    self.event_notifier.notify(&newest);
                    return Ok(done);
                }
                Err(error) if should_retry(attempts, &error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn fetch(
        &self,
        select: Select,
        mut decoder: Box<dyn Decoder>,
    ) -> Result<Box<dyn Decoder>, StoreError> {
        let Select { path, statement, values } = select;
        let values = bound(&values);
        let values: Values<'_> = &values;
        let rows = match path {
            ReadPath::Point => self.pools.read(&statement, values).await?,
            ReadPath::Background | ReadPath::Scan => {
                self.pools.acquire_slow().await?.query(&statement, values).await?
            }
            ReadPath::FullScan => {
                let config = self.address.without_deadline();
                let client = schema::connect(&config, Tls::new(&self.address)?).await?;
                client.query(&*statement, values).await?
            }
            ReadPath::Media => {
                let slot = self.read_slots.acquire_media().await?;
                self.pools.acquire_slow_with(slot).await?.query(&statement, values).await?
            }
            ReadPath::Account(ReadKind::Feed, account) => {
                let _slot = self.read_slots.acquire(ReadKind::Feed, account).await?;
                self.pools.read(&statement, values).await?
            }
            ReadPath::Account(kind, account) => {
                self.acquire_for(kind, account).await?.query(&statement, values).await?
            }
        };
        rows.iter().try_for_each(|row| decoder.add(&Row::Postgres(row)))?;
        Ok(decoder)
    }

    fn create_queue(&self) -> Option<&dyn CreateQueue> {
        Some(&self.create_queue)
    }

    async fn add_message(&self, new: NewMessage) -> Result<Option<StoredMessage>, StoreError> {
        self.message_queue.add(new).await
    }

    async fn list(&self, query: ListQuery) -> Result<Page, StoreError> {
        let connection = self.acquire_for(query.read_kind(), query.account).await?;
        list::page(&connection, &query).await
    }

    async fn count_templates(&self, query: ListQuery) -> Result<u64, StoreError> {
        let connection = self.acquire_for(ReadKind::Search, query.account).await?;
        list::count(&connection, &query).await
    }

    async fn update_search_index(&self) -> Result<IndexProgress, StoreError> {
        transact!(self, tx => search_indexer::update_index(tx))
    }

    async fn index_account(
        &self,
        account: AccountId,
        newest: u64,
    ) -> Result<IndexStep, StoreError> {
        self.search_indexer.catch_up(account, newest).await
    }

    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError> {
        self.reader.one(account, id).await
    }

    async fn name_conflict(
        &self,
        account: AccountId,
        unique_key: [u8; 16],
    ) -> Result<Option<NameConflict>, StoreError> {
        let statement = "SELECT id, account_id FROM template WHERE unique_key = $1";
        let row = self.pools.read_one(statement, &[&&unique_key[..]]).await?;
        let owner = row.as_ref().map(KeyOwner::read).transpose()?;
        Ok(owner.map(|owner| owner.conflict_for(account)))
    }

    async fn idempotency_record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let row = self.pools.read_one(RECORD, &[&&key[..], &idempotency_cutoff(at)]).await?;
        let found = row.as_ref().map(record).transpose()?;
        if found.is_some() {
            self.confirm(account).await?;
        }
        Ok(found)
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
            if each(&Row::Postgres(row))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    async fn read_ahead(&mut self, reads: &[AnnouncedRead<'_>]) -> Result<(), StoreError> {
        self.read_ahead(reads).await
    }

    async fn execute(&mut self, statement: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.write(statement, values).await
    }

    fn defer(&mut self, statement: &'static str, values: &[Value<'_>]) -> Result<(), StoreError> {
        let values = values.iter().cloned().map(Value::into_owned).collect();
        self.defer(statement, values);
        Ok(())
    }

    async fn lock_credentials(&mut self) -> Result<(), StoreError> {
        self.run("SELECT epoch FROM credential_epoch FOR UPDATE", &[]).await.map(drop)
    }

    async fn credentials_changed(&mut self) -> Result<(), StoreError> {
        self.defer("UPDATE credential_epoch SET epoch = epoch + 1", Vec::new());
        Ok(())
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
        self.next_template(account, at)
    }

    fn undo(&mut self) {
        self.set_rollback_only();
    }

    async fn lock(&mut self, account: AccountId) -> Result<bool, StoreError> {
        self.lock(account).await
    }

    fn account(&mut self, account: AccountId) -> Result<&mut AccountState, StoreError> {
        Ok(self.account(account))
    }

    fn newest_event(&mut self, account: AccountId) -> Result<Option<u64>, StoreError> {
        Ok(self.has_locked(account).then(|| self.account(account).newest_event()))
    }

    fn audit(
        &mut self,
        account: AccountId,
        change: AuditedChange<'_>,
        by: Author,
    ) -> Result<(), StoreError> {
        self.audit(account, change, by);
        Ok(())
    }
}
