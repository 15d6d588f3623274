//! Deleting by name, by name and id, and by ids.

use axum::http::Method;
use serde_json::{Value, json};

use super::service::{STRANGER, Service};
use crate::harness::TestResponse;

async fn delete(service: &Service, query: &str) -> TestResponse {
    service.call(Method::DELETE, &format!("{}?{query}", service.templates()), &Value::Null).await
}

#[tokio::test]
async fn a_delete_removes_all_languages_of_a_name_or_one_template() {
    let service = Service::start().await;
    service.create_named("hello", "en_US").await;
    let german = service.create_named("hello", "de").await;
    service.create_named("other", "de").await;
    delete(&service, &format!("name=other&hsm_id={german}")).await.expect_error(400, 100, None);
    assert_eq!(service.list_names("").await.len(), 3);
    let response = delete(&service, &format!("name=hello&hsm_id={german}")).await.expect_success();
    assert_eq!(response, json!({"success": true}));
    assert_eq!(service.list_names("").await, ["other", "hello"]);
    service.create_named("hello", "de").await;
    delete(&service, "name=hello").await.expect_success();
    assert_eq!(service.list_names("").await, ["other"]);
    delete(&service, "name=hello").await.expect_error(400, 100, Some(33));
    delete(&service, "").await.expect_error(400, 100, None);
}

#[tokio::test]
async fn a_delete_with_a_language_removes_only_that_language() {
    let service = Service::start().await;
    for language in ["en_US", "de", "es"] {
        service.create_named("hello", language).await;
    }
    delete(&service, "name=hello&language=fr").await.expect_error(400, 100, Some(33));
    assert_eq!(service.list_names("").await.len(), 3);
    delete(&service, "name=hello&language=de").await.expect_success();
    assert_eq!(service.list_names("?language=de").await, [""; 0]);
    assert_eq!(service.list_names("").await, ["hello", "hello"]);
}

#[tokio::test]
async fn deleting_several_ids_is_all_or_nothing() {
    let service = Service::start().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(service.create_named(name, "en_US").await);
    }
    for invalid in [format!("hsm_ids=[%22{}%22,%221%22]", ids[0]), "hsm_ids=[%22x%22]".to_owned()] {
        delete(&service, &invalid).await.expect_error(400, 100, Some(33));
    }
    assert_eq!(service.list_names("").await.len(), 3);
    delete(&service, &format!("hsm_ids=[%22{}%22,{}]", ids[0], ids[1])).await.expect_success();
    assert_eq!(service.list_names("").await, ["c"]);
    delete(&service, &format!("hsm_ids={}", ids[2])).await.expect_success();
    assert_eq!(service.list_names("").await, [""; 0]);
}

#[tokio::test]
async fn templates_of_another_account_cannot_be_deleted() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let list = format!("/v23.0/{}/message_templates", service.stranger);
    for query in ["name=hello".to_owned(), format!("hsm_id={id}"), format!("hsm_ids=[{id}]")] {
        let path = format!("{list}?{query}");
        let response = service.call_as(STRANGER, Method::DELETE, &path, &Value::Null).await;
        response.expect_error(400, 100, Some(33));
    }
    assert_eq!(service.list_names("").await, ["hello"]);
}

#[tokio::test]
async fn an_empty_filter_deletes_nothing() {
    let service = Service::start().await;
    service.create_named("hello", "en_US").await;
    service.create_named("hello", "de").await;
    for query in ["hsm_id=&name=hello", "hsm_ids=&name=hello", "name=hello&language=%20"] {
        delete(&service, query).await.expect_error(400, 100, None);
    }
    let left = service.get(&service.templates()).await.expect_success();
    assert_eq!(left["data"].as_array().unwrap().len(), 2);
}
