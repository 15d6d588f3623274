//! A separate service for each test, with accounts of both rulebooks and a clock that advances with
//! every read, so that ids differ.

use std::{
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request, StatusCode, header},
    response::Response,
};
use galley_domain::{
    id::AccountId,
    rulebook::{V1, WHATSAPP},
    template::Review,
};
use galley_server::{AccessLog, App, Clock, Galley, Limits, LogFormat, LogWriter};
use galley_store::{
    CreateAccountOutcome, CredentialKind, NewAccount, NewCredential, SqliteStore, Store,
    sqlite::SqliteOptions,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::setup;

pub(crate) const TOKEN: &str = "token-of-the-shop";
pub(crate) const STRANGER: &str = "token-of-a-stranger";
pub(crate) const OTHER: &str = "token-of-an-account-with-the-other-rulebook";
pub(crate) const PUBLIC: &str = "https://galley.example";

pub(crate) struct Service {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<Ticking>,
    pub(crate) shop: AccountId,
    pub(crate) stranger: AccountId,
    pub(crate) other: AccountId,
    galley: Galley,
    log: Log,
    _dir: tempfile::TempDir,
}

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl TestResponse {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    /// Asserts that the call succeeded, and returns the document.
    pub(crate) fn expect_success(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        let document = serde_json::from_slice(&self.bytes).unwrap();
        assert!(!self.text().contains("null"), "{document}");
        document
    }

    /// Asserts that this is a complete error response, and returns its `error` member.
    pub(crate) fn expect_error(&self, status: u16, code: u32, subcode: Option<u32>) -> Value {
        let text = self.text();
        assert_eq!(self.status.as_u16(), status, "{text}");
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/json", "{text}");
        let document: Value = serde_json::from_str(text).unwrap();
        let error = document["error"].clone();
        assert_eq!(error["code"], code, "{text}");
        assert_eq!(error["error_subcode"], json!(subcode), "{text}");
        assert_eq!(error["type"], "OAuthException");
        for member in ["message", "error_user_title", "error_user_msg", "fbtrace_id"] {
            assert!(error[member].is_string(), "{member} in {text}");
        }
        assert_eq!(error["is_transient"], status == 503, "{text}");
        assert!(!text.contains("null"), "{text}");
        error
    }
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::begin(Review::Auto, Limits::default()).await
    }

    /// A service whose accounts have manual review.
    pub(crate) async fn start_reviewed() -> Self {
        Self::begin(Review::Manual, Limits::default()).await
    }

    /// A service with other limits.
    pub(crate) async fn start_with(limits: Limits) -> Self {
        Self::begin(Review::Auto, limits).await
    }

    async fn begin(review: Review, limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("galley.db"), &SqliteOptions::default());
        let store: Arc<dyn Store> = Arc::new(store.unwrap());
        let clock = Arc::new(Ticking::default());
        let log = Log::default();
        let app_clock: Arc<dyn Clock> = Arc::<Ticking>::clone(&clock);
        let writer =
            LogWriter::start(LogFormat::Json, Arc::clone(&app_clock), Box::new(log.clone()));
        let app = App::new(
            Arc::clone(&store),
            app_clock,
            limits,
            AccessLog::new(writer.unwrap(), true),
            setup::webhooks(false),
            "test".to_owned(),
            PUBLIC,
        );
        let mut accounts = Vec::new();
        for (token, rulebook) in
            [(TOKEN, WHATSAPP.name), (STRANGER, WHATSAPP.name), (OTHER, V1.name)]
        {
            let credential = |kind| NewCredential::unrestricted(kind, token);
            let new = NewAccount {
                name: format!("the owner of {token}"),
                rulebook,
                review,
                phones: Vec::new(),
                credentials: [CredentialKind::Token, CredentialKind::Key].map(credential).to_vec(),
                only_if_first: false,
                at: clock.now(),
            };
            match store.create_account(new).await.unwrap() {
                CreateAccountOutcome::Created(id, _) => accounts.push(id),
                rejected => panic!("{rejected:?}"),
            }
        }
        let galley = Galley::new(app);
        let [shop, stranger, other] = accounts[..] else { panic!("{accounts:?}") };
        Self { store, clock, shop, stranger, other, galley, log, _dir: dir }
    }

    /// Sends a request and returns the response before its body is read.
    pub(crate) async fn handle(&self, request: Request<Body>) -> Response {
        self.galley.handle(request).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> TestResponse {
        let response = self.handle(request).await;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        TestResponse { status: parts.status, headers: parts.headers, bytes }
    }

    /// Sends a request of the shop, with its token in the header.
    pub(crate) async fn call(&self, method: Method, path: &str, body: &Value) -> TestResponse {
        self.call_as(TOKEN, method, path, body).await
    }

    pub(crate) async fn call_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> TestResponse {
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let request = Request::builder().method(method).uri(path);
        let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(body).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.call(Method::GET, path, &Value::Null).await
    }

    /// The path of the shop's list.
    pub(crate) fn templates(&self) -> String {
        format!("/v23.0/{}/message_templates", self.shop)
    }

    pub(crate) async fn create(&self, document: &Value) -> TestResponse {
        self.call(Method::POST, &self.templates(), document).await
    }

    /// Creates a small template and returns its id.
    pub(crate) async fn create_named(&self, name: &str, language: &str) -> String {
        let mut document = hello(name);
        document["language"] = json!(language);
        self.create(&document).await.expect_success()["id"].as_str().unwrap().to_owned()
    }

    /// The names in a list, in its order.
    pub(crate) async fn list_names(&self, query: &str) -> Vec<String> {
        let list = self.get(&format!("{}{query}", self.templates())).await.expect_success();
        let names = list["data"].as_array().unwrap().iter();
        names.map(|template| template["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Stops the service and returns its access log.
    pub(crate) fn into_log(self) -> String {
        let Self { galley, log, .. } = self;
        drop(galley);
        let text = log.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }
}

/// A small valid template.
pub(crate) fn hello(name: &str) -> Value {
    json!({
        "name": name, "language": "en_US", "category": "MARKETING",
        "components": [{"type": "BODY", "text": "Good morning, all of you"}],
    })
}

/// A clock that advances by a millisecond with every read.
#[derive(Default)]
pub(crate) struct Ticking(AtomicU64);

impl Ticking {
    pub(crate) fn advance(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let noon = Timestamp::from_millisecond(1_790_000_000_000).unwrap();
        let since = self.0.fetch_add(1, Ordering::Relaxed);
        noon + SignedDuration::from_millis(i64::try_from(since).unwrap())
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
