//! Limits of the server.

use std::time::Duration;

use crate::ip_network::IpNetwork;

/// Limits of the server. All of them are settings, except the size of a body.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time to receive a request header, from its first byte; on a new connection also the time until
    /// that byte.
    pub header: Duration,
    /// Time to receive a request body.
    pub body: Duration,
    /// Time to process a request.
    pub request: Duration,
    /// Time that a connection may be idle between requests.
    pub idle: Duration,
    /// Time over which the rate is averaged at which a client takes a response.
    pub send: Duration,
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum number of requests that an account has in flight. Requests that wait count apart.
    pub requests_per_account: usize,
    /// Number of failed credentials per second and client address that are not slowed down.
    pub failed_credentials: u32,
    /// Proxies whose headers name the address of the client.
    pub trusted_proxies: Vec<IpNetwork>,
    /// Maximum size of a request body.
    pub body_bytes: usize,
    /// Maximum total size of an account's media.
    pub media_bytes: u64,
    /// Time during which the server still accepts requests after the signal to stop, so that a
    /// load balancer notices.
    pub drain_delay: Duration,
    /// Time that requests in progress then have to finish.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(10),
            body: Duration::from_secs(15),
            request: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            send: Duration::from_secs(30),
            connections: 1_024,
            requests_per_account: 512,
            failed_credentials: 100,
            trusted_proxies: Vec::new(),
            body_bytes: 256 * 1_024,
            media_bytes: 1_024 * 1_024 * 1_024,
            drain_delay: Duration::from_secs(1),
            drain: Duration::from_secs(7),
        }
    }
}
