//! `GET {base}/message_templates/{id}`.

use axum::http::Method;
use serde_json::json;

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, path, request};

#[tokio::test]
async fn a_created_template_reads_back_with_all_that_is_known_of_it() {
    let app = TestApp::start().await;
    let created = app.create(&hello("welcome")).await.json();
    let answer = app.show(created["id"].as_str().unwrap()).await;
    assert_eq!((answer.status.as_u16(), answer.header("etag")), (200, Some("\"1\"")));
    assert_eq!(
        answer.json(),
        json!({
            "id": created["id"], "name": "welcome", "language": "en_US", "category": "MARKETING",
            "allow_category_change": false, "status": "APPROVED", "phone_number_id": PHONE,
            "version": 1, "live_version": 1,
            "created_at": "2026-09-21T14:13:20Z", "updated_at": "2026-09-21T14:13:20Z",
            "components": [{"type": "BODY", "text": "Hello {{1}}", "example": {"body_text": [["Ada"]]}}],
        })
    );
}

#[tokio::test]
async fn an_unknown_id_and_another_accounts_template_are_both_404() {
    let app = TestApp::start().await;
    app.account("second", &["222"], "key-2", "token-2").await;
    let id = app.create(&hello("welcome")).await.json()["id"].as_str().unwrap().to_owned();
    let theirs = format!("{}/{id}", path("222", "key-2"));
    app.send(request(Method::GET, &theirs, "token-2", "")).await.problem(404, "template-unknown");
    for odd in ["1", "0", "007", "abc", "-1", "99999999999999999999", "1%2F2", "%00", "%ff"] {
        app.show(odd).await.problem(404, "template-unknown");
    }
    let nothing = format!("{}//", path(PHONE, KEY));
    assert_eq!(app.send(request(Method::GET, &nothing, TOKEN, "")).await.status.as_u16(), 404);
}

#[tokio::test]
async fn a_template_is_the_accounts_whatever_phone_number_of_its_own_asks() {
    let app = TestApp::start().await;
    let id = app.create(&hello("welcome")).await.json()["id"].as_str().unwrap().to_owned();
    let elsewhere = format!("{}/{id}", path("15550002222", KEY));
    let answer = app.send(request(Method::GET, &elsewhere, TOKEN, "")).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["phone_number_id"]), (200, &json!(PHONE)));
}

#[tokio::test]
async fn a_number_that_no_version_can_have_is_a_bad_parameter() {
    let app = TestApp::start().await;
    let id = app.made("welcome").await;
    for odd in ["0", "00", "9007199254740992", "18446744073709551615"] {
        for rest in [format!("/{id}?version={odd}"), format!("/{id}/versions?after={odd}")] {
            let answer = app.call(Method::GET, &rest, &json!(null)).await;
            answer.problem(400, "bad-request");
        }
    }
    let last = format!("/{id}?version=9007199254740991");
    app.call(Method::GET, &last, &json!(null)).await.problem(404, "version-unknown");
}

#[tokio::test]
async fn a_tag_of_somebody_else_may_hold_a_comma() {
    let app = TestApp::start().await;
    let item = format!("/{}", app.made("welcome").await);
    let tag = |tag| Some(("if-none-match", tag));
    let answer = app.call_with(Method::GET, &item, &json!(null), tag("\"a,b\"")).await;
    assert_eq!(answer.status, 200);
    let answer = app.call_with(Method::GET, &item, &json!(null), tag("\"a,b\", \"1\"")).await;
    assert_eq!(answer.status, 304);
}
