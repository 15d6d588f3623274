//! The console: sessions, the protection of their cookie, and the same calls as API v1.0.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{Method, Request},
};
use galley_domain::{account::Scopes, emulator::EmulatorKind, template::Review};
use galley_server::{Clock as _, ConsoleAddress, Limits, workers};
use galley_store::{AccountQuotas, Author, NewConsoleLink, SecretHash, Store, testing::Faults};
use serde_json::{Value, json};

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, request};
use crate::harness::{TestAccount, TestResponse, TestService};

const ORIGIN: &str = "https://galley.test";

/// A request of the console's own page.
pub(super) fn own(method: Method, path: &str, cookie: &str, body: &Value) -> Request<Body> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("sec-fetch-site", "same-origin")
        .header("content-type", "application/json")
        .header("cookie", cookie);
    request.body(body.into()).unwrap()
}

pub(super) async fn call(
    app: &TestApp,
    method: Method,
    path: &str,
    cookie: &str,
    body: &Value,
) -> TestResponse {
    app.send(own(method, path, cookie, body)).await
}

pub(super) async fn sign_in(app: &TestApp, document: &Value) -> TestResponse {
    call(app, Method::POST, "/console/session", "", document).await
}

/// The cookie that a response sets, as the browser sends it back.
pub(super) fn cookie_of(response: &TestResponse) -> String {
    assert_eq!(response.status, 204, "{response:?}");
    let set = response.header("set-cookie").unwrap();
    set.split(';').next().unwrap().to_owned()
}

/// The cookie of a session of the first account, which has claimed its phone number before.
pub(super) async fn signed_in(app: &TestApp) -> String {
    let (account, by) =
        (app.store.accounts().await.unwrap()[0].id, Author::operator(app.clock.now()));
    app.store.claim_phone(account, PHONE, None, by).await.unwrap();
    cookie_of(&sign_in(app, &json!({"token": TOKEN})).await)
}

pub(super) async fn session(app: &TestApp, cookie: &str) -> TestResponse {
    call(app, Method::GET, "/console/session", cookie, &Value::Null).await
}

pub(super) fn templates(rest: &str) -> String {
    format!("/console/api/{PHONE}/message_templates{rest}")
}

/// Creates a link to the first account, as `galley console` does.
pub(super) async fn link(app: &TestApp, secret: &str, scopes: &str) {
    let account = app.store.accounts().await.unwrap()[0].id;
    let scopes = Scopes::parse(scopes).unwrap();
    let name = "Mira".to_owned();
    let new = NewConsoleLink { account, hash: SecretHash::of(secret), scopes, name };
    let by = Author::operator(app.clock.now());
    assert!(app.store.create_console_link(new, by).await.unwrap());
}

#[tokio::test]
async fn a_token_signs_in_and_the_session_tells_who_it_is() {
    let app = TestApp::start().await;
    let response = sign_in(&app, &json!({"token": TOKEN})).await;
    let set = response.header("set-cookie").unwrap().to_owned();
    assert!(set.starts_with("__Host-galley_console="), "{set}");
    assert!(set.ends_with("; Path=/; Secure; HttpOnly; SameSite=Strict"), "{set}");
    let cookie = cookie_of(&response);
    // A use of the number by a program claims it.
    app.call(Method::GET, "", &Value::Null).await;
    let shown = session(&app, &cookie).await;
    assert_eq!(shown.status, 200, "{shown:?}");
    let mut shown = shown.json();
    assert!(shown["account"]["id"].take().is_string());
    assert!(shown["token"]["id"].take().is_string());
    assert_eq!(
        shown,
        json!({
            "account": {
                "id": null, "name": "first", "rulebook": "v1", "review": "auto",
                "four_eyes": false,
            },
            "token": {
                "id": null, "name": "", "scopes": ["read", "write", "review", "webhooks"],
            },
            "phone_number_ids": [PHONE],
            "idle_expires_at": "2026-09-21T16:13:20.000Z",
            "expires_at": "2026-09-22T02:13:20.000Z",
        })
    );
    let ended = call(&app, Method::DELETE, "/console/session", &cookie, &Value::Null).await;
    assert_eq!(ended.status, 204);
    assert!(ended.header("set-cookie").unwrap().ends_with("; Max-Age=0"), "{ended:?}");
    session(&app, &cookie).await.problem(401, "session-ended");
}

