//! The PostgreSQL store, for any number of instances. They share only the database; locks on
//! account rows order their writes.

pub(crate) mod accounts;
mod address;
mod batch;
pub(crate) mod changes;
mod clock_guard;
mod columns;
mod create_queue;
pub(crate) mod credentials;
mod deliveries;
mod emulator;
mod errors;
pub(crate) mod events;
mod failover;
mod ids;
mod index_state;
mod limits;
mod list;
mod maintenance;
pub(crate) mod media;
mod open;
mod pending_audit;
mod pipeline;
mod pool;
mod reader;
mod retention;
pub(crate) mod schema;
mod search;
mod search_indexer;
mod statements;
mod statistics;
mod stored_bytes;
mod subjects;
pub(crate) mod template_state;
pub(crate) mod templates;
#[cfg(test)]
#[cfg(feature = "postgres-suite")]
pub(crate) mod test_database;
mod tls;
pub(crate) mod transaction;
mod translations;
mod uploads;
pub(crate) mod upsert;
mod upstream;
pub(crate) mod versions;
mod webhooks;

pub use address::{AddressError, PostgresAddress};
pub use open::{PostgresOptions, PostgresStore};
