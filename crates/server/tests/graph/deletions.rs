//! Deleting by name, by name and id, and by ids.

use axum::http::Method;
use serde_json::{Value, json};

use super::service::{Answer, STRANGER, Service};

async fn delete(service: &Service, query: &str) -> Answer {
    service.call(Method::DELETE, &format!("{}?{query}", service.templates()), &Value::Null).await
}

#[tokio::test]
async fn a_name_is_deleted_in_all_languages_or_in_one() {
    let service = Service::start().await;
    service.made("hello", "en_US").await;
    let german = service.made("hello", "de").await;
    service.made("other", "de").await;
    delete(&service, &format!("name=other&hsm_id={german}")).await.refusal(400, 100, None);
    assert_eq!(service.listed("").await.len(), 3);
    let answer = delete(&service, &format!("name=hello&hsm_id={german}")).await.good();
    assert_eq!(answer, json!({"success": true}));
    assert_eq!(service.listed("").await, ["other", "hello"]);
    service.made("hello", "de").await;
    delete(&service, "name=hello").await.good();
    assert_eq!(service.listed("").await, ["other"]);
    delete(&service, "name=hello").await.refusal(400, 100, Some(33));
    delete(&service, "").await.refusal(400, 100, None);
}

#[tokio::test]
async fn a_language_that_is_named_goes_alone() {
    let service = Service::start().await;
    for language in ["en_US", "de", "es"] {
        service.made("hello", language).await;
    }
    delete(&service, "name=hello&language=fr").await.refusal(400, 100, Some(33));
    assert_eq!(service.listed("").await.len(), 3);
    delete(&service, "name=hello&language=de").await.good();
    assert_eq!(service.listed("?language=de").await, [""; 0]);
    assert_eq!(service.listed("").await, ["hello", "hello"]);
}

#[tokio::test]
async fn several_are_deleted_by_their_ids_or_none_is() {
    let service = Service::start().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(service.made(name, "en_US").await);
    }
    for odd in [format!("hsm_ids=[%22{}%22,%221%22]", ids[0]), "hsm_ids=[%22x%22]".to_owned()] {
        delete(&service, &odd).await.refusal(400, 100, Some(33));
    }
    assert_eq!(service.listed("").await.len(), 3);
    delete(&service, &format!("hsm_ids=[%22{}%22,{}]", ids[0], ids[1])).await.good();
    assert_eq!(service.listed("").await, ["c"]);
    delete(&service, &format!("hsm_ids={}", ids[2])).await.good();
    assert_eq!(service.listed("").await, [""; 0]);
}

#[tokio::test]
async fn nobody_deletes_what_belongs_to_another() {
    let service = Service::start().await;
    let id = service.made("hello", "en_US").await;
    let list = format!("/v23.0/{}/message_templates", service.stranger);
    for query in ["name=hello".to_owned(), format!("hsm_id={id}"), format!("hsm_ids=[{id}]")] {
        let path = format!("{list}?{query}");
        let answer = service.call_as(STRANGER, Method::DELETE, &path, &Value::Null).await;
        answer.refusal(400, 100, Some(33));
    }
    assert_eq!(service.listed("").await, ["hello"]);
}

#[tokio::test]
async fn whoever_names_one_and_leaves_the_place_empty_deletes_nothing() {
    let service = Service::start().await;
    service.made("hello", "en_US").await;
    service.made("hello", "de").await;
    for query in ["hsm_id=&name=hello", "hsm_ids=&name=hello", "name=hello&language=%20"] {
        delete(&service, query).await.refusal(400, 100, None);
    }
    let left = service.get(&service.templates()).await.good();
    assert_eq!(left["data"].as_array().unwrap().len(), 2);
}
