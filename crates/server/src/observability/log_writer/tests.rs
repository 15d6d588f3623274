//! Tests of the log writer: stalled, failing and slow sinks.

use std::sync::mpsc::{Receiver, Sender, channel};

use jiff::Timestamp;

use super::*;

/// Reaching it means that something hangs.
const TIMEOUT: Duration = Duration::from_secs(20);

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// A sink that asks the test before each write: it takes this many bytes, or fails.
struct AskingSink {
    asks: Sender<usize>,
    answers: Receiver<Result<usize, ErrorKind>>,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Write for AskingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.asks.send(bytes.len());
        // Takes everything once the test is over.
        let answer = self.answers.recv().unwrap_or(Ok(usize::MAX));
        let bytes = &bytes[..answer?.min(bytes.len())];
        self.taken.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Rig {
    writer: LogWriter,
    asks: Receiver<usize>,
    answers: Sender<Result<usize, ErrorKind>>,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Rig {
    fn start(format: LogFormat) -> Self {
        let ((asks, asked), (answers, answered)) = (channel(), channel());
        let taken = Arc::<Mutex<Vec<u8>>>::default();
        let sink = AskingSink { asks, answers: answered, taken: Arc::clone(&taken) };
        let writer = LogWriter::start(format, Arc::new(FixedClock), Box::new(sink)).unwrap();
        Self { writer, asks: asked, answers, taken }
    }

    fn log(&self, line: &str) {
        self.writer.clone().write_all(line.as_bytes()).unwrap();
    }

    fn answer(&self, answer: Result<usize, ErrorKind>) {
        self.answers.send(answer).unwrap();
    }

    /// Lets every further write succeed, and returns everything that was written.
    fn written(self) -> String {
        drop(self.answers);
        assert!(self.writer.flush(TIMEOUT));
        String::from_utf8(self.taken.lock().unwrap().clone()).unwrap()
    }

    /// Lost lines: because the buffer was full, and because the sink failed.
    fn lost(&self) -> (u64, u64) {
        let lost = self.writer.lost_lines();
        (lost.buffer_full.get(), lost.write_failed.get())
    }
}

#[test]
fn a_stalled_sink_stops_no_caller_and_its_recovery_reports_the_dropped_lines() {
    let rig = Rig::start(LogFormat::Json);
    rig.log("first\n");
    // The writer thread is in the middle of a write from here on.
    assert_eq!(rig.asks.recv_timeout(TIMEOUT), Ok(6));
    let line = "x".repeat(MAX_BUFFERED_BYTES / 4 - 1) + "\n";
    for _ in 0..6 {
        rig.writer.queue_access_line(&line);
    }
    rig.log("a diagnostic message\n");
    assert!(!rig.writer.flush(Duration::from_millis(1)), "the sink is stalled");
    assert_eq!(rig.lost(), (2, 0));
    rig.answer(Ok(usize::MAX));
    let written = rig.written();
    let rest = written.strip_prefix(&format!("first\n{}", line.repeat(4))).unwrap();
    let (diagnostic, notice) = rest.split_once('\n').unwrap();
    assert_eq!(diagnostic, "a diagnostic message");
    let notice: serde_json::Value = serde_json::from_str(notice).unwrap();
    assert_eq!((&notice["buffer_full"], &notice["write_failed"]), (&2.into(), &0.into()));
    assert_eq!((&notice["level"], notice["message"].is_string()), (&"WARN".into(), true));
}

#[test]
fn lines_that_a_closed_sink_refuses_are_counted_and_reported_before_the_next_line() {
    let rig = Rig::start(LogFormat::Human);
    rig.log("lost\n");
    rig.answer(Err(ErrorKind::BrokenPipe));
    // The line about the loss.
    rig.answer(Err(ErrorKind::BrokenPipe));
    assert!(rig.writer.flush(TIMEOUT), "a refused line is not retried");
    assert_eq!(rig.lost(), (0, 1));
    rig.log("next\n");
    let written = rig.written();
    let (notice, next) = written.split_once('\n').unwrap();
    assert!(notice.ends_with("buffer_full=0 write_failed=1"), "{notice}");
    assert_eq!(next, "next\n");
}

#[test]
fn a_line_after_one_that_was_cut_off_begins_on_its_own() {
    let rig = Rig::start(LogFormat::Human);
    rig.log("cut off\n");
    rig.answer(Ok(3));
    rig.answer(Err(ErrorKind::StorageFull));
    let written = rig.written();
    let (cut, notice) = written.split_once('\n').unwrap();
    assert_eq!(cut, "cut");
    assert!(notice.ends_with("write_failed=1\n"), "{notice}");
}

#[test]
fn a_full_sink_that_does_not_block_is_retried() {
    let rig = Rig::start(LogFormat::Human);
    rig.log("line\n");
    rig.answer(Err(ErrorKind::WouldBlock));
    rig.answer(Err(ErrorKind::Interrupted));
    assert_eq!(rig.written(), "line\n");
}

#[test]
fn dropping_the_last_handle_flushes() {
    let rig = Rig::start(LogFormat::Human);
    rig.log("last\n");
    let Rig { writer, answers, taken, .. } = rig;
    drop(answers);
    drop(writer);
    assert_eq!(*taken.lock().unwrap(), b"last\n");
}
