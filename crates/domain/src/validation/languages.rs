//! Language codes such as `en_US`, and suggestions for invalid ones.

pub(crate) mod whatsapp;

use isolang::Language;
use unic_langid::LanguageIdentifier;

use crate::violation::{Rule, TextViolation, truncated};

/// Longest input to suggest a code for, in bytes.
pub(crate) const MAX_SUGGESTION_BYTES: usize = 60;

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
    if Language::from_639_1(language).is_none() {
        let message = format!("`{language}` is not an ISO 639-1 language code");
        report(Rule::LanguageUnknown, message);
    }
    if rust_iso3166::from_alpha2(region).is_none() {
        let message = format!("`{region}` is not an ISO 3166-1 region code");
        report(Rule::RegionUnknown, message);
    }
}

/// Every ISO 639-1 code, for the schema.
pub(crate) fn languages() -> Vec<&'static str> {
    let mut codes: Vec<_> = isolang::languages().filter_map(|it| it.to_639_1()).collect();
    codes.sort_unstable();
    codes
}

/// Every ISO 3166-1 alpha-2 code, for the schema.
pub(crate) fn regions() -> Vec<&'static str> {
    let mut codes: Vec<_> = rust_iso3166::ALL.iter().map(|it| it.alpha2).collect();
    codes.sort_unstable();
    codes
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

/// The ISO 639-1 code of a language given by a two- or three-letter code or its English name.
pub(crate) fn find_language(word: &str) -> Option<&'static str> {
    let language = Language::from_639_1(word)
        .or_else(|| Language::from_639_3(word))
        .or_else(|| Language::from_name_lowercase(word))?;
    language.to_639_1()
}

/// The ISO 3166-1 alpha-2 code of a region given by a two- or three-letter code.
pub(crate) fn find_region(word: &str) -> Option<String> {
    let upper = word.to_uppercase();
    let country =
        rust_iso3166::from_alpha2(&upper).or_else(|| rust_iso3166::from_alpha3(&upper))?;
    Some(country.alpha2.to_owned())
}

/// The likely region of a language, according to CLDR.
pub(crate) fn likely_region(language: &str) -> Option<String> {
    let mut identifier: LanguageIdentifier = language.parse().ok()?;
    identifier.maximize();
    find_region(identifier.region?.as_str())
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
