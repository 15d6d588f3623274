//! What is sent and answered on the surface for clients of the Graph API.

use galley_domain::{
    document::Document,
    reference::json_schema,
    rulebook::{Category, WHATSAPP},
    template::{Status, Template},
    violation::MAX_LISTED,
    webhook::{SUBSCRIPTION, delivery::DisableReason},
};
use serde_json::{Map, Value, json};

use super::super::{
    examples,
    operation::reference,
    shared::{self, ID},
};
use crate::api::{
    graph,
    problem::{Problem, ProblemKind},
};

/// Every schema by its name.
pub(in crate::openapi) fn all() -> Map<String, Value> {
    let schemas = json!({
        "GraphNewTemplate": json_schema::template_schema(&WHATSAPP),
        "GraphEdit": json_schema::edit_schema(&WHATSAPP),
        "GraphUpsert": upsert(),
        "GraphTemplate": template(),
        "GraphTemplatePage": page(),
        "GraphEdited": edited(),
        "GraphSuccess": success(),
        "GraphUpserted": upserted(),
        "GraphSubscription": json_schema::object_schema(&SUBSCRIPTION),
        "GraphSubscribed": subscribed(),
        "GraphSubscriptions": subscriptions_of_account(),
        "GraphUpload": {"type": "object", "properties": {"id": {"type": "string", "pattern": "^upload:"}}, "required": ["id"]},
        "GraphRefusal": refusal(),
    });
    match schemas {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
}

pub(super) fn body(schema: &str, examples: &Value) -> Value {
    let content = json!({"schema": reference("schemas", schema), "examples": examples});
    json!({
        "required": true,
        "description": "A document as JSON, or as a form in which lists, objects and booleans are JSON text.",
        "content": {"application/json": content},
    })
}

pub(super) fn optional_body(schema: &str, examples: &Value) -> Value {
    let mut body = body(schema, examples);
    body["required"] = json!(false);
    body
}

/// The kept document, as much of it as was asked for.
fn template() -> Value {
    let mut schema = json_schema::stored_schema(&WHATSAPP);
    let more = json!({
        "id": shared::id(),
        "status": {"type": "string", "enum": Status::VALUES},
        "previous_category": {"type": "string", "enum": Category::VALUES},
        "rejected_reason": {"type": "string", "description": "NONE unless it was rejected."},
        "quality_score": {
            "type": "object",
            "properties": {"score": {"type": "string", "const": "UNKNOWN"}, "date": {"type": "integer"}},
            "required": ["score", "date"],
        },
    });
    if let (Some(properties), Value::Object(more)) = (schema["properties"].as_object_mut(), more) {
        properties.extend(more);
    }
    schema["required"] = json!(["id"]);
    schema
}

fn page() -> Value {
    let text = json!({"type": "string"});
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object",
        "properties": {
            "data": {"type": "array", "items": reference("schemas", "GraphTemplate")},
            "paging": {
                "type": "object",
                "properties": {
                    "cursors": {"type": "object", "properties": {"before": text, "after": text}, "required": ["before", "after"]},
                    "next": text,
                    "previous": text,
                },
                "required": ["cursors"],
            },
            "summary": {
                "type": "object",
                "properties": {
                    "total_count": count,
                    "message_template_count": count,
                    "message_template_limit": count,
                    "are_translations_complete": {"type": "boolean"},
                },
                "required": ["total_count", "message_template_count", "message_template_limit", "are_translations_complete"],
            },
        },
        "required": ["data", "paging"],
    })
}

fn success() -> Value {
    json!({
        "type": "object",
        "properties": {"success": {"type": "boolean", "const": true}},
        "required": ["success"],
    })
}

fn subscribed() -> Value {
    let mut schema = success();
    schema["properties"]["galley_secret"] = json!({
        "type": "string",
        "pattern": "^[0-9a-f]{32}$",
        "description": "What is sent is signed with this, in `X-Hub-Signature-256`. Absent when the secret is the one that was told before.",
    });
    schema
}

fn subscriptions_of_account() -> Value {
    let text = json!({"type": "string"});
    let app = json!({
        "type": "object",
        "properties": {"id": shared::id(), "name": text, "link": text},
        "required": ["id", "name", "link"],
    });
    let item = json!({
        "type": "object",
        "properties": {
            "whatsapp_business_api_data": app,
            "override_callback_uri": text,
            "galley_disabled_at": {"type": "string", "format": "date-time", "description": "Since when nothing is sent there any more; subscribing again switches it on."},
            "galley_disabled_because": {"type": "string", "enum": DisableReason::VALUES},
        },
        "required": ["whatsapp_business_api_data"],
    });
    json!({
        "type": "object",
        "properties": {"data": {"type": "array", "items": item}},
        "required": ["data"],
    })
}

fn edited() -> Value {
    json!({
        "type": "object",
        "properties": {
            "success": {"type": "boolean", "const": true},
            "id": shared::id(),
            "name": {"type": "string"},
            "category": {"type": "string", "enum": Category::VALUES},
            "status": {"type": "string", "enum": Status::VALUES},
        },
        "required": ["success", "id", "name", "category", "status"],
    })
}

