//! Parses placeholders: `{{1}}`, `{{2}}` … or `{{first_name}}`.

use std::ops::Range;

use crate::{
    document::text::has_pair,
    rulebook::ParameterFormat,
    violation::{MAX_LISTED, Rule, Span, TextViolation, did_you_mean, truncated},
};

/// The highest number of a placeholder.
const MAX_NUMBER: usize = 999;

/// What is known about the placeholders of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceholderCount {
    /// Nothing: there is no text.
    Unknown,
    /// All are valid; so many are distinct.
    Exact(usize),
    /// Some are invalid. The corrected text has between `min` and `max` distinct ones.
    Between {
        /// The number if the invalid ones are removed.
        min: usize,
        /// The number if all of them are corrected.
        max: usize,
    },
}

impl PlaceholderCount {
    /// The text has no placeholders.
    pub(crate) const NONE: Self = Self::Exact(0);

    /// Whether the text has placeholders, valid or not.
    pub(crate) fn is_any(self) -> bool {
        !matches!(self, Self::Unknown | Self::Exact(0))
    }

    /// Whether there is a text, and all its placeholders are valid.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Self::Exact(_))
    }

    /// What is known about a text that may have one placeholder, once it has no more.
    pub(crate) fn at_most_one(self) -> Self {
        match self {
            Self::Unknown => self,
            Self::Exact(count) => Self::Exact(count.min(1)),
            Self::Between { min, max } => Self::Between { min: min.min(1), max: max.min(1) },
        }
    }

    /// The smallest possible number.
    pub(crate) fn min(self) -> usize {
        match self {
            Self::Unknown => 0,
            Self::Exact(count) => count,
            Self::Between { min, .. } => min,
        }
    }
}

/// Checks the placeholders of a text and counts the distinct ones.
pub(crate) fn scan(
    text: &str,
    format: ParameterFormat,
    violations: &mut Vec<TextViolation>,
) -> PlaceholderCount {
    if format == ParameterFormat::Named {
        return named(text, violations);
    }
    let start_len = violations.len();
    let count = numbered(text, violations);
    for violation in &mut violations[start_len..] {
        let use_named = |name: &str| {
            format!(
                "write `{{{{1}}}}`, or add `\"parameter_format\": \"NAMED\"` for `{{{{{name}}}}}`"
            )
        };
        if violation.rule == Rule::PlaceholderSyntax
            && let Some(name) =
                violation.span.and_then(|span| inside(text, span)).filter(|name| is_name(name))
        {
            violation.hint = Some(use_named(&truncated(name)));
        }
    }
    count
}

/// The text between the braces at `span`.
fn inside(text: &str, span: Span) -> Option<&str> {
    let from = text.char_indices().nth(span.start)?.0;
    text[from..].strip_prefix("{{")?.split_once("}}").map(|(inside, _)| inside)
}

/// The position of the first `{{`. Most texts contain none, which a fast scan detects.
fn first_open(text: &str) -> Option<usize> {
    if has_pair(text, b'{') { find_pair(text, b'{') } else { None }
}

/// The position of the first pair of `brace`. Texts are short: comparing every byte is faster than
/// preparing a substring search.
pub(crate) fn find_pair(text: &str, brace: u8) -> Option<usize> {
    text.as_bytes().windows(2).position(|pair| pair == [brace, brace])
}

/// The next `}}`, which is searched for again only once the scan has passed it: a text of thousands
/// of `{{` does not cost quadratic time.
#[derive(Default)]
struct NextClose {
    position: Option<usize>,
    is_searched: bool,
}

impl NextClose {
    /// The position of the first `}}` from `from` on, which grows from call to call.
    fn after(&mut self, text: &str, from: usize) -> Option<usize> {
        if !self.is_searched || self.position.is_some_and(|close| close < from) {
            self.position = find_pair(&text[from..], b'}').map(|at| from + at);
            self.is_searched = true;
        }
        self.position
    }
}

/// Adds a violation of a text. Beyond those that a response can list, violations are only counted,
/// so that they need no message and no span.
fn push_listed(
    violations: &mut Vec<TextViolation>,
    rule: Rule,
    violation: impl FnOnce() -> TextViolation,
) {
    let is_listed = violations.len() < MAX_LISTED;
    violations.push(if is_listed { violation() } else { TextViolation::new(rule, String::new()) });
}

