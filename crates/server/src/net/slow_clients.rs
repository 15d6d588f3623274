//! Logs clients that are disconnected because they do not read: one line at a time, however many
//! connections they have.

use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::send_progress::MIN_BYTES_PER_SECOND;

/// Minimum time between two lines.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

#[derive(Default)]
pub(super) struct SlowClientLog(Mutex<Logged>);

/// What was logged last, and how many clients were not logged since.
#[derive(Default)]
struct Logged {
    at: Option<Instant>,
    omitted: u64,
}

impl SlowClientLog {
    /// Logs the address of a client that was disconnected, unless a line was logged recently.
    pub(super) fn record(&self, address: IpAddr, window: Duration) {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(omitted) = logged.next_line(Instant::now()) else { return };
        drop(logged);
        tracing::warn!(
            client = %address,
            omitted,
            "closed the connection of a client that does not read its response: it took less than \
             {MIN_BYTES_PER_SECOND} bytes per second during {window:?} (`send_timeout`); `omitted` \
             counts further ones since the last line"
        );
    }
}

impl Logged {
    /// The number of clients that were not logged, if it is time for a line.
    fn next_line(&mut self, now: Instant) -> Option<u64> {
        if self.at.is_some_and(|at| now.duration_since(at) < LOG_INTERVAL) {
            self.omitted += 1;
            return None;
        }
        self.at = Some(now);
        Some(std::mem::take(&mut self.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_slow_clients_are_one_line_and_a_count() {
        let (mut logged, start) = (Logged::default(), Instant::now());
        assert_eq!(logged.next_line(start), Some(0));
        for _ in 0..900 {
            assert_eq!(logged.next_line(start + LOG_INTERVAL / 2), None);
        }
        assert_eq!(logged.next_line(start + LOG_INTERVAL), Some(900));
        assert_eq!(logged.next_line(start + LOG_INTERVAL * 3), Some(0));
    }
}
