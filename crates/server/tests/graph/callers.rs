//! Authorisation as a matrix: every call with every kind of wrong token.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Method, Request},
};
use galley_domain::account::{Scope, Scopes};
use galley_server::{Clock as _, Limits};
use galley_store::{AccountQuotas, AddCredentialOutcome, Author, CredentialKind, NewCredential};
use serde_json::{Value, json};

use super::service::{OTHER, PUBLIC, STRANGER, Service, TOKEN, hello};
use crate::harness::{
    TestResponse,
    description::{GRAPH, operations},
};

/// Each call with the scope that it requires. `{waba}` is the id of the shop's account, `{id}` that
/// of its template.
const CALLS: &[(&str, &str, Scope)] = &[
    ("GET", "/v23.0/{waba}", Scope::Read),
    ("GET", "/v23.0/{id}", Scope::Read),
    ("GET", "/v23.0/{waba}/message_templates", Scope::Read),
    ("GET", "/v23.0/{waba}/message_templates/{id}", Scope::Read),
    ("POST", "/v23.0/{waba}/message_templates", Scope::Write),
    ("POST", "/v23.0/{waba}/message_templates/archive", Scope::Write),
    ("POST", "/v23.0/{waba}/message_templates/unarchive", Scope::Write),
    ("GET", "/v23.0/{waba}/message_template_previews?category=AUTHENTICATION", Scope::Read),
    ("GET", "/v23.0/{id}/compare?template_ids=1&start=1&end=2", Scope::Read),
    ("POST", "/v23.0/{id}/messages", Scope::Write),
    ("POST", "/v23.0/{waba}/upsert_message_templates", Scope::Write),
    ("POST", "/v23.0/{id}", Scope::Write),
    ("POST", "/v23.0/{waba}/uploads?file_length=3&file_type=image/png", Scope::Write),
    ("DELETE", "/v23.0/{id}", Scope::Write),
    ("DELETE", "/v23.0/{waba}/message_templates?hsm_id={id}", Scope::Write),
    ("POST", "/v23.0/{id}/unpause", Scope::Review),
    ("POST", "/v23.0/{waba}/subscribed_apps", Scope::Webhooks),
    ("GET", "/v23.0/{waba}/subscribed_apps", Scope::Webhooks),
    ("DELETE", "/v23.0/{waba}/subscribed_apps", Scope::Webhooks),
];

/// Whether only emulator accounts have the call. The shop is none.
fn is_of_emulators(pattern: &str) -> bool {
    pattern.ends_with("/messages") || pattern.contains("/compare?")
}

/// Asserts that the account has no such call, because it is not an emulator.
fn assert_not_an_emulator(response: &TestResponse) {
    let error = response.expect_error(404, 100, Some(33));
    assert_eq!(error["galley_problem"], "not-an-emulator");
}

#[test]
fn the_tested_calls_are_those_of_the_api_description() {
    let mut described = Vec::new();
    for operation in operations(&GRAPH) {
        if let Some(rest) = operation.route().strip_prefix("/{}/") {
            let security = &operation.description["security"];
            let scope = security[0]["accessToken"][0].as_str().unwrap();
            assert_eq!(security[1]["accessTokenInQuery"][0], scope, "{}", operation.name());
            described.push(format!("{} {rest} {scope}", operation.method));
        }
    }
    let mut called: Vec<String> = CALLS
        .iter()
        .map(|(method, path, scope)| {
            let path = path.split('?').next().unwrap().replace("/v23.0/", "");
            let (node, rest) = path.split_once('}').unwrap();
            assert!(["{waba", "{id"].contains(&node));
            format!("{method} {{}}{} {}", rest.replace("{id}", "{}"), scope.as_str())
        })
        .collect();
    described.sort();
    called.sort();
    // Uploads and templates are nodes of one route.
    described.dedup();
    called.dedup();
    assert_eq!(called, described);
}

