//! What there is to say about a string: its characters, its length, its placeholders, its links.

use std::ops::Range;

use super::{characters, links, tell};
use crate::violation::{TextWarning, WarningRule};
use crate::{
    document::text::longer_than,
    rulebook::{StringFormat, StringRule},
    validation::{formats::is_bare_host, formatting, placeholder_context},
    violation::{Span, shortened},
};

/// Everything worth a warning in a string that a row of the table asks for.
pub(super) fn look(rule: &StringRule, text: &str) -> Vec<TextWarning> {
    let long = rule.whatsapp_max.and_then(|max| length(text, max));
    if longer_than(text, rule.max) {
        // It is refused for that; what else stands in a text of any length is not looked for.
        return long.into_iter().collect();
    }
    let hint = match rule.format {
        StringFormat::Name => {
            "remove it: names are compared exactly, and nobody will see why two differ"
        }
        StringFormat::Free
        | StringFormat::WithPlaceholders
        | StringFormat::WithoutPlaceholders
        | StringFormat::Headline
        | StringFormat::Message
        | StringFormat::CardMessage
        | StringFormat::Plain
        | StringFormat::Label => "remove it, unless it is there on purpose",
        _ => "remove it",
    };
    let mut notes = characters::look(text, hint);
    notes.extend(long);
    let is_body = matches!(rule.format, StringFormat::Message | StringFormat::CardMessage);
    if is_body || rule.format == StringFormat::WithPlaceholders {
        let placeholders = placeholder_context::placeholders(text);
        // Only bodies have several lines. Where the rulebook refuses this, no warning is needed.
        if rule.multiline && !is_body {
            notes.extend(frame(text, &placeholders));
        }
        notes.extend(side_by_side(text, &placeholders));
    }
    if is_body || rule.format == StringFormat::Headline {
        notes.extend(unpaired_braces(text));
    }
    if is_body {
        notes.extend(empty_lines(text));
        notes.extend(many_emoji(text));
    }
    let no_words = [
        StringFormat::Name,
        StringFormat::Language,
        StringFormat::Phone,
        StringFormat::DialledPhone,
        StringFormat::Timestamp,
    ];
    if !no_words.contains(&rule.format) {
        // An address that leads into WhatsApp is no matter for a warning where it is refused.
        let refused = rule.format == StringFormat::Link && links::leads_into_whatsapp(text);
        notes.extend(links::look(text).into_iter().filter(|_| !refused));
    }
    if matches!(rule.format, StringFormat::UrlWithSuffix | StringFormat::Link) {
        notes.extend(open_host(text));
    }
    notes
}

fn length(text: &str, max: usize) -> Option<TextWarning> {
    // Bytes often tell; characters are counted only when they leave it open.
    let length = (text.len() > max).then(|| text.chars().count()).filter(|it| *it > max)?;
    let message = format!("has {length} characters; WhatsApp takes at most {max}");
    let hint = format!("shorten it by {}, if it is to be sent there", length - max);
    let span = Span { start: max, end: length };
    Some(TextWarning::new(WarningRule::OverWhatsappLimit, message, hint).at(span))
}

/// A placeholder that goes on with the host of an address.
fn open_host(text: &str) -> Option<TextWarning> {
    let base = text.strip_suffix("}}").and_then(|rest| rest.rsplit_once("{{"));
    let (base, _) = base.filter(|(base, _)| base.contains("://") && is_bare_host(base))?;
    let hint = format!("put a slash before it: `{}/{}`", shortened(base), &text[base.len()..]);
    let message = "has its placeholder right behind the host, as if that went on";
    let span = Span::of(text, base.len()..text.len());
    Some(TextWarning::new(WarningRule::OpenHost, message, hint).at(span))
}