#[tokio::test]
async fn the_session_of_an_emulator_account_says_so() {
    for (faithful, expected) in [(false, "standard"), (true, "faithful")] {
        let service = TestService::builder().start();
        let emulator = Some(EmulatorKind { faithful });
        let account = TestAccount { emulator, token: TOKEN, ..TestAccount::emulator("sandbox") };
        service.account(account).await;
        let credentials = json!({"token": TOKEN});
        let signed_in = own(Method::POST, "/console/session", "", &credentials);
        let cookie = cookie_of(&service.send(signed_in).await);
        let show = own(Method::GET, "/console/session", &cookie, &Value::Null);
        let shown = service.send(show).await.json();
        assert_eq!(shown["account"]["emulator"], expected);
        assert_eq!(shown["account"]["review"], "scripted");
    }
}

#[tokio::test]
async fn without_a_cookie_no_session_is_shown_and_none_has_ended() {
    let app = TestApp::start().await;
    for cookie in ["", "other=1"] {
        let response = session(&app, cookie).await;
        assert_eq!((response.status.as_u16(), response.bytes.len()), (204, 0), "{response:?}");
    }
    session(&app, "__Host-galley_console=unknown").await.problem(401, "session-ended");
}

#[tokio::test]
async fn wrong_credentials_do_not_sign_in() {
    let app = TestApp::start().await;
    sign_in(&app, &json!({"token": "wrong"})).await.problem(401, "token-unknown");
    sign_in(&app, &json!({"link": "wrong"})).await.problem(401, "invalid-link");
    for wrong in [json!({}), json!({"token": TOKEN, "link": "x"}), json!({"token": 1}), json!([])] {
        let refused = sign_in(&app, &wrong).await;
        refused.problem(400, "bad-request");
        assert!(!refused.text().contains(TOKEN), "{refused:?}");
    }
}

#[tokio::test]
async fn failed_sign_ins_are_slowed_down_like_other_guesses() {
    let limits = Limits { failed_credentials: 1, ..Limits::default() };
    let app = TestApp::start_with(limits).await;
    // From here on, time passes only when all wait.
    tokio::time::pause();
    for _ in 0..5 {
        sign_in(&app, &json!({"token": "wrong"})).await.problem(401, "token-unknown");
        sign_in(&app, &json!({"link": "wrong"})).await.problem(401, "invalid-link");
    }
    for document in [json!({"token": "wrong"}), json!({"link": "wrong"})] {
        sign_in(&app, &document).await.problem(429, "too-many-failures");
    }
}

#[tokio::test]
async fn a_link_signs_in_once_with_its_scopes() {
    let app = TestApp::start().await;
    link(&app, "gl_secret", "read,review").await;
    let cookie = cookie_of(&sign_in(&app, &json!({"link": "gl_secret"})).await);
    sign_in(&app, &json!({"link": "gl_secret"})).await.problem(401, "invalid-link");
    let shown = session(&app, &cookie).await.json();
    assert_eq!(shown["token"]["scopes"], json!(["read", "review"]));
    assert_eq!(shown["token"]["name"], "Mira");
    assert_eq!(shown["token"]["expires_at"], shown["expires_at"]);
    let refused = call(&app, Method::POST, &templates(""), &cookie, &hello("a")).await;
    refused.problem(403, "scope-missing");
    link(&app, "gl_late", "read").await;
    app.clock.advance(Duration::from_mins(1));
    sign_in(&app, &json!({"link": "gl_late"})).await.problem(401, "invalid-link");
    let account = app.store.accounts().await.unwrap()[0].id;
    let entries = app.store.audit_entries(Some(account), 0, 100).await.unwrap();
    let kinds: Vec<&str> = entries.iter().rev().take(3).map(|it| &*it.kind).collect();
    assert_eq!(kinds, ["console.link_created", "credential.created", "console.link_created"]);
}

