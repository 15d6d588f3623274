//! Warnings: for each rule a minimal document that triggers it, a similar document that does not,
//! and the location of the warning.

mod properties;

use std::time::{Duration, Instant};

use galley_domain::{
    document::Document,
    rulebook::V1,
    template::{Checked, Template},
    violation::{Warning, WarningRule, Warnings},
};
use serde_json::{Value, json};

fn check(document: &str) -> Checked {
    Template::check(&Document::parse(document.as_bytes()).unwrap(), &V1)
}

fn warnings(document: &Value) -> Warnings {
    check(&document.to_string()).warnings
}

/// The warnings about the document as it is written.
fn report(document: &Value) -> Vec<String> {
    let is_own = |it: &&Warning| !it.rule.id().starts_with("whatsapp-");
    warnings(document).listed().iter().filter(is_own).map(line).collect()
}

fn line(warning: &Warning) -> String {
    let span = warning.span.map(|span| format!(" {}..{}", span.start, span.end));
    format!("{} {}{}", warning.pointer, warning.rule.id(), span.unwrap_or_default())
}

/// A valid template with these components.
fn with_components(components: &Value) -> Value {
    json!({"name": "n", "language": "en_US", "category": "MARKETING",
        "allow_category_change": true, "components": components})
}

/// A valid template with a body and this component.
fn with_component(component: &Value) -> Value {
    with_components(&json!([{"type": "BODY", "text": "b"}, component]))
}

fn button(button: &Value) -> Value {
    with_component(&json!({"type": "BUTTONS", "buttons": [button]}))
}

/// A button whose URL ends in a placeholder.
fn suffixed(url: &str) -> Value {
    button(&json!({"type": "URL", "text": "t", "url": url, "example": "x"}))
}

fn with_field(field: &str, value: &Value) -> Value {
    let mut document = with_components(&json!([{"type": "BODY", "text": "b"}]));
    document[field] = value.clone();
    document
}

fn body(text: &str) -> Value {
    let samples: Vec<&str> =
        ["{{1}}", "{{2}}"].into_iter().filter(|it| text.contains(it)).collect();
    let mut body = json!({"type": "BODY", "text": text});
    if !samples.is_empty() {
        body["example"] = json!({"body_text": [samples]});
    }
    with_components(&json!([body]))
}

fn header(text: &str) -> Value {
    with_component(&json!({"type": "HEADER", "format": "TEXT", "text": text}))
}

fn media(mut header: Value) -> Value {
    header["type"] = json!("HEADER");
    header["format"] = json!("MEDIA");
    header["example"] = json!({"media_url": "https://shop.example/a.png"});
    with_component(&header)
}

