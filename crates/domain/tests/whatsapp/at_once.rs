//! Several defects of one kind: the first response reports all of them, or the narrowest limit.

use serde_json::{Value, json};

use super::fixture::*;

/// The pointers and messages of the violations.
fn messages_of(document: &str) -> Vec<String> {
    let violations = read(document).unwrap_err();
    violations.listed().iter().map(|it| format!("{} {}", it.pointer, it.message)).collect()
}

#[test]
fn every_superfluous_button_is_reported() {
    let four = json!([link(), link(), link(), link()]);
    let lines = ["/components/1/buttons/2 button-count", "/components/1/buttons/3 button-count"];
    assert_eq!(violations_of(&buttons(&four)), lines);
    let second = "/components/2/buttons/2 offer-buttons";
    let offer = offer(false, &json!([code(), link(), link()]));
    assert_eq!(violations_of(&offer.to_string()), [second]);
}

#[test]
fn a_lifetime_is_compared_with_the_limits_of_its_category() {
    let lifetime = |category: &str, seconds: i64| {
        let mut document = template(category, &json!([{"type": "BODY", "text": "b"}]));
        document["message_send_ttl_seconds"] = json!(seconds);
        document.to_string()
    };
    for (category, seconds, limits) in [
        ("UTILITY", 9_999_999, "UTILITY templates allow 30 to 43200 seconds"),
        ("MARKETING", 9_999_999, "MARKETING templates allow 43200 to 2592000 seconds"),
        ("MARKETING", -7, "MARKETING templates allow 43200 to 2592000 seconds"),
    ] {
        let line = format!("/message_send_ttl_seconds is {seconds}; {limits}");
        assert_eq!(messages_of(&lifetime(category, seconds)), [line]);
    }
    // The limits of an unknown category are not known.
    assert_eq!(
        messages_of(&lifetime("NEWS", 9_999_999))[1],
        "/message_send_ttl_seconds is 9999999, but must be from -1 to 2592000"
    );
}

#[test]
fn the_limits_of_an_offer_are_reported_for_any_length() {
    let mut long = offer(true, &json!([code(), link()]));
    long["components"][0]["text"] = json!("b".repeat(1_025));
    long["components"][2]["buttons"][0]["example"] = json!("A".repeat(21));
    assert_eq!(
        messages_of(&long.to_string()),
        [
            "/components/0/text has 1025 characters; at most 1024 are allowed",
            "/components/0/text has 1025 characters; at most 600 are allowed with LIMITED_TIME_OFFER",
            "/components/2/buttons/0/example has 21 characters; at most 15 are allowed in an offer",
        ]
    );
}

#[test]
fn every_difference_between_cards_is_reported() {
    let other = |header: &str, buttons: &Value| {
        let mut image = image();
        image["format"] = json!(header);
        let text = json!({"type": "BODY", "text": "b"});
        card(&json!([image, text, {"type": "BUTTONS", "buttons": buttons}]))
    };
    let cards = json!([plain_card(), other("VIDEO", &json!([reply("No")]))]);
    assert_eq!(
        messages_of(&carousel(&cards)),
        [
            "/components/1/cards/1 differs from the first card in the format of its header and the types or the order of its buttons and whether it has a body"
        ]
    );
}

#[test]
fn the_values_of_superfluous_lists_of_samples_are_checked() {
    let samples = json!([["a", ""], ["b\u{0}"]]);
    assert_eq!(
        violations_of(&body("Hi {{1}} and bye", &samples)),
        [
            "/components/0/example/body_text samples-count",
            "/components/0/example/body_text/0/1 empty",
            "/components/0/example/body_text/1/0 control-character",
        ]
    );
}

#[test]
fn the_values_of_a_flat_list_of_samples_are_checked() {
    let text = "Hi {{1}} and {{2}} or so, dear friend, bye";
    let flat = "/components/0/example/body_text samples-flat";
    for (samples, value) in [(json!(["a", 2]), "wrong-type"), (json!(["a", ""]), "empty")] {
        let value = format!("/components/0/example/body_text/1 {value}");
        assert_eq!(violations_of(&body(text, &samples)), [flat.to_owned(), value]);
    }
}

#[test]
fn surplus_samples_of_a_header_are_reported_beside_its_placeholders() {
    let header = |text: &str| {
        let example = json!({"header_text": ["a", "b"]});
        let header = json!({"type": "HEADER", "format": "TEXT", "text": text, "example": example});
        violations_of(&with_component(&header))
    };
    let surplus = "/components/1/example/header_text samples-count".to_owned();
    let long = format!("Hi {{{{1}}}} {}", "x".repeat(60));
    for (text, rule) in [
        ("Hi {{2}}", "placeholder-gap"),
        ("Hi {{1}} {{2}}", "placeholder-count"),
        ("Hi {{x}}", "placeholder-syntax"),
        (&*long, "too-long"),
    ] {
        assert_eq!(header(text), [format!("/components/1/text {rule}"), surplus.clone()], "{text}");
    }
}

#[test]
fn all_emoji_are_counted_in_one_violation() {
    assert_eq!(
        messages_of(&footer("😀 and 👍🏽")),
        ["/components/1/text contains 2 emoji, which are only allowed in bodies"]
    );
    assert_eq!(
        messages_of(&footer("😀")),
        ["/components/1/text contains an emoji, which is only allowed in bodies"]
    );
}

#[test]
fn samples_beside_an_unknown_field_are_still_missing() {
    let body = |text: &str, example: &Value| {
        with_components(&json!([{"type": "BODY", "text": text, "example": example}]))
    };
    let lines = ["/components/0/text placeholder-gap", "/components/0/example/body_text required"];
    assert_eq!(
        violations_of(&body("Hi {{1}} and {{3}} or so, bye", &json!({"comment": 1}))),
        lines
    );
    // Samples for named placeholders show that the format is wrong, not the samples.
    let named = json!({"body_text_named_params": [{"param_name": "a", "example": "x"}]});
    assert_eq!(
        violations_of(&body("Hi {{a}} and bye", &named)),
        [lines[0].replace("gap", "syntax")]
    );
    // Nothing is known about the samples of an empty text.
    assert_eq!(violations_of(&body(" ", &named)), ["/components/0/text empty"]);
}
