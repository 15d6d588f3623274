//! Headers, security schemes and values that operations share.

use galley_domain::account::Scope;
use serde_json::{Value, json};

pub(super) fn headers() -> Value {
    json!({
        "x-request-id": {
            "required": true,
            "description": "The name of the request: the caller's own if it was usable, otherwise one that the service made.",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9._~+-]{1,64}$"},
        },
        "Cache-Control": {
            "required": true,
            "description": "Answers are not to be kept by caches, except the files of the documentation and samples of attachments.",
            "schema": {"type": "string", "enum": ["no-store", "public, max-age=3600", "public, max-age=31536000, immutable"]},
        },
        "Location": {
            "required": true,
            "description": "Where the new template or endpoint is read, relative to the path it was created at, so that no key stands in an answer.",
            "schema": {"type": "string", "pattern": "^(?:message_templates|webhooks)/[1-9][0-9]{0,15}$"},
        },
        "ETag": {
            "required": true,
            "description": "The revision of what is shown; it changes with every change. A sample never does: its tag is its name.",
            "schema": {"type": "string", "pattern": "^\"(?:[0-9]+|[A-Za-z0-9_-]{32})\"$"},
        },
        "Accept-Ranges": {
            "required": true,
            "description": "The file can be read in parts.",
            "schema": {"type": "string", "const": "bytes"},
        },
        "Content-Range": {
            "required": true,
            "description": "Which bytes these are, or that there are none, and how many the file has.",
            "schema": {"type": "string", "pattern": "^bytes (?:[0-9]+-[0-9]+|\\*)/[0-9]+$"},
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
    let scopes = Scope::ALL.map(Scope::as_str).join("`, `");
    json!({
        "accessTokenInQuery": {
            "type": "apiKey",
            "in": "query",
            "name": "access_token",
            "description": "The same token in the query, as some clients of the Graph API send it; under `/{version}/` only.",
        },
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

/// A phone number id for examples.
pub(super) const PHONE: &str = "15550001111";

/// How many items a page has at most.
pub(super) const MOST_ON_A_PAGE: usize = 100;
