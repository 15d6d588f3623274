//! Diagnostics for people, each shown below its line of the text.

use std::{borrow::Cow, fmt::Write as _, ops::Range};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use galley_domain::violation::WarningRule;

use super::{
    check::{Diagnostic, Report, Severity},
    lines::Lines,
};

/// Longer excerpts are not shown, such as those of a file with one very long line.
const MAX_EXCERPT_BYTES: usize = 64 * 1024;

/// All diagnostics of a file, each followed by an empty line.
pub(in crate::commands) fn show(report: &Report, use_colour: bool) -> String {
    let renderer = if use_colour { Renderer::styled() } else { Renderer::plain() };
    let lines = Lines::new(&report.text);
    let mut shown = String::new();
    for diagnostic in &report.diagnostics {
        shown.push_str(&renderer.render(&[group(report, &lines, diagnostic)]));
        shown.push_str("\n\n");
    }
    for (more, what) in [(report.more_errors, "errors"), (report.more_warnings, "warnings")] {
        if more > 0 {
            let note = format!("{}: {more} more {what} are not shown", printable(&report.file));
            shown.push_str(&renderer.render(&[Group::with_title(Level::NOTE.primary_title(note))]));
            shown.push_str("\n\n");
        }
    }
    shown
}

/// Replaces C1 control characters, which could move the cursor of the terminal. The renderer
/// replaces the others.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    let is_c1_control = |it: char| matches!(it, '\u{80}'..='\u{9f}');
    // The replacement has the same length, so that ranges stay valid.
    if text.contains(is_c1_control) {
        Cow::Owned(text.replace(is_c1_control, "·"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The pointer and the message of a diagnostic.
pub(super) fn sentence(diagnostic: &Diagnostic) -> String {
    let content = &diagnostic.content;
    match &*content.pointer {
        "" => content.message.clone(),
        pointer => format!("{pointer}: {}", content.message),
    }
}

fn group<'r>(report: &'r Report, lines: &Lines<'_>, diagnostic: &'r Diagnostic) -> Group<'r> {
    let level = match diagnostic.content.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Lost => Level::ERROR.with_name("lost"),
        Severity::Incomplete => Level::ERROR.with_name("incomplete"),
        Severity::Changed => Level::WARNING.with_name("changed"),
    };
    let title = level
        .primary_title(printable(&sentence(diagnostic)).into_owned())
        .id(diagnostic.content.rule);
    let file = printable(&report.file);
    let group = if let Some(excerpt) = Excerpt::of(&report.text, lines, diagnostic) {
        let Excerpt { text, line, range, first_occurrence } = excerpt;
        let first_occurrence =
            first_occurrence.map(|it| AnnotationKind::Context.span(it).label("first here"));
        let snippet =
            Snippet::source(text).line_start(line).path(file).annotations(first_occurrence);
        title.element(snippet.annotation(AnnotationKind::Primary.span(range)))
    } else {
        let (line, column) = (diagnostic.start.line, diagnostic.start.column);
        title.element(Origin::path(file).line(line).char_column(column))
    };
    let hint = diagnostic.content.hint.as_ref();
    group.elements(hint.map(|hint| Level::HELP.message(printable(hint).into_owned())))
}

/// The lines of a diagnostic.
struct Excerpt {
    text: String,
    /// The number of the first line.
    line: usize,
    range: Range<usize>,
    first_occurrence: Option<Range<usize>>,
}

impl Excerpt {
    fn of(text: &str, lines: &Lines<'_>, diagnostic: &Diagnostic) -> Option<Self> {
        let range = diagnostic.range.clone();
        Self::cut(text, lines, diagnostic, range.clone(), diagnostic.first_occurrence.clone())
            .or_else(|| {
                // For a value that is too large, show only its beginning.
                let begin = range.start..text.ceil_char_boundary(range.end.min(range.start + 1));
                Self::cut(text, lines, diagnostic, begin, None)
            })
    }

    /// Extracts the lines from the start of `first_occurrence`, or else of `range`, to the end of
    /// `range`.
    fn cut(
        text: &str,
        lines: &Lines<'_>,
        diagnostic: &Diagnostic,
        range: Range<usize>,
        first_occurrence: Option<Range<usize>>,
    ) -> Option<Self> {
        let first = first_occurrence.as_ref().map_or(range.start, |it| it.start);
        let line = lines.position(first).line;
        let start = lines.start_of(line);
        let end = lines.start_of(lines.position(range.end).line + 1);
        if end - start > MAX_EXCERPT_BYTES {
            return None;
        }
        let within = |range: Range<usize>| range.start - start..range.end - start;
        let mut range = within(range);
        let mut text = printable(&text[start..end]).into_owned();
        let shown = visible(diagnostic.content.rule, &text[range.clone()]).into_owned();
        text.replace_range(range.clone(), &shown);
        range.end = range.start + shown.len();
        Some(Self { text, line, range, first_occurrence: first_occurrence.map(within) })
    }
}

/// The text of a diagnostic as shown. Invisible characters are shown by name: `<U+200B>`.
fn visible<'t>(rule: &str, text: &'t str) -> Cow<'t, str> {
    const MAX_NAMES: usize = 4;
    let is_invisible =
        [WarningRule::InvisibleCharacter.id(), WarningRule::BidiCharacter.id()].contains(&rule);
    if text.is_ascii() || !(is_invisible || text == "\u{feff}") {
        return Cow::Borrowed(text);
    }
    let mut names = String::new();
    for character in text.chars().take(MAX_NAMES) {
        let _ = write!(names, "<U+{:04X}>", u32::from(character));
    }
    if text.chars().nth(MAX_NAMES).is_some() {
        names.push('…');
    }
    Cow::Owned(names)
}
