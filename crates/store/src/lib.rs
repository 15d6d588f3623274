//! Storage for templates, accounts, events and media: the [`Store`] and its engines `SQLite` and
//! `PostgreSQL`. The conformance suite (`tests/conformance.rs`) runs on both; behaviour
//! that it does not test is not guaranteed.

mod account_deletion;
mod accounts;
mod activity;
mod audit;
mod changes;
mod clock_guard;
mod copy_phase;
mod creates;
mod decisions;
mod deliveries;
mod emulator;
mod encoding;
mod engine;
mod error;
mod event_notifier;
mod events;
mod fair_slots;
mod limits;
mod lists;
mod maintenance;
mod media_type;
pub mod migrate;
mod partial_file;
pub mod postgres;
mod read_slots;
mod records;
pub mod restore;
mod row_checksum;
mod schema_policy;
mod sessions;
pub mod sqlite;
mod statistics;
mod stored_row;
mod template_rows;
mod templates;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod uploads;
mod upstream;
mod webhooks;

pub use accounts::MAX_ACTIVE_TOKENS;
pub use clock_guard::ClockStatus;
pub use copy_phase::{CopyPhase, PhaseObserver};
pub use emulator::MAX_STEPS_PER_TRANSACTION;
pub use encoding::origin;
pub use engine::{Store, StoreFuture};
pub use error::{Cause, ReadKind, StoreError};
pub use event_notifier::EventNotifier;
pub use fair_slots::{FairSlot, FairSlots, KeyShare};
pub use limits::{MAX_EDITS_PER_DAY, MAX_EDITS_PER_MONTH};
pub use lists::{MAX_LIST_COUNT, MAX_SEARCH_COUNT};
pub use postgres::PostgresStore;
pub use records::*;
pub use schema_policy::SchemaPolicy;
pub use sqlite::SqliteStore;
pub use template_rows::MAX_VERSIONS;
pub use upstream::{ImportPreview, MAX_WITHDRAWN};
pub use webhooks::MAX_WEBHOOKS;
