//! Webhooks of the provider: what is confirmed, what is refused and what is stored.

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use galley_domain::{id::AccountId, rulebook::WHATSAPP, template::Status, upstream::RemoteStatus};
use galley_server::{
    Clock as _,
    delivery::{Keyring, Secret, sign_meta},
    workers::sample_statistics,
};
use galley_store::{Author, ConnectOutcome, ConnectionChange, NewConnection, SecretHash};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::connected::Connected;
use crate::harness::{TestAccount, TestResponse};

const HOOK: &str = "gh_canary-4d7Gk1Zt";
const APP_SECRET: &str = "canary-app-secret-c7Xk20vQ";

/// The longest body.
const MAX_BYTES: usize = 3 * 1_024 * 1_024;

/// A connection whose webhooks are signed, with one template.
async fn connected() -> (Connected, String) {
    let connected = Connected::start().await;
    let id = connected.emulator().create_named("order_pending_10m").await;
    connected.step().await;
    let keyring = Keyring::new(Some("a key that is only for tests")).unwrap();
    let secret = keyring.seal(connected.account.get(), APP_SECRET, [2; 24]);
    change(&connected, ConnectionChange::AppSecret(secret)).await;
    change(&connected, ConnectionChange::Hook(SecretHash::of(HOOK))).await;
    (connected, id)
}

async fn change(connected: &Connected, change: ConnectionChange) {
    let by = Author::operator(connected.service.clock.now());
    let store = &connected.service.store;
    assert!(store.change_connection(connected.account, change, by).await.unwrap());
}

fn signature(secret: &str, body: &[u8]) -> String {
    sign_meta(&Secret::from_app_secret(secret).unwrap(), body)
}

/// The body of a webhook about a template.
fn hook(connected: &Connected, id: &str) -> String {
    json!({"object": "whatsapp_business_account", "entry": [{
        "id": connected.emulator().account.to_string(), "time": 1, "changes": [{
            "field": "message_template_status_update",
            "value": {
                "event": "REJECTED", "message_template_id": id.parse::<u64>().unwrap(),
                "message_template_name": "order_pending_10m", "message_template_language": "en-US",
                "reason": "NONE",
            },
        }],
    }]})
    .to_string()
}

/// Sends a webhook with this signature to the address.
async fn post(
    connected: &Connected,
    signature: Option<&str>,
    body: impl Into<Body>,
) -> TestResponse {
    let mut request = Request::post(format!("/upstream/{HOOK}"));
    request = request.header(header::CONTENT_TYPE, "application/json");
    if let Some(signature) = signature {
        request = request.header("X-Hub-Signature-256", signature);
    }
    connected.service.send(request.body(body.into()).unwrap()).await
}

async fn get(connected: &Connected, path: &str) -> TestResponse {
    connected.service.send(Request::get(path).body(Body::empty()).unwrap()).await
}

/// Whether a template will be read.
async fn is_dirty(connected: &Connected) -> bool {
    let [mirrored] = &connected.mirrored().await[..] else { panic!("there is not one template") };
    mirrored.dirty_at.is_some()
}

#[tokio::test]
async fn the_address_is_confirmed_to_a_provider_that_knows_the_path() {
    let (connected, _) = connected().await;
    let query = |token: &str| {
        format!("?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token={token}")
    };
    let confirmed = get(&connected, &format!("/upstream/{HOOK}{}", query(HOOK))).await;
    assert_eq!((confirmed.status, confirmed.text()), (StatusCode::OK, "1158201444"));
    let content_type = confirmed.headers[header::CONTENT_TYPE].to_str().unwrap();
    assert!(content_type.starts_with("text/plain"), "{content_type}");
    for (path, status, expected) in [
        (format!("/upstream/{HOOK}{}", query("another")), 403, "hook-not-verified"),
        (format!("/upstream/{HOOK}"), 403, "hook-not-verified"),
        (format!("/upstream/another{}", query("another")), 404, "hook-unknown"),
        (format!("/upstream/another{}", query(HOOK)), 404, "hook-unknown"),
    ] {
        get(&connected, &path).await.problem(status, expected);
    }
}

