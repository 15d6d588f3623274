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
    /// Maximum number of requests that an account has in flight. Requests that wait for events count
    /// apart, up to the same number, but not more than a quarter of the connections.
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

/// Part of the connections that the requests of one account may use to wait for events.
const LONG_POLL_SHARE: usize = 4;

impl Limits {
    /// Maximum number of requests of an account that wait for events. Together with those in flight,
    /// they leave connections to other accounts.
    pub(crate) fn long_polls_per_account(&self) -> usize {
        self.requests_per_account.min((self.connections / LONG_POLL_SHARE).max(1))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_of_one_account_leave_connections_to_others() {
        let limits = Limits::default();
        assert_eq!((limits.requests_per_account, limits.long_polls_per_account()), (512, 256));
        let max = |connections, requests_per_account| {
            Limits { connections, requests_per_account, ..Limits::default() }
                .long_polls_per_account()
        };
        assert_eq!([max(1_024, 100), max(100, 512), max(1, 1)], [100, 25, 1]);
    }
}
