//! Refusals: the codes that clients know, and beside them our complete list.

use axum::http::Method;
use galley_store::AccountLimits;
use serde_json::{Value, json};

use super::service::{Service, TOKEN, hello};

#[tokio::test]
async fn a_bad_document_is_refused_with_the_first_fault_and_beside_it_with_all() {
    let service = Service::start().await;
    let mut document = hello("Bad Name");
    document["components"] = json!([{"type": "BODY", "text": "{{1}} one two three",
        "example": {"body_text": [["a"]]}}]);
    let error = service.create(&document).await.refusal(400, 100, Some(2_388_046));
    assert_eq!(error["error_data"], json!({"blame_field_specs": [["name"]]}));
    assert_eq!(error["galley_problem"], "invalid-template");
    let pointers: Vec<&Value> =
        error["galley_violations"].as_array().unwrap().iter().map(|it| &it["pointer"]).collect();
    assert_eq!(pointers, ["/name", "/components/0/text"]);
    assert!(error["error_user_msg"].as_str().unwrap().contains("/name"), "{error}");

    document["name"] = json!("good");
    let error = service.create(&document).await.refusal(400, 100, Some(2_388_299));
    let blamed = &error["error_data"]["blame_field_specs"];
    assert_eq!(blamed, &json!([["components", "0", "text"]]));
}

#[tokio::test]
async fn an_edit_is_judged_by_the_same_rules() {
    let service = Service::start().await;
    let id = service.made("hello", "en_US").await;
    let path = format!("/v23.0/{id}");
    let long = json!({"components": [{"type": "BODY", "text": "a".repeat(1_025)}]});
    service.call(Method::POST, &path, &long).await.refusal(400, 100, Some(2_388_040));
    service.call(Method::POST, &path, &json!({})).await.refusal(400, 100, None);
    service.call(Method::POST, "/v23.0/77", &json!({})).await.refusal(400, 100, Some(33));
    let account = format!("/v23.0/{}", service.shop);
    service.call(Method::POST, &account, &json!({})).await.refusal(400, 100, Some(33));
}

#[tokio::test]
async fn a_name_is_taken_once_for_each_language_and_has_one_category() {
    let service = Service::start().await;
    service.made("hello", "en_US").await;
    let error = service.create(&hello("hello")).await.refusal(400, 100, Some(2_388_024));
    assert_eq!(error["galley_problem"], "name-taken");
    let german = service.made("hello", "de").await;
    let mut spanish = hello("hello");
    spanish["language"] = json!("es");
    spanish["category"] = json!("UTILITY");
    let error = service.create(&spanish).await.refusal(400, 100, None);
    assert!(error["error_user_msg"].as_str().unwrap().contains("MARKETING"), "{error}");
    let edit = json!({"category": "UTILITY"});
    service.call(Method::POST, &format!("/v23.0/{german}"), &edit).await.refusal(400, 100, None);
}

#[tokio::test]
async fn the_category_of_an_approved_template_stays() {
    let service = Service::start_reviewed().await;
    let id = service.made("hello", "en_US").await;
    let path = format!("/v23.0/{id}");
    let review = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/{id}/review");
    let edit = json!({"category": "UTILITY"});
    service.call(Method::POST, &path, &edit).await.good();
    service.call(Method::POST, &review, &json!({"decision": "approve"})).await.good();
    let back = json!({"category": "MARKETING"});
    let error = service.call(Method::POST, &path, &back).await.refusal(400, 100, None);
    assert_eq!(error["galley_problem"], "category-locked");
    assert!(error["error_user_msg"].as_str().unwrap().contains("UTILITY"), "{error}");
    service.call(Method::POST, &path, &edit).await.good();
}

#[tokio::test]
async fn limits_that_an_account_is_held_to_have_their_codes() {
    let service = Service::start().await;
    let limits = Some(AccountLimits { templates: 1 });
    assert!(service.store.set_account_limits(service.shop, limits).await.unwrap());
    let id = service.made("hello", "en_US").await;
    let error = service.create(&hello("other")).await.refusal(400, 100, Some(2_388_019));
    assert_eq!(error["galley_problem"], "limit-reached");
    let path = format!("/v23.0/{id}");
    let edit = json!({"components": [{"type": "BODY", "text": "Good evening"}]});
    service.call(Method::POST, &path, &edit).await.good();
    service.call(Method::POST, &path, &edit).await.refusal(400, 100, Some(2_388_124));
}

#[tokio::test]
async fn a_second_try_with_the_same_key_makes_nothing_new() {
    let service = Service::start().await;
    let send = |body: Value| {
        let request = axum::http::Request::builder().method(Method::POST).uri(service.templates());
        let request = request.header("authorization", "Bearer token-of-the-shop");
        let request = request.header("idempotency-key", "first");
        service.send(request.body(axum::body::Body::from(body.to_string())).unwrap())
    };
    let first = send(hello("hello")).await.good();
    let second = send(hello("hello")).await;
    assert_eq!(
        (second.good(), &second.headers["idempotent-replayed"]),
        (first, &"true".parse().unwrap())
    );
    send(hello("other")).await.refusal(400, 100, None);
    send(json!({})).await.refusal(400, 100, None);
    assert_eq!(service.listed("").await, ["hello"]);
}

#[tokio::test]
async fn only_a_version_leads_here_and_only_by_the_methods_there_are() {
    let service = Service::start().await;
    let account = service.shop;
    for version in ["v1", "23.0", "v23", "vx.y", "V23.0", "api", "v23.0.1"] {
        for path in
            [format!("/{version}/{account}"), format!("/{version}/{account}/message_templates")]
        {
            for method in [Method::GET, Method::PUT] {
                let answer = service.call(method, &path, &Value::Null).await;
                assert_eq!(answer.status, 404, "{path}: {}", answer.text());
                let problem: Value = serde_json::from_str(answer.text()).unwrap();
                assert_eq!(problem["type"], "/problems/not-found", "{path}");
            }
        }
    }
    let answer = service.call(Method::PUT, &service.templates(), &Value::Null).await;
    answer.refusal(405, 100, None);
    assert!(answer.headers.contains_key("allow"));
    for unknown in ["/v23.0/1/unknown", "/v23.0/1/2/3/4"] {
        service.get(unknown).await.refusal(400, 100, Some(33));
    }
    assert_eq!(service.get("/v23.0").await.status, 404);
}
