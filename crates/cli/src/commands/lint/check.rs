//! Checks the text of a file and locates every error and warning in it.

use std::{collections::HashMap, ops::Range};

use galley_domain::{
    convert::{Conversion, Level, Note},
    document::{Document, Json, JsonError, MAX_DEPTH},
    rulebook::Rulebook,
    template::{Checked, Template},
    violation::{Rule, Span, Violation, Violations, Warning, WarningRule},
};

use super::{
    conflicts::ConflictChecks,
    lines::{Lines, Position},
    source,
};

/// Rule id of a text that is not JSON; the problem slug of the API is the same.
const MALFORMED: &str = "malformed-json";

/// The findings in one file, in the order of the text.
pub(in crate::commands) struct Report {
    pub(in crate::commands) file: String,
    pub(in crate::commands) text: String,
    pub(in crate::commands) findings: Vec<Finding>,
    /// Number of errors that are not listed.
    pub(in crate::commands) more_errors: usize,
    /// Number of warnings that are not listed.
    pub(in crate::commands) more_warnings: usize,
}

impl Report {
    /// The findings with this severity.
    pub(in crate::commands) fn with_severity(
        &self,
        severity: Severity,
    ) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.annotation.severity == severity)
    }

    pub(super) fn errors(&self) -> usize {
        self.with_severity(Severity::Error).count() + self.more_errors
    }

    pub(super) fn warnings(&self) -> usize {
        self.with_severity(Severity::Warning).count() + self.more_warnings
    }
}

/// One error or warning and its location.
pub(in crate::commands) struct Finding {
    pub(in crate::commands) annotation: Annotation,
    /// Its byte range in the text.
    pub(in crate::commands) place: Range<usize>,
    /// The first occurrence of a repeated key.
    pub(in crate::commands) before: Option<Range<usize>>,
    pub(in crate::commands) start: Position,
    /// The first position after it.
    pub(in crate::commands) end: Position,
}

/// What a finding says about one location of a document.
pub(in crate::commands) struct Annotation {
    pub(in crate::commands) severity: Severity,
    pub(in crate::commands) rule: &'static str,
    pub(in crate::commands) pointer: String,
    pub(in crate::commands) message: String,
    pub(in crate::commands) hint: Option<String>,
    pub(in crate::commands) span: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands) enum Severity {
    Error,
    Warning,
    // Severities of a conversion:
    Lost,
    Incomplete,
    Changed,
}

/// Calls `check` with each document of a file, which contains one or a list of them, and collects
/// the findings.
pub(in crate::commands) fn check_documents(
    file: &str,
    bytes: &[u8],
    mut check: impl FnMut(&Document<'_>, &mut Findings<'_>),
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
                    let document = document.expect("a value within JSON is JSON");
                    findings.base = (format!("/{index}"), item.value);
                    check(&document, &mut findings);
                }
            } else {
                findings.base = (String::new(), root);
                check(&document, &mut findings);
            }
        }
    }
    let Findings { mut found, more_errors, more_warnings, .. } = findings;
    found.sort_by_key(|it| (it.place.start, it.annotation.severity));
    Report { file: file.to_owned(), text, findings: found, more_errors, more_warnings }
}

/// Checks one file after the other, and each template against those before it.
pub(super) struct Checker {
    rulebook: &'static Rulebook,
    conflicts: ConflictChecks,
}

impl Checker {
    pub(super) fn new(rulebook: &'static Rulebook) -> Self {
        Self { rulebook, conflicts: ConflictChecks::new(rulebook) }
    }

    /// Checks the bytes of a file: one template document, or a list of them.
    pub(super) fn check(&mut self, file: &str, bytes: &[u8]) -> Report {
        check_documents(file, bytes, |document, findings| self.document(file, document, findings))
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
            self.conflicts.name_in_use(document, &here),
            self.conflicts.category_differs(document, &here),
        ];
        violations.into_iter().flatten().for_each(|it| findings.violation(it));
        if let Ok(template) = &template
            && let Some(warning) = self.conflicts.same_content(template, &here)
        {
            findings.warning(warning);
        }
    }
}

