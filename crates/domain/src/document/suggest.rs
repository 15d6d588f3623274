//! "Did you mean" suggestions: the known word nearest to a misspelt one.

/// Longest word to suggest a correction for: the edit distance costs the product of the lengths.
const MAX_WORD_BYTES: usize = 50;

/// Number of known words to compare with, because the known words may come from the client.
const MAX_CANDIDATES: usize = 100;

/// The known word nearest to `written`, if one is near enough to be a misspelling of it.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if written.len() > MAX_WORD_BYTES {
        return None;
    }
    let folded = written.to_lowercase();
    let has_similar_length = |word: &&str| word.len() <= 2 * written.len() + 4;
    known
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter(has_similar_length)
        .map(|word| (strsim::damerau_levenshtein(&folded, &word.to_lowercase()), word))
        .filter(|(distance, word)| *distance <= (word.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_is_recognised_and_a_different_word_is_not() {
        let known = ["MARKETING", "UTILITY", "AUTHENTICATION"];
        assert_eq!(nearest("marketting", known), Some("MARKETING"));
        assert_eq!(nearest("Utilty", known), Some("UTILITY"));
        assert_eq!(nearest("TRANSACTIONAL", known), None);
        assert_eq!(nearest(&"M".repeat(10_000), known), None);
        let long = "n".repeat(200_000);
        assert_eq!(nearest("name", [&*long, "nme"]), Some("nme"));
    }
}