async fn add(service: &Service, secret: &str, scopes: Scopes, expired: bool) {
    let now = service.clock.now();
    let new = NewCredential {
        scopes,
        expires_at: expired.then_some(now),
        ..NewCredential::unrestricted(CredentialKind::Token, secret)
    };
    let added =
        service.store.add_credential(service.shop, new, Author::operator(now)).await.unwrap();
    assert!(matches!(added, AddCredentialOutcome::Added(_)), "{added:?}");
}

#[tokio::test]
async fn every_call_rejects_callers_without_the_right_token() {
    for (method, pattern, scope) in CALLS {
        let service = Service::start().await;
        let id = service.create_named("hello", "en_US").await;
        let others = Scope::ALL.into_iter().filter(|it| it != scope).map(Scope::as_str);
        let others: Vec<&str> = others.collect();
        add(&service, "expired", Scopes::DEFAULT, true).await;
        add(&service, "without", Scopes::parse(&others.join(",")).unwrap(), false).await;
        add(&service, "with", Scopes::parse(scope.as_str()).unwrap(), false).await;
        let waba = service.shop.to_string();
        let path = pattern.replace("{waba}", &waba).replace("{id}", &id);
        let method: Method = method.parse().unwrap();
        let call =
            |token: &'static str| service.call_as(token, method.clone(), &path, &Value::Null);
        let before = service.get(&format!("/v23.0/{id}")).await.expect_success();

        for token in ["", "unknown", "expired"] {
            call(token).await.expect_error(401, 190, None);
        }
        call("without").await.expect_error(403, 10, None);
        let stranger = call(STRANGER).await;
        assert!(!stranger.text().contains("hello"), "{pattern}");
        // The node before `uploads` is ignored, so every account may use it.
        let ignores_node = pattern.contains("/uploads");
        if is_of_emulators(pattern) {
            assert_not_an_emulator(&stranger);
        } else if !ignores_node {
            stranger.expect_error(400, 100, Some(33));
        }
        // The account of another tenant stays hidden, whatever the rulebook of the caller.
        let subcode = (pattern.contains("{waba}/") && !ignores_node).then_some(33);
        let other = call(OTHER).await.expect_error(400, 100, subcode);
        assert!(subcode.is_some() || other["message"].as_str().unwrap().contains("API v1.0"));

        let now = service.clock.now();
        assert!(
            service
                .store
                .set_account_disabled(service.shop, true, Author::operator(now))
                .await
                .unwrap()
        );
        service.clock.advance(Duration::from_secs(2));
        call("with").await.expect_error(403, 131_031, None);
        assert!(
            service
                .store
                .set_account_disabled(service.shop, false, Author::operator(service.clock.now()))
                .await
                .unwrap()
        );
        service.clock.advance(Duration::from_secs(2));

        assert_eq!(
            service.get(&format!("/v23.0/{id}")).await.expect_success(),
            before,
            "{pattern}"
        );
        let own = call("with").await;
        if is_of_emulators(pattern) {
            assert_not_an_emulator(&own);
        } else {
            assert!(![401, 403, 404].contains(&own.status.as_u16()), "{pattern}: {}", own.text());
        }
    }
}

#[tokio::test]
async fn archive_and_previews_are_not_only_for_emulators() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let (ids, none) = (json!({"hsm_ids": [id]}), Value::Null);
    for (method, edge, body) in [
        (Method::POST, "message_templates/archive", &ids),
        (Method::POST, "message_templates/unarchive", &ids),
        (Method::GET, "message_template_previews?category=AUTHENTICATION", &none),
    ] {
        let path = format!("/v23.0/{}/{edge}", service.shop);
        service.call(method, &path, body).await.expect_success();
    }
}

