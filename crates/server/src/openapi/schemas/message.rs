//! The schemas of what comes out of a rendering: the texts, and the message in WhatsApp's form.

use serde_json::{Value, json};

use super::super::operation::reference;

pub(super) fn rendered() -> Value {
    json!({
        "type": "object",
        "description": "What becomes of a template and its values.",
        "properties": {
            "texts": reference("schemas", "Texts"),
            "payload": reference("schemas", "Payload"),
            "warnings": {
                "type": "array",
                "items": reference("schemas", "Warning"),
                "description": "Why WhatsApp cannot take the payload; absent when nothing is known.",
            },
        },
        "required": ["texts", "payload"],
    })
}

/// The texts of a whole message.
pub(super) fn texts() -> Value {
    let mut texts = card();
    texts["description"] =
        json!("What the customer reads. Parts that the template does not have are absent.");
    let end = json!({"type": "integer", "description": "When it ends, in milliseconds since 1970; absent when it does not."});
    let offer = object(&json!({"text": text("What it is called.")}));
    let mut offer = with(offer, "expiration_time_ms", end);
    offer["description"] = json!("What is offered for a limited time.");
    texts["properties"]["footer"] = text("The small print.");
    texts["properties"]["offer"] = offer;
    texts["properties"]["call_permission_request"] = json!({"type": "boolean", "const": true, "description": "There if the customer is asked for leave to be called."});
    texts["properties"]["cards"] = some(
        &reference("schemas", "CardTexts"),
        "The cards below the message, in the order they are shown.",
    );
    texts["required"] = json!(["body"]);
    texts
}

/// The texts of a card.
pub(super) fn card() -> Value {
    let label = text("The label.");
    let code = text("The code.");
    let copied = tagged("COPY_CODE", &json!({"code": code}));
    let handed_over = tagged("OTP", &json!({"text": label, "code": code}));
    let mut kinds = vec![
        tagged("URL", &json!({"text": label, "url": text("The whole address.")})),
        tagged("PHONE_NUMBER", &json!({"text": label, "phone_number": text("The number.")})),
        with(copied, "text", label.clone()),
        with(
            handed_over,
            "autofill_text",
            text("The label where the code is filled in by itself."),
        ),
    ];
    let with_a_label = [
        "QUICK_REPLY",
        "FLOW",
        "CATALOG",
        "MPM",
        "SPM",
        "VOICE_CALL",
        "ORDER_DETAILS",
        "REQUEST_CONTACT_INFO",
    ];
    kinds.extend(with_a_label.map(|kind| tagged(kind, &json!({"text": label}))));
    json!({
        "type": "object",
        "description": "What the customer reads on a card.",
        "properties": {
            "header": text("The headline; the address or id of the attachment, the place, or the id of the product."),
            "body": text("The message itself."),
            "buttons": some(&json!({"anyOf": kinds}), "The buttons, in the order they are shown."),
        },
    })
}

pub(super) fn payload() -> Value {
    let offer = parameter(
        "limited_time_offer",
        &object(
            &json!({"expiration_time_ms": {"type": "integer", "description": "When it ends, in milliseconds since 1970."}}),
        ),
    );
    let offer = tagged("limited_time_offer", &json!({"parameters": exactly_one(&[offer])}));
    let card = object(&json!({
        "card_index": {"type": "integer", "minimum": 0, "description": "The number of the card, counted from 0."},
        // Empty where no piece of the card takes a value.
        "components": {"type": "array", "items": reference("schemas", "MessagePart")},
    }));
    let carousel = tagged("carousel", &json!({"cards": some(&card, "The cards.")}));
    let component = json!({"anyOf": [reference("schemas", "MessagePart"), offer, carousel]});
    let language = object(&json!({"code": text("The language of the template.")}));
    let template =
        object(&json!({"name": text("The name of the template."), "language": language}));
    let components =
        some(&component, "The parts of the template that take values; absent if none does.");
    let template = with(template, "components", components);
    let mut payload = object(&json!({
        "messaging_product": {"type": "string", "const": "whatsapp"},
        "type": {"type": "string", "const": "template"},
        "template": template,
    }));
    payload["description"] =
        json!("What WhatsApp's Cloud API is sent; only the recipient, `to`, is still to be added.");
    payload
}

