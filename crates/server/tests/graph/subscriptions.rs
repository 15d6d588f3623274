//! Webhooks in Meta's format: `subscribed_apps`, and endpoints of the format `whatsapp` on API v1.0.

use axum::{
    body::Body,
    http::{Method, Request, header},
};
use galley_domain::webhook::Format;
use galley_store::Webhook;
use serde_json::{Value, json};

use super::service::{OTHER, PUBLIC, Service, TOKEN};
use crate::setup::VERIFY_TOKEN;

const ADDRESS: &str = "https://shop.example/hooks";

fn apps(service: &Service) -> String {
    format!("/v23.0/{}/subscribed_apps", service.shop)
}

fn address(url: &str) -> Value {
    json!({"override_callback_uri": url, "verify_token": VERIFY_TOKEN})
}

async fn subscribe(service: &Service, document: &Value) -> Value {
    service.call(Method::POST, &apps(service), document).await.expect_success()
}

async fn stored(service: &Service) -> Vec<Webhook> {
    service.store.webhooks(service.shop).await.unwrap()
}

/// A call of API v1.0 with this token.
async fn call(service: &Service, token: &str, method: Method, rest: &str, body: &Value) -> Value {
    // Each account has its own phone number.
    let path = format!("/api/v1.0/1555000{}/{token}/webhooks{rest}", token.len());
    let response = service.call_as(token, method, &path, body).await;
    let mut document: Value = serde_json::from_slice(&response.bytes).unwrap_or_default();
    document["http_status"] = json!(response.status.as_u16());
    document
}

#[track_caller]
fn assert_rejected(problem: &Value, pointer: &str, rule: &str, expected: &str) {
    assert_eq!(problem["http_status"], 422, "{problem}");
    let violation = &problem["violations"][0];
    assert_eq!((&violation["pointer"], &violation["rule"]), (&json!(pointer), &json!(rule)));
    assert!(violation["message"].as_str().unwrap().contains(expected), "{violation}");
    assert!(violation["hint"].is_string(), "{violation}");
    assert!(!problem.to_string().contains(VERIFY_TOKEN), "{problem}");
}

