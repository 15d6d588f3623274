//! Alternative notations and their stored form; authentication templates, placement rules and cards.

use galley_domain::rulebook::WHATSAPP;
use serde_json::{Value, json};

use super::fixture::*;

/// A text with enough words for three placeholders.
const LONG_TEXT: &str = "Hello there, this is the news for today";

/// The components as Galley stores them.
fn stored_components(document: &str) -> Value {
    let template = read(document).unwrap();
    let content: Value = serde_json::from_str(template.content()).unwrap();
    content["components"].clone()
}

#[test]
fn samples_are_accepted_in_every_notation_and_stored_in_one() {
    for samples in [json!([["Ada"]]), json!(["Ada"]), json!("Ada")] {
        let components = stored_components(&body("Hi {{1}} and bye", &samples));
        assert_eq!(components[0]["example"], json!({"body_text": [["Ada"]]}), "{samples}");
    }
    for sample in [json!("Ada"), json!(["Ada"])] {
        let header = json!({"type": "HEADER", "format": "TEXT", "text": "Hi {{1}}", "example": {"header_text": sample}});
        assert_eq!(
            stored_components(&with_component(&header))[1]["example"],
            json!({"header_text": ["Ada"]})
        );
        let image =
            json!({"type": "HEADER", "format": "image", "example": {"header_handle": sample}});
        assert_eq!(
            stored_components(&with_component(&image))[1]["example"],
            json!({"header_handle": ["Ada"]})
        );
        let link =
            json!({"type": "URL", "text": "Go", "url": "https://a.b/{{1}}", "example": sample});
        assert_eq!(stored_components(&button(&link))[1]["buttons"][0]["example"], json!(["Ada"]));
        let copy = json!({"type": "copy_code", "example": sample});
        let copied = json!({"type": "COPY_CODE", "text": "Copy offer code", "example": ["Ada"]});
        assert_eq!(stored_components(&button(&copy))[1]["buttons"][0], copied);
    }
    let samples = json!([{"example": "x", "param_name": "b", "more": 1}, {"param_name": "a", "example": "y"}]);
    let named =
        stored_components(&named(&format!("{LONG_TEXT} {{{{a}}}} and {{{{b}}}} bye"), &samples));
    let expected =
        json!([{"param_name": "b", "example": "x"}, {"param_name": "a", "example": "y"}]);
    assert_eq!(named[0]["example"], json!({"body_text_named_params": expected}));
}

#[test]
fn numeric_ids_are_accepted_and_stored_as_strings() {
    for id in [json!("17"), json!(17)] {
        let flow = button(&json!({"type": "FLOW", "text": "t", "flow_id": id}));
        assert_eq!(stored_components(&flow)[1]["buttons"][0]["flow_id"], "17", "{id}");
        let mut link = link();
        link["app_deep_link"] = json!({"meta_app_id": id, "android_deep_link": "shop://x"});
        assert_eq!(
            stored_components(&button(&link))[1]["buttons"][0]["app_deep_link"]["meta_app_id"],
            "17"
        );
    }
    for id in [json!(true), json!(-1), json!(1.5), json!(["17"])] {
        let flow = button(&json!({"type": "FLOW", "text": "t", "flow_id": id}));
        assert_eq!(violations_of(&flow), ["/components/1/buttons/0/flow_id wrong-type"], "{id}");
    }
}

