//! `/docs`: the API reference. The page is Galley's own; Swagger UI, which shows the documents in it,
//! is embedded in the binary.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::{Path, Request, rejection::PathRejection},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
    routing::get,
};
use swagger_ui_dist::{ApiDefinition, OpenApiSource};
use tower::ServiceExt;

use super::{problem::Problem, wrong_path};
use crate::app::App;

/// The page loads only its own files and the API description, and calls only this service. Swagger UI
/// has inline styles and images.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// The files of Swagger UI, as the crate offers them: routes below `/docs`.
static SWAGGER_UI: LazyLock<Router> = LazyLock::new(|| {
    swagger_ui_dist::generate_routes(ApiDefinition {
        uri_prefix: "/docs",
        api_definition: OpenApiSource::Uri("/openapi.json"),
        title: None,
    })
});

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/docs", get(async || own_file("text/html", include_str!("docs/index.html"))))
        .route("/docs/{file}", get(file))
}

async fn file(
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    match name.as_deref().map_or("", String::as_str) {
        "index.html" => Ok(own_file("text/html", include_str!("docs/index.html"))),
        "docs.css" => Ok(own_file("text/css", include_str!("docs/docs.css"))),
        "docs.js" => Ok(own_file("text/javascript", include_str!("docs/docs.js"))),
        "swagger-ui.css" | "swagger-ui-bundle.js" => {
            let Ok(response) = SWAGGER_UI.clone().oneshot(request).await;
            Ok(with_headers(response))
        }
        _ => Err(wrong_path::not_found(request.uri().path())),
    }
}

fn own_file(content_type: &'static str, content: &'static str) -> Response {
    let content_type = HeaderValue::from_static(content_type);
    with_headers(([(header::CONTENT_TYPE, content_type)], content).into_response())
}

fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}
