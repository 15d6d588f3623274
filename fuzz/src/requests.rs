//! Fuzz targets for whole requests without a socket: bodies of the Graph surface, the parameters of
//! every list, and the headers that handlers read.

use std::{
    io,
    sync::{Arc, LazyLock},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{HeaderValue, Method, Request, StatusCode, header},
};
use galley_domain::{
    rulebook::{V1, WHATSAPP},
    template::Review,
};
use galley_server::{AccessLog, App, Clock, Galley, Instance, Limits};
use galley_store::{
    Author, CreateAccountOutcome, CredentialKind, NewAccount, NewCredential, SqliteStore, Store,
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

/// The file that range requests read.
const SAMPLE: &[u8] = b"\x89PNG\r\n\x1a\nthe bytes of a small picture";

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

/// Fuzzes header values; the first byte selects request and header.
pub fn headers(input: &[u8]) {
    let Some((selector, value)) = input.split_first() else { return };
    let Ok(value) = HeaderValue::from_bytes(value) else { return };
    let service = &*SERVICE;
    let cases = [
        (V1_ACCOUNT, Method::GET, &service.v1_template, "if-none-match"),
        (V1_ACCOUNT, Method::PATCH, &service.v1_template, "if-match"),
        (V1_ACCOUNT, Method::POST, &service.v1_list, "idempotency-key"),
        (V1_ACCOUNT, Method::POST, &service.v1_list, "content-type"),
        (V1_ACCOUNT, Method::POST, &service.v1_list, "content-encoding"),
        (V1_ACCOUNT, Method::GET, &service.v1_list, "authorization"),
        (V1_ACCOUNT, Method::GET, &service.v1_list, "x-request-id"),
        (WHATSAPP_TOKEN, Method::GET, &service.list, "authorization"),
        (WHATSAPP_TOKEN, Method::POST, &service.upload, "file_offset"),
        (WHATSAPP_TOKEN, Method::GET, &service.media, "range"),
        (WHATSAPP_TOKEN, Method::GET, &service.media, "if-range"),
        (WHATSAPP_TOKEN, Method::GET, &service.media, "if-match"),
        (WHATSAPP_TOKEN, Method::GET, &service.media, "if-none-match"),
    ];
    let (token, method, path, name) = &cases[usize::from(*selector) % cases.len()];
    let mut request = Request::builder().method(method).uri(path.as_str()).header(*name, value);
    if *name != "authorization" {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let body = if *method == Method::GET { "" } else { "{}" };
    let request = request.body(Body::from(body)).expect("name and value are valid");
    let (status, body) = service.exchange(request);
    if *path == &service.media && status.is_success() {
        let is_part = SAMPLE.windows(body.len().max(1)).any(|part| *part == *body);
        assert!(is_part, "{name}: {status} with other bytes");
    } else {
        let is_json = serde_json::from_slice::<Value>(&body).is_ok();
        assert!(body.is_empty() || is_json, "{name}: {status} without JSON");
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
    upload: String,
    media: String,
    v1_template: String,
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
        let store = Store::from(store);
        let shop = runtime.block_on(create_account(&store, WHATSAPP_TOKEN, WHATSAPP.name))?;
        runtime.block_on(create_account(&store, V1_ACCOUNT, V1.name))?;
        let (access, webhooks) = (AccessLog::off(), setup::webhooks(true));
        let (id, public_url) = ("fuzz".to_owned(), "http://galley.test".to_owned());
        let instance = Instance { id, public_url, emulator: false };
        let store = Arc::new(store);
        let limits = Limits::default();
        let app = App::new(store, Arc::new(FixedClock), limits, access, webhooks, instance);
        let base = format!("/api/v1.0/{V1_ACCOUNT}/{V1_ACCOUNT}");
        let mut service = Self {
            runtime,
            galley: Galley::new(app),
            list: format!("/v23.0/{shop}/message_templates"),
            template: String::new(),
            upsert: format!("/v23.0/{shop}/upsert_message_templates"),
            uploads: "/v23.0/17/uploads".to_owned(),
            upload: String::new(),
            media: String::new(),
            v1_template: String::new(),
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
                } else {
                    self.v1_template = format!("{list}/{id}");
                }
            }
        }
        let endpoint = r#"{"url":"https://hooks.example/","events":["template.created"]}"#;
        let endpoint = self.create(V1_ACCOUNT, &format!("{base}/webhooks"), endpoint.to_owned())?;
        self.deliveries = format!("{base}/webhooks/{endpoint}/deliveries");
        self.upload = self.begin_upload()?;
        self.seed_sample()
    }

    /// Creates a template with a sample, and finds the sample's path.
    fn seed_sample(&mut self) -> io::Result<()> {
        let upload = Request::post(self.begin_upload()?)
            .header(header::AUTHORIZATION, format!("Bearer {WHATSAPP_TOKEN}"))
            .header("file_offset", "0")
            .body(Body::from(SAMPLE));
        let (_, response) = self.exchange(upload.map_err(io::Error::other)?);
        let response: Value = serde_json::from_slice(&response)?;
        let handle = &response["h"];
        let document = format!(
            r#"{{"name":"sample","language":"en_US","category":"UTILITY","components":[{{"type":"HEADER","format":"IMAGE","example":{{"header_handle":[{handle}]}}}},{{"type":"BODY","text":"Hello"}}]}}"#
        );
        let id = self.create(WHATSAPP_TOKEN, &self.list, document)?;
        let path = format!("/v23.0/{id}");
        let (_, shown) = self.send(WHATSAPP_TOKEN, Method::GET, &path, JSON, Vec::new());
        let url = shown["components"][0]["example"]["header_handle"][0].as_str();
        let path = url.and_then(|url| url.strip_prefix("http://galley.test")).map(str::to_owned);
        self.media = path.ok_or_else(|| io::Error::other(format!("{shown}")))?;
        Ok(())
    }

    /// Declares a file and returns the path of its upload.
    fn begin_upload(&self) -> io::Result<String> {
        let (uploads, length) = (&self.uploads, SAMPLE.len());
        let path = format!("{uploads}?file_name=a.png&file_length={length}&file_type=image/png");
        Ok(format!("/v23.0/{}", self.create(WHATSAPP_TOKEN, &path, String::new())?))
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
        let (status, body) = self.exchange(request);
        (status, serde_json::from_slice(&body).expect("the response is JSON"))
    }

    /// Passes a request to the service; panics on a server error.
    fn exchange(&self, request: Request<Body>) -> (StatusCode, Bytes) {
        let (status, body) = self.runtime.block_on(async {
            let (parts, body) = self.galley.handle(request).await.into_parts();
            (parts.status, to_bytes(body, usize::MAX).await)
        });
        let body = body.expect("the response body is complete");
        assert!(!status.is_server_error(), "{status} {}", String::from_utf8_lossy(&body));
        (status, body)
    }
}

/// Creates an account; `secret` is its name, token and key.
async fn create_account(store: &Store, secret: &str, rulebook: &'static str) -> io::Result<String> {
    let credential = |kind| NewCredential::unrestricted(kind, secret);
    let new = NewAccount {
        id: None,
        name: secret.to_owned(),
        rulebook,
        review: Review::Auto,
        emulator: None,
        limits: None,
        phones: Vec::new(),
        credentials: [CredentialKind::Token, CredentialKind::Key].map(credential).to_vec(),
        only_if_first: false,
        by: Author::service(FixedClock.now()),
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
