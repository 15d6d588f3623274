//! Requests to a service as a whole, without a socket: bodies of the Graph surface, and the
//! parameters of every list.

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
const OWN: &str = "15550001111";
/// The token of the one with the rulebook `whatsapp`.
const SHOP: &str = "token-of-the-shop";

static SERVICE: LazyLock<Service> =
    LazyLock::new(|| Service::start().expect("a service can be started"));

/// A body, of a kind that the first byte tells.
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
    let (status, answer) = service.ask(SHOP, Method::POST, path, content_type, body.to_vec());
    let told = answer["error"]["code"].is_number() && answer["error"]["message"].is_string();
    assert!(status == StatusCode::OK || told, "{status} {answer}");
}

/// A parameter of a list; which of which, the first byte tells.
pub fn cursors(input: &[u8]) {
    const GRAPH: [&str; 8] =
        ["after", "before", "limit", "status", "language", "fields", "name_or_content", "summary"];
    let Some((which, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let service = &*SERVICE;
    let own = [
        (&service.own_list, "after"),
        (&service.own_list, "limit"),
        (&service.own_list, "q"),
        (&service.own_list, "language"),
        (&service.events, "after"),
        (&service.events, "limit"),
        (&service.deliveries, "after"),
        (&service.deliveries, "limit"),
    ];
    let which = usize::from(*which) % (GRAPH.len() + own.len());
    let (token, path, name) = match own.get(which) {
        Some((path, name)) => (OWN, *path, *name),
        None => (SHOP, &service.list, GRAPH[which - own.len()]),
    };
    let page = |name: &str, text: &str| {
        let mut query = form_urlencoded::Serializer::for_suffix(format!("{path}?"), path.len() + 1);
        let address = query.append_pair(name, text).finish();
        // More than this is refused where the head of a request is read.
        (address.len() < 16_000)
            .then(|| service.ask(token, Method::GET, &address, JSON, Vec::new()))
    };
    let Some((status, answer)) = page(name, text) else { return };
    assert!(status == StatusCode::OK || status == StatusCode::BAD_REQUEST, "{status} {answer}");
    if status == StatusCode::OK {
        let paging = &answer["paging"];
        let after = paging["cursors"]["after"].as_str().or(paging["after"].as_str());
        if let Some(after) = after.filter(|after| !after.is_empty()) {
            let (status, next) = page("after", after).expect("a cursor is short");
            assert_eq!(status, StatusCode::OK, "{after}: {next}");
        }
    }
}

/// A service with an account of each rulebook, and the paths that are asked.
struct Service {
    runtime: Runtime,
    galley: Galley,
    list: String,
    template: String,
    upsert: String,
    uploads: String,
    own_list: String,
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
        let shop = runtime.block_on(account(&store, SHOP, WHATSAPP.name))?;
        runtime.block_on(account(&store, OWN, V1.name))?;
        let (access, webhooks) = (AccessLog::off(), setup::webhooks(true));
        let (instance, address) = ("fuzz".to_owned(), "http://galley.test");
        let store = Arc::new(store);
        let limits = Limits::default();
        let app = App::new(store, Arc::new(Noon), limits, access, webhooks, instance, address);
        let own = format!("/api/v1.0/{OWN}/{OWN}");
        let mut service = Self {
            runtime,
            galley: Galley::new(app),
            list: format!("/v23.0/{shop}/message_templates"),
            template: String::new(),
            upsert: format!("/v23.0/{shop}/upsert_message_templates"),
            uploads: "/v23.0/17/uploads".to_owned(),
            own_list: format!("{own}/message_templates"),
            events: format!("{own}/events"),
            deliveries: String::new(),
            _dir: dir,
        };
        service.fill(&own)?;
        Ok(service)
    }

    /// Makes what can be listed and edited.
    fn fill(&mut self, own: &str) -> io::Result<()> {
        for number in 0..30 {
            for (token, list) in [(SHOP, &self.list), (OWN, &self.own_list)] {
                let document = format!(
                    r#"{{"name":"n{number}","language":"en_US","category":"UTILITY","allow_category_change":true,"components":[{{"type":"BODY","text":"Hello"}}]}}"#
                );
                let made = self.made(token, list, document)?;
                if token == SHOP {
                    self.template = format!("/v23.0/{made}");
                }
            }
        }
        let endpoint = r#"{"url":"https://hooks.example/","events":["template.created"]}"#;
        let endpoint = self.made(OWN, &format!("{own}/webhooks"), endpoint.to_owned())?;
        self.deliveries = format!("{own}/webhooks/{endpoint}/deliveries");
        Ok(())
    }

    /// Makes something and tells its id.
    fn made(&self, token: &str, path: &str, document: String) -> io::Result<String> {
        let (_, answer) = self.ask(token, Method::POST, path, JSON, document.into_bytes());
        let id = answer["id"].as_str().map(str::to_owned);
        id.ok_or_else(|| io::Error::other(format!("{path}: {answer}")))
    }

    /// Asks, and demands that no failure comes back.
    fn ask(
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
            .expect("paths and tokens are plain");
        let (status, answer) = self.runtime.block_on(async {
            let (parts, body) = self.galley.answer(request).await.into_parts();
            (parts.status, to_bytes(body, usize::MAX).await)
        });
        let answer = answer.expect("an answer is whole");
        assert!(!status.is_server_error(), "{status} {}", String::from_utf8_lossy(&answer));
        (status, serde_json::from_slice(&answer).expect("an answer is JSON"))
    }
}

async fn account(store: &SqliteStore, own: &str, rulebook: &'static str) -> io::Result<String> {
    let credential = |kind| NewCredential::lasting(kind, own);
    let new = NewAccount {
        name: own.to_owned(),
        rulebook,
        review: Review::Auto,
        phones: Vec::new(),
        credentials: [CredentialKind::Token, CredentialKind::Key].map(credential).to_vec(),
        only_as_first: false,
        at: Noon.now(),
    };
    match store.create_account(new).await.map_err(io::Error::other)? {
        CreateAccountOutcome::Created(id, _) => Ok(id.to_string()),
        refused => Err(io::Error::other(format!("{refused:?}"))),
    }
}

/// A clock that stands still.
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(500_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}
