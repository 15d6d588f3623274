//! Properties: nothing panics, a conversion without notes is reversible, and a result that is reported
//! as complete is valid.

use galley_domain::{
    convert::{Direction, Level, Note},
    document::Document,
    rulebook::{Rulebook, V1, WHATSAPP},
    template::Template,
};
use proptest::{option, prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Value, json};

use super::{
    fixture::{try_convert, written},
    table,
};

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(words).prop_map(str::to_owned)
}

/// Keys of both rulebooks, and arbitrary ones.
fn word() -> impl Strategy<Value = String> {
    let known = one_of(&[
        "HEADER",
        "body",
        "BUTTONS",
        "CAROUSEL",
        "TEXT",
        "MEDIA",
        "IMAGE",
        "QUICK_REPLY",
        "url",
        "COPY_CODE",
        "OTP",
        "en_US",
        "de",
        "MARKETING",
        "AUTHENTICATION",
        "NAMED",
        "https://a.b/{{1}}",
        "Hi {{1}} and bye",
        "Hi {{name}} and bye",
    ]);
    prop_oneof![known, any::<String>()]
}

fn key() -> impl Strategy<Value = String> {
    one_of(&[
        "name",
        "language",
        "category",
        "allow_category_change",
        "components",
        "parameter_format",
        "type",
        "format",
        "text",
        "example",
        "buttons",
        "url",
        "body_text",
        "header_handle",
        "media_url",
        "cards",
        "body_text_named_params",
        "param_name",
    ])
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        word().prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Components of a `v1` document, many of which `whatsapp` also supports.
fn pieces() -> impl Strategy<Value = Vec<Value>> {
    let header = prop_oneof![
        one_of(&["Hello", "Hello \u{1f600}", "*Hello*"])
            .prop_map(|text| json!({"type": "HEADER", "format": "TEXT", "text": text})),
        one_of(&["Order {{1}}", "{{1}} of {{2}}"]).prop_map(|text| {
            let samples = vec!["4711"; text.matches("{{").count()];
            json!({"type": "header", "format": "text", "text": text, "example": {"header_text": samples}})
        }),
        one_of(&["https://a.b/c.jpg", "https://a.b/c.mp4", "https://a.b/c"]).prop_map(
            |url| json!({"type": "HEADER", "format": "MEDIA", "example": {"media_url": url}})
        ),
    ];
    let body = prop_oneof![
        3 => Just(json!({"type": "BODY", "text": "Good morning,\nall of you"})),
        3 => Just(json!({"type": "Body", "text": "Hi {{2}}, your order {{1}} is on its way.",
            "example": {"body_text": [["4711", "Ada"]]}})),
        1 => Just(json!({"type": "BODY", "text": "{{1}}", "example": {"body_text": [["Ada"]]}})),
    ];
    let footer = one_of(&["The shop", "_The_ shop"])
        .prop_map(|text| json!({"type": "FOOTER", "text": text}));
    let button = prop_oneof![
        one_of(&["Yes", "No", "\u{1f600}"])
            .prop_map(|text| json!({"type": "QUICK_REPLY", "text": text})),
        Just(json!({"type": "URL", "text": "Go", "url": "https://a.b/"})),
        Just(json!({"type": "URL", "text": "Go", "url": "https://a.b/{{1}}", "example": "x"})),
        Just(json!({"type": "URL", "text": "Go", "url": "https://a.b/{{1}}", "example": ["x"]})),
        Just(json!({"type": "URL", "text": "Go", "url": "https://a.b/{{1}}"})),
        Just(json!({"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"})),
        Just(json!({"type": "COPY_CODE", "example": "SAVE25"})),
    ];
    let buttons = prop::collection::vec(button, 1..4)
        .prop_map(|buttons| json!({"type": "BUTTONS", "buttons": buttons}));
    (option::of(header), body, option::of(footer), option::of(buttons), any::<bool>()).prop_map(
        |(header, body, footer, buttons, turned)| {
            let mut pieces: Vec<Value> =
                [header, Some(body), footer, buttons].into_iter().flatten().collect();
            if turned {
                pieces.reverse();
            }
            pieces
        },
    )
}

fn document() -> impl Strategy<Value = Value> {
    let name = one_of(&["order", "order_2", "Order 2"]);
    let language = one_of(&["en_US", "pt_BR", "de_DE", "kw_GB"]);
    let category = one_of(&["MARKETING", "MARKETING", "utility", "AUTHENTICATION"]);
    (name, language, category, any::<bool>(), pieces()).prop_map(
        |(name, language, category, changes, components)| {
            json!({"name": name, "language": language, "category": category,
                "allow_category_change": changes, "components": components})
        },
    )
}

/// A document of the table with one value replaced.
fn damaged() -> impl Strategy<Value = (Direction, Value)> {
    let good = prop::sample::select(table::rows());
    let leaf = prop_oneof![
        anything(),
        one_of(&["", "x", "IMAGE", "{{1}}", "{{a}}"]).prop_map(Value::from)
    ];
    (good, any::<prop::sample::Index>(), leaf).prop_map(|(row, index, damage)| {
        let (direction, (_, _, mut document, _)) = row;
        let mut pointers = Vec::new();
        collect(&document, String::new(), &mut pointers);
        *document.pointer_mut(index.get(&pointers[..]).as_str()).unwrap() = damage;
        (direction, document)
    })
}

fn collect(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            let below = items.iter().enumerate();
            below.for_each(|(index, item)| collect(item, format!("{pointer}/{index}"), found));
        }
        Value::Object(members) => {
            members.iter().for_each(|(key, it)| collect(it, format!("{pointer}/{key}"), found));
        }
        _ => {}
    }
    found.push(pointer);
}

