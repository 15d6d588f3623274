//! The forms of a template: examples, authentication, special pieces, cards; and what is kept.

use galley_domain::rulebook::WHATSAPP;
use serde_json::{Value, json};

use super::fixture::*;

/// A text that is long enough for three placeholders.
const LONG: &str = "Hello there, this is the news for today";

/// The components as they are kept.
fn kept(document: &str) -> Value {
    let template = read(document).unwrap();
    let content: Value = serde_json::from_str(template.content()).unwrap();
    content["components"].clone()
}

#[test]
fn examples_are_taken_in_every_spelling_and_kept_in_one() {
    for samples in [json!([["Ada"]]), json!(["Ada"]), json!("Ada")] {
        let components = kept(&body("Hi {{1}} and bye", &samples));
        assert_eq!(components[0]["example"], json!({"body_text": [["Ada"]]}), "{samples}");
    }
    let two = kept(&body("Hi {{1}} and {{2}} or somebody else", &json!(["a", "b"])));
    assert_eq!(two[0]["example"], json!({"body_text": [["a", "b"]]}));
    for sample in [json!("Ada"), json!(["Ada"])] {
        let header = json!({"type": "HEADER", "format": "TEXT", "text": "Hi {{1}}", "example": {"header_text": sample}});
        assert_eq!(kept(&and(&header))[1]["example"], json!({"header_text": ["Ada"]}));
        let image =
            json!({"type": "HEADER", "format": "image", "example": {"header_handle": sample}});
        assert_eq!(kept(&and(&image))[1]["example"], json!({"header_handle": ["Ada"]}));
        let link =
            json!({"type": "URL", "text": "Go", "url": "https://a.b/{{1}}", "example": sample});
        assert_eq!(kept(&button(&link))[1]["buttons"][0]["example"], json!(["Ada"]));
        let copy = json!({"type": "copy_code", "example": sample});
        let copied = json!({"type": "COPY_CODE", "text": "Copy offer code", "example": ["Ada"]});
        assert_eq!(kept(&button(&copy))[1]["buttons"][0], copied);
    }
    let samples = json!([{"example": "x", "param_name": "b", "more": 1}, {"param_name": "a", "example": "y"}]);
    let named = kept(&named(&format!("{LONG} {{{{a}}}} and {{{{b}}}} bye"), &samples));
    let expected =
        json!([{"param_name": "b", "example": "x"}, {"param_name": "a", "example": "y"}]);
    assert_eq!(named[0]["example"], json!({"body_text_named_params": expected}));
}

#[test]
fn ids_are_taken_as_numbers_too_and_kept_as_strings() {
    for id in [json!("17"), json!(17)] {
        let flow = button(&json!({"type": "FLOW", "text": "t", "flow_id": id}));
        assert_eq!(kept(&flow)[1]["buttons"][0]["flow_id"], "17", "{id}");
        let mut link = link();
        link["app_deep_link"] = json!({"meta_app_id": id, "android_deep_link": "shop://x"});
        assert_eq!(kept(&button(&link))[1]["buttons"][0]["app_deep_link"]["meta_app_id"], "17");
    }
    for id in [json!(true), json!(-1), json!(1.5), json!(["17"])] {
        let flow = button(&json!({"type": "FLOW", "text": "t", "flow_id": id}));
        assert_eq!(told(&flow), ["/components/1/buttons/0/flow_id wrong-type"], "{id}");
    }
}

#[test]
fn samples_fit_the_text_and_the_format() {
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
        assert_eq!(told(&body(text, &samples)), [line], "{samples}");
    }
    assert_eq!(
        told(&with(&json!([{"type": "BODY", "text": text}]))),
        ["/components/0/example required"]
    );
    let other = json!([{"type": "BODY", "text": text, "example": {"body_text_named_params": []}}]);
    let lines = [
        "/components/0/example/body_text required",
        "/components/0/example/body_text_named_params samples-not-allowed",
    ];
    assert_eq!(told(&with(&other)), lines);
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
        assert_eq!(told(&named("Hi {{a}} and bye", &samples)), lines, "{samples}");
    }
    let link = |example: Value| {
        button(
            &json!({"type": "URL", "text": "Go", "url": "https://a.b/{{1}}", "example": example}),
        )
    };
    assert_eq!(told(&link(Value::Null)), ["/components/1/buttons/0/example required"]);
    assert_eq!(told(&link(json!([]))), ["/components/1/buttons/0/example samples-count"]);
    let fixed = json!({"type": "URL", "text": "Go", "url": "https://a.b/", "example": ["x"]});
    assert_eq!(told(&button(&fixed)), ["/components/1/buttons/0/example samples-not-allowed"]);
}

#[test]
fn words_are_taken_in_any_letter_case_and_kept_in_upper_case() {
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
    assert!(template.allow_category_change(), "nothing was said against it");
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
    let plain = read(&top("allow_category_change", json!(false))).unwrap();
    assert!(!plain.allow_category_change());
    assert_eq!(
        plain.content(),
        r#"{"parameter_format":"POSITIONAL","components":[{"type":"BODY","text":"b"}]}"#
    );
}

