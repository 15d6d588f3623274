//! Parameters of buttons.

use serde_json::{Value, json};

use super::{button as sent, component, details, lines, named_text, text, texts};
use crate::render_whatsapp::fixture::{button, named, offer, template};

fn of(kind: &str) -> galley_domain::template::Template {
    button(&match kind {
        "URL" => {
            json!({"type": kind, "text": "t", "url": "https://a.example/{{1}}", "example": ["x"]})
        }
        "PHONE_NUMBER" => json!({"type": kind, "text": "t", "phone_number": "+15550001111"}),
        "COPY_CODE" => json!({"type": kind, "example": "SAVE25"}),
        "FLOW" => json!({"type": kind, "text": "t", "flow_id": "1"}),
        "SPM" | "REQUEST_CONTACT_INFO" => json!({"type": kind}),
        _ => json!({"type": kind, "text": "t"}),
    })
}

fn action(action: &Value) -> Value {
    json!([{"type": "action", "action": action}])
}

#[test]
fn the_parameters_of_every_type_of_button_are_read() {
    let sections =
        json!([{"title": "Tea", "x": 1, "product_items": [{"product_retailer_id": "k", "y": 2}]}]);
    let items = json!({"thumbnail_product_retailer_id": "k", "sections": sections, "z": 3});
    let flow = json!({"flow_token": "t", "flow_action_data": {"a": 1}, "x": 1});
    let payload = json!([{"type": "payload", "payload": "yes\n4711"}]);
    let ttl =
        json!([{"type": "ttl_minutes", "ttl_minutes": 60}, {"type": "payload", "payload": "p"}]);
    let coupon = json!([{"type": "coupon_code", "coupon_code": "SAVE25"}]);
    for (kind, sub_type, parameters) in [
        ("QUICK_REPLY", "quick_reply", payload),
        ("URL", "url", json!([text("x/y")])),
        ("COPY_CODE", "copy_code", coupon),
        ("FLOW", "flow", action(&json!({}))),
        ("FLOW", "flow", action(&flow)),
        ("CATALOG", "catalog", action(&json!({"thumbnail_product_retailer_id": "k"}))),
        ("CATALOG", "catalog", action(&json!({}))),
        ("MPM", "mpm", action(&items)),
        ("ORDER_DETAILS", "order_details", action(&json!({"order_details": {"a": [1]}}))),
        ("VOICE_CALL", "voice_call", ttl),
    ] {
        let texts = texts(&of(kind), &json!([sent(sub_type, 0, &parameters)]));
        assert_eq!(texts["buttons"][0]["type"], kind, "{parameters}");
    }
}

#[test]
fn the_recipient_reads_the_whole_url_and_the_code() {
    let components = json!([sent("url", 0, &json!([text("x?y=z")]))]);
    assert_eq!(texts(&of("URL"), &components)["buttons"][0]["url"], "https://a.example/x?y=z");
    let code = json!([{"type": "coupon_code", "coupon_code": "SAVE25"}]);
    let components = json!([sent("copy_code", 0, &code)]);
    assert_eq!(texts(&of("COPY_CODE"), &components)["buttons"][0]["code"], "SAVE25");
}

#[test]
fn an_index_is_a_number_or_a_string_and_a_sub_type_has_any_letter_case() {
    for index in [json!(0), json!("0"), json!(0.0), json!(" 0 ")] {
        for sub_type in ["url", "URL", "Url"] {
            let component = json!({"type": "BUTTON", "sub_type": sub_type, "index": index,
                "parameters": [text("x")]});
            let texts = texts(&of("URL"), &json!([component]));
            assert_eq!(texts["buttons"][0]["url"], "https://a.example/x");
        }
    }
}

