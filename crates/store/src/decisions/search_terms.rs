//! How many words a search term stands for.
//!
//! A term matches every word that begins with it. Each such word is looked up on its own, so their
//! number is limited: otherwise, one search of an account with millions of different words takes a
//! processor for a second.

/// Maximum number of words that all terms of a search stand for, except short terms.
const MAX_EXPANDED_WORDS: usize = 512;

/// Maximum length of a short term, in characters. The index contains the beginnings of words up to
/// this length, so a short term stands for any number of words.
const MAX_SHORT_TERM_CHARS: usize = 3;

/// Whether the index contains the term itself as the beginning of words.
pub(crate) fn is_short(term: &str) -> bool {
    term.chars().nth(MAX_SHORT_TERM_CHARS).is_none()
}

/// The maximum number of words that each longer term stands for: the first ones in the order of
/// their characters, which begin with the term itself.
pub(crate) fn max_expansion(terms: &[String]) -> usize {
    let longer = terms.iter().filter(|term| !is_short(term)).count();
    MAX_EXPANDED_WORDS / longer.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terms_of_a_search_share_the_words_that_they_stand_for() {
        let terms =
            |terms: &[&str]| terms.iter().map(|term| (*term).to_owned()).collect::<Vec<_>>();
        assert_eq!(max_expansion(&terms(&["order"])), MAX_EXPANDED_WORDS);
        assert_eq!(max_expansion(&terms(&["order", "the", "\u{fc}ber"])), MAX_EXPANDED_WORDS / 2);
        assert_eq!(max_expansion(&terms(&["an", "the"])), MAX_EXPANDED_WORDS);
        // A search has up to 40 terms.
        assert!(max_expansion(&terms(&["order"; 40])) >= 12);
    }
}
