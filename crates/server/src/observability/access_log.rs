//! The access log: one line per request, with the route pattern and credential ids, never the
//! path or a secret. Lines are handed to a thread that writes whatever has gathered at once, so
//! that a request never waits for the terminal or the disk.

use std::{
    fmt::Write as _,
    io::Write,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use galley_store::CredentialId;
use jiff::Timestamp;

/// Lines waiting beyond this are dropped and counted: a stuck reader must not fill the memory.
const MOST_WAITING: usize = 4 * 1_024 * 1_024;

/// How long lines are gathered before they are written.
const GATHER: Duration = Duration::from_millis(10);

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// What one request is remembered by.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) at: Timestamp,
    pub(crate) method: &'a str,
    pub(crate) route: &'a str,
    pub(crate) status: u16,
    pub(crate) took: Duration,
    pub(crate) request_id: &'a str,
    pub(crate) token: Option<CredentialId>,
    pub(crate) problem: Option<&'static str>,
}

/// Writes the access log. Dropping the last handle writes out what waits.
#[derive(Clone)]
pub struct AccessLog(Option<Arc<Log>>);

struct Log {
    format: LogFormat,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    text: String,
    dropped: u64,
    ended: bool,
}

impl AccessLog {
    /// A log into `sink`.
    pub fn new(format: LogFormat, mut sink: Box<dyn Write + Send>) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let write = move || while theirs.write_next(&mut *sink) {};
        let writer = std::thread::Builder::new().name("galley-access-log".to_owned()).spawn(write);
        Self(Some(Arc::new(Log { format, shared, writer: writer.ok() })))
    }

    /// A log that is switched off.
    pub fn off() -> Self {
        Self(None)
    }

    pub(crate) fn write(&self, line: &Line<'_>) {
        let Some(log) = &self.0 else { return };
        let mut text = String::with_capacity(256);
        match log.format {
            LogFormat::Human => human(&mut text, line),
            LogFormat::Json => json(&mut text, line),
        }
        let mut waiting = log.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.text.len() > MOST_WAITING {
            waiting.dropped += 1;
            return;
        }
        let was_empty = waiting.text.is_empty();
        waiting.text.push_str(&text);
        drop(waiting);
        if was_empty {
            log.shared.arrived.notify_one();
        }
    }
}

impl Shared {
    /// Waits for lines and writes them; `false` when the log has ended and nothing is left.
    fn write_next(&self, sink: &mut dyn Write) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.text.is_empty() && !waiting.ended {
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if !waiting.ended {
            // Under load more lines come in a moment: one write for all of them.
            let soon = self.arrived.wait_timeout(waiting, GATHER);
            waiting = soon.unwrap_or_else(PoisonError::into_inner).0;
        }
        let ended = waiting.ended;
        let text = std::mem::take(&mut waiting.text);
        let dropped = std::mem::take(&mut waiting.dropped);
        drop(waiting);
        // There is nowhere to complain about a log that cannot be written.
        let _ = sink.write_all(text.as_bytes()).and_then(|()| sink.flush());
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "access log lines were dropped: whoever reads the log is too slow"
            );
        }
        !ended
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.shared.arrived.notify_one();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

// Route patterns, methods and slugs are ours, and request ids are checked: nothing needs escaping.

fn human(out: &mut String, line: &Line<'_>) {
    let Line { at, method, route, status, request_id, .. } = line;
    let micros = line.took.as_micros();
    let _ = write!(out, "{at:.3} {method} {route} {status} {micros}us id={request_id}");
    if let Some(token) = line.token {
        let _ = write!(out, " token={token}");
    }
    if let Some(problem) = line.problem {
        let _ = write!(out, " problem={problem}");
    }
    out.push('\n');
}

fn json(out: &mut String, line: &Line<'_>) {
    let Line { at, method, route, status, request_id, .. } = line;
    let micros = line.took.as_micros();
    let _ = write!(
        out,
        r#"{{"timestamp":"{at:.3}","method":"{method}","route":"{route}","status":{status},"took_us":{micros},"request_id":"{request_id}""#
    );
    if let Some(token) = line.token {
        let _ = write!(out, r#","token":{token}"#);
    }
    if let Some(problem) = line.problem {
        let _ = write!(out, r#","problem":"{problem}""#);
    }
    out.push_str("}\n");
}
