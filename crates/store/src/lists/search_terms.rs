//! The terms of a search, and how many words each stands for.
//!
//! A term matches every word that begins with it. Each such word is looked up on its own, so their
//! number is limited: otherwise, one search of an account with millions of different words takes a
//! processor for a second.

use crate::{
    ListQuery,
    encoding::{account_prefix, filter_term},
};

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

/// The filters of a list that the index contains, as terms of a search: the alternatives of each filter
/// that is set, joined by `or`.
pub(crate) fn filter_terms(
    listing: &ListQuery,
    quoted: impl Fn(&str) -> String,
    or: &str,
) -> Vec<String> {
    let owner = account_prefix(listing.account);
    let any_of = |kind, values: Vec<&str>| {
        let terms = values.iter().map(|it| quoted(&format!("{owner}{}", filter_term(kind, it))));
        let terms: Vec<String> = terms.collect();
        (!terms.is_empty()).then(|| format!("({})", terms.join(or)))
    };
    let filters = [
        any_of('s', listing.statuses.iter().map(|status| status.as_str()).collect()),
        any_of('c', listing.categories.iter().map(|category| category.as_str()).collect()),
        any_of('l', listing.languages.iter().map(String::as_str).collect()),
    ];
    filters.into_iter().flatten().collect()
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
