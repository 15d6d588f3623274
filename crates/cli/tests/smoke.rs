//! Smoke tests: start, call, stop and kill the real binary. They need neither root nor installed
//! services.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "support/http.rs"]
mod http;
#[path = "support/listener.rs"]
mod listener;
#[path = "support/recorded.rs"]
mod recorded;
#[path = "support/service.rs"]
mod service;

mod smoke {
    mod accounts;
    mod backup;
    mod bad_http;
    mod bad_paths;
    mod canary;
    mod clock;
    mod console;
    mod convert;
    mod credentials;
    mod emulator;
    mod emulator_accounts;
    mod emulator_environment;
    mod events;
    mod first_run;
    mod framing;
    mod graph;
    mod help;
    mod kill;
    mod lint;
    mod log_pipe;
    mod maintenance;
    mod migrate;
    mod monitoring;
    mod recorded;
    mod restore;
    mod review;
    mod schema;
    mod secrets;
    mod settings;
    mod shared;
    mod sockets;
    mod stop;
    mod store_files;
    #[cfg(target_os = "linux")]
    mod terminal;
    mod upstream;
    mod upstream_generated;
    mod upstream_hooks;
    mod upstream_paging;
    mod upstream_service;
    mod upstream_setup;
    mod webhook_test;
    mod webhooks;
}