fn read(document: &Value, rulebook: &Rulebook) -> Option<Template> {
    let text = document.to_string();
    Template::read(&Document::parse(text.as_bytes()).unwrap(), rulebook).ok()
}

/// Whether a note points at an existing value or at a missing one.
fn is_of(document: &Value, note: &Note) -> bool {
    let parent = note.pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
    document.pointer(&note.pointer).or(document.pointer(parent)).is_some()
}

proptest! {
    #[test]
    fn whatever_json_goes_in_nothing_panics(value in anything()) {
        for direction in [Direction::ToWhatsapp, Direction::ToV1] {
            let _ = try_convert(&value, direction);
        }
    }

    #[test]
    fn what_converts_without_a_note_comes_back_equal(document in document()) {
        let there = try_convert(&document, Direction::ToWhatsapp).unwrap();
        if there.notes.is_empty() {
            let back = try_convert(&written(&there), Direction::ToV1).unwrap();
            prop_assert_eq!(&back.notes, &[]);
            prop_assert_eq!(read(&written(&back), &V1), read(&document, &V1));
        }
    }

    #[test]
    fn a_result_that_is_not_reported_as_incomplete_is_valid(document in document()) {
        let there = try_convert(&document, Direction::ToWhatsapp).unwrap();
        let complete = there.notes.iter().all(|note| note.level != Level::Incomplete);
        prop_assert_eq!(read(&written(&there), &WHATSAPP).is_some(), complete);
    }

    #[test]
    fn a_document_with_anything_in_some_place_is_converted_or_refused(
        (direction, document) in damaged()
    ) {
        if let Ok(there) = try_convert(&document, direction) {
            let complete = there.notes.iter().all(|it| it.level != Level::Incomplete);
            let taken = read(&written(&there), direction.to()).is_some();
            prop_assert!(taken || !complete, "{:?}", there.notes);
            for note in there.notes {
                prop_assert!(is_of(&document, &note), "{note:?} of {document}");
            }
        }
    }

    #[test]
    fn every_note_points_at_something_of_the_source(document in document()) {
        for note in try_convert(&document, Direction::ToWhatsapp).unwrap().notes {
            prop_assert!(is_of(&document, &note), "{note:?}");
        }
    }
}

#[test]
fn some_documents_convert_without_a_note_and_most_do_not() {
    let mut runner = TestRunner::deterministic();
    let whole = (0..300).filter(|_| {
        let document = document().new_tree(&mut runner).unwrap().current();
        try_convert(&document, Direction::ToWhatsapp).unwrap().notes.is_empty()
    });
    let whole = whole.count();
    assert!((15..200).contains(&whole), "{whole} of 300");
}
