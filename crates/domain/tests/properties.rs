//! Properties of the document reader: nothing panics, what is accepted reads back equal, what is
//! refused points at something that is there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use galley_domain::{json::Document, rulebook::V1, template::Template, violation::Violation};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Words that the rulebook knows, so that random documents come near to valid ones.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "HEADER",
            "body",
            "FOOTER",
            "BUTTONS",
            "TEXT",
            "MEDIA",
            "QUICK_REPLY",
            "url",
            "PHONE_NUMBER",
            "copy_code",
            "en_US",
            "pt_BR",
            "en",
            "MARKETING",
            "utility",
            "https://a.b/",
            "https://a.b/{{1}}",
            "+15550001111",
            "Hi {{1}}",
            "{{2}} {{1}}",
            "{{1}} {{3}}",
            "{{x}}",
            "",
            " ",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
        "[{}0-9 a]{0,12}",
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(vec![
            "name", "language", "category", "allow_category_change", "components", "type", "format", "text",
            "example", "buttons", "url", "phone_number", "body_text", "header_text", "media_url",
        ])
        .prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A document that is valid but for whatever `value` does to one of its places.
fn nearly_valid() -> impl Strategy<Value = Value> {
    (word(), word(), word(), prop::option::of((key(), value())), prop::collection::vec(word(), 1..4)).prop_map(
        |(name, text, label, disturbance, samples)| {
            let mut body = json!({"type": "BODY", "text": text, "example": {"body_text": [samples]}});
            if let Some((key, value)) = disturbance {
                body[key] = value;
            }
            json!({
                "name": name, "language": "en_US", "category": "UTILITY", "allow_category_change": false,
                "components": [
                    body,
                    {"type": "FOOTER", "text": label},
                    {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": label}]},
                ],
            })
        },
    )
}

/// Whether the pointer leads to a value of the document, or to a missing member of one.
fn points_somewhere(document: &Value, violation: &Violation) -> bool {
    if document.pointer(&violation.pointer).is_some() {
        return true;
    }
    let parent =
        violation.pointer.rsplit_once('/').and_then(|(parent, _)| document.pointer(parent));
    parent.is_some_and(Value::is_object)
}

fn judge(document: &Value) -> Result<(), TestCaseError> {
    let text = document.to_string();
    let parsed = Document::parse(text.as_bytes()).unwrap();
    match Template::read(&parsed, &V1) {
        Ok(template) => {
            prop_assert_eq!(document["name"].as_str(), Some(template.name()));
            let content: Value = serde_json::from_str(template.content()).unwrap();
            prop_assert!(
                is_contained(&content["components"], &document["components"]),
                "{} in {}",
                content,
                document
            );
            let mut again = Map::from_iter([
                ("name".to_owned(), json!(template.name())),
                ("language".to_owned(), json!(template.language())),
                ("category".to_owned(), json!(template.category().word())),
                ("allow_category_change".to_owned(), json!(template.allow_category_change())),
            ]);
            again.extend(content.as_object().unwrap().clone());
            let again = Value::Object(again).to_string();
            let read = Template::read(&Document::parse(again.as_bytes()).unwrap(), &V1);
            prop_assert_eq!(read.as_ref(), Ok(&template), "what is kept reads back equal");
        }
        Err(violations) => {
            for violation in violations.told() {
                prop_assert!(
                    points_somewhere(document, violation),
                    "{:?} in {}",
                    violation,
                    document
                );
            }
        }
    }
    Ok(())
}

/// Whether all that was kept stood in the document, letter case of words aside.
fn is_contained(kept: &Value, given: &Value) -> bool {
    match (kept, given) {
        (Value::Object(kept), Value::Object(given)) => {
            kept.iter().all(|(key, value)| given.get(key).is_some_and(|it| is_contained(value, it)))
        }
        (Value::Array(kept), Value::Array(given)) => {
            kept.len() == given.len()
                && kept.iter().zip(given).all(|(kept, given)| is_contained(kept, given))
        }
        (Value::String(kept), Value::String(given)) => {
            kept == given
                || (kept.eq_ignore_ascii_case(given) && *kept == kept.to_ascii_uppercase())
        }
        _ => kept == given,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn no_bytes_panic_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(document) = Document::parse(&bytes) {
            let _ = Template::read(&document, &V1);
        }
    }

    #[test]
    fn any_document_is_accepted_equal_or_refused_at_a_real_place(document in value()) {
        judge(&document)?;
    }

    #[test]
    fn nearly_valid_documents_are_accepted_equal_or_refused_at_a_real_place(document in nearly_valid()) {
        judge(&document)?;
    }
}
