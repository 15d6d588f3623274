//! Traces of clients: `traceparent` in the access log and in the deliveries of events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, http::Request};
use galley_domain::{
    id::{AccountId, WebhookId},
    rulebook::{Rulebook, V1, WHATSAPP},
    webhook::Format,
};
use galley_server::{
    Clock as _,
    delivery::{PostRequest, Random, Secret, WebhookClient, WebhookContext},
    workers::{DeliveryStepOutcome, deliver_one},
};
use galley_store::{Author, CreateWebhookOutcome, NewWebhook};
use serde_json::{Value, json};

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, path, post, request};
use crate::{
    deliveries::fake_receiver::{FakeReceiver, keyring, status, webhook_context},
    harness::{TestAccount, TestService},
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn traceparent() -> String {
    format!("00-{TRACE}-{SPAN}-01")
}

fn traced(mut request: Request<Body>, header: &str) -> Request<Body> {
    request.headers_mut().insert("traceparent", header.parse().unwrap());
    request
}

#[tokio::test]
async fn the_access_log_has_the_trace_of_the_client() {
    let app = TestApp::start().await;
    let created = app.send(traced(post(hello("t").to_string()), &traceparent())).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.header("traceparent"), None, "a response names no trace");
    app.send(traced(post("{"), &traceparent())).await.problem(400, "malformed-json");
    let invalid = [traceparent().to_uppercase(), format!("00-{}-{SPAN}-01", "0".repeat(32))];
    for header in &invalid {
        let response = app.send(traced(post(hello("u").to_string()), header)).await;
        assert!(response.status == 201 || response.status == 409, "{header} is ignored");
    }
    let log = app.into_log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines[..2] {
        assert_eq!((&line["trace_id"], &line["span_id"]), (&json!(TRACE), &json!(SPAN)), "{log}");
    }
    for line in &lines[2..] {
        assert!(line["trace_id"].is_null() && line["span_id"].is_null(), "{log}");
    }
}

/// A service with an account and an endpoint, whose receiver records what it gets.
struct Delivering {
    service: TestService,
    account: AccountId,
    receiver: Arc<FakeReceiver>,
    webhook: WebhookId,
}

impl Delivering {
    async fn start(rulebook: &'static Rulebook) -> Self {
        let receiver = Arc::<FakeReceiver>::default();
        let client: Arc<dyn WebhookClient> = Arc::<FakeReceiver>::clone(&receiver);
        let random = Arc::<CountingRandom>::default();
        let webhooks = WebhookContext { random, ..webhook_context(client) };
        let service = TestService::builder().webhooks(webhooks).start();
        let account = TestAccount { rulebook, key: KEY, token: TOKEN, ..TestAccount::named("a") };
        let account = service.account(account).await;
        let secret = Secret::generate(|bytes| bytes.fill(7));
        let new = NewWebhook {
            account,
            url: "https://shop.example/hooks".to_owned(),
            events: Vec::new(),
            format: Format::Galley,
            subscribed: false,
            from_start: false,
            secret: keyring().encrypt(account.get(), &secret, [3; 24]),
            by: Author::operator(service.clock.now()),
        };
        let CreateWebhookOutcome::Created(webhook) =
            service.store.create_webhook(new).await.unwrap()
        else {
            panic!("the first endpoint of an account")
        };
        Self { service, account, receiver, webhook: webhook.id }
    }

    /// Sends a request with a trace at a time of its own, and returns the response.
    async fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        self.service.clock.advance(Duration::from_secs(1));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut call = traced(request(method.parse().unwrap(), path, TOKEN, body), &traceparent());
        call.headers_mut().insert("content-type", "application/json".parse().unwrap());
        let response = self.service.send(call).await;
        assert!(response.status.is_success(), "{method} {path}: {response:?}");
        if response.bytes.is_empty() { Value::Null } else { response.json() }
    }

    /// Delivers so many events, all of them in the trace of the client.
    async fn expect_traced(&self, what: &str, count: usize) {
        let delivered = self.deliver().await;
        assert_eq!(delivered.len(), count, "{what}: {delivered:?}");
        for (kind, trace) in delivered {
            let trace = trace.unwrap_or_default();
            assert!(trace.starts_with(&format!("00-{TRACE}-")), "{what}: {kind}: {trace}");
            assert!(trace.ends_with("-01") && !trace.contains(SPAN), "{what}: {kind}: {trace}");
        }
    }

    async fn step(&self) -> DeliveryStepOutcome {
        deliver_one(&self.service.app, self.webhook).await.unwrap()
    }

    /// Delivers what is due, and returns the type of each event with its trace.
    async fn deliver(&self) -> Vec<(String, Option<String>)> {
        let sent = self.receiver.requests.lock().unwrap().len();
        while !matches!(self.step().await, DeliveryStepOutcome::Idle(_)) {}
        let requests = self.receiver.requests.lock().unwrap();
        requests[sent..].iter().map(|request| (event_type(request), trace(request))).collect()
    }
}

