//! Splits a text at its placeholders, and replaces them by values in a single pass.

use crate::validation::placeholders::leading_name;

/// The number of values that a text takes: its highest placeholder.
pub(crate) fn placeholder_count(text: &str) -> usize {
    let number = |part| if let TextPart::Placeholder(number) = part { number } else { 0 };
    known_parts(text, &[]).map(number).max().unwrap_or(0)
}

/// Fills a text with numbered placeholders. Returns the length in characters as an error if it
/// exceeds `max`. The length is computed first, so that a long value for many placeholders cannot
/// allocate an unbounded text.
pub(super) fn fill(text: &str, values: &[&str], max: usize) -> Result<String, usize> {
    fill_named(text, &[], values, max)
}

/// Fills a text with named placeholders; `values` has the order of `names`. Without names, the
/// placeholders are numbered.
pub(super) fn fill_named(
    text: &str,
    names: &[&str],
    values: &[&str],
    max: usize,
) -> Result<String, usize> {
    let lengths: Vec<usize> = values.iter().map(|value| value.chars().count()).collect();
    let length = known_parts(text, names).map(|part| match part {
        TextPart::Fixed(text) => text.chars().count(),
        TextPart::Placeholder(number) => lengths.get(number - 1).copied().unwrap_or(0),
    });
    let length = length.sum();
    if length > max {
        return Err(length);
    }
    let bytes: usize = values.iter().map(|value| value.len()).sum();
    let mut filled = String::with_capacity(text.len() + bytes);
    for part in known_parts(text, names) {
        filled.push_str(match part {
            TextPart::Fixed(text) => text,
            TextPart::Placeholder(number) => values.get(number - 1).copied().unwrap_or(""),
        });
    }
    Ok(filled)
}

/// The number of characters of a text outside its placeholders.
pub(super) fn fixed_length(text: &str, names: &[&str]) -> usize {
    let length = |part| if let TextPart::Fixed(text) = part { text.chars().count() } else { 0 };
    known_parts(text, names).map(length).sum()
}

/// Splits a text at all its placeholders, numbered or named, in linear time. A placeholder consists of
/// its number or name, and the text as it is written.
pub(crate) fn parts(text: &str) -> impl Iterator<Item = TextPart<'_, (&str, &str)>> {
    fn placeholder(text: &str) -> Option<((&str, &str), &str)> {
        let (name, rest) = numbered(text).or_else(|| named(text))?;
        Some(((name, &text[..text.len() - rest.len()]), rest))
    }
    TextParts { rest: text, placeholder }
}

/// Splits a text at the placeholders with these names; without names, at the numbered ones. A
/// placeholder is the number of its value, counted from 1.
fn known_parts<'t>(
    text: &'t str,
    names: &'t [&'t str],
) -> impl Iterator<Item = TextPart<'t, usize>> {
    TextParts { rest: text, placeholder: |text: &'t str| known(text, names) }
}

/// Splits a text where `placeholder` recognises one at the beginning of the rest.
struct TextParts<'t, F> {
    rest: &'t str,
    placeholder: F,
}

pub(crate) enum TextPart<'t, P> {
    Fixed(&'t str),
    Placeholder(P),
}

impl<'t, P, F: Fn(&'t str) -> Option<(P, &'t str)>> Iterator for TextParts<'t, F> {
    type Item = TextPart<'t, P>;

    fn next(&mut self) -> Option<TextPart<'t, P>> {
        if self.rest.is_empty() {
            return None;
        }
        if let Some((found, rest)) = (self.placeholder)(self.rest) {
            self.rest = rest;
            return Some(TextPart::Placeholder(found));
        }
        let end =
            double_braces(self.rest).find(|at| (self.placeholder)(&self.rest[*at..]).is_some());
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Some(TextPart::Fixed(text))
    }
}

/// Where `{{` begins in a text. Searches for one character, which is much faster than a search for
/// two.
fn double_braces(text: &str) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + text[from..].find('{')?;
            let is_double = text.as_bytes().get(at + 1) == Some(&b'{');
            from = at + 1 + usize::from(is_double);
            if is_double {
                return Some(at);
            }
        }
    })
}

