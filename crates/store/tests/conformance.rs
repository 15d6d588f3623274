//! The conformance suite of the store. Each case runs on a fresh store of each backend.

#![expect(clippy::unwrap_used, reason = "a case that cannot continue has failed")]

mod conformance {
    mod accounts;
    mod audit;
    #[cfg(feature = "postgres-suite")]
    mod batches;
    mod buffered_indexes;
    mod changes;
    mod clock;
    mod credentials;
    mod damage;
    mod deliveries;
    mod emulator;
    mod emulator_changes;
    mod emulator_faults;
    mod emulator_messages;
    mod emulator_scripts;
    mod emulator_statuses;
    mod feed;
    pub(crate) mod fixture;
    mod formats;
    #[cfg(feature = "postgres-suite")]
    mod frozen;
    mod idempotency;
    mod integrity;
    mod limits;
    mod lists;
    mod media;
    #[cfg(feature = "postgres-suite")]
    mod one_database;
    mod page_size;
    mod pages;
    #[cfg(feature = "postgres-suite")]
    mod postgres_load;
    #[cfg(feature = "postgres-suite")]
    mod postgres_only;
    mod quotas;
    mod replays;
    #[cfg(feature = "postgres-suite")]
    mod round_trips;
    mod search;
    mod sessions;
    mod sqlite_only;
    mod sqlite_search;
    mod statistics;
    mod store_files;
    mod templates;
    mod translations;
    mod uploads;
    mod upstream;
    mod upstream_accept;
    mod upstream_archive;
    mod upstream_calls;
    mod upstream_deletions;
    mod upstream_drift;
    mod upstream_generated;
    mod upstream_mirror;
    mod upstream_operations;
    mod upstream_reads;
    mod upstream_samples;
    mod upstream_submission;
    mod upstream_sweeps;
    mod webhooks;
}
