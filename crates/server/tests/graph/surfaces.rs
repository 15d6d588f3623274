//! Accounts of one rulebook on the API surface of the other.

use axum::{
    body::Body,
    http::{Method, Request},
};
use galley_server::Clock as _;
use galley_store::{AccountLimits, Author};
use serde_json::{Value, json};

use super::service::{OTHER, STRANGER, Service, TOKEN, hello};

/// The path of the shop's templates on API v1.0.
fn v1_templates() -> String {
    format!("/api/v1.0/15550001111/{TOKEN}/message_templates")
}

#[tokio::test]
async fn a_whatsapp_account_creates_and_edits_its_documents_on_api_v1() {
    let service = Service::start().await;
    let list = v1_templates();
    let create = async |document: &Value| service.call(Method::POST, &list, document).await;
    let created = create(&hello("hello")).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let created: Value = serde_json::from_str(created.text()).unwrap();
    let id = created["id"].as_str().unwrap();
    assert_eq!(created, json!({"id": id, "status": "APPROVED", "category": "MARKETING"}));
    // Both surfaces have the same template, unique by name and language.
    let graph = service.get(&format!("/v23.0/{id}")).await.expect_success();
    assert_eq!(
        (&graph["name"], &graph["parameter_format"]),
        (&json!("hello"), &json!("POSITIONAL"))
    );
    service.create(&hello("hello")).await.expect_error(400, 100, Some(2_388_024));
    assert!(create(&hello("hello")).await.text().contains("/problems/name-taken"));
    let mut german = hello("hello");
    german["language"] = json!("de");
    german["category"] = json!("UTILITY");
    let response = create(&german).await;
    assert_eq!(response.status, 409);
    assert!(response.text().contains("/problems/category-locked"), "{}", response.text());
    german["category"] = json!("MARKETING");
    assert_eq!(create(&german).await.status, 201);
    let response = create(&hello("Bad Name")).await;
    assert_eq!(response.status, 422);
    assert!(response.text().contains("name-form"), "{}", response.text());
    // The stranger has names of its own.
    let path = format!("/api/v1.0/222/{STRANGER}/message_templates");
    let response = service.call_as(STRANGER, Method::POST, &path, &hello("hello")).await;
    assert_eq!(response.status, 201, "{}", response.text());
}

#[tokio::test]
async fn an_edit_on_api_v1_is_validated_as_the_resulting_template() {
    let service = Service::start_reviewed().await;
    let id = service.create_named("hello", "en_US").await;
    let item = format!("{}/{id}", v1_templates());
    let edit = async |document: &Value| service.call(Method::PATCH, &item, document).await;
    let edited = edit(&json!({"message_send_ttl_seconds": 50_000, "name": "ignored"})).await;
    let template = edited.expect_success();
    assert_eq!((&template["version"], &template["name"]), (&json!(2), &json!("hello")));
    assert_eq!(template["message_send_ttl_seconds"], 50_000);
    // The stored lifetime does not fit the other category.
    let refused = edit(&json!({"category": "UTILITY"})).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("number-range"), "{}", refused.text());
    assert_eq!(edit(&json!({"components": [{"type": "BODY", "text": "{{1}}"}]})).await.status, 422);
    // An older version is restored as in the other rulebook, also in a dry run.
    let restore = json!({"restore_version": 1});
    let dry = format!("{}/validate?template={id}", v1_templates());
    let result = service.call(Method::POST, &dry, &restore).await.expect_success();
    assert_eq!(result["valid"], true, "{result}");
    let restored = edit(&restore).await.expect_success();
    assert_eq!(restored["version"], 3);
    assert_eq!(restored.get("message_send_ttl_seconds"), None, "{restored}");
    let unknown = edit(&json!({"restore_version": 9})).await;
    assert_eq!(unknown.status, 404, "{}", unknown.text());
}

#[tokio::test]
async fn an_edit_of_a_merged_document_respects_if_match() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let item = format!("{}/{id}", v1_templates());
    let patch = async |tag: &str| {
        let request = Request::builder().method(Method::PATCH).uri(&item);
        let request = request.header("authorization", format!("Bearer {TOKEN}"));
        let request = request.header("if-match", tag);
        let body = json!({"message_send_ttl_seconds": 50_000}).to_string();
        service.send(request.body(Body::from(body)).unwrap()).await
    };
    assert_eq!(patch("\"7\"").await.status, 412);
    assert_eq!(patch("\"7\", \"1\"").await.status, 200);
    assert_eq!(patch("\"1\"").await.status, 412);
}

#[tokio::test]
async fn concurrent_edits_on_api_v1_all_succeed_one_after_the_other() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let item = format!("{}/{id}", v1_templates());
    let edit = |seconds: u64| {
        let (service, item) = (&service, &item);
        async move {
            let document = json!({"message_send_ttl_seconds": 50_000 + seconds});
            service.call(Method::PATCH, item, &document).await.status
        }
    };
    let statuses = tokio::join!(edit(1), edit(2), edit(3), edit(4));
    assert_eq!(<[_; 4]>::from(statuses), [200; 4]);
    assert_eq!(service.get(&item).await.expect_success()["version"], 5);
}

#[tokio::test]
async fn samples_are_checked_on_api_v1() {
    let service = Service::start().await;
    let mut document = hello("hello");
    let unknown = format!("4::galley.{}", "a".repeat(32));
    let header =
        json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [unknown]}});
    document["components"].as_array_mut().unwrap().push(header);
    let response = service.call(Method::POST, &v1_templates(), &document).await;
    assert_eq!(response.status, 422, "{}", response.text());
    assert!(response.text().contains("sample-unknown"), "{}", response.text());
    let id = service.create_named("other", "en_US").await;
    let edit = json!({"components": document["components"]});
    let item = format!("{}/{id}", v1_templates());
    let response = service.call(Method::PATCH, &item, &edit).await;
    assert_eq!(response.status, 422, "{}", response.text());
    assert!(response.text().contains("sample-unknown"), "{}", response.text());
}

#[tokio::test]
async fn a_whatsapp_account_reads_and_reviews_on_api_v1() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let list = v1_templates();
    let item = format!("{list}/{id}");
    for (method, path, body) in [
        (Method::GET, list.clone(), Value::Null),
        (Method::GET, item.clone(), Value::Null),
        (Method::GET, format!("{item}/versions"), Value::Null),
        (Method::GET, format!("{item}/proof"), Value::Null),
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
async fn under_four_eyes_who_creates_on_the_graph_surface_does_not_decide_on_api_v1() {
    let service = Service::start_reviewed().await;
    let by = Author::operator(service.clock.now());
    assert!(service.store.set_account_four_eyes(service.shop, true, by).await.unwrap());
    let id = service.create_named("hello", "en_US").await;
    let review = format!("{}/{id}/review", v1_templates());
    let refused = service.call(Method::POST, &review, &json!({"decision": "approve"})).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("/problems/four-eyes"), "{}", refused.text());
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