#[tokio::test]
async fn the_cookie_stands_for_key_and_token_in_the_console_only() {
    let app = TestApp::start().await;
    let cookie = signed_in(&app).await;
    let created = call(&app, Method::POST, &templates(""), &cookie, &hello("a")).await;
    assert_eq!(created.status, 201, "{created:?}");
    let id = created.json()["id"].as_str().unwrap().to_owned();
    let shown = call(&app, Method::GET, &templates(&format!("/{id}")), &cookie, &Value::Null).await;
    assert_eq!(shown.json(), app.show(&id).await.json());
    let path = format!("/api/v1.0/{PHONE}/{KEY}/message_templates");
    let other = call(&app, Method::GET, &path, &cookie, &Value::Null).await;
    other.problem(401, "token-missing");
    let mut bearer = request(Method::GET, &templates(""), TOKEN, "");
    bearer.headers_mut().insert("sec-fetch-site", "same-origin".parse().unwrap());
    let bearer = app.send(bearer).await;
    bearer.problem(401, "session-ended");
    let none = call(&app, Method::GET, &templates(""), "", &Value::Null).await;
    none.problem(401, "session-ended");
}

#[tokio::test]
async fn a_dash_is_no_phone_number_in_particular() {
    let app = TestApp::start().await;
    app.account("second", &["15550002222"], "key-2", "token-2").await;
    let cookie = cookie_of(&sign_in(&app, &json!({"token": "token-2"})).await);
    let path = "/console/api/-/message_templates";
    let created = call(&app, Method::POST, path, &cookie, &hello("a")).await;
    assert_eq!(created.status, 201, "{created:?}");
    let listed = call(&app, Method::GET, path, &cookie, &Value::Null).await.json();
    assert_eq!(listed["data"][0]["name"], "a");
    assert_eq!(listed["data"][0].get("phone_number_id"), None);
    let foreign = call(&app, Method::GET, &templates(""), &cookie, &Value::Null).await;
    foreign.problem(404, "phone-unknown");
}

#[tokio::test]
async fn a_request_of_another_site_changes_nothing() {
    let app = TestApp::start().await;
    let cookie = signed_in(&app).await;
    let mut foreign = own(Method::POST, &templates(""), &cookie, &hello("a"));
    foreign.headers_mut().insert("sec-fetch-site", "cross-site".parse().unwrap());
    app.send(foreign).await.problem(403, "cross-site");
    for (method, path) in [(Method::POST, "/console/session"), (Method::DELETE, "/console/session")]
    {
        let mut foreign = own(method, path, &cookie, &json!({"token": TOKEN}));
        foreign.headers_mut().insert("sec-fetch-site", "same-site".parse().unwrap());
        let refused = app.send(foreign).await;
        refused.problem(403, "cross-site");
        assert_eq!(refused.header("set-cookie"), None);
    }
    let listed = call(&app, Method::GET, &templates(""), &cookie, &Value::Null).await.json();
    assert_eq!(listed["data"], json!([]));
    // A browser without that header sends `Origin`.
    let mut plain = own(Method::POST, &templates(""), &cookie, &hello("a"));
    plain.headers_mut().remove("sec-fetch-site");
    app.send(plain).await.problem(403, "cross-site");
    let mut plain = own(Method::POST, &templates(""), &cookie, &hello("a"));
    plain.headers_mut().remove("sec-fetch-site");
    plain.headers_mut().insert("origin", ORIGIN.parse().unwrap());
    assert_eq!(app.send(plain).await.status, 201);
}

