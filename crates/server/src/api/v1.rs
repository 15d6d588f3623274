//! API v1.0.

pub(crate) mod audit;
pub(crate) mod events;
pub(crate) mod templates;
pub(crate) mod tokens;
pub(crate) mod webhooks;
