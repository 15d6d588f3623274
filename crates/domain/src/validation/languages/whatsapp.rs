//! The languages that WhatsApp supports. Unlike under the `v1` rulebook, some codes have no region
//! and some have three letters.

use crate::{
    validation::languages,
    violation::{Rule, TextViolation, truncated},
};

/// Every code, in alphabetical order.
pub(crate) const CODES: &[&str] = &[
    "af", "ar", "ar_AE", "ar_EG", "ar_LB", "ar_MA", "ar_QA", "ar_SA", "az", "be_BY", "bg", "bn",
    "bn_IN", "ca", "cs", "da", "de", "de_AT", "de_CH", "el", "en", "en_AE", "en_AU", "en_CA",
    "en_GB", "en_GH", "en_IE", "en_IN", "en_JM", "en_MY", "en_NZ", "en_QA", "en_SG", "en_UG",
    "en_US", "en_ZA", "es", "es_AR", "es_CL", "es_CO", "es_CR", "es_DO", "es_EC", "es_ES", "es_HN",
    "es_MX", "es_PA", "es_PE", "es_UY", "es_VE", "et", "fa", "fi", "fil", "fr", "fr_BE", "fr_CA",
    "fr_CH", "fr_CI", "fr_MA", "ga", "gu", "ha", "he", "hi", "hr", "hu", "id", "it", "ja", "ka",
    "kk", "kn", "ko", "ky_KG", "lo", "lt", "lv", "mk", "ml", "mr", "ms", "nb", "nl", "nl_BE", "pa",
    "pl", "prs_AF", "ps_AF", "pt_BR", "pt_PT", "ro", "ru", "rw_RW", "si_LK", "sk", "sl", "sq",
    "sr", "sv", "sw", "ta", "te", "th", "tr", "uk", "ur", "uz", "vi", "zh_CN", "zh_HK", "zh_TW",
    "zu",
];

/// Checks a code.
pub(crate) fn check(text: &str, violations: &mut Vec<TextViolation>) {
    if CODES.binary_search(&text).is_ok() {
        return;
    }
    let message = format!("`{}` is not a language that WhatsApp supports", truncated(text));
    let violation = TextViolation::new(Rule::LanguageUnsupported, message);
    violations.push(match suggestion(text) {
        Some(code) => violation.hint(format!("did you mean `{code}`?")),
        None => violation.hint("write one of WhatsApp's codes, such as `en_US`, `de` or `pt_BR`"),
    });
}

/// The code that was probably meant: the same in another letter case, the language without its
/// region or with its likely region, or any code of the language. WhatsApp has Tagalog as Filipino,
/// Norwegian as Bokmål, and of Portuguese only that of Brazil and that of Portugal, which the other
/// countries write.
pub(crate) fn suggestion(text: &str) -> Option<&'static str> {
    if text.len() > languages::MAX_SUGGESTION_BYTES {
        return None;
    }
    let folded = text.trim().to_lowercase().replace(['-', ' '], "_");
    let mut words = folded.split('_').filter(|word| !word.is_empty());
    let first = words.next()?;
    let language = match languages::find_language(first).unwrap_or(first) {
        "tl" => "fil",
        "no" => "nb",
        language => language,
    };
    let region = words.filter_map(languages::find_region).next_back();
    let known = |code: String| CODES.iter().find(|it| it.eq_ignore_ascii_case(&code)).copied();
    let in_region = |region: &str| known(format!("{language}_{region}"));
    known(folded.clone())
        .or_else(|| region.and_then(in_region))
        .or_else(|| known(language.to_owned()))
        .or_else(|| (language == "pt" && region.is_some()).then_some("pt_PT"))
        .or_else(|| languages::likely_region(language).and_then(in_region))
        .or_else(|| {
            let has_language = |code: &&&str| code.split('_').next() == Some(language);
            CODES.iter().find(has_language).copied()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(text: &str) -> Option<String> {
        let mut violations = Vec::new();
        check(text, &mut violations);
        violations.pop().and_then(|violation| violation.hint)
    }

    #[test]
    fn the_list_is_sorted_and_every_code_is_accepted() {
        assert!(CODES.is_sorted() && CODES.len() == 113);
        for code in CODES {
            assert_eq!(hint(code), None, "{code}");
        }
    }

    /// The likely region of each code without a region, except `fil`: `v1` has no code for it.
    const LIKELY: &[&str] = &[
        "af_ZA", "ar_EG", "az_AZ", "bg_BG", "bn_BD", "ca_ES", "cs_CZ", "da_DK", "de_DE", "el_GR",
        "en_US", "es_ES", "et_EE", "fa_IR", "fi_FI", "fr_FR", "ga_IE", "gu_IN", "ha_NG", "he_IL",
        "hi_IN", "hr_HR", "hu_HU", "id_ID", "it_IT", "ja_JP", "ka_GE", "kk_KZ", "kn_IN", "ko_KR",
        "lo_LA", "lt_LT", "lv_LV", "mk_MK", "ml_IN", "mr_IN", "ms_MY", "nb_NO", "nl_NL", "pa_IN",
        "pl_PL", "ro_RO", "ru_RU", "sk_SK", "sl_SI", "sq_AL", "sr_RS", "sv_SE", "sw_TZ", "ta_IN",
        "te_IN", "th_TH", "tr_TR", "uk_UA", "ur_PK", "uz_UZ", "vi_VN", "zu_ZA",
    ];

    #[test]
    fn a_language_gets_its_likely_region_and_not_the_region_with_the_same_code() {
        let bare = CODES.iter().filter(|code| !code.contains('_') && **code != "fil");
        assert_eq!(bare.clone().count(), LIKELY.len());
        for (code, likely) in bare.zip(LIKELY) {
            assert_eq!(languages::suggestion(code).as_deref(), Some(*likely));
            assert_eq!(languages::suggestion(&code.to_uppercase()).as_deref(), Some(*likely));
        }
    }

    #[test]
    fn the_intended_code_is_suggested() {
        for (text, suggested) in [
            ("en-US", "en_US"),
            ("EN_us", "en_US"),
            ("EN", "en"),
            ("english", "en"),
            ("pt", "pt_BR"),
            ("pt-pt", "pt_PT"),
            ("zh", "zh_CN"),
            ("zh_Hans_CN", "zh_CN"),
            ("de_DE", "de"),
            ("hi_IN", "hi"),
            ("es_US", "es"),
            ("si", "si_LK"),
            ("FIL", "fil"),
            ("rw", "rw_RW"),
            ("tl_PH", "fil"),
            ("tagalog", "fil"),
            ("no_NO", "nb"),
            ("nb_NO", "nb"),
            ("pt_AO", "pt_PT"),
            ("pt_MZ", "pt_PT"),
            ("pt-br", "pt_BR"),
        ] {
            assert_eq!(hint(text), Some(format!("did you mean `{suggested}`?")), "{text}");
        }
        assert!(hint("klingon").is_some_and(|hint| hint.contains("such as")));
        assert!(hint("").is_some() && hint(&"e".repeat(100)).is_some());
    }
}
