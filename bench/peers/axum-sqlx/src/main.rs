//! A peer: the same create as a competent team would write it in a day with axum and sqlx.

mod credentials;
mod rules;
mod store;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use clap::Parser;
use serde_json::json;

use crate::credentials::Credentials;
use crate::rules::Document;
use crate::store::{Created, Store};

/// Serves the peer until it is terminated.
#[derive(Debug, Parser)]
struct Arguments {
    /// Address to listen on.
    #[arg(long, value_name = "HOST:PORT")]
    listen: SocketAddr,
    /// Database file; created if it does not exist.
    #[arg(long, value_name = "FILE")]
    database: PathBuf,
    /// API key of the only account.
    #[arg(long, env = "PEER_KEY", hide_env_values = true)]
    key: String,
    /// Access token of the only account.
    #[arg(long, env = "PEER_TOKEN", hide_env_values = true)]
    token: String,
}

struct Service {
    store: Store,
    credentials: Credentials,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let store = Store::open(&arguments.database).await?;
    store.add_credential("key", &credentials::hash(&arguments.key)).await?;
    store.add_credential("token", &credentials::hash(&arguments.token)).await?;
    let credentials = Credentials::new(store.credentials().await?);
    let router = Router::new()
        .route("/readyz", get(|| async { "ready" }))
        .route("/api/v1.0/{phone_number_id}/{key}/message_templates", post(create))
        .with_state(Arc::new(Service { store, credentials }));
    let listener = tokio::net::TcpListener::bind(arguments.listen).await?.tap_io(|stream| {
        // A socket that is already closed reports its error at the first read.
        let _ignored = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

async fn create(
    State(service): State<Arc<Service>>,
    Path((phone_number_id, key)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let token = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    let account = token.and_then(|token| service.credentials.account(&key, token));
    let Some(account) = account else {
        let response = problem(StatusCode::UNAUTHORIZED, "unknown key or token", &[]);
        return ([(WWW_AUTHENTICATE, "Bearer")], response).into_response();
    };
    let document: Document = match serde_json::from_slice(&body) {
        Ok(document) => document,
        Err(error) if error.is_data() => {
            let violation = error.to_string();
            return problem(StatusCode::UNPROCESSABLE_ENTITY, "wrong type", &[violation]);
        }
        Err(_) => return problem(StatusCode::BAD_REQUEST, "not JSON", &[]),
    };
    let violations = rules::check(&document);
    if !violations.is_empty() {
        return problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid document", &violations);
    }
    match service.store.create(account, &phone_number_id, &document).await {
        Ok(Created::Template(id)) => (
            StatusCode::CREATED,
            [(LOCATION, format!("message_templates/{id}"))],
            axum::Json(json!({
                "id": id.to_string(), "status": "APPROVED", "category": document.category,
            })),
        )
            .into_response(),
        Ok(Created::NameInUse) => problem(StatusCode::CONFLICT, "name is already in use", &[]),
        Err(error) => {
            eprintln!("create: {error}");
            problem(StatusCode::INTERNAL_SERVER_ERROR, "internal server error", &[])
        }
    }
}

fn problem(status: StatusCode, title: &str, violations: &[String]) -> Response {
    let body = json!({"title": title, "status": status.as_u16(), "violations": violations});
    (status, [(CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
}