#[tokio::test]
async fn a_session_ends_with_its_token_and_with_its_account() {
    let app = TestApp::start().await;
    let cookie = signed_in(&app).await;
    let account = app.store.accounts().await.unwrap()[0].id;
    let by = Author::operator(app.clock.now());
    app.store.set_account_disabled(account, true, by).await.unwrap();
    app.clock.advance(Duration::from_secs(5));
    session(&app, &cookie).await.problem(401, "session-ended");
    app.store.set_account_disabled(account, false, by).await.unwrap();
    app.clock.advance(Duration::from_secs(5));
    assert_eq!(session(&app, &cookie).await.status, 200);
    let token = app.store.active_tokens(account, app.clock.now()).await.unwrap()[0].id;
    app.store.revoke_credential(token, by).await.unwrap();
    app.clock.advance(Duration::from_secs(5));
    let listed = call(&app, Method::GET, &templates(""), &cookie, &Value::Null).await;
    listed.problem(401, "session-ended");
    session(&app, &cookie).await.problem(401, "session-ended");
}

#[tokio::test]
async fn a_session_ends_when_it_is_idle_and_lasts_while_it_is_used() {
    let app = TestApp::start().await;
    let (used, idle) = (signed_in(&app).await, signed_in(&app).await);
    for _ in 0..11 {
        app.clock.advance(Duration::from_hours(1));
        let listed = call(&app, Method::GET, &templates(""), &used, &Value::Null).await;
        assert_eq!(listed.status, 200, "{listed:?}");
        workers::record_credential_use(&app.app).await;
    }
    session(&app, &idle).await.problem(401, "session-ended");
    app.clock.advance(Duration::from_hours(1));
    session(&app, &used).await.problem(401, "session-ended");
}

#[tokio::test]
async fn a_use_just_before_the_idle_end_counts_although_it_is_not_recorded_yet() {
    let app = TestApp::start().await;
    let cookie = signed_in(&app).await;
    for wait in [Duration::from_secs(2 * 3_600 - 30), Duration::from_secs(40)] {
        app.clock.advance(wait);
        let listed = call(&app, Method::GET, &templates(""), &cookie, &Value::Null).await;
        assert_eq!(listed.status, 200, "{listed:?}");
    }
}

#[tokio::test]
async fn logs_name_the_route_and_the_token_and_no_secret() {
    let app = TestApp::start().await;
    let cookie = signed_in(&app).await;
    call(&app, Method::GET, &templates("?limit=1"), &cookie, &Value::Null).await;
    let mut foreign = own(Method::POST, &templates(""), &cookie, &hello("a"));
    foreign.headers_mut().insert("sec-fetch-site", "cross-site".parse().unwrap());
    app.send(foreign).await;
    let log = app.into_log();
    let (_, secret) = cookie.split_once('=').unwrap();
    for secret in [secret, TOKEN, PHONE] {
        assert!(!log.contains(secret), "{log}");
    }
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let routes: Vec<&str> = lines.iter().map(|it| it["route"].as_str().unwrap()).collect();
    let list = "/console/api/{phone_number_id}/message_templates";
    assert_eq!(routes, ["/console/session", list, list]);
}

#[tokio::test]
async fn signing_in_again_ends_the_former_session_of_the_browser() {
    let app = TestApp::start().await;
    let (former, elsewhere) = (signed_in(&app).await, signed_in(&app).await);
    let document = json!({"token": TOKEN});
    let again = call(&app, Method::POST, "/console/session", &former, &document).await;
    let cookie = cookie_of(&again);
    assert_ne!(cookie, former);
    session(&app, &former).await.problem(401, "session-ended");
    for cookie in [&cookie, &elsewhere] {
        assert_eq!(session(&app, cookie).await.status, 200);
        // A sign-in that fails leaves the session alone.
        let wrong = json!({"token": "wrong"});
        let failed = call(&app, Method::POST, "/console/session", cookie, &wrong).await;
        failed.problem(401, "token-unknown");
        assert_eq!(session(&app, cookie).await.status, 200);
    }
}

