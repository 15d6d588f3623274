//! `ceiling`: the minimum work of any axum service for a create, a read and a render, without storage.
//!
//! A create or a render parses the same JSON into typed structs and returns the same bytes as Galley.
//! A read returns a body of the same size. The difference to Galley is the cost of its guarantees.
//!
//! It is also the webhook receiver of the webhook benchmark.

mod document;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Json, Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use clap::Parser;
use serde_json::{Value, json};

use crate::document::{Document, Values};

/// Serves the bare routes until it is terminated.
#[derive(Debug, Parser)]
struct Arguments {
    /// Address to listen on.
    #[arg(long, value_name = "HOST:PORT")]
    listen: SocketAddr,
}

struct Shared {
    /// The next id; it has 16 digits, like Galley's ids.
    next_id: AtomicU64,
    read_body: Bytes,
    render_body: Bytes,
    /// Number of webhook events received.
    received: AtomicU64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = Arguments::parse().listen;
    let shared = Arc::new(Shared {
        next_id: AtomicU64::new(1_000_000_000_000_000),
        read_body: Bytes::from(read_body()?),
        render_body: Bytes::from_static(include_bytes!("../../rendered.json").trim_ascii_end()),
        received: AtomicU64::new(0),
    });
    let router = Router::new()
        .route("/readyz", get(|| async { "ready" }))
        .route("/api/v1.0/{phone_number_id}/{key}/message_templates", post(create))
        .route("/api/v1.0/{phone_number_id}/{key}/message_templates/{id}", get(read))
        .route("/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/render", post(render))
        .route("/hook", post(hook))
        .route("/tarpit", post(std::future::pending::<StatusCode>))
        .route("/received", get(received))
        .with_state(shared);
    let listener = tokio::net::TcpListener::bind(listen).await?.tap_io(|stream| {
        // A socket that is already closed reports its error at the first read.
        let _ignored = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

async fn create(
    State(shared): State<Arc<Shared>>,
    Path((_phone_number_id, _key)): Path<(String, String)>,
    Json(document): Json<Document>,
) -> impl IntoResponse {
    let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
    let category = document.category;
    (
        StatusCode::CREATED,
        [
            (CONTENT_TYPE, "application/json".to_owned()),
            (LOCATION, format!("message_templates/{id}")),
        ],
        format!(r#"{{"id":"{id}","status":"APPROVED","category":"{category}"}}"#),
    )
}

async fn read(
    State(shared): State<Arc<Shared>>,
    Path((_phone_number_id, _key, _id)): Path<(String, String, String)>,
) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json"), (ETAG, "\"1\"")], shared.read_body.clone())
}

async fn render(
    State(shared): State<Arc<Shared>>,
    Path((_phone_number_id, _key, _id)): Path<(String, String, String)>,
    Json(_values): Json<Values>,
) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], shared.render_body.clone())
}

async fn hook(State(shared): State<Arc<Shared>>, _event: Bytes) -> StatusCode {
    shared.received.fetch_add(1, Ordering::Relaxed);
    StatusCode::NO_CONTENT
}

async fn received(State(shared): State<Arc<Shared>>) -> String {
    shared.received.load(Ordering::Relaxed).to_string()
}

/// Returns the sample as Galley returns it for a read.
fn read_body() -> Result<String, serde_json::Error> {
    let mut body: Value = serde_json::from_str(include_str!("../../sample.json"))?;
    for (member, value) in [
        ("id", json!("1000000000000000")),
        ("status", json!("APPROVED")),
        ("phone_number_id", json!("15550001111")),
        ("version", json!(1)),
        ("live_version", json!(1)),
        ("created_at", json!("2026-01-01T00:00:00.000Z")),
        ("updated_at", json!("2026-01-01T00:00:00.000Z")),
    ] {
        body[member] = value;
    }
    serde_json::to_string(&body)
}
