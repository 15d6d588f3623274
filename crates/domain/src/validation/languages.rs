//! Language codes such as `en_US`, and suggestions for invalid ones.

pub(crate) mod whatsapp;

use std::sync::LazyLock;

use crate::violation::{Rule, TextViolation, truncated};

/// Longest input to suggest a code for, in bytes.
pub(crate) const MAX_SUGGESTION_BYTES: usize = 60;

/// A language of ISO 639-1.
struct Language {
    code: &'static str,
    /// The three-letter code of ISO 639-3.
    code3: &'static str,
    /// The region in which the language is probably meant, according to CLDR.
    likely_region: Option<&'static str>,
    name: String,
}

/// Every language of ISO 639-1, sorted by code. A line is the code, that of ISO 639-3, the likely
/// region or `-`, and the English name.
static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    let language = |line: &'static str| {
        let mut fields = line.splitn(4, ' ');
        let mut next = || fields.next().expect("a line has four fields");
        let (code, code3, region) = (next(), next(), next());
        let likely_region = (region != "-").then_some(region);
        Language { code, code3, likely_region, name: next().to_lowercase() }
    };
    include_str!("languages/languages.txt").lines().map(language).collect()
});

/// Every region of ISO 3166-1, sorted: its two-letter and its three-letter code.
static REGIONS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let codes = include_str!("languages/regions.txt").lines();
    codes.map(|line| line.split_once(' ').expect("a line has two codes")).collect()
});

/// Checks a code.
pub(crate) fn check(text: &str, violations: &mut Vec<TextViolation>) {
    let mut report = |rule, message| {
        let hint = match suggestion(text) {
            Some(code) => format!("did you mean `{code}`?"),
            None => "write a language and a region, such as `en_US` or `pt_BR`".to_owned(),
        };
        violations.push(TextViolation::new(rule, message).hint(hint));
    };
    let Some((language, region)) = split_code(text) else {
        let message = format!("`{}` does not have the form language_REGION", truncated(text));
        return report(Rule::LanguageForm, message);
    };
    if language_of(language).is_none() {
        let message = format!("`{language}` is not an ISO 639-1 language code");
        report(Rule::LanguageUnknown, message);
    }
    if REGIONS.binary_search_by_key(&region, |it| it.0).is_err() {
        let message = format!("`{region}` is not an ISO 3166-1 region code");
        report(Rule::RegionUnknown, message);
    }
}

/// Every ISO 639-1 code, for the schema.
pub(crate) fn languages() -> Vec<&'static str> {
    LANGUAGES.iter().map(|it| it.code).collect()
}

/// Every ISO 3166-1 alpha-2 code, for the schema.
pub(crate) fn regions() -> Vec<&'static str> {
    REGIONS.iter().map(|it| it.0).collect()
}

/// The language and region of a well-formed code.
fn split_code(text: &str) -> Option<(&str, &str)> {
    let (language, region) = text.split_once('_')?;
    let is_well_formed = language.len() == 2
        && language.bytes().all(|byte| byte.is_ascii_lowercase())
        && region.len() == 2
        && region.bytes().all(|byte| byte.is_ascii_uppercase());
    is_well_formed.then_some((language, region))
}

/// The code that was probably meant: the same in the correct letter case, or with the likely region.
pub(crate) fn suggestion(text: &str) -> Option<String> {
    if text.len() > MAX_SUGGESTION_BYTES {
        return None;
    }
    let lower = text.trim().to_lowercase();
    // The English name of a language may have several words.
    if let Some(language) = find_language(&lower) {
        return Some(format!("{language}_{}", likely_region(language)?));
    }
    let mut words = lower.split(['_', '-', ' ']).filter(|word| !word.is_empty());
    let language = find_language(words.next()?)?;
    let region = words.filter_map(find_region).next_back().or_else(|| likely_region(language))?;
    Some(format!("{language}_{region}"))
}

/// The language with a two-letter code.
fn language_of(code: &str) -> Option<&'static Language> {
    let index = LANGUAGES.binary_search_by_key(&code, |it| it.code).ok()?;
    LANGUAGES.get(index)
}

/// The ISO 639-1 code of a language given by a two- or three-letter code or its English name.
pub(crate) fn find_language(word: &str) -> Option<&'static str> {
    let is_meant = |it: &&Language| it.code == word || it.code3 == word || it.name == word;
    LANGUAGES.iter().find(is_meant).map(|it| it.code)
}

/// The ISO 3166-1 alpha-2 code of a region given by a two- or three-letter code.
pub(crate) fn find_region(word: &str) -> Option<&'static str> {
    let upper = word.to_uppercase();
    REGIONS.iter().find(|it| it.0 == upper || it.1 == upper).map(|it| it.0)
}

/// The likely region of a language with a two-letter code.
pub(crate) fn likely_region(language: &str) -> Option<&'static str> {
    language_of(language)?.likely_region
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(text: &str) -> (Option<&'static str>, Option<String>) {
        let mut violations = Vec::new();
        check(text, &mut violations);
        assert!(violations.len() <= 1);
        violations
            .pop()
            .map_or((None, None), |violation| (Some(violation.rule.id()), violation.hint))
    }

    #[test]
    fn known_languages_with_known_regions_are_accepted() {
        for code in ["en_US", "pt_BR", "de_AT", "hi_IN", "zh_CN", "es_MX", "ar_EG"] {
            assert_eq!(check_one(code), (None, None), "{code}");
        }
    }

    #[test]
    fn the_intended_code_is_suggested() {
        for (text, rule, suggested) in [
            ("en", "language-form", "en_US"),
            ("en-US", "language-form", "en_US"),
            ("EN_us", "language-form", "en_US"),
            ("english", "language-form", "en_US"),
            ("English_GB", "language-form", "en_GB"),
            ("eng_USA", "language-form", "en_US"),
            ("zh_Hans_CN", "language-form", "zh_CN"),
            ("es", "language-form", "es_ES"),
            ("de_ZZ", "region-unknown", "de_DE"),
            ("en_UK", "region-unknown", "en_US"),
        ] {
            let hint = format!("did you mean `{suggested}`?");
            assert_eq!(check_one(text), (Some(rule), Some(hint)), "{text}");
        }
    }

    #[test]
    fn the_hint_for_an_unrecognisable_code_explains_the_form() {
        for (text, rule) in
            [("xx_US", "language-unknown"), ("klingon", "language-form"), ("_", "language-form")]
        {
            let (found, hint) = check_one(text);
            assert_eq!(found, Some(rule), "{text}");
            assert!(hint.unwrap().contains("such as `en_US`"), "{text}");
        }
    }
}
