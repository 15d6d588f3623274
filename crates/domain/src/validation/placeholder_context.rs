//! The words around placeholders: what stands before, behind and beside them.

use std::ops::Range;

use crate::{
    document::text::stands_alone,
    validation::warnings::characters::is_space,
    violation::{Rule, Span, TextViolation, shortened},
};

/// A body neither begins nor ends with a placeholder.
pub(crate) fn edges(text: &str, faults: &mut Vec<TextViolation>) {
    if !text.contains("{{") {
        return;
    }
    let places = placeholders(text);
    let mut edge = |rule, verb: &str, side: &str, place: Option<&Range<usize>>| {
        if let Some(place) = place {
            let message = format!("{verb} with a placeholder; punctuation does not count");
            let hint = format!("put a word {side} `{}`", shortened(&text[place.clone()]));
            faults.push(
                TextViolation::new(rule, message).hint(hint).at(Span::of(text, place.clone())),
            );
        }
    };
    edge(Rule::PlaceholderAtStart, "begins", "before", first(text, &places));
    edge(Rule::PlaceholderAtEnd, "ends", "behind", last(text, &places));
}

/// A body has enough words for the `count` different placeholders it holds, if they are all good.
pub(crate) fn enough_words(text: &str, count: Option<usize>, faults: &mut Vec<TextViolation>) {
    let Some(count) = count.filter(|count| *count > 0) else { return };
    let words = words(text, &placeholders(text));
    let needed = 2 * count + 1;
    if words < needed {
        let message =
            format!("has {words} words beside {count} different placeholders; {needed} are needed");
        let hint = format!("add {}, or use fewer placeholders", needed - words);
        faults.push(TextViolation::new(Rule::TooFewWords, message).hint(hint));
    }
}

/// Refuses the second placeholder of a headline.
pub(crate) fn at_most_one(text: &str, count: Option<usize>, faults: &mut Vec<TextViolation>) {
    if count.is_none_or(|count| count == 0) {
        return;
    }
    if let [_, second, ..] = &placeholders(text)[..] {
        let message = "holds a second placeholder; a headline takes one";
        let fault = TextViolation::new(Rule::PlaceholderCount, message);
        faults.push(fault.hint("keep one of them").at(Span::of(text, second.clone())));
    }
}

/// Where placeholders stand, good ones and such as are only misspelt.
pub(crate) fn placeholders(text: &str) -> Vec<Range<usize>> {
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

/// The placeholder that a text begins with, but for white space and punctuation.
pub(crate) fn first<'p>(text: &str, places: &'p [Range<usize>]) -> Option<&'p Range<usize>> {
    places.first().filter(|place| says_nothing(&text[..place.start]))
}

/// The placeholder that a text ends with, likewise.
pub(crate) fn last<'p>(text: &str, places: &'p [Range<usize>]) -> Option<&'p Range<usize>> {
    places.last().filter(|place| says_nothing(&text[place.end..]))
}

fn says_nothing(text: &str) -> bool {
    text.chars().all(|it| is_space(it) || is_punctuation(it))
}

/// How many words there are without the placeholders: whatever white space parts and has a letter
/// or a digit in it, and each character of scripts that put no space between words.
fn words(text: &str, places: &[Range<usize>]) -> usize {
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for place in places {
        rest.push_str(&text[from..place.start]);
        from = place.end;
    }
    rest.push_str(&text[from..]);
    let in_token = |token: &str| {
        let alone = token.chars().filter(|it| it.is_alphanumeric() && stands_alone(*it)).count();
        let joined = token.chars().any(|it| it.is_alphanumeric() && !stands_alone(it));
        alone + usize::from(joined)
    };
    rest.split_whitespace().map(in_token).sum()
}

/// What closes and opens sentences and clauses, and the marks of formatting. Letters, digits,
/// emoji, signs of currency and of reckoning are no punctuation: whether those help is not known,
/// and nobody is refused or warned for what may be good.
fn is_punctuation(character: char) -> bool {
    matches!(character,
        '!' | '"' | '&'..='*' | ','..='/' | ':' | ';' | '?' | '@' | '['..=']' | '_' | '`' | '{' | '}'
        | '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}' // ¡ « » ¿
        | '\u{55a}'..='\u{55f}' | '\u{589}' | '\u{58a}' | '\u{5be}' | '\u{5f3}' | '\u{5f4}'
        | '\u{60c}' | '\u{61b}' | '\u{61d}'..='\u{61f}' | '\u{66b}'..='\u{66d}' | '\u{6d4}'
        | '\u{964}' | '\u{965}' | '\u{104a}'..='\u{104f}' | '\u{1360}'..='\u{1368}'
        | '\u{17d4}'..='\u{17da}' | '\u{2010}'..='\u{2027}' | '\u{2032}'..='\u{2043}'
        | '\u{2045}'..='\u{2051}' | '\u{2053}'..='\u{205e}'
        | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{30fb}'
        | '\u{ff01}' | '\u{ff02}' | '\u{ff06}'..='\u{ff0a}' | '\u{ff0c}'..='\u{ff0f}'
        | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}' | '\u{ff20}' | '\u{ff3b}'..='\u{ff3d}' | '\u{ff3f}'
        | '\u{ff5b}' | '\u{ff5d}' | '\u{ff5f}'..='\u{ff65}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str, count: usize) -> Vec<&'static str> {
        let mut faults = Vec::new();
        edges(text, &mut faults);
        enough_words(text, Some(count), &mut faults);
        faults.iter().map(|fault| fault.rule.id()).collect()
    }

    #[test]
    fn each_placeholder_needs_two_words_and_one_more() {
        // What people found out by trying.
        assert_eq!(rules("one two {{1}} three {{2}} four", 2), ["too-few-words"]);
        assert_eq!(rules("one two {{1}} three {{2}} four five", 2), [""; 0]);
        assert_eq!(rules("one - {{1}} , & two", 1), ["too-few-words"]);
        assert_eq!(rules("one {{1}} {{1}} {{1}} two three", 1), [""; 0]);
        assert_eq!(rules("您的订单{{1}}已发货", 1), [""; 0], "no spaces are needed there");
        assert_eq!(rules("a{{1}}b c", 1), ["too-few-words"], "what is left is `ab c`");
        assert_eq!(rules("no placeholders", 0), [""; 0]);
    }

    #[test]
    fn neither_edge_is_a_placeholder_whatever_the_punctuation() {
        assert_eq!(rules("{{1}}: one two three", 1), ["placeholder-at-start"]);
        assert_eq!(rules("one two three {{1}}!", 1), ["placeholder-at-end"]);
        assert_eq!(
            rules("{{1}}", 1),
            ["placeholder-at-start", "placeholder-at-end", "too-few-words"]
        );
        assert_eq!(rules("one {{1}} two 3", 1), [""; 0]);
        assert_eq!(rules("one two three *{{1}}*_", 1), ["placeholder-at-end"]);
        for sign in "$%#+<=>^|~€£₹＄％＋～".chars() {
            assert_eq!(rules(&format!("{sign}{{{{1}}}} one two three"), 1), [""; 0], "{sign}");
            assert_eq!(rules(&format!("one two three {{{{1}}}} {sign}"), 1), [""; 0], "{sign}");
        }
    }
}
