//! For operators: is it alive, does it take requests, how is it doing.

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

use super::{
    json,
    problem::{Kind, Problem},
};
use crate::app::App;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}

async fn alive() -> Response {
    json(StatusCode::OK, r#"{"status":"alive"}"#.to_owned())
}

async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    if app.is_draining() {
        return Err(Problem::of(Kind::NotReady).detail("This instance is shutting down."));
    }
    app.store().ping().await?;
    Ok(json(StatusCode::OK, r#"{"status":"ready"}"#.to_owned()))
}

async fn metrics(State(app): State<App>) -> Response {
    let format = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (format, app.metrics().page()).into_response()
}
