//! The API through the real router: every answer that the specification and our own rules name.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "api/setup.rs"]
mod setup;

mod api {
    pub(crate) mod app;
    mod authorisation;
    mod create;
    mod credentials;
    mod described;
    mod dry_run;
    mod edit;
    mod events;
    mod failures;
    mod http;
    mod idempotency;
    mod list;
    mod operations;
    mod read;
    mod render;
    mod review;
    mod webhooks;
}
