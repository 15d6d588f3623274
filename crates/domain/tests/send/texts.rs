//! Parameters of texts: header and body, numbered and named, and one-time codes.

use serde_json::{Value, json};

use super::{button, component, details, lines, named_text, refusal, text, texts};
use crate::render_whatsapp::fixture::{code, named, numbered, of, template};

fn numbered_message(body: &Value) -> Value {
    json!([component("header", &json!([text("4711")])), component("body", body)])
}

fn named_message(body: &Value) -> Value {
    json!([
        component("header", &json!([named_text("who", "Ada")])),
        component("body", body),
        button("url", 0, &json!([named_text("path", "a")])),
        button("url", 1, &json!([text("b")])),
    ])
}

#[test]
fn numbered_texts_are_filled_in_order() {
    let components = numbered_message(&json!([text("Ada"), text("{{1}}")]));
    assert_eq!(
        texts(&numbered(), &components),
        json!({"header": "Order 4711",
            "body": "Hello Ada, your order\n{{1}} is on its way, so Ada can wait."})
    );
}

#[test]
fn named_texts_are_filled_by_name_in_any_order() {
    let body = json!([named_text("order", "4711"), named_text("first_name", "Ada")]);
    let texts = texts(&named(), &named_message(&body));
    assert_eq!(texts["header"], "For Ada");
    assert_eq!(texts["body"], "Hello Ada, your order 4711 is on its way, Ada dear.");
}

#[test]
fn types_of_components_and_parameters_are_read_in_any_letter_case() {
    let components = json!([
        {"type": "HEADER", "parameters": [{"type": "TEXT", "text": "4711"}]},
        {"type": "Body", "parameters": [{"type": "Text", "text": "Ada"}, text("it")]},
    ]);
    assert_eq!(texts(&numbered(), &components)["header"], "Order 4711");
}

#[test]
fn a_currency_and_a_date_are_shown_as_their_fallback_value() {
    let price = json!({"type": "currency",
        "currency": {"fallback_value": "$100.99", "code": "USD", "amount_1000": 100_990}});
    let date = json!({"type": "date_time", "date_time": {"fallback_value": "May 1", "year": 2026}});
    let texts = texts(&numbered(), &numbered_message(&json!([price, date])));
    assert_eq!(
        texts["body"],
        "Hello $100.99, your order\nMay 1 is on its way, so $100.99 can wait."
    );
}