/// Each warning, a document that triggers it, its location, and a similar document that does not.
#[expect(clippy::too_many_lines, reason = "the table has a row for each rule")]
fn table() -> Vec<(WarningRule, Value, &'static str, Value)> {
    let url = |url: &str| button(&json!({"type": "URL", "text": "t", "url": url}));
    vec![
        (
            WarningRule::UnknownField,
            with_field("colour", &json!("red")),
            "/colour unknown-field",
            with_field("colour", &Value::Null),
        ),
        (
            WarningRule::UnknownField,
            with_field("schema", &json!("/schemas/v1/template.json")),
            "/schema unknown-field",
            with_field("$schema", &json!("/schemas/v1/template.json")),
        ),
        (
            WarningRule::UnknownField,
            with_components(&json!([{"type": "BODY", "text": "b", "txt": 1}])),
            "/components/0/txt unknown-field",
            with_components(&json!([{"type": "BODY", "text": "b"}])),
        ),
        (
            WarningRule::UnusedField,
            button(&json!({"type": "COPY_CODE", "text": "t", "example": "A"})),
            "/components/1/buttons/0/text unused-field",
            button(&json!({"type": "COPY_CODE", "example": "A"})),
        ),
        (
            WarningRule::UnusedField,
            media(json!({"text": "t"})),
            "/components/1/text unused-field",
            media(json!({})),
        ),
        (
            WarningRule::UnusedField,
            with_components(&json!([{"type": "BODY", "text": "b", "format": "TEXT"}])),
            "/components/0/format unused-field",
            header("h"),
        ),
        (
            WarningRule::UnusedField,
            with_components(
                &json!([{"type": "BODY", "text": "b", "example": {"body_text": [["a"]]}}]),
            ),
            "/components/0/example unused-field",
            body("b {{1}} b"),
        ),
        (
            WarningRule::InvisibleCharacter,
            body("é\u{200b}\u{200b}b"),
            "/components/0/text invisible-character 1..3",
            body("é b 👩\u{200d}🚀"),
        ),
        (
            WarningRule::InvisibleCharacter,
            with_field("name", &json!("n\u{2060}")),
            "/name invisible-character 1..2",
            with_field("name", &json!("n")),
        ),
        (
            WarningRule::BidiCharacter,
            header("a\u{202e}b"),
            "/components/1/text bidi-character 1..2",
            header("ab"),
        ),
        (
            WarningRule::BodyBeginsWithPlaceholder,
            body("{{1}}, hello"),
            "/components/0/text body-begins-with-placeholder 0..5",
            body("Hello {{1}}, hello"),
        ),
        (
            WarningRule::BodyEndsWithPlaceholder,
            body("Hello {{1}}."),
            "/components/0/text body-ends-with-placeholder 6..11",
            header("Hello {{1}}."),
        ),
        (
            WarningRule::PlaceholdersSideBySide,
            body("é {{1}} {{2}} b"),
            "/components/0/text placeholders-side-by-side 2..13",
            body("é {{1}}, {{2}} b"),
        ),
        (
            WarningRule::OverWhatsappLimit,
            header(&"é".repeat(62)),
            "/components/1/text over-whatsapp-limit 60..62",
            header(&"é".repeat(60)),
        ),
        (
            WarningRule::OpenHost,
            suffixed("https://é.b{{1}}"),
            "/components/1/buttons/0/url open-host 11..16",
            suffixed("https://é.b/{{1}}"),
        ),
        (
            WarningRule::LinkShortener,
            url("https://bit.ly/x"),
            "/components/1/buttons/0/url link-shortener 0..16",
            url("https://bit.ly.example/x"),
        ),
        (
            WarningRule::LinkShortener,
            body("é: tinyurl.com/x!"),
            "/components/0/text link-shortener 3..16",
            body("é: shop.example/x!"),
        ),
    ]
}

#[test]
fn every_warning_is_reported_for_a_minimal_document_and_not_for_a_similar_one() {
    for (rule, document, line, good) in table() {
        assert_eq!(report(&document), [line], "{} of {document}", rule.id());
        assert_eq!(report(&good), [""; 0], "{} of {good}", rule.id());
        assert!(line.contains(&format!(" {}", rule.id())));
        assert!(check(&document.to_string()).template.is_ok(), "a warning is not a violation");
    }
}

#[test]
fn every_warning_has_a_row_in_the_table() {
    let mut rows: Vec<WarningRule> = table().into_iter().map(|(rule, ..)| rule).collect();
    // `whatsapp_warnings.rs` tests these.
    rows.extend([WarningRule::WhatsappName, WarningRule::WhatsappLanguage]);
    rows.push(WarningRule::WhatsappContent);
    let missing: Vec<&str> =
        WarningRule::ALL.iter().filter(|rule| !rows.contains(rule)).map(|it| it.id()).collect();
    assert_eq!(
        missing,
        [
            "code-sample",
            "braces-unpaired",
            "many-line-breaks",
            "many-emoji",
            "placeholder-name-long",
            "placeholder-repeated",
            "private-host",
            "label-not-shown",
            "product-cards",
            "same-content"
        ],
        "the last requires another template; the others have rows in `whatsapp/warnings.rs`"
    );
}

#[test]
fn a_warning_is_serialised_like_a_violation_and_has_a_hint() {
    let document = with_field("nam", &json!(1));
    assert_eq!(
        serde_json::to_value(warnings(&document).listed()).unwrap(),
        json!([{"pointer": "/nam", "rule": "unknown-field",
            "message": "is not a field of a template: neither checked nor stored",
            "hint": "did you mean `name`?"}])
    );
    let document = with_field("nam\u{2060}e", &json!(1));
    let message = "is not a field of a template (its name contains the word joiner U+2060): neither checked nor stored";
    assert_eq!(warnings(&document).listed()[0].message, message);
    let document = body("Hello to you {{1}}.");
    assert_eq!(
        serde_json::to_value(warnings(&document).listed()).unwrap(),
        json!([{"pointer": "/components/0/text", "rule": "body-ends-with-placeholder",
            "message": "ends with a placeholder; punctuation does not count",
            "hint": "put a word after `{{1}}`, or WhatsApp rejects it",
            "span": {"start": 13, "end": 18}}])
    );
}

