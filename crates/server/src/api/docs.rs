//! `/docs`: the API reference. The page is Galley's own; Swagger UI, which shows the documents in it,
//! is embedded in the binary.

use std::sync::LazyLock;

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Path, Request, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Uri, header},
    response::Response,
    routing::get,
};
use swagger_ui_dist::{ApiDefinition, OpenApiSource};
use tokio::sync::OnceCell;
use tower::ServiceExt;

use super::{problem::Problem, static_document::StaticDocument, wrong_path};
use crate::app::App;

/// The page loads only its own files and the API description, and calls only this service. Swagger UI
/// has inline styles and images.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

static PAGE: LazyLock<StaticDocument> =
    LazyLock::new(|| StaticDocument::new("text/html", include_str!("docs/index.html")));
static STYLE: LazyLock<StaticDocument> =
    LazyLock::new(|| StaticDocument::new("text/css", include_str!("docs/docs.css")));
static SCRIPT: LazyLock<StaticDocument> =
    LazyLock::new(|| StaticDocument::new("text/javascript", include_str!("docs/docs.js")));

/// The files of Swagger UI. The crate offers them only as routes below a prefix, with bytes from the
/// binary.
static SWAGGER_STYLE: OnceCell<StaticDocument> = OnceCell::const_new();
static SWAGGER_SCRIPT: OnceCell<StaticDocument> = OnceCell::const_new();

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/docs", get(async |headers: HeaderMap| respond(&PAGE, &headers)))
        .route("/docs/{file}", get(file))
}

async fn file(
    name: Result<Path<String>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let document = match name.as_deref().map_or("", String::as_str) {
        "index.html" => &*PAGE,
        "docs.css" => &*STYLE,
        "docs.js" => &*SCRIPT,
        "swagger-ui.css" => {
            let load =
                async || StaticDocument::new("text/css", swagger_ui("/docs/swagger-ui.css").await);
            SWAGGER_STYLE.get_or_init(load).await
        }
        "swagger-ui-bundle.js" => {
            let load = async || {
                let script = swagger_ui("/docs/swagger-ui-bundle.js").await;
                StaticDocument::new("text/javascript", script)
            };
            SWAGGER_SCRIPT.get_or_init(load).await
        }
        _ => return Err(wrong_path::not_found(uri.path())),
    };
    Ok(respond(document, &headers))
}

/// A file of Swagger UI. Its bytes stay in the binary: the body of the crate's response refers to
/// them.
async fn swagger_ui(path: &'static str) -> Bytes {
    let routes = swagger_ui_dist::generate_routes(ApiDefinition {
        uri_prefix: "/docs",
        api_definition: OpenApiSource::Uri("/openapi.json"),
        title: None,
    });
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = Uri::from_static(path);
    let Ok(response) = routes.oneshot(request).await;
    to_bytes(response.into_body(), usize::MAX).await.expect("the file is in the binary")
}

fn respond(document: &StaticDocument, headers: &HeaderMap) -> Response {
    let mut response = document.respond(headers);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
    response
}
