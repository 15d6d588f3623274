//! Length limits: a filled text has the same limit as a text without placeholders.

use std::time::{Duration, Instant};

use galley_domain::template::Template;
use serde_json::{Value, json};

use super::fixture::{
    button, code, header, media, offer, read, stored, template, try_text, violation_lines,
};

/// A document with one component and its text.
type Made<'a> = &'a dyn Fn(&str) -> Value;

fn document(components: &Value) -> Value {
    json!({"name": "n", "language": "en_US", "category": "MARKETING", "components": components})
}

fn example(text: &str, key: &str, samples: &Value) -> Value {
    let mut part = json!({"text": text});
    if text.contains("{{1}}") {
        part["example"] = json!({key: samples});
    }
    part
}

fn with(mut part: Value, members: &Value) -> Value {
    part.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    part
}

fn body(text: &str) -> Value {
    with(json!({"type": "BODY"}), &example(text, "body_text", &json!([["x"]])))
}

#[test]
fn a_filled_text_has_the_limit_of_a_text_without_placeholders() {
    let headline = |text: &str| {
        let part = example(text, "header_text", &json!(["x"]));
        let header = with(json!({"type": "HEADER", "format": "TEXT"}), &part);
        document(&json!([{"type": "BODY", "text": "b"}, header]))
    };
    let footed = |text: &str| document(&json!([body(text), {"type": "FOOTER", "text": "f"}]));
    let in_offer = |text: &str| {
        document(&json!([body(text),
            {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Now"}},
            {"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Go", "url": "https://a.b"}]}]))
    };
    let product = |text: &str| {
        document(&json!([body(text), {"type": "HEADER", "format": "PRODUCT"},
            {"type": "BUTTONS", "buttons": [{"type": "SPM"}]}]))
    };
    let card = |text: &str| {
        let card = json!({"components": [media("IMAGE"), body(text),
            {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "t"}]}]});
        document(
            &json!([{"type": "BODY", "text": "b"}, {"type": "CAROUSEL", "cards": [card, card]}]),
        )
    };
    let shown = json!({"product_retailer_id": "k", "catalog_id": "c"});
    let in_header = |value: &str| json!({"header": [value]});
    let in_body = |value: &str| json!({"body": [value]});
    let in_product = |value: &str| json!({"body": [value], "header": shown});
    let in_card = |value: &str| {
        let card = |value: &str| json!({"body": [value], "header": {"id": "7"}});
        json!({"cards": [card(value), card("x")]})
    };
    let rows: [(usize, Made<'_>, Made<'_>, &str); 5] = [
        (60, &headline, &in_header, "/header"),
        (1_024, &footed, &in_body, "/body"),
        (600, &in_offer, &in_body, "/body"),
        (160, &product, &in_product, "/body"),
        (160, &card, &in_card, "/cards/0/body"),
    ];
    for (limit, part, values, place) in rows {
        let rest = "abc def ghi jkl ";
        let text = |length: usize| format!("{rest}{}", "\u{e9}".repeat(length - rest.len()));
        assert!(read(&part(&text(limit))).is_ok(), "{place} {limit}");
        assert!(read(&part(&text(limit + 1))).is_err(), "{place} {limit}");
        let open = read(&part("abc {{1}}def ghi jkl ")).unwrap();
        let filled_to = |length: usize| values(&"\u{e9}".repeat(length - "abc def ghi jkl ".len()));
        assert_eq!(violation_lines(&open, &filled_to(limit)), [""; 0], "{place} {limit}");
        assert_eq!(violation_lines(&open, &filled_to(limit + 1)), [format!("{place} too-long")]);
    }
}

