//! Documents as in Meta's documentation and as published clients send them. Galley accepts all of
//! them and stores each in one canonical form.

use galley_domain::{document::Document, rulebook::WHATSAPP, template::edit::Edit};
use serde_json::{Value, json};

use super::fixture::*;

/// The content as Galley stores it.
fn stored_content(document: &Value) -> Value {
    let template = read(&document.to_string()).unwrap_or_else(|it| panic!("{document}: {it:?}"));
    serde_json::from_str(template.content()).unwrap()
}

fn marketing(components: &Value) -> Value {
    template("MARKETING", components)
}

fn buttons_component(buttons: &Value) -> Value {
    json!({"type": "buttons", "buttons": buttons})
}

fn with_buttons(buttons: &Value) -> Value {
    marketing(
        &json!([{"type": "body", "text": "Have a look at what is new."}, buttons_component(buttons)]),
    )
}

fn otp_template(button: &Value) -> Value {
    template(
        "AUTHENTICATION",
        &json!([
            {"type": "body", "add_security_recommendation": true},
            {"type": "footer", "code_expiration_minutes": 5},
            buttons_component(&json!([button])),
        ]),
    )
}

fn texts_and_codes() -> Vec<Value> {
    let named = json!([{"param_name": "first_name", "example": "Ada"}, {"param_name": "order", "example": "A-7"}]);
    let mut by_name = template(
        "utility",
        &json!([
            {"type": "header", "format": "text", "text": "Order {{order}}",
                "example": {"header_text_named_params": [{"param_name": "order", "example": "A-7"}]}},
            {"type": "body", "text": "Hello {{first_name}}, we have packed {{order}} and it is on its way.",
                "example": {"body_text_named_params": named}},
            {"type": "footer", "text": "Answer STOP to hear no more"},
            buttons_component(&json!([{"type": "phone_number", "text": "Call us", "phone_number": "+55-0-955-585-95436"},
                {"type": "url", "text": "Track", "url": "https://shop.example/t/{{1}}", "example": ["A-7"]}])),
        ]),
    );
    by_name["parameter_format"] = json!("named");
    let apps = json!([{"package_name": "com.example.shop", "signature_hash": "K8a/AINcGX7"}]);
    vec![
        by_name,
        marketing(
            &json!([{"type": "BODY", "text": "Hello {{1}}, winter is here.", "example": {"body_text": "Ada"}},
            buttons_component(&json!([reply("Stop"), {"type": "copy_code", "example": "fLBponPDsqF0KQThzkrf"}]))]),
        ),
        template(
            "UTILITY",
            &json!([{"type": "HEADER", "format": "location"},
            {"type": "BODY", "text": "Your order waits at the counter."}]),
        ),
        template(
            "UTILITY",
            &json!([{"type": "BODY", "text": "May we call you about it?"}, {"type": "call_permission_request"}]),
        ),
        otp_template(&json!({"type": "otp", "otp_type": "copy_code", "text": "Copy"})),
        otp_template(
            &json!({"type": "otp", "otp_type": "one_tap", "text": "Copy", "autofill_text": "Fill in",
            "package_name": "com.example.shop", "signature_hash": "K8a/AINcGX7"}),
        ),
        otp_template(
            &json!({"type": "otp", "otp_type": "zero_tap", "zero_tap_terms_accepted": true, "supported_apps": apps}),
        ),
        otp_template(
            &json!({"type": "otp", "otp_type": "one_tap", "zero_tap_terms_accepted": false, "supported_apps": apps}),
        ),
    ]
}