#[tokio::test]
async fn a_signed_hint_marks_a_template_and_the_next_step_reads_it() {
    let (connected, id) = connected().await;
    connected.emulator().advance("600s").await;
    assert!(!connected.has_work().await && !is_dirty(&connected).await);
    let body = hook(&connected, &id);
    let sent = post(&connected, Some(&signature(APP_SECRET, body.as_bytes())), body).await;
    assert_eq!((sent.status, sent.json()), (StatusCode::OK, json!({"success": true})));
    assert!(connected.has_work().await && is_dirty(&connected).await);
    connected.step().await;
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!(mirrored.status, RemoteStatus::Approved, "the read decides, not the hint");
    assert_eq!(stored.state.status(), Status::Approved);
    assert!(!connected.has_work().await);
}

#[tokio::test]
async fn a_webhook_without_the_right_signature_stores_nothing() {
    let (connected, id) = connected().await;
    let body = hook(&connected, &id);
    let right = signature(APP_SECRET, body.as_bytes());
    let other = signature("another-app-secret", body.as_bytes());
    for wrong in [None, Some(""), Some("sha256="), Some(&*other), right.strip_prefix("sha256=")] {
        let refused = post(&connected, wrong, body.clone()).await;
        refused.problem(401, "hook-signature");
        assert_eq!(refused.header("www-authenticate"), None, "no token would help");
    }
    let changed = body.replace("REJECTED", "APPROVED");
    post(&connected, Some(&right), changed).await.problem(401, "hook-signature");
    post(&connected, Some(&right), "not JSON").await.problem(401, "hook-signature");
    assert!(!is_dirty(&connected).await && !connected.has_work().await);
    assert_eq!(connected.events().await, ["template.created"]);
    let malformed = signature(APP_SECRET, b"not JSON");
    post(&connected, Some(&malformed), "not JSON").await.problem(400, "malformed-json");
}

#[tokio::test]
async fn an_unknown_path_and_a_connection_without_an_app_secret_are_refused() {
    let (connected, id) = connected().await;
    let body = hook(&connected, &id);
    let right = signature(APP_SECRET, body.as_bytes());
    let request = Request::post("/upstream/another").header("x-hub-signature-256", &right);
    let request = request.body(Body::from(body.clone())).unwrap();
    connected.service.send(request).await.problem(404, "hook-unknown");
    change(&connected, ConnectionChange::AppSecret(None)).await;
    let refused = post(&connected, Some(&right), body).await;
    let problem = refused.problem(403, "hook-secret-missing");
    assert!(problem["detail"].as_str().unwrap().contains("galley upstream app-secret"));
    assert!(!is_dirty(&connected).await);
}

#[tokio::test]
async fn a_body_of_more_than_3_mib_is_refused() {
    let (connected, id) = connected().await;
    let mut body = hook(&connected, &id).into_bytes();
    body.resize(MAX_BYTES, b' ');
    let right = signature(APP_SECRET, &body);
    assert_eq!(post(&connected, Some(&right), body.clone()).await.status, StatusCode::OK);
    assert!(is_dirty(&connected).await, "the longest body is read");
    connected.step().await;
    body.push(b' ');
    let right = signature(APP_SECRET, &body);
    post(&connected, Some(&right), body).await.problem(413, "too-large");
    let declared = Request::post(format!("/upstream/{HOOK}"))
        .header("x-hub-signature-256", &right)
        .header(header::CONTENT_LENGTH, MAX_BYTES + 1);
    let declared = declared.body(Body::from("{")).unwrap();
    connected.service.send(declared).await.problem(413, "too-large");
    assert!(!is_dirty(&connected).await);
}

