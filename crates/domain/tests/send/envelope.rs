//! The envelope of a message.

use galley_domain::{
    document::Document,
    send::{Message, Refusal},
};
use serde_json::{Value, json};

use super::message;

/// The fields of a message as they are read.
type Fields = (String, String, String, String, Option<String>);

fn read(message: &Value) -> Result<Fields, Refusal> {
    let text = message.to_string();
    let document = Document::parse(text.as_bytes()).unwrap();
    let Message { to, wa_id, name, language, callback_data, .. } = Message::read(&document)?;
    Ok((to, wa_id, name.to_owned(), language.to_owned(), callback_data.map(str::to_owned)))
}

fn lines(message: &Value) -> Vec<String> {
    let refusal = read(message).err().unwrap();
    let line =
        |it: &galley_domain::send::SendViolation| format!("{} {}", it.code.number(), it.pointer);
    refusal.violations.iter().map(line).collect()
}

/// The message with one value changed; `null` is the same as leaving it out.
fn with(pointer: &str, value: &Value) -> Value {
    let mut message = message(&json!([]));
    message["biz_opaque_callback_data"] = json!("order-4711");
    message["template"]["language"]["policy"] = json!("deterministic");
    *message.pointer_mut(pointer).unwrap() = value.clone();
    message
}

#[test]
fn the_fields_of_a_valid_envelope_are_read() {
    let expected = |to: &str, wa_id: &str| {
        let fields = [to, wa_id, "n", "en_US"].map(str::to_owned);
        let [to, wa_id, name, language] = fields;
        (to, wa_id, name, language, Some("order-4711".to_owned()))
    };
    for (to, wa_id) in [
        ("15550001111", "15550001111"),
        ("+15550001111", "15550001111"),
        ("+1 (555) 000-1111", "15550001111"),
        ("1.555.000.1111", "15550001111"),
        ("1234567", "1234567"),
    ] {
        assert_eq!(read(&with("/to", &json!(to))).unwrap(), expected(to, wa_id));
    }
    let number = read(&with("/to", &json!(15_550_001_111_u64))).unwrap();
    assert_eq!(number, expected("15550001111", "15550001111"));
}

#[test]
fn optional_fields_may_be_absent_and_unknown_fields_are_ignored() {
    let minimal = json!({"messaging_product": "whatsapp", "to": "15550001111", "type": "template",
        "template": {"name": "n", "language": {"code": "de"}}, "preview_url": true, "x": {"y": []}});
    let (_, _, _, language, callback_data) = read(&minimal).unwrap();
    assert_eq!((&*language, callback_data), ("de", None));
    for pointer in ["/recipient_type", "/biz_opaque_callback_data", "/template/components"] {
        assert!(read(&with(pointer, &Value::Null)).is_ok(), "{pointer}");
    }
}

#[test]
fn constants_are_compared_without_case() {
    for (pointer, value) in [
        ("/messaging_product", "WhatsApp"),
        ("/recipient_type", "INDIVIDUAL"),
        ("/type", "TEMPLATE"),
        ("/template/language/policy", "Deterministic"),
    ] {
        assert!(read(&with(pointer, &json!(value))).is_ok(), "{pointer}");
    }
}

#[test]
fn a_missing_field_is_refused_with_131008() {
    for pointer in [
        "/messaging_product",
        "/to",
        "/type",
        "/template",
        "/template/name",
        "/template/language",
        "/template/language/code",
    ] {
        assert_eq!(lines(&with(pointer, &Value::Null)), [format!("131008 {pointer}")]);
    }
}

#[test]
fn an_invalid_field_is_refused_with_131009() {
    let long = "x".repeat(513);
    for (pointer, value) in [
        ("/messaging_product", json!("telegram")),
        ("/messaging_product", json!(7)),
        ("/recipient_type", json!("group")),
        ("/recipient_type", json!([])),
        ("/to", json!("")),
        ("/to", json!("Ada")),
        ("/to", json!("155500")),
        ("/to", json!("1555000111122223")),
        ("/to", json!("1555+0001111")),
        ("/to", json!("-15550001111")),
        ("/to", json!(-15_550_001_111_i64)),
        ("/to", json!(1.5)),
        ("/to", json!({})),
        ("/type", json!(" ")),
        ("/template", json!("n")),
        ("/template/name", json!("")),
        ("/template/name", json!(7)),
        ("/template/name", json!(long)),
        ("/template/language", json!("en_US")),
        ("/template/language/code", json!(" ")),
        ("/template/language/policy", json!("fallback")),
        ("/template/components", json!({})),
        ("/biz_opaque_callback_data", json!(7)),
        ("/biz_opaque_callback_data", json!(long)),
    ] {
        assert_eq!(lines(&with(pointer, &value)), [format!("131009 {pointer}")], "{value}");
    }
    for root in [json!([]), json!("x"), Value::Null] {
        assert_eq!(lines(&root), ["131009 "]);
    }
}

#[test]
fn another_type_of_message_is_refused_with_131051_and_a_clear_text() {
    let mut other = message(&json!([]));
    other["type"] = json!("text");
    other["template"] = Value::Null;
    let refusal = read(&other).err().unwrap();
    let expected = "the sandbox sends template messages only: type must be `template`, not `text`";
    assert_eq!((refusal.code.number(), &*refusal.details), (131_051, expected));
    assert_eq!(refusal.to_string(), format!("(131051) {expected}"));
    assert_eq!(refusal.violations.len(), 1);
}

#[test]
fn all_violations_of_the_envelope_are_listed_in_document_order() {
    let text = r#"{"template":{"language":{"code":7},"components":1},"type":"template","to":"x"}"#;
    let refusal = Message::read(&Document::parse(text.as_bytes()).unwrap()).err().unwrap();
    let found: Vec<_> =
        refusal.violations.iter().map(|it| (it.code.number(), &*it.pointer)).collect();
    let expected = [
        (131_009, "/template/language/code"),
        (131_009, "/template/components"),
        (131_008, "/template/name"),
        (131_009, "/to"),
        (131_008, "/messaging_product"),
    ];
    assert_eq!(found, expected);
    assert_eq!(refusal.code.number(), 131_009);
}
