//! `GET {base}/message_templates`.

use axum::http::Method;
use serde_json::{Value, json};

use super::app::{Answer, TestApp, hello, path, request};

async fn list(app: &TestApp, query: &str) -> Answer {
    app.call(Method::GET, query, &Value::Null).await
}

fn names(answer: &Answer) -> Vec<String> {
    let page = answer.json();
    let data = page["data"].as_array().unwrap_or_else(|| panic!("{answer:?}"));
    data.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_list_shows_whole_templates_newest_first() {
    let app = TestApp::start().await;
    assert_eq!(list(&app, "").await.json(), json!({"data": [], "paging": {"cursors": {}}}));
    let first = app.made("first").await;
    let second = app.made("second").await;
    let answer = list(&app, "").await;
    assert_eq!(answer.status, 200);
    let shown = [app.show(&second).await.json(), app.show(&first).await.json()];
    assert_eq!(answer.json(), json!({"data": shown, "paging": {"cursors": {"after": first}}}));
}

#[tokio::test]
async fn following_next_shows_every_template_once_and_keeps_the_filters() {
    let app = TestApp::start().await;
    for number in 0..57 {
        let mut document = hello(&format!("t{number}"));
        document["language"] = json!(["en_US", "pt_BR"][number % 2]);
        app.create(&document).await;
    }
    let mut query = "?language=pt_BR&limit=10".to_owned();
    let mut seen = Vec::new();
    loop {
        let answer = list(&app, &query).await;
        seen.extend(names(&answer));
        match answer.json()["paging"]["next"].as_str() {
            Some(next) => query = next.to_owned(),
            None => break,
        }
        assert!(query.contains("language=pt_BR&limit=10&after="), "{query}");
    }
    let expected: Vec<String> =
        (0..57).rev().filter(|it| it % 2 == 1).map(|it| format!("t{it}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(names(&list(&app, "").await).len(), 25, "what a page has without a limit");
    assert_eq!(names(&list(&app, "?limit=100").await).len(), 57);
}

#[tokio::test]
async fn filters_are_exact_words_in_any_letter_case_and_names_exact() {
    let app = TestApp::start_reviewed().await;
    let id = app.made("welcome & more").await;
    app.made("other").await;
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
async fn a_search_finds_words_by_their_beginning_once_it_has_followed() {
    let app = TestApp::start().await;
    let id = app.made("order_shipped").await;
    let mut german = hello("bestellung");
    german["components"][0]["text"] = json!("Grüße, {{1}}: Ihre ORDER ist da");
    app.create(&german).await;
    while app.store.update_search_index().await.unwrap().more {}
    assert_eq!(names(&list(&app, "?q=ord").await), ["bestellung", "order_shipped"]);
    assert_eq!(names(&list(&app, "?q=GR%C3%9C").await), ["bestellung"]);
    assert_eq!(names(&list(&app, "?q=ship+hel").await), ["order_shipped"]);
    assert_eq!(names(&list(&app, "?q=ord&name=bestellung").await), ["bestellung"]);
    assert_eq!(names(&list(&app, "?q=ord&limit=1").await), ["bestellung"]);
    app.call(Method::DELETE, &format!("/{id}"), &Value::Null).await;
    assert_eq!(names(&list(&app, "?q=ship").await), [""; 0]);
}

#[tokio::test]
async fn a_parameter_that_makes_no_sense_is_400_and_says_what_does() {
    let app = TestApp::start().await;
    for (query, says) in [
        ("?limit=0", "1 to 100"),
        ("?limit=101", "1 to 100"),
        ("?limit=+5", "1 to 100"),
        ("?limit=ten", "1 to 100"),
        ("?after=x", "cursor"),
        ("?after=0", "cursor"),
        ("?status=LIVE", "PENDING, APPROVED"),
        ("?category=news", "MARKETING"),
        ("?staus=PENDING", "did you mean `status`?"),
        ("?colour=red", "known are name"),
        ("?limit=1&limit=2", "twice"),
        ("?q=", "words"),
        ("?q=%21%21", "words"),
        (&*format!("?q={}", "a+".repeat(41)), "words"),
    ] {
        let problem = list(&app, query).await.problem(400, "bad-request");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{query}: {problem}");
    }
}

#[tokio::test]
async fn a_list_tells_nothing_of_another_account() {
    let app = TestApp::start().await;
    app.made("mine").await;
    app.account("second", &["222"], "key-2", "token-2").await;
    while app.store.update_search_index().await.unwrap().more {}
    for query in ["", "?name=mine", "?q=mine", "?status=APPROVED"] {
        let theirs = format!("{}{query}", path("222", "key-2"));
        let answer = app.send(request(Method::GET, &theirs, "token-2", "")).await;
        assert_eq!(names(&answer), [""; 0], "{query}");
    }
}