fn buttons_and_cards() -> Vec<Value> {
    let app = json!({"meta_app_id": 1_234_567_890, "android_deep_link": "shop://item/7",
        "android_fallback_playstore_url": "https://play.example/apps?id=shop&from={{1}}"});
    let picture_card = |buttons: &Value| {
        card(
            &json!([image(), {"type": "body", "text": "Fresh from the greenhouse"}, buttons_component(buttons)]),
        )
    };
    let slides = |card: Value| {
        marketing(&json!([
        {"type": "body", "text": "Rare plants, {{1}}, while they last!", "example": {"body_text": [["Ada"]]}},
        {"type": "carousel", "cards": [card, card]}]))
    };
    let product = |button: Value| {
        slides(card(
            &json!([{"type": "header", "format": "product"}, buttons_component(&json!([button]))]),
        ))
    };
    let offer = json!({"type": "limited_time_offer", "limited_time_offer": {"text": "Ends soon!", "has_expiration": true}});
    let pay = json!({"type": "order_details", "text": "Buy now"});
    vec![
        with_buttons(
            &json!([{"type": "url", "text": "Open", "url": "https://shop.example", "app_deep_link": app}]),
        ),
        with_buttons(
            &json!([{"type": "flow", "text": "Sign up", "flow_id": 7, "flow_action": "navigate", "navigate_screen": "FIRST"}]),
        ),
        with_buttons(
            &json!([{"type": "flow", "text": "Sign up", "flow_json": "{\n\"version\": \"7.0\"\n}"}]),
        ),
        with_buttons(
            &json!([{"type": "voice_call", "text": "Call now"}, {"type": "url", "text": "Open", "url": "HTTPS://shop.example"}]),
        ),
        with_buttons(&json!([{"type": "catalog", "text": "View catalog"}])),
        with_buttons(&json!([{"type": "request_contact_info"}])),
        marketing(&json!([{"type": "header", "format": "text", "text": "For you"},
            {"type": "body", "text": "Pick one."}, buttons_component(&json!([{"type": "mpm", "text": "View items"}]))])),
        marketing(
            &json!([{"type": "header", "format": "product"}, {"type": "body", "text": "Still thinking of it?"},
            {"type": "footer", "text": "While stocks last"}, buttons_component(&json!([{"type": "spm", "text": "View"}]))]),
        ),
        marketing(
            &json!([image(), {"type": "body", "text": "Ready when you are."}, buttons_component(&json!([pay, reply("Later"), reply("Stop")]))]),
        ),
        template(
            "UTILITY",
            &json!([{"type": "body", "text": "Your order is ready to be paid."}, buttons_component(&json!([{"type": "order_details"}]))]),
        ),
        marketing(
            &json!([image(), {"type": "body", "text": "Use {{1}} before it is over.", "example": {"body_text": [["SAVE25"]]}},
            offer, buttons_component(&json!([code(), link()]))]),
        ),
        slides(picture_card(
            &json!([reply("More"), {"type": "url", "text": "Buy", "url": "https://shop.example/{{1}}", "example": "7"}]),
        )),
        slides(picture_card(&json!([pay]))),
        product(json!({"type": "spm", "text": "View"})),
        product(link()),
    ]
}

#[test]
fn documents_from_meta_and_from_clients_are_accepted() {
    for document in texts_and_codes().iter().chain(&buttons_and_cards()) {
        assert_eq!(violations_of(&document.to_string()), [""; 0], "{document}");
    }
}

#[test]
fn an_inlined_app_is_stored_in_the_list_of_apps() {
    let app = json!({"package_name": "com.shop", "signature_hash": "K8a/AINcGX7"});
    let otp = json!({"type": "OTP", "otp_type": "ONE_TAP", "text": "Copy code"});
    let (mut flat, mut listed) = (otp.clone(), otp);
    flat.as_object_mut().unwrap().extend(app.as_object().unwrap().clone());
    listed["supported_apps"] = json!([app]);
    let button = |otp: &Value| {
        stored_content(&authentication(&json!([otp])))["components"][1]["buttons"][0].clone()
    };
    assert_eq!(button(&flat), listed);
    assert_eq!(button(&listed), listed);
    flat["package_name"] = json!("shop");
    flat["signature_hash"] = Value::Null;
    assert_eq!(
        violations_of(&authentication(&json!([flat])).to_string()),
        [
            "/components/1/buttons/0/package_name package-form",
            "/components/1/buttons/0/signature_hash required"
        ]
    );
}

