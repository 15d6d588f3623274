//! `GET {base}/message_templates`.

use axum::http::Method;
use serde_json::{Value, json};

use super::app::{TestApp, hello, path, request};
use crate::harness::TestResponse;

async fn list(app: &TestApp, query: &str) -> TestResponse {
    app.call(Method::GET, query, &Value::Null).await
}

fn names(response: &TestResponse) -> Vec<String> {
    let page = response.json();
    let data = page["data"].as_array().unwrap_or_else(|| panic!("{response:?}"));
    data.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_list_contains_complete_templates_newest_first() {
    let app = TestApp::start().await;
    assert_eq!(list(&app, "").await.json(), json!({"data": [], "paging": {"cursors": {}}}));
    let first = app.create_named("first").await;
    let second = app.create_named("second").await;
    let response = list(&app, "").await;
    assert_eq!(response.status, 200);
    let templates = [app.show(&second).await.json(), app.show(&first).await.json()];
    assert_eq!(
        response.json(),
        json!({"data": templates, "paging": {"cursors": {"after": first}}})
    );
}

#[tokio::test]
async fn a_list_contains_each_template_byte_for_byte_as_it_is_read() {
    let app = TestApp::start().await;
    let mut document = hello("odd");
    document["components"][0]["text"] = json!("Say \"hi\" \\ to\n{{1}}, \u{e9}\u{1f600}!");
    let id = app.create(&document).await.json()["id"].as_str().unwrap().to_owned();
    let expected = format!(
        r#"{{"data":[{}],"paging":{{"cursors":{{"after":"{id}"}}}}}}"#,
        app.show(&id).await.text()
    );
    assert_eq!(list(&app, "").await.text(), expected);
}

#[tokio::test]
async fn following_next_shows_every_template_once_with_the_same_filters() {
    let app = TestApp::start().await;
    for number in 0..57 {
        let mut document = hello(&format!("t{number}"));
        document["language"] = json!(["en_US", "pt_BR"][number % 2]);
        app.create(&document).await;
    }
    let mut query = "?language=pt_BR&limit=10".to_owned();
    let mut seen = Vec::new();
    loop {
        let response = list(&app, &query).await;
        seen.extend(names(&response));
        match response.json()["paging"]["next"].as_str() {
            Some(next) => query = next.to_owned(),
            None => break,
        }
        assert!(query.contains("language=pt_BR&limit=10&after="), "{query}");
    }
    let expected: Vec<String> =
        (0..57).rev().filter(|it| it % 2 == 1).map(|it| format!("t{it}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(names(&list(&app, "").await).len(), 25, "the default page size");
    assert_eq!(names(&list(&app, "?limit=100").await).len(), 57);
}

#[tokio::test]
async fn filter_values_have_any_letter_case_but_names_are_exact() {
    let app = TestApp::start_reviewed().await;
    let id = app.create_named("welcome & more").await;
    app.create_named("other").await;
    let approve = json!({"decision": "approve"});
    app.call(Method::POST, &format!("/{id}/review"), &approve).await;
    for (query, expected) in [
        ("?status=approved", &["welcome & more"][..]),
        ("?status=PENDING&category=marketing", &["other"]),
        ("?category=UTILITY", &[]),
        ("?name=welcome+%26+more", &["welcome & more"]),
        ("?name=welcome%20%26%20more&status=PENDING", &[]),
        ("?name=welcome", &[]),
        ("?language=en_US", &["other", "welcome & more"]),
        ("?language=en", &[]),
        ("?language=%00", &[]),
    ] {
        assert_eq!(names(&list(&app, query).await), expected, "{query}");
    }
}

#[tokio::test]
async fn a_search_finds_indexed_words_by_prefix() {
    let app = TestApp::start().await;
    let id = app.create_named("order_shipped").await;
    let mut german = hello("bestellung");
    german["components"][0]["text"] = json!("Grüße, {{1}}: Ihre ORDER ist da");
    app.create(&german).await;
    while app.store.update_search_index().await.unwrap().has_more {}
    assert_eq!(names(&list(&app, "?q=ord").await), ["bestellung", "order_shipped"]);
    assert_eq!(names(&list(&app, "?q=GR%C3%9C").await), ["bestellung"]);
    assert_eq!(names(&list(&app, "?q=ship+hel").await), ["order_shipped"]);
    assert_eq!(names(&list(&app, "?q=ord&name=bestellung").await), ["bestellung"]);
    assert_eq!(names(&list(&app, "?q=ord&limit=1").await), ["bestellung"]);
    app.call(Method::DELETE, &format!("/{id}"), &Value::Null).await;
    assert_eq!(names(&list(&app, "?q=ship").await), [""; 0]);
}

#[tokio::test]
async fn an_invalid_parameter_is_400_with_the_accepted_values() {
    let app = TestApp::start().await;
    for (query, expected) in [
        ("?limit=0", "1 to 100"),
        ("?limit=101", "1 to 100"),
        ("?limit=+5", "1 to 100"),
        ("?limit=ten", "1 to 100"),
        ("?after=x", "cursor"),
        ("?after=0", "cursor"),
        ("?status=LIVE", "PENDING, APPROVED"),
        ("?category=news", "MARKETING"),
        ("?staus=PENDING", "Did you mean `status`?"),
        ("?colour=red", "Supported parameters: name, status"),
        ("?limit=1&limit=2", "only once"),
        ("?q=", "words"),
        ("?q=%21%21", "words"),
        (&*format!("?q={}", "a+".repeat(41)), "words"),
    ] {
        let problem = list(&app, query).await.problem(400, "bad-request");
        assert!(problem["detail"].as_str().unwrap().contains(expected), "{query}: {problem}");
    }
}

#[tokio::test]
async fn a_list_does_not_contain_templates_of_other_accounts() {
    let app = TestApp::start().await;
    app.create_named("mine").await;
    app.account("second", &["222"], "key-2", "token-2").await;
    while app.store.update_search_index().await.unwrap().has_more {}
    for query in ["", "?name=mine", "?q=mine", "?status=APPROVED"] {
        let by_stranger = format!("{}{query}", path("222", "key-2"));
        let response = app.send(request(Method::GET, &by_stranger, "token-2", "")).await;
        assert_eq!(names(&response), [""; 0], "{query}");
    }
}
