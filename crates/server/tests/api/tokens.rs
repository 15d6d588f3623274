//! Tokens and the audit feed over the API.

use std::time::Duration;

use axum::http::Method;
use galley_domain::account::Scopes;
use galley_server::{Clock as _, Limits, workers};
use galley_store::{AddCredentialOutcome, Author, CredentialId, CredentialKind, NewCredential};
use serde_json::{Value, json};

use super::app::{KEY, PHONE, TestApp, credential, request};
use crate::harness::TestResponse;

/// A token that manages tokens and reads the audit feed.
const MANAGER: &str = "manager";

async fn started() -> TestApp {
    let app = TestApp::start().await;
    add(&app, MANAGER, "credentials,audit,read", None).await;
    app
}

/// Adds a token to the first account, as the operator does.
async fn add(
    app: &TestApp,
    secret: &str,
    scopes: &str,
    lifetime: Option<Duration>,
) -> CredentialId {
    let now = app.clock.now();
    let new = NewCredential {
        scopes: Scopes::parse(scopes).unwrap(),
        expires_at: lifetime.map(|lifetime| now.checked_add(lifetime).unwrap()),
        name: format!("{secret} job"),
        ..credential(CredentialKind::Token, secret)
    };
    let account = app.store.accounts().await.unwrap()[0].id;
    match app.store.add_credential(account, new, Author::operator(now)).await.unwrap() {
        AddCredentialOutcome::Added(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn call(
    app: &TestApp,
    token: &str,
    method: Method,
    rest: &str,
    body: &Value,
) -> TestResponse {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    app.send(request(method, &format!("/api/v1.0/{PHONE}/{KEY}{rest}"), token, body)).await
}

async fn created(app: &TestApp, token: &str, body: Value) -> Value {
    let response = call(app, token, Method::POST, "/tokens", &body).await;
    assert_eq!(response.status, 201, "{response:?}");
    response.json()
}

#[tokio::test]
async fn a_created_token_works_immediately_and_its_secret_is_shown_once() {
    let app = started().await;
    let body = json!({"name": "nightly", "scopes": ["READ"], "expires_in": 60});
    let response = call(&app, MANAGER, Method::POST, "/tokens", &body).await;
    assert_eq!(response.status, 201, "{response:?}");
    let token = response.json();
    let (id, secret) = (token["id"].as_str().unwrap(), token["token"].as_str().unwrap());
    assert_eq!(response.headers["location"], format!("tokens/{id}"));
    assert_eq!(response.headers["cache-control"], "no-store");
    assert!(secret.starts_with("gt_") && secret.len() == 35, "{secret}");
    assert_eq!((&token["name"], &token["scopes"]), (&json!("nightly"), &json!(["read"])));
    assert_eq!(token["expires_at"], "2026-09-21T14:14:20.000Z");

    let list = call(&app, secret, Method::GET, "/message_templates", &Value::Null).await;
    assert_eq!(list.status, 200, "{list:?}");
    call(&app, secret, Method::GET, "/tokens", &Value::Null).await.problem(403, "scope-missing");
    let tokens = call(&app, MANAGER, Method::GET, "/tokens", &Value::Null).await;
    assert!(!tokens.text().contains(secret), "{tokens:?}");
    let names: Vec<String> = tokens.json()["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["", "manager job", "nightly"]);

    app.clock.advance(Duration::from_secs(61));
    let expired = call(&app, secret, Method::GET, "/message_templates", &Value::Null).await;
    expired.problem(401, "token-expired");
    let tokens = call(&app, MANAGER, Method::GET, "/tokens", &Value::Null).await.json();
    assert_eq!(tokens["data"].as_array().unwrap().len(), 2, "only active tokens are listed");
}

#[tokio::test]
async fn a_token_creates_none_that_permits_more_or_lives_longer() {
    let app = started().await;
    let wide = json!({"name": "a", "scopes": ["read", "write", "review"]});
    let refused = call(&app, MANAGER, Method::POST, "/tokens", &wide).await;
    refused.problem(403, "token-exceeds-caller");
    assert!(refused.text().contains("`write,review`"), "{refused:?}");

    add(&app, "temporary", "credentials", Some(Duration::from_secs(100))).await;
    let unlimited = json!({"name": "b", "scopes": ["credentials"]});
    let token = created(&app, "temporary", unlimited).await;
    assert_eq!(token["expires_at"], "2026-09-21T14:15:00.000Z", "when its creator expires");
    let longer = json!({"name": "c", "scopes": ["credentials"], "expires_in": 101});
    let refused = call(&app, "temporary", Method::POST, "/tokens", &longer).await;
    refused.problem(403, "token-exceeds-caller");
    let account = app.store.accounts().await.unwrap()[0].id;
    let names = app.store.credentials(account).await.unwrap().into_iter().map(|it| it.name);
    let names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
    assert_eq!(names, ["manager job", "temporary job", "b"], "a refusal creates nothing");
}

#[tokio::test]
async fn the_scopes_over_credentials_are_not_granted_by_default() {
    let app = started().await;
    for path in ["/tokens", "/audit"] {
        let refused = app.base(Method::GET, path, &Value::Null).await;
        refused.problem(403, "scope-missing");
    }
}

#[tokio::test]
async fn an_invalid_document_lists_every_violation() {
    let app = started().await;
    let body = json!({"name": "", "scopes": [], "expires_at": "2020-01-01T00:00:00Z"});
    let response = call(&app, MANAGER, Method::POST, "/tokens", &body).await;
    let problem = response.problem(422, "invalid-token-document");
    let rules: Vec<&str> = problem["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["empty", "token-scopes", "token-expiry"]);
}

#[tokio::test]
async fn a_name_that_looks_like_a_built_in_author_is_refused() {
    let app = started().await;
    for name in ["operator", "Provider", "SYSTEM\u{200b}", "\u{ff53}ystem", "Ada\u{202e}"] {
        let body = json!({"name": name, "scopes": ["read"]});
        let response = call(&app, MANAGER, Method::POST, "/tokens", &body).await;
        let problem = response.problem(422, "invalid-token-document");
        assert_eq!(problem["violations"][0]["rule"], "token-name", "{name:?}");
        assert_eq!(problem["violations"][0]["pointer"], "/name", "{name:?}");
    }
}

#[tokio::test]
async fn a_token_revokes_others_of_its_account_and_itself() {
    let app = started().await;
    app.account("stranger", &["222"], "strangers-key", "strangers-token").await;
    let accounts = app.store.accounts().await.unwrap();
    let theirs = app.store.credentials(accounts[1].id).await.unwrap();
    let mine = app.store.credentials(accounts[0].id).await.unwrap();
    let key = mine.iter().find(|it| it.kind == CredentialKind::Key).unwrap().id;
    for unknown in [theirs[0].id, theirs[1].id, key, CredentialId(999)] {
        let refused =
            call(&app, MANAGER, Method::DELETE, &format!("/tokens/{unknown}"), &Value::Null).await;
        refused.problem(404, "credential-unknown");
    }
    let refused = call(&app, MANAGER, Method::DELETE, "/tokens/x", &Value::Null).await;
    refused.problem(404, "credential-unknown");
    assert_eq!(app.store.credentials(accounts[1].id).await.unwrap(), theirs);

    let token = created(&app, MANAGER, json!({"name": "a", "scopes": ["read"]})).await;
    let path = format!("/tokens/{}", token["id"].as_str().unwrap());
    for _ in 0..2 {
        let revoked = call(&app, MANAGER, Method::DELETE, &path, &Value::Null).await;
        assert_eq!(revoked.status, 204, "{revoked:?}");
    }
    let own = mine.iter().find(|it| it.name == "manager job").unwrap().id;
    let revoked =
        call(&app, MANAGER, Method::DELETE, &format!("/tokens/{own}"), &Value::Null).await;
    assert_eq!(revoked.status, 204, "{revoked:?}");
    app.clock.advance(Duration::from_secs(2));
    let refused = call(&app, MANAGER, Method::GET, "/tokens", &Value::Null).await;
    refused.problem(401, "token-revoked");
}

#[tokio::test]
async fn an_account_has_at_most_a_hundred_active_tokens() {
    let app = started().await;
    // The account has its first token and the manager's.
    for number in 2..100 {
        add(&app, &format!("token-{number}"), "read", None).await;
    }
    let body = json!({"name": "beyond", "scopes": ["read"]});
    let refused = call(&app, MANAGER, Method::POST, "/tokens", &body).await;
    refused.problem(409, "too-many-tokens");
}

#[tokio::test]
async fn the_audit_feed_has_the_changes_of_the_own_account_page_by_page() {
    let app = started().await;
    app.account("stranger", &["222"], "strangers-key", "strangers-token").await;
    let token = created(&app, MANAGER, json!({"name": "nightly", "scopes": ["read"]})).await;
    let mut entries: Vec<Value> = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = call(&app, MANAGER, Method::GET, &format!("/audit{query}"), &Value::Null).await;
        assert_eq!(page.status, 200, "{page:?}");
        assert!(!page.text().contains("222") && !page.text().contains("gt_"), "{page:?}");
        let page = page.json();
        entries.extend(page["data"].as_array().unwrap().iter().cloned());
        match page["paging"]["next"].as_str() {
            Some(next) => query = next.to_owned(),
            None => break,
        }
    }
    let types: Vec<&str> = entries.iter().map(|it| it["type"].as_str().unwrap()).collect();
    let expected = [
        "account.created",
        "credential.created",
        "credential.created",
        "credential.created",
        // The first request of an account that accepts any number claims it.
        "phone.added",
        "credential.created",
    ];
    assert_eq!(types, expected);
    let last = entries.last().unwrap();
    assert_eq!(last["subject"], token["id"]);
    assert_eq!(last["actor_name"], "manager job");
    assert_eq!(last["details"]["name"], "nightly");
    for query in ["?after=x", "?limit=0", "?wait=1", "?after=latest"] {
        let path = format!("/audit{query}");
        let refused = call(&app, MANAGER, Method::GET, &path, &Value::Null).await;
        refused.problem(400, "bad-request");
    }
}

#[tokio::test]
async fn the_last_use_of_credentials_is_written_in_the_background() {
    let app = started().await;
    let account = app.store.accounts().await.unwrap()[0].id;
    let used = async || {
        let all = app.store.credentials(account).await.unwrap();
        all.into_iter().map(|it| it.last_used_at.map(|at| at.to_string())).collect::<Vec<_>>()
    };
    app.create_named("first").await;
    assert_eq!(used().await, [None, None, None], "a request writes nothing");
    workers::record_credential_use(&app.app).await;
    let first = Some("2026-09-21T14:13:20Z".to_owned());
    assert_eq!(used().await, [first.clone(), first.clone(), None], "the key and the token");
    app.clock.advance(Duration::from_secs(90));
    let refused = call(&app, "unknown", Method::GET, "/events", &Value::Null).await;
    refused.problem(401, "token-unknown");
    let tokens = call(&app, MANAGER, Method::GET, "/tokens", &Value::Null).await.json();
    assert_eq!(tokens["data"][0]["last_used_at"], "2026-09-21T14:13:20.000Z");
    workers::record_credential_use(&app.app).await;
    let second = Some("2026-09-21T14:14:50Z".to_owned());
    assert_eq!(used().await, [second.clone(), first, second]);
}

#[tokio::test]
async fn a_use_that_could_not_be_written_is_written_next_time() {
    use galley_store::testing::Fault;
    let (app, faults) = super::failures::start(Limits::default()).await;
    let account = app.store.accounts().await.unwrap()[0].id;
    app.create_named("first").await;
    faults.set("record_credential_use", Fault::Fails(|| galley_store::StoreError::Busy));
    workers::record_credential_use(&app.app).await;
    faults.clear();
    workers::record_credential_use(&app.app).await;
    let used = app.store.credentials(account).await.unwrap();
    assert!(used.iter().all(|it| it.last_used_at.is_some()), "{used:?}");
}

#[tokio::test]
async fn events_and_versions_show_the_name_of_the_token() {
    let app = started().await;
    add(&app, "importer", "read,write", None).await;
    let document = super::app::hello("named");
    let response = call(&app, "importer", Method::POST, "/message_templates", &document).await;
    assert_eq!(response.status, 201, "{response:?}");
    let id = response.json()["id"].as_str().unwrap().to_owned();
    let events = app.base(Method::GET, "/events", &Value::Null).await.json();
    assert_eq!(events["data"][0]["actor_name"], "importer job");
    let versions = app.call(Method::GET, &format!("/{id}/versions"), &Value::Null).await.json();
    assert_eq!(versions["data"][0]["created_by_name"], "importer job");
}
