//! Sending messages to the sandbox: the envelope, every kind of parameter, and Meta's code for each
//! violation.

mod buttons;
mod cards;
mod envelope;
mod header;
mod order;
mod properties;
mod status;
mod texts;

use galley_domain::{
    document::Document,
    send::{self, Message, Refusal},
    template::Template,
};
use serde_json::{Value, json};

/// Rendering a template and reading the message back gives the same texts. The fixtures of the
/// renderer's tests call this for everything that they render.
pub(crate) fn assert_read_back(template: &Template, rendered: &Value) {
    let mut message = rendered["payload"].clone();
    message["to"] = json!("15550001111");
    let texts = try_message(template, &message);
    assert_eq!(texts.as_ref(), Ok(&rendered["texts"]), "{message}");
}

/// A message with these components.
fn message(components: &Value) -> Value {
    json!({"messaging_product": "whatsapp", "recipient_type": "individual", "to": "15550001111",
        "type": "template",
        "template": {"name": "n", "language": {"code": "en_US"}, "components": components}})
}

fn try_message(template: &Template, message: &Value) -> Result<Value, Refusal> {
    let text = message.to_string();
    let document = Document::parse(text.as_bytes()).unwrap();
    let filled = send::check(template, &Message::read(&document)?)?;
    Ok(serde_json::from_str(&filled.texts).unwrap())
}

/// The texts that the recipient reads.
fn texts(template: &Template, components: &Value) -> Value {
    try_message(template, &message(components)).unwrap_or_else(|it| panic!("{components}: {it:?}"))
}

fn refusal(template: &Template, components: &Value) -> Refusal {
    let refusal = try_message(template, &message(components)).unwrap_err();
    let first = &refusal.violations[0];
    assert_eq!((refusal.code, &refusal.details), (first.code, &first.message));
    refusal
}

/// The code and the pointer of each violation; pointers are relative to the components.
fn lines(template: &Template, components: &Value) -> Vec<String> {
    let refusal = refusal(template, components);
    let line = |it: &send::SendViolation| {
        assert!(!it.message.is_empty(), "{it:?}");
        let pointer = it.pointer.strip_prefix("/template/components").unwrap_or(&it.pointer);
        format!("{} {pointer}", it.code.number())
    };
    refusal.violations.iter().map(line).collect()
}

/// The details of a message with one violation.
fn details(template: &Template, components: &Value) -> (u32, String) {
    let refusal = refusal(template, components);
    assert_eq!(refusal.violations.len(), 1, "{refusal:?}");
    (refusal.code.number(), refusal.details)
}

/// A parameter that is a text.
fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A parameter that is a named text.
fn named_text(name: &str, text: &str) -> Value {
    json!({"type": "text", "parameter_name": name, "text": text})
}

fn component(kind: &str, parameters: &Value) -> Value {
    json!({"type": kind, "parameters": parameters})
}

fn button(sub_type: &str, index: usize, parameters: &Value) -> Value {
    json!({"type": "button", "sub_type": sub_type, "index": index.to_string(),
        "parameters": parameters})
}
