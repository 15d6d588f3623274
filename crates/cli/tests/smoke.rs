//! Smoke tests: start, call, stop and kill the real binary. They need neither root nor installed
//! services.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "support/earlier.rs"]
mod earlier;
#[path = "support/http.rs"]
mod http;
#[path = "support/listener.rs"]
mod listener;
#[path = "support/service.rs"]
mod service;

mod smoke {
    mod accounts;
    mod bad_http;
    mod bad_paths;
    mod canary;
    mod convert;
    mod credentials;
    mod earlier;
    mod events;
    mod first_run;
    mod framing;
    mod graph;
    mod kill;
    mod lint;
    mod maintenance;
    mod migrate;
    mod restore;
    mod review;
    mod settings;
    mod shared;
    mod sockets;
    mod stop;
    mod webhooks;
}
