//! Documents to begin with, and what is told of them.

use galley_domain::{
    document::Document,
    rulebook::{WHATSAPP, graph_codes},
    template::Template,
    violation::{Violation, Violations},
};
use serde_json::{Value, json};

pub(crate) fn read(document: &str) -> Result<Template, Violations> {
    Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP)
}

pub(crate) fn told(document: &str) -> Vec<String> {
    match read(document) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.listed().iter().map(line).collect(),
    }
}

/// What WhatsApp's Graph API answers for each: its code, and its subcode or 0.
pub(crate) fn codes(document: &str) -> Vec<(u32, u32)> {
    let parsed = Document::parse(document.as_bytes()).unwrap();
    let violations = Template::read(&parsed, &WHATSAPP).unwrap_err();
    let code = |violation| {
        let graph = graph_codes::of(violation, parsed.root());
        (graph.code, graph.subcode.unwrap_or(0))
    };
    violations.listed().iter().map(code).collect()
}

pub(crate) fn line(violation: &Violation) -> String {
    assert!(violation.hint.is_some(), "{violation:?} says how to mend it");
    format!("{} {}", violation.pointer, violation.rule.id())
}

/// A valid template of that category with these components.
pub(crate) fn of(category: &str, components: &Value) -> Value {
    json!({"name": "n", "language": "en_US", "category": category, "components": components})
}

pub(crate) fn with(components: &Value) -> String {
    of("MARKETING", components).to_string()
}

/// A valid template with a body and this component.
pub(crate) fn and(component: &Value) -> String {
    with(&json!([{"type": "BODY", "text": "b"}, component]))
}

/// A valid template in which one top-level field has another value.
pub(crate) fn top(field: &str, value: Value) -> String {
    let mut document = of("MARKETING", &json!([{"type": "BODY", "text": "b"}]));
    document[field] = value;
    document.to_string()
}

pub(crate) fn header(text: &str) -> String {
    and(&json!({"type": "HEADER", "format": "TEXT", "text": text}))
}

pub(crate) fn footer(text: &str) -> String {
    and(&json!({"type": "FOOTER", "text": text}))
}

pub(crate) fn buttons(buttons: &Value) -> String {
    and(&json!({"type": "BUTTONS", "buttons": buttons}))
}

pub(crate) fn button(button: &Value) -> String {
    buttons(&json!([button]))
}

pub(crate) fn url(url: &str) -> String {
    button(&json!({"type": "URL", "text": "t", "url": url}))
}

/// A template with a text in its body and samples for it.
pub(crate) fn body(text: &str, samples: &Value) -> String {
    with(&json!([{"type": "BODY", "text": text, "example": {"body_text": samples}}]))
}

pub(crate) fn named(text: &str, samples: &Value) -> String {
    let body =
        json!([{"type": "BODY", "text": text, "example": {"body_text_named_params": samples}}]);
    let mut document = of("MARKETING", &body);
    document["parameter_format"] = json!("named");
    document.to_string()
}

pub(crate) fn reply(text: &str) -> Value {
    json!({"type": "QUICK_REPLY", "text": text})
}

pub(crate) fn link() -> Value {
    json!({"type": "URL", "text": "Go", "url": "https://shop.example"})
}

pub(crate) fn code() -> Value {
    json!({"type": "COPY_CODE", "example": "SAVE25"})
}

pub(crate) fn image() -> Value {
    json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::aW1h"]}})
}

/// An authentication template with these buttons.
pub(crate) fn authentication(buttons: &Value) -> Value {
    of("AUTHENTICATION", &json!([{"type": "BODY"}, {"type": "BUTTONS", "buttons": buttons}]))
}

pub(crate) fn one_time_code(otp: &Value) -> String {
    let mut button = json!({"type": "OTP"});
    button.as_object_mut().unwrap().extend(otp.as_object().unwrap().clone());
    authentication(&json!([button])).to_string()
}

pub(crate) fn app(package: &str, signature: &str) -> String {
    let apps = json!([{"package_name": package, "signature_hash": signature}]);
    one_time_code(&json!({"otp_type": "ONE_TAP", "supported_apps": apps}))
}

pub(crate) fn card(components: &Value) -> Value {
    json!({"components": components})
}

pub(crate) fn carousel(cards: &Value) -> String {
    and(&json!({"type": "CAROUSEL", "cards": cards}))
}

pub(crate) fn plain_card() -> Value {
    card(&json!([image(), {"type": "BUTTONS", "buttons": [link()]}]))
}

pub(crate) fn offer(ends: bool, buttons: &Value) -> Value {
    of(
        "MARKETING",
        &json!([
            {"type": "BODY", "text": "b"},
            {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Now", "has_expiration": ends}},
            {"type": "BUTTONS", "buttons": buttons},
        ]),
    )
}
