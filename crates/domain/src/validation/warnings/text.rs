//! Warnings about a string: its characters, length, placeholders and links.

use std::{net::IpAddr, ops::Range};

use super::{characters, limited, links};
use crate::{
    document::{
        byte_classes::{BRACE, ByteClasses, LINE_BREAK, NON_ASCII, SLASH},
        text::longer_than,
    },
    rulebook::{StringFormat, StringRule},
    validation::{
        formats::{self, host, ip_address, is_bare_host, is_own_device},
        placeholder_context,
    },
    violation::{Span, TextWarning, WarningRule, did_you_mean, pluralized, truncated},
};

/// WhatsApp is reported to reject bodies with more consecutive line breaks than this.
const MAX_CONSECUTIVE_LINE_BREAKS: usize = 2;

/// The longest name of a placeholder that WhatsApp's editor accepts.
const MAX_NAME_CHARS: usize = 32;

/// Whether a string is obviously without warnings: short, and without bytes that a warning needs.
pub(super) fn is_plain(rule: &StringRule, text: &str, classes: ByteClasses) -> bool {
    text.len() <= rule.max.min(rule.whatsapp_max.unwrap_or(rule.max))
        && !classes.has(NON_ASCII | BRACE | SLASH | LINE_BREAK)
}

/// All warnings about the string of a field.
pub(super) fn check(rule: &StringRule, text: &str) -> Vec<TextWarning> {
    let classes = ByteClasses::of(text);
    let over_limit = rule.whatsapp_max.and_then(|max| over_whatsapp_limit(text, max));
    if longer_than(text, rule.max) {
        // Its length is a violation. Do not search a text of unlimited length for warnings.
        return over_limit.into_iter().collect();
    }
    let hint = match rule.format {
        StringFormat::Name => {
            "remove it: names are compared exactly, and the difference would be invisible"
        }
        StringFormat::Free
        | StringFormat::WithPlaceholders
        | StringFormat::WithoutPlaceholders
        | StringFormat::Headline
        | StringFormat::Message
        | StringFormat::Plain
        | StringFormat::Label => "remove it, unless it is intended",
        _ => "remove it",
    };
    let mut warnings =
        if classes.has(NON_ASCII) { characters::check(text, hint) } else { Vec::new() };
    warnings.extend(over_limit);
    let is_body = rule.format == StringFormat::Message;
    if classes.has(BRACE) && (is_body || rule.format == StringFormat::WithPlaceholders) {
        let placeholders = placeholder_context::placeholders(text);
        // Only bodies are multiline. Under the `whatsapp` rulebook this is a violation instead.
        if rule.multiline && !is_body {
            warnings.extend(at_edges(text, &placeholders));
        }
        warnings.extend(side_by_side(text, &placeholders));
    }
    if classes.has(BRACE) && (is_body || rule.format == StringFormat::Headline) {
        warnings.extend(unpaired_braces(text));
        warnings.extend(placeholder_names(text));
    }
    if classes.has(LINE_BREAK) && is_body {
        warnings.extend(many_line_breaks(text));
    }
    let without_links = [
        StringFormat::Name,
        StringFormat::Language,
        StringFormat::Phone,
        StringFormat::DialledPhone,
        StringFormat::Timestamp,
    ];
    // A host follows `://` or is followed by a path.
    if classes.has(SLASH) && !without_links.contains(&rule.format) {
        // A button that leads back to WhatsApp is a violation and needs no warning.
        let is_violation = rule.format == StringFormat::Link && links::is_whatsapp_url(text);
        warnings.extend(links::check(text).into_iter().filter(|_| !is_violation));
    }
    if classes.has(BRACE) && matches!(rule.format, StringFormat::UrlWithSuffix | StringFormat::Link)
    {
        warnings.extend(open_host(rule, text));
    }
    if classes.has(SLASH) && rule.format == StringFormat::Link {
        warnings.extend(private_host(text));
    }
    warnings
}

fn over_whatsapp_limit(text: &str, max: usize) -> Option<TextWarning> {
    // Count characters only if the number of bytes does not decide it.
    let length = (text.len() > max).then(|| text.chars().count()).filter(|it| *it > max)?;
    let message = format!("has {length} characters; WhatsApp accepts at most {max}");
    let hint = format!("shorten it by {} for WhatsApp", pluralized(length - max, "character"));
    let span = Span { start: max, end: length };
    Some(TextWarning::new(WarningRule::OverWhatsappLimit, message, hint).at(span))
}

