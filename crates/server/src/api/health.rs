//! Liveness, readiness and metrics for operators.

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

use galley_store::StoreError;
use serde::Serialize;

use super::{
    json,
    problem::{Problem, ProblemKind},
};
use crate::{
    app::App,
    observability::{
        conditions::{Condition, Severity},
        metrics::CurrentState,
    },
};

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
    match app.store().ping().await {
        // A full queue means that writes are being processed.
        Ok(()) | Err(StoreError::Busy) => {}
        Err(error) => return Err(Problem::not_ready(error)),
    }
    let failures = app.conditions().all(Severity::Failure);
    if !failures.is_empty() {
        let details: Vec<String> = failures.into_iter().map(|it| it.detail).collect();
        return Err(Problem::of(ProblemKind::NotReady).detail(details.join(" ")));
    }
    let warnings = app.conditions().all(Severity::Warning);
    let body = serde_json::to_string(&Ready { status: "ready", warnings });
    Ok(json(StatusCode::OK, body.unwrap_or_default()))
}

/// The body of `/readyz` while the instance is ready.
#[derive(Serialize)]
struct Ready {
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Condition>,
}

async fn metrics(State(app): State<App>) -> Response {
    let format = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let current = CurrentState {
        max_connections: app.limits().connections,
        activity: app.store().activity(),
    };
    (format, app.metrics().encode(&current)).into_response()
}
