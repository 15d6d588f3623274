//! Formatting marks and emoji, which WhatsApp accepts only in bodies.

use std::ops::Range;

use crate::{
    document::emoji::{count_emoji, is_emoji},
    validation::placeholder_context,
    violation::{Rule, Span, TextViolation},
};

/// Marks around a text that WhatsApp displays as bold, italic, struck and code.
const MARKS: [char; 4] = ['*', '_', '~', '`'];

/// Marks that a header text must not contain even without a counterpart.
pub(crate) const FORBIDDEN_IN_HEADERS: &[char] = &['*'];

/// Marks that a button label must not contain even without a counterpart.
pub(crate) const FORBIDDEN_IN_LABELS: &[char] = &['*', '~', '`'];

/// Reports formatting, emoji, and the `forbidden` marks even without a counterpart. Marks inside
/// placeholders are ignored.
pub(crate) fn forbid(text: &str, forbidden: &[char], violations: &mut Vec<TextViolation>) {
    if let Some(range) = find_formatting(text, forbidden) {
        let message = "contains formatting, which is only allowed in bodies";
        let hint = "remove the `*`, `_`, `~` or `` ` ``";
        let span = Span::of(text, range);
        violations.push(TextViolation::new(Rule::Formatting, message).hint(hint).at(span));
    }
    if text.is_ascii() {
        return;
    }
    if let Some((at, emoji)) = text.char_indices().find(|(_, character)| is_emoji(*character)) {
        let span = Span::of(text, at..at + emoji.len_utf8());
        let (message, hint) = match count_emoji(text) {
            0 | 1 => ("contains an emoji, which is only allowed in bodies".to_owned(), "remove it"),
            count => {
                (format!("contains {count} emoji, which are only allowed in bodies"), "remove them")
            }
        };
        violations.push(TextViolation::new(Rule::Emoji, message).hint(hint).at(span));
    }
}

/// The first text between two equal marks, or the first mark that is always forbidden.
fn find_formatting(text: &str, forbidden: &[char]) -> Option<Range<usize>> {
    if !text.contains(MARKS) {
        return None;
    }
    let placeholders = placeholder_context::placeholders(text);
    let marks: Vec<(usize, char)> = text
        .match_indices(MARKS)
        .filter(|(at, _)| !placeholders.iter().any(|range| range.contains(at)))
        .filter_map(|(at, mark)| Some((at, mark.chars().next()?)))
        .collect();
    if let Some((at, _)) = marks.iter().find(|(_, mark)| forbidden.contains(mark)) {
        return Some(*at..at + 1);
    }
    let opens = |at: usize| may_open(text, at) && !text[at + 1..].starts_with(MARKS);
    let closes = |at: usize| may_close(text, at) && !text[..at].ends_with(MARKS);
    // The last opening mark of each kind.
    let mut open = [None; MARKS.len()];
    for (at, mark) in marks {
        let kind = MARKS.iter().position(|it| *it == mark)?;
        match open[kind] {
            Some(start) if closes(at) => return Some(start..at + 1),
            _ if opens(at) => open[kind] = Some(at),
            _ => {}
        }
    }
    None
}

/// Whether a text can begin after the mark at this position: no word is before the mark, and no
/// whitespace after it.
pub(crate) fn may_open(text: &str, at: usize) -> bool {
    !text[..at].ends_with(char::is_alphanumeric)
        && text[at + 1..].starts_with(|it: char| !it.is_whitespace())
}

/// Whether a text can end before the mark at this position: no whitespace is before the mark, and no
/// word after it.
pub(crate) fn may_close(text: &str, at: usize) -> bool {
    !text[at + 1..].starts_with(char::is_alphanumeric)
        && text[..at].ends_with(|it: char| !it.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str, forbidden: &[char]) -> Vec<String> {
        let mut violations = Vec::new();
        forbid(text, forbidden, &mut violations);
        let line = |violation: &TextViolation| {
            let span = violation.span.unwrap();
            format!("{} {}..{}", violation.rule.id(), span.start, span.end)
        };
        violations.iter().map(line).collect()
    }

    #[test]
    fn only_marks_around_a_text_are_formatting() {
        assert_eq!(report("é *b* c", &[]), ["formatting 2..5"]);
        assert_eq!(report("_all of it_", &[]), ["formatting 0..11"]);
        assert_eq!(report("a ~b~, `c`", &[]), ["formatting 2..5"]);
        for plain in
            ["*Terms apply", "5 * 3 * 2", "order_id and item_id", "~30 min", "a_b_c", "* *"]
        {
            assert_eq!(report(plain, &[]), [""; 0], "{plain}");
        }
        assert_eq!(report("Sale*", FORBIDDEN_IN_HEADERS), ["formatting 4..5"]);
        assert_eq!(
            report("Hi {{_first_}}", FORBIDDEN_IN_HEADERS),
            [""; 0],
            "marks inside a placeholder are ignored"
        );
    }

    #[test]
    fn a_label_must_not_contain_single_marks_except_the_underscore() {
        for mark in ["a*b", "~5 min", "it`s"] {
            assert_eq!(report(mark, FORBIDDEN_IN_LABELS).len(), 1, "{mark}");
            assert_eq!(report(mark, &[]), [""; 0], "{mark}");
        }
        assert_eq!(report("order_id", FORBIDDEN_IN_LABELS), [""; 0]);
    }

    #[test]
    fn emoji_are_distinguished_from_symbols() {
        for (emoji, span) in [
            ("a 😀", "2..3"),
            ("❤\u{fe0f}", "1..2"),
            ("☎\u{fe0f}", "1..2"),
            ("🇩🇪", "0..1"),
            ("🅰", "0..1"),
            ("🈂", "0..1"),
            ("🈷", "0..1"),
            ("1\u{20e3}", "1..2"),
        ] {
            assert_eq!(report(emoji, &[]), [format!("emoji {span}")], "{emoji}");
        }
        for symbol in ["© 2026 Shop™", "✓ ja", "→", "你好", "№ 5", "★", "❤", "☀", "♥", "☎\u{fe0e}"]
        {
            assert_eq!(report(symbol, &[]), [""; 0], "{symbol}");
        }
    }
}
