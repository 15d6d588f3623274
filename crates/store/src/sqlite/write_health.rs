//! Whether writes succeed, for readiness checks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{SqliteStore, writer::Batch};
use crate::StoreError;

/// After this long without a write, a readiness check writes something itself.
const PROBE_AFTER: Duration = Duration::from_secs(10);

/// The outcome of the last batch of writes.
pub(super) struct WriteHealth {
    started: Instant,
    /// When the last batch was committed, in milliseconds after `started`; 0 before the first.
    committed_at: AtomicU64,
    has_failed: AtomicBool,
}

impl WriteHealth {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            committed_at: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Called by the writer after each batch.
    pub(super) fn record(&self, outcome: &Result<(), StoreError>) {
        if outcome.is_ok() {
            let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.committed_at.store(elapsed.max(1), Ordering::Relaxed);
        }
        self.has_failed.store(outcome.is_err(), Ordering::Relaxed);
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Whether the last batch was committed, and not long ago.
    fn is_known_good(&self) -> bool {
        let committed_at = Duration::from_millis(self.committed_at.load(Ordering::Relaxed));
        !self.has_failed()
            && !committed_at.is_zero()
            && self.started.elapsed() < committed_at + PROBE_AFTER
    }
}

impl SqliteStore {
    /// Checks that the store can be read and written. Writes only if no recent write tells.
    pub(super) async fn check_ready(&self) -> Result<(), StoreError> {
        self.shared.files.check()?;
        self.shared.space.check()?;
        self.readers.read(|connection| {
            Ok(connection.query_row("SELECT epoch FROM credential_epoch", [], |_| Ok(()))?)
        })?;
        if self.shared.health.is_known_good() {
            return Ok(());
        }
        match self.writer.write(probe).await {
            // The queue is full because writes fail, not because there are many.
            Err(StoreError::Busy) if self.shared.health.has_failed() => {
                Err(StoreError::Unavailable(Arc::new(std::io::Error::other(
                    "the last writes failed, and the queue is full",
                ))))
            }
            outcome => outcome,
        }
    }
}

fn probe(batch: &mut Batch) -> Result<(), StoreError> {
    batch.connection().prepare_cached("UPDATE write_probe SET probes = probes + 1")?.execute([])?;
    Ok(())
}
