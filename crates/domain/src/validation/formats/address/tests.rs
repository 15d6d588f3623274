//! Tests of addresses.

use super::*;
use crate::{
    rulebook::{StringFormat, StringRule},
    validation::formats::check,
};

fn rules(form: StringFormat, text: &str) -> Vec<&'static str> {
    let mut violations = Vec::new();
    let rule = StringRule { max: 60, whatsapp_max: None, multiline: false, format: form };
    check(&rule, text, &mut violations);
    violations.iter().map(|violation| violation.rule.id()).collect()
}

#[test]
fn urls_have_an_http_scheme_and_a_host() {
    for valid in [
        "http://a.b",
        "https://a",
        "https://a.b:8080/x?y=z#w",
        "https://bücher.example/ü",
        "https://[::1]/x",
        "https://192.0.2.1",
        "http://a.b/@me",
        "https://a.b/x{y}",
    ] {
        assert_eq!(rules(StringFormat::Url, valid), [""; 0], "{valid}");
    }
    for (invalid, rule) in [
        ("ftp://a.b", "url-scheme"),
        ("HTTPS://a.b", "url-scheme"),
        ("a.b/c", "url-scheme"),
        ("javascript:alert(1)", "url-scheme"),
        ("https://", "url-host"),
        ("https:///x", "url-host"),
        ("https://?x", "url-host"),
        ("https://:80", "url-host"),
        ("https://a:99999", "url-host"),
        ("https://..", "url-host"),
        ("https://a:+80", "url-host"),
        ("https://u:p@a.b/", "url-user-info"),
        ("https://a.b/ c", "url-white-space"),
        ("https://a.b/\u{a0}", "url-white-space"),
        ("https://a.b/{{1}}", "placeholder-not-allowed"),
    ] {
        assert_eq!(rules(StringFormat::Url, invalid), [rule], "{invalid}");
    }
}

#[test]
fn a_button_url_may_contain_one_placeholder_at_its_end() {
    let mut none = Vec::new();
    let form = StringFormat::UrlWithSuffix;
    let rule = StringRule { max: 60, whatsapp_max: None, multiline: false, format: form };
    assert_eq!(check(&rule, "https://a.b/{{1}}", &mut none), PlaceholderCount::Exact(1));
    assert_eq!(check(&rule, "https://a.b/", &mut none), PlaceholderCount::NONE);
    assert!(none.is_empty(), "{none:?}");
    for (invalid, expected) in [
        ("https://a.b/{{1}}/c", &["placeholder-not-allowed"][..]),
        ("https://a.b/{{2}}", &["placeholder-not-allowed"]),
        ("https://a.b/{{1}}{{1}}", &["placeholder-not-allowed"]),
        ("https://{{1}}", &["url-host"]),
    ] {
        assert_eq!(rules(StringFormat::UrlWithSuffix, invalid), expected, "{invalid}");
    }
}

#[test]
fn phone_numbers_have_7_to_15_digits() {
    for valid in ["+15550001111", "15550001111", "1234567", "+123456789012345"] {
        assert_eq!(rules(StringFormat::Phone, valid), [""; 0], "{valid}");
    }
    for invalid in
        ["+1 555 000 1111", "0123456789", "123456", "1234567890123456", "++1555000111", "abc", "+"]
    {
        assert_eq!(rules(StringFormat::Phone, invalid), ["phone-form"], "{invalid}");
    }
}

#[test]
fn whatsapp_phone_numbers_may_contain_separators() {
    for valid in [
        "+15550001111",
        "12345",
        "+55-0-955-585-95436",
        "+1 (555) 000.1111",
        "0800 123456",
        "12345678901234567890",
    ] {
        assert_eq!(rules(StringFormat::DialledPhone, valid), [""; 0], "{valid}");
    }
    for invalid in
        ["1234", "+1-2-3-4", "123456789012345678901", "1+23456", "++123456", "12345a", "+"]
    {
        assert_eq!(rules(StringFormat::DialledPhone, invalid), ["phone-form"], "{invalid}");
    }
}

#[test]
fn an_invalid_button_url_is_reported_with_a_hint() {
    let report = |format: ParameterFormat, text: &str| {
        let mut violations = Vec::new();
        check_link(text, format, &mut violations);
        let [TextViolation { rule, hint: Some(hint), .. }] = &violations[..] else {
            panic!("{violations:?}")
        };
        (rule.id(), hint.clone())
    };
    let named = ParameterFormat::Named;
    for (format, text, rule, hint) in [
        (ParameterFormat::Positional, "{{1}}", "url-scheme", "begin with a fixed URL"),
        (
            ParameterFormat::Positional,
            "tel:+15550001111",
            "url-scheme",
            "use a PHONE_NUMBER button",
        ),
        (ParameterFormat::Positional, "mailto:me@a.b", "url-scheme", "only http and https"),
        (ParameterFormat::Positional, "ftp://a.b", "url-scheme", "only http and https"),
        (ParameterFormat::Positional, "a.b/c", "url-scheme", "did you mean `https://a.b/c`?"),
        (
            ParameterFormat::Positional,
            "https://a.b/{{2}}",
            "placeholder-not-allowed",
            "write `{{1}}`: each URL is numbered separately",
        ),
        (
            ParameterFormat::Positional,
            "https://a.b/{{ 1 }}",
            "placeholder-not-allowed",
            "write `{{1}}`",
        ),
        (named, "https://a.b/{{Code}}", "placeholder-not-allowed", "did you mean `{{code}}`?"),
        (
            ParameterFormat::Positional,
            "https://a.b/{{code}}",
            "placeholder-not-allowed",
            "write `{{1}}`, or add",
        ),
        (
            ParameterFormat::Positional,
            "https://a.b/{{1}}/x",
            "placeholder-not-allowed",
            "move it to the very end",
        ),
        (
            ParameterFormat::Positional,
            "https://a.b/{{1}}{{1}}",
            "placeholder-not-allowed",
            "keep only the last one",
        ),
    ] {
        let (found_rule, found_hint) = report(format, text);
        assert_eq!(found_rule, rule, "{text}");
        assert!(found_hint.starts_with(hint), "{text}: {found_hint}");
    }
    let mut none = Vec::new();
    assert_eq!(
        check_link("HTTPS://a.b/{{1}}", ParameterFormat::Positional, &mut none),
        PlaceholderCount::Exact(1)
    );
    assert!(none.is_empty(), "{none:?}");
}