fn upsert() -> Value {
    json!({
        "type": "object",
        "description": "A template whose `languages` take the place of its `language`.",
        "properties": {
            "name": {"type": "string"},
            "languages": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "category": {"type": "string", "description": "AUTHENTICATION."},
            "components": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["name", "languages", "category", "components"],
    })
}

fn upserted() -> Value {
    let item = json!({
        "type": "object",
        "properties": {
            "id": shared::id(),
            "status": {"type": "string", "enum": Status::VALUES},
            "language": {"type": "string"},
            "category": {"type": "string", "enum": Category::VALUES},
        },
        "required": ["id", "status", "language", "category"],
    });
    json!({
        "type": "object",
        "properties": {"data": {"type": "array", "items": item}},
        "required": ["data"],
    })
}

fn refusal() -> Value {
    let text = json!({"type": "string"});
    let way = json!({"type": "array", "items": text});
    let error = json!({
        "type": "object",
        "properties": {
            "message": text,
            "type": {"type": "string", "const": "OAuthException"},
            "code": {"type": "integer", "description": "As the Graph API has it."},
            "error_subcode": {"type": "integer", "description": "As the Graph API has it, where one is known."},
            "error_user_title": text,
            "error_user_msg": text,
            "error_data": {
                "type": "object",
                "properties": {"blame_field_specs": {"type": "array", "items": way}},
                "required": ["blame_field_specs"],
            },
            "is_transient": {"type": "boolean", "description": "Whether trying again later can help."},
            "fbtrace_id": {"type": "string", "description": "The name of the request, as in `x-request-id`."},
            "galley_problem": {"type": "string", "description": "Which problem; `/problems/` and this is a page about it."},
            "galley_violations": {
                "type": "array",
                "items": reference("schemas", "Violation"),
                "maxItems": MAX_LISTED,
                "description": "Every broken rule, not only the first.",
            },
            "galley_more": {"type": "integer", "minimum": 1, "description": "How many more there are."},
        },
        "required": ["message", "type", "code", "error_user_title", "error_user_msg", "is_transient", "fbtrace_id", "galley_problem"],
    });
    json!({"type": "object", "properties": {"error": error}, "required": ["error"]})
}

const BODY: &str = "Hi {{1}}, your order is on its way to you.";

pub(super) fn templates() -> Value {
    let mut templates = examples::of_whatsapp_templates();
    templates["positional"] = json!({
        "summary": "Numbered placeholders and a button",
        "value": {
            "name": "order_shipped",
            "language": "en_US",
            "category": "UTILITY",
            "components": [
                {"type": "BODY", "text": BODY, "example": {"body_text": [["Ada"]]}},
                {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Thank you"}]},
            ],
        },
    });
    templates
}

pub(super) fn edits() -> Value {
    json!({
        "components": {
            "summary": "Other components",
            "value": {"components": [{"type": "BODY", "text": "Your order is on its way."}]},
        },
    })
}

pub(super) fn upserts() -> Value {
    json!({
        "code": {
            "summary": "A one-time code",
            "value": {
                "name": "one_time_code",
                "languages": ["en_US", "es"],
                "category": "AUTHENTICATION",
                "components": [
                    {"type": "BODY", "add_security_recommendation": true},
                    {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]},
                ],
            },
        },
    })
}

pub(super) fn subscriptions() -> Value {
    json!({
        "nothing": {"summary": "Nothing but to be subscribed, as every account is", "value": {}},
        "address": {
            "summary": "An address of one's own",
            "value": {
                "override_callback_uri": "https://shop.example/hooks/whatsapp",
                "verify_token": "what-the-receiver-knows",
            },
        },
    })
}

pub(super) fn subscriptions_example() -> Value {
    json!({"data": [{
        "whatsapp_business_api_data": {"id": ID, "name": "Galley", "link": "https://templates.example"},
        "override_callback_uri": "https://shop.example/hooks/whatsapp",
    }]})
}

pub(super) fn template_example() -> Value {
    json!({
        "name": "order_shipped",
        "language": "en_US",
        "status": "APPROVED",
        "category": "UTILITY",
        "parameter_format": "POSITIONAL",
        "components": [{"type": "BODY", "text": BODY, "example": {"body_text": [["Ada"]]}}],
        "id": ID,
    })
}

pub(super) fn page_example() -> Value {
    json!({
        "data": [template_example()],
        "paging": {
            "cursors": {"before": ID, "after": ID},
            "next": format!("https://templates.example/v23.0/1/message_templates?after={ID}&access_token=gt_your-token"),
        },
    })
}

pub(super) fn upserted_example() -> Value {
    let one = |language: &str| json!({"id": ID, "status": "APPROVED", "language": language, "category": "AUTHENTICATION"});
    json!({"data": [one("en_US"), one("es")]})
}

/// What a bad name is answered, written by the code that refuses.
pub(super) fn refusal_example() -> Value {
    let mut faulty = templates()["positional"]["value"].clone();
    faulty["name"] = json!("Order shipped");
    let text = faulty.to_string();
    let problem = match Document::parse(text.as_bytes()) {
        Ok(document) => match Template::read(&document, &WHATSAPP) {
            Ok(_) => Problem::of(ProblemKind::InvalidTemplate),
            Err(violations) => graph::invalid(violations, &document),
        },
        Err(error) => error.into(),
    };
    let (_, written) = graph::error_body(&problem, "order-4711");
    serde_json::from_str(&written).unwrap_or_default()
}