#[test]
fn a_currency_needs_its_fallback_value_its_code_and_its_amount() {
    let price = |currency: Value| {
        numbered_message(&json!([{"type": "currency", "currency": currency}, text("x")]))
    };
    let at = "/1/parameters/0/currency";
    for (currency, expected) in [
        (Value::Null, vec![format!("131008 {at}")]),
        (json!("USD"), vec![format!("131009 {at}")]),
        (
            json!({}),
            vec![
                format!("131008 {at}/code"),
                format!("131008 {at}/amount_1000"),
                format!("131008 {at}/fallback_value"),
            ],
        ),
        (
            json!({"fallback_value": "1\n2", "code": "dollar", "amount_1000": "1"}),
            vec![
                format!("132018 {at}/fallback_value"),
                format!("131009 {at}/code"),
                format!("131009 {at}/amount_1000"),
            ],
        ),
    ] {
        let mut found = lines(&numbered(), &price(currency));
        let mut expected = expected;
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
    let date = json!([{"type": "date_time", "date_time": {}}, text("x")]);
    let expected = ["131008 /1/parameters/0/date_time/fallback_value"];
    assert_eq!(lines(&numbered(), &numbered_message(&date)), expected);
}

#[test]
fn a_missing_numbered_parameter_is_named_with_132000() {
    let expected = "body: number of localizable_params (1) does not match the expected number of params (2); missing: {{2}}";
    let one = numbered_message(&json!([text("Ada")]));
    assert_eq!(details(&numbered(), &one), (132_000, expected.to_owned()));
    let expected = "body: number of localizable_params (0) does not match the expected number of params (2); missing: {{1}}, {{2}}";
    let header = component("header", &json!([text("4711")]));
    for none in [
        json!([header]),
        json!([header, {"type": "body"}]),
        json!([header, {"type": "body", "parameters": []}]),
        json!([header, {"type": "body", "parameters": null}]),
    ] {
        assert_eq!(details(&numbered(), &none), (132_000, expected.to_owned()), "{none}");
    }
    assert_eq!(lines(&numbered(), &json!([])), ["132000 ", "132000 "]);
    assert_eq!(lines(&numbered(), &Value::Null), ["132000 ", "132000 "]);
}

#[test]
fn a_missing_named_parameter_is_named_with_132000() {
    let expected = "body: number of localizable_params (1) does not match the expected number of params (2); missing: {{order}}";
    let one = named_message(&json!([named_text("first_name", "Ada")]));
    assert_eq!(details(&named(), &one), (132_000, expected.to_owned()));
}

#[test]
fn superfluous_parameters_are_refused_with_132000() {
    let three = numbered_message(&json!([text("Ada"), text("it"), text("more")]));
    let expected =
        "body: number of localizable_params (3) does not match the expected number of params (2)";
    assert_eq!(details(&numbered(), &three), (132_000, expected.to_owned()));
    let fixed = template(&json!([{"type": "HEADER", "format": "TEXT", "text": "h"},
        {"type": "BODY", "text": "b"}]));
    for part in ["header", "body"] {
        let components = json!([component(part, &json!([text("x")]))]);
        let expected = format!(
            "{part}: number of localizable_params (1) does not match the expected number of params (0)"
        );
        assert_eq!(details(&fixed, &components), (132_000, expected));
        assert_eq!(texts(&fixed, &json!([component(part, &json!([]))]))["body"], "b");
    }
}

#[test]
fn a_name_that_is_missing_unknown_or_repeated_is_refused_with_132012() {
    let name = |index: usize| format!("132012 /1/parameters/{index}/parameter_name");
    let ada = named_text("first_name", "Ada");
    for (body, message) in [
        (
            json!([ada, text("4711")]),
            "body: parameter_name is missing; the template has the named parameters {{first_name}}, {{order}}",
        ),
        (
            json!([ada, named_text("ordr", "4711")]),
            "body: the template has no parameter `ordr`: did you mean `order`?",
        ),
        (
            json!([ada, named_text("weekday", "Monday")]),
            "body: the template has no parameter `weekday`: {{first_name}}, {{order}}",
        ),
        (json!([ada, ada]), "body: {{first_name}} is given more than once"),
    ] {
        let components = named_message(&body);
        assert_eq!(details(&named(), &components), (132_012, message.to_owned()));
        assert_eq!(lines(&named(), &components), [name(1)]);
    }
    let body = json!([named_text("x", "1")]);
    assert_eq!(
        lines(&named(), &named_message(&body)),
        ["132000 /1/parameters".to_owned(), name(0)]
    );
}

#[test]
fn a_parameter_of_another_type_is_refused_with_132012() {
    let image = json!({"type": "image", "image": {"id": "7"}});
    let expected = "body: Format mismatch, expected TEXT, received IMAGE";
    let components = numbered_message(&json!([text("Ada"), image]));
    assert_eq!(details(&numbered(), &components), (132_012, expected.to_owned()));
    assert_eq!(lines(&numbered(), &components), ["132012 /1/parameters/1/type"]);
}

#[test]
fn a_parameter_that_is_not_well_formed_is_refused() {
    for (parameter, expected) in [
        (json!("Ada"), "131009 /1/parameters/0"),
        (Value::Null, "131009 /1/parameters/0"),
        (json!({"text": "Ada"}), "131008 /1/parameters/0/type"),
        (json!({"type": 7, "text": "Ada"}), "131009 /1/parameters/0/type"),
        (json!({"type": "text"}), "131008 /1/parameters/0/text"),
        (json!({"type": "text", "text": 7}), "131009 /1/parameters/0/text"),
    ] {
        let components = numbered_message(&json!([parameter, text("it")]));
        assert_eq!(lines(&numbered(), &components), [expected], "{parameter}");
    }
    let list =
        json!([component("header", &json!([text("1")])), {"type": "body", "parameters": "x"}]);
    assert_eq!(
        lines(&numbered(), &list),
        ["131009 /1/parameters", "132000 /1/parameters"],
        "the number of parameters is wrong, too"
    );
}

#[test]
fn a_value_with_line_breaks_tabs_many_spaces_or_nothing_is_refused_with_132018() {
    for value in ["a\nb", "a\rb", "a\tb", "a\u{2028}b", "a     b", "", "  ", "a\u{7}b"] {
        let components = numbered_message(&json!([text("Ada"), text(value)]));
        assert_eq!(lines(&numbered(), &components), ["132018 /1/parameters/1/text"], "{value:?}");
    }
    let components = numbered_message(&json!([text("Ada"), text("a    b")]));
    assert!(texts(&numbered(), &components)["body"].as_str().unwrap().contains("a    b"));
    let components = numbered_message(&json!([text("a\nb"), text("it")]));
    let expected = "body: {{1}} contains a line break or a tab, which WhatsApp rejects in values";
    assert_eq!(details(&numbered(), &components), (132_018, expected.to_owned()));
}

#[test]
fn a_text_that_is_too_long_after_filling_is_refused_with_132005() {
    let header = |length: usize| {
        let body = component("body", &json!([text("a"), text("b")]));
        json!([component("header", &json!([text(&"x".repeat(length))])), body])
    };
    assert!(texts(&numbered(), &header(54))["header"].as_str().unwrap().len() == 60);
    let expected = "header: filling it results in a text of 61 characters; at most 60 are allowed";
    assert_eq!(details(&numbered(), &header(55)), (132_005, expected.to_owned()));
    let long = text(&"x".repeat(1_000));
    let components = numbered_message(&json!([text("Ada"), long]));
    assert_eq!(lines(&numbered(), &components), ["132005 /1/parameters"]);
}

#[test]
fn the_values_of_a_template_with_only_a_body_may_have_32768_characters() {
    let bare = template(&json!([{"type": "BODY", "text": "Hello {{1}}, this is all.",
        "example": {"body_text": [["Ada"]]}}]));
    let body = |length: usize| json!([component("body", &json!([text(&"x".repeat(length))]))]);
    assert!(texts(&bare, &body(32_768)).is_object());
    assert_eq!(lines(&bare, &body(32_769)), ["132005 /0/parameters"]);
}

#[test]
fn the_body_of_an_offer_is_limited_to_600_characters() {
    let offer = template(&json!([
        {"type": "BODY", "text": "Hello {{1}}, this is all.", "example": {"body_text": [["Ada"]]}},
        {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Now"}},
        {"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Go", "url": "https://shop.example"}]},
    ]));
    let body = |length: usize| json!([component("body", &json!([text(&"x".repeat(length))]))]);
    assert!(texts(&offer, &body(580)).is_object());
    assert_eq!(lines(&offer, &body(590)), ["132005 /0/parameters"]);
}

