//! Properties of the document reader: it does not panic, an accepted document reads back equal, and
//! a violation points to an existing value.

use galley_domain::{
    document::Document,
    rulebook::V1,
    template::Template,
    violation::{Rule, Violation},
};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Map, Value, json};

/// Strings that the rulebook knows, so that random documents are similar to valid ones.
fn string() -> impl Strategy<Value = String> {
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
        string().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Usually one of the valid strings, sometimes any string.
fn usually(valid: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![15 => prop::sample::select(valid).prop_map(str::to_owned), 1 => string()]
}

fn label() -> impl Strategy<Value = String> {
    usually(&["Yes", "Go on", "\u{c4}ndern \u{1f600}", "}} 50 % {"])
}

fn url() -> impl Strategy<Value = String> {
    usually(&["https://a.b/", "HTTP://shop.example/a%20b?c=d#e", "https://[::1]:8080/x"])
}

/// A text with samples, usually one for each placeholder.
fn text_with_samples() -> impl Strategy<Value = (String, Vec<String>)> {
    let valid = [
        ("Hello", 0),
        ("Hello", 2),
        ("Hi {{1}}", 1),
        ("{{2}} {{1}} {{2}}", 2),
        ("a}}{ {{1}}{{2}}{{3}}", 3),
    ];
    let valid = prop::sample::select(valid.to_vec()).prop_flat_map(|(text, count)| {
        (Just(text.to_owned()), prop::collection::vec(usually(&["Ada", "7"]), count))
    });
    prop_oneof![15 => valid, 1 => (string(), prop::collection::vec(string(), 0..4))]
}

fn header() -> impl Strategy<Value = Value> {
    prop_oneof![
        (text_with_samples(), any::<bool>()).prop_map(|((text, samples), has_example)| {
            let mut header = json!({"type": "Header", "format": "text", "text": text});
            if has_example {
                header["example"] = json!({"header_text": samples});
            }
            header
        }),
        url().prop_map(
            |url| json!({"type": "HEADER", "format": "MEDIA", "example": {"media_url": url}})
        ),
    ]
}

fn body() -> impl Strategy<Value = Value> {
    text_with_samples().prop_map(|(text, samples)| {
        let mut body = json!({"type": "BODY", "text": text});
        if !samples.is_empty() {
            body["example"] = json!({"body_text": [samples]});
        }
        body
    })
}

fn button() -> impl Strategy<Value = Value> {
    let sample = prop_oneof![
        label().prop_map(Value::from),
        label().prop_map(|it| json!([it])),
        Just(Value::Null),
    ];
    prop_oneof![
        label().prop_map(|text| json!({"type": "QUICK_REPLY", "text": text})),
        (label(), url(), any::<bool>(), sample).prop_map(
            |(text, mut url, has_placeholder, sample)| {
                url.push_str(if has_placeholder { "{{1}}" } else { "" });
                json!({"type": "url", "text": text, "url": url, "example": sample})
            }
        ),
        (label(), usually(&["+15550001111", "4915550001111"])).prop_map(
            |(text, to)| json!({"type": "PHONE_NUMBER", "text": text, "phone_number": to})
        ),
        label().prop_map(|code| json!({"type": "Copy_Code", "example": code})),
    ]
}

/// A document that is valid except for some strings or one modified component.
fn nearly_valid() -> impl Strategy<Value = Value> {
    let components = (
        prop::option::of(header()),
        body(),
        prop::option::of(label().prop_map(|text| json!({"type": "FOOTER", "text": text}))),
        prop::option::of(
            prop::collection::vec(button(), 1..4)
                .prop_map(|buttons| json!({"type": "BUTTONS", "buttons": buttons})),
        ),
    );
    let components = components
        .prop_map(|(header, body, footer, buttons)| {
            let all = [header, Some(body), footer, buttons];
            all.into_iter().flatten().collect::<Vec<_>>()
        })
        .prop_shuffle();
    let modification = prop::option::weighted(0.3, (any::<prop::sample::Index>(), key(), value()));
    (
        usually(&["welcome", "a name", "N\u{e4}me"]),
        usually(&["en_US", "pt_BR"]),
        components,
        modification,
    )
        .prop_map(|(name, language, mut components, modification)| {
            if let Some((index, key, value)) = modification {
                let index = index.index(components.len());
                components[index][key] = value;
            }
            json!({
                "name": name, "language": language, "category": "UTILITY",
                "allow_category_change": false, "components": components,
            })
        })
}

/// Whether the pointer refers to a value of the document or to a required member that is missing.
fn points_to_value(document: &Value, violation: &Violation) -> bool {
    if document.pointer(&violation.pointer).is_some() {
        return true;
    }
    let parent =
        violation.pointer.rsplit_once('/').and_then(|(parent, _)| document.pointer(parent));
    violation.rule == Rule::Required && parent.is_some_and(Value::is_object)
}

fn assert_consistent(document: &Value) -> Result<(), TestCaseError> {
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
                ("category".to_owned(), json!(template.category().as_str())),
                ("allow_category_change".to_owned(), json!(template.allow_category_change())),
            ]);
            again.extend(content.as_object().unwrap().clone());
            let again = Value::Object(again).to_string();
            let read = Template::read(&Document::parse(again.as_bytes()).unwrap(), &V1);
            prop_assert_eq!(read.as_ref(), Ok(&template), "the stored template reads back equal");
        }
        Err(violations) => {
            prop_assert!(
                !violations.listed().is_empty(),
                "rejected without a violation: {}",
                document
            );
            for violation in violations.listed() {
                prop_assert!(
                    points_to_value(document, violation),
                    "{:?} in {}",
                    violation,
                    document
                );
            }
        }
    }
    Ok(())
}

/// Whether everything that is stored was in the document, ignoring the letter case of choices.
fn is_contained(stored: &Value, given: &Value) -> bool {
    match (stored, given) {
        (Value::Object(stored), Value::Object(given)) => stored
            .iter()
            .all(|(key, value)| given.get(key).is_some_and(|it| is_contained(value, it))),
        (Value::Array(stored), Value::Array(given)) => {
            stored.len() == given.len()
                && stored.iter().zip(given).all(|(stored, given)| is_contained(stored, given))
        }
        (Value::String(stored), Value::String(given)) => {
            stored == given
                || (stored.eq_ignore_ascii_case(given) && *stored == stored.to_ascii_uppercase())
        }
        _ => stored == given,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn reading_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(document) = Document::parse(&bytes) {
            let _ = Template::read(&document, &V1);
        }
    }

    #[test]
    fn any_document_reads_back_equal_or_is_rejected_at_an_existing_value(document in value()) {
        assert_consistent(&document)?;
    }

    #[test]
    fn nearly_valid_documents_read_back_equal_or_are_rejected_at_an_existing_value(document in nearly_valid()) {
        assert_consistent(&document)?;
    }
}

#[test]
fn nearly_valid_documents_are_often_valid_and_often_invalid() {
    let mut runner = TestRunner::deterministic();
    let documents = nearly_valid();
    let accepted = (0..600).filter(|_| {
        let document = documents.new_tree(&mut runner).unwrap().current().to_string();
        Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1).is_ok()
    });
    let accepted = accepted.count();
    assert!((150..500).contains(&accepted), "{accepted} of 600 accepted");
}
