//! Addresses that changes of templates are sent to: `subscribed_apps`, and endpoints of the format
//! `whatsapp` on API v1.0.

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
    service.call(Method::POST, &apps(service), document).await.good()
}

async fn kept(service: &Service) -> Vec<Webhook> {
    service.store.webhooks(service.shop).await.unwrap()
}

/// A call on API v1.0 of whoever has the token.
async fn call(service: &Service, token: &str, method: Method, rest: &str, body: &Value) -> Value {
    // Each account has its own phone number.
    let path = format!("/api/v1.0/1555000{}/{token}/webhooks{rest}", token.len());
    let answer = service.call_as(token, method, &path, body).await;
    let mut document: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
    document["answered"] = json!(answer.status.as_u16());
    document
}

#[track_caller]
fn assert_refused(problem: &Value, pointer: &str, rule: &str, says: &str) {
    assert_eq!(problem["answered"], 422, "{problem}");
    let violation = &problem["violations"][0];
    assert_eq!((&violation["pointer"], &violation["rule"]), (&json!(pointer), &json!(rule)));
    assert!(violation["message"].as_str().unwrap().contains(says), "{violation}");
    assert!(violation["hint"].is_string(), "{violation}");
    assert!(!problem.to_string().contains(VERIFY_TOKEN), "{problem}");
}

fn is_app_secret(secret: &Value) -> bool {
    let secret = secret.as_str().unwrap();
    secret.len() == 32 && secret.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

#[tokio::test]
async fn an_account_has_one_address_that_is_shown_replaced_and_taken_away() {
    let service = Service::start().await;
    let app = json!({"id": service.shop.to_string(), "name": "Galley", "link": PUBLIC});
    let none = json!({"data": [{"whatsapp_business_api_data": app}]});
    assert_eq!(service.get(&apps(&service)).await.good(), none);

    let made = subscribe(&service, &address(ADDRESS)).await;
    assert_eq!(made["success"], true);
    assert!(is_app_secret(&made["galley_secret"]), "{made}");
    let [first] = &kept(&service).await[..] else { panic!("not one") };
    assert_eq!((&*first.url, first.format, first.subscribed), (ADDRESS, Format::Whatsapp, true));
    let one =
        json!({"data": [{"whatsapp_business_api_data": app, "override_callback_uri": ADDRESS}]});
    assert_eq!(service.get(&apps(&service)).await.good(), one);

    let off = json!({"disabled": true});
    call(&service, TOKEN, Method::PATCH, &format!("/{}", first.id), &off).await;
    let shown = &service.get(&apps(&service)).await.good()["data"][0];
    assert_eq!(shown["galley_disabled_because"], "switched_off", "{shown}");
    assert!(shown["galley_disabled_at"].is_string(), "{shown}");
    let moved = subscribe(&service, &address("https://hooks.example/other")).await;
    assert_eq!(moved, json!({"success": true}), "the secret is told once");
    let [second] = &kept(&service).await[..] else { panic!("not one") };
    assert_eq!((second.id, &*second.url), (first.id, "https://hooks.example/other"));
    assert_eq!((&second.secret, second.disabled), (&first.secret, None));

    for _ in 0..2 {
        let gone = service.call(Method::DELETE, &apps(&service), &Value::Null).await;
        assert_eq!(gone.good(), json!({"success": true}));
        assert_eq!(service.get(&apps(&service)).await.good(), none);
    }
    assert_eq!(kept(&service).await, []);
}

#[tokio::test]
async fn without_an_address_nothing_is_done() {
    let service = Service::start().await;
    let own = json!({"url": ADDRESS, "format": "whatsapp", "verify_token": VERIFY_TOKEN});
    assert_eq!(call(&service, TOKEN, Method::POST, "", &own).await["answered"], 201);
    subscribe(&service, &address(ADDRESS)).await;
    let before = kept(&service).await;
    for document in [Value::Null, json!({}), json!({"verify_token": "any"})] {
        assert_eq!(subscribe(&service, &document).await, json!({"success": true}));
    }
    assert_eq!(kept(&service).await, before);
    service.call(Method::DELETE, &apps(&service), &Value::Null).await.good();
    assert_eq!(kept(&service).await, before[..1], "other endpoints are left alone");
}

#[tokio::test]
async fn a_subscription_is_also_read_from_a_form_and_from_the_query() {
    let service = Service::start().await;
    let query =
        format!("override_callback_uri=https%3A%2F%2Fshop.example%2Fa&verify_token={VERIFY_TOKEN}");
    let path = format!("{}?{query}", apps(&service));
    assert_eq!(service.call(Method::POST, &path, &Value::Null).await.good()["success"], true);
    let form = Request::builder()
        .method(Method::POST)
        .uri(format!("{}?access_token={TOKEN}", apps(&service)))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(query.replace("%2Fa", "%2Fb")))
        .unwrap();
    service.send(form).await.good();
    assert_eq!(kept(&service).await[0].url, "https://shop.example/b");
}

