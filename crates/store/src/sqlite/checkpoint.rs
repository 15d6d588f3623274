//! Background WAL checkpoints.
//!
//! SQLite's automatic checkpoint runs inside a commit, and all writers would wait for thousands of
//! pages. Here a separate thread copies them while commits continue, a part of the WAL at a time, and
//! syncs the database file, which SQLite does only once nothing is left in the WAL. When the WAL is
//! large, the writer itself copies the few pages that are left after a pass of the thread, so that
//! the WAL restarts. When the writer is idle, smaller amounts are checkpointed too, because reads
//! from the database file are faster than reads from the WAL.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

use rusqlite::Connection;

use super::{connection, open_files::OpenFiles};
use crate::StoreError;

/// WAL pages after which the WAL restarts: 64 MiB.
pub(super) const DEFAULT_CHECKPOINT_PAGES: u32 = 16_000;

/// A pass of the thread begins after this part of these pages. With more pages, more of them are
/// versions of the same page, of which only the last is copied; with fewer, commits wait less for
/// the disk.
const PASSES: i64 = 2;

/// WAL pages that trigger a checkpoint while the writer is idle.
const IDLE_CHECKPOINT_PAGES: i64 = 100;

/// WAL pages that the writer copies itself: a few milliseconds during which no write commits.
const MAX_WRITER_PAGES: i64 = 400;

/// A handle to the checkpoint thread. When it is dropped, the thread finishes its pass and exits.
pub(super) struct Checkpointer {
    start: Option<SyncSender<()>>,
    /// Whether the thread is in a pass.
    is_busy: Arc<AtomicBool>,
    schedule: Schedule,
    thread: Option<JoinHandle<()>>,
}

/// The pages in the WAL, and how many of them are already in the database file.
#[derive(Clone, Copy)]
struct WalPages {
    all: i64,
    copied: i64,
}

/// Decides what to do after a commit.
#[derive(Debug)]
struct Schedule {
    min_pages: i64,
    /// The WAL should restart from this number of pages on.
    restart_at: i64,
    /// No pass begins before this number of pages.
    pass_at: i64,
    /// Pages that were copied when the last pass began.
    copied_before: Option<i64>,
    /// Pages in the WAL after the last commit.
    pages: i64,
}

/// What to do after a commit.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Nothing,
    /// Let the thread copy pages.
    BeginPass,
    /// Copy the last pages now: the next commit restarts the WAL if no reader needs it.
    FinishNow,
}

impl Schedule {
    fn new(min_pages: u32) -> Self {
        let min_pages = i64::from(min_pages);
        Self { min_pages, restart_at: min_pages, pass_at: 0, copied_before: None, pages: 0 }
    }

    /// The next action while the thread is waiting.
    fn next(&mut self, WalPages { all: pages, copied }: WalPages) -> Action {
        let step = (self.min_pages / PASSES).max(1);
        if pages < self.pages {
            (self.restart_at, self.pass_at, self.copied_before) = (self.min_pages, step, None);
        }
        self.pages = pages;
        // A pass that copied nothing: a reader needs the pages, and will still need them at the next
        // commit.
        if self.copied_before.take() == Some(copied) {
            self.pass_at = pages + step;
        }
        let uncopied = pages - copied;
        // Writes that are faster than the passes must not let the WAL grow for ever.
        let is_overdue = pages >= self.restart_at + self.min_pages;
        if pages >= self.restart_at && (uncopied <= MAX_WRITER_PAGES || is_overdue) {
            // A reader may still need the WAL; then try again later, not after every commit.
            (self.restart_at, self.pass_at) = (pages + step, pages + step);
            return Action::FinishNow;
        }
        let is_due = uncopied >= step || pages >= self.restart_at;
        if !is_due || pages < self.pass_at {
            return Action::Nothing;
        }
        self.copied_before = Some(copied);
        Action::BeginPass
    }
}

impl Checkpointer {
    pub(super) fn start(
        path: &Path,
        files: Arc<OpenFiles>,
        min_pages: u32,
    ) -> Result<Self, StoreError> {
        let connection = connection::open_for_checkpoints(path)?;
        let (start, requests) = sync_channel(1);
        let is_busy = Arc::<AtomicBool>::default();
        let busy = Arc::clone(&is_busy);
        let work = move || {
            while let Ok(()) = requests.recv() {
                // A panic must not end the thread, or the WAL would grow without bounds.
                let pass = || checkpoint(&connection).and_then(|()| files.sync_database());
                match catch_unwind(AssertUnwindSafe(pass)) {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::warn!(%error, "WAL checkpoint failed"),
                    Err(_) => tracing::error!("WAL checkpoint panicked"),
                }
                busy.store(false, Ordering::Release);
            }
        };
        let thread = std::thread::Builder::new().name("galley-wal-ckpt".to_owned()).spawn(work)?;
        let schedule = Schedule::new(min_pages);
        Ok(Self { start: Some(start), is_busy, schedule, thread: Some(thread) })
    }

