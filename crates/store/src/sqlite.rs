//! The SQLite store: one file, a writer thread that commits many writes with one sync, and
//! concurrent readers.

pub(crate) mod backup;
mod buffered_index;
mod checkpoint;
pub(crate) mod checksum;
pub(crate) mod connection;
mod disk_space;
mod idempotency;
mod index_state;
mod list;
mod maintenance;
mod open;
mod open_files;
mod options;
mod point_readers;
mod reader_pool;
pub(crate) mod schema;
mod search;
mod search_indexer;
mod statements;
pub(crate) mod store_files;
mod template_cache;
mod writer;

#[cfg(debug_assertions)]
pub use checksum::recompute as recompute_checksums;
pub use open::SqliteStore;
pub use options::{Acknowledge, SqliteOptions};
pub use store_files::exposed_files;
