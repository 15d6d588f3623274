//! `galley lint`: checks template files without a service or a store, and shows what it finds
//! where it stands.

pub(super) mod check;
pub(super) mod files;
mod github;
pub(super) mod human;
mod lines;
pub(super) mod others;
mod source;

use std::{io::IsTerminal, process::ExitCode};

use serde_json::{Value, json};

use self::{
    check::{Checker, Finding, Report, Severity},
    files::{Gathered, Trouble},
};
use crate::{arguments::LintOptions, table};

/// Some file has faults.
const FAULTS: u8 = 1;

/// Something could not be read, so that nobody knows.
const UNREADABLE: u8 = 2;

/// Checks the files and says what is found.
pub(super) fn run(options: &LintOptions, json: bool) -> ExitCode {
    let Gathered { inputs, mut troubles, .. } = Gathered::of(&options.files);
    let mut checker = Checker::new(options.rulebook);
    let mut reports = Vec::new();
    for input in inputs {
        match input.read() {
            Ok(bytes) => reports.push(checker.check(&input.name(), &bytes)),
            Err(trouble) => troubles.push(trouble),
        }
    }
    say(&reports, &troubles, options, json);
    let count = Count::of(&reports);
    let guilty = count.faults > 0 || (options.deny_warnings && count.warnings > 0);
    match (troubles.is_empty(), guilty) {
        (false, _) => ExitCode::from(UNREADABLE),
        (true, true) => ExitCode::from(FAULTS),
        (true, false) => ExitCode::SUCCESS,
    }
}

fn say(reports: &[Report], troubles: &[Trouble], options: &LintOptions, json: bool) {
    for Trouble { file, error } in troubles {
        eprintln!("galley: {}: {error}", file.replace(char::is_control, "·"));
    }
    if json {
        return table::say(&document(reports, troubles).to_string());
    }
    if options.github {
        reports.iter().flat_map(github::commands).for_each(|command| table::say(&command));
        let unreadable = |it: &Trouble| table::say(&github::unreadable(&it.file, &it.error));
        troubles.iter().for_each(unreadable);
    } else {
        let colours = colours(&std::io::stdout());
        for report in reports.iter().filter(|report| !report.findings.is_empty()) {
            table::say(human::show(report, colours).trim_end_matches('\n'));
            table::say("");
        }
    }
    table::say(&Count::of(reports).summary(options.deny_warnings, troubles.len()));
}

/// Colours are for people who look, and did not ask for none.
pub(super) fn colours(to: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
    to.is_terminal() && !plain
}

struct Count {
    files: usize,
    faults: usize,
    warnings: usize,
}

impl Count {
    fn of(reports: &[Report]) -> Self {
        Self {
            files: reports.len(),
            faults: reports.iter().map(Report::faults).sum(),
            warnings: reports.iter().map(Report::warnings).sum(),
        }
    }

    /// `3 files: 2 faults, 1 warning`.
    fn summary(&self, deny_warnings: bool, unreadable: usize) -> String {
        let files = plural(self.files, "file");
        let found =
            format!("{}, {}", plural(self.faults, "fault"), plural(self.warnings, "warning"));
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

/// All of it for programs.
fn document(reports: &[Report], troubles: &[Trouble]) -> Value {
    let files = reports.iter().map(|report| {
        let of = |severity| report.of(severity).map(finding).collect::<Vec<_>>();
        let mut file = json!({
            "file": report.file,
            "valid": report.faults() == 0,
            "violations": of(Severity::Fault),
            "warnings": of(Severity::Warning),
        });
        let more =
            [("more_violations", report.more_faults), ("more_warnings", report.more_warnings)];
        for (name, count) in more.into_iter().filter(|(_, count)| *count > 0) {
            file[name] = json!(count);
        }
        file
    });
    let unreadable =
        troubles.iter().map(|Trouble { file, error }| json!({"file": file, "error": error}));
    let count = Count::of(reports);
    json!({
        "files": files.collect::<Vec<_>>(),
        "unreadable": unreadable.collect::<Vec<_>>(),
        "violations": count.faults,
        "warnings": count.warnings,
    })
}

/// A finding for programs.
pub(super) fn finding(finding: &Finding) -> Value {
    let Finding { remark, start, end, .. } = finding;
    let mut value = json!({
        "pointer": remark.pointer,
        "rule": remark.rule,
        "message": remark.message,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
    });
    if let Some(hint) = &remark.hint {
        value["hint"] = json!(hint);
    }
    if let Some(span) = remark.span {
        value["span"] = json!(span);
    }
    value
}
