//! The schemas of what is sent and answered.

mod message;
mod refusal;
mod values;
mod webhooks;

use galley_domain::{
    reference::json_schema,
    rulebook::{Category, V1},
    template::{Status, review::DECISION},
    violation::{MAX_LISTED, WarningRule},
    webhook,
};
use serde_json::{Value, json};

use super::{graph, operation::reference, shared};

pub(super) fn all() -> Value {
    let mut all = json!({
        "NewTemplate": json_schema::template_schema(&V1),
        "Trial": trial(),
        "Edit": json_schema::edit_schema(&V1),
        "Decision": json_schema::object_schema(&DECISION),
        "Values": values::values(),
        "CardValues": values::card(),
        "Created": created(),
        "Template": template(),
        "TemplatePage": page("Some templates, newest first.", "Template"),
        "Version": version(),
        "VersionPage": page("Some versions of a template, newest first.", "Version"),
        "Verdict": verdict(),
        "Warning": warning(),
        "Rendered": message::rendered(),
        "Texts": message::texts(),
        "CardTexts": message::card(),
        "Payload": message::payload(),
        "MessagePart": message::part(),
        "Event": webhooks::event(),
        "EventPage": webhooks::page_of_events(),
        "NewWebhook": json_schema::object_schema(&webhook::REGISTRATION),
        "WebhookChange": json_schema::patch_schema(&webhook::CHANGE),
        "Rotation": json_schema::object_schema(&webhook::ROTATION),
        "Replay": json_schema::one_field_schema(&webhook::REPLAY),
        "Webhook": webhooks::webhook(),
        "WebhookWithSecret": webhooks::webhook_with_secret(),
        "WebhookList": webhooks::list(),
        "Delivery": webhooks::delivery(),
        "DeliveryPage": page("Some deliveries of an endpoint, newest event first.", "Delivery"),
        "Replayed": webhooks::replayed(),
        "Problem": refusal::problem(),
        "Violation": refusal::violation(),
    });
    if let Some(all) = all.as_object_mut() {
        all.extend(graph::all_schemas());
    }
    all
}

/// Whatever is JSON can be tried out.
fn trial() -> Value {
    json!({
        "anyOf": [
            reference("schemas", "NewTemplate"),
            {"description": "Anything else is told what is wrong with it."},
        ],
    })
}

fn created() -> Value {
    json!({
        "type": "object",
        "description": "What became of a creation.",
        "properties": {
            "id": described(shared::id(), "The new template's id."),
            "status": status(Status::VALUES),
            "category": category("What it is sent for."),
        },
        "required": ["id", "status", "category"],
    })
}

/// The kept document and what the service knows beside it.
fn template() -> Value {
    let mut schema = json_schema::stored_schema(&V1);
    let more = json!({
        "id": described(shared::id(), "Its id."),
        "status": status(Status::VALUES),
        "phone_number_id": {"type": "string", "description": "The phone number it was created for."},
        "version": number("The number of the version that is shown: the newest, unless another one was asked for."),
        "live_version": number("The newest approved version: the one that is sent. Absent while there is none, and while the template is paused or disabled."),
        "rejection_reason": {"type": "string", "description": "Why the version that is shown was rejected, in the reviewer's words."},
        "previous_category": category("The category before the version that is shown, if that changed it."),
        "created_at": moment("When it was created."),
        "updated_at": moment("When it last changed."),
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

fn version() -> Value {
    let of_versions = [Status::Pending, Status::Approved, Status::Rejected].map(Status::as_str);
    json!({
        "type": "object",
        "description": "One version of a template.",
        "properties": {
            "version": number("Its number: 1, 2, 3 …"),
            "status": status(&of_versions),
            "category": category("What it is sent for."),
            "previous_category": category("The category of the version before, if this one changed it."),
            "created_at": moment("When it was made."),
            "created_by": actor("Who made it"),
            "decided_at": moment("When a reviewer decided on it."),
            "decided_by": actor("Who decided"),
            "reason": {"type": "string", "description": "Why, in the reviewer's words."},
        },
        "required": ["version", "status", "category", "created_at", "created_by"],
        "dependentRequired": {
            "decided_at": ["decided_by"],
            "decided_by": ["decided_at"],
            "reason": ["decided_at"],
        },
    })
}

/// Some items of a list, and the way to the next ones.
fn page(about: &str, item: &str) -> Value {
    json!({
        "type": "object",
        "description": about,
        "properties": {
            "data": {"type": "array", "maxItems": shared::MOST_ON_A_PAGE, "items": reference("schemas", item)},
            "paging": {
                "type": "object",
                "properties": {
                    "cursors": {
                        "type": "object",
                        "properties": {
                            "after": {"type": "string", "pattern": "^[1-9][0-9]*$", "description": "Where the page ends, as `after` takes it. Absent when it is empty."},
                        },
                    },
                    "next": {"type": "string", "pattern": r"^\?(?:.*&)?after=[1-9][0-9]*$", "description": "The same question for the next page, to be put behind the path; relative, so that no key stands in an answer. Absent on the last page."},
                },
                "required": ["cursors"],
            },
        },
        "required": ["data", "paging"],
    })
}

fn verdict() -> Value {
    json!({
        "type": "object",
        "description": "What a document would meet with.",
        "properties": {
            "valid": {"type": "boolean", "description": "Whether a creation would be accepted."},
            "violations": {
                "type": "array",
                "items": reference("schemas", "Violation"),
                // A taken name is told behind as many others as are told.
                "maxItems": MAX_LISTED + 1,
                "description": "Every broken rule, in the order they were found; empty for a valid document.",
            },
            "more": refusal::more("violations"),
            "warnings": {
                "type": "array",
                "items": reference("schemas", "Warning"),
                "maxItems": MAX_LISTED,
                "description": "Findings that do not prevent creation but are likely to cause problems later.",
            },
            "more_warnings": refusal::more("warnings"),
        },
        "required": ["valid", "violations", "warnings"],
        "anyOf": [
            {"properties": {"valid": {"const": true}, "violations": {"maxItems": 0}}},
            {"properties": {"valid": {"const": false}, "violations": {"minItems": 1}}},
        ],
    })
}

fn warning() -> Value {
    let advice = WarningRule::ALL.iter().map(|advice| (advice.id(), advice.about()));
    let mut schema = refusal::remark("One thing worth a warning at one place of the document.");
    schema["properties"]["rule"] = refusal::catalogue("Which advice was not taken.", advice);
    schema["required"] = json!(["pointer", "rule", "message", "hint"]);
    schema
}

fn status(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words, "description": "Where it stands."})
}

fn category(about: &str) -> Value {
    json!({"type": "string", "enum": Category::VALUES, "description": about})
}

fn number(about: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": about})
}

fn moment(about: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": about})
}

fn actor(about: &str) -> Value {
    let about = format!(
        "{about}: the id of a token, `operator` for the command line, or `service` for the service itself."
    );
    json!({"type": "string", "pattern": "^(?:[0-9]+|operator|service)$", "description": about})
}

fn described(mut schema: Value, about: &str) -> Value {
    schema["description"] = json!(about);
    schema
}
