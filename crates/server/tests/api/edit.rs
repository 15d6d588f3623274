//! `PATCH` and `DELETE {base}/message_templates/{id}`, and older versions.

use axum::http::Method;
use galley_server::Clock as _;
use galley_store::{AccountQuotas, Author, Quota};
use serde_json::{Value, json};

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, path, request};
use crate::harness::TestResponse;

fn body(text: &str) -> Value {
    json!({"components": [{"type": "BODY", "text": text}]})
}

async fn patch(app: &TestApp, id: &str, edit: &Value) -> TestResponse {
    app.call(Method::PATCH, &format!("/{id}"), edit).await
}

#[tokio::test]
async fn an_edit_replaces_all_components_in_a_new_version() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let response = patch(&app, &id, &body("Good morning")).await;
    assert_eq!((response.status.as_u16(), response.header("etag")), (200, Some("\"2\"")));
    let now = response.json();
    assert_eq!(now["components"], json!([{"type": "BODY", "text": "Good morning"}]));
    assert_eq!((&now["version"], &now["live_version"]), (&json!(2), &json!(2)));
    assert_eq!((&now["status"], &now["id"]), (&json!("APPROVED"), &json!(id)));
    assert_eq!(app.show(&id).await.json(), now);
}

#[tokio::test]
async fn an_invalid_edit_is_rejected_and_changes_nothing() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let before = app.show(&id).await.json();
    let invalid = json!({
        "name": "other", "category": "NEWS", "components": [{"type": "BODY", "text": "{{2}}"}],
    });
    let problem = patch(&app, &id, &invalid).await.problem(422, "invalid-template");
    let rules: Vec<&str> = problem["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|violation| violation["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["not-a-choice", "placeholder-gap", "required", "unchangeable"]);
    patch(&app, &id, &json!({})).await.problem(422, "invalid-template");
    let text = app.send(request(Method::PATCH, &format!("{}/{id}", path(PHONE, KEY)), TOKEN, "{"));
    text.await.problem(400, "malformed-json");
    patch(&app, "7", &body("b")).await.problem(404, "template-unknown");
    assert_eq!(app.show(&id).await.json(), before);
}

#[tokio::test]
async fn a_document_that_was_read_can_be_sent_back_as_an_edit() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let mut document = app.show(&id).await.json();
    document["components"][0]["text"] = json!("Dear {{1}}");
    let response = patch(&app, &id, &document).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.json()["components"], document["components"]);
}

#[tokio::test]
async fn a_category_changes_only_if_the_template_allows_it() {
    let app = TestApp::start().await;
    let marketing = json!({"category": "utility"});
    let id = app.create_named("free").await;
    let now = patch(&app, &id, &marketing).await.json();
    assert_eq!(
        (&now["category"], &now["previous_category"], &now["version"]),
        (&json!("UTILITY"), &json!("MARKETING"), &json!(2))
    );
    let locked = app.create(&hello("locked")).await.json()["id"].as_str().unwrap().to_owned();
    let before = app.show(&locked).await.json();
    let problem = patch(&app, &locked, &marketing).await.problem(409, "category-locked");
    assert!(problem["detail"].as_str().unwrap().contains("MARKETING"), "{problem}");
    let both = json!({"category": "UTILITY", "components": body("b")["components"]});
    patch(&app, &locked, &both).await.problem(409, "category-locked");
    assert_eq!(app.show(&locked).await.json(), before);
    assert_eq!(patch(&app, &locked, &json!({"category": "MARKETING"})).await.status, 200);
}

#[tokio::test]
async fn if_match_accepts_an_edit_only_at_that_revision() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let edit = async |tag: &str, text: &str| {
        let item = format!("/{id}");
        app.call_with(Method::PATCH, &item, &body(text), Some(("if-match", tag))).await
    };
    assert_eq!(edit("\"1\"", "two").await.header("etag"), Some("\"2\""));
    for outdated in ["\"1\"", "\"3\"", "W/\"2\"", "\"two\"", "\"1\", \"9\""] {
        let response = edit(outdated, "three").await;
        response.problem(412, "revision-outdated");
        assert_eq!(response.header("etag"), Some("\"2\""), "{outdated}");
    }
    assert_eq!(edit("\"7\", \"2\"", "three").await.status, 200);
    assert_eq!(edit("*", "four").await.status, 200);
    for invalid in ["4", "\"4", "four"] {
        edit(invalid, "five").await.problem(400, "bad-request");
    }
    assert_eq!(app.show(&id).await.json()["version"], 4);
}

#[tokio::test]
async fn of_concurrent_edits_with_the_same_tag_exactly_one_succeeds() {
    let app = std::sync::Arc::new(TestApp::start().await);
    let id = app.create_named("welcome").await;
    let tasks: Vec<_> = (0..32)
        .map(|number| {
            let (app, item) = (std::sync::Arc::clone(&app), format!("/{id}"));
            tokio::spawn(async move {
                let edit = body(&format!("edit {number}"));
                app.call_with(Method::PATCH, &item, &edit, Some(("if-match", "\"1\""))).await
            })
        })
        .collect();
    let mut won = Vec::new();
    for task in tasks {
        let response = task.await.unwrap();
        if response.status == 200 {
            won.push(response.json());
        } else {
            response.problem(412, "revision-outdated");
        }
    }
    assert_eq!(won.len(), 1);
    assert_eq!(app.show(&id).await.json(), won[0]);
}