#[test]
fn samples_have_to_match_the_text_and_the_parameter_format() {
    let text = "Hi {{1}} and bye";
    for (samples, line) in [
        (json!([]), "/components/0/example/body_text samples-count"),
        (json!([["a"], ["b"]]), "/components/0/example/body_text samples-count"),
        (json!([["a", "b"]]), "/components/0/example/body_text/0 samples-count"),
        (json!(7), "/components/0/example/body_text wrong-type"),
        (json!([7]), "/components/0/example/body_text/0 wrong-type"),
        (json!([[7]]), "/components/0/example/body_text/0/0 wrong-type"),
        (json!(" "), "/components/0/example/body_text empty"),
    ] {
        assert_eq!(violations_of(&body(text, &samples)), [line], "{samples}");
    }
    assert_eq!(
        violations_of(&with_components(&json!([{"type": "BODY", "text": text}]))),
        ["/components/0/example required"]
    );
    let other = json!([{"type": "BODY", "text": text, "example": {"body_text_named_params": []}}]);
    let lines = [
        "/components/0/example/body_text required",
        "/components/0/example/body_text_named_params samples-not-allowed",
    ];
    assert_eq!(violations_of(&with_components(&other)), lines);
    let list = "/components/0/example/body_text_named_params";
    for (samples, lines) in [
        (json!([]), vec![" samples-count"]),
        (json!({}), vec![" wrong-type"]),
        (json!([7]), vec!["/0 wrong-type"]),
        (json!([{}]), vec!["/0/param_name required", "/0/example required"]),
        (
            json!([{"param_name": 1, "example": 2}]),
            vec!["/0/param_name wrong-type", "/0/example wrong-type"],
        ),
    ] {
        let lines: Vec<String> = lines.iter().map(|line| format!("{list}{line}")).collect();
        assert_eq!(violations_of(&named("Hi {{a}} and bye", &samples)), lines, "{samples}");
    }
    let link = |example: Value| {
        button(
            &json!({"type": "URL", "text": "Go", "url": "https://a.b/{{1}}", "example": example}),
        )
    };
    assert_eq!(violations_of(&link(Value::Null)), ["/components/1/buttons/0/example required"]);
    assert_eq!(violations_of(&link(json!([]))), ["/components/1/buttons/0/example samples-count"]);
    let fixed = json!({"type": "URL", "text": "Go", "url": "https://a.b/", "example": ["x"]});
    assert_eq!(
        violations_of(&button(&fixed)),
        ["/components/1/buttons/0/example samples-not-allowed"]
    );
}

#[test]
fn enum_values_are_case_insensitive_and_stored_in_upper_case() {
    let document = json!({
        "name": "n", "language": "pt_BR", "category": "marketing", "parameter_format": "Named",
        "message_send_ttl_seconds": 43_200, "cta_url_link_tracking_opted_out": true, "id": "102290129340398",
        "degrees_of_freedom_spec": {"creative_features_spec": {"image_touchups": {"enroll_status": "opt_in"}}},
        "components": [
            {"type": "body", "text": "b"},
            {"type": "Buttons", "buttons": [
                {"type": "flow", "text": "t", "flow_id": "1", "flow_action": "navigate", "icon": "review"},
                {"type": "voice_call", "text": "t"},
                {"type": "url", "text": "t", "url": "https://a.b/{{code}}", "example": "c",
                    "app_deep_link": {"meta_app_id": "7", "android_deep_link": "shop://x"}},
            ]},
        ],
    });
    let template = read(&document.to_string()).unwrap();
    assert!(template.allow_category_change(), "true is the default");
    assert_eq!(
        template.content(),
        concat!(
            r#"{"parameter_format":"NAMED","message_send_ttl_seconds":43200,"cta_url_link_tracking_opted_out":true,"#,
            r#""degrees_of_freedom_spec":{"creative_features_spec":{"image_touchups":{"enroll_status":"OPT_IN"}}},"#,
            r#""components":[{"type":"BODY","text":"b"},{"type":"BUTTONS","buttons":["#,
            r#"{"type":"FLOW","text":"t","flow_id":"1","flow_action":"NAVIGATE","icon":"REVIEW"},"#,
            r#"{"type":"VOICE_CALL","text":"t"},"#,
            r#"{"type":"URL","text":"t","url":"https://a.b/{{code}}","example":["c"],"#,
            r#""app_deep_link":{"meta_app_id":"7","android_deep_link":"shop://x"}}]}]}"#,
        )
    );
    let plain = read(&with_field("allow_category_change", json!(false))).unwrap();
    assert!(!plain.allow_category_change());
    assert_eq!(
        plain.content(),
        r#"{"parameter_format":"POSITIONAL","components":[{"type":"BODY","text":"b"}]}"#
    );
}

