//! A separate service for each test: a real store in a temporary directory, a clock that the test
//! advances, and the real router without a socket.

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request, StatusCode},
};
use galley_domain::template::Review;
use galley_server::{AccessLog, App, Clock, Galley, Limits, LogFormat, LogWriter};
use galley_store::{
    CreateAccountOutcome, CredentialKind, NewAccount, NewCredential, SqliteStore, Store,
    sqlite::SqliteOptions,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::setup;

pub(crate) const PHONE: &str = "15550001111";
pub(crate) const KEY: &str = "key-of-the-first-account";
pub(crate) const TOKEN: &str = "token-of-the-first-account";

pub(crate) struct TestApp {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) app: App,
    galley: Galley,
    log: Log,
    _dir: tempfile::TempDir,
}

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl TestResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Asserts that this is a complete problem of this kind, and returns its document.
    pub(crate) fn problem(&self, status: u16, slug: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["type"], format!("/problems/{slug}"), "{self:?}");
        assert_eq!(problem["status"], status);
        assert!(problem["title"].is_string() && problem["detail"].is_string());
        assert_eq!(problem["request_id"].as_str(), self.header("x-request-id"));
        problem
    }
}

impl TestApp {
    /// A service with one account that accepts any phone number.
    pub(crate) async fn start() -> Self {
        Self::start_with(Limits::default()).await
    }

    /// A service whose account has manual review.
    pub(crate) async fn start_reviewed() -> Self {
        Self::begin(|store| store, Limits::default(), Review::Manual, false).await
    }

    /// A service whose operator allows endpoints in private networks.
    pub(crate) async fn start_private() -> Self {
        Self::begin(|store| store, Limits::default(), Review::Auto, true).await
    }

    pub(crate) async fn start_with(limits: Limits) -> Self {
        Self::start_on(|store| store, limits).await
    }

    /// A service whose store is the real one, wrapped by `wrap`.
    pub(crate) async fn start_on(
        wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
        limits: Limits,
    ) -> Self {
        Self::begin(wrap, limits, Review::Auto, false).await
    }

    async fn begin(
        wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
        limits: Limits,
        review: Review,
        allow_private: bool,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("galley.db"), &SqliteOptions::default());
        let store = wrap(Arc::new(store.unwrap()));
        let clock = Arc::new(TestClock::default());
        let log = Log::default();
        let app_clock: Arc<dyn Clock> = Arc::<TestClock>::clone(&clock);
        let writer =
            LogWriter::start(LogFormat::Json, Arc::clone(&app_clock), Box::new(log.clone()));
        let access = AccessLog::new(writer.unwrap(), true);
        let webhooks = setup::webhooks(allow_private);
        let app = App::new(
            Arc::clone(&store),
            app_clock,
            limits,
            access,
            webhooks,
            "test".to_owned(),
            "https://galley.test",
        );
        let test = Self { galley: Galley::new(app.clone()), app, store, clock, log, _dir: dir };
        test.account_with("first", &[], KEY, TOKEN, review).await;
        test
    }

    pub(crate) async fn account(&self, name: &str, phones: &[&str], key: &str, token: &str) {
        self.account_with(name, phones, key, token, Review::Auto).await;
    }

    pub(crate) async fn account_with(
        &self,
        name: &str,
        phones: &[&str],
        key: &str,
        token: &str,
        review: Review,
    ) {
        let new = NewAccount {
            name: name.to_owned(),
            rulebook: "v1",
            review,
            phones: phones.iter().map(|phone| (*phone).to_owned()).collect(),
            credentials: vec![
                credential(CredentialKind::Key, key),
                credential(CredentialKind::Token, token),
            ],
            only_if_first: false,
            at: self.clock.now(),
        };
        let created = self.store.create_account(new).await.unwrap();
        assert!(matches!(created, CreateAccountOutcome::Created(..)), "{created:?}");
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> TestResponse {
        let response = self.galley.handle(request).await;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        TestResponse { status: parts.status, headers: parts.headers, text }
    }

    /// Creates a template as the first account.
    pub(crate) async fn create(&self, document: &Value) -> TestResponse {
        self.send(post(document.to_string())).await
    }

    pub(crate) async fn create_with_key(&self, document: &Value, key: &str) -> TestResponse {
        let mut request = post(document.to_string());
        request.headers_mut().insert("idempotency-key", key.parse().unwrap());
        self.send(request).await
    }

    pub(crate) async fn show(&self, id: &str) -> TestResponse {
        self.send(request(Method::GET, &format!("{}/{id}", path(PHONE, KEY)), TOKEN, "")).await
    }

    /// Calls `message_templates`, followed by `rest`, as the first account.
    pub(crate) async fn call(&self, method: Method, rest: &str, body: &Value) -> TestResponse {
        self.call_with(method, rest, body, None).await
    }

    /// Like [`TestApp::call`], with an optional header.
    pub(crate) async fn call_with(
        &self,
        method: Method,
        rest: &str,
        body: &Value,
        header: Option<(&'static str, &str)>,
    ) -> TestResponse {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = request(method, &format!("{}{rest}", path(PHONE, KEY)), TOKEN, body);
        if let Some((name, value)) = header {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        self.send(request).await
    }

    /// Calls `rest` below the base path of the first account.
    pub(crate) async fn base(&self, method: Method, rest: &str, body: &Value) -> TestResponse {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let path = format!("/api/v1.0/{PHONE}/{KEY}{rest}");
        self.send(request(method, &path, TOKEN, body)).await
    }

    /// Creates a small template and returns its id.
    pub(crate) async fn create_named(&self, name: &str) -> String {
        let mut document = hello(name);
        document["allow_category_change"] = json!(true);
        let created = self.create(&document).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.json()["id"].as_str().unwrap().to_owned()
    }

    /// Stops the service and returns its access log, which is buffered until then.
    pub(crate) fn into_log(self) -> String {
        let Self { galley, app, log, .. } = self;
        drop((galley, app));
        let text = log.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }
}

pub(crate) fn credential(kind: CredentialKind, secret: &str) -> NewCredential {
    NewCredential::unrestricted(kind, secret)
}

pub(crate) fn path(phone: &str, key: &str) -> String {
    format!("/api/v1.0/{phone}/{key}/message_templates")
}

/// A create request of the first account with this body.
pub(crate) fn post(body: impl Into<Body>) -> Request<Body> {
    let mut request = request(Method::POST, &path(PHONE, KEY), TOKEN, body);
    request.headers_mut().insert("content-type", "application/json".parse().unwrap());
    request
}

pub(crate) fn request(
    method: Method,
    path: &str,
    token: &str,
    body: impl Into<Body>,
) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = if token.is_empty() {
        request
    } else {
        request.header("authorization", format!("Bearer {token}"))
    };
    request.body(body.into()).unwrap()
}

/// A small valid template.
pub(crate) fn hello(name: &str) -> Value {
    json!({
        "name": name, "language": "en_US", "category": "MARKETING", "allow_category_change": false,
        "components": [{"type": "BODY", "text": "Hello {{1}}", "example": {"body_text": [["Ada"]]}}],
    })
}

/// A clock that only the test advances.
#[derive(Default)]
pub(crate) struct TestClock(Mutex<Duration>);

impl TestClock {
    pub(crate) fn advance(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let noon = Timestamp::from_millisecond(1_790_000_000_000).unwrap();
        noon + SignedDuration::try_from(self.monotonic()).unwrap()
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
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
