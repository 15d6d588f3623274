//! Fuzz targets for whole requests without a socket: bodies of the Graph surface, and the parameters
//! of every list.

use std::{
    io,
    sync::{Arc, LazyLock},
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    http::{Method, Request, StatusCode, header},
};
use galley_domain::{
    rulebook::{V1, WHATSAPP},
    template::Review,
};
use galley_server::{AccessLog, App, Clock, Galley, Limits};
use galley_store::{
    CreateAccountOutcome, CredentialKind, NewAccount, NewCredential, SqliteStore, Store as _,
    sqlite::SqliteOptions,
};
use jiff::Timestamp;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::setup;

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// Token, key and phone number of the account with the rulebook `v1`.
const V1_ACCOUNT: &str = "15550001111";
/// Token of the account with the rulebook `whatsapp`.
const WHATSAPP_TOKEN: &str = "token-of-the-shop";

static SERVICE: LazyLock<Service> = LazyLock::new(|| Service::start().expect("the service starts"));

/// Fuzzes request bodies; the first byte selects path and content type.
pub fn form_body(input: &[u8]) {
    let Some((kind, body)) = input.split_first() else { return };
    let service = &*SERVICE;
    let (path, content_type) = match kind % 6 {
        0 => (&service.list, FORM),
        1 => (&service.list, JSON),
        2 => (&service.template, FORM),
        3 => (&service.template, JSON),
        4 => (&service.upsert, FORM),
        _ => (&service.uploads, FORM),
    };
    let (status, response) =
        service.send(WHATSAPP_TOKEN, Method::POST, path, content_type, body.to_vec());
    let has_error =
        response["error"]["code"].is_number() && response["error"]["message"].is_string();
    assert!(status == StatusCode::OK || has_error, "{status} {response}");
}