#[tokio::test]
async fn webhooks_about_something_else_are_accepted_and_change_nothing() {
    let (connected, id) = connected().await;
    let message = json!([{"field": "messages", "value": {"messages": [{"from": "15550001111"}]}}]);
    let waba = connected.emulator().account.to_string();
    let other_account = hook(&connected, &id).replace(&waba, "4711");
    for body in [
        json!({"object": "page", "entry": []}).to_string(),
        json!({"object": "whatsapp_business_account", "entry": [{"id": waba, "changes": message}]})
            .to_string(),
        other_account,
    ] {
        let sent = post(&connected, Some(&signature(APP_SECRET, body.as_bytes())), body).await;
        assert_eq!(sent.status, StatusCode::OK, "a provider would send it again and again");
    }
    assert!(!is_dirty(&connected).await && !connected.has_work().await);
}

/// Connects another account of the service.
async fn other(
    connected: &Connected,
    (name, waba): (&str, &str),
    base_url: &str,
    app_secret: Option<&str>,
) -> AccountId {
    let service = &connected.service;
    let new = TestAccount { rulebook: &WHATSAPP, ..TestAccount::named(name) };
    let account = service.account(TestAccount { key: name, token: name, ..new }).await;
    let keyring = Keyring::new(Some("a key that is only for tests")).unwrap();
    let seal = |secret| keyring.seal(account.get(), secret, [3; 24]).unwrap();
    let new = NewConnection {
        account,
        base_url: base_url.to_owned(),
        waba: waba.to_owned(),
        app_id: None,
        token: seal("token"),
        token_expires_at: None,
        app_secret: app_secret.map(seal),
        hook_hash: SecretHash::of(name),
        by: Author::operator(service.clock.now()),
    };
    let outcome = service.store.connect_upstream(new).await.unwrap();
    assert_eq!(outcome, ConnectOutcome::Connected);
    account
}

#[tokio::test]
async fn a_webhook_is_stored_for_every_connection_with_the_same_app() {
    let (connected, id) = connected().await;
    let waba = connected.emulator().account.to_string();
    let (same, newer) = ("https://provider.test/v23.0", "https://provider.test/v24.0");
    let elsewhere = "https://elsewhere.test/v23.0";
    let mut expected = Vec::new();
    for (name, waba, base_url, secret, is_told) in [
        ("second", "4711", same, Some(APP_SECRET), true),
        ("third", "4712", newer, Some(APP_SECRET), true),
        ("twin", &*waba, same, Some(APP_SECRET), true),
        ("foreign", "4711", same, Some("another-app-secret"), false),
        ("foreign_twin", &waba, same, Some("another-app-secret"), false),
        ("unsigned", "4711", same, None, false),
        ("elsewhere", "4711", elsewhere, Some(APP_SECRET), false),
        ("unnamed", "4713", same, Some(APP_SECRET), false),
    ] {
        let account = other(&connected, (name, waba), base_url, secret).await;
        expected.push((name, account, is_told));
    }
    let mut body: Value = serde_json::from_str(&hook(&connected, &id)).unwrap();
    for waba in ["4711", "4712", "4799"] {
        let mut entry = body["entry"][0].clone();
        entry["id"] = json!(waba);
        body["entry"].as_array_mut().unwrap().push(entry);
    }
    let body = body.to_string();
    let is_told = async |account| {
        let connection = connected.service.store.connection(account).await.unwrap().unwrap();
        connection.sweep_wanted
    };
    let wrong = signature("another-app-secret", body.as_bytes());
    post(&connected, Some(&wrong), body.clone()).await.problem(401, "hook-signature");
    for (name, account, _) in &expected {
        assert!(!is_told(*account).await, "{name}: the secret of the path decides");
    }
    let right = signature(APP_SECRET, body.as_bytes());
    assert_eq!(post(&connected, Some(&right), body).await.status, StatusCode::OK);
    assert!(is_dirty(&connected).await);
    for (name, account, expected) in expected {
        assert_eq!(is_told(account).await, expected, "{name}");
    }
}

