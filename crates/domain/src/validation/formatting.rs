//! Formatting marks and emoji, which WhatsApp takes in bodies only.

use std::ops::Range;

use crate::{
    validation::placeholder_context,
    violation::{Rule, Span, TextViolation},
};

/// What WhatsApp turns into bold, italic, struck and code when it stands around a text.
const MARKS: [char; 4] = ['*', '_', '~', '`'];

/// Marks that a headline does not take even by themselves, and those that a label does not.
pub(crate) const IN_HEADLINES: &[char] = &['*'];
pub(crate) const IN_LABELS: &[char] = &['*', '~', '`'];

/// Refuses formatting and emoji, and some marks even if they stand `alone`. What stands inside of
/// placeholders does not count.
pub(crate) fn forbid(text: &str, alone: &[char], faults: &mut Vec<TextViolation>) {
    if let Some(place) = formatting(text, alone) {
        let message = "is formatted, which only bodies may be";
        let hint = "write it without `*`, `_`, `~` and `` ` ``";
        let span = Span::of(text, place);
        faults.push(TextViolation::new(Rule::Formatting, message).hint(hint).at(span));
    }
    if text.is_ascii() {
        return;
    }
    if let Some((at, emoji)) = text.char_indices().find(|(_, it)| is_emoji(*it)) {
        let span = Span::of(text, at..at + emoji.len_utf8());
        let message = "holds an emoji, which only bodies may";
        faults.push(TextViolation::new(Rule::Emoji, message).hint("remove it").at(span));
    }
}

/// How many emoji a text shows: one that is joined from several, or has a colour, is one.
pub(crate) fn emoji(text: &str) -> usize {
    let mut count = 0;
    let mut before = ' ';
    let mut half_flag = false;
    for it in text.chars() {
        let is_letter = matches!(it, '\u{1f1e6}'..='\u{1f1ff}');
        let goes_on = matches!(it, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}') && is_emoji(before)
            || before == '\u{200d}'
            || (is_letter && half_flag);
        half_flag = is_letter && !half_flag;
        count += usize::from(is_emoji(it) && !goes_on);
        before = it;
    }
    count
}

