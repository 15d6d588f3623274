//! Requests that wait for events, a provider, a receiver or the delay of a fault: all of them share one
//! limit, and each account has a share of it.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Method, Request},
};
use galley_domain::{id::AccountId, rulebook::WHATSAPP};
use galley_server::Limits;
use serde_json::json;
use tokio::{task::JoinSet, time::timeout};

use super::app::{TestApp, hello, path, request};
use crate::{
    harness::{TestAccount, TestResponse, TestService, setup},
    sandbox::emulator::order,
};

/// Shorter than any of the waits.
const AT_ONCE: Duration = Duration::from_secs(8);

const DELAYED: Option<(&str, &str)> = Some(("galley-fault", "delay=30s"));

/// A service with room for 12 requests that wait: half of the connections.
fn limits() -> Limits {
    Limits { connections: 24, ..Limits::default() }
}

/// Several requests, of which so many are answered at once. The others still wait.
async fn answered(
    test: &TestService,
    requests: impl IntoIterator<Item = Request<Body>>,
    expected: usize,
) -> (Vec<TestResponse>, JoinSet<TestResponse>) {
    let mut waiting = JoinSet::new();
    for request in requests {
        let galley = test.galley.clone();
        waiting.spawn(async move { TestResponse::read(galley.handle(request).await).await });
    }
    let mut answered = Vec::new();
    for _ in 0..expected {
        let response = timeout(AT_ONCE, waiting.join_next()).await.expect("it does not wait");
        answered.push(response.unwrap().unwrap());
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(waiting.try_join_next().is_none(), "the others wait");
    (answered, waiting)
}

fn call(
    method: Method,
    path: &str,
    token: &str,
    body: String,
    header: Option<(&'static str, &str)>,
) -> Request<Body> {
    let mut request = request(method, path, token, body);
    request.headers_mut().insert("content-type", "application/json".parse().unwrap());
    if let Some((name, value)) = header {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

fn creates<'a>(
    account: AccountId,
    token: &'a str,
    count: usize,
    header: Option<(&'static str, &'a str)>,
) -> impl Iterator<Item = Request<Body>> + 'a {
    let path = format!("/v23.0/{account}/message_templates");
    (0..count).map(move |number| {
        let document = order(&format!("{token}_{number}")).to_string();
        call(Method::POST, &path, token, document, header)
    })
}

fn long_poll(token: &str) -> Request<Body> {
    request(
        Method::GET,
        &format!("/api/v1.0/{token}/{token}/events?after=latest&wait=25"),
        token,
        "",
    )
}

#[tokio::test]
async fn all_waits_share_one_limit_and_each_account_has_a_share() {
    let test = TestService::builder().limits(limits()).start();
    let (key, token) = ("shop", "shop");
    let shop = TestAccount { rulebook: &WHATSAPP, key, token, ..TestAccount::named("shop") };
    let shop = test.account(shop).await;
    // No worker runs: the provider never answers.
    test.connect_with_hook(shop, "hook", None).await;
    let (key, token) = ("sandbox", "sandbox");
    let sandbox = TestAccount { key, token, ..TestAccount::emulator("sandbox") };
    let sandbox = test.account(sandbox).await;
    for name in ["feed", "other"] {
        test.account(TestAccount { key: name, token: name, ..TestAccount::named(name) }).await;
    }

    // Alone, an account has a third of the room. Its other creates are queued like those that wait.
    let (queued, shop_waits) = answered(&test, creates(shop, "shop", 7, None), 3).await;
    for created in queued {
        let created = created.expect_success();
        assert_eq!(created["status"], "PENDING");
        assert_eq!(created["galley_upstream"], json!({"state": "queued"}));
    }
    assert_eq!(shop_waits.len(), 4);

    let (refused, delayed) = answered(&test, creates(sandbox, "sandbox", 5, DELAYED), 2).await;
    for refused in refused {
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(
            refused.header("ratelimit-policy"),
            Some("\"waits\";q=3;qu=\"concurrent-requests\"")
        );
        let error = refused.expect_error(400, 80_008, None);
        assert_eq!(error["galley_problem"], "too-many-requests");
        let message = error["error_user_msg"].as_str().unwrap();
        assert!(message.contains("the fault `delay` was not applied"), "{message}");
    }
    assert_eq!(delayed.len(), 3);

    let (refused, polls) = answered(&test, (0..4).map(|_| long_poll("feed")), 2).await;
    for refused in refused {
        let policy = Some("\"long-polls\";q=2;qu=\"concurrent-requests\"");
        assert_eq!(refused.header("ratelimit-policy"), policy);
        refused.problem(429, "too-many-requests");
    }
    let webhook = json!({"url": "https://hooks.example/orders"}).to_string();
    let register = call(Method::POST, "/api/v1.0/feed/feed/webhooks", "feed", webhook, None);
    test.send(register).await.problem(429, "too-many-requests");

    // An account that uses nothing still has room, and its other requests are as usual.
    let (_, other) = answered(&test, [long_poll("other")], 0).await;
    let document = hello("first").to_string();
    let create = call(Method::POST, &path("other", "other"), "other", document, None);
    assert_eq!(test.send(create).await.status, 201);
    let metrics = test.send(request(Method::GET, "/metrics", "", "")).await;
    for (limit, count) in [("waits", 6), ("long-polls", 2)] {
        let line = format!("galley_http_throttled_total{{limit=\"{limit}\"}} {count}\n");
        assert!(metrics.text().contains(&line), "{}", metrics.text());
    }
    drop((shop_waits, delayed, polls, other));
}

#[tokio::test]
async fn an_endpoint_that_is_neither_resolved_nor_verified_waits_for_nothing() {
    let webhooks = setup::webhooks(true);
    let test = TestService::builder().limits(limits()).webhooks(webhooks).start();
    let (key, token) = ("feed", "feed");
    let feed = TestAccount { rulebook: &WHATSAPP, key, token, ..TestAccount::named("feed") };
    test.account(feed).await;
    let (_, polls) = answered(&test, (0..6).map(|_| long_poll("feed")), 2).await;
    let register = |body: serde_json::Value| {
        call(Method::POST, "/api/v1.0/feed/feed/webhooks", "feed", body.to_string(), None)
    };
    let url = "http://127.0.0.1:9000/hook";
    assert_eq!(test.send(register(json!({"url": url}))).await.status, 201);
    let verified = json!({"url": url, "format": "whatsapp", "verify_token": "t"});
    test.send(register(verified)).await.problem(429, "too-many-requests");
    drop(polls);
}

#[tokio::test]
async fn a_request_that_has_ended_leaves_its_wait_to_the_next() {
    let test = TestApp::start_with(limits()).await;
    test.account("feed", &[], "feed", "feed").await;
    for round in 1..=3 {
        let (refused, mut polls) = answered(&test, (0..6).map(|_| long_poll("feed")), 2).await;
        assert!(refused.iter().all(|it| it.status == 429));
        let metrics = test.send(request(Method::GET, "/metrics", "", "")).await;
        let line = format!("galley_http_throttled_total{{limit=\"long-polls\"}} {}\n", 2 * round);
        assert!(metrics.text().contains(&line), "{}", metrics.text());
        polls.shutdown().await;
    }
}
