//! No component is skipped: every type in the rulebook can be rendered, and unknown types are
//! reported.

use galley_domain::rulebook::{
    Category, FieldType, ObjectSchema, TaggedObject, VariantContent, WHATSAPP,
};
use serde_json::{Value, json};

use super::fixture::{stored, violation_lines};

/// Every type of object that the schema allows in a document: its array and the fields that identify
/// its type.
fn kinds(part: &'static ObjectSchema, found: &mut Vec<(&'static str, Value)>) {
    for field in part.fields {
        match &field.field_type {
            FieldType::TaggedList(list) => variants(field.name, list.item, &json!({}), found),
            FieldType::ObjectList(parts) if field.name == "cards" => kinds(parts.item, found),
            _ => {}
        }
    }
}

fn variants(
    list: &'static str,
    tagged: &'static TaggedObject,
    tags: &Value,
    found: &mut Vec<(&'static str, Value)>,
) {
    for variant in tagged.variants {
        let mut piece = tags.clone();
        piece[tagged.tag] = json!(variant.value);
        match &variant.content {
            VariantContent::Tagged(inner) => variants(list, inner, &piece, found),
            VariantContent::Fields(part) => {
                found.push((list, piece));
                kinds(part, found);
            }
        }
    }
}

fn unknown(category: Category, components: &Value) -> bool {
    let template = stored(category, &json!({"components": components}).to_string());
    violation_lines(&template, &json!({})).contains(&" part-unknown".to_owned())
}

#[test]
fn every_type_in_the_rulebook_can_be_rendered() {
    let mut found = Vec::new();
    kinds(WHATSAPP.template, &mut found);
    assert!(found.len() > 25, "{found:?}");
    for (list, mut piece) in found {
        // The minimal fields of these types, and likely of future ones.
        let members = json!({"text": "t", "url": "https://a.b", "phone_number": "+15550001111",
            "buttons": [{"type": "QUICK_REPLY", "text": "t"}], "limited_time_offer": {"text": "t"},
            "cards": [{"components": [{"type": "BODY", "text": "t"}]}]});
        piece.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let category =
            if piece["type"] == "OTP" { Category::Authentication } else { Category::Marketing };
        let components = match list {
            "buttons" => {
                json!([{"type": "BODY", "text": "t"}, {"type": "BUTTONS", "buttons": [piece]}])
            }
            _ => json!([piece]),
        };
        // A button is shown only if its code is present.
        let template = stored(category, &json!({"components": components}).to_string());
        let lines = violation_lines(&template, &json!({"body": ["1"]}));
        assert!(!lines.contains(&" part-unknown".to_owned()), "{components}: {lines:?}");
    }
}

#[test]
fn unknown_types_are_reported_whatever_the_values_are() {
    let body = json!({"type": "BODY", "text": "b"});
    let button = |button: Value| json!([body, {"type": "BUTTONS", "buttons": [button]}]);
    for components in [
        json!(7),
        json!([]),
        json!([7]),
        json!([{"type": "BODY"}]),
        json!([body, {"type": "POLL"}]),
        json!([body, body]),
        json!([body, {"type": "FOOTER"}]),
        json!([body, {"type": "HEADER"}]),
        json!([body, {"type": "HEADER", "format": "MEDIA"}]),
        json!([body, {"type": "BUTTONS"}]),
        json!([body, {"type": "CAROUSEL"}]),
        json!([body, {"type": "CAROUSEL", "cards": [7]}]),
        json!([body, {"type": "CAROUSEL", "cards": [{"components": [{"type": "POLL"}]}]}]),
        json!([body, {"type": "LIMITED_TIME_OFFER"}]),
        button(json!(7)),
        button(json!({"type": "REMINDER", "text": "t"})),
        button(json!({"type": "OTP", "text": "t"})),
        button(json!({"type": "URL", "text": "t"})),
        button(json!({"type": "QUICK_REPLY"})),
    ] {
        assert!(unknown(Category::Marketing, &components), "{components}");
    }
    for content in ["", "7", "{}", "["] {
        assert_eq!(
            violation_lines(&stored(Category::Utility, content), &json!({})),
            [" part-unknown"]
        );
    }
    let code = json!({"body": "1"});
    for part in [
        json!({"type": "HEADER", "format": "TEXT", "text": "t"}),
        json!({"type": "CALL_PERMISSION_REQUEST"}),
        json!({"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "t"}]}),
        json!({"type": "BUTTONS", "buttons": [{"type": "OTP", "text": "t"}, {"type": "OTP", "text": "t"}]}),
        json!({"type": "FOOTER", "code_expiration_minutes": "x"}),
    ] {
        let content = json!({"components": [{"type": "BODY"}, part]}).to_string();
        let template = stored(Category::Authentication, &content);
        assert_eq!(violation_lines(&template, &code), [" part-unknown"], "{part}");
    }
}