#[tokio::test]
async fn a_token_without_the_scope_cannot_find_out_which_accounts_exist() {
    let service = Service::start().await;
    add(&service, "without", Scopes::parse("review").unwrap(), false).await;
    for account in [service.shop.to_string(), service.stranger.to_string(), "17".to_owned()] {
        let path = format!("/v23.0/{account}/message_templates");
        let response = service.call_as("without", Method::GET, &path, &Value::Null).await;
        response.expect_error(403, 10, None);
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_requests_have_the_codes_of_the_graph_api() {
    let limits = Limits { failed_credentials: 1, ..Limits::default() };
    let service = Service::start_with(limits).await;
    let path = "/v23.0/17";
    let guess = || service.call_as("guessed", Method::GET, path, &Value::Null);
    for _ in 0..10 {
        guess().await.expect_error(401, 190, None);
    }
    let response = guess().await;
    assert_eq!(response.header("retry-after"), Some("1"));
    assert_eq!(response.expect_error(400, 4, None)["galley_problem"], "too-many-failures");
    let quotas = AccountQuotas { requests_per_second: Some(1), ..AccountQuotas::default() };
    assert!(
        service
            .store
            .set_account_quotas(service.shop, quotas, Author::operator(service.clock.now()))
            .await
            .unwrap()
    );
    service.get(path).await.expect_error(400, 100, Some(33));
    let response = service.get(path).await;
    assert_eq!(response.header("retry-after"), Some("1"));
    let error = response.expect_error(400, 80_008, None);
    assert_eq!(error["galley_problem"], "too-many-requests");
    assert_eq!(error["is_transient"], true);
}

#[tokio::test]
async fn the_token_can_be_in_the_header_or_in_the_query() {
    let service = Service::start().await;
    let list = service.templates();
    for (header, query, status) in [
        (Some(format!("Bearer {TOKEN}")), "", 200),
        (Some(format!("bearer {TOKEN}")), "?access_token=other", 200),
        (None, "?access_token=token-of-the-shop", 200),
        (None, "?limit=2&access_token=token%2Dof%2Dthe-shop", 200),
        (None, "", 401),
        (None, "?access_token=", 401),
        (Some("Basic abc".to_owned()), "", 401),
    ] {
        let mut request = Request::builder().uri(format!("{list}{query}"));
        if let Some(header) = &header {
            request = request.header("authorization", header);
        }
        let response = service.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status, status, "{header:?} {query}");
    }
    let request =
        Request::builder().method(Method::POST).uri(format!("{list}?access_token={TOKEN}"));
    let body = Body::from(hello("hello").to_string());
    service.send(request.body(body).unwrap()).await.expect_success();
}

#[tokio::test]
async fn the_log_contains_no_tokens() {
    let service = Service::start().await;
    let list = service.templates();
    let token = json!({"access_token": TOKEN});
    for path in
        [format!("{list}?access_token={TOKEN}"), format!("/v23.0/{TOKEN}?access_token=nonsense")]
    {
        service.send(Request::builder().uri(&path).body(Body::empty()).unwrap()).await;
        service.call(Method::POST, &path, &token).await;
        service.call(Method::PUT, &path, &token).await;
    }
    service.get("/wp-admin/setup.php").await;
    service.call(Method::PUT, "/wp-admin/setup.php", &token).await;
    let log = service.into_log();
    assert_eq!(log.matches(r#""route":"(none)""#).count(), 2, "{log}");
    assert!(log.contains("/{version}/{node}/message_templates"), "{log}");
    assert!(!log.contains(TOKEN) && !log.contains("nonsense"), "{log}");
}

#[tokio::test]
async fn the_version_is_optional_as_in_the_graph_api() {
    let service = Service::start().await;
    let list = format!("/{}/message_templates", service.shop);
    let id = service.call(Method::POST, &list, &hello("one")).await.expect_success()["id"].clone();
    service.create_named("two", "en_US").await;
    let id = id.as_str().unwrap();
    for path in [format!("/{id}?fields=name"), format!("/{id}/?fields=name")] {
        assert_eq!(
            service.get(&path).await.expect_success(),
            json!({"id": id, "name": "one"}),
            "{path}"
        );
    }
    let page = service.get(&format!("{list}?limit=1")).await.expect_success();
    let next = page["paging"]["next"].as_str().unwrap().strip_prefix(PUBLIC).unwrap();
    assert_eq!(service.get(next).await.expect_success()["data"][0]["id"], id);
    service.get("/17").await.expect_error(400, 100, Some(33));
    // A path that does not begin with a number gets no version.
    assert_eq!(service.get("/message_templates").await.status, 404);
    assert_eq!(service.get(&format!("/x{id}")).await.status, 404);
}
