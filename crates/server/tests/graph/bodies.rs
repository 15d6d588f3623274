//! Documents in all forms that clients send.

use axum::{
    body::Body,
    http::{Method, Request, header},
};
use serde_json::{Value, json};

use super::service::{Service, TOKEN, hello};
use crate::harness::TestResponse;

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

async fn send(
    service: &Service,
    method: Method,
    path: &str,
    content_type: &str,
    body: String,
) -> TestResponse {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(header::CONTENT_TYPE, content_type);
    let request = request.header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
    service.send(request.body(Body::from(body)).unwrap()).await
}

/// A document as a form, in which values other than strings are JSON text.
fn form(document: &Value) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in document.as_object().unwrap() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        form.append_pair(name, &text);
    }
    form.finish()
}

#[tokio::test]
async fn a_document_can_be_json_a_form_a_query_or_a_json_string() {
    let service = Service::start().await;
    let mut document = hello("1");
    document["message_send_ttl_seconds"] = json!(86_400);
    document["allow_category_change"] = json!(true);
    document["category"] = json!("marketing");
    document["id"] = json!(service.shop.to_string());
    document["components"] = json!([{"type": "body", "text": "Hello {{1}} in this town + all",
        "example": {"body_text": [["Ada & Co"]]}}]);
    let list = service.templates();
    let mut ids = Vec::new();
    for (number, content_type) in [JSON, FORM, JSON, JSON, ""].into_iter().enumerate() {
        document["name"] = json!((number + 1).to_string());
        let (path, body) = match number {
            1 => (list.clone(), form(&document)),
            2 => (format!("{list}?{}", form(&document)), String::new()),
            3 => (list.clone(), json!(document.to_string()).to_string()),
            _ => (list.clone(), document.to_string()),
        };
        let mut request = Request::builder().method(Method::POST).uri(path);
        if !content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        let request = request.header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
        let created = service.send(request.body(Body::from(body)).unwrap()).await.expect_success();
        ids.push(created["id"].as_str().unwrap().to_owned());
    }
    let mut read = Vec::new();
    for id in &ids {
        let fields = "components,category,message_send_ttl_seconds,parameter_format";
        let mut template =
            service.get(&format!("/v23.0/{id}?fields={fields}")).await.expect_success();
        template["id"] = json!("");
        read.push(template);
    }
    assert_eq!(read[0]["message_send_ttl_seconds"], 86_400);
    assert!(read.iter().all(|template| *template == read[0]), "{read:?}");
}

#[tokio::test]
async fn an_edit_can_be_a_form() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let edit = form(&json!({"components": [{"type": "BODY", "text": "Good evening"}]}));
    send(&service, Method::POST, &format!("/v23.0/{id}"), FORM, edit).await.expect_success();
    let read = service.get(&format!("/v23.0/{id}")).await.expect_success();
    assert_eq!(read["components"][0]["text"], "Good evening");
}

#[tokio::test]
async fn an_unneeded_body_is_ignored() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let list = service.templates();
    for body in ["{}", "", "nonsense"] {
        send(&service, Method::GET, &list, JSON, body.to_owned()).await.expect_success();
        send(&service, Method::GET, &format!("/v23.0/{id}"), JSON, body.to_owned())
            .await
            .expect_success();
    }
    let delete = format!("{list}?name=hello&id={}", service.shop);
    send(&service, Method::DELETE, &delete, JSON, "{}".to_owned()).await.expect_success();
}

#[tokio::test]
async fn an_invalid_body_is_rejected() {
    let service = Service::start().await;
    let list = service.templates();
    let large = format!("{{\"name\":\"{}\"}}", "a".repeat(300 * 1_024));
    for (content_type, body, status) in [
        (JSON, "{", 400),
        (JSON, "\"{\"", 400),
        (JSON, "[]", 400),
        (JSON, "7", 400),
        (JSON, "", 400),
        (FORM, "", 400),
        (FORM, "components=nonsense", 400),
        ("text/plain", "{}", 415),
        ("multipart/form-data; boundary=x", "", 415),
        (JSON, &*large, 413),
        (FORM, &*large, 413),
    ] {
        let response = send(&service, Method::POST, &list, content_type, body.to_owned()).await;
        let error: Value = serde_json::from_str(response.text()).unwrap();
        assert_eq!(
            (response.status.as_u16(), &error["error"]["code"]),
            (status, &json!(100)),
            "{body:.40}"
        );
    }
    // The size limit applies to the document, not to its percent-encoded form.
    let spaces = "%20".repeat(200 * 1_024);
    let response = send(&service, Method::POST, &list, FORM, format!("x={spaces}")).await;
    assert_eq!(response.status, 400, "{}", response.text());
}

#[tokio::test]
async fn the_query_supplies_fields_that_a_form_lacks() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    for (query, body, lifetime) in [
        ("message_send_ttl_seconds=50000", "", 50_000),
        ("message_send_ttl_seconds=60000", "x=y", 60_000),
        ("message_send_ttl_seconds=1", "message_send_ttl_seconds=70000", 70_000),
    ] {
        let path = format!("/v23.0/{id}");
        let request = Request::builder().method(Method::POST).uri(format!("{path}?{query}"));
        let request = request.header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        service.send(request.body(Body::from(body)).unwrap()).await.expect_success();
        let read = service.get(&path).await.expect_success();
        assert_eq!(read["message_send_ttl_seconds"], lifetime, "{query} {body}");
    }
}