#[test]
fn a_button_without_its_parameter_is_refused_with_131008() {
    for (kind, name) in [
        ("URL", "Url"),
        ("COPY_CODE", "CopyCode"),
        ("FLOW", "Flow"),
        ("MPM", "Mpm"),
        ("ORDER_DETAILS", "OrderDetails"),
    ] {
        let expected = format!("buttons: Button at index 0 of type {name} requires a parameter");
        assert_eq!(details(&of(kind), &json!([])), (131_008, expected.clone()));
        let empty = json!([sent(&kind.to_lowercase(), 0, &json!([]))]);
        assert_eq!(details(&of(kind), &empty), (131_008, expected));
        assert_eq!(lines(&of(kind), &empty), ["131008 /0/parameters"]);
    }
}

#[test]
fn optional_parameters_of_buttons_may_be_left_out() {
    for kind in ["QUICK_REPLY", "CATALOG", "VOICE_CALL", "PHONE_NUMBER", "REQUEST_CONTACT_INFO"] {
        assert_eq!(texts(&of(kind), &json!([]))["buttons"][0]["type"], kind);
    }
    for kind in ["QUICK_REPLY", "CATALOG", "VOICE_CALL"] {
        let empty = json!([sent(&kind.to_lowercase(), 0, &json!([]))]);
        assert_eq!(texts(&of(kind), &empty)["buttons"][0]["type"], kind);
    }
}

#[test]
fn a_parameter_for_a_button_without_values_is_refused_with_132012() {
    let expected = "buttons: Button at index 0 is of type Call and does not support parameters";
    let components = json!([sent("url", 0, &json!([text("x")]))]);
    assert_eq!(details(&of("PHONE_NUMBER"), &components), (132_012, expected.to_owned()));
    let fixed = button(&json!({"type": "URL", "text": "t", "url": "https://a.example"}));
    let expected = "buttons: Button at index 0 is of type Url and does not support parameters";
    assert_eq!(details(&fixed, &components), (132_012, expected.to_owned()));
}

#[test]
fn a_component_for_another_type_of_button_is_refused_with_132012() {
    let components = json!([sent("quick_reply", 0, &json!([text("x")]))]);
    let expected = "buttons: Button at index 0 is of type Url, not quick_reply";
    assert_eq!(details(&of("URL"), &components), (132_012, expected.to_owned()));
    let components = json!([sent("url", 0, &json!([{"type": "payload", "payload": "x"}]))]);
    let expected = "buttons: button 0: Format mismatch, expected TEXT, received PAYLOAD";
    assert_eq!(details(&of("URL"), &components), (132_012, expected.to_owned()));
}

#[test]
fn a_component_that_does_not_name_its_button_is_refused() {
    let component = |sub_type: Value, index: Value| json!([{"type": "button", "sub_type": sub_type, "index": index, "parameters": [text("x")]}]);
    for (components, expected) in [
        (component(json!("url"), Value::Null), vec!["131008 /0/index"]),
        (component(json!("url"), json!("first")), vec!["131009 /0/index"]),
        (component(json!("url"), json!(-1)), vec!["131009 /0/index"]),
        (component(json!("url"), json!([])), vec!["131009 /0/index"]),
        (component(json!("url"), json!(1)), vec!["132012 /0/index"]),
        (component(Value::Null, json!(0)), vec!["131008 /0/sub_type", "131008 "]),
        (component(json!("link"), json!(0)), vec!["131009 /0/sub_type", "131008 "]),
        (component(json!(7), json!(0)), vec!["131009 /0/sub_type", "131008 "]),
    ] {
        assert_eq!(lines(&of("URL"), &components), expected, "{components}");
    }
}

#[test]
fn two_components_for_one_button_are_refused_with_131009() {
    let one = sent("url", 0, &json!([text("x")]));
    assert_eq!(lines(&of("URL"), &json!([one, one])), ["131009 /1/index"]);
}

#[test]
fn a_second_parameter_of_a_button_is_refused_with_132000() {
    let components = json!([sent("url", 0, &json!([text("x"), text("y")]))]);
    let expected =
        "buttons: button 0: number of params (2) does not match the expected number of params (1)";
    assert_eq!(details(&of("URL"), &components), (132_000, expected.to_owned()));
}

