//! The progress of a long command: one line on standard error that is drawn again and again, if that
//! is a terminal.

use std::{fmt::Write, io::stderr, path::Path, time::Duration};

use galley_store::CopyPhase;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::terminal;

/// How often the line is drawn.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The progress line of a command. Dropping it clears the line.
pub(super) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Shows what the command does, and for how long it has done so.
    pub(super) fn start(what: &str) -> Self {
        let is_shown = terminal::can_redraw(&stderr());
        let target =
            if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let line = Self(bar);
        line.doing(what);
        if is_shown {
            line.0.enable_steady_tick(REDRAW_INTERVAL);
        }
        line
    }

    /// Whether the line can be seen.
    pub(super) fn is_shown(&self) -> bool {
        !self.0.is_hidden()
    }

    /// Shows what the command does now.
    pub(super) fn doing(&self, what: &str) {
        self.restyle(style("{spinner} {msg} ({elapsed})"), what);
    }

    /// Shows the phase of a backup or a restore.
    pub(super) fn copying(&self, phase: CopyPhase) {
        match phase {
            CopyPhase::Checking => self.doing("checking the backup for damage"),
            CopyPhase::Writing { file, bytes } => {
                let style = style("{spinner} {msg}: {written} ({elapsed})");
                let written = move |_: &ProgressState, out: &mut dyn Write| {
                    let _ = out.write_str(&written(&file, bytes));
                };
                self.restyle(style.with_key("written", written), "writing the copy");
            }
        }
    }

    /// Begins to count rows. The time left ignores rows that an earlier run copied.
    pub(super) fn count_rows(&self, done: u64, of: u64) {
        self.0.set_length(of);
        self.0.set_position(done);
        self.0.reset_eta();
        self.restyle(style("{msg:<26} {wide_bar} {human_pos}/{human_len} rows, {eta} left"), "");
    }

    /// Shows how many rows are done.
    pub(super) fn rows(&self, what: String, done: u64) {
        self.0.set_message(what);
        self.0.set_position(done);
    }

    fn restyle(&self, style: ProgressStyle, message: &str) {
        self.0.set_style(style);
        self.0.set_message(message.to_owned());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// How much of a file is there.
fn written(file: &Path, expected_bytes: u64) -> String {
    let bytes = file.metadata().map_or(0, |it| it.len());
    format!("{} of about {}", HumanBytes(bytes), HumanBytes(expected_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shows_how_much_of_the_file_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("copy");
        assert_eq!(written(&file, 4_096), "0 B of about 4.00 KiB");
        std::fs::write(&file, [0; 2_048]).unwrap();
        assert_eq!(written(&file, 4_096), "2.00 KiB of about 4.00 KiB");
    }
}
