//! Messages and hints of violations, and that all of them are reported together.

use serde_json::{Value, json};

use super::fixture::{
    authentication, button, carousel, header, named, numbered, offer, products, rendered, template,
    try_render, violation_lines,
};

fn only(template: &galley_domain::template::Template, values: &Value) -> Value {
    let violations = try_render(template, values).unwrap_err();
    let [violation] = violations.listed() else { panic!("{violations:?}") };
    serde_json::to_value(violation).unwrap()
}

#[test]
fn violations_have_a_pointer_a_message_and_a_hint() {
    let by_name = |body: Value| json!({"header": {"who": "Ada"}, "body": body, "buttons": {"0": "a", "1": "b"}});
    for (template, values, expected) in [
        (
            named(),
            by_name(json!({"first_name": "Ada"})),
            json!({"pointer": "/body/order", "rule": "value-missing",
                "message": "is missing: the value of `{{order}}` in the body", "hint": "for example `4711`"}),
        ),
        (
            named(),
            by_name(json!({"first_name": "Ada", "order": "1", "Ordr": "1"})),
            json!({"pointer": "/body/Ordr", "rule": "value-superfluous",
                "message": "unknown member `Ordr`", "hint": "did you mean `order`?"}),
        ),
        (
            numbered(),
            json!({"header": ["1"], "body": ["Ada"]}),
            json!({"pointer": "/body/1", "rule": "value-missing",
                "message": "is missing: the value of `{{2}}` in the body", "hint": "for example `4711`"}),
        ),
        (
            numbered(),
            json!({"header": ["1"], "body": ["Ada", 7]}),
            json!({"pointer": "/body/1", "rule": "wrong-type",
                "message": "must be a string, not a number", "hint": "write it in quotes: `\"7\"`"}),
        ),
        (
            numbered(),
            json!({"header": ["1"], "body": ["Ada", "2"], "ofer": 1}),
            json!({"pointer": "/ofer", "rule": "value-superfluous",
                "message": "unknown member `ofer`", "hint": "did you mean `offer`?"}),
        ),
        (
            offer(true),
            json!({"offer": 1_794_733_800_000_i64, "buttons": {"0": "A", "1": "x"}}),
            json!({"pointer": "/buttons/1", "rule": "value-superfluous",
                "message": "button 1 does not take a value", "hint": "buttons that take a value: `0`"}),
        ),
    ] {
        assert_eq!(only(&template, &values), expected, "{values}");
    }
}

#[test]
fn all_violations_are_reported_together() {
    let invalid = json!({"header": {"who": "a\nb", "when": "x"}, "body": {"order": 7},
        "buttons": {"0": "a b", "2": "x"}, "cards": [1], "x": 1});
    assert_eq!(
        violation_lines(&named(), &invalid),
        [
            "/x value-superfluous",
            "/cards value-superfluous",
            "/header/when value-superfluous",
            "/header/who value-line-break",
            "/body/first_name value-missing",
            "/body/order wrong-type",
            "/buttons/2 value-superfluous",
            "/buttons/0 url-white-space",
            "/buttons/1 value-missing",
        ]
    );
    let missing = ["header", "body/0", "buttons/1"];
    let lines = [0, 1].map(|card| missing.map(|it| format!("/cards/{card}/{it} value-missing")));
    assert_eq!(violation_lines(&carousel(), &json!({})), lines.concat());
}

#[test]
fn objects_must_have_exactly_the_expected_members() {
    let items =
        |section: Value| json!({"thumbnail_product_retailer_id": "k", "sections": [section]});
    let item = json!({"product_retailer_id": "k"});
    let odd = json!({"product_retailer_id": "k", "quantity": 2});
    let mut more = items(json!({"title": "t", "product_items": [item]}));
    more["footer"] = json!("f");
    for (kind, value, line) in [
        ("MPM", more, "/footer value-superfluous"),
        (
            "MPM",
            items(json!({"title": "t", "product_items": [item], "x": 1})),
            "/sections/0/x value-superfluous",
        ),
        (
            "MPM",
            items(json!({"title": "t", "product_items": [odd]})),
            "/sections/0/product_items/0/quantity value-superfluous",
        ),
        ("MPM", items(json!({"product_items": [item]})), "/sections/0/title value-missing"),
        ("VOICE_CALL", json!({"ttl": 9}), "/ttl value-superfluous"),
    ] {
        let template = button(&json!({"type": kind, "text": "t"}));
        let lines = violation_lines(&template, &json!({"buttons": {"0": value}}));
        assert_eq!(lines, [format!("/buttons/0{line}")], "{value}");
    }
    for (latitude, longitude, lines) in [
        (-90.0, -180.0, &[][..]),
        (-90.1, -180.1, &["/header/latitude number-range", "/header/longitude number-range"]),
    ] {
        let place =
            json!({"latitude": latitude, "longitude": longitude, "name": "n", "address": "a"});
        assert_eq!(violation_lines(&header("LOCATION"), &json!({"header": place})), lines);
    }
}

#[test]
fn the_unit_of_one_minute_is_singular() {
    for (minutes, text) in
        [(1, "The code is good for 1 minute."), (2, "The code is good for 2 minutes.")]
    {
        let footer = json!({"type": "FOOTER", "code_expiration_minutes": minutes});
        let otp = json!({"type": "OTP", "otp_type": "COPY_CODE"});
        let template = authentication(&json!({}), Some(footer), &otp);
        assert_eq!(rendered(&template, &json!({"body": "1"})).0["footer"], text);
    }
}

#[test]
fn unexpected_values_are_reported_unless_they_are_empty() {
    let fixed = template(&json!([{"type": "HEADER", "format": "TEXT", "text": "h"},
        {"type": "BODY", "text": "b"}]));
    let bare = template(&json!([{"type": "BODY", "text": "b"}]));
    let product = json!({"product_retailer_id": "k", "catalog_id": "c"});
    let card =
        |body: Value| json!({"cards": [{"header": product}, {"header": product, "body": body}]});
    for (template, place, value) in [
        (&fixed, "/header", json!({"header": ["x"]})),
        (&fixed, "/header", json!({"header": {"x": "y"}})),
        (&fixed, "/header", json!({"header": "https://a.b"})),
        (&fixed, "/body", json!({"body": ["x"]})),
        (&bare, "/header", json!({"header": ["x"]})),
        (&products(), "/cards/1/body", card(json!(["x"]))),
    ] {
        assert_eq!(
            violation_lines(template, &value),
            [format!("{place} value-superfluous")],
            "{value}"
        );
    }
    let empty =
        json!({"header": [], "body": {}, "buttons": {"0": null}, "cards": [], "offer": null});
    assert_eq!(violation_lines(&fixed, &empty), [""; 0]);
    assert_eq!(violation_lines(&bare, &empty), [""; 0]);
    assert_eq!(violation_lines(&products(), &card(json!([null]))), [""; 0]);
}
