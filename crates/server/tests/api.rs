//! API v1.0 through the real router, without a socket.

pub(crate) mod app;
mod authorisation;
mod cors;
mod create;
mod credentials;
mod disconnects;
mod edit;
mod events;
mod failures;
mod http;
mod idempotency;
mod list;
mod memory;
mod metrics;
mod operations;
mod read;
mod render;
mod retention;
mod review;
mod revocation;
mod throttling;
mod tokens;
mod traces;
mod validate;
mod webhooks;
