//! The real binary, started, called, stopped and killed: what a user of `galley` sees. Needs no
//! root and nothing installed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

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
    mod graph;
    mod kill;
    mod lint;
    mod migrate;
    mod restore;
    mod review;
    mod settings;
    mod shared;
    mod stop;
    mod upkeep;
    mod webhooks;
}