/// The number of the placeholder at the beginning of a text, and the rest of the text.
fn known<'t>(text: &'t str, names: &[&str]) -> Option<(usize, &'t str)> {
    if names.is_empty() {
        let (digits, rest) = numbered(text)?;
        return Some((digits.parse().ok()?, rest));
    }
    let (name, rest) = named(text)?;
    Some((names.iter().position(|it| *it == name)? + 1, rest))
}

/// The digits of the numbered placeholder at the beginning of a text, and the rest of the text.
fn numbered(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix("{{")?;
    let digits = inside.bytes().take(3).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = inside.split_at(digits);
    let is_number = !digits.is_empty() && !digits.starts_with('0');
    Some((digits, rest.strip_prefix("}}")?)).filter(|_| is_number)
}

/// The name of the named placeholder at the beginning of a text, and the rest of the text.
fn named(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix("{{")?;
    let (name, rest) = inside.split_at(leading_name(inside)?.len());
    Some((name, rest.strip_prefix("}}")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_may_repeat_in_any_order_and_values_are_not_filled_themselves() {
        let text = "{{2}}, {{1}} and {{2}}{{3}}";
        assert_eq!(placeholder_count(text), 3);
        let values = ["{{3}}", "{{1}}", "{"];
        assert_eq!(fill(text, &values, 99), Ok("{{1}}, {{3}} and {{1}}{".to_owned()));
    }

    #[test]
    fn named_placeholders_are_replaced_and_unknown_names_and_numbers_are_not() {
        let text = "{{b}}, {{a}} and {{b}}{{1}}{{c}}{{";
        let values = ["{{b}}", "2"];
        let filled = "2, {{b}} and 2{{1}}{{c}}{{".to_owned();
        assert_eq!(fill_named(text, &["a", "b"], &values, 99), Ok(filled));
        assert_eq!(fill_named("{{a}}{{a}}", &["a"], &["xy"], 3), Err(4));
    }

    #[test]
    fn all_placeholders_are_found_with_their_text() {
        let shown: Vec<String> = parts("a {{1}}{{first_name}} {{0}} {{X}}{{_}}")
            .map(|part| match part {
                TextPart::Fixed(text) => text.to_owned(),
                TextPart::Placeholder((name, written)) => format!("{name}={written}"),
            })
            .collect();
        let expected = ["a ", "1={{1}}", "first_name={{first_name}}", " {{0}} {{X}}", "_={{_}}"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn double_braces_do_not_overlap() {
        for text in ["", "{", "é{{{{1}}", "{{{1}}{ {{{{{", "{x{{1}}{"] {
            let expected: Vec<_> = text.match_indices("{{").map(|(at, _)| at).collect();
            assert_eq!(double_braces(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn invalid_placeholders_are_left_unchanged() {
        for text in ["", "{", "{{", "{{}}", "{{0}}", "{{01}}", "{{1000}}", "{{x}}", "{{1}", "é}}"]
        {
            assert_eq!((placeholder_count(text), fill(text, &[], 99)), (0, Ok(text.to_owned())));
        }
        assert_eq!(fill("{{x}} {{1}}}", &["é"], 99), Ok("{{x}} é}".to_owned()));
        assert_eq!(placeholder_count("{{999}}"), 999);
    }

    #[test]
    fn the_limit_applies_to_the_characters_of_the_filled_text() {
        assert_eq!(fill("é{{1}}{{1}}", &["ü2"], 5), Ok("éü2ü2".to_owned()));
        assert_eq!(fill("é{{1}}{{1}}", &["ü2"], 4), Err(5));
        assert_eq!((fixed_length("é{{1}}{{1}}!", &[]), fixed_length("{{a}}", &["a"])), (2, 0));
        let long = "x".repeat(1_000_000);
        assert_eq!(fill(&"{{1}}".repeat(800), &[&long], 4_096), Err(800_000_000));
    }
}
