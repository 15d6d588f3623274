//! Diagnostics as workflow commands, which GitHub shows at the lines of a change.

use super::{
    check::{Diagnostic, Report, Severity},
    human::{printable, sentence},
};

/// One command for each diagnostic of a file.
pub(super) fn commands(report: &Report) -> Vec<String> {
    let mut commands: Vec<String> =
        report.diagnostics.iter().map(|diagnostic| command(&report.file, diagnostic)).collect();
    for (more, what) in [(report.more_errors, "errors"), (report.more_warnings, "warnings")] {
        if more > 0 {
            let file = property(&report.file);
            commands.push(format!("::notice file={file}::{more} more {what} are not shown"));
        }
    }
    commands
}

/// The command for a file that cannot be read.
pub(super) fn unreadable(file: &str, error: &str) -> String {
    format!("::error file={}::{}", property(file), data(error))
}

fn command(file: &str, diagnostic: &Diagnostic) -> String {
    let Diagnostic { content, start, end, .. } = diagnostic;
    let level = match content.severity {
        Severity::Error | Severity::Lost | Severity::Incomplete => "error",
        Severity::Warning | Severity::Changed => "warning",
    };
    let mut place = format!("line={},endLine={}", start.line, end.line);
    // GitHub supports columns only within one line.
    if start.line == end.line {
        place = format!("{place},col={},endColumn={}", start.column, end.column);
    }
    let mut message = sentence(diagnostic);
    if let Some(hint) = &content.hint {
        message = format!("{message}\n{hint}");
    }
    let (file, title, message) = (property(file), property(content.rule), data(&message));
    format!("::{level} file={file},{place},title={title}::{message}")
}

/// Escapes the message after the second `::`.
fn data(text: &str) -> String {
    let plain = |it: char| it.is_control() && !matches!(it, '\n' | '\r' | '\t');
    printable(text)
        .replace(plain, "·")
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property value.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_workflow_commands_are_escaped() {
        assert_eq!(data("100 %:\r\na,b\u{1b}[1m"), "100 %25:%0D%0Aa,b·[1m");
        assert_eq!(property("C:\\a,b%.json"), "C%3A\\a%2Cb%25.json");
    }
}
