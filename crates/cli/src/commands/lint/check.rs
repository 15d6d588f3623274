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

/// The diagnostics in one file, in the order of the text.
pub(in crate::commands) struct Report {
    pub(in crate::commands) file: String,
    pub(in crate::commands) text: String,
    pub(in crate::commands) diagnostics: Vec<Diagnostic>,
    /// Number of errors that are not listed.
    pub(in crate::commands) more_errors: usize,
    /// Number of warnings that are not listed.
    pub(in crate::commands) more_warnings: usize,
}

impl Report {
    /// The diagnostics with this severity.
    pub(in crate::commands) fn with_severity(
        &self,
        severity: Severity,
    ) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(move |diagnostic| diagnostic.content.severity == severity)
    }

    pub(super) fn errors(&self) -> usize {
        self.with_severity(Severity::Error).count() + self.more_errors
    }

    pub(super) fn warnings(&self) -> usize {
        self.with_severity(Severity::Warning).count() + self.more_warnings
    }
}

/// One error or warning and its location.
pub(in crate::commands) struct Diagnostic {
    pub(in crate::commands) content: DiagnosticContent,
    /// Its byte range in the text.
    pub(in crate::commands) range: Range<usize>,
    /// The first occurrence of a repeated key.
    pub(in crate::commands) first_occurrence: Option<Range<usize>>,
    pub(in crate::commands) start: Position,
    /// The first position after it.
    pub(in crate::commands) end: Position,
}

/// What a diagnostic says about one location of a document.
pub(in crate::commands) struct DiagnosticContent {
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
/// the diagnostics.
pub(in crate::commands) fn check_documents(
    file: &str,
    bytes: &[u8],
    mut check: impl FnMut(&Document<'_>, &mut DiagnosticCollector<'_>),
) -> Report {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut diagnostics = DiagnosticCollector::new(&text);
    match Document::parse(bytes) {
        Err(error) => diagnostics.add_malformed(&error),
        Ok(document) => {
            let root = source::root(&text);
            if let Json::Array(_) = document.root() {
                for (index, item) in source::children(&text, root.start).enumerate() {
                    let document = Document::parse(text[item.value.clone()].as_bytes());
                    let document = document.expect("a value within JSON is JSON");
                    diagnostics.current =
                        CurrentDocument { pointer_prefix: format!("/{index}"), range: item.value };
                    check(&document, &mut diagnostics);
                }
            } else {
                diagnostics.current =
                    CurrentDocument { pointer_prefix: String::new(), range: root };
                check(&document, &mut diagnostics);
            }
        }
    }
    let DiagnosticCollector { mut found, more_errors, more_warnings, .. } = diagnostics;
    found.sort_by_key(|it| (it.range.start, it.content.severity));
    Report { file: file.to_owned(), text, diagnostics: found, more_errors, more_warnings }
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
        check_documents(file, bytes, |document, diagnostics| {
            self.document(file, document, diagnostics);
        })
    }

    fn document(
        &mut self,
        file: &str,
        document: &Document<'_>,
        diagnostics: &mut DiagnosticCollector<'_>,
    ) {
        let Checked { template, warnings } = Template::check(document, self.rulebook);
        if let Err(violations) = &template {
            diagnostics.add_violations(violations);
        }
        for warning in warnings.listed() {
            diagnostics.warning(warning.clone());
        }
        diagnostics.more_warnings += warnings.omitted();
        let name_location = diagnostics.name_location(file);
        let violations = [
            self.conflicts.name_in_use(document, &name_location),
            self.conflicts.category_differs(document, &name_location),
        ];
        violations.into_iter().flatten().for_each(|it| diagnostics.violation(it));
        if let Ok(template) = &template
            && let Some(warning) = self.conflicts.same_content(template, &name_location)
        {
            diagnostics.warning(warning);
        }
    }
}

/// The document being checked.
struct CurrentDocument {
    /// The pointer to the document within the file.
    pointer_prefix: String,
    /// Its byte range in the text.
    range: Range<usize>,
}

/// Collects the diagnostics in one text and locates them.
pub(in crate::commands) struct DiagnosticCollector<'t> {
    text: &'t str,
    lines: Lines<'t>,
    current: CurrentDocument,
    /// Number of diagnostics so far per repeated key; each is about the next occurrence.
    repeated: HashMap<String, usize>,
    found: Vec<Diagnostic>,
    more_errors: usize,
    more_warnings: usize,
}

