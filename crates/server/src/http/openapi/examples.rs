//! Examples of what is sent and answered. Problems are written by the code that answers them, so
//! that the examples are what a caller gets to see.

use galley_domain::{id::TemplateId, json::Document, rulebook::V1, template::Template};
use serde_json::{Map, Value, json};

use super::shared::ID;
use crate::http::problem::{Kind, Problem};

/// The shapes of the specification as whole request bodies.
pub(super) fn of_templates() -> Value {
    json!({
        "bodyOnly": {
            "summary": "A BODY and nothing else",
            "value": {
                "name": "opening_hours",
                "language": "en_US",
                "category": "UTILITY",
                "allow_category_change": false,
                "components": [{"type": "BODY", "text": "We are open from 9 to 5."}],
            },
        },
        "bodyAndButtons": {
            "summary": "A BODY with placeholders, and BUTTONS",
            "value": {
                "name": "order_shipped",
                "language": "en_US",
                "category": "UTILITY",
                "allow_category_change": true,
                "components": [
                    {
                        "type": "BODY",
                        "text": "Hi {{1}}, your order {{2}} is on its way.",
                        "example": {"body_text": [["Ada", "4711"]]},
                    },
                    {
                        "type": "BUTTONS",
                        "buttons": [
                            {"type": "QUICK_REPLY", "text": "Thank you"},
                            {"type": "URL", "text": "Track it", "url": "https://shop.example/track/{{1}}", "example": "4711"},
                        ],
                    },
                ],
            },
        },
        "allFour": {
            "summary": "HEADER with an attachment, BODY, FOOTER and every kind of button",
            "value": {
                "name": "summer_sale",
                "language": "en_US",
                "category": "MARKETING",
                "allow_category_change": true,
                "components": [
                    {"type": "HEADER", "format": "MEDIA", "example": {"media_url": "https://shop.example/summer.jpg"}},
                    {"type": "BODY", "text": "Hi {{1}}, take 20% off until {{2}}.", "example": {"body_text": [["Ada", "Sunday"]]}},
                    {"type": "FOOTER", "text": "Reply STOP to hear no more from us."},
                    {
                        "type": "BUTTONS",
                        "buttons": [
                            {"type": "QUICK_REPLY", "text": "Tell me more"},
                            {"type": "url", "text": "Visit the shop", "url": "https://shop.example/"},
                            {"type": "PHONE_NUMBER", "text": "Call us", "phone_number": "+15550001111"},
                            {"type": "copy_code", "example": "SUMMER20"},
                        ],
                    },
                ],
            },
        },
        "textHeader": {
            "summary": "A HEADER of format TEXT with a placeholder",
            "value": {
                "name": "visit_reminder",
                "language": "pt_BR",
                "category": "UTILITY",
                "allow_category_change": false,
                "components": [
                    {"type": "HEADER", "format": "TEXT", "text": "Olá {{1}}", "example": {"header_text": ["Ana"]}},
                    {"type": "BODY", "text": "A sua visita é amanhã."},
                ],
            },
        },
    })
}

pub(super) fn created() -> Value {
    json!({"id": ID, "status": "APPROVED", "category": "MARKETING"})
}

pub(super) fn shown() -> Value {
    json!({
        "id": ID,
        "name": "opening_hours",
        "language": "en_US",
        "category": "UTILITY",
        "allow_category_change": false,
        "status": "APPROVED",
        "phone_number_id": "15550001111",
        "version": 1,
        "live_version": 1,
        "created_at": "2026-11-15T09:30:00.123Z",
        "updated_at": "2026-11-15T09:30:00.123Z",
        "components": [{"type": "BODY", "text": "We are open from 9 to 5."}],
    })
}

/// One problem of each kind.
pub(super) fn of_problems() -> Value {
    let examples = Kind::ALL.iter().map(|kind| {
        let document = problem(*kind).document("order-4711");
        let value: Value = serde_json::from_str(&document).unwrap_or_default();
        (kind.slug().to_owned(), json!({"summary": kind.title(), "value": value}))
    });
    Value::Object(examples.collect::<Map<_, _>>())
}

fn problem(kind: Kind) -> Problem {
    match kind {
        Kind::NameTaken => Problem::name_taken(ID.parse::<TemplateId>().ok()),
        Kind::InvalidTemplate => refused().unwrap_or(Problem::of(kind)),
        _ => Problem::of(kind),
    }
}

/// What a template with two faults is answered.
fn refused() -> Option<Problem> {
    let bad = json!({
        "name": "order_shipped",
        "language": "english",
        "category": "UTILITY",
        "allow_category_change": true,
        "components": [{"type": "BODY", "text": "Hi {{name}}!"}],
    })
    .to_string();
    let document = Document::parse(bad.as_bytes()).ok()?;
    Template::read(&document, &V1).err().map(Problem::from)
}
