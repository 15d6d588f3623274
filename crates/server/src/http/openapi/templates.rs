//! The operations on templates.

use axum::http::StatusCode;
use galley_domain::credential::Scope;
use serde_json::{Value, json};

use super::{
    examples,
    operation::{Answer, Operation, reference},
};
use crate::http::{
    problem::Kind,
    templates::{COLLECTION, ITEM},
};

pub(super) const TAG: &str = "Templates";

pub(super) fn operations() -> Vec<Operation> {
    vec![create(), show()]
}

fn create() -> Operation {
    Operation {
        method: "post",
        path: COLLECTION,
        id: "createTemplate",
        tag: TAG,
        summary: "Create a template",
        description: "Checks the document against every rule and keeps it. Its name has to be free across the whole service. What the schema cannot say is checked too: placeholders count from `{{1}}` without gaps, and there is exactly one sample for each different one.",
        scope: Some(Scope::Write),
        parameters: &["PhoneNumberId", "Key", "IdempotencyKey"],
        body: Some(json!({
            "required": true,
            "description": "The template, as JSON in UTF-8. A body without a content type is read as JSON.",
            "content": {
                "application/json": {
                    "schema": reference("schemas", "NewTemplate"),
                    "examples": examples::of_templates(),
                },
            },
        })),
        answer: Answer {
            status: StatusCode::CREATED,
            description: "The template was created, now or by an earlier request with the same Idempotency-Key.",
            headers: &["Cache-Control", "Location", "Idempotent-Replayed"],
            content: json!({
                "application/json": {
                    "schema": reference("schemas", "Created"),
                    "example": examples::created(),
                },
            }),
            links: Some(links_from_created()),
        },
        refusals: [
            CALLER,
            BODY,
            &[Kind::InvalidTemplate, Kind::IdempotencyKeyReused, Kind::NameTaken],
        ]
        .concat(),
    }
}

fn show() -> Operation {
    Operation {
        method: "get",
        path: ITEM,
        id: "showTemplate",
        tag: TAG,
        summary: "Read a template",
        description: "One template of the account, whichever of its phone numbers it was created for.",
        scope: Some(Scope::Read),
        parameters: &["PhoneNumberId", "Key", "TemplateId"],
        body: None,
        answer: Answer {
            status: StatusCode::OK,
            description: "The template.",
            headers: &["Cache-Control", "ETag"],
            content: json!({
                "application/json": {
                    "schema": reference("schemas", "Template"),
                    "example": examples::shown(),
                },
            }),
            links: None,
        },
        refusals: [CALLER, &[Kind::TemplateUnknown]].concat(),
    }
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

fn links_from_created() -> Value {
    json!({
        "show": {
            "operationId": "showTemplate",
            "description": "Reads the template that was created.",
            "parameters": {
                "path.phone_number_id": "$request.path.phone_number_id",
                "path.key": "$request.path.key",
                "path.id": "$response.body#/id",
            },
        },
    })
}
