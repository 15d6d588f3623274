//! Warnings that only documents of the `whatsapp` rulebook get: for each advice the smallest document
//! that gets it, where it is told, and the nearest one that does not.

use galley_domain::{
    document::Document, rulebook::WHATSAPP, template::Template, violation::WarningRule,
};
use serde_json::{Value, json};

use super::fixture::*;

fn warned(document: &str) -> Vec<String> {
    let checked = Template::check(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP);
    assert!(checked.template.is_ok(), "{document}: {:?}", checked.template);
    checked.warnings.listed().iter().map(|it| format!("{} {}", it.pointer, it.rule.id())).collect()
}

fn bare(text: &str) -> String {
    with(&json!([{"type": "BODY", "text": text}]))
}

fn table() -> Vec<(WarningRule, String, &'static str, String)> {
    let labelled = |kind: &str, label: &str| match kind {
        "COPY_CODE" => button(&json!({"type": kind, "text": label, "example": "A"})),
        "SPM" => with(&json!([{"type": "HEADER", "format": "PRODUCT"},
            {"type": "BODY", "text": "b"},
            {"type": "BUTTONS", "buttons": [{"type": kind, "text": label}]}])),
        "MPM" => with(&json!([{"type": "HEADER", "format": "TEXT", "text": "h"},
            {"type": "BODY", "text": "b"},
            {"type": "BUTTONS", "buttons": [{"type": kind, "text": label}]}])),
        _ => button(&json!({"type": kind, "text": label})),
    };
    let products = |count: usize| {
        let card = card(&json!([{"type": "HEADER", "format": "PRODUCT"},
            {"type": "BUTTONS", "buttons": [{"type": "SPM"}]}]));
        carousel(&vec![card; count].into())
    };
    let emoji = |count: usize| bare(&format!("Hi {}", "👍🏽".repeat(count)));
    vec![
        (
            WarningRule::BracesUnpaired,
            bare("a {1}} b"),
            "/components/0/text braces-unpaired",
            bare("a {1} b"),
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
            bare("a\r\n\r\n\r\nb"),
            "/components/0/text many-line-breaks",
            bare("a\r\n\r\nb\n\nc"),
        ),
        (WarningRule::ManyEmoji, emoji(11), "/components/0/text many-emoji", emoji(10)),
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
fn every_advice_is_given_and_only_where_it_is_due() {
    for (advice, bad, line, good) in table() {
        assert_eq!(warned(&bad), [line], "{bad}");
        assert_eq!(warned(&good), [""; 0], "{good}");
        assert!(line.ends_with(advice.id()));
    }
    let links = [("https://wa.link/x", 1), ("https://faq.whatsapp.com/x", 0)];
    for (address, count) in links {
        assert_eq!(warned(&url(address)).len(), count, "{address}");
    }
}

#[test]
fn a_kind_of_object_that_stands_in_several_places_is_named_once() {
    let mut document = authentication(&json!([{"type": "OTP", "otp_type": "COPY_CODE"}]));
    document["package_name"] = json!("com.shop");
    let text = document.to_string();
    let checked = Template::check(&Document::parse(text.as_bytes()).unwrap(), &WHATSAPP);
    let hint = &checked.warnings.listed()[0].hint;
    assert_eq!(hint.matches("an app").count(), 1, "{hint}");
}

#[test]
fn a_feature_that_nobody_knows_is_told_in_either_form() {
    let feature = json!({"enroll_status": "OPT_IN"});
    for (features, line) in [
        (json!({"image_sparkle": feature}), "/image_sparkle"),
        (json!([{"key": "image_sparkle", "value": feature}]), "/0/key"),
    ] {
        let document = top("degrees_of_freedom_spec", json!({"creative_features_spec": features}));
        let line = format!("/degrees_of_freedom_spec/creative_features_spec{line} unknown-field");
        assert_eq!(warned(&document), [line]);
    }
    let none: Value = json!({"creative_features_spec": []});
    assert_eq!(warned(&top("degrees_of_freedom_spec", none)), [""; 0]);
}
