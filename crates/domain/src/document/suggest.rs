//! "Did you mean": the nearest of a few known words.

/// The known word nearest to what was written, if one is near enough to be meant.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Nobody misspells a keyword with fifty letters, and the distance costs the product of lengths.
    if written.len() > 50 {
        return None;
    }
    let folded = written.to_lowercase();
    // Either side may be a caller's: nothing much longer is meant, and nobody reads a thousand keys.
    let alike = |word: &&str| word.len() <= 2 * written.len() + 4;
    known
        .into_iter()
        .take(1_000)
        .filter(alike)
        .map(|word| (strsim::damerau_levenshtein(&folded, &word.to_lowercase()), word))
        .filter(|(distance, word)| *distance <= (word.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_something_else_is_not() {
        let known = ["MARKETING", "UTILITY", "AUTHENTICATION"];
        assert_eq!(nearest("marketting", known), Some("MARKETING"));
        assert_eq!(nearest("Utilty", known), Some("UTILITY"));
        assert_eq!(nearest("TRANSACTIONAL", known), None);
        assert_eq!(nearest(&"M".repeat(10_000), known), None);
        let long = "n".repeat(200_000);
        assert_eq!(nearest("name", [&*long, "nme"]), Some("nme"));
    }
}
