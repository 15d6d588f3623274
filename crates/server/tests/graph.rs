//! The Graph surface through the real router, as clients of WhatsApp's Graph API use it.

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
