//! Examples for accounts with the rulebook `whatsapp`: templates, and values for the one of the
//! same name.

use serde_json::{Value, json};

/// What stands for an upload. Samples are looked at by reviewers, not by rendering.
const HANDLE: &str = "4::aW1hZ2U=";

/// One template of each kind that takes values in its own way.
pub(in crate::openapi) fn of_templates() -> Value {
    json!({
        "whatsappNamed": {
            "summary": "Named placeholders",
            "value": {
                "name": "order_on_its_way",
                "language": "en_US",
                "category": "UTILITY",
                "parameter_format": "NAMED",
                "components": [{
                    "type": "BODY",
                    "text": "Hi {{first_name}}, your order is on its way to you.",
                    "example": {"body_text_named_params": [{"param_name": "first_name", "example": "Ada"}]},
                }],
            },
        },
        "whatsappAttachment": {
            "summary": "A document above the message",
            "value": {
                "name": "your_bill",
                "language": "en_US",
                "category": "UTILITY",
                "components": [
                    attachment("DOCUMENT"),
                    {"type": "BODY", "text": "Your bill for this month."},
                ],
            },
        },
        "whatsappCards": {
            "summary": "Two cards",
            "value": {
                "name": "new_arrivals",
                "language": "en_US",
                "category": "MARKETING",
                "components": [
                    {"type": "BODY", "text": "New in the shop this week"},
                    {"type": "CAROUSEL", "cards": [card(), card()]},
                ],
            },
        },
        "whatsappCode": {
            "summary": "A one-time code",
            "value": {
                "name": "log_in",
                "language": "en_US",
                "category": "AUTHENTICATION",
                "components": [
                    {"type": "BODY", "add_security_recommendation": true},
                    {"type": "FOOTER", "code_expiration_minutes": 10},
                    {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]},
                ],
            },
        },
        "whatsappCoupon": {
            "summary": "A coupon code to copy",
            "value": {
                "name": "winter_coupon",
                "language": "en_US",
                "category": "MARKETING",
                "components": [
                    {"type": "BODY", "text": "Here is a code for your next order."},
                    {"type": "BUTTONS", "buttons": [{"type": "COPY_CODE", "example": "WINTER25"}]},
                ],
            },
        },
        "whatsappOffer": {
            "summary": "An offer that ends",
            "value": {
                "name": "weekend_offer",
                "language": "en_US",
                "category": "MARKETING",
                "components": [
                    {"type": "BODY", "text": "Everything is cheaper this weekend."},
                    {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Weekend sale", "has_expiration": true}},
                    {"type": "BUTTONS", "buttons": [
                        {"type": "COPY_CODE", "example": "WEEKEND"},
                        {"type": "URL", "text": "Visit the shop", "url": "https://shop.example/"},
                    ]},
                ],
            },
        },
    })
}

/// Values for each of them.
pub(super) fn of_values() -> Value {
    let card = |name: &str| json!({"header": {"link": format!("https://shop.example/{name}.jpg")}, "body": [name], "buttons": {"0": name}});
    json!({
        "whatsappNamed": {
            "summary": "Rulebook `whatsapp`: a value by its name",
            "value": {"body": {"first_name": "Ada"}},
        },
        "whatsappAttachment": {
            "summary": "Rulebook `whatsapp`: an attachment, by its address and with a name",
            "value": {"header": {"link": "https://shop.example/bills/4711.pdf", "filename": "Bill 4711.pdf"}},
        },
        "whatsappCards": {
            "summary": "Rulebook `whatsapp`: the values of each card",
            "value": {"cards": [card("lamp"), card("chair")]},
        },
        "whatsappCode": {
            "summary": "Rulebook `whatsapp`: a one-time code, which is sent in two places",
            "value": {"body": "123456"},
        },
        "whatsappCoupon": {
            "summary": "Rulebook `whatsapp`: the code behind a button",
            "value": {"buttons": {"0": "WINTER25"}},
        },
        "whatsappOffer": {
            "summary": "Rulebook `whatsapp`: the end of an offer, and its code",
            "value": {"offer": "2026-11-15T22:59:59Z", "buttons": {"0": "WEEKEND"}},
        },
    })
}

fn attachment(format: &str) -> Value {
    json!({"type": "HEADER", "format": format, "example": {"header_handle": [HANDLE]}})
}

fn card() -> Value {
    json!({"components": [
        attachment("IMAGE"),
        {"type": "BODY", "text": "Have a look at our {{1}} today.", "example": {"body_text": [["lamp"]]}},
        {"type": "BUTTONS", "buttons": [
            {"type": "URL", "text": "Buy", "url": "https://shop.example/{{1}}", "example": ["lamp"]},
        ]},
    ]})
}
