//! Parameters, headers and security schemes that operations share.

use galley_domain::credential::{LONGEST_SEGMENT, Scope};
use serde_json::{Value, json};

use crate::http::problem::Kind;

pub(super) fn parameters() -> Value {
    let segment = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_SEGMENT,
        "pattern": format!("^[A-Za-z0-9._~+-]{{1,{LONGEST_SEGMENT}}}$"),
    });
    let slugs: Vec<&str> = Kind::ALL.iter().map(|kind| kind.slug()).collect();
    json!({
        "PhoneNumberId": {
            "name": "phone_number_id",
            "in": "path",
            "required": true,
            "description": "The phone number that messages are sent from. It has to be the account's.",
            "schema": segment,
            "example": "15550001111",
        },
        "Key": {
            "name": "key",
            "in": "path",
            "required": true,
            "description": "The caller's API key. It belongs to the same account as the access token.",
            "schema": segment,
            "example": "gk_your-api-key",
        },
        "TemplateId": {
            "name": "id",
            "in": "path",
            "required": true,
            "description": "The template's id, as its creation answered it.",
            "schema": id(),
            "example": ID,
        },
        "IdempotencyKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "Makes it safe to send the request again: the same key with the same path and body is answered with the first answer for 24 hours, and nothing is made twice. The same key with another body is refused.",
            // What an HTTP header can carry: no control characters, no white space at the ends.
            "schema": {
                "type": "string",
                "minLength": 1,
                "maxLength": 255,
                "pattern": r"^[!-~\u0080-\u00ff](?:[\t -~\u0080-\u00ff]*[!-~\u0080-\u00ff])?$",
            },
            "example": "7f9c2ba4-e88f-4a3c-9d07-5a3b1f1c2d4e",
        },
        "RequestId": {
            "name": "x-request-id",
            "in": "header",
            "required": false,
            "description": "A name for this request, repeated in the answer and the log. It is taken if it has 1 to 64 of the characters `A-Z a-z 0-9 . _ ~ + -`; otherwise the service makes its own.",
            "schema": {"type": "string"},
            "example": "order-4711",
        },
        "DocsFile": {
            "name": "file",
            "in": "path",
            "required": true,
            "description": "The name of a file that the page loads.",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]+$"},
            "example": "swagger-ui.css",
        },
        "Slug": {
            "name": "slug",
            "in": "path",
            "required": true,
            "description": "The last part of a problem's `type`.",
            "schema": {"type": "string", "enum": slugs},
            "example": Kind::InvalidTemplate.slug(),
        },
    })
}

pub(super) fn headers() -> Value {
    json!({
        "x-request-id": {
            "required": true,
            "description": "The name of the request: the caller's own if it was usable, otherwise one that the service made.",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9._~+-]{1,64}$"},
        },
        "Cache-Control": {
            "required": true,
            "description": "Answers are not to be kept by caches, except the files of the documentation.",
            "schema": {"type": "string", "enum": ["no-store", "public, max-age=3600"]},
        },
        "Location": {
            "required": true,
            "description": "Where the new template is read, relative to the path it was created at, so that no key stands in an answer.",
            "schema": {"type": "string", "pattern": "^message_templates/[1-9][0-9]{0,15}$"},
        },
        "ETag": {
            "required": true,
            "description": "The revision of what is shown; it changes with every change.",
            "schema": {"type": "string", "pattern": "^\"[0-9]+\"$"},
        },
        "Idempotent-Replayed": {
            "required": false,
            "description": "There when this is the first answer again, for an Idempotency-Key that was used before.",
            "schema": {"type": "string", "const": "true"},
        },
        "WWW-Authenticate": {
            "required": true,
            "description": "The access token is sent as `Authorization: Bearer <access token>`.",
            "schema": {"type": "string", "const": "Bearer"},
        },
        "Retry-After": {
            "required": true,
            "description": "After how many seconds to try again.",
            "schema": {"type": "integer", "minimum": 0},
        },
        "Allow": {
            "required": true,
            "description": "The methods that the path takes.",
            "schema": {"type": "string", "pattern": "^[A-Z]+(?:, ?[A-Z]+)*$"},
        },
    })
}

pub(super) fn security_schemes() -> Value {
    let scopes = Scope::ALL.map(Scope::word).join("`, `");
    json!({
        "accessToken": {
            "type": "http",
            "scheme": "bearer",
            "description": format!("An access token of the account that the API key in the path belongs to. A token has some of the scopes `{scopes}`; each operation names the one it needs."),
        },
    })
}

/// The schema of an id: a positive whole number below 2^53, written in decimal.
pub(super) fn id() -> Value {
    json!({"type": "string", "pattern": "^[1-9][0-9]{0,15}$"})
}

/// An id for examples.
pub(super) const ID: &str = "226542649344000";
