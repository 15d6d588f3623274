//! Properties of rendering templates of the `whatsapp` rulebook: no values or stored templates cause
//! a panic, and rendered texts respect the rulebook's limits.

use galley_domain::{
    document::Document,
    render,
    rulebook::{Category, WHATSAPP},
    template::Template,
    violation::{Rule, Violations},
};
use proptest::prelude::*;
use serde_json::{Value, json};

#[expect(clippy::disallowed_methods, reason = "what a store may have kept is tried here")]
fn stored(category: Category, content: &Value) -> Template {
    let (name, language) = ("n".to_owned(), "en_US".to_owned());
    Template::restore(name, language, category, true, content.to_string())
}

fn try_render(template: &Template, values: &Value) -> Result<Value, Violations> {
    let values = values.to_string();
    let values = Document::parse(values.as_bytes()).unwrap();
    let rendered = serde_json::to_value(render::render(template, &WHATSAPP, &values)?).unwrap();
    crate::send::assert_read_back(template, &rendered);
    Ok(rendered)
}

/// Templates that together have every component, each with valid values.
fn usual() -> Vec<(Category, Value, Value)> {
    let media = |format: &str| json!({"type": "HEADER", "format": format});
    let body = json!({"type": "BODY", "text": "Hi {{1}}, {{2}} and {{1}}."});
    let link = json!({"type": "URL", "text": "t", "url": "https://a.b/{{1}}"});
    let card =
        json!({"components": [media("VIDEO"), body, {"type": "BUTTONS", "buttons": [link]}]});
    let button = |kind: &str| json!({"type": kind, "text": "t"});
    let filled = json!({"header": {"id": "7"}, "body": ["a", "b"], "buttons": {"0": "x"}});
    vec![
        (
            Category::Marketing,
            json!({"parameter_format": "NAMED", "components": [
            {"type": "HEADER", "format": "TEXT", "text": "For {{who}}"},
            {"type": "BODY", "text": "Hi {{a}}, {{b}} and {{a}}."},
            {"type": "FOOTER", "text": "f"},
            {"type": "CALL_PERMISSION_REQUEST"},
            {"type": "BUTTONS", "buttons": [
                {"type": "URL", "text": "t", "url": "https://a.b/{{path}}"},
                button("QUICK_REPLY"), button("COPY_CODE"), button("FLOW"), button("VOICE_CALL"),
            ]}]}),
            json!({"header": {"who": "w"}, "body": {"a": "1", "b": "2"},
                "buttons": {"0": "x", "1": "p", "2": "A", "3": {"flow_token": "t"}, "4": 60}}),
        ),
        (
            Category::Marketing,
            json!({"components": [media("DOCUMENT"), body,
                {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "o", "has_expiration": true}},
                {"type": "BUTTONS", "buttons": [link]}]}),
            json!({"header": "https://a.b/c.pdf", "body": ["a", "b"], "buttons": {"0": "x"},
                "offer": "2026-11-15T09:30:00Z"}),
        ),
        (
            Category::Marketing,
            json!({"components": [body, {"type": "CAROUSEL", "cards": [card, card]}]}),
            json!({"body": ["a", "b"], "cards": [filled, filled]}),
        ),
        (
            Category::Utility,
            json!({"components": [media("LOCATION"), body, {"type": "BUTTONS", "buttons": [
                button("MPM"), button("CATALOG"), button("ORDER_DETAILS")]}]}),
            json!({"body": ["a", "b"],
                "header": {"latitude": 1, "longitude": "2", "name": "n", "address": "a"},
                "buttons": {"0": {"thumbnail_product_retailer_id": "k", "sections": [
                    {"title": "t", "product_items": [{"product_retailer_id": "k"}]}]},
                    "2": {"a": [1, null]}}}),
        ),
        (
            Category::Authentication,
            json!({"components": [{"type": "BODY", "add_security_recommendation": true},
                {"type": "FOOTER", "code_expiration_minutes": 5},
                {"type": "BUTTONS", "buttons": [{"type": "OTP", "text": "t"}]}]}),
            json!({"body": "123456"}),
        ),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z\u{e9}]{0,1100}".prop_map(Value::from),
        prop::sample::select(vec![
            "Ada",
            " ",
            "a\nb",
            "a      b",
            "https://a.b/c.pdf",
            "2026-11-15T09:30:00Z",
            "HEADER",
            "BODY",
            "BUTTONS",
            "CAROUSEL",
            "LIMITED_TIME_OFFER",
            "TEXT",
            "IMAGE",
            "LOCATION",
            "PRODUCT",
            "URL",
            "COPY_CODE",
            "OTP",
            "FLOW",
            "MPM",
            "VOICE_CALL",
            "NAMED",
            "https://a.b/{{1}}",
            "{{2}} {{1}}",
            "{{a}} {{",
            "{{",
        ])
        .prop_map(Value::from),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        9 => prop::sample::select(vec!["header", "body", "buttons", "cards", "offer", "0", "1", "a",
            "b", "who", "link", "id", "filename", "latitude", "name", "components", "type", "format",
            "text", "url", "parameter_format", "sections", "product_items", "limited_time_offer",
            "has_expiration", "flow_token", "ttl_minutes"]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    leaf().prop_recursive(5, 50, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Pointers to everything inside a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                places(value, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// The length of each text that has a limit.
fn is_short(texts: &Value, body: usize) -> bool {
    let within =
        |text: &Value, most: usize| text.as_str().is_none_or(|text| text.chars().count() <= most);
    let none = Vec::new();
    let buttons = texts["buttons"].as_array().unwrap_or(&none);
    let cards = texts["cards"].as_array().unwrap_or(&none);
    // A header other than a text is a URL, an id or a location.
    within(&texts["header"], 2_050)
        && within(&texts["body"], body)
        && buttons.iter().all(|it| within(&it["url"], 2_000) && within(&it["code"], 20))
        && cards.iter().all(|it| is_short(it, 160))
}

fn look(values: &Value, rendered: Result<Value, Violations>) -> Result<(), TestCaseError> {
    match rendered {
        Ok(rendered) => prop_assert!(is_short(&rendered["texts"], 1_024), "{}", rendered),
        Err(violations) => {
            for it in violations.listed() {
                let there = values.pointer(&it.pointer).is_some();
                prop_assert!(there || it.rule == Rule::ValueMissing, "{it:?}");
                prop_assert!(!it.message.is_empty() && it.hint.is_some(), "{it:?}");
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn nothing_sent_or_stored_makes_it_panic_and_what_is_refused_is_there(
        values in any_value(),
        content in any_value(),
    ) {
        for (category, usual, _) in usual() {
            look(&values, try_render(&stored(category, &usual), &values))?;
            look(&values, try_render(&stored(category, &content), &values))?;
        }
    }

    #[test]
    fn good_values_with_one_change_render_within_the_limits_or_are_refused_there(
        which in 0_usize..5,
        place in any::<prop::sample::Index>(),
        change in prop_oneof![leaf(), any_value()],
    ) {
        let (category, content, mut values) = usual().swap_remove(which);
        let template = stored(category, &content);
        prop_assert!(try_render(&template, &values).is_ok(), "{}", values);
        let mut found = Vec::new();
        places(&values, "", &mut found);
        let place: &String = place.get(&found);
        *values.pointer_mut(place).unwrap() = change;
        look(&values, try_render(&template, &values))?;
    }

    #[test]
    fn numbers_and_names_fill_alike(values in prop::collection::vec("[^\\p{Cc}\\s]{1,9}", 2)) {
        let body = |text: &str| json!([{"type": "BODY", "text": text}]);
        let numbered = json!({"components": body("é {{2}}{{1}} x {{2}}")});
        let named = json!({"parameter_format": "NAMED", "components": body("é {{b}}{{a}} x {{b}}")});
        let [a, b] = &values[..] else { unreachable!("two were made") };
        let by_number = try_render(&stored(Category::Utility, &numbered), &json!({"body": [a, b]}));
        let by_name = try_render(&stored(Category::Utility, &named), &json!({"body": {"b": b, "a": a}}));
        let filled = format!("é {b}{a} x {b}");
        prop_assert_eq!(&by_number.unwrap()["texts"]["body"], &filled);
        prop_assert_eq!(&by_name.unwrap()["texts"]["body"], &filled);
    }
}
