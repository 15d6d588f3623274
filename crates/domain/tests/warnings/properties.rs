//! Collecting warnings does not change the result of a check, and each warning points to a value.

use galley_domain::{
    document::Document,
    rulebook::V1,
    template::{Checked, Template},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::with_components;

/// Strings that often trigger warnings.
fn text() -> impl Strategy<Value = String> {
    let fragment = prop::sample::select(vec![
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
        prop::collection::vec(fragment, 0..30).prop_map(|fragments| fragments.concat()),
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

fn assert_consistent(document: &Value) -> Result<(), TestCaseError> {
    let text = document.to_string();
    let parsed = Document::parse(text.as_bytes()).unwrap();
    let Checked { template, warnings } = Template::check(&parsed, &V1);
    prop_assert_eq!(template, Template::read(&parsed, &V1));
    for warning in warnings.listed() {
        let value = document.pointer(&warning.pointer);
        prop_assert!(value.is_some(), "{:?} in {}", warning, document);
        prop_assert!(!warning.hint.is_empty());
        if let Some(span) = warning.span {
            let length = value.and_then(Value::as_str).unwrap().chars().count();
            prop_assert!(span.start < span.end && span.end <= length, "{:?}", warning);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn a_check_of_any_document_agrees_with_reading_it_and_points_to_existing_values(document in value()) {
        assert_consistent(&document)?;
    }

    #[test]
    fn a_check_of_any_text_agrees_with_reading_it_and_points_to_existing_values(
        text in text(), name in text(), label in text(), sample in text(), url in text(),
    ) {
        let mut document = with_components(&json!([
            {"type": "BODY", "text": text, "example": {"body_text": [[sample, sample]]}},
            {"type": "BUTTONS", "buttons": [{"type": "URL", "text": label, "url": format!("https://{url}"), "example": sample}]},
        ]));
        document["name"] = json!(name);
        assert_consistent(&document)?;
    }

    #[test]
    fn a_check_of_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(document) = Document::parse(&bytes) {
            prop_assert_eq!(Template::check(&document, &V1).template, Template::read(&document, &V1));
        }
    }
}
