//! Liveness, readiness and metrics for operators.

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

use super::{
    json,
    problem::{Problem, ProblemKind},
};
use crate::app::App;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/healthz", get(liveness))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics))
}

async fn liveness() -> Response {
    json(StatusCode::OK, r#"{"status":"alive"}"#.to_owned())
}

async fn readiness(State(app): State<App>) -> Result<Response, Problem> {
    if app.is_draining() {
        let detail = "This instance is shutting down. Send requests to another instance.";
        return Err(Problem::of(ProblemKind::NotReady).detail(detail));
    }
    app.store().ping().await?;
    Ok(json(StatusCode::OK, r#"{"status":"ready"}"#.to_owned()))
}

async fn metrics(State(app): State<App>) -> Response {
    let format = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (format, app.metrics().encode()).into_response()
}
