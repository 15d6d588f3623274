//! The Graph surface through the real router: what clients of WhatsApp's API send and can read.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "api/setup.rs"]
mod setup;

mod graph {
    mod bodies;
    mod callers;
    mod deletions;
    mod lists;
    mod media;
    mod other_surface;
    mod refusals;
    mod render;
    mod round;
    pub(crate) mod service;
    mod subscriptions;
    pub(crate) mod uploads;
}