#[test]
fn the_hint_lists_the_known_fields_or_the_objects_that_use_the_field() {
    let hint = |document: &Value| warnings(document).listed()[0].hint.clone();
    assert_eq!(
        hint(&with_components(&json!([{"type": "BODY", "text": "b", "colour": 1}]))),
        "leave it out; the fields are `type`, `text`, `example`"
    );
    assert_eq!(
        hint(&button(&json!({"type": "COPY_CODE", "example": "A", "url": "x"}))),
        "leave it out; it belongs to a URL button"
    );
    assert_eq!(
        hint(&with_field("buttons", &json!([]))),
        "leave it out; it belongs to a BUTTONS component"
    );
    assert_eq!(
        hint(&with_field("text", &json!([]))),
        "leave it out; it belongs to a HEADER of format TEXT, a BODY component, a FOOTER component …"
    );
}

#[test]
fn warnings_are_reported_next_to_violations_and_only_if_they_are_certain() {
    for (document, lines) in [
        // The button type is unknown: any field of a button may be intended.
        (
            button(&json!({"type": "CALL", "text": 1, "url": 1, "odd": 1})),
            &["odd unknown-field"][..],
        ),
        (button(&json!({"phone_number": 1, "buttons": 1})), &["buttons unused-field"]),
        // A missing or invalid text may be intended to have placeholders.
        (button(&json!({"type": "URL", "text": "t", "example": "x"})), &[]),
        (button(&json!({"type": "URL", "text": "t", "url": "{{x}}", "example": "x"})), &[]),
        (
            button(&json!({"type": "URL", "text": "t", "url": "a", "example": "x"})),
            &["example unused-field"],
        ),
        (button(&json!({"type": "URL\u{200b}"})), &["type invisible-character 3..4"]),
    ] {
        let lines: Vec<_> =
            lines.iter().map(|line| format!("/components/1/buttons/0/{line}")).collect();
        assert_eq!(report(&document), lines, "{document}");
        assert!(check(&document.to_string()).template.is_err());
    }
    let header = json!({"type": "HEADER", "text": "t", "example": 1, "buttons": 1});
    assert_eq!(report(&with_component(&header)), ["/components/1/buttons unused-field"]);
}

#[test]
fn every_whatsapp_limit_is_reported_and_names_and_samples_are_checked() {
    let document = json!({
        "name": "n\u{200e}", "language": "en_US", "category": "UTILITY", "allow_category_change": true,
        "components": [
            {"type": "BODY", "text": format!("{} {{{{1}}}} b", "b".repeat(1_024)), "example": {"body_text": [["a\u{feff}"]]}},
            {"type": "FOOTER", "text": "f".repeat(61)},
            {"type": "BUTTONS", "buttons": [
                {"type": "QUICK_REPLY", "text": "q".repeat(26)},
                {"type": "COPY_CODE", "example": "c".repeat(21)},
            ]},
        ],
    });
    assert_eq!(
        report(&document),
        [
            "/name bidi-character 1..2",
            "/components/0/text over-whatsapp-limit 1024..1032",
            "/components/0/example/body_text/0/0 invisible-character 1..2",
            "/components/1/text over-whatsapp-limit 60..61",
            "/components/2/buttons/0/text over-whatsapp-limit 25..26",
            "/components/2/buttons/1/example over-whatsapp-limit 20..21",
        ]
    );
}

#[test]
fn a_hostile_document_is_checked_quickly_with_a_small_result() {
    let members: Vec<String> =
        (0..20_000).map(|number| format!("\"{}{number}\":0", "n".repeat(20))).collect();
    let members = format!("{{{}}}", members.join(","));
    let texts = ["\u{200b}a", "{{1}}{{1}}a ", "bit.ly/a ", "{{", "🏴\u{e0067}", "a.", "http://"];
    let texts = texts.map(|text| body(&text.repeat(300_000 / text.len())).to_string());
    for document in [members].iter().chain(&texts) {
        let start = Instant::now();
        let warnings = check(document).warnings;
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        assert!(warnings.listed().len() <= 100);
        let response = serde_json::to_string(warnings.listed()).unwrap();
        assert!(response.len() < 100_000, "{} bytes", response.len());
    }
    let many: Vec<_> = (0..150).map(|number| (format!("k{number}"), json!(0))).collect();
    let warnings = warnings(&Value::Object(many.into_iter().collect()));
    assert_eq!((warnings.listed().len(), warnings.omitted()), (100, 50));
}
