//! A service whose setting `emulator` is off refuses the credentials of emulator accounts.

use axum::{
    body::Body,
    http::{Method, Request},
};
use galley_domain::account::Scopes;
use galley_server::Clock as _;
use galley_store::{Author, NewConsoleLink, SecretHash};
use serde_json::{Value, json};

use super::app::{KEY, PHONE, TOKEN, path, request};
use crate::harness::{TestAccount, TestResponse, TestService};

/// A service without emulators whose only account is one.
async fn started() -> TestService {
    let service = TestService::builder().without_emulator().start();
    let account = TestAccount::named("first");
    let account = TestAccount { key: KEY, token: TOKEN, scopes: Scopes::ALL, ..account };
    service.account(account.into_emulator()).await;
    service
}

#[tokio::test]
async fn every_call_of_an_emulator_account_is_refused_and_names_the_setting() {
    let service = started().await;
    for rest in ["message_templates", "events", "tokens", "emulator/clock"] {
        let path = format!("/api/v1.0/{PHONE}/{KEY}/{rest}");
        let refused = service.send(request(Method::GET, &path, TOKEN, "")).await;
        let problem = refused.problem(403, "emulator-off");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("`emulator = true`"), "{detail}");
        assert!(detail.contains("GALLEY_EMULATOR=true"), "{detail}");
    }
    let account = service.store.accounts().await.unwrap()[0].id;
    assert!(service.store.phones(account).await.unwrap().is_empty(), "no number was claimed");
    // What is wrong with the credentials themselves is said first.
    let unknown = service.send(request(Method::GET, &path(PHONE, KEY), "unknown", "")).await;
    unknown.problem(401, "token-unknown");
}

#[tokio::test]
async fn the_graph_surface_refuses_it_with_code_10() {
    let service = started().await;
    let account = service.store.accounts().await.unwrap()[0].id;
    for (method, path) in [
        (Method::GET, format!("/v23.0/{account}/message_templates")),
        (Method::POST, format!("/v23.0/{account}/message_templates/archive")),
        (Method::POST, format!("/v23.0/{account}/message_templates/unarchive")),
        (Method::GET, format!("/v23.0/{account}/message_template_previews")),
        (Method::GET, "/v23.0/7/compare".to_owned()),
        (Method::POST, format!("/v23.0/{PHONE}/messages")),
    ] {
        let refused = service.send(request(method, &path, TOKEN, "")).await;
        let error = refused.expect_error(403, 10, None);
        assert_eq!(error["galley_problem"], "emulator-off", "{path}");
        let text = error["error_user_msg"].as_str().unwrap();
        assert!(text.contains("`emulator = true`"), "{path}: {text}");
    }
}

async fn console(service: &TestService, method: Method, cookie: &str, body: Value) -> TestResponse {
    let request = Request::builder().method(method).uri("/console/session");
    let request = request.header("sec-fetch-site", "same-origin").header("cookie", cookie);
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    service.send(request.header("content-type", "application/json").body(body).unwrap()).await
}

#[tokio::test]
async fn the_console_signs_in_neither_with_a_token_nor_with_a_link() {
    let service = started().await;
    let refused = console(&service, Method::POST, "", json!({"token": TOKEN})).await;
    refused.problem(403, "emulator-off");
    assert_eq!(refused.header("set-cookie"), None);

    let account = service.store.accounts().await.unwrap()[0].id;
    let (hash, scopes) = (SecretHash::of("link"), Scopes::DEFAULT);
    let new = NewConsoleLink { account, hash, scopes, name: "Mira".to_owned() };
    let by = Author::operator(service.clock.now());
    assert!(service.store.create_console_link(new, by).await.unwrap());
    let refused = console(&service, Method::POST, "", json!({"link": "link"})).await;
    refused.problem(403, "emulator-off");
    assert_eq!(refused.header("set-cookie"), None);
}

#[tokio::test]
async fn a_session_that_began_while_the_setting_was_on_is_refused_without_it() {
    let service = started().await;
    let token = SecretHash::of(TOKEN);
    let now = service.clock.now();
    let credential = service.store.credentials(service.store.accounts().await.unwrap()[0].id);
    let credential = credential.await.unwrap().pop().unwrap();
    assert_eq!(credential.kind, galley_store::CredentialKind::Token);
    let session = galley_store::NewSession::new(SecretHash::of("cookie"), credential.id, None, now);
    service.store.start_session(session).await.unwrap();
    assert!(service.store.credential(credential.kind, token).await.unwrap().is_some());
    let cookie = "__Host-galley_console=cookie";
    console(&service, Method::GET, cookie, Value::Null).await.problem(403, "emulator-off");
    let request = Request::builder().uri("/console/api/-/events").header("cookie", cookie);
    let request = request.header("sec-fetch-site", "same-origin");
    let refused = service.send(request.body(Body::empty()).unwrap()).await;
    refused.problem(403, "emulator-off");
}
