//! `{base}/upstream`, and what templates of connected accounts show.

use axum::http::Method;
use galley_domain::id::{AccountId, TemplateId};
use galley_server::Clock as _;
use galley_store::{Author, ConnectionChange};
use serde_json::{Value, json};

use super::app::TestApp;
use crate::harness::{description, provider::PROVIDER_TOKEN};

const NOTHING: Value = Value::Null;

/// An account with a template that it created before it was connected.
async fn connected() -> (TestApp, AccountId, String) {
    let app = TestApp::start_whatsapp().await;
    let account = app.store.accounts().await.unwrap()[0].id;
    let id = create(&app).await;
    app.connect(account).await;
    (app, account, id)
}

async fn create(app: &TestApp) -> String {
    let created = app.create(&description::template("", "hello")).await;
    assert_eq!(created.status, 201, "{created:?}");
    created.json()["id"].as_str().unwrap().to_owned()
}

fn number(id: &str) -> TemplateId {
    id.parse().unwrap()
}

#[tokio::test]
async fn a_connection_is_shown_without_its_secrets() {
    let (app, account, _) = connected().await;
    let shown = app.base(Method::GET, "/upstream", &NOTHING).await;
    assert_eq!(shown.status, 200, "{shown:?}");
    let connection = shown.json();
    assert_eq!(connection["provider"], "provider.test");
    assert_eq!(connection["waba_id"], "102290129340398");
    assert_eq!(connection["state"], "connected");
    assert!(connection["connected_at"].is_string() && connection.get("degraded").is_none());
    for secret in [PROVIDER_TOKEN, "hook", "token\"", "secret"] {
        assert!(!shown.text().contains(secret), "{secret}: {shown:?}");
    }
    let by = Author::operator(app.clock.now());
    assert!(app.store.change_connection(account, ConnectionChange::Paused, by).await.unwrap());
    assert_eq!(app.base(Method::GET, "/upstream", &NOTHING).await.json()["state"], "paused");
    app.base(Method::GET, "/upstream?colour=red", &NOTHING).await.problem(400, "bad-request");
}

#[tokio::test]
async fn a_template_tells_its_state_at_the_provider() {
    let (app, account, id) = connected().await;
    assert_eq!(app.show(&id).await.json()["upstream"], json!({"state": "local"}));
    app.show_at_provider(account, number(&id), "Another text.").await;
    let shown = app.show(&id).await.json();
    let observed = &shown["upstream"]["observed_at"];
    assert!(observed.is_string(), "{shown}");
    let expected = json!({
        "id": format!("594425479{id}"), "state": "drifted", "status": "APPROVED",
        "category": shown["category"], "quality": "GREEN", "observed_at": observed,
    });
    assert_eq!(shown["upstream"], expected);
    // The other members come after it.
    assert!(shown["components"].is_array(), "{shown}");
    for rest in ["", "?group=name"] {
        let page = app.call(Method::GET, rest, &NOTHING).await.json();
        let item = &page["data"][0];
        let item = if rest.is_empty() { item } else { &item["templates"][0] };
        assert_eq!(item["upstream"], expected, "{page}");
    }
}

#[tokio::test]
async fn a_template_of_an_account_without_a_connection_says_nothing_of_a_provider() {
    let app = TestApp::start_whatsapp().await;
    let id = create(&app).await;
    assert_eq!(app.show(&id).await.json().get("upstream"), None);
    let page = app.call(Method::GET, "", &NOTHING).await.json();
    assert_eq!(page["data"][0].get("upstream"), None);
}

#[tokio::test]
async fn a_read_with_the_known_tag_returns_the_template_of_a_connected_account() {
    let (app, account, id) = connected().await;
    let tag = app.show(&id).await.header("etag").unwrap().to_owned();
    let known = Some(("if-none-match", &*tag));
    let rest = format!("/{id}");
    // What the provider shows changes without the revision.
    let read = app.call_with(Method::GET, &rest, &NOTHING, known).await;
    assert_eq!(read.status, 200, "{read:?}");
    app.disconnect(account).await;
    let read = app.call_with(Method::GET, &rest, &NOTHING, known).await;
    assert_eq!(read.status, 304, "{read:?}");
}

#[tokio::test]
async fn the_document_of_the_provider_is_shown_beside_the_state() {
    let (app, account, id) = connected().await;
    let rest = format!("/{id}/upstream");
    let local = app.call(Method::GET, &rest, &NOTHING).await;
    assert_eq!(local.json(), json!({"upstream": {"state": "local"}}));
    app.show_at_provider(account, number(&id), "Another text.").await;
    let shown = app.call(Method::GET, &rest, &NOTHING).await.json();
    assert_eq!(shown["upstream"]["state"], "drifted");
    let components = json!([{"type": "BODY", "text": "Another text."}]);
    assert_eq!(shown["document"]["components"], components);
    let unknown = app.call(Method::GET, "/1/upstream", &NOTHING).await;
    unknown.problem(404, "template-unknown");
}

#[tokio::test]
async fn operations_are_listed_newest_first_with_the_error_of_the_provider() {
    let (app, account, id) = connected().await;
    for _ in 0..3 {
        app.refuse_edit(account, number(&id)).await;
    }
    let list = |rest: &'static str| app.base(Method::GET, rest, &NOTHING);
    let page = list("/upstream/operations?limit=2").await.json();
    let ids: Vec<u64> = page["data"].as_array().unwrap().iter().map(operation_id).collect();
    assert!(ids.len() == 2 && ids[0] > ids[1], "{page}");
    let newest = &page["data"][0];
    let expected = json!({
        "id": ids[0].to_string(), "template_id": id, "version": 1, "kind": "edit",
        "state": "refused", "attempts": 1, "created_at": newest["created_at"],
        "updated_at": newest["updated_at"],
        "error": {
            "code": 100, "subcode": 2_388_040, "title": "Text is too long",
            "message": "Shorten the text of the body.",
        },
    });
    assert_eq!(*newest, expected);
    assert_eq!(page["paging"]["next"], format!("?limit=2&before={}", ids[1]));
    let before = format!("/upstream/operations?before={}", ids[1]);
    let rest = app.base(Method::GET, &before, &NOTHING).await.json();
    assert_eq!(rest["data"].as_array().map(Vec::len), Some(1), "{rest}");
    assert_eq!(rest.get("paging"), None);
    assert_eq!(rest["data"][0]["state"], "superseded", "{rest}");
    list("/upstream/operations?before=x").await.problem(400, "bad-request");
}

fn operation_id(operation: &Value) -> u64 {
    operation["id"].as_str().unwrap().parse().unwrap()
}
