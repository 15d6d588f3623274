//! The access log: one line per request, with the route pattern and the credential id, never the
//! path or a secret.

use std::{fmt::Write as _, time::Duration};

use galley_store::{CredentialId, TraceContext};
use jiff::Timestamp;

use super::log_writer::{LogFormat, LogWriter, LostLines};

/// The routes for operators, which monitoring calls every few seconds.
pub(crate) const MONITORING_ROUTES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Which requests get a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedRequests {
    /// No request.
    None,
    /// Every request, except successful ones to `/healthz`, `/readyz` and `/metrics`.
    Calls,
    /// Every request.
    All,
}

impl LoggedRequests {
    /// Whether a request gets a line.
    fn includes(self, route: &str, status: u16) -> bool {
        match self {
            Self::None => false,
            Self::Calls => status >= 400 || !MONITORING_ROUTES.contains(&route),
            Self::All => true,
        }
    }
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
    pub(crate) trace: Option<TraceContext>,
    pub(crate) token: Option<CredentialId>,
    pub(crate) problem: Option<&'static str>,
}

/// The access log.
#[derive(Clone)]
pub struct AccessLog {
    writer: Option<LogWriter>,
    logged: LoggedRequests,
    lost_lines: LostLines,
}

impl AccessLog {
    /// Creates a log that writes a line to `writer` for these requests. The metrics report the lines
    /// that `writer` loses in any case.
    pub fn new(writer: LogWriter, logged: LoggedRequests) -> Self {
        let lost_lines = writer.lost_lines();
        Self { writer: Some(writer), logged, lost_lines }
    }

    /// Creates a disabled log, for a service without a log writer.
    pub fn off() -> Self {
        Self { writer: None, logged: LoggedRequests::None, lost_lines: LostLines::default() }
    }

    /// The lines that the log writer has lost.
    pub(crate) fn lost_lines(&self) -> &LostLines {
        &self.lost_lines
    }

    pub(crate) fn write(&self, entry: &AccessLogEntry<'_>) {
        let Some(writer) = &self.writer else { return };
        if !self.logged.includes(entry.route, entry.status) {
            return;
        }
        let mut line = String::with_capacity(384);
        match writer.format() {
            LogFormat::Human => write_human(&mut line, entry),
            LogFormat::Json => write_json(&mut line, entry),
        }
        writer.queue_access_line(&line);
    }
}

// No escaping is needed: route patterns, methods and slugs are constants, request ids are validated,
// and ids of traces are numbers.

fn write_human(out: &mut String, entry: &AccessLogEntry<'_>) {
    let AccessLogEntry { at, method, route, status, request_id, .. } = entry;
    let micros = entry.took.as_micros();
    let _ = write!(out, "{at:.3} {method} {route} {status} {micros}us id={request_id}");
    if let Some(trace) = entry.trace {
        let _ = write!(out, " trace_id={}", trace.trace_id());
    }
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
    let level = if *status >= 500 { "ERROR" } else { "INFO" };
    let _ = write!(
        out,
        r#"{{"timestamp":"{at:.3}","level":"{level}","message":"{method} {route} {status}","method":"{method}","route":"{route}","status":{status},"took_us":{micros},"request_id":"{request_id}""#
    );
    if let Some(trace) = entry.trace {
        let (trace_id, span_id) = (trace.trace_id(), trace.span_id());
        let _ = write!(out, r#","trace_id":"{trace_id}","span_id":"{span_id}""#);
    }
    if let Some(token) = entry.token {
        let _ = write!(out, r#","token":{token}"#);
    }
    if let Some(problem) = entry.problem {
        let _ = write!(out, r#","problem":"{problem}""#);
    }
    out.push_str("}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successful_calls_of_monitoring_get_a_line_only_on_request() {
        for route in MONITORING_ROUTES {
            assert!(!LoggedRequests::Calls.includes(route, 200), "{route}");
            assert!(LoggedRequests::All.includes(route, 200), "{route}");
            assert!(LoggedRequests::Calls.includes(route, 503), "{route}: a failure is logged");
        }
        assert!(LoggedRequests::Calls.includes("/docs", 200));
        assert!(LoggedRequests::Calls.includes("(none)", 404));
        assert!(!LoggedRequests::None.includes("(none)", 500));
    }
}
