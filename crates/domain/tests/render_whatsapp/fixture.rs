//! Sample templates, and helpers that render them.

use galley_domain::{
    document::Document,
    render,
    rulebook::{Category, WHATSAPP},
    template::Template,
    violation::{Violation, Violations},
};
use serde_json::{Value, json};

pub(crate) fn read(document: &Value) -> Result<Template, Violations> {
    let document = document.to_string();
    Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP)
}

/// A template of that category with these components.
pub(crate) fn of(category: &str, components: &Value) -> Template {
    let document = json!({"name": "n", "language": "en_US", "category": category,
        "components": components});
    read(&document).unwrap_or_else(|violations| panic!("{components}: {violations:?}"))
}

pub(crate) fn template(components: &Value) -> Template {
    of("MARKETING", components)
}

/// A template with a body without placeholders and this component.
pub(crate) fn and(component: &Value) -> Template {
    template(&json!([{"type": "BODY", "text": "b"}, component]))
}

pub(crate) fn header(format: &str) -> Template {
    and(&match format {
        "LOCATION" => json!({"type": "HEADER", "format": format}),
        _ => media(format),
    })
}

pub(crate) fn media(format: &str) -> Value {
    json!({"type": "HEADER", "format": format, "example": {"header_handle": ["4::aW1h"]}})
}

pub(crate) fn button(button: &Value) -> Template {
    let category = if button["type"] == "ORDER_DETAILS" { "UTILITY" } else { "MARKETING" };
    let body = json!({"type": "BODY", "text": "b"});
    let buttons = json!({"type": "BUTTONS", "buttons": [button]});
    match button["type"].as_str().unwrap() {
        "SPM" => template(&json!([body, {"type": "HEADER", "format": "PRODUCT"}, buttons])),
        "MPM" => {
            let header = json!({"type": "HEADER", "format": "TEXT", "text": "h"});
            template(&json!([header, body, buttons]))
        }
        _ => of(category, &json!([body, buttons])),
    }
}

pub(crate) fn named() -> Template {
    let example = |name: &str, value: &str| json!({"param_name": name, "example": value});
    let document = json!({"name": "n", "language": "en_US", "category": "MARKETING",
        "parameter_format": "named", "components": [
        {"type": "HEADER", "format": "TEXT", "text": "For {{who}}",
            "example": {"header_text_named_params": [example("who", "Ada")]}},
        {"type": "BODY", "text": "Hello {{first_name}}, your order {{order}} is on its way, {{first_name}} dear.",
            "example": {"body_text_named_params": [example("order", "4711"), example("first_name", "Ada")]}},
        {"type": "FOOTER", "text": "Small print"},
        {"type": "BUTTONS", "buttons": [
            {"type": "URL", "text": "Track", "url": "https://shop.example/{{path}}", "example": ["4711"]},
            {"type": "URL", "text": "See", "url": "https://shop.example/{{1}}", "example": ["4711"]},
        ]},
    ]});
    read(&document).unwrap()
}

pub(crate) fn numbered() -> Template {
    template(&json!([
        {"type": "HEADER", "format": "TEXT", "text": "Order {{1}}", "example": {"header_text": ["4711"]}},
        {"type": "BODY", "text": "Hello {{1}}, your order\n{{2}} is on its way, so {{1}} can wait.",
            "example": {"body_text": [["Ada", "4711"]]}},
    ]))
}

pub(crate) fn authentication(body: &Value, footer: Option<Value>, otp: &Value) -> Template {
    let mut components =
        vec![json!({"type": "BODY"}), json!({"type": "BUTTONS", "buttons": [otp]})];
    components[0].as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    components.extend(footer);
    of("AUTHENTICATION", &components.into())
}

pub(crate) fn code() -> Template {
    authentication(&json!({}), None, &json!({"type": "OTP", "otp_type": "COPY_CODE"}))
}

pub(crate) fn offer(ends: bool) -> Template {
    template(&json!([
        {"type": "BODY", "text": "b"},
        {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Now", "has_expiration": ends}},
        {"type": "BUTTONS", "buttons": [
            {"type": "COPY_CODE", "example": "SAVE25"},
            {"type": "URL", "text": "Go", "url": "https://shop.example"},
        ]},
    ]))
}

/// Two cards with an image, a text with a placeholder, and two buttons.
pub(crate) fn carousel() -> Template {
    let card = json!({"components": [
        media("IMAGE"),
        {"type": "BODY", "text": "Only {{1}} today, so hurry up.", "example": {"body_text": [["9 €"]]}},
        {"type": "BUTTONS", "buttons": [
            {"type": "QUICK_REPLY", "text": "More"},
            {"type": "URL", "text": "Buy", "url": "https://shop.example/{{1}}", "example": ["a"]},
        ]},
    ]});
    template(&json!([{"type": "BODY", "text": "b"}, {"type": "CAROUSEL", "cards": [card, card]}]))
}

pub(crate) fn products() -> Template {
    let card = json!({"components": [{"type": "HEADER", "format": "PRODUCT"},
        {"type": "BUTTONS", "buttons": [{"type": "SPM"}]}]});
    template(&json!([{"type": "BODY", "text": "b"}, {"type": "CAROUSEL", "cards": [card, card]}]))
}

/// A stored template that met older rules.
#[expect(clippy::disallowed_methods, reason = "what a store may have kept is tried here")]
pub(crate) fn stored(category: Category, content: &str) -> Template {
    Template::restore("n".to_owned(), "en_US".to_owned(), category, true, content.to_owned())
}

pub(crate) fn try_render(template: &Template, values: &Value) -> Result<Value, Violations> {
    try_text(template, &values.to_string())
}

pub(crate) fn try_text(template: &Template, values: &str) -> Result<Value, Violations> {
    let values = Document::parse(values.as_bytes()).unwrap();
    let rendered = render::render(template, &WHATSAPP, &values)?;
    // Through text, as in a response.
    let rendered = serde_json::from_str(&serde_json::to_string(&rendered).unwrap()).unwrap();
    crate::send::assert_read_back(template, &rendered);
    Ok(rendered)
}

/// The texts, and the components of the message.
pub(crate) fn rendered(template: &Template, values: &Value) -> (Value, Value) {
    let rendered = try_render(template, values).unwrap_or_else(|it| panic!("{values}: {it:?}"));
    (rendered["texts"].clone(), rendered["payload"]["template"]["components"].clone())
}

pub(crate) fn violation_lines(template: &Template, values: &Value) -> Vec<String> {
    violation_text(template, &values.to_string())
}

pub(crate) fn violation_text(template: &Template, values: &str) -> Vec<String> {
    match try_text(template, values) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.listed().iter().map(line).collect(),
    }
}

fn line(violation: &Violation) -> String {
    assert!(violation.hint.is_some(), "{violation:?} has a hint");
    format!("{} {}", violation.pointer, violation.rule.id())
}