impl<'t> DiagnosticCollector<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            lines: Lines::new(text),
            current: CurrentDocument { pointer_prefix: String::new(), range: 0..text.len() },
            repeated: HashMap::new(),
            found: Vec::new(),
            more_errors: 0,
            more_warnings: 0,
        }
    }

    /// Adds the violations of a document.
    pub(in crate::commands) fn add_violations(&mut self, violations: &Violations) {
        for violation in violations.listed() {
            self.violation(violation.clone());
        }
        self.more_errors += violations.omitted();
    }

    /// Adds the notes of a conversion.
    pub(in crate::commands) fn add_conversion_notes(&mut self, conversion: &Conversion) {
        for note in conversion.notes.clone() {
            let Note { pointer, id, level, message, hint, span } = note;
            let severity = match level {
                Level::Lost => Severity::Lost,
                Level::Incomplete => Severity::Incomplete,
                Level::Changed => Severity::Changed,
            };
            let range = self.range(&pointer, span, 0, false);
            self.add(
                DiagnosticContent { severity, rule: id, pointer, message, hint, span },
                range,
                None,
            );
        }
        self.more_errors += conversion.more;
    }

    /// Adds a violation of a converted document that other documents of the run cause.
    pub(in crate::commands) fn add_incomplete(&mut self, violation: Violation) {
        let Violation { pointer, rule, message, hint, span } = violation;
        let (severity, rule) = (Severity::Incomplete, rule.id());
        let range = self.range(&pointer, span, 0, false);
        self.add(DiagnosticContent { severity, rule, pointer, message, hint, span }, range, None);
    }

    fn violation(&mut self, violation: Violation) {
        let Violation { pointer, rule, message, hint, span } = violation;
        let (severity, id) = (Severity::Error, rule.id());
        let mut range = self.range(&pointer, span, 0, rule == Rule::DuplicateKey);
        let mut first_occurrence = None;
        if rule == Rule::DuplicateKey {
            let times = self
                .repeated
                .entry(format!("{}{pointer}", self.current.pointer_prefix))
                .or_default();
            *times += 1;
            let repeat = *times;
            first_occurrence = Some(range);
            range = self.range(&pointer, span, repeat, true);
        }
        self.add(
            DiagnosticContent { severity, rule: id, pointer, message, hint, span },
            range,
            first_occurrence,
        );
    }

    fn warning(&mut self, warning: Warning) {
        let Warning { pointer, rule, message, hint, span } = warning;
        // These warnings are about the name of a member.
        let by_key = matches!(rule, WarningRule::UnknownField | WarningRule::UnusedField);
        let range = self.range(&pointer, span, 0, by_key);
        let (severity, rule, hint) = (Severity::Warning, rule.id(), Some(hint));
        self.add(DiagnosticContent { severity, rule, pointer, message, hint, span }, range, None);
    }

    fn add_malformed(&mut self, error: &JsonError) {
        let end = self.text.len();
        let (at, message) = match error {
            JsonError::TooDeep => {
                let range = source::nested_deeper(self.text, MAX_DEPTH);
                (range.map_or(end, |range| range.start), error.to_string())
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
        let range = at..at + wrong.map_or(0, char::len_utf8);
        let hint = self
            .text
            .starts_with('\u{feff}')
            .then(|| "save the file without a byte order mark".to_owned());
        let (severity, rule, pointer) = (Severity::Error, MALFORMED, String::new());
        let content = DiagnosticContent { severity, rule, pointer, message, hint, span: None };
        self.add(content, range, None);
    }

    /// The byte range of a key, of some characters of a string, or of a whole value.
    fn range(
        &self,
        pointer: &str,
        span: Option<Span>,
        repeat: usize,
        by_key: bool,
    ) -> Range<usize> {
        let location = source::find(self.text, self.current.range.clone(), pointer, repeat);
        match (location.key, span) {
            (Some(key), _) if by_key => key,
            (_, Some(span)) => source::characters(self.text, location.value, span),
            _ => location.value,
        }
    }

    /// The file, line and column of the name of the document being checked.
    pub(in crate::commands) fn name_location(&self, file: &str) -> String {
        let range = self.range("/name", None, 0, false);
        let Position { line, column } = self.lines.position(range.start);
        format!("{file}:{line}:{column}")
    }

    fn add(
        &mut self,
        mut content: DiagnosticContent,
        range: Range<usize>,
        first_occurrence: Option<Range<usize>>,
    ) {
        content.pointer.insert_str(0, &self.current.pointer_prefix);
        let (start, end) = (self.lines.position(range.start), self.lines.position(range.end));
        self.found.push(Diagnostic { content, range, first_occurrence, start, end });
    }
}
