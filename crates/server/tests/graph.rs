//! The Graph surface through the real router, as clients of WhatsApp's Graph API use it.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

#[path = "api/setup.rs"]
mod setup;

mod graph {
    mod bodies;
    mod callers;
    mod deletions;
    mod errors;
    mod lifecycle;
    mod lists;
    mod media;
    mod render;
    pub(crate) mod service;
    mod subscriptions;
    mod surfaces;
    pub(crate) mod uploads;
}
