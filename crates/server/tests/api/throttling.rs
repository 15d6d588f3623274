//! Limits of accounts and of addresses whose credentials fail: what is refused, what is slowed down,
//! and what never is.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    net::IpAddr,
    num::NonZero,
    pin::{Pin, pin},
    task::{Context, Poll},
    thread::available_parallelism,
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{Method, Request},
};
use galley_domain::rulebook::WHATSAPP;
use galley_server::{Clock as _, Limits};
use galley_store::{AccountQuotas, Author};
use hyper::body::Frame;
use tokio::{task::JoinSet, time::Instant};

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, path, post, request};
use crate::harness::{TestAccount, TestResponse, TestService, setup};

const ATTACKER: &str = "198.51.100.1";
const OTHER: &str = "198.51.100.2";
const PROXY: &str = "10.0.0.1";

/// A service on which one credential per second may fail, after ten at once.
async fn strict(trusted_proxies: &[&str]) -> TestApp {
    let trusted_proxies = trusted_proxies.iter().map(|it| it.parse().unwrap()).collect();
    let limits = Limits { failed_credentials: 1, trusted_proxies, ..Limits::default() };
    let app = TestApp::start_with(limits).await;
    // Claims the phone number, which takes real time. From here on, time passes only when all wait.
    read(&app, OTHER, KEY, TOKEN, "").await.problem(404, "template-unknown");
    tokio::time::pause();
    app
}

/// Reads a template that does not exist, from an address, with a header of a proxy if not empty.
async fn read(
    app: &TestApp,
    from: &str,
    key: &str,
    token: &str,
    forwarded_for: &str,
) -> TestResponse {
    let mut request = request(Method::GET, &format!("{}/17", path(PHONE, key)), token, "");
    if !forwarded_for.is_empty() {
        request.headers_mut().insert("x-forwarded-for", forwarded_for.parse().unwrap());
    }
    app.send_from(from.parse().unwrap(), request).await
}

/// Fails as often as is allowed at once, with tokens and with keys.
async fn use_up(app: &TestApp, from: &str, forwarded_for: &str) {
    for _ in 0..5 {
        let response = read(app, from, KEY, "guessed", forwarded_for).await;
        response.problem(401, "token-unknown");
        let response = read(app, from, "guessed", TOKEN, forwarded_for).await;
        response.problem(401, "key-unknown");
    }
}

#[tokio::test]
async fn failed_credentials_are_slowed_down_and_valid_ones_from_the_same_address_are_not() {
    let app = strict(&[]).await;
    use_up(&app, ATTACKER, "").await;
    for second in 1..=5 {
        let before = Instant::now();
        let response = read(&app, ATTACKER, KEY, "guessed", "").await;
        assert_eq!(before.elapsed().as_secs(), second, "each waits for its turn");
        assert_eq!(response.header("retry-after"), Some("1"), "it has waited already");
        assert_eq!(response.header("ratelimit-policy"), Some("\"failed-credentials\";q=10;w=10"));
        assert_eq!(response.header("ratelimit"), Some("\"failed-credentials\";r=0;t=1"));
        response.problem(429, "too-many-failures");
    }
    let before = Instant::now();
    let response = read(&app, ATTACKER, "guessed", TOKEN, "").await;
    assert_eq!(response.header("connection"), Some("close"), "too many wait already");
    response.problem(429, "too-many-failures");
    read(&app, ATTACKER, KEY, TOKEN, "").await.problem(404, "template-unknown");
    read(&app, ATTACKER, KEY, "", "").await.problem(401, "token-missing");
    read(&app, OTHER, KEY, "guessed", "").await.problem(401, "token-unknown");
    assert!(before.elapsed() < Duration::from_millis(500), "none of these waits");
    let metrics = app.send(Request::get("/metrics").body(Body::empty()).unwrap()).await;
    let counted = "galley_http_throttled_total{limit=\"failed-credentials\"} 6\n";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
}

