//! `galley convert`: converts template files to the other rulebook and reports the differences at the
//! lines of the source.

mod output_path;

use std::{io, process::ExitCode};

use anyhow::{Context as _, bail};
use galley_domain::{
    convert::{self, Direction},
    document::Json,
};
use serde_json::{Value, json};

use self::output_path::OutputPaths;
use super::lint::{
    self,
    check::{Report, Severity, check_documents},
    conflicts::ConflictChecks,
    files::{Input, InputFiles, ReadError},
    human,
};
use crate::{arguments::ConvertOptions, table, terminal};

/// Exit code: something is lost or incomplete.
const EXIT_INCOMPLETE: u8 = 1;

/// Exit code: some document was not converted.
const EXIT_NOT_CONVERTED: u8 = 2;

/// One file, its diagnostics, and the converted document, unless its own rulebook refuses it.
struct Converted {
    input: Input,
    report: Report,
    document: Option<Json<'static>>,
}

/// Converts the files, writes the documents and prints the report.
pub(super) fn run(options: &ConvertOptions, json: bool) -> ExitCode {
    let code = convert(options, json).unwrap_or_else(|error| {
        terminal::print_error(format_args!("{error:#}"));
        EXIT_NOT_CONVERTED
    });
    ExitCode::from(code)
}

fn convert(options: &ConvertOptions, json: bool) -> anyhow::Result<u8> {
    let direction = Direction::between(options.from, options.to)
        .with_context(|| format!("`--from` and `--to` are both {}", options.from.name))?;
    let InputFiles { inputs, mut read_errors, .. } = InputFiles::of(&options.files);
    if inputs.len() > 1 && options.output_dir.is_none() && (!json || options.output.is_some()) {
        bail!("{} files need an output directory: use --output-dir", inputs.len());
    }
    let mut output_paths = OutputPaths::new(options, &inputs);
    let mut conflicts = ConflictChecks::new(direction.to());
    let mut files = Vec::new();
    for input in inputs {
        match input.read() {
            Ok(bytes) => files.push(converted(input, &bytes, direction, &mut conflicts)),
            Err(error) => read_errors.push(error),
        }
    }
    let mut unwritten = 0;
    for file in &files {
        if let Err(error) = file.write(&mut output_paths, json) {
            unwritten += 1;
            read_errors.push(ReadError { file: file.input.name(), error: format!("{error:#}") });
        }
    }
    print_results(&files, unwritten, &read_errors, json);
    let all_converted = read_errors.is_empty() && files.iter().all(|file| file.document.is_some());
    let all_complete = files.iter().all(|file| file.losses() == 0);
    Ok(match (all_converted, all_complete) {
        (false, _) => EXIT_NOT_CONVERTED,
        (true, false) => EXIT_INCOMPLETE,
        (true, true) => 0,
    })
}

fn converted(
    input: Input,
    bytes: &[u8],
    direction: Direction,
    conflicts: &mut ConflictChecks,
) -> Converted {
    let mut documents = Some(Vec::new());
    let name = input.name();
    let report = check_documents(&name, bytes, |document, diagnostics| {
        match convert::convert(document, direction) {
            Ok(conversion) => {
                diagnostics.add_conversion_notes(&conversion);
                // The results are treated as templates of one account.
                let name_location = diagnostics.name_location(&name);
                let violations = [
                    conflicts.name_in_use(&conversion.document, &name_location),
                    conflicts.category_differs(&conversion.document, &name_location),
                ];
                violations.into_iter().flatten().for_each(|it| diagnostics.add_incomplete(it));
                if let Some(documents) = &mut documents {
                    documents.push(conversion.document.into_root());
                }
            }
            Err(violations) => {
                diagnostics.add_violations(&violations);
                documents = None;
            }
        }
    });
    // A list becomes a list. A text that is not JSON has no documents.
    let is_json = report.with_severity(Severity::Error).next().is_none();
    let is_list = is_json && report.text.trim_start().starts_with('[');
    let document =
        documents.and_then(|mut it| if is_list { Some(Json::Array(it)) } else { it.pop() });
    Converted { input, report, document }
}

