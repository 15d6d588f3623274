//! The HTTP API. `v1` contains API v1.0, `graph` the Graph surface, and the other modules what both
//! share: authentication, bodies, idempotency, conditional requests, problems and views.

pub(crate) mod at_provider;
pub(crate) mod auth;
pub(crate) mod base_path;
pub(crate) mod body;
pub(crate) mod conditional;
pub(crate) mod console;
pub(crate) mod docs;
pub(crate) mod emulated_app;
mod emulated_time;
pub(crate) mod graph;
pub(crate) mod health;
pub(crate) mod idempotency;
pub(crate) mod index_page;
pub(crate) mod media_url;
mod negotiation;
pub(crate) mod outcomes;
pub(crate) mod problem;
pub(crate) mod problem_pages;
pub(crate) mod query;
pub(crate) mod request_context;
pub(crate) mod revocation;
pub(crate) mod samples;
pub(crate) mod schemas;
pub(crate) mod search;
pub(crate) mod static_document;
pub(crate) mod throttling;
pub(crate) mod upstream_hook;
pub(crate) mod v1;
pub(crate) mod view;
pub(crate) mod wrong_path;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};

/// A response with a body that is already JSON.
pub(crate) fn json(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// The number of warnings that a validation of the same document lists; absent if there are none.
const WARNINGS: HeaderName = HeaderName::from_static("galley-warnings");

pub(crate) fn add_warning_count(response: &mut Response, count: usize) {
    if count > 0 {
        response.headers_mut().insert(WARNINGS, HeaderValue::from(count));
    }
}