#[test]
fn the_end_of_a_url_is_checked() {
    let end = |end: &str| json!([sent("url", 0, &json!([text(end)]))]);
    let at = "/0/parameters/0/text";
    for (value, code) in [("", 132_018), (" ", 132_018), ("a b", 131_009), ("a\nb", 132_018)] {
        assert_eq!(lines(&of("URL"), &end(value)), [format!("{code} {at}")], "{value:?}");
    }
    assert_eq!(lines(&of("URL"), &end(&"x".repeat(2_000))), [format!("132005 {at}")]);
    let bare = button(
        &json!({"type": "URL", "text": "t", "url": "https://a.example{{1}}", "example": ["/x"]}),
    );
    assert_eq!(lines(&bare, &end(".evil.example/")), [format!("131009 {at}")]);
}

#[test]
fn the_parameter_of_a_url_may_have_the_name_of_its_placeholder() {
    let message = |parameter: Value| {
        json!([
            component("header", &json!([named_text("who", "Ada")])),
            component("body", &json!([named_text("first_name", "Ada"), named_text("order", "1")])),
            sent("url", 0, &json!([parameter])),
            sent("url", 1, &json!([named_text("any", "b")])),
        ])
    };
    for parameter in [named_text("path", "a"), text("a")] {
        let texts = texts(&named(), &message(parameter));
        assert_eq!(texts["buttons"][0]["url"], "https://shop.example/a");
    }
    let expected = "buttons: button 0: the URL has the parameter `path`, not `way`";
    let components = message(named_text("way", "a"));
    assert_eq!(details(&named(), &components), (132_012, expected.to_owned()));
}

#[test]
fn codes_payloads_and_call_times_are_checked() {
    let coupon = |code: &str| json!([{"type": "coupon_code", "coupon_code": code}]);
    let payload = |payload: &str| json!([{"type": "payload", "payload": payload}]);
    let ttl = |minutes: Value| json!([{"type": "ttl_minutes", "ttl_minutes": minutes}]);
    for (kind, parameters, expected) in [
        ("COPY_CODE", coupon(&"X".repeat(21)), "131009 /coupon_code"),
        ("COPY_CODE", coupon("25 %"), "131009 /coupon_code"),
        ("COPY_CODE", coupon(""), "132018 /coupon_code"),
        ("QUICK_REPLY", payload(&"x".repeat(257)), "131009 /payload"),
        ("QUICK_REPLY", payload(""), "131009 /payload"),
        ("VOICE_CALL", payload(&"x".repeat(513)), "131009 /payload"),
        ("VOICE_CALL", ttl(json!(0)), "131009 /ttl_minutes"),
        ("VOICE_CALL", ttl(json!(43_201)), "131009 /ttl_minutes"),
        ("VOICE_CALL", ttl(json!("60")), "131009 /ttl_minutes"),
        ("VOICE_CALL", json!([text("x")]), "132012 /type"),
    ] {
        let components = json!([sent(&kind.to_lowercase(), 0, &parameters)]);
        let expected = expected.replacen(' ', " /0/parameters/0", 1);
        assert_eq!(lines(&of(kind), &components), [expected], "{parameters}");
    }
    let twice = json!([payload("a")[0], payload("b")[0]]);
    let components = json!([sent("voice_call", 0, &twice)]);
    assert_eq!(lines(&of("VOICE_CALL"), &components), ["131009 /0/parameters/1"]);
}