impl Converted {
    /// Writes the document to its output path. With --json, the report contains it instead.
    fn write(&self, output_paths: &mut OutputPaths<'_>, json: bool) -> anyhow::Result<()> {
        let Some(document) = &self.document else { return Ok(()) };
        let text = serde_json::to_string_pretty(document)?;
        match output_paths.of(&self.input)? {
            Some(path) => output_path::write(&path, &text),
            None if json => Ok(()),
            None => table::try_print_line(&text).context("standard output cannot be written"),
        }
    }

    fn count(&self, severity: Severity) -> usize {
        self.report.with_severity(severity).count()
    }

    /// Number of parts that are lost or incomplete.
    fn losses(&self) -> usize {
        let more = self.report.more_errors;
        self.count(Severity::Lost) + self.count(Severity::Incomplete) + more
    }
}

fn print_results(files: &[Converted], unwritten: usize, read_errors: &[ReadError], json: bool) {
    for ReadError { file, error } in read_errors {
        terminal::print_error(format_args!("{}: {error}", file.replace(char::is_control, "·")));
    }
    if json {
        return table::print_line(&to_json(files, read_errors).to_string());
    }
    let use_colour = terminal::use_colour(&io::stderr());
    for file in files.iter().filter(|file| !file.report.diagnostics.is_empty()) {
        eprint!("{}", human::show(&file.report, use_colour));
    }
    if !files.is_empty() {
        eprintln!("{}", summary(files, unwritten));
    }
}

/// `3 files: 1 not converted, 2 lost, 1 changed`.
fn summary(files: &[Converted], unwritten: usize) -> String {
    let all = |count: &dyn Fn(&Converted) -> usize| files.iter().map(count).sum::<usize>();
    let more = |file: &Converted| file.document.as_ref().map_or(0, |_| file.report.more_errors);
    let counts = [
        (all(&|file| usize::from(file.document.is_none())), "not converted"),
        (unwritten, "not written"),
        (all(&|file| file.count(Severity::Lost)), "lost"),
        (all(&|file| file.count(Severity::Incomplete) + more(file)), "incomplete"),
        (all(&|file| file.count(Severity::Changed)), "changed"),
    ];
    let listed = counts.iter().filter(|(count, _)| *count > 0);
    let listed: Vec<String> = listed.map(|(count, what)| format!("{count} {what}")).collect();
    let listed = if listed.is_empty() { "complete".to_owned() } else { listed.join(", ") };
    format!("{}: {listed}", lint::plural(files.len(), "file"))
}

fn to_json(files: &[Converted], read_errors: &[ReadError]) -> Value {
    let file = |file: &Converted| {
        let report = &file.report;
        let mut object = json!({"file": report.file});
        if report.more_errors > 0 {
            object["more"] = json!(report.more_errors);
        }
        let Some(document) = &file.document else {
            let violations = report.with_severity(Severity::Error).map(lint::diagnostic_json);
            object["violations"] = violations.collect();
            return object;
        };
        object["document"] = json!(document);
        object["report"] = report.diagnostics.iter().map(note).collect();
        object
    };
    let unreadable =
        read_errors.iter().map(|ReadError { file, error }| json!({"file": file, "error": error}));
    json!({
        "files": files.iter().map(file).collect::<Vec<_>>(),
        "unreadable": unreadable.collect::<Vec<_>>(),
    })
}

fn note(diagnostic: &lint::check::Diagnostic) -> Value {
    let mut note = lint::diagnostic_json(diagnostic);
    note["id"] = note["rule"].take();
    note["level"] = json!(level(diagnostic.content.severity));
    if let Some(note) = note.as_object_mut() {
        note.remove("rule");
    }
    note
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Lost => convert::Level::Lost.as_str(),
        Severity::Changed => convert::Level::Changed.as_str(),
        _ => convert::Level::Incomplete.as_str(),
    }
}
