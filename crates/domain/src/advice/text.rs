//! What there is to say about a string: its characters, its length, its placeholders, its links.

use std::ops::Range;

use super::{Advice, Note, characters, links, tell};
use crate::{
    rulebook::{Form, Text},
    text::shortened,
    violation::Span,
};

/// Everything worth a warning in a string that a row of the table asks for.
pub(super) fn look(rule: &Text, text: &str) -> Vec<Note> {
    let hint = match rule.form {
        Form::Name => "remove it: names are compared exactly, and nobody will see why two differ",
        Form::Free | Form::WithPlaceholders | Form::WithoutPlaceholders => {
            "remove it, unless it is there on purpose"
        }
        _ => "remove it",
    };
    let mut notes = characters::look(text, hint);
    notes.extend(rule.whatsapp_max.and_then(|max| length(text, max)));
    if rule.form == Form::WithPlaceholders {
        let placeholders = placeholders(text);
        // Only bodies have several lines.
        if rule.multiline {
            notes.extend(frame(text, &placeholders));
        }
        notes.extend(side_by_side(text, &placeholders));
    }
    if !matches!(rule.form, Form::Name | Form::Language | Form::Phone | Form::Moment) {
        notes.extend(links::look(text));
    }
    notes
}

fn length(text: &str, max: usize) -> Option<Note> {
    // Bytes often tell; characters are counted only when they leave it open.
    let length = (text.len() > max).then(|| text.chars().count()).filter(|it| *it > max)?;
    let message = format!("has {length} characters; WhatsApp takes at most {max}");
    let hint = format!("shorten it by {}, if it is to be sent there", length - max);
    let span = Span { start: max, end: length };
    Some(Note::new(Advice::OverWhatsappLimit, message, hint).at(span))
}

/// Where placeholders stand, good ones and such as are only misspelt.
fn placeholders(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("{{").map(|at| from + at) {
        let inside = start + 2;
        let end = text[inside..].find(['{', '}', '\n']).map_or(text.len(), |at| inside + at);
        if text[end..].starts_with("}}") {
            from = end + 2;
            found.push(start..from);
        } else {
            from = inside;
        }
    }
    found
}

/// Placeholders at the beginning and at the end.
fn frame(text: &str, placeholders: &[Range<usize>]) -> Vec<Note> {
    let mut notes = Vec::new();
    let (Some(first), Some(last)) = (placeholders.first(), placeholders.last()) else {
        return notes;
    };
    let mut edge = |rule, verb: &str, side: &str, beyond: &str, place: &Range<usize>| {
        if !beyond.chars().all(|it| characters::is_space(it) || is_punctuation(it)) {
            return;
        }
        let written = shortened(&text[place.clone()]);
        let only = if beyond.trim().is_empty() { "" } else { "; punctuation does not count" };
        let message = format!("{verb} with a placeholder{only}");
        let hint = format!("put a word {side} `{written}`: WhatsApp refuses it otherwise");
        notes.push(Note::new(rule, message, hint).at(Span::of(text, place.clone())));
    };
    let begins = Advice::BodyBeginsWithPlaceholder;
    edge(begins, "begins", "before", &text[..first.start], first);
    edge(Advice::BodyEndsWithPlaceholder, "ends", "behind", &text[last.end..], last);
    notes
}

fn side_by_side(text: &str, placeholders: &[Range<usize>]) -> Vec<Note> {
    let touch = |one: &Range<usize>, next: &Range<usize>| {
        text[one.end..next.start].chars().all(characters::is_space)
    };
    let rows = placeholders.chunk_by(touch).filter(|row| row.len() > 1);
    tell(rows, |row| {
        let place = row[0].start..row[row.len() - 1].end;
        let message = format!("{} placeholders stand side by side", row.len());
        let hint = "put a word between them: WhatsApp rejects them otherwise";
        Note::new(Advice::PlaceholdersSideBySide, message, hint).at(Span::of(text, place))
    })
}

/// What closes and opens sentences and clauses. Letters, digits, currency signs and emoji are no
/// punctuation: whether those help is not known, and nobody is warned of what may be good.
fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation()
        || matches!(character,
            '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}' // ¡ « » ¿
            | '\u{55a}'..='\u{55f}' | '\u{589}' | '\u{58a}' | '\u{5be}' | '\u{5f3}' | '\u{5f4}'
            | '\u{60c}' | '\u{61b}' | '\u{61d}'..='\u{61f}' | '\u{66a}'..='\u{66d}' | '\u{6d4}'
            | '\u{964}' | '\u{965}' | '\u{104a}'..='\u{104f}' | '\u{1360}'..='\u{1368}'
            | '\u{17d4}'..='\u{17da}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}'
            | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}'
            | '\u{30fb}' | '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}'
            | '\u{ff3b}'..='\u{ff3f}' | '\u{ff5b}'..='\u{ff65}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let form = Form::WithPlaceholders;
        let rule = Text { max: 100, whatsapp_max: Some(40), multiline: true, form };
        let line = |note: &Note| {
            let span = note.span.unwrap();
            format!("{} {}..{}", note.rule.id(), span.start, span.end)
        };
        look(&rule, text).iter().map(line).collect()
    }

    #[test]
    fn neither_punctuation_nor_white_space_frames_a_placeholder() {
        for text in ["{{1}}: hello", " *{{1}}*, hello", "¡{{1}}! hola", "«{{name}}» hello"] {
            assert!(told(text)[0].starts_with("body-begins-with-placeholder "), "{text}");
        }
        for text in
            ["Hello {{1}}", "Hello {{1}}.", "Hello ({{1}})\n", "مرحبا {{1}}؟", "你好{{1}}。"]
        {
            assert!(told(text)[0].starts_with("body-ends-with-placeholder "), "{text}");
        }
        for text in ["Hi {{1}} there", "👋 {{1}} there", "1 {{1}} 2", "no }} one {{ here"] {
            assert_eq!(told(text), [""; 0], "{text}");
        }
        assert_eq!(
            told("{{1}}"),
            ["body-begins-with-placeholder 0..5", "body-ends-with-placeholder 0..5"]
        );
    }

    #[test]
    fn a_row_of_placeholders_is_told_once_over_its_whole_length() {
        assert_eq!(told("é {{1}}{{2}} \n{{3}} a"), ["placeholders-side-by-side 2..19"]);
        assert_eq!(told("a {{1}}, {{2}} a {{3}} b {{4}} c"), [""; 0]);
        let many = "a {{1}}{{2}} a ".repeat(9);
        let notes = side_by_side(&many, &placeholders(&many));
        assert_eq!(notes.len(), 5);
        assert!(notes[4].message.ends_with("(and so at 4 more places of this text)"));
    }

    #[test]
    fn what_goes_beyond_whatsapps_limit_is_marked() {
        assert_eq!(told(&"é".repeat(40)), [""; 0]);
        assert_eq!(told(&"é".repeat(43)), ["over-whatsapp-limit 40..43"]);
    }
}
