//! The operations on templates, and what they share: bodies, answers, refusals and links.

mod collection;
mod item;
mod life;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::{
    examples,
    operation::{Answer, Operation, reference},
};
use crate::http::problem::Kind;

pub(super) const TAG: &str = "Templates";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        collection::list(),
        collection::create(),
        collection::validate(),
        item::show(),
        item::edit(),
        item::delete(),
        life::versions(),
        life::review(),
        life::render(),
    ]
}

/// What anybody can be refused with before the operation itself begins, and what the store can
/// answer: a free phone number is taken at its first use, so that even reading can write.
const CALLER: &[Kind] = &[
    Kind::NotFound,
    Kind::TokenMissing,
    Kind::TokenUnknown,
    Kind::TokenExpired,
    Kind::TokenRevoked,
    Kind::KeyUnknown,
    Kind::KeyExpired,
    Kind::KeyRevoked,
    Kind::CredentialsMismatch,
    Kind::PhoneUnknown,
    Kind::ScopeMissing,
    Kind::AccountDisabled,
    Kind::Busy,
    Kind::StorageFull,
    Kind::Unavailable,
    Kind::OutcomeUnknown,
    Kind::Deadline,
    Kind::Internal,
];

/// What a request body can be refused with before its meaning is looked at.
const BODY: &[Kind] = &[
    Kind::UnsupportedMediaType,
    Kind::TooLarge,
    Kind::BodyTimeout,
    Kind::MalformedJson,
    Kind::BadRequest,
];

/// A body that has to be sent.
fn body(description: &str, schema: &str, examples: &Value) -> Value {
    json!({
        "required": true,
        "description": format!("{description}, as JSON in UTF-8. A body without a content type is read as JSON."),
        "content": {
            "application/json": {"schema": reference("schemas", schema), "examples": examples},
        },
    })
}

/// JSON of one schema, with an example of it.
fn content(schema: &str, example: &Value) -> Value {
    let schema = reference("schemas", schema);
    json!({"application/json": {"schema": schema, "example": example}})
}

/// The template as it is now, with its tag and everything that can be done to it next.
fn template(description: &'static str, example: &Value) -> Answer {
    Answer {
        status: StatusCode::OK,
        description,
        headers: &["Cache-Control", "ETag"],
        content: Some(content("Template", example)),
        links: Some(links_to_one("$request.path.id", Some("$response.header.ETag"))),
    }
}

/// Everything that can be done to one template: `id` tells where its id stands, `tag` where the
/// tag of what is known of it.
fn links_to_one(id: &str, tag: Option<&str>) -> Value {
    let tagged = |header: &'static str| tag.map(|tag| (header, json!(tag)));
    let links = [
        ("show", "showTemplate", "Reads the template.", tagged("header.If-None-Match")),
        ("edit", "editTemplate", "Gives it a new version.", tagged("header.If-Match")),
        ("review", "reviewTemplate", "Decides on it.", tagged("header.If-Match")),
        ("delete", "deleteTemplate", "Takes it away.", tagged("header.If-Match")),
        ("versions", "listVersions", "Shows its history.", None),
        ("render", "renderTemplate", "Puts values into it.", None),
    ];
    let links = links.into_iter().map(|(name, operation, about, more)| {
        (name.to_owned(), link(operation, about, Some(id), more))
    });
    Value::Object(links.collect())
}

/// A way from an answer to an operation for the same caller.
fn link(
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