#[test]
fn actions_are_checked() {
    let at = "/0/parameters/0/action";
    let section = |items: Value| {
        json!({"thumbnail_product_retailer_id": "k",
            "sections": [{"title": "t", "product_items": items}]})
    };
    for (kind, given, expected) in [
        ("FLOW", Value::Null, format!("131008 {at}")),
        ("FLOW", json!([]), format!("131009 {at}")),
        ("FLOW", json!({"flow_token": 7}), format!("131009 {at}/flow_token")),
        ("FLOW", json!({"flow_action_data": 7}), format!("131009 {at}/flow_action_data")),
        (
            "CATALOG",
            json!({"thumbnail_product_retailer_id": 7}),
            format!("131009 {at}/thumbnail_product_retailer_id"),
        ),
        ("MPM", section(json!([])), format!("131008 {at}/sections/0/product_items")),
        (
            "MPM",
            section(json!([{}])),
            format!("131008 {at}/sections/0/product_items/0/product_retailer_id"),
        ),
        (
            "MPM",
            section(json!(vec![json!({"product_retailer_id": "k"}); 31])),
            format!("131009 {at}/sections"),
        ),
        ("ORDER_DETAILS", json!({}), format!("131008 {at}/order_details")),
        ("ORDER_DETAILS", json!({"order_details": {}}), format!("131009 {at}/order_details")),
        ("ORDER_DETAILS", json!({"order_details": 7}), format!("131009 {at}/order_details")),
    ] {
        let components = json!([sent(&kind.to_lowercase(), 0, &action(&given))]);
        assert_eq!(lines(&of(kind), &components), [expected], "{given}");
    }
}

#[test]
fn an_offer_needs_its_end_in_milliseconds() {
    let coupon = sent("copy_code", 0, &json!([{"type": "coupon_code", "coupon_code": "A"}]));
    let end = |parameters: Value| json!([component("limited_time_offer", &parameters), coupon]);
    let ms = |ms: Value| {
        end(
            json!([{"type": "limited_time_offer", "limited_time_offer": {"expiration_time_ms": ms}}]),
        )
    };
    let shown = &texts(&offer(true), &ms(json!(1_794_733_800_000_i64)))["offer"];
    assert_eq!(shown, &json!({"text": "Now", "expiration_time_ms": 1_794_733_800_000_i64}));
    let at = "/0/parameters/0/limited_time_offer/expiration_time_ms";
    for (components, expected) in [
        (json!([coupon]), "131008 ".to_owned()),
        (end(json!([])), "131008 /0/parameters".to_owned()),
        (end(json!([text("x")])), "132012 /0/parameters/0/type".to_owned()),
        (ms(Value::Null), format!("131008 {at}")),
        (ms(json!("2026-11-15T09:30:00Z")), format!("131009 {at}")),
        // Seconds, as some clients send them.
        (ms(json!(1_794_733_800)), format!("131009 {at}")),
    ] {
        assert_eq!(lines(&offer(true), &components), [expected], "{components}");
    }
    let components = ms(json!(1_794_733_800_000_i64));
    assert_eq!(lines(&offer(false), &components), ["132012 /0/parameters"]);
}

#[test]
fn a_tap_target_has_a_url_and_a_title() {
    let fixed = template(&json!([{"type": "BODY", "text": "b"}]));
    let target = |targets: Value| {
        json!([component(
            "tap_target_configuration",
            &json!([
            {"type": "tap_target_configuration", "tap_target_configuration": targets}])
        )])
    };
    let whole = target(json!([{"url": "https://shop.example", "title": "Shop"}]));
    assert_eq!(texts(&fixed, &whole), json!({"body": "b"}));
    let at = "/0/parameters/0/tap_target_configuration";
    for (components, expected) in [
        (target(json!({})), vec![format!("131009 {at}")]),
        (target(json!([])), vec![format!("131009 {at}")]),
        (target(json!([{}])), vec![format!("131008 {at}/0/url"), format!("131008 {at}/0/title")]),
        (
            target(json!([{"url": "shop", "title": " "}])),
            vec![format!("131009 {at}/0/title"), format!("131009 {at}/0/url")],
        ),
        (target(json!([{"url": 7, "title": "t"}])), vec![format!("131009 {at}/0/url")]),
        (json!([{"type": "tap_target_configuration"}]), vec!["132000 /0/parameters".to_owned()]),
    ] {
        assert_eq!(lines(&fixed, &components), expected, "{components}");
    }
}
