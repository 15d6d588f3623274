//! Hostile documents: the work and the size of a proof are limited.

use std::time::{Duration, Instant};

use galley_domain::{
    proof::MAX_CHARS,
    rulebook::{V1, WHATSAPP},
};
use serde_json::{Value, json};

use super::{proof_of, with_body};

fn shown_chars(proof: &Value) -> usize {
    let runs = proof["body"].as_array().unwrap();
    runs.iter().map(|run| run["text"].as_str().unwrap().chars().count()).sum()
}

#[test]
fn a_long_value_for_many_placeholders_is_cut() {
    let mut document = with_body(&"{{1}}".repeat(20_000));
    document["components"][0]["example"] = json!({"body_text": [["é".repeat(50_000)]]});
    let proof = proof_of(&V1, &json!({"document": document}));
    assert_eq!((shown_chars(&proof), &proof["truncated"]), (MAX_CHARS, &json!(true)));
    let proof = proof_of(&V1, &json!({"document": with_body(&"x".repeat(MAX_CHARS))}));
    assert_eq!((shown_chars(&proof), proof.get("truncated")), (MAX_CHARS, None));
}

#[test]
fn hostile_texts_take_linear_time() {
    // Quadratic work would take minutes in a debug build.
    let started = Instant::now();
    for pattern in [
        "*",
        "*a ",
        "_a*",
        "`",
        "`a ",
        "``` ",
        "````",
        "{{",
        "{{a",
        "{{{{1",
        "{{a}}",
        "- ",
        "> \n",
        "1. ",
        "\n",
        "*_~`a`~_* ",
        "``` x ",
        "\u{5d0}*",
        "{{1}}_",
    ] {
        let text = pattern.repeat(MAX_CHARS * 2 / pattern.chars().count());
        let proof = proof_of(&WHATSAPP, &json!({"document": with_body(&text)}));
        assert!(shown_chars(&proof) <= MAX_CHARS, "{pattern}");
    }
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());
}

#[test]
fn only_as_many_items_are_shown_as_a_rulebook_allows() {
    let button = json!({"type": "QUICK_REPLY", "text": "x"});
    let mut document = with_body("Hello");
    let components = document["components"].as_array_mut().unwrap();
    components.push(json!({"type": "BUTTONS", "buttons": vec![button; 2_000]}));
    components.push(json!({"type": "CAROUSEL", "cards": vec![json!({}); 2_000]}));
    let proof = proof_of(&WHATSAPP, &json!({"document": document}));
    let count = |list: &str| proof[list].as_array().unwrap().len();
    assert_eq!((count("buttons"), count("cards")), (20, 20));
}