fn event_type(request: &PostRequest) -> String {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    body["type"].as_str().unwrap().to_owned()
}

fn trace(request: &PostRequest) -> Option<String> {
    let header = request.headers.iter().find(|(name, _)| name == "traceparent")?;
    Some(header.1.to_str().unwrap().to_owned())
}

/// Fills with other bytes each time.
#[derive(Default)]
struct CountingRandom(AtomicU8);

impl Random for CountingRandom {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0.fetch_add(1, Ordering::Relaxed) | 128);
    }
}

#[tokio::test]
async fn every_event_of_a_traced_request_is_delivered_in_its_trace() {
    let test = Delivering::start(&V1).await;
    let created = test.call("POST", &path(PHONE, KEY), &hello("t")).await;
    test.expect_traced("create", 1).await;
    let one = format!("{}/{}", path(PHONE, KEY), created["id"].as_str().unwrap());
    let edit = json!({"components": [{"type": "BODY", "text": "Hi"}]});
    test.call("PATCH", &one, &edit).await;
    test.expect_traced("edit", 1).await;
    test.call("POST", &format!("{one}/review"), &json!({"decision": "pause"})).await;
    test.expect_traced("review", 1).await;
    test.call("DELETE", &one, &Value::Null).await;
    test.expect_traced("delete", 1).await;
}

#[tokio::test]
async fn events_of_the_graph_surface_are_delivered_in_their_trace() {
    let test = Delivering::start(&WHATSAPP).await;
    let list = format!("/v23.0/{}/message_templates", test.account);
    let document = |name: &str| {
        json!({"name": name, "language": "en_US", "category": "MARKETING",
            "components": [{"type": "BODY", "text": "Good morning, all of you"}]})
    };
    let first = test.call("POST", &list, &document("first")).await;
    test.expect_traced("create", 1).await;
    let node = format!("/v23.0/{}", first["id"].as_str().unwrap());
    let edit = json!({"components": [{"type": "BODY", "text": "Good evening, all of you"}]});
    test.call("POST", &node, &edit).await;
    test.expect_traced("edit", 1).await;
    let code = json!({"name": "code", "languages": ["en_US", "es"], "category": "AUTHENTICATION",
        "components": [{"type": "BODY"},
            {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]}]});
    test.call("POST", &list.replace("message", "upsert_message"), &code).await;
    test.expect_traced("upsert", 2).await;
    test.call("DELETE", &format!("{list}?name=code"), &Value::Null).await;
    test.expect_traced("deletion of all languages", 2).await;
    let ids = format!("{list}?hsm_ids=[{}]", first["id"].as_str().unwrap());
    test.call("DELETE", &ids, &Value::Null).await;
    test.expect_traced("deletion by ids", 1).await;
}

#[tokio::test]
async fn an_event_of_an_untraced_request_has_no_trace() {
    let test = Delivering::start(&V1).await;
    test.service.send(post(hello("plain").to_string())).await;
    let delivered = test.deliver().await;
    assert_eq!(delivered.len(), 1);
    assert!(delivered.iter().all(|(_, trace)| trace.is_none()), "{delivered:?}");
}

#[tokio::test]
async fn a_repeated_attempt_stays_in_the_trace() {
    let test = Delivering::start(&V1).await;
    test.receiver.respond_with(status(500));
    test.call("POST", &path(PHONE, KEY), &hello("t")).await;
    let DeliveryStepOutcome::WillRetry(at) = test.step().await else { panic!("it failed") };
    test.service.clock.advance_to(at);
    test.step().await;
    let requests = test.receiver.requests.lock().unwrap();
    assert_eq!(event_type(&requests[0]), event_type(&requests[1]));
    let traces = [&requests[0], &requests[1]].map(|request| trace(request).unwrap());
    assert!(traces.iter().all(|it| it.starts_with(&format!("00-{TRACE}-"))), "{traces:?}");
    assert_ne!(traces[0], traces[1], "each attempt is a span of its own");
}
