//! Every rule of the `v1` rulebook: a minimal document that breaks it, a similar document that does
//! not, and the location of the violation.

use galley_domain::{
    document::Document,
    rulebook::{Category, V1},
    template::Template,
    violation::{Rule, Violation, Violations},
};
use serde_json::{Value, json};

fn read(document: &str) -> Result<Template, Violations> {
    Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1)
}

fn report(document: &str) -> Vec<String> {
    match read(document) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.listed().iter().map(line).collect(),
    }
}

fn line(violation: &Violation) -> String {
    format!("{} {}", violation.pointer, violation.rule.id())
}

/// A valid template with these components.
fn with_components(components: &Value) -> String {
    json!({"name": "n", "language": "en_US", "category": "MARKETING",
        "allow_category_change": true, "components": components})
    .to_string()
}

/// A valid template with a body and this component.
fn with_component(component: &Value) -> String {
    with_components(&json!([{"type": "BODY", "text": "b"}, component]))
}

fn buttons(buttons: &Value) -> String {
    with_component(&json!({"type": "BUTTONS", "buttons": buttons}))
}

/// A valid template in which one top-level field is replaced.
fn with_field(field: &str, value: Value) -> String {
    let mut document: Value =
        serde_json::from_str(&with_components(&json!([{"type": "BODY", "text": "b"}]))).unwrap();
    document[field] = value;
    document.to_string()
}

fn header(text: &str) -> Value {
    json!({"type": "HEADER", "format": "TEXT", "text": text})
}

fn body(text: &str, samples: &Value) -> String {
    with_components(&json!([{"type": "BODY", "text": text, "example": {"body_text": samples}}]))
}

fn media(url: &str) -> String {
    with_component(&json!({"type": "HEADER", "format": "MEDIA", "example": {"media_url": url}}))
}

