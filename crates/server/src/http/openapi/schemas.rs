//! The schemas of what is sent and answered.

use galley_domain::{
    rulebook::V1,
    schema,
    template::{Category, Status},
    violation::{MOST_TOLD, Rule},
};
use serde_json::{Value, json};

use super::{
    operation::{problem_type, reference},
    shared,
};
use crate::http::problem::Kind;

pub(super) fn all() -> Value {
    json!({
        "NewTemplate": schema::of_template(&V1),
        "Created": created(),
        "Template": template(),
        "Problem": problem(),
        "Violation": violation(),
    })
}

fn created() -> Value {
    json!({
        "type": "object",
        "description": "What became of a creation.",
        "properties": {
            "id": described(shared::id(), "The new template's id."),
            "status": status(),
            "category": {"type": "string", "enum": Category::WORDS},
        },
        "required": ["id", "status", "category"],
    })
}

/// The kept document and what the service knows beside it.
fn template() -> Value {
    let mut schema = schema::of_kept(&V1);
    let more = json!({
        "id": described(shared::id(), "Its id."),
        "status": status(),
        "phone_number_id": {"type": "string", "description": "The phone number it was created for."},
        "version": {"type": "integer", "minimum": 1, "description": "The number of its newest version."},
        "live_version": {"type": "integer", "minimum": 1, "description": "The newest approved version: the one that is sent. Absent while there is none."},
        "created_at": {"type": "string", "format": "date-time"},
        "updated_at": {"type": "string", "format": "date-time"},
    });
    let required = ["id", "status", "version", "created_at", "updated_at"];
    if let (Some(properties), Value::Object(more)) = (schema["properties"].as_object_mut(), more) {
        properties.extend(more);
    }
    if let Some(names) = schema["required"].as_array_mut() {
        names.extend(required.map(Value::from));
    }
    schema
}

fn status() -> Value {
    json!({"type": "string", "enum": Status::WORDS, "description": "Where the template stands."})
}

fn problem() -> Value {
    let types: Vec<String> = Kind::ALL.iter().map(|kind| problem_type(*kind)).collect();
    json!({
        "type": "object",
        "description": "A refusal (RFC 9457).",
        "properties": {
            "type": {"type": "string", "format": "uri-reference", "enum": types, "description": "Which problem; also the path of a page about it."},
            "title": {"type": "string", "description": "What the problem is; the same for every problem of the type."},
            "status": {"type": "integer", "minimum": 400, "maximum": 599, "description": "The status code, repeated."},
            "detail": {"type": "string", "description": "What is wrong this time, or what can be done about it."},
            "request_id": {"type": "string", "description": "The name of the request, as in `x-request-id`."},
            "violations": {
                "type": "array",
                "items": reference("schemas", "Violation"),
                "minItems": 1,
                "maxItems": MOST_TOLD,
                "description": "With `invalid-template`: every broken rule, in the order they were found.",
            },
            "more": {"type": "integer", "minimum": 1, "description": format!("How many violations there are beyond the {MOST_TOLD} that are told.")},
            "existing_id": described(shared::id(), "With `name-taken`: the template that has the name, if it is the caller's own."),
        },
        "required": ["type", "title", "status", "detail", "request_id"],
    })
}

fn violation() -> Value {
    let ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    let about: Vec<String> =
        Rule::ALL.iter().map(|rule| format!("- `{}`: {}", rule.id(), rule.about())).collect();
    json!({
        "type": "object",
        "description": "One broken rule at one place of the document.",
        "properties": {
            "pointer": {"type": "string", "description": "Where, as a JSON pointer (RFC 6901); empty for the document itself.", "examples": ["/components/0/text"]},
            "rule": {"type": "string", "enum": ids, "description": format!("Which rule. Ids never change.\n\n{}", about.join("\n"))},
            "message": {"type": "string", "description": "What is wrong there."},
            "hint": {"type": "string", "description": "How to mend it."},
            "span": {
                "type": "object",
                "description": "Which characters of the string at `pointer`, counted in Unicode scalar values; `end` is not part of it.",
                "properties": {
                    "start": {"type": "integer", "minimum": 0},
                    "end": {"type": "integer", "minimum": 0},
                },
                "required": ["start", "end"],
            },
        },
        "required": ["pointer", "rule", "message"],
    })
}

fn described(mut schema: Value, about: &str) -> Value {
    schema["description"] = json!(about);
    schema
}
