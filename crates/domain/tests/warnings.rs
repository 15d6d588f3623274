//! Warnings: for each advice the smallest document that gets it, the nearest one that does not,
//! and where it is told. Also that asking for warnings changes nothing else.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::{Duration, Instant};

use galley_domain::{
    document::Document,
    rulebook::V1,
    template::{Checked, Template},
    violation::{Warning, WarningRule, Warnings},
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn check(document: &str) -> Checked {
    Template::check(&Document::parse(document.as_bytes()).unwrap(), &V1)
}

fn warnings(document: &Value) -> Warnings {
    check(&document.to_string()).warnings
}

fn told(document: &Value) -> Vec<String> {
    warnings(document).listed().iter().map(line).collect()
}

fn line(warning: &Warning) -> String {
    let span = warning.span.map(|span| format!(" {}..{}", span.start, span.end));
    format!("{} {}{}", warning.pointer, warning.rule.id(), span.unwrap_or_default())
}

/// A valid template with these components.
fn with(components: &Value) -> Value {
    json!({"name": "n", "language": "en_US", "category": "MARKETING",
        "allow_category_change": true, "components": components})
}

/// A valid template with a body and this component.
fn and(component: &Value) -> Value {
    with(&json!([{"type": "BODY", "text": "b"}, component]))
}

fn button(button: &Value) -> Value {
    and(&json!({"type": "BUTTONS", "buttons": [button]}))
}

/// A button whose address ends in a placeholder.
fn suffixed(url: &str) -> Value {
    button(&json!({"type": "URL", "text": "t", "url": url, "example": "x"}))
}

fn top(field: &str, value: &Value) -> Value {
    let mut document = with(&json!([{"type": "BODY", "text": "b"}]));
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
    with(&json!([body]))
}

fn header(text: &str) -> Value {
    and(&json!({"type": "HEADER", "format": "TEXT", "text": text}))
}

fn media(mut header: Value) -> Value {
    header["type"] = json!("HEADER");
    header["format"] = json!("MEDIA");
    header["example"] = json!({"media_url": "https://shop.example/a.png"});
    and(&header)
}

/// A warning, a document that does not take it, what is then told, and the nearest that does.
fn table() -> Vec<(WarningRule, Value, &'static str, Value)> {
    let url = |url: &str| button(&json!({"type": "URL", "text": "t", "url": url}));
    vec![
        (
            WarningRule::UnknownField,
            top("colour", &json!("red")),
            "/colour unknown-field",
            top("colour", &Value::Null),
        ),
        (
            WarningRule::UnknownField,
            with(&json!([{"type": "BODY", "text": "b", "txt": 1}])),
            "/components/0/txt unknown-field",
            with(&json!([{"type": "BODY", "text": "b"}])),
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
            with(&json!([{"type": "BODY", "text": "b", "format": "TEXT"}])),
            "/components/0/format unused-field",
            header("h"),
        ),
        (
            WarningRule::UnusedField,
            with(&json!([{"type": "BODY", "text": "b", "example": {"body_text": [["a"]]}}])),
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
            top("name", &json!("n\u{2060}")),
            "/name invisible-character 1..2",
            top("name", &json!("n")),
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
fn every_advice_is_given_for_the_smallest_document_and_not_for_the_nearest() {
    for (advice, document, line, good) in table() {
        assert_eq!(told(&document), [line], "{} of {document}", advice.id());
        assert_eq!(told(&good), [""; 0], "{} of {good}", advice.id());
        assert!(line.contains(&format!(" {}", advice.id())));
        assert!(check(&document.to_string()).template.is_ok(), "warnings do not block");
    }
}

#[test]
fn no_advice_is_without_its_row() {
    let rows: Vec<WarningRule> = table().into_iter().map(|(advice, ..)| advice).collect();
    let without: Vec<&str> =
        WarningRule::ALL.iter().filter(|advice| !rows.contains(advice)).map(|it| it.id()).collect();
    assert_eq!(
        without,
        [
            "code-sample",
            "braces-unpaired",
            "many-line-breaks",
            "many-emoji",
            "label-not-shown",
            "product-cards",
            "same-content"
        ],
        "the last takes another template, the others have their rows in `whatsapp/warnings.rs`"
    );
}

#[test]
fn a_warning_is_written_like_a_violation_and_has_its_hint() {
    let document = top("nam", &json!(1));
    assert_eq!(
        serde_json::to_value(warnings(&document).listed()).unwrap(),
        json!([{"pointer": "/nam", "rule": "unknown-field",
            "message": "is unknown to a template: neither checked nor kept",
            "hint": "did you mean `name`?"}])
    );
    let document = top("nam\u{2060}e", &json!(1));
    let message = "is unknown to a template, as its name holds the word joiner U+2060: neither checked nor kept";
    assert_eq!(warnings(&document).listed()[0].message, message);
    let document = body("Hello {{1}}.");
    assert_eq!(
        serde_json::to_value(warnings(&document).listed()).unwrap(),
        json!([{"pointer": "/components/0/text", "rule": "body-ends-with-placeholder",
            "message": "ends with a placeholder; punctuation does not count",
            "hint": "put a word behind `{{1}}`: WhatsApp refuses it otherwise",
            "span": {"start": 6, "end": 11}}])
    );
}

#[test]
fn a_hint_names_what_is_known_or_who_uses_the_field() {
    let hint = |document: &Value| warnings(document).listed()[0].hint.clone();
    assert_eq!(
        hint(&with(&json!([{"type": "BODY", "text": "b", "colour": 1}]))),
        "leave it out; known here: `type`, `text`, `example`"
    );
    assert_eq!(
        hint(&button(&json!({"type": "COPY_CODE", "example": "A", "url": "x"}))),
        "leave it out; it belongs to a URL button"
    );
    assert_eq!(
        hint(&top("buttons", &json!([]))),
        "leave it out; it belongs to a BUTTONS component"
    );
    assert_eq!(
        hint(&top("text", &json!([]))),
        "leave it out; it belongs to a HEADER of format TEXT, a BODY component, a FOOTER component …"
    );
}

#[test]
fn warnings_are_given_beside_violations_and_only_where_they_are_certain() {
    for (document, lines) in [
        // What kind of button it is, nobody knows: any field of a button may be meant.
        (
            button(&json!({"type": "CALL", "text": 1, "url": 1, "odd": 1})),
            &["odd unknown-field"][..],
        ),
        (button(&json!({"phone_number": 1, "buttons": 1})), &["buttons unused-field"]),
        // A text that is missing or faulty may be meant to have placeholders.
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
        assert_eq!(told(&document), lines, "{document}");
        assert!(check(&document.to_string()).template.is_err());
    }
    let header = json!({"type": "HEADER", "text": "t", "example": 1, "buttons": 1});
    assert_eq!(told(&and(&header)), ["/components/1/buttons unused-field"]);
}

#[test]
fn every_limit_of_whatsapp_is_told_and_names_and_samples_are_texts_too() {
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
        told(&document),
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
fn a_hostile_document_gets_a_small_answer_in_little_time() {
    let members: Vec<String> =
        (0..20_000).map(|number| format!("\"{}{number}\":0", "n".repeat(20))).collect();
    let members = format!("{{{}}}", members.join(","));
    let texts = ["\u{200b}a", "{{1}}{{1}}a ", "bit.ly/a ", "{{", "🏴\u{e0067}", "a.", "http://"];
    let texts = texts.map(|text| body(&text.repeat(300_000 / text.len())).to_string());
    for document in [members].iter().chain(&texts) {
        let begun = Instant::now();
        let warnings = check(document).warnings;
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(warnings.listed().len() <= 100);
        let answer = serde_json::to_string(warnings.listed()).unwrap();
        assert!(answer.len() < 100_000, "{} bytes", answer.len());
    }
    let many: Vec<_> = (0..150).map(|number| (format!("k{number}"), json!(0))).collect();
    let warnings = warnings(&Value::Object(many.into_iter().collect()));
    assert_eq!((warnings.listed().len(), warnings.omitted()), (100, 50));
}

/// Strings that come near to what warnings are about.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        " ",
        "{{1}}",
        "{{2}}",
        "{{x}}",
        "{{",
        "}}",
        ".",
        "é",
        "👩",
        "\u{200d}",
        "\u{200c}",
        "ی",
        "\u{200b}",
        "\u{202e}",
        "\u{fe0f}",
        "🏴",
        "\u{e0067}",
        "\u{e007f}",
        "bit.ly",
        "/",
        "://",
        "www.",
        "t.co/x",
        "@",
        "\n",
    ]);
    prop_oneof![
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat()),
        any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        9 => prop::sample::select(vec![
            "name", "language", "category", "components", "type", "format", "text", "example",
            "buttons", "url", "phone_number", "body_text", "header_text", "media_url", "colour",
        ])
        .prop_map(str::to_owned),
        1 => text(),
    ];
    let word = prop::sample::select(vec![
        "HEADER",
        "BODY",
        "FOOTER",
        "BUTTONS",
        "TEXT",
        "MEDIA",
        "QUICK_REPLY",
        "URL",
        "PHONE_NUMBER",
        "COPY_CODE",
        "en_US",
        "UTILITY",
        "https://t.co/{{1}}",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        word.prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn judge(document: &Value) -> Result<(), TestCaseError> {
    let text = document.to_string();
    let parsed = Document::parse(text.as_bytes()).unwrap();
    let Checked { template, warnings } = Template::check(&parsed, &V1);
    prop_assert_eq!(template, Template::read(&parsed, &V1));
    for warning in warnings.listed() {
        let place = document.pointer(&warning.pointer);
        prop_assert!(place.is_some(), "{:?} in {}", warning, document);
        prop_assert!(!warning.hint.is_empty());
        if let Some(span) = warning.span {
            let length = place.and_then(Value::as_str).unwrap().chars().count();
            prop_assert!(span.start < span.end && span.end <= length, "{:?}", warning);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn any_document_is_checked_as_it_is_read_and_warned_of_at_real_places(document in value()) {
        judge(&document)?;
    }

    #[test]
    fn any_text_is_checked_as_it_is_read_and_warned_of_at_real_places(
        text in text(), name in text(), label in text(), sample in text(), url in text(),
    ) {
        let mut document = with(&json!([
            {"type": "BODY", "text": text, "example": {"body_text": [[sample, sample]]}},
            {"type": "BUTTONS", "buttons": [{"type": "URL", "text": label, "url": format!("https://{url}"), "example": sample}]},
        ]));
        document["name"] = json!(name);
        judge(&document)?;
    }

    #[test]
    fn no_bytes_panic_the_check(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(document) = Document::parse(&bytes) {
            prop_assert_eq!(Template::check(&document, &V1).template, Template::read(&document, &V1));
        }
    }
}
