//! The fuzz targets: each takes arbitrary bytes and panics if a property is violated.

mod documents;
mod requests;
mod urls;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

pub use documents::{document_v1, document_whatsapp, values};
pub use requests::{cursors, form_body, headers};
pub use urls::webhook_url;

/// Maximum processing time of any input.
const MAX_DURATION: Duration = Duration::from_millis(100);

/// Additional attempts for an input that seems to exceed the limit.
const EXTRA_ATTEMPTS: usize = 6;

/// Runs a target and panics if it exceeds the time limit; prints each new slowest input.
pub fn run_timed(target: fn(&[u8]), input: &[u8]) {
    static SLOWEST: AtomicU64 = AtomicU64::new(0);
    let first = time(target, input);
    if micros(first) <= SLOWEST.load(Ordering::Relaxed) {
        return;
    }
    // The machine may have been busy: an input counts as slow only if every attempt is slow.
    let mut fastest = first.min(time(target, input));
    for _ in 0..EXTRA_ATTEMPTS {
        if fastest > MAX_DURATION {
            fastest = fastest.min(time(target, input));
        }
    }
    assert!(fastest <= MAX_DURATION, "{} bytes took {fastest:?}", input.len());
    if SLOWEST.fetch_max(micros(fastest), Ordering::Relaxed) < micros(fastest) {
        eprintln!("slowest: {} us for {} bytes", micros(fastest), input.len());
    }
}

fn time(target: fn(&[u8]), input: &[u8]) -> Duration {
    let started = Instant::now();
    target(input);
    started.elapsed()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
