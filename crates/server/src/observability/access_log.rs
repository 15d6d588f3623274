//! The access log: one line per request, with the route pattern and the credential id, never the
//! path or a secret.

use std::{fmt::Write as _, time::Duration};

use galley_store::CredentialId;
use jiff::Timestamp;

use super::log_writer::{LogFormat, LogWriter, LostLines};

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

/// The access log.
#[derive(Clone)]
pub struct AccessLog {
    writer: Option<LogWriter>,
    lost_lines: LostLines,
}

impl AccessLog {
    /// Creates a log that writes to `writer` if it is enabled. The metrics report the lines that
    /// `writer` loses in both cases.
    pub fn new(writer: LogWriter, is_enabled: bool) -> Self {
        let lost_lines = writer.lost_lines();
        Self { writer: is_enabled.then_some(writer), lost_lines }
    }

    /// Creates a disabled log, for a service without a log writer.
    pub fn off() -> Self {
        Self { writer: None, lost_lines: LostLines::default() }
    }

    /// The lines that the log writer has lost.
    pub(crate) fn lost_lines(&self) -> &LostLines {
        &self.lost_lines
    }

    pub(crate) fn write(&self, entry: &AccessLogEntry<'_>) {
        let Some(writer) = &self.writer else { return };
        let mut line = String::with_capacity(256);
        match writer.format() {
            LogFormat::Human => write_human(&mut line, entry),
            LogFormat::Json => write_json(&mut line, entry),
        }
        writer.queue_access_line(&line);
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
