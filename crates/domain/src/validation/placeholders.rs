//! Placeholders: `{{1}}`, `{{2}}` … in a text.

use std::ops::Range;

use crate::{
    document::text::has_pair,
    rulebook::ParameterFormat,
    violation::{Rule, Span, TextViolation, shortened},
};

/// The highest number a placeholder may have.
const MAX: usize = 999;

/// Finds the placeholders of a text that is written in that format, of two that there are.
pub(crate) fn scan(
    text: &str,
    format: ParameterFormat,
    faults: &mut Vec<TextViolation>,
) -> Option<usize> {
    if format == ParameterFormat::Named {
        return named(text, faults);
    }
    let before = faults.len();
    let count = numbered(text, faults);
    for fault in &mut faults[before..] {
        let named = |name: &str| {
            format!(
                "write `{{{{1}}}}`, or add `\"parameter_format\": \"NAMED\"` for `{{{{{name}}}}}`"
            )
        };
        if fault.rule == Rule::PlaceholderSyntax
            && let Some(name) =
                fault.span.and_then(|span| inside(text, span)).filter(|it| is_name(it))
        {
            fault.hint = Some(named(&shortened(name)));
        }
    }
    count
}

/// What stands between the braces at those characters.
fn inside(text: &str, span: Span) -> Option<&str> {
    let from = text.char_indices().nth(span.start)?.0;
    text[from..].strip_prefix("{{")?.split_once("}}").map(|(inside, _)| inside)
}

/// Where the first `{{` stands. Most texts hold none, which is seen at a glance.
fn first(text: &str) -> Option<usize> {
    if has_pair(text, b'{') { find(text, b'{') } else { None }
}

/// Where the first pair of these braces stands. Texts are short: looking at every byte is quicker than
/// getting ready for a search.
fn find(text: &str, brace: u8) -> Option<usize> {
    text.as_bytes().windows(2).position(|pair| pair == [brace, brace])
}

/// Finds numbered placeholders: how many different ones there are, unless some are faulty.
pub(crate) fn numbered(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    let mut from = first(text)?;
    let before = faults.len();
    let mut found: Vec<(usize, Range<usize>)> = Vec::new();
    while let Some(start) = find(&text[from..], b'{').map(|at| from + at) {
        let inside = start + 2;
        let close = find(&text[inside..], b'}').map(|at| inside + at);
        let number = close.and_then(|close| number(&text[inside..close]));
        if let (Some(number), Some(close)) = (number, close) {
            from = close + 2;
            found.push((number, start..from));
        } else {
            from = faulty_end(text, inside, close);
            faults.push(syntax_fault(text, start..from));
        }
    }
    let count = gapless(text, &found, faults);
    (faults.len() == before).then_some(count)
}

fn named(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    let mut from = first(text)?;
    let before = faults.len();
    while let Some(start) = find(&text[from..], b'{').map(|at| from + at) {
        let inside = start + 2;
        let close = find(&text[inside..], b'}').map(|at| inside + at);
        if let Some(close) = close.filter(|close| is_name(&text[inside..*close])) {
            from = close + 2;
        } else {
            from = faulty_end(text, inside, close);
            faults.push(name_fault(text, start..from));
        }
    }
    (faults.len() == before).then(|| names(text).len())
}

/// The different names of a text in which all placeholders are good.
pub(crate) fn names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for piece in text.split("{{").skip(1) {
        let name = piece.split("}}").next().unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The fixed part of an address that ends in a placeholder. One of a named document may be
/// numbered all the same: an address has only one.
pub(crate) fn base(address: &str, format: ParameterFormat) -> Option<&str> {
    if let Some(base) = address.strip_suffix("{{1}}") {
        return Some(base);
    }
    let (base, name) = address.strip_suffix("}}")?.rsplit_once("{{")?;
    (format == ParameterFormat::Named && is_name(name)).then_some(base)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_lowercase() || it == '_')
        && text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
}

fn name_fault(text: &str, bytes: Range<usize>) -> TextViolation {
    let written = &text[bytes.clone()];
    let inner = written.trim_matches(['{', '}']).trim();
    let meant = inner.to_lowercase().replace([' ', '-', '.'], "_");
    let hint = if is_name(&meant) {
        format!("did you mean `{{{{{}}}}}`?", shortened(&meant))
    } else {
        "name the placeholders, as `{{first_name}}`; numbers belong to `parameter_format` POSITIONAL"
            .to_owned()
    };
    let message = format!("`{}` is not a named placeholder", shortened(written));
    TextViolation::new(Rule::PlaceholderName, message).hint(hint).at(Span::of(text, bytes))
}

/// The first `{{` of a text that may hold none.
pub(crate) fn forbid(text: &str, why: &str, faults: &mut Vec<TextViolation>) {
    if let Some(start) = first(text) {
        let end = find(&text[start..], b'}').map_or(start + 2, |at| start + at + 2);
        let hint = "write the text without `{{`".to_owned();
        faults.push(
            TextViolation::new(Rule::PlaceholderNotAllowed, why)
                .hint(hint)
                .at(Span::of(text, start..end)),
        );
    }
}

