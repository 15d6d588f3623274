//! Checks of string values: what WhatsApp accepts, and which texts and URLs may result from them.

use super::media;
use crate::{
    document::text::{is_separator, longer_than},
    rulebook::{StringFormat, StringRule},
    validation::formats,
    violation::{Rule, Span, TextViolation, truncated},
};

/// The shortest run of spaces that WhatsApp rejects.
const FORBIDDEN_SPACES: &str = "     ";

/// Checks a value for a text; it has at most `max` characters.
pub(super) fn check_text(value: &str, max: usize) -> Vec<TextViolation> {
    let mut found = Vec::new();
    // Line breaks and tabs have their own rule below.
    formats::check(&string_rule(max, true, StringFormat::Free), value, &mut found);
    if found.iter().all(|it| it.rule != Rule::Empty) {
        line_break(value, |it| matches!(it, '\n' | '\r' | '\t'), &mut found);
        spaces(value, &mut found);
    }
    found
}

/// Checks a value for a text of a `whatsapp` template; it must not contain Unicode line separators
/// either.
pub(super) fn check_line(value: &str, max: usize) -> Vec<TextViolation> {
    let mut found = check_text(value, max);
    if found.iter().all(|it| !matches!(it.rule, Rule::Empty | Rule::ValueLineBreak)) {
        line_break(value, is_separator, &mut found);
    }
    found
}

/// Checks a payload that WhatsApp returns to the sender's program.
pub(super) fn check_payload(value: &str, max: usize) -> Vec<TextViolation> {
    if value.is_empty() {
        let hint = "write a value, or leave it out";
        return vec![TextViolation::new(Rule::Empty, "must not be empty").hint(hint)];
    }
    let mut found = Vec::new();
    if longer_than(value, max) {
        let length = value.chars().count();
        let message = format!("has {length} characters; at most {max} are allowed");
        let hint = format!("shorten it by {}", length - max);
        found.push(TextViolation::new(Rule::TooLong, message).hint(hint));
    }
    found
}

/// Checks a value that ends a URL; the whole URL has at most `max` characters. The value must not
/// change the host, so that the sender of a message cannot redirect its recipients.
pub(super) fn check_url_end(base: &str, end: &str, max: usize) -> Vec<TextViolation> {
    if end.trim().is_empty() {
        return check_text(end, max);
    }
    let fixed = base.chars().count();
    let length = fixed + end.chars().count();
    if length > max {
        return vec![filled_text_too_long(length, max)];
    }
    let mut found = Vec::new();
    // Some rulebooks accept a scheme in capital letters.
    let scheme = base.find("://").unwrap_or_default();
    let whole = format!("{}{}{end}", base[..scheme].to_ascii_lowercase(), &base[scheme..]);
    // Line breaks are reported as white space.
    formats::check(&string_rule(max, true, StringFormat::Url), &whole, &mut found);
    // Braces in a value are not placeholders.
    found.retain(|it| it.rule != Rule::PlaceholderNotAllowed);
    let is_reported = found.iter().any(|it| matches!(it.rule, Rule::UrlUserInfo | Rule::UrlHost));
    if !is_reported && formats::is_bare_host(base) && !end.starts_with(['/', '?', '#']) {
        let message = "directly follows the host of the URL and would change it";
        let hint = format!("start with a slash: `/{}`", truncated(end));
        found.push(TextViolation::new(Rule::UrlHost, message).hint(hint));
    }
    for span in found.iter_mut().filter_map(|it| it.span.as_mut()) {
        let within = |at: usize| at.saturating_sub(fixed);
        *span = Span { start: within(span.start), end: within(span.end) };
    }
    found
}

/// Checks a URL; it has at most `max` characters.
pub(super) fn check_url(url: &str, max: usize) -> Vec<TextViolation> {
    let mut found = Vec::new();
    formats::check(&string_rule(max, false, StringFormat::Url), url, &mut found);
    found
}

/// Checks the URL of a file, whose extension determines its type; it has at most `max` characters.
pub(super) fn check_attachment_url(url: &str, max: usize) -> Vec<TextViolation> {
    let mut found = check_url(url, max);
    let readable = found.iter().all(|it| !matches!(it.rule, Rule::Empty | Rule::TooLong));
    if readable && media::parameter(url).is_none() {
        let message = "does not end in a known file extension";
        let hint = format!("use a file with one of these extensions: {}", media::extension_list());
        found.push(TextViolation::new(Rule::MediaKindUnknown, message).hint(hint));
    }
    found
}

/// The violation of a text that is too long after filling.
pub(super) fn filled_text_too_long(length: usize, max: usize) -> TextViolation {
    let message = format!("results in a text of {length} characters; at most {max} are allowed");
    TextViolation::new(Rule::TooLong, message).hint(format!("shorten it by {}", length - max))
}

/// The violation of values that are too long in total.
pub(super) fn values_too_long(length: usize, max: usize) -> TextViolation {
    let message = format!(
        "inserts {length} characters into the text, over all placeholders; at most {max} are allowed"
    );
    TextViolation::new(Rule::TooLong, message)
        .hint(format!("shorten the values by {}", length - max))
}

fn string_rule(max: usize, multiline: bool, form: StringFormat) -> StringRule {
    StringRule { max, whatsapp_max: None, multiline, format: form }
}

fn line_break(value: &str, is_break: impl Fn(char) -> bool + Copy, found: &mut Vec<TextViolation>) {
    let Some(start) = value.find(is_break) else { return };
    let rest = value[start..].trim_start_matches(is_break);
    let message = "contains a line break or a tab, which WhatsApp rejects in values";
    let violation = TextViolation::new(Rule::ValueLineBreak, message).hint("write it on one line");
    found.push(violation.at(Span::of(value, start..value.len() - rest.len())));
}

fn spaces(value: &str, found: &mut Vec<TextViolation>) {
    let Some(start) = value.find(FORBIDDEN_SPACES) else { return };
    let count = value[start..].bytes().take_while(|byte| *byte == b' ').count();
    let max = FORBIDDEN_SPACES.len() - 1;
    let message = format!("contains {count} spaces in a row; WhatsApp accepts at most {max}");
    let violation = TextViolation::new(Rule::ValueSpaces, message).hint("write a single space");
    found.push(violation.at(Span::of(value, start..start + count)));
}
