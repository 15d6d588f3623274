//! What a value has to be, beyond being a string: what WhatsApp takes, and what the filled text or
//! address may be.

use super::media;
use crate::{
    document::text::{is_separator, longer_than},
    rulebook::{StringFormat, StringRule},
    validation::formats,
    violation::{Rule, Span, TextViolation, shortened},
};

/// The shortest run of spaces that WhatsApp refuses.
const MANY_SPACES: &str = "     ";

/// A value that is put into a text, of at most `max` characters by itself.
pub(super) fn plain(value: &str, max: usize) -> Vec<TextViolation> {
    let mut faults = Vec::new();
    // Line breaks and tabs have a rule of their own below.
    formats::check(&row(max, true, StringFormat::Free), value, &mut faults);
    if faults.iter().all(|fault| fault.rule != Rule::Empty) {
        line_break(value, &mut faults);
        spaces(value, &mut faults);
    }
    faults
}

/// A value that is put into a text of WhatsApp's, likewise: there is more than one kind of line break.
pub(super) fn on_one_line(value: &str, max: usize) -> Vec<TextViolation> {
    let mut faults = plain(value, max);
    if faults.iter().all(|fault| !matches!(fault.rule, Rule::Empty | Rule::ValueLineBreak)) {
        broken_at(value, is_separator, &mut faults);
    }
    faults
}

/// A value that nobody reads but the program that sent it.
pub(super) fn payload(value: &str, max: usize) -> Vec<TextViolation> {
    if value.is_empty() {
        let hint = "write something, or leave it out";
        return vec![TextViolation::new(Rule::Empty, "must not be empty").hint(hint)];
    }
    let mut faults = Vec::new();
    if longer_than(value, max) {
        let length = value.chars().count();
        let message = format!("has {length} characters; at most {max} are allowed");
        let hint = format!("shorten it by {}", length - max);
        faults.push(TextViolation::new(Rule::TooLong, message).hint(hint));
    }
    faults
}

/// A value that ends an address, which is of at most `max` characters with it. It never chooses
/// the host: whoever fills a template in may not lead people elsewhere.
pub(super) fn end_of_address(base: &str, end: &str, max: usize) -> Vec<TextViolation> {
    if end.trim().is_empty() {
        return plain(end, max);
    }
    let fixed = base.chars().count();
    let length = fixed + end.chars().count();
    if length > max {
        return vec![too_long(length, max)];
    }
    let mut faults = Vec::new();
    // A template may have its scheme in capitals, where its rulebook takes them.
    let scheme = base.find("://").unwrap_or_default();
    let whole = format!("{}{}{end}", base[..scheme].to_ascii_lowercase(), &base[scheme..]);
    // Line breaks are white space, and told as such.
    formats::check(&row(max, true, StringFormat::Url), &whole, &mut faults);
    // Braces in a value mean nothing.
    faults.retain(|fault| fault.rule != Rule::PlaceholderNotAllowed);
    let told = faults.iter().any(|it| matches!(it.rule, Rule::UrlUserInfo | Rule::UrlHost));
    if !told && formats::is_bare_host(base) && !end.starts_with(['/', '?', '#']) {
        let message = "stands right behind the host of the address, and would name another one";
        let hint = format!("begin with a slash: `/{}`", shortened(end));
        faults.push(TextViolation::new(Rule::UrlHost, message).hint(hint));
    }
    for span in faults.iter_mut().filter_map(|fault| fault.span.as_mut()) {
        let within = |at: usize| at.saturating_sub(fixed);
        *span = Span { start: within(span.start), end: within(span.end) };
    }
    faults
}

/// An address of at most `max` characters.
pub(super) fn address(url: &str, max: usize) -> Vec<TextViolation> {
    let mut faults = Vec::new();
    formats::check(&row(max, false, StringFormat::Url), url, &mut faults);
    faults
}

/// The address of a file of at most `max` characters, whose ending tells its kind.
pub(super) fn attachment(url: &str, max: usize) -> Vec<TextViolation> {
    let mut faults = address(url, max);
    let readable = faults.iter().all(|it| !matches!(it.rule, Rule::Empty | Rule::TooLong));
    if readable && media::parameter(url).is_none() {
        let message = "ends in no file ending that tells what the attachment is";
        let hint = format!("give a file that ends in one of {}", media::listed());
        faults.push(TextViolation::new(Rule::MediaKindUnknown, message).hint(hint));
    }
    faults
}

/// A text that its values make longer than it may be.
pub(super) fn too_long(length: usize, max: usize) -> TextViolation {
    let message =
        format!("makes a text of {length} characters when filled in; at most {max} are allowed");
    TextViolation::new(Rule::TooLong, message).hint(format!("shorten it by {}", length - max))
}

/// Values that are longer together than they may be.
pub(super) fn too_much(length: usize, max: usize) -> TextViolation {
    let message = format!(
        "puts {length} characters into the text, counted at each placeholder; at most {max} are allowed"
    );
    TextViolation::new(Rule::TooLong, message)
        .hint(format!("shorten the values by {}", length - max))
}

/// A row for a value, as the rulebook has them for texts.
fn row(max: usize, multiline: bool, form: StringFormat) -> StringRule {
    StringRule { max, whatsapp_max: None, multiline, format: form }
}

fn line_break(value: &str, faults: &mut Vec<TextViolation>) {
    broken_at(value, |it| matches!(it, '\n' | '\r' | '\t'), faults);
}

fn broken_at(value: &str, breaks: impl Fn(char) -> bool + Copy, faults: &mut Vec<TextViolation>) {
    let Some(start) = value.find(breaks) else { return };
    let rest = value[start..].trim_start_matches(breaks);
    let message = "holds a line break or a tab, which WhatsApp refuses in values";
    let fault = TextViolation::new(Rule::ValueLineBreak, message).hint("write it on one line");
    faults.push(fault.at(Span::of(value, start..value.len() - rest.len())));
}

fn spaces(value: &str, faults: &mut Vec<TextViolation>) {
    let Some(start) = value.find(MANY_SPACES) else { return };
    let count = value[start..].bytes().take_while(|byte| *byte == b' ').count();
    let most = MANY_SPACES.len() - 1;
    let message = format!("holds {count} spaces in a row; WhatsApp takes at most {most}");
    let fault = TextViolation::new(Rule::ValueSpaces, message).hint("write one space");
    faults.push(fault.at(Span::of(value, start..start + count)));
}