/// The first `{{` of an address in front of the placeholder that it may end in.
pub(crate) fn only_at_end(text: &str, format: ParameterFormat, faults: &mut Vec<TextViolation>) {
    let Some(start) = first(text) else { return };
    let end = find(&text[start..], b'}').map_or(start + 2, |at| start + at + 2);
    let written = text[start..end].trim_matches(['{', '}']).trim();
    let meant = written.to_lowercase().replace([' ', '-', '.'], "_");
    let hint = if !text[start..end].ends_with("}}") {
        "write `{{1}}` at the very end, or leave out the `{{`".to_owned()
    } else if end < text.len() {
        "put it at the very end, or leave it out".to_owned()
    } else if base(&text[start..], format).is_some() {
        "keep the last one only".to_owned()
    } else if format == ParameterFormat::Named && is_name(&meant) {
        format!("did you mean `{{{{{}}}}}`?", shortened(&meant))
    } else if is_name(written) {
        "write `{{1}}`, or add `\"parameter_format\": \"NAMED\"`".to_owned()
    } else {
        "write `{{1}}`: each address counts for itself".to_owned()
    };
    let why = "an address takes one placeholder, at its very end";
    let span = Span::of(text, start..end);
    faults.push(TextViolation::new(Rule::PlaceholderNotAllowed, why).hint(hint).at(span));
}

fn number(digits: &str) -> Option<usize> {
    let plain = (1..=3).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0');
    digits.parse().ok().filter(|number| plain && *number <= MAX)
}

/// A faulty placeholder reaches to its `}}` when that is on the same line and no other `{{`
/// comes first; otherwise only the `{{` itself is at fault.
fn faulty_end(text: &str, inside: usize, close: Option<usize>) -> usize {
    match close {
        Some(close) if !text[inside..close].contains(['\n', '{']) => close + 2,
        _ => inside,
    }
}

fn syntax_fault(text: &str, bytes: Range<usize>) -> TextViolation {
    let written = &text[bytes.clone()];
    let inner = written.trim_matches(['{', '}']).trim();
    let hint = match number(inner) {
        Some(number) => format!("did you mean `{{{{{number}}}}}`?"),
        None => "number the placeholders: `{{1}}`, `{{2}}` … up to `{{999}}`".to_owned(),
    };
    let message = format!("`{}` is not a placeholder", shortened(written));
    TextViolation::new(Rule::PlaceholderSyntax, message).hint(hint).at(Span::of(text, bytes))
}

/// How many different placeholders there are; a fault for every number that the highest one
/// leaves out, told once, at the first placeholder above the gap.
fn gapless(text: &str, found: &[(usize, Range<usize>)], faults: &mut Vec<TextViolation>) -> usize {
    let mut present = [false; MAX + 1];
    for (number, _) in found {
        present[*number] = true;
    }
    let highest = found.iter().map(|(number, _)| *number).max().unwrap_or(0);
    let missing = (1..=highest).find(|number| !present[*number]);
    if let Some(missing) = missing
        && let Some((above, bytes)) = found.iter().find(|(number, _)| *number > missing)
    {
        let message = format!(
            "`{{{{{above}}}}}` stands here, but `{{{{{missing}}}}}` is nowhere in the text"
        );
        let hint = "number placeholders from `{{1}}` without gaps".to_owned();
        faults.push(
            TextViolation::new(Rule::PlaceholderGap, message)
                .hint(hint)
                .at(Span::of(text, bytes.clone())),
        );
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> (Option<usize>, Vec<String>) {
        let mut faults = Vec::new();
        let count = numbered(text, &mut faults);
        let told = faults.iter().map(|fault| {
            let span = fault.span.unwrap();
            format!("{} {}..{}", fault.rule.id(), span.start, span.end)
        });
        (count, told.collect())
    }

    #[test]
    fn good_placeholders_are_counted_once_each_in_any_order() {
        for (text, count) in [("Hi {{1}}", 1), ("{{2}} {{1}} {{2}}", 2), ("{{1}}{{2}}{{3}}", 3)] {
            assert_eq!(check(text), (Some(count), vec![]), "{text}");
        }
        assert_eq!(check("no { } }} here"), (None, vec![]));
        let all: Vec<String> = (1..=999).map(|number| format!("{{{{{number}}}}}")).collect();
        assert_eq!(check(&all.concat()), (Some(999), vec![]));
    }

    #[test]
    fn faulty_placeholders_are_all_shown_with_their_spans() {
        for (text, faults) in [
            ("Hi {{name}}!", &["placeholder-syntax 3..11"][..]),
            ("é{{ 1 }}", &["placeholder-syntax 1..8"]),
            (
                "{{0}} {{01}} {{1000}}",
                &[
                    "placeholder-syntax 0..5",
                    "placeholder-syntax 6..12",
                    "placeholder-syntax 13..21",
                ],
            ),
            ("{{1", &["placeholder-syntax 0..2"]),
            ("{{{{1}}", &["placeholder-syntax 0..2"]),
            ("{{\n}} {{1}}", &["placeholder-syntax 0..2"]),
            ("{{1}} {{3}}", &["placeholder-gap 6..11"]),
            ("{{2}}", &["placeholder-gap 0..5"]),
            ("{{x}} {{2}}", &["placeholder-syntax 0..5", "placeholder-gap 6..11"]),
        ] {
            assert_eq!(
                check(text),
                (None, faults.iter().map(|it| (*it).to_owned()).collect()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_name_among_numbers_is_told_of_the_other_format() {
        let mut faults = Vec::new();
        scan("é {{first_name}} {{X}}", ParameterFormat::Positional, &mut faults);
        let hints: Vec<&str> = faults.iter().filter_map(|it| it.hint.as_deref()).collect();
        assert!(hints[0].contains("\"parameter_format\": \"NAMED\""), "{hints:?}");
        assert!(hints[1].starts_with("number the placeholders"), "{hints:?}");
    }
}
