//! Cards of a carousel.

use serde_json::{Value, json};

use super::{button, component, details, lines, text, texts};
use crate::render_whatsapp::fixture::{carousel, products};

fn image(id: &str) -> Value {
    component("header", &json!([{"type": "image", "image": {"id": id}}]))
}

fn card(index: &Value, name: &str) -> Value {
    json!({"card_index": index, "components": [
        image(name),
        component("body", &json!([text(name)])),
        button("url", 1, &json!([text(name)])),
    ]})
}

fn message(cards: &Value) -> Value {
    json!([{"type": "carousel", "cards": cards}])
}

#[test]
fn cards_are_placed_by_their_index() {
    let cards = json!([card(&json!("1"), "b"), card(&json!(0), "a")]);
    let read = |name: &str| {
        json!({"header": name, "body": format!("Only {name} today, so hurry up."), "buttons": [
            {"type": "QUICK_REPLY", "text": "More"},
            {"type": "URL", "text": "Buy", "url": format!("https://shop.example/{name}")}]})
    };
    let expected = json!({"body": "b", "cards": [read("a"), read("b")]});
    assert_eq!(texts(&carousel(), &message(&cards)), expected);
}

#[test]
fn another_number_of_cards_is_refused_with_132000() {
    let expected = "carousel: number of cards (1) does not match the expected number of cards (2); missing: card_index 1";
    let one = message(&json!([card(&json!(0), "a")]));
    assert_eq!(details(&carousel(), &one), (132_000, expected.to_owned()));
    let expected = "carousel: number of cards (0) does not match the expected number of cards (2); missing: card_index 0, 1";
    assert_eq!(details(&carousel(), &json!([])), (132_000, expected.to_owned()));
    let three = json!([card(&json!(0), "a"), card(&json!(1), "b"), card(&json!(2), "c")]);
    assert_eq!(lines(&carousel(), &message(&three)), ["132000 /0/cards"]);
}

#[test]
fn violations_of_cards_name_the_card() {
    let second = json!({"card_index": 1, "components": [
        component("header", &json!([{"type": "video", "video": {"id": "1"}}])),
        component("body", &json!([text("a\nb")])),
    ]});
    let components = message(&json!([card(&json!(0), "a"), second]));
    let refusal = super::refusal(&carousel(), &components);
    let found: Vec<_> = refusal
        .violations
        .iter()
        .map(|it| (it.code.number(), it.pointer.as_str(), it.message.as_str()))
        .collect();
    let expected = [
        (
            132_012,
            "/template/components/0/cards/1/components/0/parameters/0/type",
            "carousel: card 1: header: Format mismatch, expected IMAGE, received VIDEO",
        ),
        (
            132_018,
            "/template/components/0/cards/1/components/1/parameters/0/text",
            "carousel: card 1: body: {{1}} contains a line break or a tab, which WhatsApp rejects in values",
        ),
        (
            131_008,
            "/template/components/0/cards/1/components",
            "carousel: card 1: buttons: Button at index 1 of type Url requires a parameter",
        ),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_card_without_a_valid_index_is_refused() {
    let first = card(&json!(0), "a");
    for (second, expected) in [
        (json!(7), "131009 /0/cards/1"),
        (card(&Value::Null, "b"), "131008 /0/cards/1/card_index"),
        (card(&json!("b"), "b"), "131009 /0/cards/1/card_index"),
        (card(&json!(0), "b"), "131009 /0/cards/1/card_index"),
        (card(&json!(2), "b"), "131009 /0/cards/1/card_index"),
    ] {
        assert_eq!(lines(&carousel(), &message(&json!([first, second]))), [expected], "{second}");
    }
}

#[test]
fn the_body_of_a_card_is_limited_to_160_characters() {
    let long = "x".repeat(150);
    let components = message(&json!([card(&json!(0), "a"), card(&json!(1), &long)]));
    assert_eq!(lines(&carousel(), &components), ["132005 /0/cards/1/components/1/parameters"]);
}

#[test]
fn a_message_has_two_to_ten_product_cards() {
    let card = |index: usize| {
        let product = json!({"product_retailer_id": "k", "catalog_id": "c"});
        json!({"card_index": index, "components": [
            component("header", &json!([{"type": "product", "product": product}]))]})
    };
    let cards = |count: usize| message(&(0..count).map(card).collect());
    for count in [2, 3, 10] {
        assert_eq!(texts(&products(), &cards(count))["cards"].as_array().unwrap().len(), count);
    }
    for count in [1, 11] {
        assert_eq!(lines(&products(), &cards(count)), ["132000 /0/cards"], "{count}");
    }
}

#[test]
fn a_card_has_no_cards_and_no_offer() {
    let mut first = card(&json!(0), "a");
    let inner = json!({"type": "carousel", "cards": [card(&json!(0), "x")]});
    first["components"].as_array_mut().unwrap().push(inner);
    let components = message(&json!([first, card(&json!(1), "b")]));
    assert_eq!(lines(&carousel(), &components), ["132012 /0/cards/0/components/3/cards"]);
}