#[test]
fn an_authentication_template_has_its_own_form() {
    let apps = json!([{"package_name": "com.shop", "signature_hash": "K8a/AINcGX7"}]);
    let mut document = authentication(&json!([{
        "type": "otp", "otp_type": "one_tap", "text": "Copy", "autofill_text": "Fill in", "supported_apps": apps,
    }]));
    document["components"][0]["add_security_recommendation"] = json!(true);
    let footer = json!({"type": "FOOTER", "code_expiration_minutes": 10});
    document["components"].as_array_mut().unwrap().push(footer);
    document["message_send_ttl_seconds"] = json!(-1);
    assert_eq!(told(&document.to_string()), [""; 0]);
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
        told(&document.to_string()),
        [
            "/components/2/code_expiration_minutes number-range",
            "/message_send_ttl_seconds number-range",
            "/components/2/text authentication-text",
            "/components/3 component-unfit",
            "/components/1/buttons/0 authentication-button",
        ]
    );
    assert_eq!(
        told(&of("UTILITY", &json!([{"type": "BODY"}, {"type": "FOOTER"}])).to_string()),
        ["/components/0/text required", "/components/1/text required"]
    );
}

#[test]
fn special_pieces_have_their_categories_and_neighbours() {
    let text = |length: usize| "b".repeat(length);
    let mut long = offer(false, &json!([link()]));
    long["components"][0]["text"] = json!(text(601));
    assert_eq!(told(&long.to_string()), ["/components/0/text too-long"]);
    long["components"][0]["text"] = json!(text(600));
    assert_eq!(told(&long.to_string()), [""; 0]);
    long["category"] = json!("UTILITY");
    assert_eq!(told(&long.to_string()), ["/components/1 category-unfit"]);
    assert_eq!(told(&offer(true, &json!([link()])).to_string()), ["/components/2 offer-buttons"]);
    assert_eq!(told(&offer(false, &json!([code()])).to_string()), ["/components/2 offer-buttons"]);

    let product = |header: Value, length: usize| {
        with(
            &json!([header, {"type": "BODY", "text": text(length)}, {"type": "BUTTONS", "buttons": [{"type": "SPM"}]}]),
        )
    };
    let shown = json!({"type": "HEADER", "format": "PRODUCT"});
    assert_eq!(told(&product(shown.clone(), 160)), [""; 0]);
    assert_eq!(told(&product(shown.clone(), 161)), ["/components/1/text too-long"]);
    assert_eq!(
        told(&product(image(), 160)),
        ["/components/0 component-unfit", "/components/2/buttons/0 product-header"]
    );
    assert_eq!(told(&and(&shown)), ["/components/1 product-header"]);
    let catalog = |header: Value| {
        with(
            &json!([header, {"type": "BODY", "text": "b"}, {"type": "BUTTONS", "buttons": [{"type": "MPM"}]}]),
        )
    };
    assert_eq!(told(&catalog(json!({"type": "HEADER", "format": "TEXT", "text": "h"}))), [""; 0]);
    assert_eq!(told(&catalog(image())), ["/components/0 component-unfit"]);
    let permission = json!([{"type": "BODY", "text": "b"}, {"type": "call_permission_request"}]);
    assert_eq!(told(&of("UTILITY", &permission).to_string()), [""; 0]);
    let otp = json!({"type": "OTP", "otp_type": "COPY_CODE"});
    assert_eq!(told(&button(&otp)), ["/components/1/buttons/0 category-unfit"]);
    let mut order = of(
        "MARKETING",
        &json!([{"type": "BODY", "text": "b"}, {"type": "BUTTONS", "buttons": [{"type": "ORDER_DETAILS"}]}]),
    );
    order["display_format"] = json!("order_details");
    assert_eq!(told(&order.to_string()), [""; 0]);
}

#[test]
fn cards_are_judged_like_small_templates() {
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
        let document = with(
            &json!([{"type": "CAROUSEL", "cards": [good, bad]}, {"type": "BODY", "text": "b"}]),
        );
        assert!(told(&document).contains(&line.to_owned()), "{:?}", told(&document));
    }
    let products = json!({"components": [
        {"type": "HEADER", "format": "PRODUCT"}, {"type": "BUTTONS", "buttons": [{"type": "SPM"}]},
    ]});
    assert_eq!(told(&carousel(&json!([products, products]))), [""; 0]);
}

#[test]
fn a_claim_never_equals_a_name_and_differs_by_account_name_and_language() {
    use galley_domain::id::AccountId;
    let (one, two) = (AccountId::new(1).unwrap(), AccountId::new(11).unwrap());
    let claims = [
        (WHATSAPP.claim)(one, "n", "en"),
        (WHATSAPP.claim)(two, "n", "en"),
        (WHATSAPP.claim)(one, "m", "en"),
        (WHATSAPP.claim)(one, "n", "de"),
    ];
    for (index, claim) in claims.iter().enumerate() {
        assert!(!claims[..index].contains(claim));
        assert!(claim.starts_with(char::is_control), "no name holds such a character");
    }
}

#[test]
fn what_was_meant_is_told() {
    let hint = |document: &str| read(document).unwrap_err().listed()[0].hint.clone().unwrap();
    assert_eq!(hint(&top("language", json!("en-US"))), "did you mean `en_US`?");
    assert_eq!(hint(&top("language", json!("pt"))), "did you mean `pt_BR`?");
    assert_eq!(hint(&top("name", json!("Order Update"))), "did you mean `order_update`?");
    assert_eq!(
        hint(&named("Hi {{First Name}} and bye", &Value::Null)),
        "did you mean `{{first_name}}`?"
    );
    let misspelt = button(&json!({"type": "QUICK_REPLAY", "text": "t"}));
    assert_eq!(hint(&misspelt), "did you mean `QUICK_REPLY`?");
}
