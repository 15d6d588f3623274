//! Checks the text around placeholders: before the first, after the last and between them.

use std::ops::Range;

use icu_properties::props::{EnumeratedProperty, GeneralCategory, GeneralCategoryGroup};

use crate::{
    document::text::is_unspaced_letter,
    validation::{
        placeholders::{PlaceholderCount, find_pair},
        warnings::characters::is_blank,
    },
    violation::{Rule, Span, TextViolation, pluralized, truncated},
};

/// Reports a placeholder at the beginning or end of a body.
pub(crate) fn edges(text: &str, violations: &mut Vec<TextViolation>) {
    if !text.contains("{{") {
        return;
    }
    let ranges = placeholders(text);
    let mut report = |rule, verb: &str, side: &str, range: Option<&Range<usize>>| {
        if let Some(range) = range {
            let message = format!("{verb} with a placeholder; punctuation does not count");
            let hint = format!("put a word {side} `{}`", truncated(&text[range.clone()]));
            violations.push(
                TextViolation::new(rule, message).hint(hint).at(Span::of(text, range.clone())),
            );
        }
    };
    report(Rule::PlaceholderAtStart, "begins", "before", first(text, &ranges));
    report(Rule::PlaceholderAtEnd, "ends", "after", last(text, &ranges));
}

/// Checks that a body has enough words for its distinct placeholders. Of invalid ones, only those
/// count that any correction keeps.
pub(crate) fn enough_words(
    text: &str,
    count: PlaceholderCount,
    violations: &mut Vec<TextViolation>,
) {
    let count = count.min();
    if count == 0 {
        return;
    }
    let words = count_words(text, &placeholders(text));
    let required = 2 * count + 1;
    if words < required {
        let found = pluralized(words, "word");
        let placeholders = pluralized(count, "distinct placeholder");
        let message = format!("has {found} besides {placeholders}; {required} are required");
        let hint =
            format!("add {}, or use fewer placeholders", pluralized(required - words, "word"));
        violations.push(TextViolation::new(Rule::TooFewWords, message).hint(hint));
    }
}

/// Reports the second placeholder of a header text.
pub(crate) fn at_most_one(
    text: &str,
    count: PlaceholderCount,
    violations: &mut Vec<TextViolation>,
) {
    if !count.is_any() {
        return;
    }
    if let [_, second, ..] = &placeholders(text)[..] {
        let message = "contains a second placeholder; a header text may contain one";
        let violation = TextViolation::new(Rule::PlaceholderCount, message);
        violations.push(violation.hint("keep only one of them").at(Span::of(text, second.clone())));
    }
}

/// The byte ranges of all placeholders, including misspelt ones.
pub(crate) fn placeholders(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = find_pair(&text[from..], b'{').map(|at| from + at) {
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

/// The placeholder at the beginning of a text, ignoring whitespace and punctuation.
pub(crate) fn first<'p>(text: &str, ranges: &'p [Range<usize>]) -> Option<&'p Range<usize>> {
    ranges.first().filter(|range| is_filler(&text[..range.start]))
}

/// The placeholder at the end of a text, ignoring whitespace and punctuation.
pub(crate) fn last<'p>(text: &str, ranges: &'p [Range<usize>]) -> Option<&'p Range<usize>> {
    ranges.last().filter(|range| is_filler(&text[range.end..]))
}

/// Whether a text consists only of whitespace, invisible characters and punctuation.
fn is_filler(text: &str) -> bool {
    text.chars().all(|character| is_blank(character) || is_punctuation(character))
}

/// Counts the words of a text without its placeholders. A word is a run without whitespace that
/// contains a letter or digit; in scripts without spaces, each letter or digit is a word.
fn count_words(text: &str, placeholders: &[Range<usize>]) -> usize {
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for range in placeholders {
        rest.push_str(&text[from..range.start]);
        from = range.end;
    }
    rest.push_str(&text[from..]);
    let in_token = |token: &str| {
        let unspaced = token.chars().filter(|it| is_unspaced_letter(*it)).count();
        let has_word = token.chars().any(|it| it.is_alphanumeric() && !is_unspaced_letter(it));
        unspaced + usize::from(has_word)
    };
    rest.split_whitespace().map(in_token).sum()
}

/// Whether a character is punctuation or a formatting mark. Letters, digits, emoji, currency and
/// mathematical symbols are not: whether WhatsApp accepts them at the edge is unknown, so they are
/// neither rejected nor warned about.
fn is_punctuation(character: char) -> bool {
    match character {
        // A formatting mark that Unicode classifies as a symbol.
        '`' => true,
        // Number, percent and per mille signs, which Unicode classifies as punctuation.
        '#' | '%' | '‰' | '‱' | '٪' | '؉' | '؊' | '﹟' | '﹪' | '＃' | '％' => false,
        _ => GeneralCategoryGroup::Punctuation.contains(GeneralCategory::for_char(character)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str, count: usize) -> Vec<&'static str> {
        let mut violations = Vec::new();
        edges(text, &mut violations);
        enough_words(text, PlaceholderCount::Exact(count), &mut violations);
        violations.iter().map(|violation| violation.rule.id()).collect()
    }

    #[test]
    fn a_body_needs_two_words_for_each_placeholder_and_one_more() {
        // Limits determined by experiment.
        assert_eq!(rules("one two {{1}} three {{2}} four", 2), ["too-few-words"]);
        assert_eq!(rules("one two {{1}} three {{2}} four five", 2), [""; 0]);
        assert_eq!(rules("one - {{1}} , & two", 1), ["too-few-words"]);
        assert_eq!(rules("one {{1}} {{1}} {{1}} two three", 1), [""; 0]);
        assert_eq!(rules("您的订单{{1}}已发货", 1), [""; 0], "Chinese needs no spaces");
        assert_eq!(rules("a{{1}}b c", 1), ["too-few-words"], "the remaining text is `ab c`");
        assert_eq!(rules("no placeholders", 0), [""; 0]);
    }

    #[test]
    fn punctuation_does_not_separate_a_placeholder_from_the_edge() {
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