/// Warns of a placeholder directly after the host of a URL.
fn open_host(rule: &StringRule, text: &str) -> Option<TextWarning> {
    let base = text.strip_suffix("}}").and_then(|rest| rest.rsplit_once("{{"));
    let (base, _) = base.filter(|(base, _)| base.contains("://") && is_bare_host(base))?;
    let corrected = format!("{base}/{}", &text[base.len()..]);
    let mut violations = Vec::new();
    formats::check(rule, &corrected, &mut violations);
    let suggestion = if violations.is_empty() { did_you_mean(&corrected) } else { None };
    let hint = suggestion.unwrap_or_else(|| "put a slash before it".to_owned());
    let message = "has a placeholder directly after the host, which would extend the host";
    let span = Span::of(text, base.len()..text.len());
    Some(TextWarning::new(WarningRule::OpenHost, message, hint).at(span))
}

/// Warns of placeholders at the beginning and end.
fn at_edges(text: &str, placeholders: &[Range<usize>]) -> Vec<TextWarning> {
    let mut warnings = Vec::new();
    let mut warn = |rule, verb: &str, side: &str, range: Option<&Range<usize>>, beyond: &str| {
        let Some(range) = range else { return };
        let placeholder = truncated(&text[range.clone()]);
        let suffix = if beyond.trim().is_empty() { "" } else { "; punctuation does not count" };
        let message = [verb, " with a placeholder", suffix].concat();
        let hint = ["put a word ", side, " `", &placeholder, "`, or WhatsApp rejects it"].concat();
        warnings.push(TextWarning::new(rule, message, hint).at(Span::of(text, range.clone())));
    };
    let (first, last) = (
        placeholder_context::first(text, placeholders),
        placeholder_context::last(text, placeholders),
    );
    let before = first.map_or("", |range| &text[..range.start]);
    warn(WarningRule::BodyBeginsWithPlaceholder, "begins", "before", first, before);
    let after = last.map_or("", |range| &text[range.end..]);
    warn(WarningRule::BodyEndsWithPlaceholder, "ends", "after", last, after);
    warnings
}

/// Warns of placeholders without words between them.
fn side_by_side(text: &str, placeholders: &[Range<usize>]) -> Vec<TextWarning> {
    let is_adjacent = |one: &Range<usize>, next: &Range<usize>| {
        text[one.end..next.start].chars().all(characters::is_blank)
    };
    let runs = placeholders.chunk_by(is_adjacent).filter(|run| run.len() > 1);
    limited(runs, |run| {
        let range = run[0].start..run[run.len() - 1].end;
        let message = format!("contains {} adjacent placeholders", run.len());
        let hint = "put a word between them, or WhatsApp rejects them";
        TextWarning::new(WarningRule::PlaceholdersSideBySide, message, hint)
            .at(Span::of(text, range))
    })
}

/// Warns of `}}` without a preceding `{{`. The opposite is a violation.
fn unpaired_braces(text: &str) -> Option<TextWarning> {
    let mut from = 0;
    loop {
        let close = from + text[from..].find("}}")?;
        if !text[from..close].contains("{{") {
            let message = "contains `}}` without a preceding `{{`";
            let hint =
                "write `{{1}}` for a placeholder, or remove the braces: WhatsApp rejects them";
            let warning = TextWarning::new(WarningRule::BracesUnpaired, message, hint);
            return Some(warning.at(Span::of(text, close..close + 2)));
        }
        from = close + 2;
    }
}

/// Warns of the first run with too many line breaks.
fn many_line_breaks(text: &str) -> Option<TextWarning> {
    let is_break = |it: char| matches!(it, '\n' | '\r');
    let mut from = 0;
    loop {
        let start = from + text[from..].find(is_break)?;
        let end = text[start..].find(|it| !is_break(it)).map_or(text.len(), |at| start + at);
        // A carriage return and a line feed are one line break.
        let count = text[start..end].replace("\r\n", "\n").len();
        if count > MAX_CONSECUTIVE_LINE_BREAKS {
            let message = format!("contains {count} consecutive line breaks");
            let hint = "use at most two: WhatsApp is reported to reject more";
            let warning = TextWarning::new(WarningRule::ManyLineBreaks, message, hint);
            return Some(warning.at(Span::of(text, start..end)));
        }
        from = end;
    }
}

