//! The diagnostics of the service: log lines and panics go through the log writer, so that neither a
//! stalled nor a closed standard error stops a thread.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    fmt, io,
    panic::PanicHookInfo,
    sync::Arc,
};

use galley_server::{Clock as _, LogFormat, LogWriter};
use tracing_subscriber::{
    Layer,
    filter::filter_fn,
    fmt::{format::Writer, time::FormatTime},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::{clock::SystemClock, settings::Settings, terminal};

/// Starts the log of this process. The caller flushes it before the process exits.
pub(crate) fn start(settings: &Settings) -> io::Result<LogWriter> {
    let clock = Arc::new(SystemClock::new());
    let log = LogWriter::start(settings.log_format, clock, Box::new(io::stderr()))?;
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(settings.log_level)
        .with_target(false)
        .with_timer(LogTimer)
        .with_ansi(terminal::use_colour(&io::stderr()))
        // They would be printed to standard error directly.
        .log_internal_errors(false)
        .with_writer(move || writer.clone());
    match settings.log_format {
        LogFormat::Human => subscriber.finish().with(own_lines()).init(),
        LogFormat::Json => {
            subscriber.json().flatten_event(true).finish().with(own_lines()).init();
        }
    }
    std::panic::set_hook(Box::new(log_panic));
    Ok(log)
}

/// Drops the lines of the name resolver. They repeat names that callers chose and data from name
/// servers; Galley itself logs a failed lookup.
fn own_lines<S: tracing::Subscriber>() -> impl Layer<S> {
    filter_fn(|line| !line.target().starts_with("hickory_"))
}

/// The time of a log line, with milliseconds as in the access log.
struct LogTimer;

impl FormatTime for LogTimer {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        write!(out, "{:.3}", SystemClock::new().now())
    }
}

/// Logs a panic. The standard library's hook would write to standard error and wait for its reader.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let backtrace = Backtrace::capture();
    let is_captured = backtrace.status() == BacktraceStatus::Captured;
    tracing::error!(
        thread = thread.name(),
        location = panic.location().map(tracing::field::display),
        cause = panic.payload_as_str(),
        backtrace = is_captured.then(|| tracing::field::display(&backtrace)),
        "a thread panicked; this is a bug in Galley, please report it"
    );
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        panic::catch_unwind,
        sync::{Mutex, PoisonError},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_of_the_name_resolver_are_dropped() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber.with(own_lines()), || {
            tracing::error!(target: "hickory_net::udp", "a forged name");
            tracing::info!("started");
        });
        let bytes = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("started") && !text.contains("forged"), "{text}");
    }

    #[test]
    fn a_panic_is_logged_as_one_line_with_its_location_and_cause() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_writer(move || writer.clone())
            .finish();
        // Tests on other threads keep their hook.
        let (former, thread) = (std::panic::take_hook(), std::thread::current().id());
        std::panic::set_hook(Box::new(move |panic| match std::thread::current().id() {
            id if id == thread => log_panic(panic),
            _ => former(panic),
        }));
        tracing::subscriber::with_default(subscriber, || {
            assert!(catch_unwind(|| panic!("first line\nsecond {}", "line")).is_err());
        });
        let bytes = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let line: serde_json::Value = serde_json::from_slice(&bytes).expect("one line of JSON");
        assert_eq!(
            (&line["level"], &line["cause"]),
            (&"ERROR".into(), &"first line\nsecond line".into())
        );
        let location = line["location"].as_str().unwrap_or_default();
        assert!(location.contains("diagnostics.rs:"), "{line}");
    }
}
