//! Warnings of the `whatsapp` rulebook: for each one, a minimal document that causes it, its pointer,
//! and a similar document without it.

use galley_domain::{
    document::Document, rulebook::WHATSAPP, template::Template, violation::WarningRule,
};
use serde_json::{Value, json};

use super::fixture::*;

fn warnings_of(document: &str) -> Vec<String> {
    let checked = Template::check(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP);
    assert!(checked.template.is_ok(), "{document}: {:?}", checked.template);
    checked.warnings.listed().iter().map(|it| format!("{} {}", it.pointer, it.rule.id())).collect()
}

fn with_body(text: &str) -> String {
    with_components(&json!([{"type": "BODY", "text": text}]))
}

/// A warning, a document that causes it, its pointer and id, and a similar document without it.
type Row = (WarningRule, String, &'static str, String);

fn table() -> Vec<Row> {
    [texts(), placeholders(), buttons_and_cards()].into_iter().flatten().collect()
}

fn texts() -> Vec<Row> {
    let emoji = |count: usize| with_body(&format!("Hi {}", "👍🏽".repeat(count)));
    let in_utility = |document: String| document.replace("MARKETING", "UTILITY");
    vec![
        (
            WarningRule::BracesUnpaired,
            with_body("a {1}} b"),
            "/components/0/text braces-unpaired",
            with_body("a {1} b"),
        ),
        (
            WarningRule::BracesUnpaired,
            header("a }} b"),
            "/components/1/text braces-unpaired",
            header("a } } b"),
        ),
        (
            WarningRule::BracesUnpaired,
            body("one {{1}} }} two three", &json!("x")),
            "/components/0/text braces-unpaired",
            body("one {{1}} two three", &json!("x")),
        ),
        (
            WarningRule::ManyLineBreaks,
            with_body("a\r\n\r\n\r\nb"),
            "/components/0/text many-line-breaks",
            with_body("a\r\n\r\nb\n\nc"),
        ),
        (WarningRule::ManyEmoji, emoji(11), "/components/0/text many-emoji", emoji(10)),
        (
            WarningRule::ManyEmoji,
            in_utility(emoji(7)),
            "/components/0/text many-emoji",
            in_utility(emoji(6)),
        ),
    ]
}

fn placeholders() -> Vec<Row> {
    let long_name = |length: usize| {
        let name = "n".repeat(length);
        let samples = json!([{"param_name": name, "example": "x"}]);
        named(&format!("one {{{{{name}}}}} two three"), &samples)
    };
    let two_names = |other: &str| {
        let text = format!("one {{{{name}}}} two three {{{{{other}}}}} four five");
        let mut samples = vec![json!({"param_name": "name", "example": "x"})];
        if other != "name" {
            samples.push(json!({"param_name": other, "example": "y"}));
        }
        named(&text, &samples.into())
    };
    vec![
        (
            WarningRule::PlaceholderNameLong,
            long_name(33),
            "/components/0/text placeholder-name-long",
            long_name(32),
        ),
        (
            WarningRule::PlaceholderRepeated,
            two_names("name"),
            "/components/0/text placeholder-repeated",
            two_names("other"),
        ),
        (
            WarningRule::PlaceholdersSideBySide,
            body("one two {{1}} {{2}} three four five", &json!([["a", "b"]])),
            "/components/0/text placeholders-side-by-side",
            body("one two {{1}} and {{2}} three four five", &json!([["a", "b"]])),
        ),
    ]
}

fn buttons_and_cards() -> Vec<Row> {
    let labelled = |kind: &str, label: &str| match kind {
        "COPY_CODE" => button(&json!({"type": kind, "text": label, "example": "A"})),
        "SPM" => with_components(&json!([{"type": "HEADER", "format": "PRODUCT"},
            {"type": "BODY", "text": "b"},
            {"type": "BUTTONS", "buttons": [{"type": kind, "text": label}]}])),
        "MPM" => with_components(&json!([{"type": "HEADER", "format": "TEXT", "text": "h"},
            {"type": "BODY", "text": "b"},
            {"type": "BUTTONS", "buttons": [{"type": kind, "text": label}]}])),
        _ => button(&json!({"type": kind, "text": label})),
    };
    let products = |count: usize| {
        let card = card(&json!([{"type": "HEADER", "format": "PRODUCT"},
            {"type": "BUTTONS", "buttons": [{"type": "SPM"}]}]));
        carousel(&vec![card; count].into())
    };
    vec![
        (
            WarningRule::PrivateHost,
            url("https://intranet/cart"),
            "/components/1/buttons/0/url private-host",
            url("https://intranet.example/cart"),
        ),
        (
            WarningRule::LabelNotShown,
            labelled("COPY_CODE", "Grab it"),
            "/components/1/buttons/0/text label-not-shown",
            labelled("COPY_CODE", "Copy Offer Code"),
        ),
        (
            WarningRule::LabelNotShown,
            labelled("CATALOG", "See"),
            "/components/1/buttons/0/text label-not-shown",
            labelled("CATALOG", "View catalog"),
        ),
        (
            WarningRule::LabelNotShown,
            labelled("MPM", "See"),
            "/components/2/buttons/0/text label-not-shown",
            labelled("MPM", "View items"),
        ),
        (
            WarningRule::LabelNotShown,
            labelled("SPM", "See"),
            "/components/2/buttons/0/text label-not-shown",
            labelled("SPM", "View"),
        ),
        (
            WarningRule::CodeSample,
            button(&json!({"type": "COPY_CODE", "example": "SAVE-25"})),
            "/components/1/buttons/0/example code-sample",
            button(&json!({"type": "COPY_CODE", "example": "SAVE25"})),
        ),
        (
            WarningRule::OpenHost,
            button(
                &json!({"type": "URL", "text": "t", "url": "https://a.b{{1}}", "example": ["x"]}),
            ),
            "/components/1/buttons/0/url open-host",
            button(
                &json!({"type": "URL", "text": "t", "url": "https://a.b?{{1}}", "example": ["x"]}),
            ),
        ),
        (WarningRule::ProductCards, products(3), "/components/1/cards product-cards", products(2)),
    ]
}

#[test]
fn every_warning_is_reported_only_where_it_applies() {
    for (rule, bad, line, good) in table() {
        assert_eq!(warnings_of(&bad), [line], "{bad}");
        assert_eq!(warnings_of(&good), [""; 0], "{good}");
        assert!(line.ends_with(rule.id()));
    }
    let links = [("https://wa.link/x", 1), ("https://faq.whatsapp.com/x", 0)];
    for (link, count) in links {
        assert_eq!(warnings_of(&url(link)).len(), count, "{link}");
    }
}

#[test]
fn a_button_to_a_private_address_is_a_warning() {
    let private = "/components/1/buttons/0/url private-host";
    for host in [
        "10.0.0.1",
        "172.16.0.1:8080",
        "192.168.1.20",
        "169.254.1.1",
        "0.0.0.0",
        "[fd00::1]:443",
        "[fe80::1]",
        "shop",
        "shop:8080",
        "100.64.0.1",
        "100.127.255.254",
        "printer.local",
        "Printer.LOCAL.:8080",
        "10.1",
        "0xa.1",
        "3232235777",
    ] {
        assert_eq!(warnings_of(&url(&format!("http://{host}/cart"))), [private], "{host}");
    }
    for host in [
        "172.32.0.1",
        "8.8.8.8",
        "8.8",
        "134744072",
        "[2001:4860:4860::8888]",
        "shop.example.",
        "a.b:8080",
        "100.63.0.1",
        "100.128.0.1",
        "local.example",
        "10.1.example",
    ] {
        assert_eq!(warnings_of(&url(&format!("http://{host}/cart"))), [""; 0], "{host}");
    }
    // What is a violation is not a warning as well.
    for invalid in [
        "http://localhost/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://017700000001/",
        "shop",
        "tel:1",
        "https:///",
        "mailto:me",
    ] {
        let document = url(invalid);
        let checked = Template::check(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP);
        assert_eq!((checked.template.is_err(), checked.warnings.listed()), (true, &[][..]));
    }
    let document = url("https://wa.me{{1}}");
    let checked = Template::check(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP);
    let rules: Vec<&str> = checked.warnings.listed().iter().map(|it| it.rule.id()).collect();
    assert_eq!((checked.template.is_err(), rules), (true, vec!["open-host"]));
}

#[test]
fn numbered_placeholders_may_be_repeated_without_a_warning() {
    let text = "one {{1}} two three {{1}} four five six";
    assert_eq!(warnings_of(&body(text, &json!([["x"]]))), [""; 0]);
}

#[test]
fn a_hint_names_an_object_type_once_even_if_several_fields_use_it() {
    let mut document = authentication(&json!([{"type": "OTP", "otp_type": "COPY_CODE"}]));
    document["package_name"] = json!("com.shop");
    let text = document.to_string();
    let checked = Template::check(&Document::parse(text.as_bytes()).unwrap(), &WHATSAPP);
    let hint = &checked.warnings.listed()[0].hint;
    assert_eq!(hint.matches("an app").count(), 1, "{hint}");
}

#[test]
fn an_unknown_feature_is_a_warning_in_an_object_and_in_a_list() {
    let feature = json!({"enroll_status": "OPT_IN"});
    for (features, line) in [
        (json!({"image_sparkle": feature}), "/image_sparkle"),
        (json!([{"key": "image_sparkle", "value": feature}]), "/0/key"),
    ] {
        let document =
            with_field("degrees_of_freedom_spec", json!({"creative_features_spec": features}));
        let line = format!("/degrees_of_freedom_spec/creative_features_spec{line} unknown-field");
        assert_eq!(warnings_of(&document), [line]);
    }
    let none: Value = json!({"creative_features_spec": []});
    assert_eq!(warnings_of(&with_field("degrees_of_freedom_spec", none)), [""; 0]);
}
