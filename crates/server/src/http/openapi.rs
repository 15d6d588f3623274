//! The API description (OpenAPI 3.1), assembled from the rulebook's table and hand-written pieces.

use axum::response::Response;
use serde_json::{Value, json};

/// The whole description.
pub fn document() -> Value {
    json!({"openapi": "3.1.0"})
}

pub(super) async fn show() -> Response {
    super::json(axum::http::StatusCode::OK, document().to_string())
}
