//! Properties of validation under the `whatsapp` rulebook: it never panics, stored documents read back
//! equal, violations point to existing values, and a dry run has the same result.

use galley_domain::{
    document::Document,
    rulebook::{Rulebook, WHATSAPP, graph_codes},
    template::{Template, edit::Edit},
    violation::{Rule, Violation},
};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Map, Value, json};

/// Strings that the rulebook knows, so that random documents are nearly valid, or any string.
fn string() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "header",
        "BODY",
        "FOOTER",
        "BUTTONS",
        "carousel",
        "LIMITED_TIME_OFFER",
        "TEXT",
        "IMAGE",
        "PRODUCT",
        "QUICK_REPLY",
        "url",
        "COPY_CODE",
        "OTP",
        "ONE_TAP",
        "FLOW",
        "SPM",
        "CATALOG",
        "en_US",
        "MARKETING",
        "authentication",
        "named",
        "POSITIONAL",
        "https://a.b/{{1}}",
        "https://wa.me/1",
        "+15550001111",
        "Hi {{1}} and bye",
        "Hi {{name}} and bye",
        "*b* 😀",
        "",
    ]);
    prop_oneof![known.prop_map(str::to_owned), any::<String>(), "[{}*_~0-9 a]{0,12}"]
}

fn key() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "name",
        "language",
        "category",
        "components",
        "parameter_format",
        "type",
        "format",
        "text",
        "example",
        "buttons",
        "cards",
        "url",
        "body_text",
        "body_text_named_params",
        "header_text",
        "header_handle",
        "param_name",
        "limited_time_offer",
        "otp_type",
        "supported_apps",
        "message_send_ttl_seconds",
        "code_expiration_minutes",
        "display_format",
    ]);
    prop_oneof![8 => known.prop_map(str::to_owned), 1 => any::<String>()]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1..100_000_i64).prop_map(Value::from),
        string().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// One of the valid strings, or sometimes any other.
fn mostly(valid: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![20 => prop::sample::select(valid).prop_map(str::to_owned), 1 => string()]
}

fn label() -> impl Strategy<Value = String> {
    mostly(&["Yes", "Go on", "\u{c4}ndern", "No", "It's 50 %!"])
}

fn body() -> impl Strategy<Value = Value> {
    let good = prop::sample::select(vec![
        json!({"type": "BODY", "text": "Hello *there* 😀\nbye"}),
        json!({"type": "body", "text": "Hello {{1}} and bye", "example": {"body_text": "Ada"}}),
        json!({"type": "BODY", "text": "Hello {{1}} and {{2}} or so, bye", "example": {"body_text": [["a", "b"]]}}),
        json!({"type": "BODY", "text": "Hello {{1}} and bye", "example": {"body_text": [["Ada"]]}}),
    ]);
    prop_oneof![15 => good, 1 => string().prop_map(|text| json!({"type": "BODY", "text": text}))]
}

fn header() -> impl Strategy<Value = Value> {
    let handle = prop_oneof![
        label().prop_map(Value::from),
        prop::collection::vec(label(), 1).prop_map(Value::from),
    ];
    prop_oneof![
        label().prop_map(|text| json!({"type": "HEADER", "format": "text", "text": text})),
        label().prop_map(|it| json!({"type": "HEADER", "format": "TEXT", "text": "Hi {{1}}", "example": {"header_text": it}})),
        (mostly(&["image", "VIDEO", "Document"]), handle).prop_map(
            |(format, it)| json!({"type": "HEADER", "format": format, "example": {"header_handle": it}})
        ),
        Just(json!({"type": "header", "format": "LOCATION"})),
    ]
}

fn button() -> impl Strategy<Value = Value> {
    prop_oneof![
        label().prop_map(|text| json!({"type": "QUICK_REPLY", "text": text})),
        label().prop_map(
            |text| json!({"type": "url", "text": text, "url": "https://a.b/{{1}}", "example": "x"})
        ),
        label().prop_map(|text| json!({"type": "URL", "text": text, "url": "https://a.b"})),
        label().prop_map(|code| json!({"type": "COPY_CODE", "example": [code]})),
        label().prop_map(
            |text| json!({"type": "PHONE_NUMBER", "text": text, "phone_number": "15550001111"})
        ),
        label().prop_map(|text| json!({"type": "FLOW", "text": text, "flow_id": "1"})),
    ]
}

