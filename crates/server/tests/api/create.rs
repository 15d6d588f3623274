//! `POST {base}/message_templates`.

use galley_domain::template::Review;
use serde_json::{Value, json};

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, path, post, request};

fn with(components: &Value) -> Value {
    let mut document = hello("t");
    document["components"] = components.clone();
    document
}

fn with_buttons(buttons: &Value) -> Value {
    with(&json!([{"type": "BODY", "text": "b"}, {"type": "BUTTONS", "buttons": buttons}]))
}

/// Creates the template, reads it back, and returns its components.
async fn stored_components(document: &Value) -> Value {
    let app = TestApp::start().await;
    let created = app.create(document).await;
    assert_eq!(created.status.as_u16(), 201, "{created:?}");
    app.show(created.json()["id"].as_str().unwrap()).await.json()["components"].clone()
}

#[tokio::test]
async fn a_create_returns_201_with_exactly_id_status_and_category() {
    let app = TestApp::start().await;
    let response = app.create(&hello("welcome")).await;
    assert_eq!(response.status.as_u16(), 201);
    assert_eq!(response.header("content-type"), Some("application/json"));
    let id = response.json()["id"].as_str().unwrap().to_owned();
    assert!(id.parse::<u64>().is_ok_and(|id| id > 0 && id < 1 << 53), "{id}");
    assert_eq!(
        response.text(),
        format!(r#"{{"id":"{id}","status":"APPROVED","category":"MARKETING"}}"#)
    );
    assert_eq!(response.header("location"), Some(&*format!("message_templates/{id}")));
}

#[tokio::test]
async fn a_name_is_unique_across_all_templates_of_all_accounts() {
    let app = TestApp::start().await;
    app.account("second", &["222"], "key-2", "token-2").await;
    let first = app.create(&hello("welcome")).await.json()["id"].clone();
    let again = app.create(&hello("welcome")).await.problem(409, "name-taken");
    assert_eq!(again["existing_id"], first);
    let mut other = post(hello("welcome").to_string());
    *other.uri_mut() = path("222", "key-2").parse().unwrap();
    other.headers_mut().insert("authorization", "Bearer token-2".parse().unwrap());
    let other = app.send(other).await.problem(409, "name-taken");
    assert_eq!(other.get("existing_id"), None, "the template of another account is not revealed");
}

#[tokio::test]
async fn a_body_alone_is_a_valid_template() {
    let body = json!([{"type": "BODY", "text": "Just this"}]);
    assert_eq!(stored_components(&with(&body)).await, body);
}

#[tokio::test]
async fn a_body_with_buttons_is_a_valid_template() {
    let components = json!([
        {"type": "BODY", "text": "Choose"},
        {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Yes"}]},
    ]);
    assert_eq!(stored_components(&with(&components)).await, components);
}

#[tokio::test]
async fn a_template_can_have_all_four_components_and_every_button_type() {
    let components = json!([
        {"type": "HEADER", "format": "MEDIA", "example": {"media_url": "https://shop.example/a.png"}},
        {"type": "BODY", "text": "Hi {{1}}, {{2}} off", "example": {"body_text": [["Ada", "20%"]]}},
        {"type": "FOOTER", "text": "Reply STOP to opt out"},
        {"type": "BUTTONS", "buttons": [
            {"type": "QUICK_REPLY", "text": "Stop"},
            {"type": "URL", "text": "Shop", "url": "https://shop.example/{{1}}", "example": ["sale"]},
            {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
            {"type": "COPY_CODE", "example": "SAVE20"},
        ]},
    ]);
    assert_eq!(stored_components(&with(&components)).await, components);
}

#[tokio::test]
async fn a_text_header_can_contain_placeholders_with_or_without_samples() {
    for components in [
        json!([{"type": "HEADER", "format": "TEXT", "text": "Sale"}, {"type": "BODY", "text": "b"}]),
        json!([{"type": "HEADER", "format": "TEXT", "text": "Hi {{1}}"}, {"type": "BODY", "text": "b"}]),
        json!([{"type": "HEADER", "format": "TEXT", "text": "Hi {{1}}", "example": {"header_text": ["Ada"]}}, {"type": "BODY", "text": "b"}]),
    ] {
        assert_eq!(stored_components(&with(&components)).await, components);
    }
}

#[tokio::test]
async fn letter_case_of_types_formats_and_categories_does_not_matter() {
    let mut document = with(&json!([
        {"type": "header", "format": "media", "example": {"media_url": "http://a.b/c"}},
        {"type": "Body", "text": "b"},
        {"type": "buttons", "buttons": [
            {"type": "url", "text": "Go", "url": "https://a.b"}, {"type": "copy_code", "example": "X"},
        ]},
    ]));
    document["category"] = json!("utility");
    let app = TestApp::start().await;
    let created = app.create(&document).await;
    assert_eq!(created.json()["category"], "UTILITY");
    let stored = app.show(created.json()["id"].as_str().unwrap()).await.json();
    assert_eq!(stored["category"], "UTILITY");
    let types: Vec<_> =
        stored["components"].as_array().unwrap().iter().map(|it| it["type"].clone()).collect();
    assert_eq!(types, ["HEADER", "BODY", "BUTTONS"]);
    assert_eq!(stored["components"][0]["format"], "MEDIA");
    assert_eq!(stored["components"][2]["buttons"][1]["type"], "COPY_CODE");
}

#[tokio::test]
async fn a_rejection_lists_every_violation_with_its_pointer_and_hint() {
    let app = TestApp::start().await;
    let mut document = with_buttons(&json!([{"type": "CALL", "text": "Call"}]));
    document["language"] = json!("english");
    document["components"][0]["text"] = json!("Hi {{name}}");
    let problem = app.create(&document).await.problem(422, "invalid-template");
    let expected = json!({
      "detail": "4 rules are broken",
      "request_id": problem["request_id"],
      "status": 422,
      "title": "The template is invalid",
      "type": "/problems/invalid-template",
      "violations": [
        {
          "hint": "did you mean `en_US`?",
          "message": "`english` does not have the form language_REGION",
          "pointer": "/language",
          "rule": "language-form"
        },
        {
          "hint": "number the placeholders: `{{1}}`, `{{2}}` … up to `{{999}}`",
          "message": "`{{name}}` is not a placeholder",
          "pointer": "/components/0/text",
          "rule": "placeholder-syntax",
          "span": {
            "end": 11,
            "start": 3
          }
        },
        {
          "hint": "Sample values for the placeholders.",
          "message": "is required",
          "pointer": "/components/0/example",
          "rule": "required"
        },
        {
          "hint": "write one of QUICK_REPLY, URL, PHONE_NUMBER, COPY_CODE",
          "message": "`CALL` is not one of QUICK_REPLY, URL, PHONE_NUMBER, COPY_CODE",
          "pointer": "/components/1/buttons/0/type",
          "rule": "not-a-choice"
        }
      ]
    });
    assert_eq!(problem, expected);
}

#[tokio::test]
async fn many_violations_do_not_make_a_large_response() {
    let app = TestApp::start().await;
    let text = "{{x}}".repeat(800);
    let problem = app.create(&with(&json!([{"type": "BODY", "text": text}]))).await;
    assert!(problem.text().len() < 64 * 1_024, "{}", problem.text().len());
    let problem = problem.problem(422, "invalid-template");
    assert_eq!(
        (problem["violations"].as_array().unwrap().len(), &problem["more"]),
        (100, &json!(701)),
        "800 placeholders, and the missing samples"
    );
}

#[tokio::test]
async fn a_missing_or_null_required_field_is_a_violation() {
    let app = TestApp::start().await;
    for field in ["name", "language", "category", "allow_category_change", "components"] {
        let mut document = hello("t");
        document[field] = Value::Null;
        let problem = app.create(&document).await.problem(422, "invalid-template");
        assert_eq!(problem["violations"][0]["pointer"], format!("/{field}"));
        assert_eq!(problem["violations"][0]["rule"], "required");
    }
}

#[tokio::test]
async fn unknown_fields_are_ignored_and_not_stored() {
    let app = TestApp::start().await;
    let mut document = hello("t");
    document["colour"] = json!({"deep": [1, 2, {"x": null}]});
    document["id"] = json!("7");
    document["status"] = json!("DISABLED");
    let created = app.create(&document).await;
    assert_eq!(created.json()["status"], "APPROVED");
    let stored = app.show(created.json()["id"].as_str().unwrap()).await.json();
    assert_eq!((stored.get("colour"), &stored["id"]), (None, &created.json()["id"]));
}

#[tokio::test]
async fn under_manual_review_a_new_template_is_pending() {
    let app = TestApp::start().await;
    app.account_with("careful", &["333"], "key-3", "token-3", Review::Manual).await;
    let create =
        request(http::Method::POST, &path("333", "key-3"), "token-3", hello("t").to_string());
    let created = app.send(create).await;
    assert_eq!((created.status.as_u16(), &created.json()["status"]), (201, &json!("PENDING")));
}

#[tokio::test]
async fn names_and_texts_are_returned_byte_for_byte() {
    let app = TestApp::start().await;
    let text =
        "e\u{301} é \u{202e}abc\u{202c} \u{200b} 👩‍👩‍👧 \"quoted\" \\ / \u{2028} \u{feff} \t\r\n end";
    let name = "na\u{308}me \u{fdd0} 名前";
    let mut document = hello(name);
    document["components"] = json!([{"type": "BODY", "text": text}]);
    let created = app.create(&document).await;
    let stored = app.show(created.json()["id"].as_str().unwrap()).await.json();
    assert_eq!(stored["name"], name);
    assert_eq!(stored["components"][0]["text"], text);
}

#[tokio::test]
async fn only_the_api_version_in_the_path_exists() {
    let app = TestApp::start().await;
    for version in ["v1", "v1.1", "v2.0", "1.0"] {
        let elsewhere = path(PHONE, KEY).replace("v1.0", version);
        let create = request(http::Method::POST, &elsewhere, TOKEN, hello("t").to_string());
        app.send(create).await.problem(404, "not-found");
    }
}

mod http {
    pub(super) use axum::http::Method;
}
