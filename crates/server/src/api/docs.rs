//! `/docs`: the API reference in Swagger UI, whose files are embedded in the binary.

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    extract::{Path, rejection::PathRejection},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
    routing::get,
};
use utoipa_swagger_ui::Config;

use super::problem::{Problem, ProblemKind};
use crate::app::App;

static CONFIG: LazyLock<Arc<Config<'static>>> =
    LazyLock::new(|| Arc::new(Config::from("/openapi.json")));

/// The page loads only its own files and the API description, and calls only this service. Swagger UI
/// has inline styles and images.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/docs", get(async || file("index.html"))).route("/docs/{file}", get(asset))
}

async fn asset(name: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    file(&name.map_err(|_| Problem::of(ProblemKind::NotFound))?)
}

fn file(name: &str) -> Result<Response, Problem> {
    let file = utoipa_swagger_ui::serve(name, Arc::clone(&CONFIG)).ok().flatten();
    let file = file.ok_or(Problem::of(ProblemKind::NotFound))?;
    let mut bytes = file.bytes.into_owned();
    if name == "index.html" {
        // The page's links are relative to a directory, but `/docs` has no trailing slash.
        let page = String::from_utf8_lossy(&bytes)
            .replace("\"./", "\"/docs/")
            .replace("href=\"index.css\"", "href=\"/docs/index.css\"");
        bytes = page.into_bytes();
    }
    let content_type = HeaderValue::from_str(&file.content_type)
        .map_err(|_| Problem::of(ProblemKind::Internal))?;
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600")),
    ];
    Ok((headers, bytes).into_response())
}