/// A part of a message, or of a card.
pub(super) fn part() -> Value {
    let value = text("The value.");
    let name = text("The name of the placeholder, if it has one.");
    let words = with(parameter("text", &value), "parameter_name", name);
    let files = ["image", "video", "document", "gif"].map(|kind| parameter(kind, &media()));
    let number = json!({"type": "number"});
    let place =
        object(&json!({"latitude": number, "longitude": number, "name": value, "address": value}));
    let product = object(&json!({"product_retailer_id": value, "catalog_id": value}));
    let others = [words.clone(), parameter("location", &place), parameter("product", &product)];
    let header = [&files[..], &others].concat();
    let payload = parameter("payload", &value);
    let minutes = parameter("ttl_minutes", &json!({"type": "integer", "minimum": 1}));
    let mut call = tagged(
        "button",
        &json!({
            "sub_type": {"type": "string", "const": "voice_call"},
            "parameters": one_or_more(&[minutes, payload.clone()]),
        }),
    );
    call["title"] = json!("button: voice_call");
    let mut kinds = vec![
        tagged("header", &json!({"parameters": one_or_more(&header)})),
        tagged("body", &json!({"parameters": one_or_more(std::slice::from_ref(&words))})),
        button("url", words),
        button("copy_code", parameter("coupon_code", &value)),
        button("quick_reply", payload),
        call,
    ];
    let actions = ["flow", "catalog", "mpm", "order_details"];
    kinds.extend(actions.map(|kind| button(kind, parameter("action", &action()))));
    json!({"anyOf": kinds, "description": "The values of one part."})
}

/// What a button does when it is tapped; each kind has members of its own.
fn action() -> Value {
    let id = text("The id of the product in its catalogue.");
    let items = some(&object(&json!({"product_retailer_id": id})), "The products.");
    let section = object(&json!({"title": text("What it is called."), "product_items": items}));
    let free =
        |about: &str| json!({"type": "object", "additionalProperties": true, "description": about});
    json!({"type": "object", "properties": {
        "flow_token": text("What the flow is told by."),
        "flow_action_data": free("What the flow begins with, as it was given."),
        "thumbnail_product_retailer_id": id,
        "sections": some(&section, "The products, in sections."),
        "order_details": free("What was ordered, as it was given."),
    }})
}

/// A file: where it is fetched from, or what WhatsApp called it.
fn media() -> Value {
    json!({
        "type": "object",
        "properties": {
            "link": text("Where the file is fetched from."),
            "id": text("What WhatsApp called the file when it was sent there."),
            "filename": text("What a document is called on the customer's device."),
        },
        "anyOf": [{"required": ["link"]}, {"required": ["id"]}],
    })
}

fn button(sub_type: &str, parameter: Value) -> Value {
    let mut button = tagged(
        "button",
        &json!({
            "sub_type": {"type": "string", "const": sub_type},
            "index": {"type": "string", "pattern": "^(?:[0-9]|1[0-9])$", "description": "The number of the button, counted from 0."},
            "parameters": exactly_one(&[parameter]),
        }),
    );
    button["title"] = json!(format!("button: {sub_type}"));
    button
}

fn exactly_one(kinds: &[Value]) -> Value {
    let mut one = one_or_more(kinds);
    one["maxItems"] = json!(1);
    one
}

fn one_or_more(kinds: &[Value]) -> Value {
    json!({"type": "array", "items": {"anyOf": kinds}, "minItems": 1})
}

fn some(item: &Value, about: &str) -> Value {
    json!({"type": "array", "items": item, "minItems": 1, "description": about})
}

/// A value, which stands in the member that its kind is called by.
fn parameter(kind: &str, value: &Value) -> Value {
    tagged(kind, &json!({kind: value}))
}

/// An object whose kind its `type` tells.
fn tagged(kind: &str, members: &Value) -> Value {
    let mut object = object(members);
    object["title"] = json!(kind);
    object["properties"]["type"] = json!({"type": "string", "const": kind});
    if let Some(required) = object["required"].as_array_mut() {
        required.push(json!("type"));
    }
    object
}

/// The object, which may have one member more.
fn with(mut object: Value, member: &str, schema: Value) -> Value {
    object["properties"][member] = schema;
    object
}

/// An object that has all of these members.
pub(super) fn object(members: &Value) -> Value {
    let required: Vec<Value> =
        members.as_object().into_iter().flat_map(|it| it.keys()).map(|key| json!(key)).collect();
    json!({"type": "object", "properties": members, "required": required})
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}
