//! A client of API v1.0 for tests: a service with one account, and calls as this account.

use std::{ops::Deref, sync::Arc};

use axum::{
    body::Body,
    http::{Method, Request},
};
use galley_domain::{account::Scopes, rulebook::WHATSAPP, template::Review};
use galley_server::Limits;
use galley_store::{CredentialKind, NewCredential, Store};
use serde_json::{Value, json};

use crate::harness::{ServiceBuilder, TestAccount, TestResponse, TestService, setup};

pub(crate) const PHONE: &str = "15550001111";
pub(crate) const KEY: &str = "key-of-the-first-account";
pub(crate) const TOKEN: &str = "token-of-the-first-account";

/// A service with one account that accepts any phone number.
pub(crate) struct TestApp(TestService);

impl Deref for TestApp {
    type Target = TestService;

    fn deref(&self) -> &TestService {
        &self.0
    }
}

impl TestApp {
    pub(crate) async fn start() -> Self {
        Self::begin(TestService::builder(), Review::Auto).await
    }

    /// A service whose account has manual review.
    pub(crate) async fn start_reviewed() -> Self {
        Self::begin(TestService::builder(), Review::Manual).await
    }

    /// A service whose account is an emulator, and whose token permits everything.
    pub(crate) async fn start_emulator() -> Self {
        let test = Self(TestService::builder().start());
        let scopes = Scopes::ALL;
        let first = TestAccount { key: KEY, token: TOKEN, scopes, ..TestAccount::named("first") };
        test.0.account(first.into_emulator()).await;
        test
    }

    /// A service whose account has the rulebook `whatsapp`, and whose token permits everything.
    pub(crate) async fn start_whatsapp() -> Self {
        let test = Self(TestService::builder().start());
        let first = TestAccount { key: KEY, token: TOKEN, ..TestAccount::named("first") };
        let first = TestAccount { rulebook: &WHATSAPP, scopes: Scopes::ALL, ..first };
        test.0.account(first).await;
        test
    }

    /// A service whose operator allows endpoints in private networks.
    pub(crate) async fn start_private() -> Self {
        let builder = TestService::builder().webhooks(setup::webhooks(true));
        Self::begin(builder, Review::Auto).await
    }

    pub(crate) async fn start_with(limits: Limits) -> Self {
        Self::begin(TestService::builder().limits(limits), Review::Auto).await
    }

    /// A service whose store is the real one, wrapped by `wrap`.
    pub(crate) async fn start_on(
        wrap: impl FnOnce(Arc<Store>) -> Arc<Store> + Send + 'static,
        limits: Limits,
    ) -> Self {
        Self::begin(TestService::builder().store(wrap).limits(limits), Review::Auto).await
    }

    /// A service whose account has automatic review.
    pub(crate) async fn start_built(builder: ServiceBuilder) -> Self {
        Self::begin(builder, Review::Auto).await
    }

    async fn begin(builder: ServiceBuilder, review: Review) -> Self {
        let test = Self(builder.start());
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
        let account = TestAccount { review, phones, key, token, ..TestAccount::named(name) };
        self.0.account(account).await;
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

    /// Stops the service and returns its access log.
    pub(crate) fn into_log(self) -> String {
        self.0.into_log()
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