fn is_app_secret(secret: &Value) -> bool {
    let secret = secret.as_str().unwrap();
    secret.len() == 32 && secret.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

#[tokio::test]
async fn an_account_has_one_url_that_can_be_read_replaced_and_deleted() {
    let service = Service::start().await;
    let app = json!({"id": service.shop.to_string(), "name": "Galley", "link": PUBLIC});
    let none = json!({"data": [{"whatsapp_business_api_data": app}]});
    assert_eq!(service.get(&apps(&service)).await.expect_success(), none);

    let created = subscribe(&service, &address(ADDRESS)).await;
    assert_eq!(created["success"], true);
    assert!(is_app_secret(&created["galley_secret"]), "{created}");
    let [first] = &stored(&service).await[..] else { panic!("not exactly one endpoint") };
    assert_eq!((&*first.url, first.format, first.subscribed), (ADDRESS, Format::Whatsapp, true));
    let one =
        json!({"data": [{"whatsapp_business_api_data": app, "override_callback_uri": ADDRESS}]});
    assert_eq!(service.get(&apps(&service)).await.expect_success(), one);

    let off = json!({"disabled": true});
    call(&service, TOKEN, Method::PATCH, &format!("/{}", first.id), &off).await;
    let shown = &service.get(&apps(&service)).await.expect_success()["data"][0];
    assert_eq!(shown["galley_disabled_because"], "switched_off", "{shown}");
    assert!(shown["galley_disabled_at"].is_string(), "{shown}");
    let moved = subscribe(&service, &address("https://hooks.example/other")).await;
    assert_eq!(moved, json!({"success": true}), "the secret is shown only once");
    let [second] = &stored(&service).await[..] else { panic!("not exactly one endpoint") };
    assert_eq!((second.id, &*second.url), (first.id, "https://hooks.example/other"));
    assert_eq!((&second.secret, second.disabled), (&first.secret, None));

    for _ in 0..2 {
        let deleted = service.call(Method::DELETE, &apps(&service), &Value::Null).await;
        assert_eq!(deleted.expect_success(), json!({"success": true}));
        assert_eq!(service.get(&apps(&service)).await.expect_success(), none);
    }
    assert_eq!(stored(&service).await, []);
}

#[tokio::test]
async fn a_subscription_without_a_url_does_nothing() {
    let service = Service::start().await;
    let own = json!({"url": ADDRESS, "format": "whatsapp", "verify_token": VERIFY_TOKEN});
    assert_eq!(call(&service, TOKEN, Method::POST, "", &own).await["http_status"], 201);
    subscribe(&service, &address(ADDRESS)).await;
    let before = stored(&service).await;
    for document in [Value::Null, json!({}), json!({"verify_token": "any"})] {
        assert_eq!(subscribe(&service, &document).await, json!({"success": true}));
    }
    assert_eq!(stored(&service).await, before);
    service.call(Method::DELETE, &apps(&service), &Value::Null).await.expect_success();
    assert_eq!(stored(&service).await, before[..1], "other endpoints are left alone");
}

#[tokio::test]
async fn a_subscription_can_be_a_form_or_a_query() {
    let service = Service::start().await;
    let query =
        format!("override_callback_uri=https%3A%2F%2Fshop.example%2Fa&verify_token={VERIFY_TOKEN}");
    let path = format!("{}?{query}", apps(&service));
    assert_eq!(
        service.call(Method::POST, &path, &Value::Null).await.expect_success()["success"],
        true
    );
    let form = Request::builder()
        .method(Method::POST)
        .uri(format!("{}?access_token={TOKEN}", apps(&service)))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(query.replace("%2Fa", "%2Fb")))
        .unwrap();
    service.send(form).await.expect_success();
    assert_eq!(stored(&service).await[0].url, "https://shop.example/b");
}

#[tokio::test]
async fn a_url_that_fails_the_handshake_is_rejected_with_metas_code() {
    let service = Service::start().await;
    for (url, expected) in [
        ("https://shop.example/silent", "unreachable: Connection refused"),
        ("https://shop.example/403", "with 403 instead of 200"),
        ("https://shop.example/200", "body length in bytes: 6"),
    ] {
        let response = service.call(Method::POST, &apps(&service), &address(url)).await;
        let error = response.expect_error(400, 2_200, None);
        assert!(error["error_user_msg"].as_str().unwrap().contains(expected), "{error}");
        assert_eq!(error["galley_violations"][0]["rule"], "webhook-handshake");
    }
    let other = json!({"override_callback_uri": ADDRESS, "verify_token": "another one"});
    service.call(Method::POST, &apps(&service), &other).await.expect_error(400, 2_200, None);
    for document in [
        json!({"override_callback_uri": ADDRESS}),
        address("http://shop.example/hooks"),
        address("https://private.example/hooks"),
        address(&format!("https://shop.example/{}", "x".repeat(200))),
    ] {
        let response = service.call(Method::POST, &apps(&service), &document).await;
        response.expect_error(400, 100, None);
    }
    assert_eq!(stored(&service).await, []);
    let log = service.into_log();
    assert!(!log.contains(VERIFY_TOKEN) && !log.contains("another one"), "{log}");
}

