//! The clock as the server sees it.

use std::time::Duration;

use jiff::Timestamp;

/// The time, handed in so that tests can choose it.
pub trait Clock: Send + Sync {
    /// The moment, for what is kept and compared with stored moments.
    fn now(&self) -> Timestamp;

    /// Time that never steps back, for measuring how long something took.
    fn monotonic(&self) -> Duration;
}
