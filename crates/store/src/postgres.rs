//! The PostgreSQL store, for any number of instances. They share only the database; locks on
//! account rows order their writes.

mod address;
mod batch;
mod create_queue;
mod errors;
mod failover;
mod ids;
mod index_state;
mod list;
mod maintenance;
mod messages;
mod pending;
mod pending_audit;
mod pool;
mod reader;
pub(crate) mod schema;
mod search;
mod search_indexer;
mod statements;
#[cfg(test)]
#[cfg(feature = "postgres-suite")]
pub(crate) mod test_database;
mod tls;
mod transaction;

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use galley_domain::id::AccountId;
use tokio::sync::{Semaphore, mpsc};

pub use self::address::{AddressError, PostgresAddress};
use self::{
    create_queue::PendingCreate,
    maintenance::Readiness,
    messages::PendingMessage,
    pool::{ACQUIRE_TIMEOUT, PgConnection, PgPools},
    reader::TemplateReader,
};
use crate::{ReadKind, SchemaPolicy, StoreError, read_slots::ReadSlots};

/// Options of a PostgreSQL store.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Maximum number of queued creates, and of queued sandbox messages.
    pub queue_capacity: usize,
    /// Maximum number of connections for writes, and for lists and searches.
    pub connections: usize,
    /// Maximum wait for a connection, which includes the time to open one.
    pub acquire_timeout: Duration,
    /// What to do with an older schema.
    pub schema_policy: SchemaPolicy,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            queue_capacity: 1_024,
            connections: 8,
            acquire_timeout: ACQUIRE_TIMEOUT,
            schema_policy: SchemaPolicy::default(),
        }
    }
}

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    address: PostgresAddress,
    pools: Arc<PgPools>,
    create_queue: mpsc::Sender<PendingCreate>,
    message_queue: mpsc::Sender<PendingMessage>,
    reader: TemplateReader,
    readiness: Readiness,
    /// Accounts are indexed for searches that wait one at a time: the connections are needed for
    /// changes.
    index_permit: Arc<Semaphore>,
    read_slots: ReadSlots,
}

impl PostgresStore {
    /// Connects, checks the server's settings, and migrates the schema as the options say.
    pub fn open<'s>(
        address: &'s PostgresAddress,
        options: &'s PostgresOptions,
    ) -> BoxFuture<'s, Result<Self, StoreError>> {
        Box::pin(async move {
            let synchronous_commit = schema::prepare(address, options.schema_policy).await?;
            let pinned = address.with_synchronous_commit(&synchronous_commit);
            let pools = Arc::new(PgPools::new(&pinned, options)?);
            let create_queue = create_queue::start(&pools, options.queue_capacity)?;
            let message_queue = messages::start(&pools, options.queue_capacity);
            let reader = TemplateReader::start(&pools);
            let readiness = Readiness::default();
            let address = address.clone();
            Ok(Self {
                address,
                pools,
                create_queue,
                message_queue,
                reader,
                readiness,
                index_permit: Arc::new(Semaphore::new(1)),
                read_slots: ReadSlots::for_connections(options.connections),
            })
        })
    }

    /// A connection for a longer read of an account, with a slot for it.
    async fn acquire_for(
        &self,
        kind: ReadKind,
        account: AccountId,
    ) -> Result<PgConnection, StoreError> {
        let slot = self.read_slots.acquire(kind, account).await?;
        Ok(self.pools.slow.get().await?.with_slot(slot))
    }
}
