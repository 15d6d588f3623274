//! `GET {base}/message_templates/{id}`.

use axum::http::Method;
use serde_json::json;

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, path, request};

#[tokio::test]
async fn a_created_template_is_read_back_completely() {
    let app = TestApp::start().await;
    let created = app.create(&hello("welcome")).await.json();
    let response = app.show(created["id"].as_str().unwrap()).await;
    assert_eq!((response.status.as_u16(), response.header("etag")), (200, Some("\"1\"")));
    assert_eq!(
        response.json(),
        json!({
            "id": created["id"], "name": "welcome", "language": "en_US", "category": "MARKETING",
            "allow_category_change": false, "status": "APPROVED", "phone_number_id": PHONE,
            "version": 1, "live_version": 1,
            "created_at": "2026-09-21T14:13:20.000Z", "updated_at": "2026-09-21T14:13:20.000Z",
            "components": [{"type": "BODY", "text": "Hello {{1}}", "example": {"body_text": [["Ada"]]}}],
        })
    );
}

#[tokio::test]
async fn an_unknown_id_and_another_accounts_template_are_both_404() {
    let app = TestApp::start().await;
    app.account("second", &["222"], "key-2", "token-2").await;
    let id = app.create(&hello("welcome")).await.json()["id"].as_str().unwrap().to_owned();
    let by_stranger = format!("{}/{id}", path("222", "key-2"));
    app.send(request(Method::GET, &by_stranger, "token-2", ""))
        .await
        .problem(404, "template-unknown");
    for invalid in ["1", "0", "007", "abc", "-1", "99999999999999999999", "1%2F2", "%00", "%ff"] {
        app.show(invalid).await.problem(404, "template-unknown");
    }
    let without_id = format!("{}//", path(PHONE, KEY));
    assert_eq!(app.send(request(Method::GET, &without_id, TOKEN, "")).await.status.as_u16(), 404);
}

#[tokio::test]
async fn a_template_can_be_read_with_any_phone_number_of_its_account() {
    let app = TestApp::start().await;
    let id = app.create(&hello("welcome")).await.json()["id"].as_str().unwrap().to_owned();
    let elsewhere = format!("{}/{id}", path("15550002222", KEY));
    let response = app.send(request(Method::GET, &elsewhere, TOKEN, "")).await;
    assert_eq!(
        (response.status.as_u16(), &response.json()["phone_number_id"]),
        (200, &json!(PHONE))
    );
}

#[tokio::test]
async fn an_impossible_version_number_is_an_invalid_parameter() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    for invalid in ["0", "00", "9007199254740992", "18446744073709551615"] {
        for rest in [format!("/{id}?version={invalid}"), format!("/{id}/versions?after={invalid}")]
        {
            let response = app.call(Method::GET, &rest, &json!(null)).await;
            response.problem(400, "bad-request");
        }
    }
    let last = format!("/{id}?version=9007199254740991");
    app.call(Method::GET, &last, &json!(null)).await.problem(404, "version-unknown");
}

#[tokio::test]
async fn a_foreign_tag_can_contain_a_comma() {
    let app = TestApp::start().await;
    let item = format!("/{}", app.create_named("welcome").await);
    let tag = |tag| Some(("if-none-match", tag));
    let response = app.call_with(Method::GET, &item, &json!(null), tag("\"a,b\"")).await;
    assert_eq!(response.status, 200);
    let response = app.call_with(Method::GET, &item, &json!(null), tag("\"a,b\", \"1\"")).await;
    assert_eq!(response.status, 304);
}
