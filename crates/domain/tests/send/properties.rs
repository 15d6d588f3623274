//! Properties of sends: no message causes a panic, and violations are at values of the message or
//! inside a value that lacks something.

use galley_domain::{rulebook::Category, send::RefusalCode, template::Template};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{button, component, message, named_text, text, try_message};
use crate::render_whatsapp::fixture::{carousel, code, header, named, numbered, offer, stored};

/// Templates with the components of a valid message.
fn valid() -> Vec<(Template, Value)> {
    let image = component("header", &json!([{"type": "image", "image": {"id": "7"}}]));
    let card = |index: usize| {
        json!({"card_index": index, "components": [
            image, component("body", &json!([text("9")])), button("url", 1, &json!([text("x")]))]})
    };
    let end = json!([{"type": "limited_time_offer",
        "limited_time_offer": {"expiration_time_ms": 1_794_733_800_000_i64}}]);
    let coupon = json!([{"type": "coupon_code", "coupon_code": "A"}]);
    let price = json!({"type": "currency",
        "currency": {"fallback_value": "$1", "code": "USD", "amount_1000": 1000}});
    let one = json!([text("123456")]);
    let kinds = ["QUICK_REPLY", "FLOW", "CATALOG", "MPM", "ORDER_DETAILS", "VOICE_CALL"];
    let buttons: Vec<Value> = kinds.map(|it| json!({"type": it, "text": "t"})).into();
    let content = json!({"components": [{"type": "BODY", "text": "b"},
        {"type": "BUTTONS", "buttons": buttons}]});
    let action = |action: Value| json!([{"type": "action", "action": action}]);
    let sections = json!([{"title": "t", "product_items": [{"product_retailer_id": "k"}]}]);
    vec![
        (
            numbered(),
            json!([
                component("header", &json!([text("1")])),
                component("body", &json!([text("a"), price]))
            ]),
        ),
        (
            named(),
            json!([
                component("header", &json!([named_text("who", "w")])),
                component(
                    "body",
                    &json!([named_text("order", "1"), named_text("first_name", "a")])
                ),
                button("url", 0, &json!([named_text("path", "x")])),
                button("url", 1, &json!([text("y")])),
            ]),
        ),
        (header("IMAGE"), json!([image])),
        (code(), json!([component("body", &one), button("url", 0, &one)])),
        (
            offer(true),
            json!([component("limited_time_offer", &end), button("copy_code", 0, &coupon)]),
        ),
        (carousel(), json!([{"type": "carousel", "cards": [card(0), card(1)]}])),
        (
            stored(Category::Utility, &content.to_string()),
            json!([
                button("quick_reply", 0, &json!([{"type": "payload", "payload": "p"}])),
                button("flow", 1, &action(json!({"flow_token": "t"}))),
                button("catalog", 2, &action(json!({"thumbnail_product_retailer_id": "k"}))),
                button(
                    "mpm",
                    3,
                    &action(json!({"thumbnail_product_retailer_id": "k", "sections": sections}))
                ),
                button("order_details", 4, &action(json!({"order_details": {"a": 1}}))),
                button("voice_call", 5, &json!([{"type": "ttl_minutes", "ttl_minutes": 5}])),
            ]),
        ),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_i64..3).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z\u{e9}]{0,1100}".prop_map(Value::from),
        prop::sample::select(vec![
            "a\nb",
            "a      b",
            "",
            "header",
            "BODY",
            "button",
            "carousel",
            "text",
            "image",
            "currency",
            "payload",
            "url",
            "flow",
            "voice_call",
            "0",
            "1",
            "who",
            "order",
        ])
        .prop_map(Value::from),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "type",
        "sub_type",
        "index",
        "parameters",
        "text",
        "parameter_name",
        "image",
        "id",
        "link",
        "cards",
        "card_index",
        "components",
        "currency",
        "fallback_value",
        "payload",
        "action",
        "limited_time_offer",
        "tap_target_configuration",
        "template",
        "to",
    ]);
    leaf().prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|members| {
                Value::Object(members.into_iter().map(|(key, it)| (key.to_owned(), it)).collect())
            }),
        ]
    })
}

/// Pointers to everything inside a value.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                pointers(value, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// Whether a message is accepted, or refused at values that it has. What is missing is not there.
fn is_consistent(template: &Template, message: &Value) -> Result<bool, TestCaseError> {
    let Err(refusal) = try_message(template, message) else { return Ok(true) };
    prop_assert!(!refusal.violations.is_empty() && refusal.violations.len() <= 100);
    for it in &refusal.violations {
        let may_be_absent = [
            RefusalCode::ParameterMissing,
            RefusalCode::ParameterCount,
            RefusalCode::ParameterFormat,
        ]
        .contains(&it.code);
        prop_assert!(may_be_absent || message.pointer(&it.pointer).is_some(), "{it:?}");
        prop_assert!(!it.message.is_empty());
    }
    Ok(false)
}

#[test]
fn valid_messages_are_accepted() {
    for (template, components) in valid() {
        let result = try_message(&template, &message(&components));
        assert!(result.is_ok(), "{components}: {result:?}");
    }
}

proptest! {
    #[test]
    fn no_message_causes_a_panic(any in any_value(), components in any_value()) {
        for (template, _) in valid() {
            is_consistent(&template, &any)?;
            is_consistent(&template, &message(&components))?;
        }
    }

    #[test]
    fn a_valid_message_with_one_change_is_accepted_or_refused_where_it_is_wrong(
        which in 0_usize..7,
        place in any::<prop::sample::Index>(),
        change in prop_oneof![leaf(), any_value()],
    ) {
        let (template, components) = valid().swap_remove(which);
        let mut message = message(&components);
        let mut found = Vec::new();
        pointers(&message, "", &mut found);
        let pointer: &String = place.get(&found);
        *message.pointer_mut(pointer).unwrap() = change;
        is_consistent(&template, &message)?;
    }

    #[test]
    fn a_component_that_is_left_out_is_reported_unless_it_is_optional(
        which in 0_usize..7,
        place in any::<prop::sample::Index>(),
    ) {
        let (template, mut components) = valid().swap_remove(which);
        let list = components.as_array_mut().unwrap();
        let removed = list.remove(place.index(list.len()));
        let is_optional = ["quick_reply", "catalog", "voice_call"]
            .iter()
            .any(|it| removed["sub_type"] == *it);
        prop_assert_eq!(is_consistent(&template, &message(&components))?, is_optional);
    }
}