#[tokio::test]
async fn an_address_that_does_not_answer_as_it_has_to_is_refused_as_meta_does_and_not_kept() {
    let service = Service::start().await;
    for (url, says) in [
        ("https://shop.example/silent", "unreachable: Nobody listens there; answer `GET`"),
        ("https://shop.example/403", "answered 403 where 200 is needed"),
        ("https://shop.example/200", "with 6 other bytes"),
    ] {
        let answer = service.call(Method::POST, &apps(&service), &address(url)).await;
        let error = answer.refusal(400, 2_200, None);
        assert!(error["error_user_msg"].as_str().unwrap().contains(says), "{error}");
        assert_eq!(error["galley_violations"][0]["rule"], "webhook-handshake");
    }
    let other = json!({"override_callback_uri": ADDRESS, "verify_token": "another one"});
    service.call(Method::POST, &apps(&service), &other).await.refusal(400, 2_200, None);
    for document in [
        json!({"override_callback_uri": ADDRESS}),
        address("http://shop.example/hooks"),
        address("https://private.example/hooks"),
        address(&format!("https://shop.example/{}", "x".repeat(200))),
    ] {
        let answer = service.call(Method::POST, &apps(&service), &document).await;
        answer.refusal(400, 100, None);
    }
    assert_eq!(kept(&service).await, []);
    let log = service.into_log();
    assert!(!log.contains(VERIFY_TOKEN) && !log.contains("another one"), "{log}");
}

#[tokio::test]
async fn only_accounts_with_this_rulebook_register_endpoints_of_this_format() {
    let service = Service::start().await;
    let document = json!({"url": ADDRESS, "format": "whatsapp", "verify_token": VERIFY_TOKEN});
    let refused = call(&service, OTHER, Method::POST, "", &document).await;
    assert_refused(&refused, "/format", "webhook-format", "rulebook `whatsapp`");
    assert_eq!(service.store.webhooks(service.other).await.unwrap(), []);

    let made = call(&service, TOKEN, Method::POST, "", &document).await;
    assert_eq!((&made["answered"], &made["format"]), (&json!(201), &json!("whatsapp")));
    assert!(is_app_secret(&made["secret"]), "{made}");
    let mut with_secret = document.clone();
    with_secret["secret"] = json!("the-app-secret-that-they-know");
    let made = call(&service, TOKEN, Method::POST, "", &with_secret).await;
    assert_eq!(made["secret"], with_secret["secret"]);
    with_secret["secret"] = json!("the app secret that they know");
    let refused = call(&service, TOKEN, Method::POST, "", &with_secret).await;
    assert_refused(&refused, "/secret", "secret-form", "16 to 256");
    assert!(!refused.to_string().contains("they know"), "{refused}");
    let ours = call(&service, TOKEN, Method::POST, "", &json!({"url": ADDRESS})).await;
    assert_eq!(ours["format"], "galley");
}

#[tokio::test]
async fn an_address_is_asked_when_it_is_registered_and_when_it_changes() {
    let service = Service::start().await;
    let document =
        |url: &str| json!({"url": url, "format": "whatsapp", "verify_token": VERIFY_TOKEN});
    let made = call(&service, TOKEN, Method::POST, "", &document(ADDRESS)).await;
    let item = format!("/{}", made["id"].as_str().unwrap());
    for (url, rule, says) in [
        ("https://shop.example/silent", "webhook-handshake", "did not answer"),
        ("https://shop.example/403", "webhook-handshake", "403"),
        ("https://shop.example/200", "webhook-handshake", "challenge"),
        ("https://private.example/", "webhook-address", "private.example"),
    ] {
        let refused = call(&service, TOKEN, Method::POST, "", &document(url)).await;
        assert_refused(&refused, "/url", rule, says);
        let change = json!({"url": url, "verify_token": VERIFY_TOKEN});
        let refused = call(&service, TOKEN, Method::PATCH, &item, &change).await;
        assert_refused(&refused, "/url", rule, says);
    }
    let other = json!({"url": "https://hooks.example/"});
    let refused = call(&service, TOKEN, Method::PATCH, &item, &other).await;
    assert_refused(&refused, "/verify_token", "webhook-format", "is needed");
    let refused =
        call(&service, TOKEN, Method::PATCH, &item, &json!({"verify_token": "another"})).await;
    assert_refused(&refused, "/url", "webhook-handshake", "403");
    assert_eq!(kept(&service).await[0].url, ADDRESS);

    let good = json!({"url": "https://hooks.example/", "verify_token": VERIFY_TOKEN});
    let changed = call(&service, TOKEN, Method::PATCH, &item, &good).await;
    assert_eq!((&changed["answered"], &changed["url"]), (&json!(200), &good["url"]));
    for good in [json!({"verify_token": VERIFY_TOKEN}), json!({"events": []})] {
        assert_eq!(call(&service, TOKEN, Method::PATCH, &item, &good).await["answered"], 200);
    }
    assert!(!service.into_log().contains(VERIFY_TOKEN));
}

#[tokio::test]
async fn a_rotation_counts_at_once_and_can_be_repeated() {
    let service = Service::start().await;
    let secret = subscribe(&service, &address(ADDRESS)).await["galley_secret"].clone();
    let rotate = format!("/{}/rotate", kept(&service).await[0].id);
    let mut secrets = vec![secret];
    for _ in 0..2 {
        let rotated = call(&service, TOKEN, Method::POST, &rotate, &Value::Null).await;
        assert_eq!(rotated["answered"], 200, "{rotated}");
        assert!(is_app_secret(&rotated["secret"]), "{rotated}");
        assert_eq!(rotated.get("former_secret_until"), None, "{rotated}");
        assert!(!secrets.contains(&rotated["secret"]));
        secrets.push(rotated["secret"].clone());
    }
}
