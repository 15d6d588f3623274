//! WhatsApp's formatting: which characters of a text are marks, and the styles of the others.
//!
//! `*bold*`, `_italic_` and `~struck~` may be nested and end on their line. `` `code` `` and
//! ```` ```code``` ```` contain no other formatting; the latter may have several lines. `- ` or `* `
//! begins an item of a list, `1. ` a numbered one, and `> ` a quote. Marks in a value count, because
//! the recipient's device formats the filled text; marks in an unfilled placeholder do not.
//!
//! Every search ends where the next one begins or is not repeated, so the time is linear.

use std::ops::Range;

use super::{runs::Styles, text::FilledText};
use crate::validation::formatting::{may_close, may_open};

/// The format of one byte of a text.
#[derive(Clone, Copy, Default)]
pub(super) struct Format {
    pub(super) styles: Styles,
    /// Whether it belongs to a formatting mark, which is not shown.
    pub(super) is_mark: bool,
}

/// The format of each byte of a text.
pub(super) fn of(filled: &FilledText<'_>) -> Vec<Format> {
    let unfilled = filled.segments.iter().filter(|it| matches!(it.placeholder, Some((_, false))));
    let mut formatter = Formatter {
        text: &filled.text,
        formats: vec![Format::default(); filled.text.len()],
        open: Vec::new(),
        line_end: 0,
        code_searched_until: 0,
        has_fences: true,
    };
    formatter.run(unfilled.map(|it| it.range.clone()));
    formatter.formats
}

const FENCE: &str = "```";

struct Formatter<'t> {
    text: &'t str,
    formats: Vec<Format>,
    /// The opening marks of the line that have no counterpart yet, at most one of each kind.
    open: Vec<(u8, usize)>,
    /// The end of the line, after its line feed.
    line_end: usize,
    /// There is no closing backtick before this position.
    code_searched_until: usize,
    /// Whether there may be another [`FENCE`].
    has_fences: bool,
}

impl Formatter<'_> {
    fn run(&mut self, mut inert: impl Iterator<Item = Range<usize>>) {
        let mut next_inert = inert.next();
        let mut at = self.begin_line(0);
        while let Some(byte) = self.text.as_bytes().get(at).copied() {
            while next_inert.as_ref().is_some_and(|range| range.end <= at) {
                next_inert = inert.next();
            }
            if let Some(range) = next_inert.as_ref().filter(|range| range.contains(&at)) {
                at = range.end;
                continue;
            }
            at = match byte {
                b'\n' => self.begin_line(at + 1),
                b'`' => self.code(at),
                b'*' | b'_' | b'~' => self.mark(byte, at),
                _ => at + 1,
            };
        }
    }

    /// Formats a line as an item or a quote if it is one. Returns where its text begins.
    fn begin_line(&mut self, start: usize) -> usize {
        self.open.clear();
        self.line_end = end_of_line(self.text, start);
        let line = &self.text[start..self.line_end];
        let (style, mark, shown) = if line.starts_with("- ") || line.starts_with("* ") {
            (Styles::LIST, 2, 0)
        } else if line.starts_with("> ") {
            (Styles::QUOTE, 2, 0)
        } else {
            (Styles::NUMBERED, 0, number_length(line))
        };
        let text = &line[mark + shown..];
        if mark + shown == 0 || text.trim().is_empty() {
            return start;
        }
        self.hide(start..start + mark);
        self.style(start..self.line_end, style);
        start + mark + shown
    }

    /// Formats code that begins at a backtick. Returns where to continue.
    fn code(&mut self, at: usize) -> usize {
        if let Some(close) = self.closing_fence(at) {
            self.format_between(at..close, FENCE.len(), Styles::MONOSPACE.and(Styles::BLOCK));
            let end = close + FENCE.len();
            if close >= self.line_end {
                self.open.clear();
                self.line_end = end_of_line(self.text, end);
            }
            return end;
        }
        match self.closing_backtick(at) {
            Some(close) => {
                self.format_between(at..close, 1, Styles::MONOSPACE);
                close + 1
            }
            None => at + 1,
        }
    }

    fn closing_fence(&mut self, at: usize) -> Option<usize> {
        if !self.has_fences || !self.text[at..].starts_with(FENCE) {
            return None;
        }
        let inside = at + FENCE.len();
        let close = self.text[inside..].find(FENCE).map(|length| inside + length);
        self.has_fences = close.is_some();
        close.filter(|close| !self.text[inside..*close].trim().is_empty())
    }

    fn closing_backtick(&mut self, at: usize) -> Option<usize> {
        if at < self.code_searched_until || !self.opens(b'`', at) {
            return None;
        }
        let inside = at + 1;
        let mut marks = self.text[inside..self.line_end].match_indices('`');
        let close = marks.find(|(length, _)| self.closes(b'`', inside + length));
        if close.is_none() {
            self.code_searched_until = self.line_end;
        }
        close.map(|(length, _)| inside + length)
    }

    /// Formats the text since the opening mark of the same kind, or remembers this one. Marks that
    /// were opened in between stay as they are. Returns where to continue.
    fn mark(&mut self, mark: u8, at: usize) -> usize {
        let opened = self.open.iter().position(|(it, _)| *it == mark);
        if let Some(index) = opened.filter(|_| self.closes(mark, at)) {
            let style = match mark {
                b'*' => Styles::BOLD,
                b'_' => Styles::ITALIC,
                _ => Styles::STRIKE,
            };
            self.format_between(self.open[index].1..at, 1, style);
            self.open.truncate(index);
        } else if self.opens(mark, at) {
            self.open.retain(|(it, _)| *it != mark);
            self.open.push((mark, at));
        }
        at + 1
    }

    /// Whether a mark can begin formatted text, which does not begin with the same mark.
    fn opens(&self, mark: u8, at: usize) -> bool {
        may_open(self.text, at) && self.text.as_bytes().get(at + 1) != Some(&mark)
    }

    /// Whether a mark can end formatted text, which does not end with the same mark.
    fn closes(&self, mark: u8, at: usize) -> bool {
        may_close(self.text, at) && self.text.as_bytes()[at - 1] != mark
    }

    /// Hides the marks at both ends, whose first bytes `marks` are, and formats the text between.
    fn format_between(&mut self, marks: Range<usize>, length: usize, style: Styles) {
        let (open, close) = (marks.start, marks.end);
        self.hide(open..open + length);
        self.hide(close..close + length);
        self.style(open + length..close, style);
    }

    fn hide(&mut self, range: Range<usize>) {
        for format in &mut self.formats[range] {
            format.is_mark = true;
        }
    }

    fn style(&mut self, range: Range<usize>, style: Styles) {
        for format in &mut self.formats[range] {
            format.styles = format.styles.and(style);
        }
    }
}

/// The end of the line at a position, after its line feed.
fn end_of_line(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |length| from + length + 1)
}

/// The length of the number with which an item begins, `1. `; 0 if it does not begin with one.
fn number_length(line: &str) -> usize {
    const MAX_DIGITS: usize = 3;
    let digits = line.bytes().take(MAX_DIGITS).take_while(u8::is_ascii_digit).count();
    if digits > 0 && line[digits..].starts_with(". ") { digits + 2 } else { 0 }
}
