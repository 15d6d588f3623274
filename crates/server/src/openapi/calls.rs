//! What calls with credentials share: bodies, answers, refusals and links.

use serde_json::{Map, Value, json};

use super::operation::reference;
use crate::api::problem::ProblemKind;

/// Refusals that can occur before the operation itself begins, and what the store can
/// answer: a free phone number is taken at its first use, so that even reading can write.
pub(super) const CALLER: &[ProblemKind] = &[
    ProblemKind::NotFound,
    ProblemKind::TokenMissing,
    ProblemKind::TokenUnknown,
    ProblemKind::TokenExpired,
    ProblemKind::TokenRevoked,
    ProblemKind::KeyUnknown,
    ProblemKind::KeyExpired,
    ProblemKind::KeyRevoked,
    ProblemKind::CredentialsMismatch,
    ProblemKind::PhoneUnknown,
    ProblemKind::ScopeMissing,
    ProblemKind::AccountDisabled,
    ProblemKind::Busy,
    ProblemKind::StorageFull,
    ProblemKind::Unavailable,
    ProblemKind::OutcomeUnknown,
    ProblemKind::Deadline,
    ProblemKind::DamagedData,
    ProblemKind::Internal,
];

/// What a request body can be refused with before its meaning is looked at.
pub(super) const BODY: &[ProblemKind] = &[
    ProblemKind::UnsupportedMediaType,
    ProblemKind::TooLarge,
    ProblemKind::BodyTimeout,
    ProblemKind::MalformedJson,
    ProblemKind::BadRequest,
];

/// A body that has to be sent.
pub(super) fn body(description: &str, schema: &str, examples: &Value) -> Value {
    json!({
        "required": true,
        "description": format!("{description}, as JSON in UTF-8. A body without a content type is read as JSON."),
        "content": {
            "application/json": {"schema": reference("schemas", schema), "examples": examples},
        },
    })
}

/// A body that may be left out.
pub(super) fn optional_body(description: &str, schema: &str, examples: &Value) -> Value {
    let mut body = body(description, schema, examples);
    body["required"] = json!(false);
    body
}

/// JSON of one schema, with an example of it.
pub(super) fn content(schema: &str, example: &Value) -> Value {
    let schema = reference("schemas", schema);
    json!({"application/json": {"schema": schema, "example": example}})
}

/// JSON of one schema, with several examples of it.
pub(super) fn contents(schema: &str, examples: &Value) -> Value {
    let schema = reference("schemas", schema);
    json!({"application/json": {"schema": schema, "examples": examples}})
}

/// A way from an answer to an operation for the same caller.
pub(super) fn link(
    operation: &str,
    about: &str,
    id: Option<&str>,
    more: Option<(&'static str, Value)>,
) -> Value {
    let mut parameters = Map::new();
    for name in ["phone_number_id", "key"] {
        parameters.insert(format!("path.{name}"), json!(format!("$request.path.{name}")));
    }
    parameters.extend(id.map(|id| ("path.id".to_owned(), json!(id))));
    parameters.extend(more.map(|(name, value)| (name.to_owned(), value)));
    json!({"operationId": operation, "description": about, "parameters": parameters})
}