#[tokio::test]
async fn only_whatsapp_accounts_can_register_endpoints_of_that_format() {
    let service = Service::start().await;
    let document = json!({"url": ADDRESS, "format": "whatsapp", "verify_token": VERIFY_TOKEN});
    let rejected = call(&service, OTHER, Method::POST, "", &document).await;
    assert_rejected(&rejected, "/format", "webhook-format", "rulebook `whatsapp`");
    assert_eq!(service.store.webhooks(service.other).await.unwrap(), []);

    let created = call(&service, TOKEN, Method::POST, "", &document).await;
    assert_eq!((&created["http_status"], &created["format"]), (&json!(201), &json!("whatsapp")));
    assert!(is_app_secret(&created["secret"]), "{created}");
    let mut with_secret = document.clone();
    with_secret["secret"] = json!("the-app-secret-that-they-know");
    let created = call(&service, TOKEN, Method::POST, "", &with_secret).await;
    assert_eq!(created["secret"], with_secret["secret"]);
    with_secret["secret"] = json!("the app secret that they know");
    let rejected = call(&service, TOKEN, Method::POST, "", &with_secret).await;
    assert_rejected(&rejected, "/secret", "secret-form", "16 to 256");
    assert!(!rejected.to_string().contains("they know"), "{rejected}");
    let own = call(&service, TOKEN, Method::POST, "", &json!({"url": ADDRESS})).await;
    assert_eq!(own["format"], "galley");
}

#[tokio::test]
async fn a_url_is_verified_when_it_is_registered_or_changed() {
    let service = Service::start().await;
    let document =
        |url: &str| json!({"url": url, "format": "whatsapp", "verify_token": VERIFY_TOKEN});
    let created = call(&service, TOKEN, Method::POST, "", &document(ADDRESS)).await;
    let item = format!("/{}", created["id"].as_str().unwrap());
    for (url, rule, expected) in [
        ("https://shop.example/silent", "webhook-handshake", "did not respond"),
        ("https://shop.example/403", "webhook-handshake", "403"),
        ("https://shop.example/200", "webhook-handshake", "challenge"),
        ("https://private.example/", "webhook-address", "private.example"),
    ] {
        let rejected = call(&service, TOKEN, Method::POST, "", &document(url)).await;
        assert_rejected(&rejected, "/url", rule, expected);
        let change = json!({"url": url, "verify_token": VERIFY_TOKEN});
        let rejected = call(&service, TOKEN, Method::PATCH, &item, &change).await;
        assert_rejected(&rejected, "/url", rule, expected);
    }
    let other = json!({"url": "https://hooks.example/"});
    let rejected = call(&service, TOKEN, Method::PATCH, &item, &other).await;
    assert_rejected(&rejected, "/verify_token", "webhook-format", "is required");
    let rejected =
        call(&service, TOKEN, Method::PATCH, &item, &json!({"verify_token": "another"})).await;
    assert_rejected(&rejected, "/url", "webhook-handshake", "403");
    assert_eq!(stored(&service).await[0].url, ADDRESS);

    let good = json!({"url": "https://hooks.example/", "verify_token": VERIFY_TOKEN});
    let changed = call(&service, TOKEN, Method::PATCH, &item, &good).await;
    assert_eq!((&changed["http_status"], &changed["url"]), (&json!(200), &good["url"]));
    for good in [json!({"verify_token": VERIFY_TOKEN}), json!({"events": []})] {
        assert_eq!(call(&service, TOKEN, Method::PATCH, &item, &good).await["http_status"], 200);
    }
    assert!(!service.into_log().contains(VERIFY_TOKEN));
}

#[tokio::test]
async fn a_rotation_takes_effect_immediately_and_can_be_repeated() {
    let service = Service::start().await;
    let secret = subscribe(&service, &address(ADDRESS)).await["galley_secret"].clone();
    let rotate = format!("/{}/rotate", stored(&service).await[0].id);
    let mut secrets = vec![secret];
    for _ in 0..2 {
        let rotated = call(&service, TOKEN, Method::POST, &rotate, &Value::Null).await;
        assert_eq!(rotated["http_status"], 200, "{rotated}");
        assert!(is_app_secret(&rotated["secret"]), "{rotated}");
        assert_eq!(rotated.get("former_secret_until"), None, "{rotated}");
        assert!(!secrets.contains(&rotated["secret"]));
        secrets.push(rotated["secret"].clone());
    }
}
