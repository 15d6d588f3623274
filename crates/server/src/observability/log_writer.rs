//! The log writer: one thread that owns the sink of all log lines. A caller appends its line to a
//! bounded buffer and never waits for the sink, which may stall (a full pipe) or fail (a closed one).

mod losses;

use std::{
    io::{self, ErrorKind, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::clock::Clock;
use losses::LossCounts;
pub(crate) use losses::LostLines;

/// Maximum size of the buffered lines. Further access log lines are dropped and counted, so that a
/// stalled reader cannot exhaust memory.
const MAX_BUFFERED_BYTES: usize = 4 * 1_024 * 1_024;

/// Room beyond [`MAX_BUFFERED_BYTES`] for diagnostics, so that access log lines do not displace them.
const DIAGNOSTICS_RESERVE_BYTES: usize = 256 * 1_024;

/// How long the writer thread collects lines into one batch.
const BATCH_WINDOW: Duration = Duration::from_millis(10);

/// Pause before a write is retried on a sink that is non-blocking and full.
const SINK_RETRY_DELAY: Duration = Duration::from_millis(10);

/// How long dropping the last handle waits for the buffered lines.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Format of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Plain text for people.
    Human,
    /// One JSON object per line.
    Json,
}

/// Handle to the writer thread. As [`Write`] it takes one diagnostic line per call, and never fails.
/// Dropping the last handle flushes the buffered lines.
#[derive(Clone)]
pub struct LogWriter(Arc<Handle>);

struct Handle {
    format: LogFormat,
    shared: Arc<Shared>,
}

struct Shared {
    buffer: Mutex<Buffer>,
    /// Lines were added to an empty buffer, or a flush was requested.
    queued: Condvar,
    /// The writer thread is done with a batch.
    finished: Condvar,
    lost_lines: LostLines,
}

#[derive(Default)]
struct Buffer {
    text: String,
    /// Lines accepted so far.
    queued_lines: u64,
    /// Lines that the writer thread has written or given up so far.
    finished_lines: u64,
    /// Lines dropped since the last batch.
    dropped_lines: u64,
    /// A caller waits for the lines: write them without collecting more.
    is_urgent: bool,
    is_closed: bool,
}

impl LogWriter {
    /// Starts the thread that writes to `sink`.
    pub fn start(
        format: LogFormat,
        clock: Arc<dyn Clock>,
        sink: Box<dyn Write + Send>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            buffer: Mutex::default(),
            queued: Condvar::new(),
            finished: Condvar::new(),
            lost_lines: LostLines::default(),
        });
        let thread = WriterThread {
            shared: Arc::clone(&shared),
            sink,
            format,
            clock,
            unreported: LossCounts::default(),
            is_line_cut: false,
        };
        std::thread::Builder::new().name("galley-log".to_owned()).spawn(move || thread.run())?;
        Ok(Self(Arc::new(Handle { format, shared })))
    }

    /// Waits until every line queued before this call is written or given up, but no longer than
    /// `timeout`. Returns whether that is the case.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.0.shared.flush(timeout)
    }

    pub(crate) fn format(&self) -> LogFormat {
        self.0.format
    }

    /// The lines that were lost so far.
    pub(crate) fn lost_lines(&self) -> LostLines {
        self.0.shared.lost_lines.clone()
    }

    /// Queues an access log line, which ends with a line break.
    pub(crate) fn queue_access_line(&self, line: &str) {
        self.0.shared.queue(line, MAX_BUFFERED_BYTES);
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.shared.queue(&text, MAX_BUFFERED_BYTES + DIAGNOSTICS_RESERVE_BYTES);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.flush(CLOSE_TIMEOUT);
        self.shared.lock().is_closed = true;
        self.shared.queued.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a line, unless the buffer would then hold more than `max_bytes`.
    fn queue(&self, line: &str, max_bytes: usize) {
        let mut buffer = self.lock();
        if buffer.text.len() + line.len() > max_bytes {
            buffer.dropped_lines += 1;
            self.lost_lines.buffer_full.inc();
            return;
        }
        let was_empty = buffer.text.is_empty();
        buffer.text.push_str(line);
        buffer.queued_lines += 1;
        drop(buffer);
        if was_empty {
            self.queued.notify_one();
        }
    }

    fn flush(&self, timeout: Duration) -> bool {
        let mut buffer = self.lock();
        let target = buffer.queued_lines;
        buffer.is_urgent = true;
        self.queued.notify_one();
        let is_pending = |buffer: &mut Buffer| buffer.finished_lines < target;
        let waited = self.finished.wait_timeout_while(buffer, timeout, is_pending);
        let (buffer, _) = waited.unwrap_or_else(PoisonError::into_inner);
        buffer.finished_lines >= target
    }

    /// Waits for lines. `None` once the log is closed and nothing is left.
    fn next_batch(&self) -> Option<Batch> {
        let mut buffer = self.lock();
        while buffer.text.is_empty() && !buffer.is_closed {
            // Nothing is pending, so nothing is urgent.
            buffer.is_urgent = false;
            buffer = self.queued.wait(buffer).unwrap_or_else(PoisonError::into_inner);
        }
        if !buffer.is_urgent && !buffer.is_closed {
            // Under load more lines follow within the window: write them together.
            let waited = self.queued.wait_timeout(buffer, BATCH_WINDOW);
            buffer = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        buffer.is_urgent = false;
        let text = std::mem::take(&mut buffer.text);
        let dropped_lines = std::mem::take(&mut buffer.dropped_lines);
        (!text.is_empty()).then_some(Batch { text, dropped_lines, last_line: buffer.queued_lines })
    }

    fn finish(&self, last_line: u64) {
        self.lock().finished_lines = last_line;
        self.finished.notify_all();
    }
}

/// Lines to write together.
struct Batch {
    text: String,
    /// Lines that were dropped after these, because the buffer was full.
    dropped_lines: u64,
    /// The number of the last line, counted from the start.
    last_line: u64,
}

/// The state of the writer thread.
struct WriterThread {
    shared: Arc<Shared>,
    sink: Box<dyn Write + Send>,
    format: LogFormat,
    clock: Arc<dyn Clock>,
    /// Lost lines that no line in the log reports yet.
    unreported: LossCounts,
    /// The sink has taken only the beginning of a line.
    is_line_cut: bool,
}

impl WriterThread {
    fn run(mut self) {
        while let Some(batch) = self.shared.next_batch() {
            self.report_losses();
            if let Err(lost) = self.write(&batch.text) {
                self.shared.lost_lines.write_failed.inc_by(lost);
                self.unreported.write_failed += lost;
            }
            self.unreported.buffer_full += batch.dropped_lines;
            self.report_losses();
            self.shared.finish(batch.last_line);
        }
    }

    /// Writes a line about the lines lost since the last such line.
    fn report_losses(&mut self) {
        if self.unreported != LossCounts::default() {
            let notice = self.unreported.notice(self.format, self.clock.now());
            if self.write(&notice).is_ok() {
                self.unreported = LossCounts::default();
            }
        }
    }

    /// Writes lines. The error is how many of them were not written, or only in part.
    fn write(&mut self, lines: &str) -> Result<(), u64> {
        if self.is_line_cut {
            self.is_line_cut = write_all(&mut *self.sink, b"\n").is_err();
        }
        let Err(rest) = write_all(&mut *self.sink, lines.as_bytes()) else { return Ok(()) };
        let written = &lines.as_bytes()[..lines.len() - rest.len()];
        self.is_line_cut |= written.last().is_some_and(|byte| *byte != b'\n');
        Err(rest.split(|byte| *byte == b'\n').skip(1).count() as u64)
    }
}

/// Writes all bytes, or returns those that could not be written.
fn write_all<'b>(sink: &mut dyn Write, bytes: &'b [u8]) -> Result<(), &'b [u8]> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match sink.write(rest) {
            Ok(0) => return Err(rest),
            Ok(length) => rest = &rest[length..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(SINK_RETRY_DELAY);
            }
            Err(_) => return Err(rest),
        }
    }
    let _ = sink.flush();
    Ok(())
}

#[cfg(test)]
mod tests;