/// Checks numbered placeholders and counts the distinct ones.
pub(crate) fn numbered(text: &str, violations: &mut Vec<TextViolation>) -> PlaceholderCount {
    let Some(mut from) = first_open(text) else { return PlaceholderCount::NONE };
    let mut found: Vec<(usize, Range<usize>)> = Vec::new();
    let mut invalid: Vec<&str> = Vec::new();
    let mut closes = NextClose::default();
    while let Some(start) = find_pair(&text[from..], b'{').map(|at| from + at) {
        let inside = start + 2;
        let close = closes.after(text, inside);
        let number = close.and_then(|close| number(&text[inside..close]));
        if let (Some(number), Some(close)) = (number, close) {
            from = close + 2;
            found.push((number, start..from));
        } else {
            from = invalid_end(text, inside, close);
            push_listed(violations, Rule::PlaceholderSyntax, || invalid_number(text, start..from));
            invalid.push(&text[start..from]);
        }
    }
    let (distinct, highest) = check_gaps(text, &found, violations);
    if invalid.is_empty() && distinct == highest {
        return PlaceholderCount::Exact(distinct);
    }
    let max = highest.max(distinct + count_distinct(&mut invalid)).min(MAX_NUMBER);
    PlaceholderCount::Between { min: distinct, max }
}

fn count_distinct(texts: &mut Vec<&str>) -> usize {
    texts.sort_unstable();
    texts.dedup();
    texts.len()
}

/// Checks named placeholders, like [`numbered`].
fn named(text: &str, violations: &mut Vec<TextViolation>) -> PlaceholderCount {
    let Some(mut from) = first_open(text) else { return PlaceholderCount::NONE };
    let (mut valid, mut invalid) = (Vec::new(), Vec::new());
    let mut closes = NextClose::default();
    while let Some(start) = find_pair(&text[from..], b'{').map(|at| from + at) {
        let inside = start + 2;
        let close = closes.after(text, inside);
        if let Some(close) = close.filter(|close| is_name(&text[inside..*close])) {
            valid.push(&text[inside..close]);
            from = close + 2;
        } else {
            from = invalid_end(text, inside, close);
            push_listed(violations, Rule::PlaceholderName, || invalid_name(text, start..from));
            invalid.push(&text[start..from]);
        }
    }
    let min = count_distinct(&mut valid);
    match count_distinct(&mut invalid) {
        0 => PlaceholderCount::Exact(min),
        invalid => PlaceholderCount::Between { min, max: min + invalid },
    }
}