fn carousel() -> impl Strategy<Value = Value> {
    let card = |text: String| {
        json!({"components": [
            {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": "h"}},
            {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": text}]},
        ]})
    };
    prop::collection::vec(label().prop_map(card), 2..4)
        .prop_map(|cards| json!({"type": "CAROUSEL", "cards": cards}))
}

/// A document that is valid except for some strings, and sometimes for a random field in one of its
/// components.
fn nearly_valid() -> impl Strategy<Value = Value> {
    let usual = (
        prop::option::of(header()),
        body(),
        prop::option::of(label().prop_map(|text| json!({"type": "FOOTER", "text": text}))),
        prop::option::of(
            prop::collection::vec(button(), 1..5)
                .prop_map(|buttons| json!({"type": "BUTTONS", "buttons": buttons})),
        ),
    );
    let usual = usual.prop_map(|(header, body, footer, buttons)| {
        [header, Some(body), footer, buttons].into_iter().flatten().collect::<Vec<_>>()
    });
    let with_carousel = (body(), carousel()).prop_map(|(body, carousel)| vec![body, carousel]);
    let components = prop_oneof![4 => usual, 1 => with_carousel].prop_shuffle();
    let disturbance = prop::option::weighted(0.3, (any::<prop::sample::Index>(), key(), value()));
    (mostly(&["welcome", "n_1"]), mostly(&["en_US", "de"]), components, disturbance).prop_map(
        |(name, language, mut components, disturbance)| {
            if let Some((index, key, value)) = disturbance {
                let index = index.index(components.len());
                components[index][key] = value;
            }
            json!({"name": name, "language": language, "category": "marketing", "components": components})
        },
    )
}

/// Whether the pointer refers to a value of the document or, for `required`, to a missing member of
/// an object.
fn is_pointer_valid(document: &Value, violation: &Violation) -> bool {
    if document.pointer(&violation.pointer).is_some() {
        return true;
    }
    let parent =
        violation.pointer.rsplit_once('/').and_then(|(parent, _)| document.pointer(parent));
    violation.rule == Rule::Required && parent.is_some_and(Value::is_object)
}

fn check(document: &Value) -> Result<(), TestCaseError> {
    let text = document.to_string();
    let parsed = Document::parse(text.as_bytes()).unwrap();
    let result = Template::read(&parsed, &WHATSAPP);
    prop_assert_eq!(&Template::check(&parsed, &WHATSAPP).template, &result);
    match result {
        Ok(template) => {
            let content: Value = serde_json::from_str(template.content()).unwrap();
            let mut again = Map::from_iter([
                ("name".to_owned(), json!(template.name())),
                ("language".to_owned(), json!(template.language())),
                ("category".to_owned(), json!(template.category().as_str())),
                ("allow_category_change".to_owned(), json!(template.allow_category_change())),
            ]);
            again.extend(content.as_object().unwrap().clone());
            let again = Value::Object(again).to_string();
            let again = Document::parse(again.as_bytes()).unwrap();
            let read = Template::read(&again, &WHATSAPP);
            prop_assert_eq!(read.as_ref(), Ok(&template), "the stored document reads back equal");
            let edit = Edit::read(&parsed, &WHATSAPP, &template);
            let content = Some(template.content().to_owned());
            let category = Some(template.category());
            prop_assert_eq!(
                edit,
                Ok(Edit::Replace { content, category }),
                "an edit with the same document changes nothing"
            );
        }
        Err(violations) => {
            for violation in violations.listed() {
                prop_assert!(is_pointer_valid(document, violation), "{violation:?} in {document}");
                prop_assert!(WHATSAPP.rules.contains(&violation.rule), "{violation:?}");
                prop_assert!(violation.hint.is_some(), "{violation:?}");
                let error = graph_codes::for_violation(violation, parsed.root());
                prop_assert!([100, 192].contains(&error.code) && !error.title.is_empty());
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn validation_never_panics_on_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(document) = Document::parse(&bytes) {
            for rulebook in Rulebook::ALL {
                let _ = Template::read(&document, rulebook);
            }
        }
    }

    #[test]
    fn any_document_reads_back_equal_or_has_violations_with_valid_pointers(document in value()) {
        check(&document)?;
    }

    #[test]
    fn nearly_valid_documents_read_back_equal_or_have_violations_with_valid_pointers(document in nearly_valid()) {
        check(&document)?;
    }

    #[test]
    fn validation_never_panics_on_arbitrary_texts(text in "[{}1a *_~`.,\u{e9}\u{1f600}\n]{0,60}", named in any::<bool>()) {
        let format = if named { "NAMED" } else { "POSITIONAL" };
        check(&json!({"name": "n", "language": "en", "category": "UTILITY", "parameter_format": format, "components": [
            {"type": "BODY", "text": text}, {"type": "HEADER", "format": "TEXT", "text": text}, {"type": "FOOTER", "text": text},
            {"type": "BUTTONS", "buttons": [{"type": "URL", "text": text, "url": format!("https://{text}")}]},
        ]}))?;
    }
}

#[test]
fn the_generator_produces_valid_and_invalid_documents() {
    let mut runner = TestRunner::deterministic();
    let documents = nearly_valid();
    let accepted = (0..600).filter(|_| {
        let document = documents.new_tree(&mut runner).unwrap().current().to_string();
        Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP).is_ok()
    });
    let accepted = accepted.count();
    assert!((150..500).contains(&accepted), "{accepted} of 600 are accepted");
}
