//! Random documents of templates.

use galley_domain::template::sample;
use proptest::prelude::*;
use serde_json::{Value, json};

pub(super) fn choice(values: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(values)
}

fn label() -> impl Strategy<Value = &'static str> {
    choice(&["Go", "Buy"])
}

fn phone() -> impl Strategy<Value = Value> {
    let numbers = &["+15550001111", "15550001111", "+1 (555) 000-1111", "+15550001112"];
    (label(), choice(numbers))
        .prop_map(|(text, it)| json!({"type": "PHONE_NUMBER", "text": text, "phone_number": it}))
}

fn button() -> impl Strategy<Value = Value> {
    let urls = choice(&["https://a.example/{{1}}", "https://b.example/{{1}}"]);
    prop_oneof![
        (label(), urls).prop_map(
            |(text, url)| json!({"type": "URL", "text": text, "url": url, "example": ["1"]})
        ),
        choice(&["SAVE10", "SAVE20"]).prop_map(|it| json!({"type": "COPY_CODE", "example": it})),
        (label(), choice(&["1", "2"]))
            .prop_map(|(text, it)| json!({"type": "FLOW", "text": text, "flow_id": it})),
    ]
}

fn header() -> impl Strategy<Value = Value> {
    let files = choice(&["abcdefghijklmnopqrstuvwxyz_-0123", "bbcdefghijklmnopqrstuvwxyz_-0123"]);
    let image = |name| json!({"header_handle": [sample::handle(name)]});
    prop_oneof![
        choice(&["Shop", "News"])
            .prop_map(|text| json!({"type": "HEADER", "format": "TEXT", "text": text})),
        files.prop_map(
            move |name| json!({"type": "HEADER", "format": "IMAGE", "example": image(name)})
        ),
    ]
}

pub(super) fn message() -> impl Strategy<Value = Value> {
    let (text, sample) = (choice(&["Hi {{1}}!", "Hello {{1}}!"]), choice(&["Ann", "Bob"]));
    let card = prop::option::of(choice(&["One", "Two"]));
    (header(), text, sample, card, phone(), prop::option::of(button())).prop_map(
        |(header, text, sample, card, phone, button)| {
            let buttons: Vec<Value> = [phone].into_iter().chain(button).collect();
            let mut components = vec![
                header,
                json!({"type": "BODY", "text": text, "example": {"body_text": [[sample]]}}),
                json!({"type": "BUTTONS", "buttons": buttons}),
            ];
            components.extend(card.map(|text| {
                json!({"type": "CAROUSEL", "cards": [{"components": [{"type": "BODY", "text": text}]}]})
            }));
            json!({"components": components})
        },
    )
}

/// A message with a one-time code.
pub(super) fn code() -> impl Strategy<Value = Value> {
    let (label, app) = (choice(&["Copy code", "Copy"]), choice(&["a", "b"]));
    (any::<bool>(), label, app).prop_map(|(security, label, app)| {
        let apps = json!([{"package_name": app, "signature_hash": "K8a/AINcGX7"}]);
        json!({"components": [
            {"type": "BODY", "add_security_recommendation": security},
            {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "ONE_TAP", "text": label,
                "supported_apps": apps}]}]})
    })
}
