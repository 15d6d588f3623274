//! PostgreSQL as an engine of operations that are written once.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;

use super::{
    PostgresStore, index_state, list, maintenance, pending,
    pool::{Values, bound},
    schema, search_indexer,
    transaction::transact,
};
use crate::{
    EventNotifier, Finding, IdempotencyRecord, IndexProgress, IndexStep, ListQuery, NameConflict,
    NewMessage, Page, PhaseObserver, ReadKind, RetentionCursor, Store, StoreActivity, StoreError,
    StoreStatistics, StoredMessage, StoredTemplate,
    creates::KeyOwner,
    encoding::idempotency_cutoff,
    engine::{
        AnyWrite, CreateQueue, Decoder, Dialect, Engine, EngineTx as _, Output, ReadPath, Select,
        Tx,
    },
    error::failed,
    records::IntegrityCheck,
    stored_row::{Row, StoredRow as _},
    templates::record,
};

/// The unexpired record with the hash of an Idempotency-Key.
const RECORD: &str = "SELECT payload, template_id, category, status FROM idempotency \
     WHERE key = $1 AND created_at > $2";

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
        &self.pools.event_notifier
    }

    fn check_files(&self) -> bool {
        true
    }

    fn activity(&self) -> StoreActivity {
        let max_queued_writes = self.create_queue.max_capacity();
        let mut pools = self.read_slots.activity();
        pools.extend(self.pools.activity());
        StoreActivity {
            queued_writes: max_queued_writes - self.create_queue.capacity(),
            max_queued_writes,
            batch_sizes: self.pools.commit_counters.batch_sizes.snapshot(),
            commit_micros: self.pools.commit_counters.commit_micros.snapshot(),
            pools,
        }
    }

    async fn statistics(&self) -> Result<StoreStatistics, StoreError> {
        let connection = self.pools.slow.get().await?;
        let size = "SELECT pg_database_size(current_database())";
        let rows = connection.query(size, &[]).await?;
        let database = rows.first().map_or(Ok(0), |row| row.number(0))?;
        Ok(StoreStatistics {
            search: index_state::search_statistics(&connection).await?,
            part_sizes: vec![("database", database)],
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
        Err(failed("galley does not back up PostgreSQL: use pg_dump or pg_basebackup"))
    }

    async fn delete_expired_idempotency_records(
        &self,
        after: Option<[u8; 16]>,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        maintenance::sweep_records(&self.pools, after, at).await
    }

    async fn run(&self, write: Box<dyn AnyWrite>) -> Result<Output, StoreError> {
        transact(&self.pools, &write, |write, open| {
            Box::pin(async move { write.run(&mut Tx::new(open)).await })
        })
        .await
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
                self.pools.slow.get().await?.query(&statement, values).await?
            }
            ReadPath::FullScan => {
                schema::connect(&self.address).await?.query(&*statement, values).await?
            }
            ReadPath::Media => {
                let slot = self.read_slots.acquire_media().await?;
                self.pools.slow.get().await?.with_slot(slot).query(&statement, values).await?
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
        pending::request(&self.message_queue, new).await
    }

    async fn list(&self, query: ListQuery) -> Result<Page, StoreError> {
        let connection = self.acquire_for(query.read_kind(), query.account).await?;
        list::page(&connection, &query).await
    }

    async fn count_templates(&self, query: ListQuery) -> Result<u64, StoreError> {
        let connection = self.acquire_for(ReadKind::Search, query.account).await?;
        list::List { connection: &connection, query: &query }.count().await
    }

    async fn update_search_index(&self) -> Result<IndexProgress, StoreError> {
        transact(&self.pools, &(), |(), open| Box::pin(search_indexer::update_index(open))).await
    }

    async fn index_account(
        &self,
        account: AccountId,
        newest: u64,
    ) -> Result<IndexStep, StoreError> {
        let permit = Arc::clone(&self.index_permit).acquire_owned().await;
        let pools = Arc::clone(&self.pools);
        // A step that has begun is completed, even if the caller is cancelled.
        let step = tokio::spawn(async move {
            let _permit = permit;
            transact(&pools, &(account, newest), |&(account, newest), open| {
                Box::pin(search_indexer::catch_up(open, account, newest))
            })
            .await
        });
        step.await.map_err(failed)?
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
        let rows = self.pools.read(statement, &[&&unique_key[..]]).await?;
        let owner = rows.first().map(KeyOwner::read).transpose()?;
        Ok(owner.map(|owner| owner.conflict_for(account)))
    }

    async fn idempotency_record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let rows = self.pools.read(RECORD, &[&&key[..], &idempotency_cutoff(at)]).await?;
        let found = rows.first().map(record).transpose()?;
        if found.is_some() {
            // Commits a transaction that locks the account, which makes all its earlier commits durable.
            // A commit whose wait for the standby was interrupted is visible but may not be replicated,
            // so it has to be confirmed before it is reported to a client.
            let confirm = transact(&self.pools, &account, |&account, open| {
                Box::pin(async move {
                    open.ensure_begun().await?;
                    open.lock(account).await
                })
            });
            confirm.await?;
        }
        Ok(found)
    }
}
