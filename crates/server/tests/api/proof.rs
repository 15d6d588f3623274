//! `POST {base}/message_templates/proof` and `GET {base}/message_templates/{id}/proof`.

use axum::http::Method;
use galley_domain::{
    account::{Scope, Scopes},
    rulebook::WHATSAPP,
};
use galley_server::Limits;
use serde_json::{Value, json};

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, path, request};
use crate::harness::TestAccount;

async fn proof(app: &TestApp, request: &Value) -> Value {
    let response = app.call(Method::POST, "/proof", request).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

fn text_of(runs: &Value) -> String {
    runs.as_array().unwrap().iter().map(|run| run["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_document_is_shown_with_samples_or_values_and_is_not_stored() {
    let app = TestApp::start().await;
    let shown = proof(&app, &json!({"document": hello("n")})).await;
    assert_eq!(
        shown,
        json!({
            "approved": false, "direction": "ltr", "violations": [],
            "body": [
                {"text": "Hello ", "style": []},
                {"text": "Ada", "style": [], "placeholder": {"name": "1", "filled": true}},
            ],
        })
    );
    let values = json!({"body": ["*Bo*"]});
    let shown = proof(&app, &json!({"document": hello("n"), "values": values})).await;
    assert_eq!(
        (text_of(&shown["body"]), &shown["body"][1]["style"]),
        ("Hello Bo".to_owned(), &json!(["bold"]))
    );
    let list = app.call(Method::GET, "", &Value::Null).await.json();
    assert_eq!(list["data"], json!([]));
}

#[tokio::test]
async fn an_invalid_document_is_shown_with_the_violations_of_a_dry_run() {
    let app = TestApp::start().await;
    let mut document = hello("n");
    document["category"] = json!("NEWS");
    document["components"][0]["example"] = Value::Null;
    let shown = proof(&app, &json!({"document": document})).await;
    assert_eq!(text_of(&shown["body"]), "Hello {{1}}");
    let validated = app.call(Method::POST, "/validate", &document).await.json();
    assert_eq!(shown["violations"], validated["violations"]);
    assert_eq!(shown["violations"].as_array().unwrap().len(), 2, "{shown}");
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_refused() {
    let app = TestApp::start_with(Limits { body_bytes: 1_000, ..Limits::default() }).await;
    let problem =
        app.call(Method::POST, "/proof", &json!({})).await.problem(422, "invalid-template");
    assert_eq!(problem["violations"][0]["pointer"], "/document");
    let send = async |body: String| {
        app.send(request(Method::POST, &(path(PHONE, KEY) + "/proof"), TOKEN, body)).await
    };
    send("{".to_owned()).await.problem(400, "malformed-json");
    send("x".repeat(1_001)).await.problem(413, "too-large");
    app.call(Method::POST, "/proof?x=1", &json!({"document": {}}))
        .await
        .problem(400, "bad-request");
    app.call(Method::GET, "/proof", &Value::Null).await.problem(405, "method-not-allowed");
}

#[tokio::test]
async fn every_version_of_a_template_is_shown_whatever_its_status() {
    let app = TestApp::start_reviewed().await;
    let id = app.create_named("n").await;
    let item = format!("/{id}");
    let show = async |query: &str| {
        app.call(Method::GET, &format!("{item}/proof{query}"), &Value::Null).await
    };
    let shown = show("").await.json();
    assert_eq!(
        (&shown["approved"], text_of(&shown["body"])),
        (&json!(false), "Hello Ada".to_owned())
    );
    app.call(Method::POST, &format!("{item}/review"), &json!({"decision": "approve"})).await;
    let edit = json!({"components": [{"type": "BODY", "text": "*Good* morning"}]});
    assert_eq!(app.call(Method::PATCH, &item, &edit).await.status, 200);
    let shown = show("").await.json();
    assert_eq!(
        (&shown["approved"], text_of(&shown["body"])),
        (&json!(false), "Good morning".to_owned())
    );
    let shown = show("?version=1").await.json();
    assert_eq!(
        (&shown["approved"], text_of(&shown["body"])),
        (&json!(true), "Hello Ada".to_owned())
    );
    show("?version=3").await.problem(404, "version-unknown");
    show("?version=0").await.problem(400, "bad-request");
    show("?versions=1").await.problem(400, "bad-request");
    let unknown = app.call(Method::GET, "/77/proof", &Value::Null).await;
    unknown.problem(404, "template-unknown");
}

#[tokio::test]
async fn proofs_and_dry_runs_need_the_scope_read_and_show_only_the_own_account() {
    let app = TestApp::start().await;
    let id = app.create_named("n").await;
    for (name, scope, status) in [("reader", Scope::Read, 200), ("writer", Scope::Write, 403)] {
        let scopes = Scopes::of([scope]);
        let phones = [name];
        let account = TestAccount {
            phones: &phones,
            key: name,
            token: name,
            scopes,
            ..TestAccount::named(name)
        };
        (*app).account(account).await;
        for (rest, document) in
            [("/proof", json!({"document": hello("m")})), ("/validate", hello("m"))]
        {
            let path = path(name, name) + rest;
            let response = app.send(request(Method::POST, &path, name, document.to_string())).await;
            assert_eq!(response.status, status, "{name} {path} {response:?}");
        }
        let path = format!("{}/{id}/proof", path(name, name));
        let response = app.send(request(Method::GET, &path, name, "")).await;
        assert_eq!(response.status, if status == 200 { 404 } else { 403 }, "{response:?}");
    }
}

#[tokio::test]
async fn a_proof_reads_the_rulebook_of_the_account() {
    let app = TestApp::start().await;
    let account = TestAccount {
        rulebook: &WHATSAPP,
        phones: &["222"],
        key: "k2",
        token: "t2",
        ..TestAccount::named("shop")
    };
    (*app).account(account).await;
    let document = json!({
        "name": "Code", "language": "he", "category": "AUTHENTICATION",
        "components": [{"type": "BODY"}, {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]}],
    });
    let body = json!({"document": document}).to_string();
    let response =
        app.send(request(Method::POST, &(path("222", "k2") + "/proof"), "t2", body)).await;
    let shown = response.json();
    assert_eq!((&shown["code"], &shown["direction"]), (&json!("123456"), &json!("rtl")), "{shown}");
    assert_eq!(text_of(&shown["body"]), "Your code is 123456.");
    let rules: Vec<&Value> =
        shown["violations"].as_array().unwrap().iter().map(|it| &it["rule"]).collect();
    assert_eq!(rules, ["name-form"]);
}

#[tokio::test]
async fn a_hostile_document_gets_a_limited_response() {
    let app = TestApp::start().await;
    let mut document = hello("n");
    document["components"][0] = json!({"type": "BODY", "text": "*{{1}}* _a_".repeat(9_000),
        "example": {"body_text": [["`x` ".repeat(20_000)]]}});
    let response = app.call(Method::POST, "/proof", &json!({"document": document})).await;
    let length = response.text().len();
    assert!(length < 8 << 20, "{length} bytes");
    assert_eq!(response.json()["truncated"], true);
}
