//! Checks the text of a file and finds the place of every fault and warning in it.

use std::{collections::HashMap, ops::Range};

use galley_domain::{
    convert::{Conversion, Level, Note},
    document::{Document, Json, JsonError, MAX_DEPTH},
    rulebook::Rulebook,
    template::{Checked, Template},
    violation::{Rule, Span, Violation, Violations, Warning, WarningRule},
};

use super::{
    lines::{Lines, Position},
    others::Others,
    source,
};

/// What is said of a text that is not JSON; the API calls it so, too.
const MALFORMED: &str = "malformed-json";

/// One file and all that was found in it, in the order of the text.
pub(in crate::commands) struct Report {
    pub(in crate::commands) file: String,
    pub(in crate::commands) text: String,
    pub(in crate::commands) findings: Vec<Finding>,
    /// Faults beyond those that are told.
    pub(in crate::commands) more_faults: usize,
    /// Warnings beyond those that are told.
    pub(in crate::commands) more_warnings: usize,
}

impl Report {
    /// Those findings that are faults, or those that are not.
    pub(in crate::commands) fn of(&self, severity: Severity) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.remark.severity == severity)
    }

    pub(super) fn faults(&self) -> usize {
        self.of(Severity::Fault).count() + self.more_faults
    }

    pub(super) fn warnings(&self) -> usize {
        self.of(Severity::Warning).count() + self.more_warnings
    }
}

/// One fault or warning, and where it is.
pub(in crate::commands) struct Finding {
    pub(in crate::commands) remark: Remark,
    /// Its place in the text, in bytes.
    pub(in crate::commands) place: Range<usize>,
    /// Where the same key stood before.
    pub(in crate::commands) before: Option<Range<usize>>,
    pub(in crate::commands) start: Position,
    /// The first position behind it.
    pub(in crate::commands) end: Position,
}

/// What is said about one place of a document.
pub(in crate::commands) struct Remark {
    pub(in crate::commands) severity: Severity,
    pub(in crate::commands) rule: &'static str,
    pub(in crate::commands) pointer: String,
    pub(in crate::commands) message: String,
    pub(in crate::commands) hint: Option<String>,
    pub(in crate::commands) span: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands) enum Severity {
    Fault,
    Warning,
    // Of a conversion:
    Lost,
    Incomplete,
    Changed,
}

/// Shows each document of a file, which holds one or a list of them, and collects what is found.
pub(in crate::commands) fn look_through(
    file: &str,
    bytes: &[u8],
    mut look: impl FnMut(&Document<'_>, &mut Findings<'_>),
) -> Report {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut findings = Findings::new(&text);
    match Document::parse(bytes) {
        Err(error) => findings.malformed(&error),
        Ok(document) => {
            let root = source::root(&text);
            if let Json::Array(_) = document.root() {
                for (index, item) in source::children(&text, root.start).enumerate() {
                    let document = Document::parse(text[item.value.clone()].as_bytes());
                    let document = document.expect("a part of what is JSON is JSON");
                    findings.base = (format!("/{index}"), item.value);
                    look(&document, &mut findings);
                }
            } else {
                findings.base = (String::new(), root);
                look(&document, &mut findings);
            }
        }
    }
    let Findings { mut found, more_faults, more_warnings, .. } = findings;
    found.sort_by_key(|it| (it.place.start, it.remark.severity));
    Report { file: file.to_owned(), text, findings: found, more_faults, more_warnings }
}

/// Checks one file after the other and remembers what it has seen.
pub(super) struct Checker {
    rulebook: &'static Rulebook,
    others: Others,
}

impl Checker {
    pub(super) fn new(rulebook: &'static Rulebook) -> Self {
        Self { rulebook, others: Others::new(rulebook) }
    }

    /// Checks the bytes of a file: one template document, or a list of them.
    pub(super) fn check(&mut self, file: &str, bytes: &[u8]) -> Report {
        look_through(file, bytes, |document, findings| self.document(file, document, findings))
    }

    fn document(&mut self, file: &str, document: &Document<'_>, findings: &mut Findings<'_>) {
        let Checked { template, warnings } = Template::check(document, self.rulebook);
        if let Err(violations) = &template {
            findings.refused(violations);
        }
        for warning in warnings.listed() {
            findings.warning(warning.clone());
        }
        findings.more_warnings += warnings.omitted();
        let here = findings.here(file);
        let violations = [
            self.others.name_taken(document, &here),
            self.others.category_differs(document, &here),
        ];
        violations.into_iter().flatten().for_each(|it| findings.violation(it));
        if let Ok(template) = &template
            && let Some(warning) = self.others.same_content(template, &here)
        {
            findings.warning(warning);
        }
    }
}

/// Collects what is found in one text, and looks up the places.
pub(in crate::commands) struct Findings<'t> {
    text: &'t str,
    lines: Lines<'t>,
    /// The document that is being checked: what its pointers begin with, and its place.
    base: (String, Range<usize>),
    /// How often a key was called repeated: each time the next one is meant.
    repeated: HashMap<String, usize>,
    found: Vec<Finding>,
    more_faults: usize,
    more_warnings: usize,
}

