//! Example requests. Tests send them and compare the responses with those in `answers`.

mod answers;
mod problems;
mod webhooks;
mod whatsapp;

use serde_json::{Value, json};

pub(super) use answers::{
    created, edited, page_of_templates, page_of_versions, paused, rendered, shown, verdict,
};
pub(super) use problems::of_problems;
pub(super) use webhooks::{
    failing_webhook, list_of_webhooks, of_replays, of_rotations, of_webhook_changes, of_webhooks,
    page_of_deliveries, page_of_events, registered, replayed, rotated, webhook,
};
pub(super) use whatsapp::of_templates as of_whatsapp_templates;

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

/// Documents to be tried out.
pub(super) fn of_trials() -> Value {
    json!({
        "faulty": {
            "summary": "Two broken rules, and two things worth a warning",
            "value": {
                "name": "order_shipped",
                "language": "english",
                "category": "UTILITY",
                "allow_category_change": true,
                "colour": "red",
                "components": [
                    {"type": "BODY", "text": "{{1}}, your order is on its way.", "example": {"body_text": [["Ada"]]}},
                    {"type": "FOOTER", "text": "Hi {{name}}!"},
                ],
            },
        },
        "good": {"summary": "Nothing to say against it", "value": template("bodyOnly")},
    })
}

/// Edits; each can be made to the template of any other example that may change its category.
pub(super) fn of_edits() -> Value {
    json!({
        "category": {"summary": "Another category", "value": {"category": "UTILITY"}},
        "components": {
            "summary": "Other components",
            "value": {
                "components": [
                    {"type": "BODY", "text": "Hi {{1}}, your order has arrived.", "example": {"body_text": [["Ada"]]}},
                    {"type": "FOOTER", "text": "Thank you."},
                ],
            },
        },
        "restore": {"summary": "An older version again", "value": {"restore_version": 1}},
    })
}

/// Decisions on a template that waits, and on one that is in use.
pub(super) fn of_decisions() -> Value {
    json!({
        "approve": {"summary": "It may be sent", "value": {"decision": "approve"}},
        "pause": {
            "summary": "Not for a while",
            "value": {"decision": "pause", "reason": "Customers asked for fewer messages."},
        },
        "reject": {
            "summary": "Not like this",
            "value": {"decision": "reject", "reason": "The offer ended last week."},
        },
    })
}

/// Values for the template of the same name.
pub(super) fn of_values() -> Value {
    let mut values = of_v1_values();
    if let (Some(values), Value::Object(more)) = (values.as_object_mut(), whatsapp::of_values()) {
        values.extend(more);
    }
    values
}

fn of_v1_values() -> Value {
    json!({
        "allFour": {
            "summary": "The address of an attachment, two values, and a code to copy",
            "value": {
                "header": ["https://shop.example/summer.jpg"],
                "body": ["Ada", "Sunday"],
                "buttons": {"3": "SUMMER20"},
            },
        },
        "bodyAndButtons": {
            "summary": "Two values, and the end of an address",
            "value": {"body": ["Ada", "4711"], "buttons": {"1": "4711"}},
        },
        "bodyOnly": {"summary": "A template that takes no values", "value": {}},
        "textHeader": {"summary": "A value in the header", "value": {"header": ["Ana"]}},
    })
}

/// The document of one of the templates.
fn template(name: &str) -> Value {
    of_templates()[name]["value"].take()
}
