//! `galley lint`: checks template files offline and shows each diagnostic at its line.

pub(super) mod check;
pub(super) mod conflicts;
pub(super) mod files;
mod github;
pub(super) mod human;
mod lines;
mod source;

use std::process::ExitCode;

use serde_json::{Value, json};

use self::{
    check::{Checker, Diagnostic, Report, Severity},
    files::{InputFiles, ReadError},
};
use crate::{arguments::LintOptions, table, terminal};

/// Exit code: some file has errors.
const EXIT_ERRORS: u8 = 1;

/// Exit code: some file could not be read.
const EXIT_UNREADABLE: u8 = 2;

/// Checks the files and prints the diagnostics.
pub(super) fn run(options: &LintOptions, json: bool) -> ExitCode {
    let InputFiles { inputs, mut read_errors, .. } = InputFiles::of(&options.files);
    let mut checker = Checker::new(options.rulebook);
    let mut reports = Vec::new();
    for input in inputs {
        match input.read() {
            Ok(bytes) => reports.push(checker.check(&input.name(), &bytes)),
            Err(error) => read_errors.push(error),
        }
    }
    print_results(&reports, &read_errors, options, json);
    let count = Count::of(&reports);
    let has_failed = count.errors > 0 || (options.deny_warnings && count.warnings > 0);
    match (read_errors.is_empty(), has_failed) {
        (false, _) => ExitCode::from(EXIT_UNREADABLE),
        (true, true) => ExitCode::from(EXIT_ERRORS),
        (true, false) => ExitCode::SUCCESS,
    }
}

fn print_results(reports: &[Report], read_errors: &[ReadError], options: &LintOptions, json: bool) {
    for ReadError { file, error } in read_errors {
        terminal::print_error(format_args!("{}: {error}", file.replace(char::is_control, "·")));
    }
    if json {
        return table::print_line(&document(reports, read_errors).to_string());
    }
    if options.github {
        reports.iter().flat_map(github::commands).for_each(|command| table::print_line(&command));
        let unreadable =
            |it: &ReadError| table::print_line(&github::unreadable(&it.file, &it.error));
        read_errors.iter().for_each(unreadable);
    } else {
        let use_colour = terminal::use_colour(&std::io::stdout());
        for report in reports.iter().filter(|report| !report.diagnostics.is_empty()) {
            table::print_line(human::show(report, use_colour).trim_end_matches('\n'));
            table::print_line("");
        }
    }
    table::print_line(&Count::of(reports).summary(options.deny_warnings, read_errors.len()));
}

struct Count {
    files: usize,
    errors: usize,
    warnings: usize,
}

impl Count {
    fn of(reports: &[Report]) -> Self {
        Self {
            files: reports.len(),
            errors: reports.iter().map(Report::errors).sum(),
            warnings: reports.iter().map(Report::warnings).sum(),
        }
    }

    /// `3 files: 2 errors, 1 warning`.
    fn summary(&self, deny_warnings: bool, unreadable: usize) -> String {
        let files = plural(self.files, "file");
        let found =
            format!("{}, {}", plural(self.errors, "error"), plural(self.warnings, "warning"));
        let denied = if deny_warnings && self.warnings > 0 { " (denied)" } else { "" };
        let unread = match unreadable {
            0 => String::new(),
            _ => format!("; {unreadable} could not be read"),
        };
        format!("{files}: {found}{denied}{unread}")
    }
}

/// `no files`, `1 file`, `2 files`.
pub(super) fn plural(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// The diagnostics as JSON.
fn document(reports: &[Report], read_errors: &[ReadError]) -> Value {
    let files = reports.iter().map(|report| {
        let with =
            |severity| report.with_severity(severity).map(diagnostic_json).collect::<Vec<_>>();
        let mut file = json!({
            "file": report.file,
            "valid": report.errors() == 0,
            "violations": with(Severity::Error),
            "warnings": with(Severity::Warning),
        });
        let more =
            [("more_violations", report.more_errors), ("more_warnings", report.more_warnings)];
        for (name, count) in more.into_iter().filter(|(_, count)| *count > 0) {
            file[name] = json!(count);
        }
        file
    });
    let unreadable =
        read_errors.iter().map(|ReadError { file, error }| json!({"file": file, "error": error}));
    let count = Count::of(reports);
    json!({
        "files": files.collect::<Vec<_>>(),
        "unreadable": unreadable.collect::<Vec<_>>(),
        "violations": count.errors,
        "warnings": count.warnings,
    })
}

/// A diagnostic as JSON.
pub(super) fn diagnostic_json(diagnostic: &Diagnostic) -> Value {
    let Diagnostic { content, start, end, .. } = diagnostic;
    let mut value = json!({
        "pointer": content.pointer,
        "rule": content.rule,
        "message": content.message,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
    });
    if let Some(hint) = &content.hint {
        value["hint"] = json!(hint);
    }
    if let Some(span) = content.span {
        value["span"] = json!(span);
    }
    value
}
