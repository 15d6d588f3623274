//! Limits of the server.

use std::time::Duration;

/// Limits of the server. All but the size of a body are settings.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long a request header may take from its first byte.
    pub header: Duration,
    /// How long a request body may take.
    pub body: Duration,
    /// How long a whole request may take.
    pub request: Duration,
    /// How long a connection may stand idle between requests.
    pub idle: Duration,
    /// How many connections at once.
    pub connections: usize,
    /// How large a request body may be.
    pub body_bytes: usize,
    /// How many bytes of media an account may keep.
    pub media_bytes: u64,
    /// How long requests are still taken after the signal to stop, so that a balancer notices.
    pub drain_delay: Duration,
    /// How long running requests then have to finish.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(10),
            body: Duration::from_secs(15),
            request: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            connections: 1_024,
            body_bytes: 256 * 1_024,
            media_bytes: 1_024 * 1_024 * 1_024,
            drain_delay: Duration::from_secs(1),
            drain: Duration::from_secs(7),
        }
    }
}
