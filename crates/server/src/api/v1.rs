//! API v1.0.

pub(crate) mod events;
pub(crate) mod templates;
pub(crate) mod webhooks;