#[test]
fn the_values_of_a_body_without_other_components_have_a_total_limit() {
    let example = json!({"body_text": [["x", "y"]]});
    let text = "Hello there {{1}}, and hello to {{2}} as well";
    let alone = json!({"type": "BODY", "text": text, "example": example});
    let values = |length: usize| json!({"body": ["x", "\u{e9}".repeat(length - 1)]});
    let hi = template(&json!([alone]));
    assert_eq!(violation_lines(&hi, &values(32_768)), [""; 0]);
    assert_eq!(violation_lines(&hi, &values(32_769)), ["/body too-long"]);
    let violations = try_text(&hi, &values(32_770).to_string()).unwrap_err();
    let message = &violations.listed()[0].message;
    assert!(message.contains("32770 characters") && message.contains("at most 32768"), "{message}");
    for beside in [
        json!({"type": "FOOTER", "text": "f"}),
        json!({"type": "HEADER", "format": "TEXT", "text": "h"}),
        json!({"type": "CALL_PERMISSION_REQUEST"}),
    ] {
        let hi = template(&json!([alone, beside]));
        assert_eq!(violation_lines(&hi, &values(900)), [""; 0]);
        assert_eq!(violation_lines(&hi, &values(1_025)), ["/body too-long"], "{beside}");
    }
}

#[test]
fn values_outside_texts_have_limits() {
    let button_of = |kind: &str| button(&json!({"type": kind, "text": "t"}));
    let link =
        json!({"type": "URL", "text": "t", "url": "https://a.example/{{1}}", "example": ["x"]});
    let in_button = |value: &str| json!({"buttons": {"0": value}});
    let in_offer = |code: &str| json!({"offer": "2026-11-15T09:30:00Z", "buttons": {"0": code}});
    let rows: [(usize, Template, Made<'_>, &str); 7] = [
        (15, offer(true), &in_offer, "/buttons/0"),
        (15, code(), &|code| json!({"body": code}), "/body"),
        (20, button(&json!({"type": "COPY_CODE", "example": "x"})), &in_button, "/buttons/0"),
        (256, button_of("QUICK_REPLY"), &in_button, "/buttons/0"),
        (2_000 - "https://a.example/".len(), button(&link), &in_button, "/buttons/0"),
        (
            512,
            button_of("VOICE_CALL"),
            &|payload| json!({"buttons": {"0": {"payload": payload}}}),
            "/buttons/0/payload",
        ),
        (1_024, header("IMAGE"), &|id| json!({"header": {"id": id}}), "/header/id"),
    ];
    for (limit, template, values, place) in rows {
        assert_eq!(violation_lines(&template, &values(&"x".repeat(limit))), [""; 0], "{place}");
        assert_eq!(
            violation_lines(&template, &values(&"x".repeat(limit + 1))),
            [format!("{place} too-long")]
        );
    }
}

#[test]
fn hostile_values_cannot_cause_a_long_response() {
    let hi = template(&json!([body("Hello there {{1}} my friend")]));
    let list = format!(r#"{{"body":[{}"x"]}}"#, r#""x","#.repeat(50_000));
    let violations = try_text(&hi, &list).unwrap_err();
    assert_eq!((violations.listed().len(), violations.omitted()), (100, 49_900));
    let key = "~/\u{1}".repeat(30_000);
    let keys = json!({"body": ["x"], &key: 1, "buttons": {&key: 1}}).to_string();
    let answer = serde_json::to_string(try_text(&hi, &keys).unwrap_err().listed()).unwrap();
    assert!(answer.len() < 4_000, "{answer}");
    let content =
        json!({"components": [{"type": "BODY", "text": "{{1}}".repeat(200)}]}).to_string();
    let repeated = stored(galley_domain::rulebook::Category::Utility, &content);
    assert_eq!(
        violation_lines(&repeated, &json!({"body": ["x".repeat(200_000)]})),
        ["/body too-long"]
    );
}

#[test]
fn many_unknown_buttons_are_rejected_in_linear_time() {
    let reply = button(&json!({"type": "QUICK_REPLY", "text": "t"}));
    let keys: Vec<String> = (0..20_000).map(|it| format!("\"k{it}\":1")).collect();
    let keys = format!("{{{}}}", keys.join(","));
    let took = |values: &str| {
        let once = || {
            let begun = Instant::now();
            assert_eq!(try_text(&reply, values).unwrap_err().omitted(), 19_900);
            begun.elapsed()
        };
        (0..3).map(|_| once()).min().unwrap()
    };
    // Quadratic lookups would take a thousand times as long.
    let (plain, in_buttons) = (took(&keys), took(&format!(r#"{{"buttons":{keys}}}"#)));
    assert!(in_buttons < plain * 20 + Duration::from_millis(50), "{plain:?}, {in_buttons:?}");
}
