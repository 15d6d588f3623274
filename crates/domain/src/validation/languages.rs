//! Language codes: `en_US`, and what was probably meant when it is something else.

pub(crate) mod whatsapp;

use isolang::Language;
use unic_langid::LanguageIdentifier;

use crate::violation::{Rule, TextViolation, shortened};

/// Checks a code; nothing but its faults is of interest.
pub(crate) fn check(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    let fault = match parts(text) {
        None => TextViolation::new(
            Rule::LanguageForm,
            format!("`{}` is not of the form language_REGION", shortened(text)),
        ),
        Some((language, _)) if Language::from_639_1(language).is_none() => TextViolation::new(
            Rule::LanguageUnknown,
            format!("`{language}` is not an ISO 639-1 language code"),
        ),
        Some((_, region)) if rust_iso3166::from_alpha2(region).is_none() => TextViolation::new(
            Rule::RegionUnknown,
            format!("`{region}` is not an ISO 3166-1 region code"),
        ),
        Some(_) => return None,
    };
    faults.push(match suggestion(text) {
        Some(code) => fault.hint(format!("did you mean `{code}`?")),
        None => fault.hint("write a language and a region, such as `en_US` or `pt_BR`"),
    });
    None
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

/// The two parts of a code of the right form.
fn parts(text: &str) -> Option<(&str, &str)> {
    let (language, region) = text.split_once('_')?;
    let formed = language.len() == 2
        && language.bytes().all(|byte| byte.is_ascii_lowercase())
        && region.len() == 2
        && region.bytes().all(|byte| byte.is_ascii_uppercase());
    formed.then_some((language, region))
}

/// The code that was probably meant: the same in the right letters, or with the usual region.
pub(crate) fn suggestion(text: &str) -> Option<String> {
    if text.len() > 60 {
        return None;
    }
    let lower = text.trim().to_lowercase();
    // The name of a language may be several words, and is then all there is.
    if let Some(language) = named_language(&lower) {
        return Some(format!("{language}_{}", usual_region(language)?));
    }
    let mut words = lower.split(['_', '-', ' ']).filter(|word| !word.is_empty());
    let language = named_language(words.next()?)?;
    let region = words.filter_map(region).next_back().or_else(|| usual_region(language))?;
    Some(format!("{language}_{region}"))
}

/// A language by its two- or three-letter code, or by its English name.
pub(crate) fn named_language(word: &str) -> Option<&'static str> {
    let language = Language::from_639_1(word)
        .or_else(|| Language::from_639_3(word))
        .or_else(|| Language::from_name_lowercase(word))?;
    language.to_639_1()
}

pub(crate) fn region(word: &str) -> Option<String> {
    let upper = word.to_uppercase();
    let country =
        rust_iso3166::from_alpha2(&upper).or_else(|| rust_iso3166::from_alpha3(&upper))?;
    Some(country.alpha2.to_owned())
}

/// Where most people who write a language live.
pub(crate) fn usual_region(language: &str) -> Option<String> {
    let mut identifier: LanguageIdentifier = language.parse().ok()?;
    identifier.maximize();
    region(identifier.region?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> (Option<&'static str>, Option<String>) {
        let mut faults = Vec::new();
        check(text, &mut faults);
        assert!(faults.len() <= 1);
        faults.pop().map_or((None, None), |fault| (Some(fault.rule.id()), fault.hint))
    }

    #[test]
    fn known_languages_with_known_regions_are_taken() {
        for code in ["en_US", "pt_BR", "de_AT", "hi_IN", "zh_CN", "es_MX", "ar_EG"] {
            assert_eq!(verdict(code), (None, None), "{code}");
        }
    }

    #[test]
    fn what_was_meant_is_suggested() {
        for (text, rule, meant) in [
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
            let hint = format!("did you mean `{meant}`?");
            assert_eq!(verdict(text), (Some(rule), Some(hint)), "{text}");
        }
    }

    #[test]
    fn nonsense_gets_the_form_explained() {
        for (text, rule) in
            [("xx_US", "language-unknown"), ("klingon", "language-form"), ("_", "language-form")]
        {
            let (found, hint) = verdict(text);
            assert_eq!(found, Some(rule), "{text}");
            assert!(hint.unwrap().contains("such as `en_US`"), "{text}");
        }
    }
}