#[tokio::test]
async fn a_new_credential_works_from_an_address_that_is_throttled() {
    let app = strict(&[]).await;
    use_up(&app, ATTACKER, "").await;
    read(&app, ATTACKER, KEY, "guessed", "").await.problem(429, "too-many-failures");
    app.account("second", &["222"], "new-key", "new-token").await;
    let before = Instant::now();
    let request = request(Method::GET, &format!("{}/17", path("222", "new-key")), "new-token", "");
    let response = app.send_from(ATTACKER.parse().unwrap(), request).await;
    response.problem(404, "template-unknown");
    assert!(before.elapsed() < Duration::from_millis(500));
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_its_own_rate() {
    let app = strict(&["10.0.0.0/8"]).await;
    use_up(&app, PROXY, ATTACKER).await;
    read(&app, PROXY, KEY, "guessed", ATTACKER).await.problem(429, "too-many-failures");
    read(&app, PROXY, KEY, "guessed", OTHER).await.problem(401, "token-unknown");
    // An address that the client has invented is to the left of its own.
    let invented = format!("203.0.113.9, {ATTACKER}");
    read(&app, PROXY, KEY, "guessed", &invented).await.problem(429, "too-many-failures");
    // Another machine cannot speak for its clients.
    use_up(&app, "203.0.113.7", "203.0.113.8").await;
    let response = read(&app, "203.0.113.7", KEY, "guessed", "203.0.113.9").await;
    response.problem(429, "too-many-failures");
}

/// A body that does not arrive.
struct Endless;

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// A request whose body never ends, with a declared length.
fn endless(key: &str, token: &str, length: usize) -> Request<Body> {
    let mut request = request(Method::POST, &path(PHONE, key), token, Body::new(Endless));
    request.headers_mut().insert("content-length", length.into());
    request
}

/// Runs a request until it waits.
async fn begin<F: Future<Output = TestResponse>>(request: F) -> Pin<Box<F>> {
    let mut request = Box::pin(request);
    poll_fn(|context| {
        assert!(request.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
    request
}

#[tokio::test]
async fn an_account_has_a_limited_number_of_requests_in_flight() {
    let limits = Limits { requests_per_account: 2, ..Limits::default() };
    let app = TestApp::start_with(limits).await;
    app.account("second", &["222"], "key-2", "token-2").await;
    app.create_named("first").await;
    let running = [
        begin(app.send(endless(KEY, TOKEN, 100))).await,
        begin(app.send(endless(KEY, TOKEN, 100))).await,
    ];
    let refused = app.create(&hello("third")).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(
        refused.header("ratelimit-policy"),
        Some("\"requests-in-flight\";q=2;qu=\"concurrent-requests\"")
    );
    assert_eq!(refused.header("ratelimit"), Some("\"requests-in-flight\";r=0;t=1"));
    refused.problem(429, "too-many-requests");
    let other = request(Method::GET, &path("222", "key-2"), "token-2", "");
    assert_eq!(app.send(other).await.status, 200, "another account");
    drop(running);
    assert_eq!(app.create(&hello("third")).await.status, 201);
}

#[tokio::test]
async fn requests_that_wait_for_events_are_counted_apart() {
    let limits = Limits { requests_per_account: 2, connections: 4, ..Limits::default() };
    let app = TestApp::start_with(limits).await;
    app.create_named("first").await;
    let events = || {
        let path = format!("/api/v1.0/{PHONE}/{KEY}/events?after=latest&wait=20");
        app.send(request(Method::GET, &path, TOKEN, ""))
    };
    let mut waiting = pin!(events());
    let second = tokio::select! {
        biased;
        response = &mut waiting => panic!("{response:?}"),
        response = events() => response,
    };
    assert_eq!(
        second.header("ratelimit-policy"),
        Some("\"long-polls\";q=1;qu=\"concurrent-requests\"")
    );
    second.problem(429, "too-many-requests");
    app.create_named("second").await;
    assert_eq!(waiting.await.status, 200);
}

#[tokio::test]
async fn an_account_has_a_limited_number_of_large_bodies_in_flight() {
    let app = TestApp::start().await;
    app.create_named("first").await;
    let mut running = Vec::new();
    for _ in 0..64 {
        running.push(begin(app.send(endless(KEY, TOKEN, 200_000))).await);
    }
    let refused = app.send(endless(KEY, TOKEN, 200_000)).await;
    assert_eq!(
        refused.header("ratelimit-policy"),
        Some("\"large-bodies\";q=64;qu=\"concurrent-requests\"")
    );
    refused.problem(429, "too-many-requests");
    assert_eq!(app.create(&hello("small")).await.status, 201);
    // A proof costs more than a check of its document.
    for (text, status) in [("Hello", 200), (&*"{{1}} ".repeat(500), 429)] {
        let document = serde_json::json!({"components": [{"type": "BODY", "text": text}]});
        let proof = serde_json::json!({"document": document});
        assert_eq!(app.call(Method::POST, "/proof", &proof).await.status, status);
    }
    drop(running);
    let mut large = hello("large");
    large["note"] = "x".repeat(200_000).into();
    assert_eq!(app.send(post(large.to_string())).await.status, 201);
}

#[tokio::test]
async fn requests_for_the_number_of_another_account_count_like_others() {
    let app = TestApp::start().await;
    app.account("second", &["222"], "key-2", "token-2").await;
    let first = app.store.accounts().await.unwrap()[0].id;
    let quotas = AccountQuotas { requests_per_second: Some(2), ..AccountQuotas::default() };
    assert!(
        app.store
            .set_account_quotas(first, quotas, Author::operator(app.clock.now()))
            .await
            .unwrap()
    );
    let call = |phone| app.send(request(Method::GET, &path(phone, KEY), TOKEN, ""));
    for _ in 0..2 {
        call("222").await.problem(404, "phone-unknown");
    }
    for taken_or_free in ["222", "333"] {
        call(taken_or_free).await.problem(429, "too-many-requests");
    }
}

#[tokio::test]
async fn a_receiver_that_hangs_keeps_no_large_body_of_another_account_waiting() {
    let app = TestApp::start().await;
    let accounts = available_parallelism().map_or(1, NonZero::get);
    let document = serde_json::json!({
        "url": "https://hooks.example/hangs",
        "format": "whatsapp",
        "verify_token": setup::VERIFY_TOKEN,
    });
    let registration = document.to_string() + &" ".repeat(20_000);
    let mut registrations = JoinSet::new();
    for number in 0..accounts {
        let [name, phone, key, token] =
            ["name", "phone", "key", "token"].map(|it| format!("{it}-{number}"));
        let rulebook = &WHATSAPP;
        let (phones, key, token) = (&[&*phone][..], &*key, &*token);
        let account = TestAccount { rulebook, phones, key, token, ..TestAccount::named(&name) };
        TestService::account(&app, account).await;
        let path = format!("/api/v1.0/{phone}/{key}/webhooks");
        let mut request = request(Method::POST, &path, token, registration.clone());
        request.headers_mut().insert("content-type", "application/json".parse().unwrap());
        let galley = app.galley.clone();
        registrations.spawn(async move { galley.handle(request).await.status() });
    }
    let wait = Duration::from_secs(10);
    let all = u32::try_from(accounts).unwrap();
    let all_hang = async { setup::HANGING.acquire_many(all).await.unwrap().forget() };
    tokio::select! {
        () = all_hang => {}
        ended = registrations.join_next() => panic!("{ended:?}"),
    }
    let mut large = hello("large");
    large["note"] = "x".repeat(20_000).into();
    let created = tokio::time::timeout(wait, app.create(&large)).await;
    assert_eq!(created.expect("it does not wait").status, 201);
    assert!(registrations.try_join_next().is_none(), "all receivers still hang");
}

#[tokio::test]
async fn an_account_with_a_rate_gets_so_many_requests_a_second() {
    let app = TestApp::start().await;
    app.account("second", &["222"], "key-2", "token-2").await;
    let first = app.store.accounts().await.unwrap()[0].id;
    let quotas = AccountQuotas { requests_per_second: Some(2), ..AccountQuotas::default() };
    assert!(
        app.store
            .set_account_quotas(first, quotas, Author::operator(app.clock.now()))
            .await
            .unwrap()
    );
    let call = || read(&app, OTHER, KEY, TOKEN, "");
    for _ in 0..2 {
        call().await.problem(404, "template-unknown");
    }
    let refused = call().await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("ratelimit-policy"), Some("\"requests-per-second\";q=2;w=1"));
    refused.problem(429, "too-many-requests");
    let other = request(Method::GET, &path("222", "key-2"), "token-2", "");
    assert_eq!(app.send(other).await.status, 200, "another account");
    app.clock.advance(Duration::from_millis(500));
    call().await.problem(404, "template-unknown");
    call().await.problem(429, "too-many-requests");
    let address: IpAddr = ATTACKER.parse().unwrap();
    let guess = request(Method::GET, &path(PHONE, KEY), "guessed", "");
    app.send_from(address, guess).await.problem(401, "token-unknown");
}
