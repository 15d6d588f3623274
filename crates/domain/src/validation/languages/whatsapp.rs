//! The languages that WhatsApp takes. Unlike elsewhere, some stand without a region and some have
//! three letters.

use crate::{
    validation::languages,
    violation::{Rule, TextViolation, shortened},
};

/// Every code, in the order of the alphabet.
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

/// Checks a code; nothing but its faults is of interest.
pub(crate) fn check(text: &str, faults: &mut Vec<TextViolation>) {
    if CODES.binary_search(&text).is_ok() {
        return;
    }
    let message = format!("`{}` is no language that WhatsApp takes", shortened(text));
    let fault = TextViolation::new(Rule::LanguageUnsupported, message);
    faults.push(match meant(text) {
        Some(code) => fault.hint(format!("did you mean `{code}`?")),
        None => fault.hint("write one of WhatsApp's codes, such as `en_US`, `de` or `pt_BR`"),
    });
}

/// The code that was probably meant: the same in other letters, the same language without its
/// region or with its usual one, or any of the language.
pub(crate) fn meant(text: &str) -> Option<&'static str> {
    if text.len() > 60 {
        return None;
    }
    let written = text.trim().to_lowercase().replace(['-', ' '], "_");
    let mut words = written.split('_').filter(|word| !word.is_empty());
    let first = words.next()?;
    let spoken = languages::named_language(first).unwrap_or(first);
    let known = |code: String| CODES.iter().find(|it| it.eq_ignore_ascii_case(&code)).copied();
    let in_region = |region: String| known(format!("{spoken}_{region}"));
    known(written.clone())
        .or_else(|| words.filter_map(languages::region).next_back().and_then(in_region))
        .or_else(|| known(spoken.to_owned()))
        .or_else(|| languages::usual_region(spoken).and_then(in_region))
        .or_else(|| {
            let of_it = |code: &&&str| code.split('_').next() == Some(spoken);
            CODES.iter().find(of_it).copied()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(text: &str) -> Option<String> {
        let mut faults = Vec::new();
        check(text, &mut faults);
        faults.pop().and_then(|fault| fault.hint)
    }

    #[test]
    fn the_list_is_in_order_and_every_code_is_taken() {
        assert!(CODES.is_sorted() && CODES.len() == 113);
        for code in CODES {
            assert_eq!(hint(code), None, "{code}");
        }
    }

    /// Where each language is mostly written whose code stands without a region. `v1` has none for `fil`.
    const USUAL: &[&str] = &[
        "af_ZA", "ar_EG", "az_AZ", "bg_BG", "bn_BD", "ca_ES", "cs_CZ", "da_DK", "de_DE", "el_GR",
        "en_US", "es_ES", "et_EE", "fa_IR", "fi_FI", "fr_FR", "ga_IE", "gu_IN", "ha_NG", "he_IL",
        "hi_IN", "hr_HR", "hu_HU", "id_ID", "it_IT", "ja_JP", "ka_GE", "kk_KZ", "kn_IN", "ko_KR",
        "lo_LA", "lt_LT", "lv_LV", "mk_MK", "ml_IN", "mr_IN", "ms_MY", "nb_NO", "nl_NL", "pa_IN",
        "pl_PL", "ro_RO", "ru_RU", "sk_SK", "sl_SI", "sq_AL", "sr_RS", "sv_SE", "sw_TZ", "ta_IN",
        "te_IN", "th_TH", "tr_TR", "uk_UA", "ur_PK", "uz_UZ", "vi_VN", "zu_ZA",
    ];

    #[test]
    fn a_language_by_itself_gets_its_usual_region_and_never_one_that_is_spelt_like_it() {
        let bare = CODES.iter().filter(|code| !code.contains('_') && **code != "fil");
        assert_eq!(bare.clone().count(), USUAL.len());
        for (code, usual) in bare.zip(USUAL) {
            assert_eq!(languages::suggestion(code).as_deref(), Some(*usual));
            assert_eq!(languages::suggestion(&code.to_uppercase()).as_deref(), Some(*usual));
        }
    }

    #[test]
    fn what_was_meant_is_suggested() {
        for (text, meant) in [
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
        ] {
            assert_eq!(hint(text), Some(format!("did you mean `{meant}`?")), "{text}");
        }
        assert!(hint("klingon").is_some_and(|hint| hint.contains("such as")));
        assert!(hint("").is_some() && hint(&"e".repeat(100)).is_some());
    }
}
