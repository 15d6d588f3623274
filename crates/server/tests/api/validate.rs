//! `POST {base}/message_templates/validate`.

use axum::http::Method;
use serde_json::{Value, json};

use super::app::{TestApp, hello};

async fn validate(app: &TestApp, document: &Value) -> Value {
    let response = app.call(Method::POST, "/validate", document).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

#[tokio::test]
async fn validation_of_a_valid_document_stores_nothing() {
    let app = TestApp::start().await;
    let result = validate(
        &app,
        &json!({
            "name": "n", "language": "en_US", "category": "UTILITY", "allow_category_change": true,
            "components": [{"type": "BODY", "text": "We are open."}],
        }),
    )
    .await;
    assert_eq!(result, json!({"valid": true, "violations": [], "warnings": []}));
    let list = app.call(Method::GET, "", &Value::Null).await.json();
    assert_eq!(list["data"], json!([]));
    assert_eq!(app.create(&hello("n")).await.status, 201);
}

#[tokio::test]
async fn all_violations_are_listed_including_a_name_in_use() {
    let app = TestApp::start().await;
    let id = app.create_named("taken").await;
    let mut document = hello("taken");
    document["category"] = json!("NEWS");
    let result = validate(&app, &document).await;
    assert_eq!(result["valid"], false);
    let violations = result["violations"].as_array().unwrap();
    assert_eq!(
        (&violations[0]["rule"], &violations[1]["rule"]),
        (&json!("not-a-choice"), &json!("name-taken"))
    );
    assert_eq!(violations[1]["pointer"], "/name");
    assert!(violations[1]["hint"].as_str().unwrap().contains(&id), "{result}");
    app.account("second", &["222"], "key-2", "token-2").await;
    let path = super::app::path("222", "key-2") + "/validate";
    let request = super::app::request(Method::POST, &path, "token-2", hello("taken").to_string());
    let response = app.send(request).await;
    assert!(
        response.text().contains("name-taken") && !response.text().contains(&id),
        "{response:?}"
    );
}

#[tokio::test]
async fn the_template_parameter_validates_an_edit() {
    let app = TestApp::start().await;
    let id = app.create_named("taken").await;
    let other = app.create_named("other").await;
    let mut document = hello("taken");
    document["allow_category_change"] = json!(true);
    let validate_edit =
        async |query: &str| app.call(Method::POST, &format!("/validate{query}"), &document).await;
    assert_eq!(validate_edit(&format!("?template={id}")).await.json()["valid"], true);
    let result = validate_edit(&format!("?template={other}")).await.json();
    assert_eq!(result["violations"][0]["rule"], "unchangeable", "{result}");
    validate_edit("?template=1").await.problem(404, "template-unknown");
    validate_edit("?template=first").await.problem(400, "bad-request");
    validate_edit("?templat=1").await.problem(400, "bad-request");
}

#[tokio::test]
async fn validation_and_edit_reject_for_the_same_reasons() {
    let app = TestApp::start().await;
    let mut document = hello("locked");
    document["allow_category_change"] = json!(false);
    document["components"] = json!([{"type": "BODY", "text": "Good morning."}]);
    let created = app.create(&document).await.json();
    let item = format!("/{}", created["id"].as_str().unwrap());
    let dry = format!("/validate?template={}", &item[1..]);
    for (edit, rule, problem) in [
        (json!({"category": "UTILITY"}), "category-locked", (409, "category-locked")),
        (json!({"restore_version": 7}), "version-unknown", (404, "version-unknown")),
        (json!({}), "nothing-to-edit", (422, "invalid-template")),
    ] {
        let result = app.call(Method::POST, &dry, &edit).await.json();
        assert_eq!(result["violations"][0]["rule"], rule, "{result}");
        assert_eq!(result["warnings"], json!([]), "{edit}");
        app.call(Method::PATCH, &item, &edit).await.problem(problem.0, problem.1);
    }
    let good = json!({"components": [{"type": "BODY", "text": "Good evening."}]});
    assert_eq!(app.call(Method::POST, &dry, &good).await.json()["valid"], true);
    let disable = json!({"decision": "disable"});
    assert_eq!(app.call(Method::POST, &format!("{item}/review"), &disable).await.status, 200);
    let result = app.call(Method::POST, &dry, &good).await.json();
    assert_eq!(result["violations"][0]["rule"], "move-not-possible", "{result}");
    app.call(Method::PATCH, &item, &good).await.problem(409, "move-not-possible");
}

#[tokio::test]
async fn warnings_do_not_reject_and_have_a_pointer_and_a_hint() {
    let app = TestApp::start().await;
    let result = validate(&app, &json!({
        "name": "n", "language": "en_US", "category": "UTILITY", "allow_category_change": true,
        "colour": "red",
        "components": [{"type": "BODY", "text": "{{1}}, hello", "example": {"body_text": [["Ada"]]}}],
    }))
    .await;
    assert_eq!((&result["valid"], &result["violations"]), (&json!(true), &json!([])));
    let warnings = result["warnings"].as_array().unwrap();
    let rules: Vec<&str> = warnings.iter().map(|it| it["rule"].as_str().unwrap()).collect();
    assert!(rules.contains(&"unknown-field"), "{result}");
    assert!(rules.contains(&"body-begins-with-placeholder"), "{result}");
    for warning in warnings {
        assert!(warning["pointer"].is_string() && warning["hint"].is_string(), "{warning}");
    }
}

#[tokio::test]
async fn malformed_json_is_400_in_validation() {
    let app = TestApp::start().await;
    let path = super::app::path(super::app::PHONE, super::app::KEY) + "/validate";
    let request = super::app::request(Method::POST, &path, super::app::TOKEN, "{");
    app.send(request).await.problem(400, "malformed-json");
    let response = app.call(Method::POST, "/validate", &json!([])).await.json();
    assert_eq!(response["violations"][0]["rule"], "wrong-type");
}

/// A template that WhatsApp can have.
fn plain() -> Value {
    json!({
        "name": "plain", "language": "en_US", "category": "UTILITY", "allow_category_change": true,
        "components": [{"type": "BODY", "text": "We are open."}],
    })
}

/// A template that WhatsApp cannot have by this name and in this language.
fn spring() -> Value {
    let mut document = plain();
    document["name"] = json!("Spring Sale! 2026");
    document["language"] = json!("de_DE");
    document
}

#[tokio::test]
async fn a_create_and_an_edit_tell_how_many_warnings_a_validation_lists() {
    let app = TestApp::start().await;
    let listed = validate(&app, &spring()).await;
    let rules: Vec<&Value> =
        listed["warnings"].as_array().unwrap().iter().map(|it| &it["rule"]).collect();
    assert_eq!(rules, ["whatsapp-name", "whatsapp-language"], "{listed}");
    let key = "spring";
    for _ in 0..2 {
        let created = app.create_with_key(&spring(), key).await;
        assert_eq!((created.status.as_u16(), created.header("galley-warnings")), (201, Some("2")));
    }
    let plain = app.create(&plain()).await;
    assert_eq!((plain.status.as_u16(), plain.header("galley-warnings")), (201, None));
    let id = plain.json()["id"].as_str().unwrap().to_owned();
    let edit = json!({"components": [{"type": "BODY", "text": "Hi", "colour": 1}]});
    let edited = app.call(Method::PATCH, &format!("/{id}"), &edit).await;
    assert_eq!((edited.status.as_u16(), edited.header("galley-warnings")), (200, Some("1")));
    let refused = app.create(&json!({"name": "A b"})).await;
    assert_eq!((refused.status.as_u16(), refused.header("galley-warnings")), (422, None));
}

#[tokio::test]
async fn a_payload_that_whatsapp_cannot_take_is_rendered_with_warnings() {
    let app = TestApp::start().await;
    let id = app.create(&spring()).await.json()["id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        let rendered = app.call(Method::POST, &format!("/{id}/render"), &json!({})).await.json();
        assert_eq!(rendered["payload"]["template"]["name"], "Spring Sale! 2026");
        let warnings = &rendered["warnings"];
        assert_eq!(warnings[0]["pointer"], "/name");
        assert_eq!(warnings[0]["rule"], "whatsapp-name");
        assert_eq!(warnings[0]["hint"], "for WhatsApp, name it `spring_sale_2026`");
        assert_eq!(warnings[1]["hint"], "the closest code of WhatsApp is `de`", "{warnings}");
    }
    let id = app.create(&plain()).await.json()["id"].as_str().unwrap().to_owned();
    let rendered = app.call(Method::POST, &format!("/{id}/render"), &json!({})).await.json();
    assert_eq!(rendered.get("warnings"), None, "{rendered}");
}
