//! The suites that need more than Rust: strace, root for a mount, test data from npm, a PostgreSQL
//! server. A missing tool fails them; no test is skipped. `scripts/test` enables them.

#![cfg(feature = "suites")]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

#[expect(dead_code, reason = "the smoke tests use all of it")]
#[path = "support/http.rs"]
mod http;
#[expect(dead_code, reason = "the smoke tests use all of it")]
#[path = "support/listener.rs"]
mod listener;
#[path = "support/postgres.rs"]
mod postgres;
#[path = "support/recorded.rs"]
mod recorded;
#[expect(dead_code, reason = "the smoke tests use all of it")]
#[path = "support/service.rs"]
mod service;

mod suites {
    mod data;
    mod disk_full;
    mod instances;
    mod json_test_suite;
    mod limited_proxy;
    mod migrate;
    mod moved_store;
    mod naughty_strings;
    mod recorded;
    mod schema;
    mod syncs;
    mod tls;
    mod trace;
}
