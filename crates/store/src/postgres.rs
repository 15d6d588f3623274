//! The PostgreSQL store, for any number of instances. They share only the database; locks on
//! account rows order their writes.

mod address;
mod batch;
mod columns;
mod create_queue;
mod errors;
mod failover;
mod ids;
mod index_state;
mod list;
mod maintenance;
mod messages;
mod open;
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

pub use address::{AddressError, PostgresAddress};
pub use open::{PostgresOptions, PostgresStore};