impl<'t> Findings<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            lines: Lines::new(text),
            base: (String::new(), 0..text.len()),
            repeated: HashMap::new(),
            found: Vec::new(),
            more_faults: 0,
            more_warnings: 0,
        }
    }

    /// Everything that a rulebook refuses.
    pub(in crate::commands) fn refused(&mut self, violations: &Violations) {
        for violation in violations.listed() {
            self.violation(violation.clone());
        }
        self.more_faults += violations.omitted();
    }

    /// Everything that a conversion has to say.
    pub(in crate::commands) fn converted(&mut self, conversion: &Conversion) {
        for note in conversion.notes.clone() {
            let Note { pointer, id, level, message, hint, span } = note;
            let severity = match level {
                Level::Lost => Severity::Lost,
                Level::Incomplete => Severity::Incomplete,
                Level::Changed => Severity::Changed,
            };
            let place = self.place(&pointer, span, 0, false);
            self.add(Remark { severity, rule: id, pointer, message, hint, span }, place, None);
        }
        self.more_faults += conversion.more;
    }

    /// What a converted document breaks together with others.
    pub(in crate::commands) fn incomplete(&mut self, violation: Violation) {
        let Violation { pointer, rule, message, hint, span } = violation;
        let (severity, rule) = (Severity::Incomplete, rule.id());
        let place = self.place(&pointer, span, 0, false);
        self.add(Remark { severity, rule, pointer, message, hint, span }, place, None);
    }

    fn violation(&mut self, violation: Violation) {
        let Violation { pointer, rule, message, hint, span } = violation;
        let (severity, id) = (Severity::Fault, rule.id());
        let mut place = self.place(&pointer, span, 0, rule == Rule::DuplicateKey);
        let mut before = None;
        if rule == Rule::DuplicateKey {
            let times = self.repeated.entry(format!("{}{pointer}", self.base.0)).or_default();
            *times += 1;
            let repeat = *times;
            before = Some(place);
            place = self.place(&pointer, span, repeat, true);
        }
        self.add(Remark { severity, rule: id, pointer, message, hint, span }, place, before);
    }

    fn warning(&mut self, warning: Warning) {
        let Warning { pointer, rule, message, hint, span } = warning;
        // What is wrong with such a member is its name.
        let by_key = matches!(rule, WarningRule::UnknownField | WarningRule::UnusedField);
        let place = self.place(&pointer, span, 0, by_key);
        let (severity, rule, hint) = (Severity::Warning, rule.id(), Some(hint));
        self.add(Remark { severity, rule, pointer, message, hint, span }, place, None);
    }

    fn malformed(&mut self, error: &JsonError) {
        let end = self.text.len();
        let (at, message) = match error {
            JsonError::TooDeep => {
                let place = source::nested_deeper(self.text, MAX_DEPTH);
                (place.map_or(end, |place| place.start), error.to_string())
            }
            JsonError::Encoding(error) => (error.valid_up_to(), "not UTF-8".to_owned()),
            JsonError::Syntax(error) => {
                let (line, column) = (error.line(), error.column());
                let at = (self.lines.begin(line) + column).saturating_sub(1);
                let at = if error.is_eof() { self.text.trim_end().len() } else { at };
                // The place is shown where all places are.
                (at, error.to_string().replace(&format!(" at line {line} column {column}"), ""))
            }
        };
        let at = self.text.floor_char_boundary(at.min(end));
        let wrong = self.text[at..].chars().next().filter(|it| !matches!(it, '\n' | '\r'));
        let place = at..at + wrong.map_or(0, char::len_utf8);
        let hint = self.text.starts_with('\u{feff}').then(|| {
            "save the file without a byte order mark, which stands before the text".to_owned()
        });
        let (severity, rule, pointer) = (Severity::Fault, MALFORMED, String::new());
        let remark = Remark { severity, rule, pointer, message, hint, span: None };
        self.add(remark, place, None);
    }

    /// The place of a key, of some characters of a string, or of a whole value.
    fn place(
        &self,
        pointer: &str,
        span: Option<Span>,
        repeat: usize,
        by_key: bool,
    ) -> Range<usize> {
        let spot = source::find(self.text, self.base.1.clone(), pointer, repeat);
        match (spot.key, span) {
            (Some(key), _) if by_key => key,
            (_, Some(span)) => source::characters(self.text, spot.value, span),
            _ => spot.value,
        }
    }

    /// Where the document that is being checked tells its name.
    pub(in crate::commands) fn here(&self, file: &str) -> String {
        let place = self.place("/name", None, 0, false);
        let Position { line, column } = self.lines.position(place.start);
        format!("{file}:{line}:{column}")
    }

    fn add(&mut self, mut remark: Remark, place: Range<usize>, before: Option<Range<usize>>) {
        remark.pointer.insert_str(0, &self.base.0);
        let (start, end) = (self.lines.position(place.start), self.lines.position(place.end));
        self.found.push(Finding { remark, place, before, start, end });
    }
}
