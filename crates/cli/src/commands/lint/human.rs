//! Findings for people, each shown below its line of the text.

use std::{borrow::Cow, fmt::Write as _, ops::Range};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use galley_domain::violation::WarningRule;

use super::{
    check::{Finding, Report, Severity},
    lines::Lines,
};

/// Longer excerpts are not shown, such as those of a file with one very long line.
const MAX_EXCERPT_BYTES: usize = 64 * 1024;

/// All findings of a file, each followed by an empty line.
pub(in crate::commands) fn show(report: &Report, use_colour: bool) -> String {
    let renderer = if use_colour { Renderer::styled() } else { Renderer::plain() };
    let lines = Lines::new(&report.text);
    let mut shown = String::new();
    for finding in &report.findings {
        shown.push_str(&renderer.render(&[group(report, &lines, finding)]));
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

/// The pointer and the message of a finding.
pub(super) fn sentence(finding: &Finding) -> String {
    let annotation = &finding.annotation;
    match &*annotation.pointer {
        "" => annotation.message.clone(),
        pointer => format!("{pointer}: {}", annotation.message),
    }
}

fn group<'r>(report: &'r Report, lines: &Lines<'_>, finding: &'r Finding) -> Group<'r> {
    let level = match finding.annotation.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Lost => Level::ERROR.with_name("lost"),
        Severity::Incomplete => Level::ERROR.with_name("incomplete"),
        Severity::Changed => Level::WARNING.with_name("changed"),
    };
    let title =
        level.primary_title(printable(&sentence(finding)).into_owned()).id(finding.annotation.rule);
    let file = printable(&report.file);
    let group = if let Some(excerpt) = Excerpt::of(&report.text, lines, finding) {
        let Excerpt { text, line, place, before } = excerpt;
        let before = before.map(|it| AnnotationKind::Context.span(it).label("first here"));
        let snippet = Snippet::source(text).line_start(line).path(file).annotations(before);
        title.element(snippet.annotation(AnnotationKind::Primary.span(place)))
    } else {
        let (line, column) = (finding.start.line, finding.start.column);
        title.element(Origin::path(file).line(line).char_column(column))
    };
    let hint = finding.annotation.hint.as_ref();
    group.elements(hint.map(|hint| Level::HELP.message(printable(hint).into_owned())))
}

/// The lines of a finding.
struct Excerpt {
    text: String,
    /// The number of the first line.
    line: usize,
    place: Range<usize>,
    before: Option<Range<usize>>,
}

impl Excerpt {
    fn of(text: &str, lines: &Lines<'_>, finding: &Finding) -> Option<Self> {
        let place = finding.place.clone();
        Self::cut(text, lines, finding, place.clone(), finding.before.clone()).or_else(|| {
            // For a value that is too large, show only its beginning.
            let begin = place.start..text.ceil_char_boundary(place.end.min(place.start + 1));
            Self::cut(text, lines, finding, begin, None)
        })
    }

    /// Extracts the lines from the start of `before`, or else of `place`, to the end of `place`.
    fn cut(
        text: &str,
        lines: &Lines<'_>,
        finding: &Finding,
        place: Range<usize>,
        before: Option<Range<usize>>,
    ) -> Option<Self> {
        let first = before.as_ref().map_or(place.start, |before| before.start);
        let line = lines.position(first).line;
        let start = lines.start_of(line);
        let end = lines.start_of(lines.position(place.end).line + 1);
        if end - start > MAX_EXCERPT_BYTES {
            return None;
        }
        let within = |range: Range<usize>| range.start - start..range.end - start;
        let mut place = within(place);
        let mut text = printable(&text[start..end]).into_owned();
        let shown = visible(finding.annotation.rule, &text[place.clone()]).into_owned();
        text.replace_range(place.clone(), &shown);
        place.end = place.start + shown.len();
        Some(Self { text, line, place, before: before.map(within) })
    }
}

/// The text of a finding as shown. Invisible characters are shown by name: `<U+200B>`.
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