/// Warns of named placeholders that are long or repeated.
fn placeholder_names(text: &str) -> Vec<TextWarning> {
    let ranges = placeholder_context::placeholders(text);
    let name = |range: &Range<usize>| &text[range.start + 2..range.end - 2];
    let is_numbered = |range: &Range<usize>| name(range).bytes().all(|it| it.is_ascii_digit());
    let named = || ranges.iter().filter(|range| !is_numbered(range));
    let mut warnings =
        limited(named().filter(|it| longer_than(name(it), MAX_NAME_CHARS)), |range| {
            let length = name(range).chars().count();
            let message = format!("contains a placeholder name with {length} characters");
            let hint = format!("use at most {MAX_NAME_CHARS} characters");
            let span = Span::of(text, range.clone());
            TextWarning::new(WarningRule::PlaceholderNameLong, message, hint).at(span)
        });
    let is_repeated = |(index, range): &(usize, &Range<usize>)| {
        named().take(*index).any(|other| name(other) == name(range))
    };
    warnings.extend(limited(named().enumerate().filter(is_repeated), |(_, range)| {
        let message = format!("repeats the placeholder `{}`", truncated(&text[range.clone()]));
        let hint = "use each named placeholder once in a text";
        let span = Span::of(text, range.clone());
        TextWarning::new(WarningRule::PlaceholderRepeated, message, hint).at(span)
    }));
    warnings
}

/// Warns of a button that leads to a host which recipients cannot reach. The recipient's own device
/// and a URL without a host are violations.
fn private_host(text: &str) -> Option<TextWarning> {
    let host = host(text);
    let is_private = match ip_address(host) {
        Some(IpAddr::V4(address)) => {
            let [first, second, ..] = address.octets();
            // Addresses behind the address translation of a carrier.
            let is_shared = first == 100 && second & 0xc0 == 64;
            address.is_private() || address.is_link_local() || address.is_unspecified() || is_shared
        }
        Some(IpAddr::V6(address)) => {
            address.is_unique_local() || address.is_unicast_link_local() || address.is_unspecified()
        }
        None => match host.rsplit_once('.') {
            Some((_, top_level)) => top_level.eq_ignore_ascii_case("local"),
            None => host.contains(char::is_alphanumeric),
        },
    };
    (is_private && text.contains("://") && !is_own_device(host)).then(|| {
        let message = format!("leads to `{}`, which recipients cannot open", truncated(host));
        let hint = "write the URL of a public website";
        TextWarning::new(WarningRule::PrivateHost, message, hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Vec<String> {
        let form = StringFormat::WithPlaceholders;
        let rule = StringRule { max: 100, whatsapp_max: Some(40), multiline: true, format: form };
        let line = |warning: &TextWarning| {
            let span = warning.span.unwrap();
            format!("{} {}..{}", warning.rule.id(), span.start, span.end)
        };
        check(&rule, text).iter().map(line).collect()
    }

    #[test]
    fn punctuation_and_whitespace_do_not_separate_a_placeholder_from_the_edge() {
        for text in ["{{1}}: hello", " *{{1}}*, hello", "¡{{1}}! hola", "«{{name}}» hello"] {
            assert!(report(text)[0].starts_with("body-begins-with-placeholder "), "{text}");
        }
        for text in
            ["Hello {{1}}", "Hello {{1}}.", "Hello ({{1}})\n", "مرحبا {{1}}؟", "你好{{1}}。"]
        {
            assert!(report(text)[0].starts_with("body-ends-with-placeholder "), "{text}");
        }
        for text in ["Hi {{1}} there", "👋 {{1}} there", "1 {{1}} 2", "no }} one {{ here"] {
            assert_eq!(report(text), [""; 0], "{text}");
        }
        assert_eq!(
            report("{{1}}"),
            ["body-begins-with-placeholder 0..5", "body-ends-with-placeholder 0..5"]
        );
    }

    #[test]
    fn adjacent_placeholders_are_reported_once_with_their_whole_span() {
        assert_eq!(report("é {{1}}{{2}} \n{{3}} a"), ["placeholders-side-by-side 2..19"]);
        assert_eq!(report("a {{1}}, {{2}} a {{3}} b {{4}} c"), [""; 0]);
        let many = "a {{1}}{{2}} a ".repeat(9);
        let warnings = side_by_side(&many, &placeholder_context::placeholders(&many));
        assert_eq!(warnings.len(), 5);
        assert!(warnings[4].message.ends_with("(and 4 more times in this text)"));
    }

    #[test]
    fn the_part_beyond_the_whatsapp_limit_is_marked() {
        assert_eq!(report(&"é".repeat(40)), [""; 0]);
        assert_eq!(report(&"é".repeat(43)), ["over-whatsapp-limit 40..43"]);
    }

    #[test]
    fn a_text_over_its_maximum_length_is_not_searched_for_warnings() {
        let long = "{{1}}\u{200b}{{2}} t.co/a ".repeat(6);
        assert_eq!(report(&long), [format!("over-whatsapp-limit 40..{}", 19 * 6)]);
    }
}