/// Fuzzes list parameters; the first byte selects list and parameter.
pub fn cursors(input: &[u8]) {
    const GRAPH_PARAMETERS: [&str; 8] =
        ["after", "before", "limit", "status", "language", "fields", "name_or_content", "summary"];
    let Some((selector, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let service = &*SERVICE;
    let v1_parameters = [
        (&service.v1_list, "after"),
        (&service.v1_list, "limit"),
        (&service.v1_list, "q"),
        (&service.v1_list, "language"),
        (&service.events, "after"),
        (&service.events, "limit"),
        (&service.deliveries, "after"),
        (&service.deliveries, "limit"),
    ];
    let index = usize::from(*selector) % (GRAPH_PARAMETERS.len() + v1_parameters.len());
    let (token, path, name) = match v1_parameters.get(index) {
        Some((path, name)) => (V1_ACCOUNT, *path, *name),
        None => (WHATSAPP_TOKEN, &service.list, GRAPH_PARAMETERS[index - v1_parameters.len()]),
    };
    let page = |name: &str, text: &str| {
        let mut query = form_urlencoded::Serializer::for_suffix(format!("{path}?"), path.len() + 1);
        let uri = query.append_pair(name, text).finish();
        // Longer URIs are rejected when the request header is read.
        (uri.len() < 16_000).then(|| service.send(token, Method::GET, &uri, JSON, Vec::new()))
    };
    let Some((status, response)) = page(name, text) else { return };
    assert!(status == StatusCode::OK || status == StatusCode::BAD_REQUEST, "{status} {response}");
    if status == StatusCode::OK {
        let paging = &response["paging"];
        let after = paging["cursors"]["after"].as_str().or(paging["after"].as_str());
        if let Some(after) = after.filter(|after| !after.is_empty()) {
            let (status, next) = page("after", after).expect("a cursor is short");
            assert_eq!(status, StatusCode::OK, "{after}: {next}");
        }
    }
}

/// A service with one account per rulebook, and the paths of the requests.
struct Service {
    runtime: Runtime,
    galley: Galley,
    list: String,
    template: String,
    upsert: String,
    uploads: String,
    v1_list: String,
    events: String,
    deliveries: String,
    _dir: tempfile::TempDir,
}

impl Service {
    fn start() -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let runtime = Runtime::new()?;
        let store = SqliteStore::open(&dir.path().join("galley.db"), &SqliteOptions::default())
            .map_err(io::Error::other)?;
        let shop = runtime.block_on(create_account(&store, WHATSAPP_TOKEN, WHATSAPP.name))?;
        runtime.block_on(create_account(&store, V1_ACCOUNT, V1.name))?;
        let (access, webhooks) = (AccessLog::off(), setup::webhooks(true));
        let (instance, address) = ("fuzz".to_owned(), "http://galley.test");
        let store = Arc::new(store);
        let limits = Limits::default();
        let app =
            App::new(store, Arc::new(FixedClock), limits, access, webhooks, instance, address);
        let base = format!("/api/v1.0/{V1_ACCOUNT}/{V1_ACCOUNT}");
        let mut service = Self {
            runtime,
            galley: Galley::new(app),
            list: format!("/v23.0/{shop}/message_templates"),
            template: String::new(),
            upsert: format!("/v23.0/{shop}/upsert_message_templates"),
            uploads: "/v23.0/17/uploads".to_owned(),
            v1_list: format!("{base}/message_templates"),
            events: format!("{base}/events"),
            deliveries: String::new(),
            _dir: dir,
        };
        service.seed(&base)?;
        Ok(service)
    }

    /// Creates templates and an endpoint.
    fn seed(&mut self, base: &str) -> io::Result<()> {
        for number in 0..30 {
            for (token, list) in [(WHATSAPP_TOKEN, &self.list), (V1_ACCOUNT, &self.v1_list)] {
                let document = format!(
                    r#"{{"name":"n{number}","language":"en_US","category":"UTILITY","allow_category_change":true,"components":[{{"type":"BODY","text":"Hello"}}]}}"#
                );
                let id = self.create(token, list, document)?;
                if token == WHATSAPP_TOKEN {
                    self.template = format!("/v23.0/{id}");
                }
            }
        }
        let endpoint = r#"{"url":"https://hooks.example/","events":["template.created"]}"#;
        let endpoint = self.create(V1_ACCOUNT, &format!("{base}/webhooks"), endpoint.to_owned())?;
        self.deliveries = format!("{base}/webhooks/{endpoint}/deliveries");
        Ok(())
    }

    /// Creates a resource and returns its id.
    fn create(&self, token: &str, path: &str, document: String) -> io::Result<String> {
        let (_, response) = self.send(token, Method::POST, path, JSON, document.into_bytes());
        let id = response["id"].as_str().map(str::to_owned);
        id.ok_or_else(|| io::Error::other(format!("{path}: {response}")))
    }

    /// Sends a request; panics on a server error.
    fn send(
        &self,
        token: &str,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, content_type)
            .body(Body::from(body))
            .expect("paths and tokens are valid in a request");
        let (status, body) = self.runtime.block_on(async {
            let (parts, body) = self.galley.handle(request).await.into_parts();
            (parts.status, to_bytes(body, usize::MAX).await)
        });
        let body = body.expect("the response body is complete");
        assert!(!status.is_server_error(), "{status} {}", String::from_utf8_lossy(&body));
        (status, serde_json::from_slice(&body).expect("the response is JSON"))
    }
}

/// Creates an account; `secret` is its name, token and key.
async fn create_account(
    store: &SqliteStore,
    secret: &str,
    rulebook: &'static str,
) -> io::Result<String> {
    let credential = |kind| NewCredential::unrestricted(kind, secret);
    let new = NewAccount {
        name: secret.to_owned(),
        rulebook,
        review: Review::Auto,
        phones: Vec::new(),
        credentials: [CredentialKind::Token, CredentialKind::Key].map(credential).to_vec(),
        only_if_first: false,
        at: FixedClock.now(),
    };
    match store.create_account(new).await.map_err(io::Error::other)? {
        CreateAccountOutcome::Created(id, _) => Ok(id.to_string()),
        other => Err(io::Error::other(format!("{other:?}"))),
    }
}

/// A clock with a fixed time.
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(500_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}
