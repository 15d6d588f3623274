//! Error responses: Meta's codes, and Galley's complete list of violations.

use axum::http::Method;
use galley_server::Clock as _;
use galley_store::{AccountLimits, AccountQuotas, Author, Quota};
use serde_json::{Value, json};

use super::service::{Service, TOKEN, hello};

#[tokio::test]
async fn an_invalid_document_reports_the_first_violation_and_lists_all() {
    let service = Service::start().await;
    let mut document = hello("Bad Name");
    document["components"] = json!([{"type": "BODY", "text": "{{1}} one two three",
        "example": {"body_text": [["a"]]}}]);
    let error = service.create(&document).await.expect_error(400, 100, Some(2_388_046));
    assert_eq!(error["error_data"], json!({"blame_field_specs": [["name"]]}));
    assert_eq!(error["galley_problem"], "invalid-template");
    let pointers: Vec<&Value> =
        error["galley_violations"].as_array().unwrap().iter().map(|it| &it["pointer"]).collect();
    assert_eq!(pointers, ["/name", "/components/0/text"]);
    assert!(error["error_user_msg"].as_str().unwrap().contains("/name"), "{error}");

    document["name"] = json!("good");
    let error = service.create(&document).await.expect_error(400, 100, Some(2_388_299));
    let blamed = &error["error_data"]["blame_field_specs"];
    assert_eq!(blamed, &json!([["components", "0", "text"]]));
}

#[tokio::test]
async fn refusals_that_meta_was_seen_to_make_have_its_codes() {
    let service = Service::start().await;
    let body = json!({"type": "BODY", "text": "Have a look at what is new."});
    let image = |handle: &str| json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}});
    let buttons = |url: &str| json!({"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Go", "url": url}]});
    let text = |text: &str, samples: &Value| json!({"type": "BODY", "text": text, "example": {"body_text": samples}});
    let carousel = |card_text: &str| {
        let components = json!([
            image("4::aW1h"),
            text(card_text, &json!([["7"]])),
            buttons("https://shop.example")
        ]);
        let card = json!({"components": components});
        json!([body, {"type": "CAROUSEL", "cards": [card, card]}])
    };
    let two = "Hi {{1}}, your order {{2}} is on its way.";
    for (name, subcode, refused, accepted) in [
        (
            "handle",
            2_388_273,
            json!([image("https://cdn.example/a.png"), body]),
            json!([image("4::aW1h"), body]),
        ),
        (
            "samples",
            2_388_043,
            json!([text(two, &json!(["Ada", "7"]))]),
            json!([text(two, &json!([["Ada", "7"]]))]),
        ),
        ("card", 2_388_293, carousel("Only {{1}} today"), carousel("Only {{1}} left today")),
        (
            "link",
            2_388_052,
            json!([body, buttons("http://localhost:3000/")]),
            json!([body, buttons("https://shop.example/")]),
        ),
        (
            "lines",
            2_388_043,
            json!([text("Hi {{1}} and bye", &json!("first\u{0}second"))]),
            json!([text("Hi {{1}} and bye", &json!("first\nsecond"))]),
        ),
    ] {
        let mut document = hello(name);
        document["components"] = refused;
        service.create(&document).await.expect_error(400, 100, Some(subcode));
        document["components"] = accepted;
        service.create(&document).await.expect_success();
    }
}

#[tokio::test]
async fn an_edit_has_the_same_rules_as_a_create() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let path = format!("/v23.0/{id}");
    let long = json!({"components": [{"type": "BODY", "text": "a".repeat(1_025)}]});
    service.call(Method::POST, &path, &long).await.expect_error(400, 100, Some(2_388_040));
    service.call(Method::POST, &path, &json!({})).await.expect_error(400, 100, None);
    service.call(Method::POST, "/v23.0/77", &json!({})).await.expect_error(400, 100, Some(33));
    let account = format!("/v23.0/{}", service.shop);
    service.call(Method::POST, &account, &json!({})).await.expect_error(400, 100, Some(33));
}

#[tokio::test]
async fn a_name_is_unique_per_language_and_has_one_category() {
    let service = Service::start().await;
    service.create_named("hello", "en_US").await;
    let error = service.create(&hello("hello")).await.expect_error(400, 100, Some(2_388_024));
    assert_eq!(error["galley_problem"], "name-taken");
    let german = service.create_named("hello", "de").await;
    let mut spanish = hello("hello");
    spanish["language"] = json!("es");
    spanish["category"] = json!("UTILITY");
    let error = service.create(&spanish).await.expect_error(400, 100, None);
    assert!(error["error_user_msg"].as_str().unwrap().contains("MARKETING"), "{error}");
    let edit = json!({"category": "UTILITY"});
    service
        .call(Method::POST, &format!("/v23.0/{german}"), &edit)
        .await
        .expect_error(400, 100, None);
}

#[tokio::test]
async fn the_category_of_an_approved_template_cannot_change() {
    let service = Service::start_reviewed().await;
    let id = service.create_named("hello", "en_US").await;
    let path = format!("/v23.0/{id}");
    let review = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/{id}/review");
    let edit = json!({"category": "UTILITY"});
    service.call(Method::POST, &path, &edit).await.expect_success();
    service.call(Method::POST, &review, &json!({"decision": "approve"})).await.expect_success();
    let back = json!({"category": "MARKETING"});
    let error = service.call(Method::POST, &path, &back).await.expect_error(400, 100, None);
    assert_eq!(error["galley_problem"], "category-locked");
    assert!(error["error_user_msg"].as_str().unwrap().contains("UTILITY"), "{error}");
    service.call(Method::POST, &path, &edit).await.expect_success();
}

