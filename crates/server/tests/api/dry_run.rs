//! `POST {base}/message_templates/validate`.

use axum::http::Method;
use serde_json::{Value, json};

use super::app::{TestApp, hello};

async fn validate(app: &TestApp, document: &Value) -> Value {
    let answer = app.call(Method::POST, "/validate", document).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn a_good_document_is_valid_and_nothing_is_kept() {
    let app = TestApp::start().await;
    let verdict = validate(
        &app,
        &json!({
            "name": "n", "language": "en_US", "category": "UTILITY", "allow_category_change": true,
            "components": [{"type": "BODY", "text": "We are open."}],
        }),
    )
    .await;
    assert_eq!(verdict, json!({"valid": true, "violations": [], "warnings": []}));
    let list = app.call(Method::GET, "", &Value::Null).await.json();
    assert_eq!(list["data"], json!([]));
    assert_eq!(app.create(&hello("n")).await.status, 201);
}

#[tokio::test]
async fn everything_wrong_is_told_at_once_a_taken_name_included() {
    let app = TestApp::start().await;
    let id = app.made("taken").await;
    let mut document = hello("taken");
    document["category"] = json!("NEWS");
    let verdict = validate(&app, &document).await;
    assert_eq!(verdict["valid"], false);
    let told = verdict["violations"].as_array().unwrap();
    assert_eq!(
        (&told[0]["rule"], &told[1]["rule"]),
        (&json!("not-a-choice"), &json!("name-taken"))
    );
    assert_eq!(told[1]["pointer"], "/name");
    assert!(told[1]["hint"].as_str().unwrap().contains(&id), "{verdict}");
    app.account("second", &["222"], "key-2", "token-2").await;
    let theirs = super::app::path("222", "key-2") + "/validate";
    let sent = super::app::request(Method::POST, &theirs, "token-2", hello("taken").to_string());
    let answer = app.send(sent).await;
    assert!(answer.text.contains("name-taken") && !answer.text.contains(&id), "{answer:?}");
}

#[tokio::test]
async fn an_edit_is_tried_out_by_naming_the_template_that_has_the_name_already() {
    let app = TestApp::start().await;
    let id = app.made("taken").await;
    let other = app.made("other").await;
    let mut document = hello("taken");
    document["allow_category_change"] = json!(true);
    let try_out =
        async |query: &str| app.call(Method::POST, &format!("/validate{query}"), &document).await;
    assert_eq!(try_out(&format!("?template={id}")).await.json()["valid"], true);
    let verdict = try_out(&format!("?template={other}")).await.json();
    assert_eq!(verdict["violations"][0]["rule"], "unchangeable", "{verdict}");
    try_out("?template=1").await.problem(404, "template-unknown");
    try_out("?template=first").await.problem(400, "bad-request");
    try_out("?templat=1").await.problem(400, "bad-request");
}

#[tokio::test]
async fn what_stands_against_an_edit_is_told_as_the_edit_tells_it() {
    let app = TestApp::start().await;
    let mut document = hello("locked");
    document["allow_category_change"] = json!(false);
    let made = app.create(&document).await.json();
    let item = format!("/{}", made["id"].as_str().unwrap());
    let dry = format!("/validate?template={}", &item[1..]);
    for (edit, rule, problem) in [
        (json!({"category": "UTILITY"}), "category-locked", (409, "category-locked")),
        (json!({"restore_version": 7}), "version-unknown", (404, "version-unknown")),
        (json!({}), "nothing-to-edit", (422, "invalid-template")),
    ] {
        let verdict = app.call(Method::POST, &dry, &edit).await.json();
        assert_eq!(verdict["violations"][0]["rule"], rule, "{verdict}");
        assert_eq!(verdict["warnings"], json!([]), "{edit}");
        app.call(Method::PATCH, &item, &edit).await.problem(problem.0, problem.1);
    }
    let good = json!({"components": [{"type": "BODY", "text": "Good evening."}]});
    assert_eq!(app.call(Method::POST, &dry, &good).await.json()["valid"], true);
    let disable = json!({"decision": "disable"});
    assert_eq!(app.call(Method::POST, &format!("{item}/review"), &disable).await.status, 200);
    let verdict = app.call(Method::POST, &dry, &good).await.json();
    assert_eq!(verdict["violations"][0]["rule"], "move-not-possible", "{verdict}");
    app.call(Method::PATCH, &item, &good).await.problem(409, "move-not-possible");
}

#[tokio::test]
async fn warnings_do_not_block_and_say_where_and_what_to_do() {
    let app = TestApp::start().await;
    let verdict = validate(&app, &json!({
        "name": "n", "language": "en_US", "category": "UTILITY", "allow_category_change": true,
        "colour": "red",
        "components": [{"type": "BODY", "text": "{{1}}, hello", "example": {"body_text": [["Ada"]]}}],
    }))
    .await;
    assert_eq!((&verdict["valid"], &verdict["violations"]), (&json!(true), &json!([])));
    let warnings = verdict["warnings"].as_array().unwrap();
    let rules: Vec<&str> = warnings.iter().map(|it| it["rule"].as_str().unwrap()).collect();
    assert!(rules.contains(&"unknown-field"), "{verdict}");
    assert!(rules.contains(&"body-begins-with-placeholder"), "{verdict}");
    for warning in warnings {
        assert!(warning["pointer"].is_string() && warning["hint"].is_string(), "{warning}");
    }
}

#[tokio::test]
async fn what_is_no_json_is_400_here_too() {
    let app = TestApp::start().await;
    let path = super::app::path(super::app::PHONE, super::app::KEY) + "/validate";
    let sent = super::app::request(Method::POST, &path, super::app::TOKEN, "{");
    app.send(sent).await.problem(400, "malformed-json");
    let answer = app.call(Method::POST, "/validate", &json!([])).await.json();
    assert_eq!(answer["violations"][0]["rule"], "wrong-type");
}
