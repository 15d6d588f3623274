//! The schemas of the values that go into a rendering: what can be said of them without knowing
//! the template.

use galley_domain::{
    reference::json_schema,
    rulebook::{Field, FieldType, ObjectSchema, Presence, StringFormat, StringRule},
};
use serde_json::{Map, Value, json};

use super::{super::operation::reference, message::object};

/// A string as the rulebook's table would say it.
const fn row(name: &'static str, max: usize, form: StringFormat) -> Field {
    let text = StringRule { max, whatsapp_max: None, multiline: false, format: form };
    Field {
        name,
        presence: Presence::Required,
        field_type: FieldType::String(text),
        about: "A value.",
    }
}

/// What a single value may be wherever it is put; the template may want less.
static VALUE: ObjectSchema = ObjectSchema {
    title: "a value",
    fields: &[
        row("header", 2_000, StringFormat::Free),
        row("body", 32_768, StringFormat::Free),
        row("buttons", 2_000, StringFormat::Free),
        row("offer", 40, StringFormat::Timestamp),
    ],
};

/// The values of a whole template.
pub(super) fn values() -> Value {
    let mut properties = parts();
    let card = json!({"anyOf": [reference("schemas", "CardValues"), {"type": "null"}]});
    let cards = json!({"type": "array", "title": "Values of cards", "items": card});
    properties.insert("cards".to_owned(), json!({
        "anyOf": [cards, nothing_as_object(), {"type": "null"}],
        "description": "For a template of the rulebook `whatsapp` that has cards: the values of each.",
    }));
    let end = json!({"type": "integer", "title": "Milliseconds since 1970", "minimum": 100_000_000_000_i64, "maximum": 253_402_300_799_999_i64});
    properties.insert("offer".to_owned(), json!({
        "anyOf": [string("offer"), end, nothing_as_list(), nothing_as_object(), {"type": "null"}],
        "description": "For a template of the rulebook `whatsapp` with an offer that ends: when it does, as RFC 3339 writes it or in milliseconds since 1970.",
    }));
    closed("The values of a template", &properties.into())
}

/// The values of one card.
pub(super) fn card() -> Value {
    closed("The values of a card", &parts().into())
}

/// What a message takes, and each of its cards.
fn parts() -> Map<String, Value> {
    let or = |mut kinds: Vec<Value>, about: &str| {
        kinds.push(json!({"type": "null"}));
        json!({"anyOf": kinds, "description": about})
    };
    let header = or(
        [list("header"), by_name("header"), titled("Address of an attachment", string("header"))]
            .into_iter()
            .chain([attachment(), location(), product()])
            .collect(),
        "For a TEXT header one value for each different placeholder: a list in their order, or an object by their names where they have such. For a MEDIA header a list with the address of the attachment, whose ending tells its kind. Under `whatsapp`: for an attachment its address by itself or in an object; for a LOCATION and a PRODUCT an object.",
    );
    let body = or(
        vec![list("body"), by_name("body"), titled("Code", string("body"))],
        "One value for each different placeholder of the body: a list in their order, or an object by their names where they have such. For an AUTHENTICATION template of `whatsapp` the code, by itself or in a list.",
    );
    let by_number = json!({
        "type": "object",
        "title": "By number",
        "patternProperties": {"^(?:[0-9]|1[0-9])$": {"anyOf": of_button()}},
        "additionalProperties": {"type": "null"},
    });
    let buttons = or(
        vec![by_number, nothing_as_list()],
        "By the button's number, counted from 0: the end of an address that ends in a placeholder, or the code that is copied. Under `whatsapp` also what a quick reply sends back, for how many minutes a call may be made, and an object for a flow, products or an order.",
    );
    [("header", header), ("body", body), ("buttons", buttons)]
        .map(|(name, schema)| (name.to_owned(), schema))
        .into_iter()
        .collect()
}

/// A value for each placeholder, in their order.
fn list(place: &str) -> Value {
    json!({"type": "array", "title": "By position", "items": or_null(&string(place))})
}

/// A value for each placeholder that has a name. Where the template takes nothing, nothing may be
/// written in any way; the members are all `null` then.
fn by_name(place: &str) -> Value {
    json!({
        "type": "object",
        "title": "By name",
        "patternProperties": {"^[a-z_][a-z0-9_]*$": or_null(&string(place))},
        "additionalProperties": {"type": "null"},
    })
}

fn attachment() -> Value {
    let text = or_null(&string("header"));
    closed("Attachment", &json!({"link": text, "id": text, "filename": text}))
}

fn location() -> Value {
    let text = string("header");
    let degrees =
        |most: i32| json!({"anyOf": [{"type": "number", "minimum": -most, "maximum": most}, text]});
    let place = object(&json!({
        "latitude": degrees(90), "longitude": degrees(180), "name": text, "address": text,
    }));
    exactly("Location", place)
}

fn product() -> Value {
    let text = string("header");
    exactly("Product", object(&json!({"product_retailer_id": text, "catalog_id": text})))
}

/// What the kinds of buttons take.
fn of_button() -> Vec<Value> {
    let text = string("buttons");
    let optional = or_null(&text);
    let minutes = json!({"type": "integer", "title": "Minutes", "minimum": 1, "maximum": 43_200});
    let data = json!({"anyOf": [{"type": "object"}, {"type": "null"}]});
    let item = exactly("Product of a section", object(&json!({"product_retailer_id": text})));
    let items = json!({"type": "array", "items": item, "minItems": 1, "maxItems": 30});
    let section = exactly("Section", object(&json!({"title": text, "product_items": items})));
    let sections = json!({"type": "array", "items": section, "minItems": 1, "maxItems": 10});
    vec![
        titled("End of an address, code, or what is sent back", text.clone()),
        minutes.clone(),
        closed("Flow", &json!({"flow_token": optional, "flow_action_data": data})),
        closed("Catalogue", &json!({"thumbnail_product_retailer_id": optional})),
        exactly(
            "Products",
            object(&json!({"thumbnail_product_retailer_id": text, "sections": sections})),
        ),
        closed("Call", &json!({"ttl_minutes": or_null(&minutes), "payload": optional})),
        json!({"type": "object", "title": "Order, as WhatsApp takes it", "minProperties": 1}),
        json!({"type": "null"}),
    ]
}

fn string(place: &str) -> Value {
    let mut string = json_schema::object_schema(&VALUE)["properties"][place].take();
    string["not"] = json!({"pattern": " {5}"});
    string
}

fn or_null(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn nothing_as_object() -> Value {
    json!({"type": "object", "title": "Nothing", "additionalProperties": {"type": "null"}})
}

fn nothing_as_list() -> Value {
    json!({"type": "array", "title": "Nothing", "items": {"type": "null"}})
}

/// An object that may hold these members and no others.
fn closed(title: &str, properties: &Value) -> Value {
    json!({
        "type": "object",
        "title": title,
        "properties": properties,
        "additionalProperties": {"type": "null"},
    })
}

/// An object that holds what it says and nothing else.
fn exactly(title: &str, mut object: Value) -> Value {
    object["additionalProperties"] = json!({"type": "null"});
    titled(title, object)
}

fn titled(title: &str, mut schema: Value) -> Value {
    schema["title"] = json!(title);
    schema
}
