//! `ceiling`: the least that any axum service does for a create, a read and a render, with nothing
//! kept.
//!
//! A create parses the same JSON into typed structs and answers the same bytes as the service; so does
//! a render; a read answers a body of the same size. What the service loses against this is the price
//! of its promises.
//!
//! It also takes events, for the runs about webhooks.

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

/// Serves the bare routes until it is ended.
#[derive(Debug, Parser)]
struct Arguments {
    /// Address to listen on.
    #[arg(long, value_name = "HOST:PORT")]
    listen: SocketAddr,
}

struct Shared {
    /// Ids have the 16 digits that the service's have.
    next: AtomicU64,
    read: Bytes,
    rendered: Bytes,
    /// How many events were taken.
    taken: AtomicU64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = Arguments::parse().listen;
    let shared = Arc::new(Shared {
        next: AtomicU64::new(1_000_000_000_000_000),
        read: Bytes::from(read_answer()?),
        rendered: Bytes::from_static(include_bytes!("../../rendered.json").trim_ascii_end()),
        taken: AtomicU64::new(0),
    });
    let router = Router::new()
        .route("/readyz", get(|| async { "ready" }))
        .route("/api/v1.0/{phone_number_id}/{key}/message_templates", post(create))
        .route("/api/v1.0/{phone_number_id}/{key}/message_templates/{id}", get(read))
        .route("/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/render", post(render))
        .route("/hook", post(hook))
        .route("/tarpit", post(std::future::pending::<StatusCode>))
        .route("/taken", get(taken))
        .with_state(shared);
    let listener = tokio::net::TcpListener::bind(listen).await?.tap_io(|stream| {
        // A socket that is already gone shows itself at the first read.
        let _gone = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

async fn create(
    State(shared): State<Arc<Shared>>,
    Path((_phone_number_id, _key)): Path<(String, String)>,
    Json(document): Json<Document>,
) -> impl IntoResponse {
    let id = shared.next.fetch_add(1, Ordering::Relaxed);
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
    ([(CONTENT_TYPE, "application/json"), (ETAG, "\"1\"")], shared.read.clone())
}

async fn render(
    State(shared): State<Arc<Shared>>,
    Path((_phone_number_id, _key, _id)): Path<(String, String, String)>,
    Json(_values): Json<Values>,
) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], shared.rendered.clone())
}

async fn hook(State(shared): State<Arc<Shared>>, _event: Bytes) -> StatusCode {
    shared.taken.fetch_add(1, Ordering::Relaxed);
    StatusCode::NO_CONTENT
}

async fn taken(State(shared): State<Arc<Shared>>) -> String {
    shared.taken.load(Ordering::Relaxed).to_string()
}

/// The sample as the service shows it when it is read back.
fn read_answer() -> Result<String, serde_json::Error> {
    let mut answer: Value = serde_json::from_str(include_str!("../../sample.json"))?;
    for (member, value) in [
        ("id", json!("1000000000000000")),
        ("status", json!("APPROVED")),
        ("phone_number_id", json!("15550001111")),
        ("version", json!(1)),
        ("live_version", json!(1)),
        ("created_at", json!("2026-01-01T00:00:00.000Z")),
        ("updated_at", json!("2026-01-01T00:00:00.000Z")),
    ] {
        answer[member] = value;
    }
    serde_json::to_string(&answer)
}
