//! `galley convert`: writes template files of one rulebook as files of the other, and shows what
//! that costs under the lines of the source.

mod place;

use std::{io, process::ExitCode};

use anyhow::{Context as _, bail};
use galley_domain::{
    convert::{self, Direction},
    document::Json,
};
use serde_json::{Value, json};

use self::place::Places;
use super::lint::{
    self,
    check::{Report, Severity, look_through},
    files::{Gathered, Input, Trouble},
    human,
    others::Others,
};
use crate::{arguments::ConvertOptions, table};

/// Something is lost or to be completed.
const NOT_WHOLE: u8 = 1;

/// Something was not converted.
const NOT_DONE: u8 = 2;

/// One file, what is said of it, and what became of it, if its own rulebook takes it.
struct Converted {
    input: Input,
    report: Report,
    document: Option<Json<'static>>,
}

/// Converts the files, writes the documents and says what is to be said.
pub(super) fn run(options: &ConvertOptions, json: bool) -> ExitCode {
    let code = convert(options, json).unwrap_or_else(|error| {
        eprintln!("galley: {error:#}");
        NOT_DONE
    });
    ExitCode::from(code)
}

fn convert(options: &ConvertOptions, json: bool) -> anyhow::Result<u8> {
    let direction = Direction::between(options.from, options.to)
        .with_context(|| format!("`--from` and `--to` are both {}", options.from.name))?;
    let Gathered { inputs, mut troubles, .. } = Gathered::of(&options.files);
    if inputs.len() > 1 && options.output_dir.is_none() && (!json || options.output.is_some()) {
        bail!("there are {} files; name a directory with --output-dir", inputs.len());
    }
    let mut places = Places::new(options, &inputs);
    let mut others = Others::new(direction.to());
    let mut files = Vec::new();
    for input in inputs {
        match input.read() {
            Ok(bytes) => files.push(converted(input, &bytes, direction, &mut others)),
            Err(trouble) => troubles.push(trouble),
        }
    }
    let mut unwritten = 0;
    for file in &files {
        if let Err(error) = file.write(&mut places, json) {
            unwritten += 1;
            troubles.push(Trouble { file: file.input.name(), error: format!("{error:#}") });
        }
    }
    say(&files, unwritten, &troubles, json);
    let done = troubles.is_empty() && files.iter().all(|file| file.document.is_some());
    let whole = files.iter().all(|file| file.losses() == 0);
    Ok(match (done, whole) {
        (false, _) => NOT_DONE,
        (true, false) => NOT_WHOLE,
        (true, true) => 0,
    })
}

fn converted(input: Input, bytes: &[u8], direction: Direction, others: &mut Others) -> Converted {
    let mut documents = Some(Vec::new());
    let name = input.name();
    let report = look_through(&name, bytes, |document, findings| {
        match convert::convert(document, direction) {
            Ok(conversion) => {
                findings.converted(&conversion);
                // The results are to be templates of one account.
                let here = findings.here(&name);
                let among = [
                    others.name_taken(&conversion.document, &here),
                    others.category_differs(&conversion.document, &here),
                ];
                among.into_iter().flatten().for_each(|it| findings.incomplete(it));
                if let Some(documents) = &mut documents {
                    documents.push(conversion.document.into_root());
                }
            }
            Err(violations) => {
                findings.refused(&violations);
                documents = None;
            }
        }
    });
    // A list becomes a list; of what is not JSON nothing was shown.
    let is_json = report.of(Severity::Fault).next().is_none();
    let is_list = is_json && report.text.trim_start().starts_with('[');
    let document =
        documents.and_then(|mut it| if is_list { Some(Json::Array(it)) } else { it.pop() });
    Converted { input, report, document }
}

impl Converted {
    /// Writes the document to its place. Programs are told it with the report.
    fn write(&self, places: &mut Places<'_>, json: bool) -> anyhow::Result<()> {
        let Some(document) = &self.document else { return Ok(()) };
        let text = serde_json::to_string_pretty(document)?;
        match places.of(&self.input)? {
            Some(place) => place::write(&place, &text),
            None if json => Ok(()),
            None => table::try_say(&text).context("standard output cannot be written"),
        }
    }

    fn count(&self, severity: Severity) -> usize {
        self.report.of(severity).count()
    }

    /// How much is lost or to be completed.
    fn losses(&self) -> usize {
        let more = self.report.more_faults;
        self.count(Severity::Lost) + self.count(Severity::Incomplete) + more
    }
}

fn say(files: &[Converted], unwritten: usize, troubles: &[Trouble], json: bool) {
    for Trouble { file, error } in troubles {
        eprintln!("galley: {}: {error}", file.replace(char::is_control, "·"));
    }
    if json {
        return table::say(&for_programs(files, troubles).to_string());
    }
    let colours = lint::colours(&io::stderr());
    for file in files.iter().filter(|file| !file.report.findings.is_empty()) {
        eprint!("{}", human::show(&file.report, colours));
    }
    if !files.is_empty() {
        eprintln!("{}", summary(files, unwritten));
    }
}

/// `3 files: 1 not converted, 2 lost, 1 changed`.
fn summary(files: &[Converted], unwritten: usize) -> String {
    let all = |count: &dyn Fn(&Converted) -> usize| files.iter().map(count).sum::<usize>();
    let more = |file: &Converted| file.document.as_ref().map_or(0, |_| file.report.more_faults);
    let counts = [
        (all(&|file| usize::from(file.document.is_none())), "not converted"),
        (unwritten, "not written"),
        (all(&|file| file.count(Severity::Lost)), "lost"),
        (all(&|file| file.count(Severity::Incomplete) + more(file)), "incomplete"),
        (all(&|file| file.count(Severity::Changed)), "changed"),
    ];
    let told = counts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
    let told = if told.is_empty() { "converted whole".to_owned() } else { told.join(", ") };
    format!("{}: {told}", lint::plural(files.len(), "file"))
}

fn for_programs(files: &[Converted], troubles: &[Trouble]) -> Value {
    let file = |file: &Converted| {
        let report = &file.report;
        let mut shown = json!({"file": report.file});
        if report.more_faults > 0 {
            shown["more"] = json!(report.more_faults);
        }
        let Some(document) = &file.document else {
            let violations = report.of(Severity::Fault).map(lint::finding);
            shown["violations"] = violations.collect();
            return shown;
        };
        shown["document"] = json!(document);
        shown["report"] = report.findings.iter().map(note).collect();
        shown
    };
    let unreadable =
        troubles.iter().map(|Trouble { file, error }| json!({"file": file, "error": error}));
    json!({
        "files": files.iter().map(file).collect::<Vec<_>>(),
        "unreadable": unreadable.collect::<Vec<_>>(),
    })
}

fn note(finding: &lint::check::Finding) -> Value {
    let mut note = lint::finding(finding);
    note["id"] = note["rule"].take();
    note["level"] = json!(level(finding.remark.severity));
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
