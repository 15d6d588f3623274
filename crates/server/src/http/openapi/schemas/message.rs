//! The schemas of rendering: the values that go in, the texts and the message that come out.

use galley_domain::{
    rulebook::{Field, Form, Part, Presence, Shape, Text},
    schema,
};
use serde_json::{Value, json};

use super::super::operation::reference;

/// A string as the rulebook's table would say it.
const fn row(name: &'static str, max: usize) -> Field {
    let text = Text { max, whatsapp_max: None, multiline: false, form: Form::Free };
    Field { name, presence: Presence::Required, shape: Shape::Text(text), about: "A value." }
}

/// What a single value may be wherever it is put; the template may want less.
static VALUE: Part = Part {
    title: "a value",
    fields: &[row("header", 2_000), row("body", 4_096), row("buttons", 2_000)],
};

/// What can be said of values without knowing the template.
pub(super) fn values() -> Value {
    let mut strings = schema::of_part(&VALUE);
    let mut string = |place: &str| {
        let mut string = strings["properties"][place].take();
        string["not"] = json!({"pattern": " {5}"});
        json!({"anyOf": [string, {"type": "null"}]})
    };
    // Where the template takes nothing, nothing may be written in any way.
    let nothing_as_object = json!({
        "type": "object",
        "title": "Nothing",
        "additionalProperties": {"type": "null"},
    });
    let nothing_as_list = json!({"type": "array", "title": "Nothing", "items": {"type": "null"}});
    let mut list = |place: &str, about: &str| {
        let list = json!({"type": "array", "title": "Values", "items": string(place)});
        json!({"anyOf": [list, nothing_as_object, {"type": "null"}], "description": about})
    };
    let header = list(
        "header",
        "One value for each different placeholder of a TEXT header, in their order; for a MEDIA header the address of the attachment, whose ending tells its kind.",
    );
    let body =
        list("body", "One value for each different placeholder of the body, in their order.");
    let by_number = json!({
        "type": "object",
        "title": "By number",
        "patternProperties": {"^(?:[0-9]|1[0-9])$": string("buttons")},
        "additionalProperties": {"type": "null"},
    });
    json!({
        "type": "object",
        "title": "The values of a template",
        "properties": {
            "header": header,
            "body": body,
            "buttons": {
                "anyOf": [by_number, nothing_as_list, {"type": "null"}],
                "description": "By the button's number, counted from 0: the end of an address that ends in `{{1}}`, or the code that is copied.",
            },
        },
        "additionalProperties": {"type": "null"},
    })
}

pub(super) fn rendered() -> Value {
    json!({
        "type": "object",
        "description": "What becomes of a template and its values.",
        "properties": {
            "texts": reference("schemas", "Texts"),
            "payload": reference("schemas", "Payload"),
        },
        "required": ["texts", "payload"],
    })
}

pub(super) fn texts() -> Value {
    let label = text("The label.");
    let kinds = [
        tagged("QUICK_REPLY", &json!({"text": label})),
        tagged("URL", &json!({"text": label, "url": text("The whole address.")})),
        tagged("PHONE_NUMBER", &json!({"text": label, "phone_number": text("The number.")})),
        tagged("COPY_CODE", &json!({"code": text("The code that is copied.")})),
    ];
    json!({
        "type": "object",
        "description": "What the customer reads. Parts that the template does not have are absent.",
        "properties": {
            "header": text("The headline, or the address of the attachment."),
            "body": text("The message itself."),
            "footer": text("The small print."),
            "buttons": {
                "type": "array",
                "items": {"anyOf": kinds},
                "minItems": 1,
                "description": "The buttons, in the order they are shown.",
            },
        },
        "required": ["body"],
    })
}

pub(super) fn payload() -> Value {
    let component = json!({"anyOf": [
        tagged("header", &json!({"parameters": parameters(&["text", "image", "video", "document"])})),
        tagged("body", &json!({"parameters": parameters(&["text"])})),
        button("url", "text"),
        button("copy_code", "coupon_code"),
    ]});
    let language = object(&json!({"code": text("The language of the template.")}));
    let mut template =
        object(&json!({"name": text("The name of the template."), "language": language}));
    template["properties"]["components"] = json!({
        "type": "array",
        "items": component,
        "minItems": 1,
        "description": "The parts of the template that take values; absent if none does.",
    });
    let mut payload = object(&json!({
        "messaging_product": {"type": "string", "const": "whatsapp"},
        "type": {"type": "string", "const": "template"},
        "template": template,
    }));
    payload["description"] =
        json!("What WhatsApp's Cloud API is sent; only the recipient, `to`, is still to be added.");
    payload
}

fn button(sub_type: &str, kind: &str) -> Value {
    let mut parameters = parameters(&[kind]);
    parameters["maxItems"] = json!(1);
    tagged(
        "button",
        &json!({
            "sub_type": {"type": "string", "const": sub_type},
            "index": {"type": "string", "pattern": "^(?:[0-9]|1[0-9])$", "description": "The number of the button, counted from 0."},
            "parameters": parameters,
        }),
    )
}

fn parameters(kinds: &[&str]) -> Value {
    let kinds: Vec<Value> = kinds.iter().map(|kind| parameter(kind)).collect();
    json!({"type": "array", "items": {"anyOf": kinds}, "minItems": 1})
}

/// A value in the form that its kind has.
fn parameter(kind: &str) -> Value {
    let link = text("Where the file is fetched from.");
    let value = match kind {
        "image" | "video" => object(&json!({"link": link})),
        "document" => {
            let filename = text("What the file is called on the customer's device.");
            object(&json!({"link": link, "filename": filename}))
        }
        _ => text("The value."),
    };
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

/// An object that has all of these members.
fn object(members: &Value) -> Value {
    let required: Vec<Value> =
        members.as_object().into_iter().flat_map(|it| it.keys()).map(|key| json!(key)).collect();
    json!({"type": "object", "properties": members, "required": required})
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}