/// Each rule, a document that breaks it, the violation, and a similar document that does not.
#[expect(clippy::too_many_lines, reason = "the table has a row for each rule")]
fn table() -> Vec<(Rule, String, &'static str, String)> {
    let url = |url: &str| buttons(&json!([{"type": "URL", "text": "t", "url": url}]));
    let call = |number: &str| {
        buttons(&json!([{"type": "PHONE_NUMBER", "text": "t", "phone_number": number}]))
    };
    let duplicate = r#"{"name":"a","name":"n","language":"en_US","category":"MARKETING","allow_category_change":true,"components":[{"type":"BODY","text":"b"}]}"#;
    vec![
        (
            Rule::Required,
            with_field("language", Value::Null),
            "/language required",
            with_field("language", json!("de_DE")),
        ),
        (
            Rule::WrongType,
            with_field("allow_category_change", json!("true")),
            "/allow_category_change wrong-type",
            with_field("allow_category_change", json!(false)),
        ),
        (
            Rule::DuplicateKey,
            duplicate.to_owned(),
            "/name duplicate-key",
            duplicate.replace(r#""name":"a","#, ""),
        ),
        (
            Rule::Empty,
            with_component(&json!({"type": "FOOTER", "text": " \u{a0}"})),
            "/components/1/text empty",
            with_component(&json!({"type": "FOOTER", "text": " ."})),
        ),
        (
            Rule::TooLong,
            with_field("name", json!("é".repeat(513))),
            "/name too-long",
            with_field("name", json!("é".repeat(512))),
        ),
        (
            Rule::ControlCharacter,
            with_component(&header("a\tb")),
            "/components/1/text control-character",
            body("a\tb\r\nc", &Value::Null),
        ),
        (
            Rule::TooFew,
            buttons(&json!([])),
            "/components/1/buttons too-few",
            buttons(&json!([{"type": "QUICK_REPLY", "text": "t"}])),
        ),
        (
            Rule::TooMany,
            buttons(&json!(vec![json!({"type": "QUICK_REPLY", "text": "t"}); 21])),
            "/components/1/buttons too-many",
            buttons(&json!(vec![json!({"type": "QUICK_REPLY", "text": "t"}); 20])),
        ),
        (
            Rule::NotAChoice,
            with_field("category", json!("MARKETTING")),
            "/category not-a-choice",
            with_field("category", json!("marketing")),
        ),
        (
            Rule::NameEdges,
            with_field("name", json!("n ")),
            "/name name-edges",
            with_field("name", json!("n n")),
        ),
        (
            Rule::LanguageForm,
            with_field("language", json!("en-US")),
            "/language language-form",
            with_field("language", json!("en_US")),
        ),
        (
            Rule::LanguageUnknown,
            with_field("language", json!("xx_US")),
            "/language language-unknown",
            with_field("language", json!("es_US")),
        ),
        (
            Rule::RegionUnknown,
            with_field("language", json!("en_XX")),
            "/language region-unknown",
            with_field("language", json!("en_GB")),
        ),
        (
            Rule::BodyMissing,
            with_components(&json!([{"type": "FOOTER", "text": "f"}])),
            "/components body-missing",
            with_component(&json!({"type": "FOOTER", "text": "f"})),
        ),
        (
            Rule::ComponentRepeated,
            with_component(&json!({"type": "body", "text": "b"})),
            "/components/1 component-repeated",
            with_component(&header("b")),
        ),
        (
            Rule::PlaceholderSyntax,
            body("{{name}}", &json!([["a"]])),
            "/components/0/text placeholder-syntax",
            body("{{1}}", &json!([["a"]])),
        ),
        (
            Rule::PlaceholderGap,
            body("{{1}} {{3}}", &json!([["a", "b"]])),
            "/components/0/text placeholder-gap",
            body("{{1}} {{2}}", &json!([["a", "b"]])),
        ),
        (
            Rule::PlaceholderNotAllowed,
            with_component(&json!({"type": "FOOTER", "text": "{{1}}"})),
            "/components/1/text placeholder-not-allowed",
            with_component(&header("{{1}}")),
        ),
        (
            Rule::SamplesCount,
            body("{{1}} {{1}}", &json!([["a", "b"]])),
            "/components/0/example/body_text/0 samples-count",
            body("{{1}} {{1}}", &json!([["a"]])),
        ),
        (
            Rule::UrlScheme,
            media("shop.example/a.png"),
            "/components/1/example/media_url url-scheme",
            media("http://shop.example/a.png"),
        ),
        (
            Rule::UrlHost,
            url("https:///a"),
            "/components/1/buttons/0/url url-host",
            url("https://a"),
        ),
        (
            Rule::UrlUserInfo,
            url("https://me@shop.example"),
            "/components/1/buttons/0/url url-user-info",
            url("https://shop.example/me@"),
        ),
        (
            Rule::UrlWhiteSpace,
            url("https://shop.example/a b"),
            "/components/1/buttons/0/url url-white-space",
            url("https://shop.example/a%20b"),
        ),
        (
            Rule::PhoneForm,
            call("015550001111"),
            "/components/1/buttons/0/phone_number phone-form",
            call("15550001111"),
        ),
    ]
}

#[test]
fn every_rule_rejects_a_minimal_violation_and_accepts_a_similar_document() {
    for (rule, bad, line, good) in table() {
        assert_eq!(report(&bad), [line], "{} should reject {bad}", rule.id());
        assert_eq!(report(&good), [""; 0], "{} should accept {good}", rule.id());
        assert!(line.ends_with(rule.id()));
    }
}

#[test]
fn every_rule_has_a_row_in_the_table() {
    let rows: Vec<Rule> = table().into_iter().map(|(rule, ..)| rule).collect();
    let missing: Vec<&str> =
        Rule::DOCUMENT.iter().filter(|rule| !rows.contains(rule)).map(|it| it.id()).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn all_violations_are_reported_together_and_each_has_a_hint() {
    let document = json!({
        "name": "", "language": "english", "catgory": "MARKETING", "allow_category_change": 1,
        "components": [
            {"type": "HEADER", "format": "VIDEO"},
            {"type": "BODY", "text": "Hi {{1}} and {{3}}"},
            {"type": "FOOTER"},
            {"type": "BUTTONS", "buttons": [{"type": "CALL"}, {"type": "url", "text": "Go", "url": "shop.example"}, 7]},
        ],
    });
    let violations = read(&document.to_string()).unwrap_err();
    assert_eq!(
        violations.listed().iter().map(line).collect::<Vec<_>>(),
        [
            "/name empty",
            "/language language-form",
            "/category required",
            "/allow_category_change wrong-type",
            "/components/0/format not-a-choice",
            "/components/1/text placeholder-gap",
            "/components/1/example required",
            "/components/2/text required",
            "/components/3/buttons/0/type not-a-choice",
            "/components/3/buttons/1/url url-scheme",
            "/components/3/buttons/2 wrong-type",
        ]
    );
    assert!(violations.listed().iter().all(|it| it.hint.is_some()));
    let hint = |index: usize| violations.listed()[index].hint.clone().unwrap();
    assert_eq!(hint(1), "did you mean `en_US`?");
    assert_eq!(hint(2), "found `catgory`: did you mean `category`?");
    assert_eq!(hint(9), "did you mean `https://shop.example`?");
}

#[test]
fn a_misspelt_component_type_is_not_also_reported_as_missing() {
    assert_eq!(
        report(&with_components(&json!([{"type": "BDY", "text": "b"}]))),
        ["/components/0/type not-a-choice"]
    );
}

#[test]
fn items_beyond_the_limit_of_a_list_are_not_checked() {
    let many = vec![json!({"type": "QUICK_REPLY"}); 500];
    let lines = report(&buttons(&json!(many)));
    assert_eq!(lines.len(), 21);
    assert_eq!(
        (&*lines[0], &*lines[20]),
        ("/components/1/buttons too-many", "/components/1/buttons/19/text required")
    );
    let violations = read(&with_components(&json!(vec![json!({}); 80_000]))).unwrap_err();
    assert_eq!(violations.listed().len() + violations.omitted(), 21);
    let first = &violations.listed()[0];
    assert_eq!(first.message, "has 80000 items; at most 20 are allowed");
    assert_eq!(first.hint.as_deref(), Some("remove 79980 items"));
}

#[test]
fn samples_beyond_any_limit_are_counted() {
    let samples = vec![json!("Ada"); 20_000];
    let violations = read(&body("Hi {{1}}", &json!([samples]))).unwrap_err();
    let lines: Vec<&str> = violations.listed().iter().map(|it| &*it.message).collect();
    assert_eq!(lines, ["has 20000 samples for 1 distinct placeholder"]);
}

#[test]
fn a_hundred_violations_are_listed_and_the_rest_is_counted() {
    let text = "{{x}}".repeat(150);
    let violations = read(&body(&text, &Value::Null)).unwrap_err();
    // 150 placeholders, and the missing samples.
    assert_eq!((violations.listed().len(), violations.omitted()), (100, 51));
}

#[test]
fn samples_are_required_only_with_placeholders() {
    assert_eq!(
        report(&with_components(&json!([{"type": "BODY", "text": "{{1}}"}]))),
        ["/components/0/example required"]
    );
    assert_eq!(
        report(&with_components(&json!([{"type": "BODY", "text": "{{1}}", "example": {}}]))),
        ["/components/0/example/body_text required"]
    );
    assert_eq!(
        report(&body("{{1}}", &json!([]))),
        ["/components/0/example/body_text samples-count"]
    );
    assert_eq!(
        report(&body("{{1}}", &json!([["a"], ["b"]]))),
        ["/components/0/example/body_text samples-count"]
    );
    assert_eq!(
        report(&body("{{1}}", &json!(["a"]))),
        ["/components/0/example/body_text/0 wrong-type"]
    );
    assert_eq!(
        report(&body("{{1}}", &json!([[7]]))),
        ["/components/0/example/body_text/0/0 wrong-type"]
    );
    assert_eq!(
        report(&body("{{1}}", &json!([[" "]]))),
        ["/components/0/example/body_text/0/0 empty"]
    );
}

#[test]
fn a_media_header_requires_a_url_and_no_text() {
    assert_eq!(
        report(&with_component(&json!({"type": "HEADER", "format": "MEDIA"}))),
        ["/components/1/example required"]
    );
    assert_eq!(
        report(&with_component(
            &json!({"type": "HEADER", "format": "MEDIA", "text": 7, "example": {}})
        )),
        ["/components/1/example/media_url required"]
    );
    assert_eq!(
        report(&with_component(&json!({"type": "HEADER", "text": "t"}))),
        ["/components/1/format required"]
    );
    assert_eq!(
        report(&with_component(&json!({"type": "HEADER", "format": "TEXT"}))),
        ["/components/1/text required"]
    );
}

#[test]
fn each_button_type_requires_its_own_fields() {
    for (button, missing) in [
        (json!({"type": "QUICK_REPLY"}), &["text"][..]),
        (json!({"type": "URL"}), &["text", "url"]),
        (json!({"type": "PHONE_NUMBER"}), &["text", "phone_number"]),
        (json!({"type": "COPY_CODE"}), &["example"]),
        (json!({}), &["type"]),
    ] {
        let expected: Vec<_> = missing
            .iter()
            .map(|field| format!("/components/1/buttons/0/{field} required"))
            .collect();
        assert_eq!(report(&buttons(&json!([button]))), expected);
    }
}

#[test]
fn the_stored_content_is_canonical_and_omits_unused_fields() {
    let document = json!({
        "components": [
            {"text": "Hi {{1}}", "type": "body", "format": "TEXT", "example": {"x": 1, "body_text": [["Ada"]]}},
            {"type": "header", "format": "media", "text": "not used", "example": {"media_url": "https://shop.example/a.png"}},
            {"type": "buttons", "buttons": [
                {"type": "copy_code", "text": "not used", "example": "SAVE25"},
                {"type": "url", "text": "Go", "url": "https://shop.example/{{1}}", "example": ["x"]},
                {"type": "Url", "text": "Go", "url": "https://shop.example/", "example": "not used"},
            ]},
            {"type": "FOOTER", "text": "f", "buttons": null, "example": {"body_text": 7}},
        ],
        "allow_category_change": true, "category": "Marketing", "language": "en_US", "name": "n", "extra": {},
    });
    let template = read(&document.to_string()).unwrap();
    assert_eq!((template.name(), template.language()), ("n", "en_US"));
    assert_eq!(
        (template.category(), template.allow_category_change()),
        (Category::Marketing, true)
    );
    assert_eq!(
        template.content(),
        concat!(
            r#"{"components":[{"type":"BODY","text":"Hi {{1}}","example":{"body_text":[["Ada"]]}},"#,
            r#"{"type":"HEADER","format":"MEDIA","example":{"media_url":"https://shop.example/a.png"}},"#,
            r#"{"type":"BUTTONS","buttons":[{"type":"COPY_CODE","example":"SAVE25"},"#,
            r#"{"type":"URL","text":"Go","url":"https://shop.example/{{1}}","example":["x"]},"#,
            r#"{"type":"URL","text":"Go","url":"https://shop.example/"}]},"#,
            r#"{"type":"FOOTER","text":"f"}]}"#,
        )
    );
}

#[test]
fn a_document_that_is_not_an_object_is_rejected() {
    for document in ["null", "[]", "7", "\"x\"", "true"] {
        assert_eq!(report(document), [" wrong-type"], "{document}");
    }
}

#[test]
fn a_long_key_does_not_produce_a_long_pointer() {
    let key = "k".repeat(100_000);
    let document = format!(r#"{{"{key}":{{"a":1,"a":2}}}}"#);
    let violations = read(&document).unwrap_err();
    assert!(violations.listed().iter().all(|it| it.pointer.len() <= 300));
    assert!(violations.listed().iter().any(|it| it.rule == Rule::DuplicateKey));
}