#[tokio::test]
async fn hints_are_stored_while_the_connection_is_paused_and_the_account_disabled() {
    let (connected, id) = connected().await;
    change(&connected, ConnectionChange::Paused).await;
    let by = Author::operator(connected.service.clock.now());
    let store = &connected.service.store;
    store.set_account_disabled(connected.account, true, by).await.unwrap();
    let body = hook(&connected, &id);
    let sent = post(&connected, Some(&signature(APP_SECRET, body.as_bytes())), body).await;
    assert_eq!(sent.status, StatusCode::OK);
    assert!(is_dirty(&connected).await && !connected.has_work().await);
    store.set_account_disabled(connected.account, false, by).await.unwrap();
    change(&connected, ConnectionChange::Resumed).await;
    assert!(connected.has_work().await);
}

#[tokio::test]
async fn neither_the_path_nor_the_app_secret_is_in_the_log_the_metrics_or_a_response() {
    let (connected, id) = connected().await;
    let body = hook(&connected, &id);
    let right = signature(APP_SECRET, body.as_bytes());
    let mut shown = String::new();
    for (signature, body) in [(Some(&*right), &*body), (Some(&*right), "{}"), (None, &*body)] {
        shown += post(&connected, signature, body.to_owned()).await.text();
    }
    for path in ["", "/", "/more", "?hub.mode=subscribe", "/../x"] {
        shown += get(&connected, &format!("/upstream/{HOOK}{path}")).await.text();
    }
    let deleted = Request::delete(format!("/upstream/{HOOK}")).body(Body::empty()).unwrap();
    shown += connected.service.send(deleted).await.text();
    sample_statistics(&connected.service.app).await;
    let metrics = get(&connected, "/metrics").await.text().to_owned();
    assert!(metrics.contains(r#"route="/upstream/{hook_token}""#), "{metrics}");
    assert!(metrics.contains("galley_upstream_connections{state=\"connected\"} 1\n"), "{metrics}");
    let log = connected.into_log();
    assert!(log.contains(r#""route":"/upstream/{hook_token}","status":401"#), "{log}");
    for text in [&shown, &metrics, &log] {
        assert!(!text.contains("canary"), "{text}");
    }
}

#[tokio::test]
async fn a_check_tells_about_the_token_and_records_its_expiry() {
    let (connected, _) = connected().await;
    let store = std::sync::Arc::clone(&connected.service.store);
    let expiry =
        async || store.connection(connected.account).await.unwrap().unwrap().token_expires_at;
    let expires_at = connected.service.clock.now() + SignedDuration::from_hours(24 * 60);
    let expires_at = Timestamp::from_second(expires_at.as_second()).unwrap();
    assert_eq!(expiry().await, None, "the token of the emulator does not expire");
    let second = expires_at.as_second();
    connected.rewrite(move |path, body: &mut Value| {
        if path.ends_with("/debug_token") {
            assert_eq!(body["data"]["is_valid"], true, "{body}");
            body["data"]["expires_at"] = json!(second);
        }
    });
    let session = connected.session().await;
    let checked = session.check().await.unwrap();
    let token = checked.token.unwrap();
    assert_eq!((checked.report.templates, token.expires_at), (Some(1), Some(expires_at)));
    assert!(token.scopes.contains(&"whatsapp_business_management".to_owned()), "{token:?}");
    assert_eq!(expiry().await, Some(expires_at));
    // A provider that does not tell changes nothing.
    connected.rewrite(|path, body: &mut Value| {
        if path.ends_with("/debug_token") {
            *body = json!({"error": {"code": 100, "message": "Unsupported"}});
        }
    });
    assert_eq!(session.check().await.unwrap().token, None);
    session.end().await.unwrap();
    assert_eq!(expiry().await, Some(expires_at));
    let connection = store.connection(connected.account).await.unwrap().unwrap();
    assert_eq!(connection.degraded, None);
}
