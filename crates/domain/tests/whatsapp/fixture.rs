//! Documents for the tests, and the violations that Galley reports for them.

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

pub(crate) fn violations_of(document: &str) -> Vec<String> {
    match read(document) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.listed().iter().map(line).collect(),
    }
}

/// The Graph API code of each violation, with its subcode or 0.
pub(crate) fn codes(document: &str) -> Vec<(u32, u32)> {
    let parsed = Document::parse(document.as_bytes()).unwrap();
    let violations = Template::read(&parsed, &WHATSAPP).unwrap_err();
    let code = |violation| {
        let error = graph_codes::for_violation(violation, parsed.root());
        (error.code, error.subcode.unwrap_or(0))
    };
    violations.listed().iter().map(code).collect()
}

/// The pointer and the rule of a violation.
pub(crate) fn line(violation: &Violation) -> String {
    assert!(violation.hint.is_some(), "{violation:?} has a hint");
    format!("{} {}", violation.pointer, violation.rule.id())
}

/// A template of this category with these components.
pub(crate) fn template(category: &str, components: &Value) -> Value {
    json!({"name": "n", "language": "en_US", "category": category, "components": components})
}

/// A MARKETING template with these components.
pub(crate) fn with_components(components: &Value) -> String {
    template("MARKETING", components).to_string()
}

/// A valid template with a body and this component.
pub(crate) fn with_component(component: &Value) -> String {
    with_components(&json!([{"type": "BODY", "text": "b"}, component]))
}

/// A valid template with another value in one top-level field.
pub(crate) fn with_field(field: &str, value: Value) -> String {
    let mut document = template("MARKETING", &json!([{"type": "BODY", "text": "b"}]));
    document[field] = value;
    document.to_string()
}

pub(crate) fn header(text: &str) -> String {
    with_component(&json!({"type": "HEADER", "format": "TEXT", "text": text}))
}

pub(crate) fn footer(text: &str) -> String {
    with_component(&json!({"type": "FOOTER", "text": text}))
}

pub(crate) fn buttons(buttons: &Value) -> String {
    with_component(&json!({"type": "BUTTONS", "buttons": buttons}))
}

pub(crate) fn button(button: &Value) -> String {
    buttons(&json!([button]))
}

pub(crate) fn url(url: &str) -> String {
    button(&json!({"type": "URL", "text": "t", "url": url}))
}

/// A template with a text in its body and samples for it.
pub(crate) fn body(text: &str, samples: &Value) -> String {
    with_components(&json!([{"type": "BODY", "text": text, "example": {"body_text": samples}}]))
}

pub(crate) fn named(text: &str, samples: &Value) -> String {
    let body =
        json!([{"type": "BODY", "text": text, "example": {"body_text_named_params": samples}}]);
    let mut document = template("MARKETING", &body);
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
    template("AUTHENTICATION", &json!([{"type": "BODY"}, {"type": "BUTTONS", "buttons": buttons}]))
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
    with_component(&json!({"type": "CAROUSEL", "cards": cards}))
}

pub(crate) fn plain_card() -> Value {
    card(&json!([image(), {"type": "BUTTONS", "buttons": [link()]}]))
}

pub(crate) fn offer(expires: bool, buttons: &Value) -> Value {
    template(
        "MARKETING",
        &json!([
            {"type": "BODY", "text": "b"},
            {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Now", "has_expiration": expires}},
            {"type": "BUTTONS", "buttons": buttons},
        ]),
    )
}
