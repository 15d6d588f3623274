//! The API description (OpenAPI 3.1), assembled from the rulebook's table, the catalogue of
//! problems and hand-written pieces.
//!
//! An operation is one `Operation` in `templates`, `events`, `webhooks` or `service`; everything
//! else (its responses by status, their headers, the list of paths) follows from that.

mod calls;
mod events;
mod examples;
mod graph;
mod operation;
mod parameters;
mod schemas;
mod service;
mod shared;
mod templates;
mod webhooks;

use std::sync::LazyLock;

use axum::{
    body::Bytes,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use operation::Operation;

/// The whole description.
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Galley",
            "summary": "Message templates: created, checked, kept and served.",
            "description": DESCRIPTION,
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This service."}],
        "tags": [
            {"name": templates::TAG, "description": "What the service is for."},
            {"name": graph::TAG, "description": "The same templates for clients of WhatsApp's Graph API, which work here unchanged. For accounts with the `whatsapp` rulebook, which create and edit here."},
            {"name": events::TAG, "description": "What happens, as it happens."},
            {"name": webhooks::TAG, "description": "Being told what happens."},
            {"name": service::OPERATORS, "description": "Is it alive, does it take requests, how is it doing."},
            {"name": service::READERS, "description": "This description, and pages for people."},
        ],
        "paths": paths(),
        "components": {
            "schemas": schemas::all(),
            "parameters": parameters::all(),
            "headers": shared::headers(),
            "examples": examples::of_problems(),
            "securitySchemes": shared::security_schemes(),
        },
    })
}

const DESCRIPTION: &str = "\
A template has a name, a language, a category and components: a body and, if wanted, a header, a \
footer and buttons.\n\n\
Every call under `/api/` carries two credentials of one account: an API key in the path, and an \
access token in `Authorization: Bearer`.\n\n\
Every refusal is a problem document (RFC 9457, `application/problem+json`); its `type` is the \
path of a page about it. A template that breaks rules is told all of them at once, each with its \
place in the document, a stable rule id and a hint.\n\n\
An edit gives a template a new version, and a reviewer decides on versions; `live_version` is the \
one that is sent. Every change raises the revision that `ETag` tells: with `If-Match`, a change is \
made only to what the caller has seen.\n\n\
Every fact is one event, numbered 1, 2, 3 … in each account without gaps. Events are read by \
following the feed, or delivered to endpoints, signed as Standard Webhooks 1.0 says; both get the \
same document.\n\n\
In a request, `null` counts as absent, and unknown members are ignored, except among the values of \
a rendering. A response never contains `null`. An unknown query parameter is refused. A slash at the \
end of a path makes no difference.\n\n\
What is under `/{version}/` speaks as WhatsApp's Graph API does, and so differs in all of this: one \
token and no key, refusals in that API's form, and unknown parameters are passed over.";

fn paths() -> Value {
    let mut paths = Map::new();
    let operations = [
        templates::operations(),
        vec![events::list()],
        webhooks::operations(),
        service::operations(),
    ];
    for operation in operations.into_iter().flatten() {
        let Operation { path, method, .. } = operation;
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[method] = operation.render();
    }
    for (path, method, operation) in graph::operations() {
        paths.entry(path).or_insert_with(|| json!({}))[method] = operation;
    }
    Value::Object(paths)
}

pub(super) async fn show() -> Response {
    static WRITTEN: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());
    ([(header::CONTENT_TYPE, "application/json")], WRITTEN.clone()).into_response()
}