#[tokio::test]
async fn an_older_version_can_be_read_and_restored() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let first = app.show(&id).await.json();
    patch(&app, &id, &json!({"category": "UTILITY"})).await;
    patch(&app, &id, &body("third")).await;
    let old = app.show(&format!("{id}?version=1")).await;
    assert_eq!(old.header("etag"), Some("\"4\""));
    let old = old.json();
    assert_eq!(old["components"], first["components"]);
    assert_eq!(
        (&old["version"], &old["live_version"], &old["category"]),
        (&json!(1), &json!(3), &json!("MARKETING"))
    );
    let back = patch(&app, &id, &json!({"restore_version": 1})).await.json();
    assert_eq!(back["components"], first["components"]);
    assert_eq!(
        (&back["version"], &back["category"], &back["previous_category"]),
        (&json!(4), &json!("MARKETING"), &json!("UTILITY"))
    );
    patch(&app, &id, &json!({"restore_version": 5})).await.problem(404, "version-unknown");
    app.show(&format!("{id}?version=5")).await.problem(404, "version-unknown");
    for invalid in ["0x1", "-1", "1.0", "", "99999999999999999999"] {
        app.show(&format!("{id}?version={invalid}")).await.problem(400, "bad-request");
    }
}

#[tokio::test]
async fn a_version_beyond_the_stored_bytes_is_429_with_use_and_limit() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let account = app.store.accounts().await.unwrap()[0].id;
    let quotas = AccountQuotas { stored_bytes: Quota::Max(700), ..AccountQuotas::default() };
    assert!(
        app.store
            .set_account_quotas(account, quotas, Author::operator(app.clock.now()))
            .await
            .unwrap()
    );
    let edit = json!({"components": [{"type": "BODY", "text": "x".repeat(400)}]});
    let problem = patch(&app, &id, &edit).await.problem(429, "limit-reached");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("of 700 bytes") && detail.contains("--stored-bytes"), "{detail}");
    assert_eq!(app.show(&id).await.json()["version"], 1);
}

#[tokio::test]
async fn restoring_a_version_counts_what_whatsapp_refuses() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let long = json!({"components": [{"type": "BODY", "text": "x".repeat(1_025)}]});
    let edited = patch(&app, &id, &long).await;
    let warnings = edited.header("galley-warnings").map(str::to_owned);
    assert!(warnings.is_some(), "{edited:?}");
    let short = json!({"components": [{"type": "BODY", "text": "short"}]});
    assert_eq!(patch(&app, &id, &short).await.header("galley-warnings"), None);
    let restored = patch(&app, &id, &json!({"restore_version": 2})).await;
    assert_eq!(restored.header("galley-warnings").map(str::to_owned), warnings);
}

#[tokio::test]
async fn versions_are_listed_with_status_time_and_author() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    app.clock.advance(std::time::Duration::from_mins(1));
    patch(&app, &id, &json!({"category": "UTILITY"})).await;
    let response = app.call(Method::GET, &format!("/{id}/versions"), &Value::Null).await;
    let token = response.json()["data"][0]["created_by"].clone();
    let name = format!("token {}", token.as_str().unwrap().parse::<u64>().unwrap());
    assert_eq!(
        response.json(),
        json!({
            "data": [
                {
                    "version": 2, "status": "APPROVED", "category": "UTILITY",
                    "previous_category": "MARKETING", "created_at": "2026-09-21T14:14:20.000Z",
                    "created_by": token, "created_by_name": name,
                },
                {
                    "version": 1, "status": "APPROVED", "category": "MARKETING",
                    "created_at": "2026-09-21T14:13:20.000Z", "created_by": token, "created_by_name": name,
                },
            ],
            "paging": {"cursors": {"after": "1"}},
        })
    );
    let page = app.call(Method::GET, &format!("/{id}/versions?limit=1"), &Value::Null).await.json();
    assert_eq!(page["paging"], json!({"cursors": {"after": "2"}, "next": "?limit=1&after=2"}));
    app.call(Method::GET, "/7/versions", &Value::Null).await.problem(404, "template-unknown");
}

#[tokio::test]
async fn deleting_a_template_frees_its_name() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let item = format!("/{id}");
    let outdated = ("if-match", "\"2\"");
    app.call_with(Method::DELETE, &item, &Value::Null, Some(outdated))
        .await
        .problem(412, "revision-outdated");
    let response = app.call(Method::DELETE, &item, &Value::Null).await;
    assert_eq!((response.status.as_u16(), response.text()), (204, ""));
    assert_eq!(response.header("content-type"), None);
    for (method, rest, body) in [
        (Method::GET, "", Value::Null),
        (Method::DELETE, "", Value::Null),
        (Method::PATCH, "", body("b")),
        (Method::GET, "/versions", Value::Null),
        (Method::POST, "/review", json!({"decision": "pause"})),
        (Method::POST, "/render", json!({})),
    ] {
        let response = app.call(method, &format!("{item}{rest}"), &body).await;
        response.problem(404, "template-unknown");
    }
    assert_ne!(app.create_named("welcome").await, id);
}

#[tokio::test]
async fn a_read_of_the_current_revision_is_not_modified() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let item = format!("/{id}");
    for (tag, status) in [("\"1\"", 304), ("W/\"1\"", 304), ("*", 304), ("\"2\"", 200)] {
        let header = Some(("if-none-match", tag));
        let response = app.call_with(Method::GET, &item, &Value::Null, header).await;
        assert_eq!(response.status.as_u16(), status, "{tag}");
        assert_eq!(response.header("etag"), Some("\"1\""), "{tag}");
        assert_eq!(response.text().is_empty(), status == 304, "{tag}");
    }
}