#[tokio::test]
async fn a_cookie_without_a_session_causes_no_write() {
    let faults = Arc::new(Faults::default());
    let counted = Arc::clone(&faults);
    let wrap = |store: Arc<Store>| -> Arc<Store> { Arc::new(store.with_faults(counted)) };
    let app = TestApp::start_on(wrap, Limits::default()).await;
    let unknown = "__Host-galley_console=unknown";
    let ended = call(&app, Method::DELETE, "/console/session", unknown, &Value::Null).await;
    assert_eq!(ended.status, 204);
    assert!(ended.header("set-cookie").unwrap().ends_with("; Max-Age=0"), "{ended:?}");
    assert_eq!(faults.calls("end_session"), 0);
    let cookie = signed_in(&app).await;
    call(&app, Method::DELETE, "/console/session", &cookie, &Value::Null).await;
    assert_eq!(faults.calls("end_session"), 1);
}

#[tokio::test]
async fn asking_who_is_signed_in_counts_towards_the_limits_of_the_account() {
    let app = TestApp::start().await;
    let cookie = signed_in(&app).await;
    let account = app.store.accounts().await.unwrap()[0].id;
    let quotas = AccountQuotas { requests_per_second: Some(1), ..AccountQuotas::default() };
    let by = Author::operator(app.clock.now());
    app.store.set_account_quotas(account, quotas, by).await.unwrap();
    app.clock.advance(Duration::from_secs(5));
    let mut responses = Vec::new();
    for _ in 0..3 {
        responses.push(session(&app, &cookie).await.status.as_u16());
    }
    assert!(responses.contains(&429), "{responses:?}");
}

#[tokio::test]
async fn the_console_has_the_calls_of_the_api_and_no_others() {
    let app = TestApp::start().await;
    let cookie = signed_in(&app).await;
    for path in [
        "/console/api",
        "/console/api/-",
        "/console/api/-/",
        "/console/api/-/healthz",
        "/console/api/-/key/message_templates",
        "/console/api/-/message_templates/1/unknown",
        "/console/api/%2e%2e/message_templates",
        "/console/metrics",
        "/console/api/v1.0/-/message_templates",
    ] {
        let response = call(&app, Method::GET, path, &cookie, &Value::Null).await;
        assert_eq!(response.status, 404, "{path}: {response:?}");
    }
    for (method, path) in [
        (Method::OPTIONS, templates("")),
        (Method::TRACE, templates("")),
        (Method::PUT, "/console/session".to_owned()),
        (Method::OPTIONS, "/console/session".to_owned()),
        (Method::POST, "/console".to_owned()),
    ] {
        let response = call(&app, method.clone(), &path, &cookie, &Value::Null).await;
        assert_eq!(response.status, 405, "{method} {path}: {response:?}");
    }
    let head = call(&app, Method::HEAD, &templates(""), &cookie, &Value::Null).await;
    assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0), "{head:?}");
    let large = json!({"token": "x".repeat(5_000)});
    sign_in(&app, &large).await.problem(413, "too-large");
}

#[tokio::test]
async fn a_console_that_is_switched_off_does_not_exist() {
    let app = TestApp::start().await;
    let galley = app.galley.clone().with_console(ConsoleAddress::None);
    for path in ["/console", "/console/session", &templates(""), "/console/new"] {
        let request = own(Method::GET, path, "", &Value::Null);
        let response = TestResponse::read(galley.handle(request).await).await;
        response.problem(404, "not-found");
    }
    let index = own(Method::GET, "/", "", &Value::Null);
    let index = TestResponse::read(galley.handle(index).await).await;
    assert!(!index.text().contains("console"), "{index:?}");
}

#[tokio::test]
async fn without_tls_the_cookie_is_bound_to_the_path_of_the_console() {
    let test = TestService::builder().public_url("http://127.0.0.1:8080");
    let app = TestApp::start_built(test).await;
    app.account_with("second", &[], "key-2", "token-2", Review::Manual).await;
    let set = sign_in(&app, &json!({"token": "token-2"})).await;
    let header = set.header("set-cookie").unwrap();
    assert!(header.starts_with("galley_console="), "{header}");
    assert!(header.ends_with("; Path=/console; HttpOnly; SameSite=Strict"), "{header}");
    let shown = session(&app, &cookie_of(&set)).await.json();
    assert_eq!(
        (&shown["account"]["name"], &shown["account"]["review"]),
        (&json!("second"), &json!("manual"))
    );
}
