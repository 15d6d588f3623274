//! Sample documents, and helpers that convert them.

use galley_domain::{
    convert::{self, Conversion, Direction, Note},
    document::Document,
    violation::Violations,
};
use serde_json::{Value, json};

pub(crate) fn try_convert(
    document: &Value,
    direction: Direction,
) -> Result<Conversion, Violations> {
    let text = document.to_string();
    convert::convert(&Document::parse(text.as_bytes()).unwrap(), direction)
}

/// The result, and the notes as `level id pointer`.
pub(crate) fn converted(document: &Value, direction: Direction) -> (Value, Vec<String>) {
    let conversion = try_convert(document, direction);
    let conversion = conversion.unwrap_or_else(|refused| panic!("{document}: {refused:?}"));
    assert_eq!(conversion.more, 0);
    let line = |note: &Note| {
        assert!(note.hint.is_some(), "{note:?} says what to do");
        format!("{} {} {}", note.level.as_str(), note.id, note.pointer)
    };
    (written(&conversion), conversion.notes.iter().map(line).collect())
}

/// The result as JSON.
pub(crate) fn written(conversion: &Conversion) -> Value {
    let text = serde_json::to_string(conversion.document.root()).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn v1(components: &Value) -> Value {
    json!({"name": "n", "language": "en_US", "category": "MARKETING",
        "allow_category_change": true, "components": components})
}

pub(crate) fn whatsapp(components: &Value) -> Value {
    json!({"name": "n", "language": "en_US", "category": "MARKETING", "components": components})
}

pub(crate) fn body() -> Value {
    json!({"type": "BODY", "text": "Good morning"})
}

pub(crate) fn button(button: &Value) -> Value {
    json!([body(), {"type": "BUTTONS", "buttons": [button]}])
}

pub(crate) fn with(mut document: Value, field: &str, value: Value) -> Value {
    document[field] = value;
    document
}