/// Collects the findings in one text and locates them.
pub(in crate::commands) struct Findings<'t> {
    text: &'t str,
    lines: Lines<'t>,
    /// The document being checked: the prefix of its pointers and its byte range.
    base: (String, Range<usize>),
    /// Number of findings so far per repeated key; each is about the next occurrence.
    repeated: HashMap<String, usize>,
    found: Vec<Finding>,
    more_errors: usize,
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
            more_errors: 0,
            more_warnings: 0,
        }
    }

    /// Adds the violations of a document.
    pub(in crate::commands) fn refused(&mut self, violations: &Violations) {
        for violation in violations.listed() {
            self.violation(violation.clone());
        }
        self.more_errors += violations.omitted();
    }

    /// Adds the notes of a conversion.
    pub(in crate::commands) fn converted(&mut self, conversion: &Conversion) {
        for note in conversion.notes.clone() {
            let Note { pointer, id, level, message, hint, span } = note;
            let severity = match level {
                Level::Lost => Severity::Lost,
                Level::Incomplete => Severity::Incomplete,
                Level::Changed => Severity::Changed,
            };
            let place = self.range(&pointer, span, 0, false);
            self.add(Annotation { severity, rule: id, pointer, message, hint, span }, place, None);
        }
        self.more_errors += conversion.more;
    }

    /// Adds a violation of a converted document that other documents of the run cause.
    pub(in crate::commands) fn incomplete(&mut self, violation: Violation) {
        let Violation { pointer, rule, message, hint, span } = violation;
        let (severity, rule) = (Severity::Incomplete, rule.id());
        let place = self.range(&pointer, span, 0, false);
        self.add(Annotation { severity, rule, pointer, message, hint, span }, place, None);
    }

    fn violation(&mut self, violation: Violation) {
        let Violation { pointer, rule, message, hint, span } = violation;
        let (severity, id) = (Severity::Error, rule.id());
        let mut place = self.range(&pointer, span, 0, rule == Rule::DuplicateKey);
        let mut before = None;
        if rule == Rule::DuplicateKey {
            let times = self.repeated.entry(format!("{}{pointer}", self.base.0)).or_default();
            *times += 1;
            let repeat = *times;
            before = Some(place);
            place = self.range(&pointer, span, repeat, true);
        }
        self.add(Annotation { severity, rule: id, pointer, message, hint, span }, place, before);
    }

    fn warning(&mut self, warning: Warning) {
        let Warning { pointer, rule, message, hint, span } = warning;
        // These warnings are about the name of a member.
        let by_key = matches!(rule, WarningRule::UnknownField | WarningRule::UnusedField);
        let place = self.range(&pointer, span, 0, by_key);
        let (severity, rule, hint) = (Severity::Warning, rule.id(), Some(hint));
        self.add(Annotation { severity, rule, pointer, message, hint, span }, place, None);
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
                let at = (self.lines.start_of(line) + column).saturating_sub(1);
                let at = if error.is_eof() { self.text.trim_end().len() } else { at };
                // The location is shown separately.
                (at, error.to_string().replace(&format!(" at line {line} column {column}"), ""))
            }
        };
        let at = self.text.floor_char_boundary(at.min(end));
        let wrong = self.text[at..].chars().next().filter(|it| !matches!(it, '\n' | '\r'));
        let place = at..at + wrong.map_or(0, char::len_utf8);
        let hint = self
            .text
            .starts_with('\u{feff}')
            .then(|| "save the file without a byte order mark".to_owned());
        let (severity, rule, pointer) = (Severity::Error, MALFORMED, String::new());
        let annotation = Annotation { severity, rule, pointer, message, hint, span: None };
        self.add(annotation, place, None);
    }

    /// The byte range of a key, of some characters of a string, or of a whole value.
    fn range(
        &self,
        pointer: &str,
        span: Option<Span>,
        repeat: usize,
        by_key: bool,
    ) -> Range<usize> {
        let location = source::find(self.text, self.base.1.clone(), pointer, repeat);
        match (location.key, span) {
            (Some(key), _) if by_key => key,
            (_, Some(span)) => source::characters(self.text, location.value, span),
            _ => location.value,
        }
    }

    /// The position of the name of the document being checked.
    pub(in crate::commands) fn here(&self, file: &str) -> String {
        let place = self.range("/name", None, 0, false);
        let Position { line, column } = self.lines.position(place.start);
        format!("{file}:{line}:{column}")
    }

    fn add(
        &mut self,
        mut annotation: Annotation,
        place: Range<usize>,
        before: Option<Range<usize>>,
    ) {
        annotation.pointer.insert_str(0, &self.base.0);
        let (start, end) = (self.lines.position(place.start), self.lines.position(place.end));
        self.found.push(Finding { annotation, place, before, start, end });
    }
}