/// Placeholders at the beginning and at the end.
fn frame(text: &str, placeholders: &[Range<usize>]) -> Vec<TextWarning> {
    let mut notes = Vec::new();
    let mut edge = |rule, verb: &str, side: &str, place: Option<&Range<usize>>, beyond: &str| {
        let Some(place) = place else { return };
        let written = shortened(&text[place.clone()]);
        let only = if beyond.trim().is_empty() { "" } else { "; punctuation does not count" };
        let message = format!("{verb} with a placeholder{only}");
        let hint = format!("put a word {side} `{written}`: WhatsApp refuses it otherwise");
        notes.push(TextWarning::new(rule, message, hint).at(Span::of(text, place.clone())));
    };
    let (first, last) = (
        placeholder_context::first(text, placeholders),
        placeholder_context::last(text, placeholders),
    );
    let before = first.map_or("", |place| &text[..place.start]);
    edge(WarningRule::BodyBeginsWithPlaceholder, "begins", "before", first, before);
    let behind = last.map_or("", |place| &text[place.end..]);
    edge(WarningRule::BodyEndsWithPlaceholder, "ends", "behind", last, behind);
    notes
}

fn side_by_side(text: &str, placeholders: &[Range<usize>]) -> Vec<TextWarning> {
    let touch = |one: &Range<usize>, next: &Range<usize>| {
        text[one.end..next.start].chars().all(characters::is_space)
    };
    let rows = placeholders.chunk_by(touch).filter(|row| row.len() > 1);
    tell(rows, |row| {
        let place = row[0].start..row[row.len() - 1].end;
        let message = format!("{} placeholders stand side by side", row.len());
        let hint = "put a word between them: WhatsApp rejects them otherwise";
        TextWarning::new(WarningRule::PlaceholdersSideBySide, message, hint)
            .at(Span::of(text, place))
    })
}

/// `}}` without `{{` before it. The other way round is refused.
fn unpaired_braces(text: &str) -> Option<TextWarning> {
    let mut from = 0;
    loop {
        let close = from + text[from..].find("}}")?;
        if !text[from..close].contains("{{") {
            let hint =
                "write `{{1}}` for a placeholder, or leave out the braces: WhatsApp rejects such";
            let note =
                TextWarning::new(WarningRule::BracesUnpaired, "holds `}}` without `{{`", hint);
            return Some(note.at(Span::of(text, close..close + 2)));
        }
        from = close + 2;
    }
}

/// More line breaks in a row than WhatsApp is known to take.
fn empty_lines(text: &str) -> Option<TextWarning> {
    const MOST: usize = 2;
    let is_break = |it: char| matches!(it, '\n' | '\r');
    let mut from = 0;
    loop {
        let start = from + text[from..].find(is_break)?;
        let end = text[start..].find(|it| !is_break(it)).map_or(text.len(), |at| start + at);
        // A carriage return belongs to the line feed behind it.
        let count = text[start..end].replace("\r\n", "\n").len();
        if count > MOST {
            let message = format!("holds {count} line breaks in a row");
            let hint = "write two at most: WhatsApp is said to refuse more";
            let note = TextWarning::new(WarningRule::ManyLineBreaks, message, hint);
            return Some(note.at(Span::of(text, start..end)));
        }
        from = end;
    }
}

fn many_emoji(text: &str) -> Option<TextWarning> {
    const MOST: usize = 10;
    if text.is_ascii() {
        return None;
    }
    let count = formatting::emoji(text);
    let message = format!("holds {count} emoji");
    let hint = format!("use {MOST} at most: WhatsApp is said to refuse more");
    (count > MOST).then(|| TextWarning::new(WarningRule::ManyEmoji, message, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let form = StringFormat::WithPlaceholders;
        let rule = StringRule { max: 100, whatsapp_max: Some(40), multiline: true, format: form };
        let line = |note: &TextWarning| {
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
        let notes = side_by_side(&many, &placeholder_context::placeholders(&many));
        assert_eq!(notes.len(), 5);
        assert!(notes[4].message.ends_with("(and so at 4 more places of this text)"));
    }

    #[test]
    fn what_goes_beyond_whatsapps_limit_is_marked() {
        assert_eq!(told(&"é".repeat(40)), [""; 0]);
        assert_eq!(told(&"é".repeat(43)), ["over-whatsapp-limit 40..43"]);
    }

    #[test]
    fn a_text_that_is_refused_for_its_length_is_not_searched_through() {
        let long = "{{1}}\u{200b}{{2}} t.co/a ".repeat(6);
        assert_eq!(told(&long), [format!("over-whatsapp-limit 40..{}", 19 * 6)]);
    }
}
