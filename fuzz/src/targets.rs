//! The targets: each takes any bytes, and panics if something does not hold.

mod documents;
mod requests;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

pub use documents::{document_v1, document_whatsapp, values};
pub use requests::{cursors, form_body};

/// Nothing that anybody sends may take longer.
const LONGEST: Duration = Duration::from_millis(100);

/// How often somebody who seems to take longer may try again, beyond the second time.
const MORE_TRIES: usize = 6;

/// Runs a target and panics if it takes too long; what takes longer than anything before is told.
pub fn quickly(target: fn(&[u8]), input: &[u8]) {
    static SLOWEST: AtomicU64 = AtomicU64::new(0);
    let first = time(target, input);
    if micros(first) <= SLOWEST.load(Ordering::Relaxed) {
        return;
    }
    // The machine may have been busy with something else: only what is slow every time is slow.
    let mut took = first.min(time(target, input));
    for _ in 0..MORE_TRIES {
        if took > LONGEST {
            took = took.min(time(target, input));
        }
    }
    assert!(took <= LONGEST, "{} bytes took {took:?}", input.len());
    if SLOWEST.fetch_max(micros(took), Ordering::Relaxed) < micros(took) {
        eprintln!("slowest: {} us for {} bytes", micros(took), input.len());
    }
}

fn time(target: fn(&[u8]), input: &[u8]) -> Duration {
    let begun = Instant::now();
    target(input);
    begun.elapsed()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