    /// Called by the writer after each commit.
    pub(super) fn after_commit(&mut self, writer: &Connection) -> Result<(), StoreError> {
        if self.is_busy.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.schedule.next(wal_pages(writer)?) {
            Action::Nothing => {}
            Action::BeginPass => self.begin(),
            Action::FinishNow => checkpoint(writer)?,
        }
        Ok(())
    }

    /// Called by the writer when it becomes idle.
    pub(super) fn when_idle(&self, writer: &Connection) -> Result<(), StoreError> {
        let WalPages { all, copied } = wal_pages(writer)?;
        if !self.is_busy.load(Ordering::Acquire) && all - copied >= IDLE_CHECKPOINT_PAGES {
            self.begin();
        }
        Ok(())
    }

    fn begin(&self) {
        // Before the thread can end the pass.
        self.is_busy.store(true, Ordering::Relaxed);
        if self.start.as_ref().is_none_or(|start| start.try_send(()).is_err()) {
            self.is_busy.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.start = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Copies the pages that no reader needs; never blocks on readers or writers.
fn checkpoint(connection: &Connection) -> Result<(), StoreError> {
    connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |_| Ok(()))?;
    Ok(())
}

fn wal_pages(connection: &Connection) -> Result<WalPages, StoreError> {
    let mut query = connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
    Ok(query.query_row([], |row| Ok(WalPages { all: row.get(1)?, copied: row.get(2)? }))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &mut Schedule, all: i64, copied: i64) -> Action {
        schedule.next(WalPages { all, copied })
    }

    #[test]
    fn the_wal_is_copied_in_parts_and_restarts_when_little_is_left() {
        let mut schedule = Schedule::new(16_000);
        assert_eq!(next(&mut schedule, 7_999, 0), Action::Nothing);
        assert_eq!(next(&mut schedule, 8_000, 0), Action::BeginPass);
        assert_eq!(next(&mut schedule, 9_000, 8_000), Action::Nothing);
        // From here on the passes follow each other, each with less to copy.
        assert_eq!(next(&mut schedule, 16_100, 8_000), Action::BeginPass);
        assert_eq!(next(&mut schedule, 17_200, 16_100), Action::BeginPass);
        assert_eq!(next(&mut schedule, 17_500, 17_200), Action::FinishNow);
        // Restarted.
        assert_eq!(next(&mut schedule, 30, 0), Action::Nothing);
        assert_eq!(next(&mut schedule, 8_000, 0), Action::BeginPass);
    }

    #[test]
    fn while_a_reader_needs_the_wal_passes_and_restarts_are_tried_after_every_part() {
        let mut schedule = Schedule::new(16_000);
        assert_eq!(next(&mut schedule, 8_000, 0), Action::BeginPass);
        assert_eq!(next(&mut schedule, 8_100, 0), Action::Nothing);
        assert_eq!(next(&mut schedule, 16_000, 0), Action::Nothing);
        assert_eq!(next(&mut schedule, 16_100, 0), Action::BeginPass);
        assert_eq!(next(&mut schedule, 16_200, 16_000), Action::FinishNow);
        assert_eq!(next(&mut schedule, 16_300, 16_200), Action::Nothing);
        assert_eq!(next(&mut schedule, 24_200, 16_200), Action::BeginPass);
        assert_eq!(next(&mut schedule, 24_300, 24_200), Action::FinishNow);
    }

    #[test]
    fn writes_that_are_faster_than_the_passes_do_not_let_the_wal_grow_for_ever() {
        let mut schedule = Schedule::new(16_000);
        let (mut pages, mut copied) = (0, 0);
        for _ in 0..100 {
            match next(&mut schedule, pages, copied) {
                Action::BeginPass => copied = pages,
                Action::FinishNow => (pages, copied) = (0, 0),
                Action::Nothing => {}
            }
            // More than the writer copies itself, during every pass.
            pages += 1_000;
            assert!(pages <= 34_000, "{pages}");
        }
    }
}
