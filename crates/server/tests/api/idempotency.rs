//! The `Idempotency-Key` of a create.

use std::time::Duration;

use axum::http::Method;
use galley_store::{Author, CredentialKind};
use serde_json::json;

use super::app::{KEY, PHONE, TOKEN, TestApp, credential, hello, path, post, request};

#[tokio::test]
async fn a_repeated_request_gets_the_first_response_byte_for_byte() {
    let app = TestApp::start().await;
    let first = app.create_with_key(&hello("t"), "order-1").await;
    assert_eq!((first.status.as_u16(), first.header("idempotent-replayed")), (201, None));
    app.clock.advance(Duration::from_hours(1));
    let again = app.create_with_key(&hello("t"), "order-1").await;
    assert_eq!((again.status.as_u16(), again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(
        (&again.text(), again.header("location")),
        (&first.text(), first.header("location"))
    );
}

#[tokio::test]
async fn the_same_key_with_another_payload_or_path_is_rejected() {
    let app = TestApp::start().await;
    app.create_with_key(&hello("t"), "order-1").await;
    app.create_with_key(&hello("u"), "order-1").await.problem(422, "idempotency-key-reused");
    let mut elsewhere = post(hello("t").to_string());
    *elsewhere.uri_mut() = path("15550009999", KEY).parse().unwrap();
    elsewhere.headers_mut().insert("idempotency-key", "order-1".parse().unwrap());
    app.send(elsewhere).await.problem(422, "idempotency-key-reused");
    // The idempotency record takes precedence over the rules.
    app.create_with_key(&json!({}), "order-1").await.problem(422, "idempotency-key-reused");
}

#[tokio::test]
async fn a_repeated_request_works_with_a_rotated_api_key() {
    use galley_server::Clock as _;
    let app = TestApp::start().await;
    let first = app.create_with_key(&hello("t"), "order-1").await;
    let account = app.store.accounts().await.unwrap()[0].id;
    let new = credential(CredentialKind::Key, "rotated-key");
    app.store.add_credential(account, new, Author::operator(app.clock.now())).await.unwrap();
    let mut again =
        request(Method::POST, &path(PHONE, "rotated-key"), TOKEN, hello("t").to_string());
    again.headers_mut().insert("idempotency-key", "order-1".parse().unwrap());
    let again = app.send(again).await;
    assert_eq!(
        (again.text(), again.headers.contains_key("idempotent-replayed")),
        (first.text(), true)
    );
}

#[tokio::test]
async fn a_rejected_request_does_not_use_its_key() {
    let app = TestApp::start().await;
    app.create_with_key(&json!({"name": "t"}), "order-1").await.problem(422, "invalid-template");
    app.create(&hello("t")).await;
    app.create_with_key(&hello("t"), "order-1").await.problem(409, "name-taken");
    assert_eq!(app.create_with_key(&hello("u"), "order-1").await.status.as_u16(), 201);
}

#[tokio::test]
async fn a_key_expires_after_24_hours() {
    let app = TestApp::start().await;
    app.create_with_key(&hello("t"), "order-1").await;
    app.clock.advance(Duration::from_hours(24));
    app.create_with_key(&hello("t"), "order-1").await.problem(409, "name-taken");
}

#[tokio::test]
async fn concurrent_requests_with_one_key_get_the_same_response() {
    let app = TestApp::start().await;
    let document = hello("t");
    let (one, two, three) = tokio::join!(
        app.create_with_key(&document, "order-1"),
        app.create_with_key(&document, "order-1"),
        app.create_with_key(&document, "order-1"),
    );
    assert_eq!((&one.text(), &two.text()), (&two.text(), &three.text()));
    let replayed = [&one, &two, &three]
        .iter()
        .filter(|it| it.headers.contains_key("idempotent-replayed"))
        .count();
    assert_eq!(replayed, 2);
}

#[tokio::test]
async fn a_key_has_1_to_255_characters() {
    let app = TestApp::start().await;
    app.create_with_key(&hello("t"), "").await.problem(400, "bad-request");
    let mut twice = post(hello("t").to_string());
    for key in ["one", "two"] {
        twice.headers_mut().append("idempotency-key", key.parse().unwrap());
    }
    app.send(twice).await.problem(400, "bad-request");
    app.create_with_key(&hello("t"), &"k".repeat(256)).await.problem(400, "bad-request");
    assert_eq!(app.create_with_key(&hello("t"), &"k".repeat(255)).await.status.as_u16(), 201);
}
