//! Findings for people: each under the line of the text that it is about.

use std::{borrow::Cow, fmt::Write as _, ops::Range};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use galley_domain::violation::WarningRule;

use super::{
    check::{Finding, Report, Severity},
    lines::Lines,
};

/// More of a text than this is not shown; files that are one endless line are not for reading.
const MOST_SHOWN: usize = 64 * 1024;

/// All findings of a file, with an empty line behind each.
pub(in crate::commands) fn show(report: &Report, colours: bool) -> String {
    let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
    let lines = Lines::new(&report.text);
    let mut shown = String::new();
    for finding in &report.findings {
        shown.push_str(&renderer.render(&[group(report, &lines, finding)]));
        shown.push_str("\n\n");
    }
    for (more, what) in [(report.more_faults, "faults"), (report.more_warnings, "warnings")] {
        if more > 0 {
            let note = format!("{}: {more} more {what} are not shown", tame(&report.file));
            shown.push_str(&renderer.render(&[Group::with_title(Level::NOTE.primary_title(note))]));
            shown.push_str("\n\n");
        }
    }
    shown
}

/// A word as it may be shown: no character of a file moves the cursor or changes colours. What is
/// left out here, the renderer replaces.
pub(super) fn tame(text: &str) -> Cow<'_, str> {
    let wild = |it: char| matches!(it, '\u{80}'..='\u{9f}');
    // As long as what it stands for, so that places stay what they are.
    if text.contains(wild) { Cow::Owned(text.replace(wild, "·")) } else { Cow::Borrowed(text) }
}

/// What a finding says: where, then what.
pub(super) fn sentence(finding: &Finding) -> String {
    let remark = &finding.remark;
    match &*remark.pointer {
        "" => remark.message.clone(),
        pointer => format!("{pointer}: {}", remark.message),
    }
}

fn group<'r>(report: &'r Report, lines: &Lines<'_>, finding: &'r Finding) -> Group<'r> {
    let level = match finding.remark.severity {
        Severity::Fault => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Lost => Level::ERROR.with_name("lost"),
        Severity::Incomplete => Level::ERROR.with_name("incomplete"),
        Severity::Changed => Level::WARNING.with_name("changed"),
    };
    let title = level.primary_title(tame(&sentence(finding)).into_owned()).id(finding.remark.rule);
    let file = tame(&report.file);
    let group = if let Some(excerpt) = Excerpt::of(&report.text, lines, finding) {
        let Excerpt { text, line, place, before } = excerpt;
        let before = before.map(|it| AnnotationKind::Context.span(it).label("first here"));
        let snippet = Snippet::source(text).line_start(line).path(file).annotations(before);
        title.element(snippet.annotation(AnnotationKind::Primary.span(place)))
    } else {
        let (line, column) = (finding.start.line, finding.start.column);
        title.element(Origin::path(file).line(line).char_column(column))
    };
    let hint = finding.remark.hint.as_ref();
    group.elements(hint.map(|hint| Level::HELP.message(tame(hint).into_owned())))
}

/// The lines that a finding is about.
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
            // Of an object that is too large for that, its beginning says enough.
            let begin = place.start..text.ceil_char_boundary(place.end.min(place.start + 1));
            Self::cut(text, lines, finding, begin, None)
        })
    }

    /// Cuts out the lines from the one where `before` or else `place` begins to the end of `place`.
    fn cut(
        text: &str,
        lines: &Lines<'_>,
        finding: &Finding,
        place: Range<usize>,
        before: Option<Range<usize>>,
    ) -> Option<Self> {
        let first = before.as_ref().map_or(place.start, |before| before.start);
        let line = lines.position(first).line;
        let start = lines.begin(line);
        let end = lines.begin(lines.position(place.end).line + 1);
        if end - start > MOST_SHOWN {
            return None;
        }
        let within = |range: Range<usize>| range.start - start..range.end - start;
        let mut place = within(place);
        let mut text = tame(&text[start..end]).into_owned();
        let shown = visible(finding.remark.rule, &text[place.clone()]).into_owned();
        text.replace_range(place.clone(), &shown);
        place.end = place.start + shown.len();
        Some(Self { text, line, place, before: before.map(within) })
    }
}

/// The place of a finding as it is shown. What nobody would see is called by its name: `<U+200B>`.
fn visible<'t>(rule: &str, text: &'t str) -> Cow<'t, str> {
    const FEW: usize = 4;
    let unseen =
        [WarningRule::InvisibleCharacter.id(), WarningRule::BidiCharacter.id()].contains(&rule);
    if text.is_ascii() || !(unseen || text == "\u{feff}") {
        return Cow::Borrowed(text);
    }
    let mut names = String::new();
    for character in text.chars().take(FEW) {
        let _ = write!(names, "<U+{:04X}>", u32::from(character));
    }
    if text.chars().nth(FEW).is_some() {
        names.push('…');
    }
    Cow::Owned(names)
}