#[test]
fn features_are_accepted_as_an_object_and_as_a_list() {
    let on = json!({"enroll_status": "OPT_IN"});
    let as_object = json!({"creative_features_spec": {"image_touchups": on, "image_banner": on}});
    let as_list = json!({"creative_features_spec": [
        {"key": "image_banner", "value": on}, {"key": "image_touchups", "value": on}]});
    let mut document = marketing(&json!([{"type": "BODY", "text": "b"}]));
    for features in [&as_object, &as_list] {
        document["degrees_of_freedom_spec"] = features.clone();
        assert_eq!(stored_content(&document)["degrees_of_freedom_spec"], as_object);
        let template = super::fixture::read(&with_field("name", json!("n"))).unwrap();
        let edit = json!({"degrees_of_freedom_spec": features}).to_string();
        let edit = Edit::read(&Document::parse(edit.as_bytes()).unwrap(), &WHATSAPP, &template);
        let Ok(Edit::Replace { content: Some(content), .. }) = edit else { panic!("{edit:?}") };
        let content: Value = serde_json::from_str(&content).unwrap();
        assert_eq!(content["degrees_of_freedom_spec"], as_object);
    }
    let pointer = "/degrees_of_freedom_spec/creative_features_spec";
    for (features, lines) in [
        (json!([7]), vec!["/0 wrong-type"]),
        (json!([{}]), vec!["/0/key required", "/0/value required"]),
        (json!([{"key": 7, "value": on}]), vec!["/0/key wrong-type"]),
        // An object with the same key twice is refused, too.
        (
            json!([{"key": "image_banner", "value": on}, {"key": "image_banner", "value": on}]),
            vec!["/1/key duplicate-key"],
        ),
        (
            json!([{"key": "image_touchups", "value": {"enroll_status": "MAYBE"}}]),
            vec!["/0/value/enroll_status not-a-choice"],
        ),
    ] {
        document["degrees_of_freedom_spec"] = json!({"creative_features_spec": features});
        let lines: Vec<String> = lines.iter().map(|line| format!("{pointer}{line}")).collect();
        assert_eq!(violations_of(&document.to_string()), lines, "{features}");
    }
}

#[test]
fn delivery_options_are_stored_unchanged() {
    for (name, value) in [
        ("product_set_id", json!("17")),
        ("product_set_id", json!(17)),
        ("send_type", json!("DIRECT")),
        ("bid_spec", json!({"bid_amount": 1.5, "b": [null, true]})),
        ("optimization_spec", json!([])),
        ("creative_sourcing_spec", json!({"a": {"b": "é"}})),
        ("is_primary_device_delivery_only", json!(false)),
    ] {
        let mut document = marketing(&json!([{"type": "BODY", "text": "b"}]));
        document[name] = value.clone();
        assert_eq!(stored_content(&document)[name], value, "{name}");
    }
}

#[test]
fn a_library_template_is_rejected_as_not_covered() {
    let document = json!({"name": "n", "language": "en_US", "category": "UTILITY",
        "library_template_name": "shipment_update_1", "library_template_button_inputs": []});
    let violations = read(&document.to_string()).unwrap_err();
    assert_eq!(line(&violations.listed()[0]), "/library_template_name not-covered");
}

#[test]
fn a_text_in_an_authentication_template_is_one_violation() {
    let mut document = authentication(&json!([{"type": "OTP", "otp_type": "COPY_CODE"}]));
    document["components"][0]["text"] = json!("{{1}} is your code");
    assert_eq!(violations_of(&document.to_string()), ["/components/0/text authentication-text"]);
}

#[test]
fn named_samples_without_the_named_format_get_a_hint() {
    let sample = json!([{"param_name": "{{a}}", "example": "x"}]);
    let hints = |document: &str| -> Vec<String> {
        let violations = read(document).unwrap_err();
        violations.listed().iter().filter_map(|it| it.hint.clone()).collect()
    };
    assert_eq!(hints(&named("Hi {{a}} and bye", &sample)), ["write it without braces: `a`"]);
    let body = json!([{"type": "BODY", "text": "Hi {{a}} and bye",
        "example": {"body_text_named_params": [{"param_name": "a", "example": "x"}]}}]);
    let found = hints(&with_components(&body));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("\"parameter_format\": \"NAMED\""), "{found:?}");
}
