//! Formatting marks and emoji, which WhatsApp takes in bodies only.

use std::ops::Range;

use crate::{
    phrase,
    text::Fault,
    violation::{Rule, Span},
};

/// What WhatsApp turns into bold, italic, struck and code when it stands around a text.
const MARKS: [char; 4] = ['*', '_', '~', '`'];

/// Refuses formatting and emoji, and in a `headline` any asterisk. What stands inside of
/// placeholders does not count.
pub(crate) fn forbid(text: &str, headline: bool, faults: &mut Vec<Fault>) {
    if let Some(place) = formatting(text, headline) {
        let message = "is formatted, which only bodies may be";
        let hint = "write it without `*`, `_`, `~` and `` ` ``";
        let span = Span::of(text, place);
        faults.push(Fault::new(Rule::Formatting, message).hint(hint).at(span));
    }
    if text.is_ascii() {
        return;
    }
    if let Some((at, emoji)) = text.char_indices().find(|(_, it)| is_emoji(*it)) {
        let span = Span::of(text, at..at + emoji.len_utf8());
        let message = "holds an emoji, which only bodies may";
        faults.push(Fault::new(Rule::Emoji, message).hint("remove it").at(span));
    }
}

/// The first text between two equal marks, or the first asterisk of a headline.
fn formatting(text: &str, headline: bool) -> Option<Range<usize>> {
    if !text.contains(MARKS) {
        return None;
    }
    let places = phrase::placeholders(text);
    let marks: Vec<(usize, char)> = text
        .match_indices(MARKS)
        .filter(|(at, _)| !places.iter().any(|place| place.contains(at)))
        .filter_map(|(at, mark)| Some((at, mark.chars().next()?)))
        .collect();
    if let Some((at, _)) = marks.iter().find(|(_, mark)| headline && *mark == '*') {
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

/// What is shown as a picture by itself, and the sign that turns others into pictures. Signs such
/// as `©`, `™` and `✓` are letters like any other.
fn is_emoji(character: char) -> bool {
    matches!(character,
        '\u{fe0f}' | '\u{20e3}' | '\u{231a}' | '\u{231b}' | '\u{23e9}'..='\u{23ec}' | '\u{23f0}'
        | '\u{23f3}' | '\u{25fd}' | '\u{25fe}' | '\u{2614}' | '\u{2615}' | '\u{2648}'..='\u{2653}'
        | '\u{267f}' | '\u{2693}' | '\u{26a1}' | '\u{26aa}' | '\u{26ab}' | '\u{26bd}' | '\u{26be}'
        | '\u{26c4}' | '\u{26c5}' | '\u{26ce}' | '\u{26d4}' | '\u{26ea}' | '\u{26f2}' | '\u{26f3}'
        | '\u{26f5}' | '\u{26fa}' | '\u{26fd}' | '\u{2705}' | '\u{270a}' | '\u{270b}' | '\u{2728}'
        | '\u{274c}' | '\u{274e}' | '\u{2753}'..='\u{2755}' | '\u{2757}' | '\u{2764}'
        | '\u{2795}'..='\u{2797}' | '\u{27b0}' | '\u{27bf}' | '\u{2b1b}' | '\u{2b1c}' | '\u{2b50}'
        | '\u{2b55}' | '\u{1f004}' | '\u{1f0cf}' | '\u{1f18e}' | '\u{1f191}'..='\u{1f19a}'
        | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f201}' | '\u{1f21a}' | '\u{1f22f}'
        | '\u{1f232}'..='\u{1f236}' | '\u{1f238}'..='\u{1f23a}' | '\u{1f250}' | '\u{1f251}'
        | '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}' | '\u{1f7e0}'..='\u{1f7f0}'
        | '\u{1f90c}'..='\u{1f9ff}' | '\u{1fa70}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, headline: bool) -> Vec<String> {
        let mut faults = Vec::new();
        forbid(text, headline, &mut faults);
        let line = |fault: &Fault| {
            let span = fault.span.unwrap();
            format!("{} {}..{}", fault.rule.id(), span.start, span.end)
        };
        faults.iter().map(line).collect()
    }

    #[test]
    fn marks_count_only_around_a_text() {
        assert_eq!(told("é *b* c", false), ["formatting 2..5"]);
        assert_eq!(told("_all of it_", false), ["formatting 0..11"]);
        assert_eq!(told("a ~b~, `c`", false), ["formatting 2..5"]);
        for plain in
            ["*Terms apply", "5 * 3 * 2", "order_id and item_id", "~30 min", "a_b_c", "* *"]
        {
            assert_eq!(told(plain, false), [""; 0], "{plain}");
        }
        assert_eq!(told("Sale*", true), ["formatting 4..5"]);
        assert_eq!(told("Hi {{_first_}}", true), [""; 0], "a placeholder is no format");
    }

    #[test]
    fn emoji_are_told_from_signs() {
        for (emoji, span) in
            [("a 😀", "2..3"), ("❤", "0..1"), ("☎\u{fe0f}", "1..2"), ("🇩🇪", "0..1")]
        {
            assert_eq!(told(emoji, false), [format!("emoji {span}")], "{emoji}");
        }
        for sign in ["© 2026 Shop™", "✓ ja", "→", "你好", "№ 5", "★"] {
            assert_eq!(told(sign, false), [""; 0], "{sign}");
        }
    }
}
