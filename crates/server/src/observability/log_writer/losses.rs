//! Lost log lines: the metric, and the line that reports them in the log itself.

use jiff::Timestamp;
use prometheus::{IntCounter, IntCounterVec, Opts};

use super::LogFormat;

/// Numbers of lost lines, by reason.
#[derive(Default, PartialEq, Eq)]
pub(super) struct LossCounts {
    pub(super) buffer_full: u64,
    pub(super) write_failed: u64,
}

impl LossCounts {
    /// The log line that reports them.
    pub(super) fn notice(&self, format: LogFormat, now: Timestamp) -> String {
        let Self { buffer_full, write_failed } = self;
        let message = "log lines were lost: the reader of standard error was too slow or away";
        match format {
            LogFormat::Human => format!(
                "{now:.3}  WARN {message} buffer_full={buffer_full} write_failed={write_failed}\n"
            ),
            LogFormat::Json => {
                format!(
                    r#"{{"timestamp":"{now:.3}","level":"WARN","message":"{message}","buffer_full":{buffer_full},"write_failed":{write_failed}}}"#
                ) + "\n"
            }
        }
    }
}

/// The metric of lost lines.
#[derive(Clone)]
pub(crate) struct LostLines {
    pub(crate) counters: IntCounterVec,
    /// The buffer was full.
    pub(super) buffer_full: IntCounter,
    /// The sink refused the line.
    pub(super) write_failed: IntCounter,
}

impl Default for LostLines {
    fn default() -> Self {
        let name = "galley_log_lines_dropped_total";
        let options = Opts::new(name, "Log lines that were not written, by reason");
        let counters =
            IntCounterVec::new(options, &["reason"]).expect("the metric definition is valid");
        Self {
            buffer_full: counters.with_label_values(&["buffer_full"]),
            write_failed: counters.with_label_values(&["write_failed"]),
            counters,
        }
    }
}
