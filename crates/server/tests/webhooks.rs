//! Webhook requests: SSRF protection, the HTTP client against good and hostile receivers, and
//! signatures.

mod addresses;
mod endpoint_verification;
mod exchange;
mod hostile_receivers;
mod http_client;
mod name_lookups;
mod name_server;
pub(crate) mod receiver;
mod signature;
mod tls;
mod url_spellings;
