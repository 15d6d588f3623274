//! The schemas of refusals, and of remarks on a place in a document.

use galley_domain::{
    template::lifecycle::Trigger,
    violation::{MAX_LISTED, Rule},
};
use serde_json::{Value, json};

use super::described;
use crate::{
    api::problem::ProblemKind,
    openapi::{
        operation::{problem_type, reference},
        shared,
    },
};

pub(super) fn problem() -> Value {
    let types: Vec<String> = ProblemKind::ALL.iter().map(|kind| problem_type(*kind)).collect();
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
                "maxItems": MAX_LISTED,
                "description": "With `invalid-template`, `invalid-decision`, `invalid-values` and `invalid-webhook`: every broken rule, in the order they were found.",
            },
            "more": more("violations"),
            "existing_id": described(shared::id(), "With `name-taken`: the template that has the name, if it is the caller's own."),
            "possible": {
                "type": "array",
                "items": {"type": "string", "enum": Trigger::VALUES},
                "minItems": 1,
                "uniqueItems": true,
                "description": "With `move-not-possible`: what can happen to the template as it stands.",
            },
            "oldest": {"type": "integer", "minimum": 1, "description": "With `events-forgotten`: the `seq` of the oldest event that is kept, or will be."},
            "until": {"type": "string", "format": "date-time", "description": "With `rotation-open`: when the rotation before ends."},
        },
        "required": ["type", "title", "status", "detail", "request_id"],
    })
}

pub(super) fn violation() -> Value {
    let rules = Rule::ALL.iter().map(|rule| (rule.id(), rule.about()));
    let mut schema = remark("One broken rule at one place of the document.");
    schema["properties"]["rule"] = catalogue("Which rule. Ids never change.", rules);
    schema
}

/// Something said about a place in a document.
pub(super) fn remark(about: &str) -> Value {
    json!({
        "type": "object",
        "description": about,
        "properties": {
            "pointer": {"type": "string", "description": "Where, as a JSON pointer (RFC 6901); empty for the document itself.", "examples": ["/components/0/text"]},
            "message": {"type": "string", "description": "What there is to see."},
            "hint": {"type": "string", "description": "How to fix it."},
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

/// One of some ids, each with what it stands for.
pub(super) fn catalogue(
    about: &str,
    rows: impl Iterator<Item = (&'static str, &'static str)>,
) -> Value {
    let (ids, lines): (Vec<&str>, Vec<String>) =
        rows.map(|(id, about)| (id, format!("- `{id}`: {about}"))).unzip();
    let about = format!("{about}\n\n{}", lines.join("\n"));
    json!({"type": "string", "enum": ids, "description": about})
}

/// How many are only counted.
pub(super) fn more(what: &str) -> Value {
    let about = format!("How many {what} there are beyond the {MAX_LISTED} that are told.");
    json!({"type": "integer", "minimum": 1, "description": about})
}
