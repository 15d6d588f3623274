//! `/docs`: the API, browsable. Swagger UI's files are inside the program.

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    extract::{Path, rejection::PathRejection},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
    routing::get,
};
use utoipa_swagger_ui::Config;

use super::problem::{Kind, Problem};
use crate::app::App;

static CONFIG: LazyLock<Arc<Config<'static>>> =
    LazyLock::new(|| Arc::new(Config::from("/openapi.json")));

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/docs", get(async || file("index.html"))).route("/docs/{file}", get(named))
}

async fn named(name: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    file(&name.map_err(|_| Problem::of(Kind::NotFound))?)
}

fn file(name: &str) -> Result<Response, Problem> {
    let file = utoipa_swagger_ui::serve(name, Arc::clone(&CONFIG)).ok().flatten();
    let file = file.ok_or(Problem::of(Kind::NotFound))?;
    let mut bytes = file.bytes.into_owned();
    if name == "index.html" {
        // Its links are relative to a directory; ours is reached without a slash at the end.
        let page = String::from_utf8_lossy(&bytes)
            .replace("\"./", "\"/docs/")
            .replace("href=\"index.css\"", "href=\"/docs/index.css\"");
        bytes = page.into_bytes();
    }
    let content_type =
        HeaderValue::from_str(&file.content_type).map_err(|_| Problem::of(Kind::Internal))?;
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600")),
    ];
    Ok((headers, bytes).into_response())
}
