//! A client of the Graph surface for tests: a service with accounts of both rulebooks and a clock
//! that advances with every read, so that ids differ.

use std::ops::Deref;

use axum::{
    body::Body,
    http::{Method, Request, header},
};
use galley_domain::{
    id::AccountId,
    rulebook::{V1, WHATSAPP},
    template::Review,
};
use galley_server::Limits;
use serde_json::{Value, json};

use crate::harness::{TestAccount, TestClock, TestResponse, TestService};

pub(crate) const TOKEN: &str = "token-of-the-shop";
pub(crate) const STRANGER: &str = "token-of-a-stranger";
pub(crate) const OTHER: &str = "token-of-an-account-with-the-other-rulebook";
pub(crate) const PUBLIC: &str = "https://galley.example";

pub(crate) struct Service {
    pub(crate) shop: AccountId,
    pub(crate) stranger: AccountId,
    pub(crate) other: AccountId,
    inner: TestService,
}

impl Deref for Service {
    type Target = TestService;

    fn deref(&self) -> &TestService {
        &self.inner
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
        let builder = TestService::builder().clock(TestClock::ticking());
        let service = builder.limits(limits).public_url(PUBLIC).start();
        let account = async |token: &str, rulebook| {
            let name = format!("the owner of {token}");
            let account = TestAccount::named(&name);
            service.account(TestAccount { rulebook, review, key: token, token, ..account }).await
        };
        let shop = account(TOKEN, &WHATSAPP).await;
        let stranger = account(STRANGER, &WHATSAPP).await;
        let other = account(OTHER, &V1).await;
        Self { shop, stranger, other, inner: service }
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
        self.inner.into_log()
    }
}

/// A small valid template.
pub(crate) fn hello(name: &str) -> Value {
    json!({
        "name": name, "language": "en_US", "category": "MARKETING",
        "components": [{"type": "BODY", "text": "Good morning, all of you"}],
    })
}
