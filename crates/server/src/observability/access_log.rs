//! The access log: one line per request, with the route pattern and the credential id, never the
//! path or a secret. A writer thread writes the lines in batches, so that a request never waits for
//! the terminal or the disk.

use std::{
    fmt::Write as _,
    io::Write,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use galley_store::CredentialId;
use jiff::Timestamp;

/// Maximum size of the buffered lines. Further lines are dropped and counted, so that a stuck reader
/// cannot exhaust memory.
const MAX_BUFFERED_BYTES: usize = 4 * 1_024 * 1_024;

/// How long the writer thread collects lines into one batch.
const BATCH_WINDOW: Duration = Duration::from_millis(10);

/// Format of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Plain text for people.
    Human,
    /// One JSON object per line.
    Json,
}

/// The log entry of one request.
#[derive(Debug)]
pub(crate) struct AccessLogEntry<'a> {
    pub(crate) at: Timestamp,
    pub(crate) method: &'a str,
    pub(crate) route: &'a str,
    pub(crate) status: u16,
    pub(crate) took: Duration,
    pub(crate) request_id: &'a str,
    pub(crate) token: Option<CredentialId>,
    pub(crate) problem: Option<&'static str>,
}

/// Handle to the access log. Dropping the last handle flushes the buffered lines.
#[derive(Clone)]
pub struct AccessLog(Option<Arc<Log>>);

struct Log {
    format: LogFormat,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    buffer: Mutex<Buffer>,
    changed: Condvar,
}

#[derive(Default)]
struct Buffer {
    text: String,
    dropped: u64,
    closed: bool,
}

impl AccessLog {
    /// Creates a log that writes to `sink`.
    pub fn new(format: LogFormat, mut sink: Box<dyn Write + Send>) -> Self {
        let shared = Arc::new(Shared::default());
        let writer_shared = Arc::clone(&shared);
        let write = move || while writer_shared.write_next(&mut *sink) {};
        let writer = std::thread::Builder::new().name("galley-access-log".to_owned()).spawn(write);
        Self(Some(Arc::new(Log { format, shared, writer: writer.ok() })))
    }

    /// Creates a disabled log.
    pub fn off() -> Self {
        Self(None)
    }

    pub(crate) fn write(&self, entry: &AccessLogEntry<'_>) {
        let Some(log) = &self.0 else { return };
        let mut text = String::with_capacity(256);
        match log.format {
            LogFormat::Human => write_human(&mut text, entry),
            LogFormat::Json => write_json(&mut text, entry),
        }
        let mut buffer = log.shared.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.text.len() > MAX_BUFFERED_BYTES {
            buffer.dropped += 1;
            return;
        }
        let was_empty = buffer.text.is_empty();
        buffer.text.push_str(&text);
        drop(buffer);
        if was_empty {
            log.shared.changed.notify_one();
        }
    }
}

impl Shared {
    /// Waits for lines and writes them. Returns `false` once the log is closed and flushed.
    fn write_next(&self, sink: &mut dyn Write) -> bool {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        while buffer.text.is_empty() && !buffer.closed {
            buffer = self.changed.wait(buffer).unwrap_or_else(PoisonError::into_inner);
        }
        if !buffer.closed {
            // Under load more lines follow within the window: write them together.
            let waited = self.changed.wait_timeout(buffer, BATCH_WINDOW);
            buffer = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let closed = buffer.closed;
        let text = std::mem::take(&mut buffer.text);
        let dropped = std::mem::take(&mut buffer.dropped);
        drop(buffer);
        // A write error is ignored: the log is the only place to report it.
        let _ = sink.write_all(text.as_bytes()).and_then(|()| sink.flush());
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "access log lines were dropped because the reader of the log is too slow"
            );
        }
        !closed
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.buffer.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.shared.changed.notify_one();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

// No escaping is needed: route patterns, methods and slugs are constants, and request ids are
// validated.

fn write_human(out: &mut String, entry: &AccessLogEntry<'_>) {
    let AccessLogEntry { at, method, route, status, request_id, .. } = entry;
    let micros = entry.took.as_micros();
    let _ = write!(out, "{at:.3} {method} {route} {status} {micros}us id={request_id}");
    if let Some(token) = entry.token {
        let _ = write!(out, " token={token}");
    }
    if let Some(problem) = entry.problem {
        let _ = write!(out, " problem={problem}");
    }
    out.push('\n');
}

fn write_json(out: &mut String, entry: &AccessLogEntry<'_>) {
    let AccessLogEntry { at, method, route, status, request_id, .. } = entry;
    let micros = entry.took.as_micros();
    let _ = write!(
        out,
        r#"{{"timestamp":"{at:.3}","method":"{method}","route":"{route}","status":{status},"took_us":{micros},"request_id":"{request_id}""#
    );
    if let Some(token) = entry.token {
        let _ = write!(out, r#","token":{token}"#);
    }
    if let Some(problem) = entry.problem {
        let _ = write!(out, r#","problem":"{problem}""#);
    }
    out.push_str("}\n");
}