/// The distinct names in a text whose placeholders are all valid.
pub(crate) fn names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for part in text.split("{{").skip(1) {
        let name = part.split("}}").next().unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The fixed part of a URL that ends in a placeholder. The placeholder may be `{{1}}` even in a
/// document with named placeholders, because a URL has only one.
pub(crate) fn base(url: &str, format: ParameterFormat) -> Option<&str> {
    if let Some(base) = url.strip_suffix("{{1}}") {
        return Some(base);
    }
    let (base, name) = url.strip_suffix("}}")?.rsplit_once("{{")?;
    (format == ParameterFormat::Named && is_name(name)).then_some(base)
}

fn is_name(text: &str) -> bool {
    leading_name(text) == Some(text)
}

/// The name at the beginning of a text.
pub(crate) fn leading_name(text: &str) -> Option<&str> {
    let is_part = |it: &u8| it.is_ascii_lowercase() || it.is_ascii_digit() || *it == b'_';
    let length = text.bytes().take_while(is_part).count();
    let begins = text.starts_with(|it: char| it.is_ascii_lowercase() || it == '_');
    begins.then(|| &text[..length])
}

/// Suggests a placeholder with this name, if it is valid.
fn suggested_name(name: &str) -> Option<String> {
    is_name(name).then(|| did_you_mean(&format!("{{{{{name}}}}}"))).flatten()
}

fn invalid_name(text: &str, bytes: Range<usize>) -> TextViolation {
    let written = &text[bytes.clone()];
    let inner = written.trim_matches(['{', '}']).trim();
    let corrected = inner.to_lowercase().replace([' ', '-', '.'], "_");
    let hint = suggested_name(&corrected).unwrap_or_else(|| {
        "use names such as `{{first_name}}`; numbers require `parameter_format` POSITIONAL"
            .to_owned()
    });
    let message = format!("`{}` is not a named placeholder", truncated(written));
    TextViolation::new(Rule::PlaceholderName, message).hint(hint).at(Span::of(text, bytes))
}

/// Reports every placeholder of a text that must not contain any.
pub(crate) fn forbid(text: &str, message: &str, violations: &mut Vec<TextViolation>) {
    let Some(mut from) = first_open(text) else { return };
    let mut closes = NextClose::default();
    while let Some(start) = find_pair(&text[from..], b'{').map(|at| from + at) {
        from = invalid_end(text, start + 2, closes.after(text, start + 2));
        push_listed(violations, Rule::PlaceholderNotAllowed, || {
            TextViolation::new(Rule::PlaceholderNotAllowed, message)
                .hint("write the text without `{{`")
                .at(Span::of(text, start..from))
        });
    }
}

/// The start of the placeholder, valid or not, that begins before `end` and ends after it.
pub(crate) fn straddling(text: &str, end: usize) -> Option<usize> {
    let start = text[..end].rfind("{{")?;
    let inside = start + 2;
    let close = inside + find_pair(&text[inside..], b'}')?;
    (close + 2 > end && !text[inside..close].contains(['\n', '{'])).then_some(start)
}

/// What is known about the placeholders of a text that is not searched for them.
pub(crate) fn unchecked(text: &str) -> PlaceholderCount {
    match first_open(text) {
        Some(_) => PlaceholderCount::Between { min: 0, max: MAX_NUMBER },
        None => PlaceholderCount::NONE,
    }
}

/// The placeholders of a URL; `base` is the part before a valid one at its end.
pub(crate) fn of_url(base: Option<&str>, url: &str) -> PlaceholderCount {
    match base {
        Some(_) => PlaceholderCount::Exact(1),
        None if first_open(url).is_some() => PlaceholderCount::Between { min: 0, max: 1 },
        None => PlaceholderCount::NONE,
    }
}

/// Reports the first `{{` in `text`, which is a URL without the placeholder at its end, if it
/// `has_end`.
pub(crate) fn only_at_end(
    text: &str,
    has_end: bool,
    format: ParameterFormat,
    violations: &mut Vec<TextViolation>,
) {
    let Some(start) = first_open(text) else { return };
    let end = find_pair(&text[start..], b'}').map_or(start + 2, |at| start + at + 2);
    let name = text[start..end].trim_matches(['{', '}']).trim();
    let corrected = name.to_lowercase().replace([' ', '-', '.'], "_");
    let hint = if !text[start..end].ends_with("}}") {
        "write `{{1}}` at the very end, or remove the `{{`".to_owned()
    } else if end < text.len() {
        "move it to the very end, or remove it".to_owned()
    } else if has_end || base(&text[start..], format).is_some() {
        "keep only the last one".to_owned()
    } else if let Some(hint) =
        suggested_name(&corrected).filter(|_| format == ParameterFormat::Named)
    {
        hint
    } else if is_name(name) {
        "write `{{1}}`, or add `\"parameter_format\": \"NAMED\"`".to_owned()
    } else {
        "write `{{1}}`: each URL is numbered separately".to_owned()
    };
    let message = "a URL may contain one placeholder, at its very end";
    let span = Span::of(text, start..end);
    violations.push(TextViolation::new(Rule::PlaceholderNotAllowed, message).hint(hint).at(span));
}

fn number(digits: &str) -> Option<usize> {
    let is_canonical = (1..=3).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0');
    digits.parse().ok().filter(|number| is_canonical && *number <= MAX_NUMBER)
}

/// The end of an invalid placeholder: its `}}` if that is on the same line and before the next
/// `{`, otherwise the end of its `{{`.
fn invalid_end(text: &str, inside: usize, close: Option<usize>) -> usize {
    match close {
        Some(close) if !text[inside..close].contains(['\n', '{']) => close + 2,
        _ => inside,
    }
}

fn invalid_number(text: &str, bytes: Range<usize>) -> TextViolation {
    let written = &text[bytes.clone()];
    let inner = written.trim_matches(['{', '}']).trim();
    let hint = match number(inner) {
        Some(number) => format!("did you mean `{{{{{number}}}}}`?"),
        None => "number the placeholders: `{{1}}`, `{{2}}` … up to `{{999}}`".to_owned(),
    };
    let message = format!("`{}` is not a placeholder", truncated(written));
    TextViolation::new(Rule::PlaceholderSyntax, message).hint(hint).at(Span::of(text, bytes))
}

/// Reports the missing numbers at the first placeholder above the lowest of them. Returns how many
/// numbers there are, and the highest one.
fn check_gaps(
    text: &str,
    found: &[(usize, Range<usize>)],
    violations: &mut Vec<TextViolation>,
) -> (usize, usize) {
    let mut present = [false; MAX_NUMBER + 1];
    for (number, _) in found {
        present[*number] = true;
    }
    let highest = found.iter().map(|(number, _)| *number).max().unwrap_or(0);
    let missing = (1..=highest).find(|number| !present[*number]);
    if let Some(missing) = missing
        && let Some((above, bytes)) = found.iter().find(|(number, _)| *number > missing)
    {
        let others = (missing + 1..highest).filter(|number| !present[*number]).count();
        let missing = match others {
            0 => format!("`{{{{{missing}}}}}` is"),
            1 => format!("`{{{{{missing}}}}}` and another number are"),
            _ => format!("`{{{{{missing}}}}}` and {others} other numbers are"),
        };
        let message = format!("found `{{{{{above}}}}}`, but {missing} missing from the text");
        let hint = "number placeholders from `{{1}}` without gaps".to_owned();
        violations.push(
            TextViolation::new(Rule::PlaceholderGap, message)
                .hint(hint)
                .at(Span::of(text, bytes.clone())),
        );
    }
    (present[..=highest].iter().filter(|it| **it).count(), highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> (PlaceholderCount, Vec<String>) {
        let mut violations = Vec::new();
        let count = numbered(text, &mut violations);
        let lines = violations.iter().map(|violation| {
            let span = violation.span.unwrap();
            format!("{} {}..{}", violation.rule.id(), span.start, span.end)
        });
        (count, lines.collect())
    }

    #[test]
    fn valid_placeholders_are_counted_once_each_in_any_order() {
        for (text, count) in [("Hi {{1}}", 1), ("{{2}} {{1}} {{2}}", 2), ("{{1}}{{2}}{{3}}", 3)] {
            assert_eq!(check(text), (PlaceholderCount::Exact(count), vec![]), "{text}");
        }
        assert_eq!(check("no { } }} here"), (PlaceholderCount::NONE, vec![]));
        let all: Vec<String> = (1..=999).map(|number| format!("{{{{{number}}}}}")).collect();
        assert_eq!(check(&all.concat()), (PlaceholderCount::Exact(999), vec![]));
    }

    #[test]
    fn every_invalid_placeholder_is_reported_with_its_span() {
        for (text, violations, (min, max)) in [
            ("Hi {{name}}!", &["placeholder-syntax 3..11"][..], (0, 1)),
            ("é{{ 1 }}", &["placeholder-syntax 1..8"], (0, 1)),
            (
                "{{0}} {{01}} {{1000}}",
                &[
                    "placeholder-syntax 0..5",
                    "placeholder-syntax 6..12",
                    "placeholder-syntax 13..21",
                ],
                (0, 3),
            ),
            ("{{1", &["placeholder-syntax 0..2"], (0, 1)),
            ("{{{{1}}", &["placeholder-syntax 0..2"], (1, 2)),
            ("{{\n}} {{1}}", &["placeholder-syntax 0..2"], (1, 2)),
            ("{{1}} {{3}}", &["placeholder-gap 6..11"], (2, 3)),
            ("{{2}}", &["placeholder-gap 0..5"], (1, 2)),
            (
                "{{x}} {{2}} {{x}}",
                &["placeholder-syntax 0..5", "placeholder-syntax 12..17", "placeholder-gap 6..11"],
                (1, 2),
            ),
        ] {
            let count = PlaceholderCount::Between { min, max };
            let violations = violations.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(check(text), (count, violations), "{text}");
        }
    }

    #[test]
    fn a_gap_counts_all_missing_numbers() {
        for (text, missing) in [
            ("{{1}} {{3}}", "`{{2}}` is missing"),
            ("{{2}} {{4}}", "`{{1}}` and another number are missing"),
            ("{{1}} {{5}}", "`{{2}}` and 2 other numbers are missing"),
        ] {
            let mut violations = Vec::new();
            numbered(text, &mut violations);
            assert!(violations[0].message.contains(missing), "{}", violations[0].message);
        }
    }

    #[test]
    fn the_hint_for_a_name_among_numbers_mentions_the_named_format() {
        let mut violations = Vec::new();
        scan("é {{first_name}} {{X}}", ParameterFormat::Positional, &mut violations);
        let hints: Vec<&str> = violations.iter().filter_map(|it| it.hint.as_deref()).collect();
        assert!(hints[0].contains("\"parameter_format\": \"NAMED\""), "{hints:?}");
        assert!(hints[1].starts_with("number the placeholders"), "{hints:?}");
    }
}