#[test]
fn an_authentication_template_has_its_own_format() {
    let apps = json!([{"package_name": "com.shop", "signature_hash": "K8a/AINcGX7"}]);
    let mut document = authentication(&json!([{
        "type": "otp", "otp_type": "one_tap", "text": "Copy", "autofill_text": "Fill in", "supported_apps": apps,
    }]));
    document["components"][0]["add_security_recommendation"] = json!(true);
    let footer = json!({"type": "FOOTER", "code_expiration_minutes": 10});
    document["components"].as_array_mut().unwrap().push(footer);
    document["message_send_ttl_seconds"] = json!(-1);
    assert_eq!(violations_of(&document.to_string()), [""; 0]);
    document["components"][2]["code_expiration_minutes"] = json!(91);
    document["components"][2]["text"] = json!("f");
    document["components"][1]["buttons"] =
        json!([reply("No"), {"type": "OTP", "otp_type": "COPY_CODE"}]);
    document["components"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "HEADER", "format": "LOCATION"}));
    document["message_send_ttl_seconds"] = json!(901);
    assert_eq!(
        violations_of(&document.to_string()),
        [
            "/components/2/code_expiration_minutes number-range",
            "/message_send_ttl_seconds number-range",
            "/components/2/text authentication-text",
            "/components/3 component-unfit",
            "/components/1/buttons/0 authentication-button",
        ]
    );
    assert_eq!(
        violations_of(
            &template("UTILITY", &json!([{"type": "BODY"}, {"type": "FOOTER"}])).to_string()
        ),
        ["/components/0/text required", "/components/1/text required"]
    );
}

#[test]
fn elements_are_restricted_to_categories_and_combinations() {
    let text = |length: usize| "b".repeat(length);
    let mut long = offer(false, &json!([link()]));
    long["components"][0]["text"] = json!(text(601));
    assert_eq!(violations_of(&long.to_string()), ["/components/0/text too-long"]);
    long["components"][0]["text"] = json!(text(600));
    assert_eq!(violations_of(&long.to_string()), [""; 0]);
    long["category"] = json!("UTILITY");
    assert_eq!(violations_of(&long.to_string()), ["/components/1 category-unfit"]);
    assert_eq!(
        violations_of(&offer(true, &json!([link()])).to_string()),
        ["/components/2 offer-buttons"]
    );
    assert_eq!(
        violations_of(&offer(false, &json!([code()])).to_string()),
        ["/components/2 offer-buttons"]
    );

    let product = |header: Value, length: usize| {
        with_components(
            &json!([header, {"type": "BODY", "text": text(length)}, {"type": "BUTTONS", "buttons": [{"type": "SPM"}]}]),
        )
    };
    let shown = json!({"type": "HEADER", "format": "PRODUCT"});
    assert_eq!(violations_of(&product(shown.clone(), 160)), [""; 0]);
    assert_eq!(violations_of(&product(shown.clone(), 161)), ["/components/1/text too-long"]);
    assert_eq!(
        violations_of(&product(image(), 160)),
        ["/components/0 component-unfit", "/components/2/buttons/0 product-header"]
    );
    assert_eq!(violations_of(&with_component(&shown)), ["/components/1 product-header"]);
    let catalog = |header: Value| {
        with_components(
            &json!([header, {"type": "BODY", "text": "b"}, {"type": "BUTTONS", "buttons": [{"type": "MPM"}]}]),
        )
    };
    assert_eq!(
        violations_of(&catalog(json!({"type": "HEADER", "format": "TEXT", "text": "h"}))),
        [""; 0]
    );
    assert_eq!(violations_of(&catalog(image())), ["/components/0 component-unfit"]);
    let permission = json!([{"type": "BODY", "text": "b"}, {"type": "call_permission_request"}]);
    assert_eq!(violations_of(&template("UTILITY", &permission).to_string()), [""; 0]);
    let otp = json!({"type": "OTP", "otp_type": "COPY_CODE"});
    assert_eq!(violations_of(&button(&otp)), ["/components/1/buttons/0 category-unfit"]);
    let mut order = template(
        "MARKETING",
        &json!([{"type": "BODY", "text": "b"}, {"type": "BUTTONS", "buttons": [{"type": "ORDER_DETAILS"}]}]),
    );
    order["display_format"] = json!("order_details");
    assert_eq!(violations_of(&order.to_string()), [""; 0]);
}

