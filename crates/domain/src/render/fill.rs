//! Filling a text: each placeholder gives way to its value, once.

/// The highest placeholder of a text, which is how many values it takes.
pub(super) fn placeholders(text: &str) -> usize {
    let number = |piece| if let ObjectView::Place(number) = piece { number } else { 0 };
    Pieces { rest: text, names: &[] }.map(number).max().unwrap_or(0)
}

/// The text with its values in place, or how long it would become when that is more than `max`
/// characters. The length is known before anything is written: a long value in many places would
/// make a text of any size.
pub(super) fn fill(text: &str, values: &[&str], max: usize) -> Result<String, usize> {
    fill_named(text, &[], values, max)
}

/// Fills a text whose placeholders have names; the values stand in the order of these. Without
/// any names they are numbered.
pub(super) fn fill_named(
    text: &str,
    names: &[&str],
    values: &[&str],
    max: usize,
) -> Result<String, usize> {
    let lengths: Vec<usize> = values.iter().map(|value| value.chars().count()).collect();
    let length = Pieces { rest: text, names }.map(|piece| match piece {
        ObjectView::Words(words) => words.chars().count(),
        ObjectView::Place(number) => lengths.get(number - 1).copied().unwrap_or(0),
    });
    let length = length.sum();
    if length > max {
        return Err(length);
    }
    let bytes: usize = values.iter().map(|value| value.len()).sum();
    let mut filled = String::with_capacity(text.len() + bytes);
    for piece in (Pieces { rest: text, names }) {
        filled.push_str(match piece {
            ObjectView::Words(words) => words,
            ObjectView::Place(number) => values.get(number - 1).copied().unwrap_or(""),
        });
    }
    Ok(filled)
}

/// How many characters of a text stay whatever its values are.
pub(super) fn fixed(text: &str, names: &[&str]) -> usize {
    let length =
        |piece| if let ObjectView::Words(words) = piece { words.chars().count() } else { 0 };
    Pieces { rest: text, names }.map(length).sum()
}

/// A text, taken apart at its placeholders.
struct Pieces<'t> {
    rest: &'t str,
    /// What the placeholders are called; they are numbered when there are no names.
    names: &'t [&'t str],
}

enum ObjectView<'t> {
    Words(&'t str),
    /// The place of a value, counted from 1.
    Place(usize),
}

impl<'t> Iterator for Pieces<'t> {
    type Item = ObjectView<'t>;

    fn next(&mut self) -> Option<ObjectView<'t>> {
        if self.rest.is_empty() {
            return None;
        }
        if let Some((number, rest)) = placeholder(self.rest, self.names) {
            self.rest = rest;
            return Some(ObjectView::Place(number));
        }
        let mut braces = self.rest.match_indices("{{").map(|(at, _)| at);
        let end = braces.find(|at| placeholder(&self.rest[*at..], self.names).is_some());
        let (words, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Some(ObjectView::Words(words))
    }
}

/// The placeholder that a text begins with, and what follows it.
fn placeholder<'t>(text: &'t str, names: &[&str]) -> Option<(usize, &'t str)> {
    let inside = text.strip_prefix("{{")?;
    if !names.is_empty() {
        let (name, behind) = inside.split_once("}}")?;
        return Some((names.iter().position(|it| *it == name)? + 1, behind));
    }
    let digits = inside.bytes().take(3).take_while(u8::is_ascii_digit).count();
    let (digits, behind) = inside.split_at(digits);
    let number = digits.parse().ok().filter(|_| !digits.starts_with('0'))?;
    Some((number, behind.strip_prefix("}}")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_repeat_in_any_order_and_values_are_never_filled_themselves() {
        let text = "{{2}}, {{1}} and {{2}}{{3}}";
        assert_eq!(placeholders(text), 3);
        let values = ["{{3}}", "{{1}}", "{"];
        assert_eq!(fill(text, &values, 99), Ok("{{1}}, {{3}} and {{1}}{".to_owned()));
    }

    #[test]
    fn named_placeholders_find_their_values_and_numbers_are_names_of_nothing() {
        let text = "{{b}}, {{a}} and {{b}}{{1}}{{c}}{{";
        let values = ["{{b}}", "2"];
        let filled = "2, {{b}} and 2{{1}}{{c}}{{".to_owned();
        assert_eq!(fill_named(text, &["a", "b"], &values, 99), Ok(filled));
        assert_eq!(fill_named("{{a}}{{a}}", &["a"], &["xy"], 3), Err(4));
    }

    #[test]
    fn what_is_no_placeholder_stays() {
        for text in ["", "{", "{{", "{{}}", "{{0}}", "{{01}}", "{{1000}}", "{{x}}", "{{1}", "é}}"]
        {
            assert_eq!((placeholders(text), fill(text, &[], 99)), (0, Ok(text.to_owned())));
        }
        assert_eq!(fill("{{x}} {{1}}}", &["é"], 99), Ok("{{x}} é}".to_owned()));
        assert_eq!(placeholders("{{999}}"), 999);
    }

    #[test]
    fn the_length_is_that_of_the_filled_text_in_characters() {
        assert_eq!(fill("é{{1}}{{1}}", &["ü2"], 5), Ok("éü2ü2".to_owned()));
        assert_eq!(fill("é{{1}}{{1}}", &["ü2"], 4), Err(5));
        assert_eq!((fixed("é{{1}}{{1}}!", &[]), fixed("{{a}}", &["a"])), (2, 0));
        let long = "x".repeat(1_000_000);
        assert_eq!(fill(&"{{1}}".repeat(800), &[&long], 4_096), Err(800_000_000));
    }
}
