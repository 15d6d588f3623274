//! The clock of the server.

use std::time::Duration;

use jiff::Timestamp;

/// A source of time, injected so that tests can control it.
pub trait Clock: Send + Sync {
    /// The current wall-clock time, for timestamps that are stored or compared with stored ones.
    fn now(&self) -> Timestamp;

    /// Time that never goes backwards, for measuring durations.
    fn monotonic(&self) -> Duration;
}