#[test]
fn cards_are_validated_like_templates() {
    let body = |text: &str| json!({"type": "BODY", "text": text});
    let card = |body: &Value, buttons: &Value| {
        card(&json!([image(), body, {"type": "BUTTONS", "buttons": buttons}]))
    };
    let good = card(&body("b"), &json!([link()]));
    let cases = [
        (
            card(&body(&"b".repeat(161)), &json!([link()])),
            "/components/0/cards/1/components/1/text too-long",
        ),
        (
            card(&body("{{1}} b"), &json!([link()])),
            "/components/0/cards/1/components/1/text placeholder-at-start",
        ),
        (
            card(&body("b"), &json!([link(), link(), link()])),
            "/components/0/cards/1/components/2/buttons too-many",
        ),
        (
            card(&body("b"), &json!([{"type": "CATALOG"}])),
            "/components/0/cards/1/components/2/buttons/0/type not-a-choice",
        ),
        (plain_card(), "/components/0/cards/1 cards-differ"),
    ];
    for (bad, line) in cases {
        let document = with_components(
            &json!([{"type": "CAROUSEL", "cards": [good, bad]}, {"type": "BODY", "text": "b"}]),
        );
        assert!(
            violations_of(&document).contains(&line.to_owned()),
            "{:?}",
            violations_of(&document)
        );
    }
    let products = json!({"components": [
        {"type": "HEADER", "format": "PRODUCT"}, {"type": "BUTTONS", "buttons": [{"type": "SPM"}]},
    ]});
    assert_eq!(violations_of(&carousel(&json!([products, products]))), [""; 0]);
}

#[test]
fn a_unique_key_never_equals_a_name_and_depends_on_account_name_and_language() {
    use galley_domain::id::AccountId;
    let (one, two) = (AccountId::new(1).unwrap(), AccountId::new(11).unwrap());
    let keys = [
        (WHATSAPP.unique_key)(one, "n", "en"),
        (WHATSAPP.unique_key)(two, "n", "en"),
        (WHATSAPP.unique_key)(one, "m", "en"),
        (WHATSAPP.unique_key)(one, "n", "de"),
    ];
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key));
        assert!(key.starts_with(char::is_control), "no name contains a control character");
    }
}

#[test]
fn hints_suggest_the_intended_value() {
    let hint = |document: &str| read(document).unwrap_err().listed()[0].hint.clone().unwrap();
    assert_eq!(hint(&with_field("language", json!("en-US"))), "did you mean `en_US`?");
    assert_eq!(hint(&with_field("language", json!("pt"))), "did you mean `pt_BR`?");
    assert_eq!(hint(&with_field("name", json!("Order Update"))), "did you mean `order_update`?");
    assert_eq!(
        hint(&named("Hi {{First Name}} and bye", &Value::Null)),
        "did you mean `{{first_name}}`?"
    );
    let misspelled = button(&json!({"type": "QUICK_REPLAY", "text": "t"}));
    assert_eq!(hint(&misspelled), "did you mean `QUICK_REPLY`?");
}