#[tokio::test]
async fn each_limit_of_an_account_has_its_code() {
    let service = Service::start().await;
    let limits = Some(AccountLimits { templates: 1 });
    assert!(
        service
            .store
            .set_account_limits(service.shop, limits, Author::operator(service.clock.now()))
            .await
            .unwrap()
    );
    let id = service.create_named("hello", "en_US").await;
    let error = service.create(&hello("other")).await.expect_error(400, 100, Some(2_388_019));
    assert_eq!(error["galley_problem"], "limit-reached");
    let path = format!("/v23.0/{id}");
    let edit = json!({"components": [{"type": "BODY", "text": "Good evening"}]});
    service.call(Method::POST, &path, &edit).await.expect_success();
    service.call(Method::POST, &path, &edit).await.expect_error(400, 100, Some(2_388_124));
}

#[tokio::test]
async fn a_reached_quota_of_stored_bytes_is_refused_with_use_and_limit() {
    let service = Service::start().await;
    let quotas = AccountQuotas { stored_bytes: Quota::Max(600), ..AccountQuotas::default() };
    assert!(
        service
            .store
            .set_account_quotas(service.shop, quotas, Author::operator(service.clock.now()))
            .await
            .unwrap()
    );
    let error = service.create(&hello("hello")).await.expect_error(400, 100, None);
    assert_eq!(error["galley_problem"], "limit-reached");
    let message = error["error_user_msg"].as_str().unwrap();
    assert!(message.contains("0 of 600 bytes") && message.contains("--stored-bytes"), "{error}");
}

#[tokio::test]
async fn a_retry_with_the_same_key_creates_nothing() {
    let service = Service::start().await;
    let send = |body: Value| {
        let request = axum::http::Request::builder().method(Method::POST).uri(service.templates());
        let request = request.header("authorization", "Bearer token-of-the-shop");
        let request = request.header("idempotency-key", "first");
        service.send(request.body(axum::body::Body::from(body.to_string())).unwrap())
    };
    let first = send(hello("hello")).await.expect_success();
    let second = send(hello("hello")).await;
    assert_eq!(
        (second.expect_success(), &second.headers["idempotent-replayed"]),
        (first, &"true".parse().unwrap())
    );
    send(hello("other")).await.expect_error(400, 100, None);
    send(json!({})).await.expect_error(400, 100, None);
    assert_eq!(service.list_names("").await, ["hello"]);
}

#[tokio::test]
async fn only_versioned_paths_and_supported_methods_exist() {
    let service = Service::start().await;
    let account = service.shop;
    for version in ["v1", "23.0", "v23", "vx.y", "V23.0", "api", "v23.0.1"] {
        for path in
            [format!("/{version}/{account}"), format!("/{version}/{account}/message_templates")]
        {
            for method in [Method::GET, Method::PUT] {
                let response = service.call(method, &path, &Value::Null).await;
                assert_eq!(response.status, 404, "{path}: {}", response.text());
                let problem: Value = serde_json::from_str(response.text()).unwrap();
                assert_eq!(problem["type"], "/problems/not-found", "{path}");
            }
        }
    }
    let response = service.call(Method::PUT, &service.templates(), &Value::Null).await;
    response.expect_error(405, 100, None);
    assert!(response.headers.contains_key("allow"));
    for unknown in ["/v23.0/1/unknown", "/v23.0/1/2/3/4"] {
        service.get(unknown).await.expect_error(400, 100, Some(33));
    }
    assert_eq!(service.get("/v23.0").await.status, 404);
}

#[tokio::test]
async fn a_call_that_is_not_offered_says_so_and_what_to_do() {
    let service = Service::start().await;
    let account = service.shop;
    for (method, path, expected) in [
        (
            Method::POST,
            "/v23.0/15550001111/marketing_messages".to_owned(),
            "does not send messages;",
        ),
        (Method::POST, "/15550001111/marketing_messages".to_owned(), "does not send messages;"),
        (Method::POST, "/v23.0/15550001111/media".to_owned(), "Upload the sample of a template"),
        (Method::POST, "/v23.0/15550001111/register".to_owned(), "with Meta or your provider"),
        (Method::GET, format!("/v23.0/{account}/phone_numbers"), "galley phone add"),
        (Method::GET, "/v23.0/me".to_owned(), "there is no `me`"),
        (Method::GET, "/v23.0/debug_token?input_token=x".to_owned(), "galley token list"),
        (Method::GET, "/v23.0/oauth/access_token".to_owned(), "galley token create"),
    ] {
        let response = service.call(method, &path, &Value::Null).await;
        let error = response.expect_error(400, 100, Some(33));
        let message = error["error_user_msg"].as_str().unwrap();
        assert!(message.contains(expected), "{path}: {message}");
        assert_eq!(error["error_user_title"], "Galley does not offer this call", "{path}");
        assert_eq!(error["galley_problem"], "not-found", "{path}");
    }
}