#[test]
fn a_one_time_code_is_given_to_the_body_and_to_the_button() {
    let message = |body: &Value, button_code: &Value| {
        json!([component("body", body), button("url", 0, button_code)])
    };
    let one = json!([text("123456")]);
    assert_eq!(
        texts(&code(), &message(&one, &one)),
        json!({"body": "Your code is 123456.",
            "buttons": [{"type": "OTP", "text": "Copy code", "code": "123456"}]})
    );
    for (components, expected) in [
        (json!([component("body", &one)]), vec!["131008 "]),
        (json!([button("url", 0, &one)]), vec!["132000 "]),
        (json!([]), vec!["132000 ", "131008 "]),
        (message(&one, &json!([])), vec!["131008 /1/parameters"]),
        (message(&json!([]), &one), vec!["132000 /0/parameters"]),
        (message(&one, &json!([text("654321")])), vec!["131009 /1/parameters/0/text"]),
        (message(&one, &json!([{"type": "coupon_code"}])), vec!["132012 /1/parameters/0/type"]),
        (
            json!([component("body", &one), button("copy_code", 0, &one)]),
            vec!["132012 /1/sub_type"],
        ),
        (
            message(&json!([text("1\n2")]), &json!([text("1\n2")])),
            vec!["132018 /0/parameters/0/text"],
        ),
    ] {
        assert_eq!(lines(&code(), &components), expected, "{components}");
    }
    let long = json!([text(&"1".repeat(16))]);
    assert_eq!(lines(&code(), &message(&long, &long)), ["131009 /0/parameters/0/text"]);
    let header =
        json!([component("header", &one), component("body", &one), button("url", 0, &one)]);
    assert_eq!(lines(&code(), &header), ["132012 /0/parameters"]);
}

#[test]
fn a_parameter_for_a_part_that_the_template_does_not_have_is_refused_with_132012() {
    let bare = of("UTILITY", &json!([{"type": "BODY", "text": "b"}]));
    let image = json!({"type": "image", "image": {"id": "7"}});
    let offer = json!({"type": "limited_time_offer",
        "limited_time_offer": {"expiration_time_ms": 1_794_733_800_000_i64}});
    for (part, expected) in [
        (component("header", &json!([image])), "132012 /0/parameters"),
        (component("limited_time_offer", &json!([offer])), "132012 /0/parameters"),
        (json!({"type": "carousel", "cards": [{"card_index": 0}]}), "132012 /0/cards"),
        (button("url", 0, &json!([text("x")])), "132012 /0/index"),
        (json!({"type": "button", "sub_type": "voice_call"}), "132012 /0"),
    ] {
        assert_eq!(lines(&bare, &json!([part])), [expected], "{part}");
    }
    for part in ["header", "limited_time_offer"] {
        assert_eq!(texts(&bare, &json!([component(part, &json!([]))])), json!({"body": "b"}));
    }
}

#[test]
fn a_component_that_is_unknown_or_repeated_is_refused_with_131009() {
    let body = json!({"type": "body", "parameters": [text("Ada"), text("it")]});
    let header = component("header", &json!([text("1")]));
    for (extra, expected) in [
        (json!("body"), "131009 /2"),
        (Value::Null, "131009 /2"),
        (json!({}), "131008 /2/type"),
        (json!({"type": "footer"}), "131009 /2/type"),
        (json!({"type": 7}), "131009 /2/type"),
        (body.clone(), "131009 /2"),
    ] {
        assert_eq!(lines(&numbered(), &json!([header, body, extra])), [expected], "{extra}");
    }
    let unknown = refusal(&numbered(), &json!([header, body, {"type": "footer"}]));
    let expected = "components: type `footer` is unknown; known types: `header`, `body`, `button`, `limited_time_offer`, `carousel`, `tap_target_configuration`";
    assert_eq!(unknown.details, expected);
}
