//! Properties of proofs: nothing makes them panic, and no text is lost or invented.

use galley_domain::rulebook::{Rulebook, V1, WHATSAPP};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{proof_of, shown, with_body};

/// The characters of which formatting marks consist.
const MARKS: [char; 7] = ['*', '_', '~', '`', '-', '>', ' '];

fn any_json() -> impl Strategy<Value = Value> {
    let known = prop::sample::select(vec![
        "HEADER",
        "body",
        "FOOTER",
        "BUTTONS",
        "CAROUSEL",
        "LIMITED_TIME_OFFER",
        "TEXT",
        "IMAGE",
        "MEDIA",
        "LOCATION",
        "URL",
        "COPY_CODE",
        "OTP",
        "AUTHENTICATION",
        "ar",
        "https://a.b/{{1}}",
        "{{1}} *{{x}}*",
        "- a\n> b\n1. c",
        "```a```",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        known.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        9 => prop::sample::select(vec![
            "document", "values", "components", "type", "format", "text", "url", "example", "header_text", "body_text",
            "body_text_named_params", "param_name", "header_handle", "buttons", "cards", "header", "body", "0",
            "limited_time_offer", "offer", "category", "language",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Text with many marks, placeholders and line breaks.
fn marked() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "*", "_", "~", "`", "```", "\n", " ", "- ", "> ", "1. ", "a", "é", "word", "{{1}}",
            "{{2}}", "{{x_y}}", "{{", "}}", ".", "😀", "א",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn body_text(proof: &Value) -> String {
    let runs = proof["body"].as_array().unwrap().iter();
    runs.map(|run| run["text"].as_str().unwrap()).collect()
}

/// Whether `short` is `long` without some formatting marks.
fn is_without_marks(long: &str, short: &str) -> bool {
    let mut short = short.chars().peekable();
    let skipped_are_marks =
        long.chars().all(|it| short.next_if_eq(&it).is_some() || MARKS.contains(&it));
    skipped_are_marks && short.next().is_none()
}

/// Styled text: what is written, and the runs that it makes.
fn styled() -> impl Strategy<Value = (String, Vec<String>)> {
    let words = "[a-z]{1,5}( [a-z]{1,5}){0,2}";
    let marks =
        prop::sample::subsequence(vec![('*', "bold"), ('_', "italic"), ('~', "strike")], 0..=3);
    let piece = (words, marks.prop_shuffle()).prop_map(|(words, marks)| {
        let open: String = marks.iter().map(|it| it.0).collect();
        let close: String = marks.iter().rev().map(|it| it.0).collect();
        let order = ["bold", "italic", "strike"];
        let names: Vec<&str> =
            order.into_iter().filter(|name| marks.iter().any(|it| it.1 == *name)).collect();
        let run = if names.is_empty() {
            words.clone()
        } else {
            format!("{words} [{}]", names.join(", "))
        };
        (format!("{open}{words}{close}"), run)
    });
    prop::collection::vec(piece, 1..6).prop_map(|pieces| {
        // A full stop between two pieces, so that plain ones stay apart.
        let (mut text, mut runs) = (String::new(), Vec::new());
        for (written, run) in pieces {
            text.push_str(&written);
            text.push('.');
            runs.push(run);
            runs.push(".".to_owned());
        }
        (text, merge_plain(runs))
    })
}

/// Joins neighbouring runs without style.
fn merge_plain(runs: Vec<String>) -> Vec<String> {
    let mut merged: Vec<String> = Vec::new();
    for run in runs {
        match merged.last_mut() {
            Some(last) if !last.ends_with(']') && !run.ends_with(']') => last.push_str(&run),
            _ => merged.push(run),
        }
    }
    merged
}

proptest! {
    #[test]
    fn nothing_makes_a_proof_panic(document in any_json(), values in any_json()) {
        prop_assume!(!document.is_null());
        for rulebook in Rulebook::ALL {
            let proof = proof_of(rulebook, &json!({"document": document.clone(), "values": values.clone()}));
            prop_assert!(proof["violations"].is_array());
            prop_assert!(!proof.to_string().contains(":null"));
        }
    }

    #[test]
    fn the_runs_are_the_filled_text_without_marks(text in marked(), values in prop::collection::vec(marked(), 0..3)) {
        let request = json!({"document": with_body(&text), "values": {"body": values.clone()}});
        let proof = proof_of(&WHATSAPP, &request);
        let mut filled = String::new();
        let mut rest = &*text;
        // Fills in one pass, without the code under test.
        while let Some(character) = rest.chars().next() {
            let number = ["{{1}}", "{{2}}"].iter().position(|it| rest.starts_with(it));
            let value = number.and_then(|at| values.get(at)).filter(|it| !it.trim().is_empty());
            let is_pair = rest.starts_with("{{");
            if let Some(value) = value {
                filled.push_str(value);
                rest = &rest[5..];
            } else if is_pair && number.is_none() {
                filled.push_str("{{");
                rest = &rest[2..];
            } else {
                filled.push(character);
                rest = &rest[character.len_utf8()..];
            }
        }
        let shown = body_text(&proof);
        prop_assert!(is_without_marks(&filled, &shown), "{filled:?} {shown:?}");
        if !filled.contains(MARKS) {
            prop_assert_eq!(filled, shown);
        }
        for run in proof["body"].as_array().unwrap() {
            prop_assert!(run["text"] != "", "{proof}");
        }
    }

    #[test]
    fn nested_styles_are_recognised((text, expected) in styled()) {
        let proof = proof_of(&V1, &json!({"document": with_body(&text)}));
        prop_assert_eq!(shown(&proof["body"]), expected, "{}", text);
    }
}
