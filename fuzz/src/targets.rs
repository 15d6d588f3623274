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
    let started = Instant::now();
    target(input);
    if micros(started.elapsed()) <= SLOWEST.load(Ordering::Relaxed) {
        return;
    }
    // The machine may have been busy: CPU time decides, and every attempt must be slow.
    let mut fastest = cpu_time_of(target, input);
    for _ in 0..EXTRA_ATTEMPTS {
        if fastest > MAX_DURATION {
            fastest = fastest.min(cpu_time_of(target, input));
        }
    }
    assert!(fastest <= MAX_DURATION, "{} bytes took {fastest:?}", input.len());
    if SLOWEST.fetch_max(micros(fastest), Ordering::Relaxed) < micros(fastest) {
        eprintln!("slowest: {} us for {} bytes", micros(fastest), input.len());
    }
}

/// The CPU time of all threads while the target runs.
fn cpu_time_of(target: fn(&[u8]), input: &[u8]) -> Duration {
    let (started, before) = (Instant::now(), cpu_time());
    target(input);
    let elapsed = started.elapsed();
    cpu_time().zip(before).map_or(elapsed, |(after, before)| after.saturating_sub(before))
}

/// The CPU time that the process has used; `None` where the system does not tell.
fn cpu_time() -> Option<Duration> {
    let mut total = Duration::ZERO;
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        // A thread may end meanwhile.
        let Ok(times) = std::fs::read_to_string(thread.ok()?.path().join("schedstat")) else {
            continue;
        };
        total += Duration::from_nanos(times.split(' ').next()?.parse().ok()?);
    }
    Some(total)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