/// The first text between two equal marks, or the first mark that may not even stand alone.
fn formatting(text: &str, alone: &[char]) -> Option<Range<usize>> {
    if !text.contains(MARKS) {
        return None;
    }
    let places = placeholder_context::placeholders(text);
    let marks: Vec<(usize, char)> = text
        .match_indices(MARKS)
        .filter(|(at, _)| !places.iter().any(|place| place.contains(at)))
        .filter_map(|(at, mark)| Some((at, mark.chars().next()?)))
        .collect();
    if let Some((at, _)) = marks.iter().find(|(_, mark)| alone.contains(mark)) {
        return Some(*at..at + 1);
    }
    let opens = |at: usize| {
        let (before, behind) = (&text[..at], &text[at + 1..]);
        !before.ends_with(char::is_alphanumeric)
            && behind.starts_with(|it: char| !it.is_whitespace() && !MARKS.contains(&it))
    };
    let closes = |at: usize| {
        let (before, behind) = (&text[..at], &text[at + 1..]);
        !behind.starts_with(char::is_alphanumeric)
            && before.ends_with(|it: char| !it.is_whitespace() && !MARKS.contains(&it))
    };
    // The last mark of each kind that opened something.
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

/// What is shown as a picture by itself, and the sign that turns others into pictures. Signs that
/// are letters by themselves, such as `©`, `✓` and `❤`, are letters; beyond U+1F000 there are
/// pictures only.
fn is_emoji(character: char) -> bool {
    matches!(character,
        '\u{fe0f}' | '\u{20e3}' | '\u{231a}' | '\u{231b}' | '\u{23e9}'..='\u{23ec}' | '\u{23f0}'
        | '\u{23f3}' | '\u{25fd}' | '\u{25fe}' | '\u{2614}' | '\u{2615}' | '\u{2648}'..='\u{2653}'
        | '\u{267f}' | '\u{2693}' | '\u{26a1}' | '\u{26aa}' | '\u{26ab}' | '\u{26bd}' | '\u{26be}'
        | '\u{26c4}' | '\u{26c5}' | '\u{26ce}' | '\u{26d4}' | '\u{26ea}' | '\u{26f2}' | '\u{26f3}'
        | '\u{26f5}' | '\u{26fa}' | '\u{26fd}' | '\u{2705}' | '\u{270a}' | '\u{270b}' | '\u{2728}'
        | '\u{274c}' | '\u{274e}' | '\u{2753}'..='\u{2755}' | '\u{2757}'
        | '\u{2795}'..='\u{2797}' | '\u{27b0}' | '\u{27bf}' | '\u{2b1b}' | '\u{2b1c}' | '\u{2b50}'
        | '\u{2b55}' | '\u{1f004}' | '\u{1f0cf}' | '\u{1f170}' | '\u{1f171}'
        | '\u{1f17e}' | '\u{1f17f}' | '\u{1f18e}' | '\u{1f191}'..='\u{1f19a}'
        | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f201}' | '\u{1f202}' | '\u{1f21a}' | '\u{1f22f}'
        | '\u{1f232}'..='\u{1f23a}' | '\u{1f250}' | '\u{1f251}'
        | '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}' | '\u{1f7e0}'..='\u{1f7f0}'
        | '\u{1f90c}'..='\u{1f9ff}' | '\u{1fa70}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, alone: &[char]) -> Vec<String> {
        let mut faults = Vec::new();
        forbid(text, alone, &mut faults);
        let line = |fault: &TextViolation| {
            let span = fault.span.unwrap();
            format!("{} {}..{}", fault.rule.id(), span.start, span.end)
        };
        faults.iter().map(line).collect()
    }

    #[test]
    fn marks_count_only_around_a_text() {
        assert_eq!(told("é *b* c", &[]), ["formatting 2..5"]);
        assert_eq!(told("_all of it_", &[]), ["formatting 0..11"]);
        assert_eq!(told("a ~b~, `c`", &[]), ["formatting 2..5"]);
        for plain in
            ["*Terms apply", "5 * 3 * 2", "order_id and item_id", "~30 min", "a_b_c", "* *"]
        {
            assert_eq!(told(plain, &[]), [""; 0], "{plain}");
        }
        assert_eq!(told("Sale*", IN_HEADLINES), ["formatting 4..5"]);
        assert_eq!(told("Hi {{_first_}}", IN_HEADLINES), [""; 0], "a placeholder is no format");
    }

    #[test]
    fn a_label_takes_no_mark_but_the_underscore_even_alone() {
        for mark in ["a*b", "~5 min", "it`s"] {
            assert_eq!(told(mark, IN_LABELS).len(), 1, "{mark}");
            assert_eq!(told(mark, &[]), [""; 0], "{mark}");
        }
        assert_eq!(told("order_id", IN_LABELS), [""; 0]);
    }

    #[test]
    fn what_is_seen_as_one_emoji_counts_once() {
        for (text, count) in [
            ("a © ✓", 0),
            ("😀😀 😀", 3),
            ("👩\u{200d}🚀", 1),
            ("👍🏽", 1),
            ("🇩🇪🇫🇷", 2),
            ("❤\u{fe0f}❤", 1),
            ("🏳\u{fe0f}\u{200d}🌈", 1),
        ] {
            assert_eq!(emoji(text), count, "{text}");
        }
    }

    #[test]
    fn emoji_are_told_from_signs() {
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
            assert_eq!(told(emoji, &[]), [format!("emoji {span}")], "{emoji}");
        }
        for sign in ["© 2026 Shop™", "✓ ja", "→", "你好", "№ 5", "★", "❤", "☀", "♥", "☎\u{fe0e}"]
        {
            assert_eq!(told(sign, &[]), [""; 0], "{sign}");
        }
    }
}
