//! Accounts of one rulebook on the API surface of the other.

use axum::http::Method;
use galley_server::Clock as _;
use galley_store::{AccountLimits, Author};
use serde_json::{Value, json};

use super::service::{OTHER, Service, TOKEN, hello};

#[tokio::test]
async fn a_whatsapp_account_cannot_create_or_edit_on_api_v1() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let list = format!("/api/v1.0/15550001111/{TOKEN}/message_templates");
    let item = format!("{list}/{id}");
    for (method, path) in [(Method::POST, &list), (Method::PATCH, &item)] {
        let response = service.call(method, path, &hello("other")).await;
        assert_eq!(response.status, 409, "{}", response.text());
        let problem: Value = serde_json::from_str(response.text()).unwrap();
        assert_eq!(problem["type"], "/problems/wrong-surface");
        assert!(problem["detail"].as_str().unwrap().contains(&service.shop.to_string()));
    }
    for (method, path, body) in [
        (Method::GET, list.clone(), Value::Null),
        (Method::GET, item.clone(), Value::Null),
        (Method::GET, format!("{item}/versions"), Value::Null),
        (Method::GET, format!("/api/v1.0/15550001111/{TOKEN}/events"), Value::Null),
        (Method::GET, format!("/api/v1.0/15550001111/{TOKEN}/webhooks"), Value::Null),
        (Method::POST, format!("{item}/review"), json!({"decision": "pause"})),
    ] {
        let response = service.call(method, &path, &body).await;
        assert_eq!(response.status, 200, "{path}: {}", response.text());
    }
    service.create_named("hello", "de").await;
    for (query, count) in [("name=hello", 2), ("name=hello&language=de", 1), ("name=hell", 0)] {
        let found = service.get(&format!("{list}?{query}")).await.expect_success();
        assert_eq!(found["data"].as_array().unwrap().len(), count, "{query}");
    }
    let result = service.call(Method::POST, &format!("{list}/validate"), &hello("Bad Name")).await;
    let result = result.expect_success();
    assert_eq!(result["violations"][0]["rule"], "name-form", "{result}");
    let result = service.call(Method::POST, &format!("{list}/validate"), &hello("hello")).await;
    assert_eq!(result.expect_success()["violations"][0]["rule"], "name-taken");
}

#[tokio::test]
async fn validation_compares_with_existing_templates() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let path = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/validate");
    let mut spanish = hello("hello");
    spanish["language"] = json!("es");
    spanish["category"] = json!("UTILITY");
    let result = service.call(Method::POST, &path, &spanish).await.expect_success();
    assert_eq!(result["violations"][0]["rule"], "category-differs", "{result}");
    assert_eq!(result["violations"][0]["pointer"], "/category");
    // A template with the same text and another name gets only a warning.
    let result = service.call(Method::POST, &path, &hello("other")).await.expect_success();
    assert_eq!(result["valid"], true, "{result}");
    assert_eq!(result["warnings"][0]["rule"], "same-content");
    assert!(result["warnings"][0]["message"].as_str().unwrap().contains(&id), "{result}");
    // A template does not conflict with itself.
    let path = format!("{path}?template={id}");
    let result = service.call(Method::POST, &path, &hello("hello")).await.expect_success();
    assert_eq!((&result["valid"], &result["warnings"]), (&json!(true), &json!([])), "{result}");
}

#[tokio::test]
async fn validation_of_an_edit_matches_the_edit() {
    let service = Service::start_reviewed().await;
    let id = service.create_named("hello", "en_US").await;
    let list = format!("/api/v1.0/15550001111/{TOKEN}/message_templates");
    let dry = async |edit: &Value| {
        let path = format!("{list}/validate?template={id}");
        service.call(Method::POST, &path, edit).await.expect_success()
    };
    let category = json!({"category": "UTILITY"});
    assert_eq!(dry(&category).await["valid"], true);
    // Fields that an edit ignores get a warning.
    let result = dry(&hello("other")).await;
    assert_eq!(
        (&result["valid"], &result["warnings"][0]["pointer"]),
        (&json!(true), &json!("/name"))
    );
    // The category of a live template cannot change.
    let review = json!({"decision": "approve"});
    let decided = service.call(Method::POST, &format!("{list}/{id}/review"), &review).await;
    assert_eq!(decided.status, 200, "{}", decided.text());
    let result = dry(&category).await;
    assert_eq!(result["violations"][0]["rule"], "category-locked", "{result}");
    service
        .call(Method::POST, &format!("/v23.0/{id}"), &category)
        .await
        .expect_error(400, 100, None);
}

#[tokio::test]
async fn validation_reports_a_reached_template_limit() {
    let service = Service::start().await;
    let limits = Some(AccountLimits { templates: 1 });
    assert!(
        service
            .store
            .set_account_limits(service.shop, limits, Author::operator(service.clock.now()))
            .await
            .unwrap()
    );
    let path = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/validate");
    let result = service.call(Method::POST, &path, &hello("first")).await.expect_success();
    assert_eq!(result["valid"], true, "{result}");
    let id = service.create_named("first", "en_US").await;
    let result = service.call(Method::POST, &path, &hello("second")).await.expect_success();
    assert_eq!(result["violations"][0]["rule"], "limit-reached", "{result}");
    // An edit does not add a template.
    let path = format!("{path}?template={id}");
    let result = service.call(Method::POST, &path, &hello("first")).await.expect_success();
    assert_eq!(result["valid"], true, "{result}");
}

#[tokio::test]
async fn a_v1_account_is_referred_to_api_v1() {
    let service = Service::start().await;
    let account = service.other;
    for (method, path) in [
        (Method::GET, format!("/v23.0/{account}")),
        (Method::GET, format!("/v23.0/{account}/message_templates")),
        (Method::POST, format!("/v23.0/{account}/message_templates")),
        (Method::POST, "/v23.0/77".to_owned()),
    ] {
        let response = service.call_as(OTHER, method, &path, &hello("hello")).await;
        let error = response.expect_error(400, 100, None);
        assert!(error["message"].as_str().unwrap().contains("API v1.0"), "{error}");
        assert_eq!(error["galley_problem"], "wrong-surface");
    }
}
