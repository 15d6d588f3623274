//! `{base}/upstream`, and what templates of connected accounts show.

use axum::{
    body::Body,
    http::{Method, Request},
};
use galley_domain::{
    id::{AccountId, TemplateId},
    template::Review,
};
use galley_server::Clock as _;
use galley_store::{Author, ConnectionChange};
use serde_json::{Value, json};

use super::{
    app::TestApp,
    console::{session, signed_in},
};
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
async fn templates_at_the_provider_are_listed_with_a_filter_for_their_source() {
    let (app, account, _) = connected().await;
    let seen = [
        ("1", "order", "BUSINESS"),
        ("2", "auto_generated_2", "AUTO_GENERATED"),
        ("3", "auto_generated_3", "AUTO_GENERATED"),
    ];
    app.sweep_provider(account, &seen).await;
    let list = |rest: &'static str| app.base(Method::GET, rest, &NOTHING);
    let page = list("/upstream/templates?source=auto_generated&limit=1").await.json();
    let generated = &page["data"][0];
    let expected = json!({
        "id": "2", "name": "auto_generated_2", "language": "en_US", "status": "APPROVED",
        "category": "UTILITY", "source": "AUTO_GENERATED", "observed_at": generated["observed_at"],
    });
    assert_eq!(*generated, expected, "{page}");
    let next = "?source=auto_generated&limit=1&after=2";
    assert_eq!(page["paging"]["next"], next);
    let page = app.base(Method::GET, &format!("/upstream/templates{next}"), &NOTHING).await.json();
    assert_eq!((&page["data"][0]["id"], page.get("paging")), (&json!("3"), None));
    let all = list("/upstream/templates").await.json();
    assert_eq!(all["data"].as_array().map(Vec::len), Some(3), "{all}");
    let own = all["data"][0]["template_id"].as_str().unwrap();
    let own = app.show(own).await.json();
    assert_eq!((&own["name"], &own["upstream"]["source"]), (&json!("order"), &json!("BUSINESS")));
    for bad in ["after=a/b", "after=", "limit=0", "colour=red", "source=a&source=b"] {
        let bad = format!("/upstream/templates?{bad}");
        app.base(Method::GET, &bad, &NOTHING).await.problem(400, "bad-request");
    }
    app.base(Method::POST, "/upstream/templates", &NOTHING)
        .await
        .problem(405, "method-not-allowed");
}

#[tokio::test]
async fn a_suspicious_connection_names_the_templates_that_it_misses() {
    let (app, account, _) = connected().await;
    let names: Vec<(String, String)> =
        (10..36).map(|number| (number.to_string(), format!("order_{number}"))).collect();
    let mut seen: Vec<_> = names.iter().map(|(id, name)| (&**id, &**name, "BUSINESS")).collect();
    seen.push(("99", "auto_generated_99", "AUTO_GENERATED"));
    app.sweep_provider(account, &seen).await;
    let show = || app.base(Method::GET, "/upstream", &NOTHING);
    assert_eq!(show().await.json().get("unseen"), None);
    app.sweep_provider(account, &seen[..2]).await;
    let connection = show().await.json();
    assert_eq!(
        (&connection["state"], &connection["unseen"]["count"]),
        (&json!("suspicious"), &json!(24))
    );
    let first = connection["unseen"]["data"].as_array().unwrap();
    assert_eq!((first.len(), &first[0]["name"]), (20, &json!("order_12")));
    let by = Author::operator(app.clock.now());
    app.store.change_connection(account, ConnectionChange::Resumed, by).await.unwrap();
    assert_eq!(show().await.json().get("unseen"), None);
}

#[tokio::test]
async fn operations_are_listed_newest_first_with_the_error_of_the_provider() {
    let (app, account, id) = connected().await;
    for _ in 0..3 {
        app.refuse_submission(account, number(&id)).await;
    }
    let list = |rest: &'static str| app.base(Method::GET, rest, &NOTHING);
    let page = list("/upstream/operations?limit=2").await.json();
    let ids: Vec<u64> = page["data"].as_array().unwrap().iter().map(operation_id).collect();
    assert!(ids.len() == 2 && ids[0] > ids[1], "{page}");
    let newest = &page["data"][0];
    let template = app.show(&id).await.json();
    let expected = json!({
        "id": ids[0].to_string(), "template_id": id, "name": template["name"],
        "language": template["language"], "version": 1, "kind": "create", "state": "refused", "attempts": 1, "created_at": newest["created_at"],
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

#[tokio::test]
async fn a_template_that_the_provider_lacks_is_submitted_once() {
    let (app, account, id) = connected().await;
    let rest = format!("/{id}/upstream/submit");
    let outdated = app.call_with(Method::POST, &rest, &NOTHING, Some(("if-match", "\"9\""))).await;
    outdated.problem(412, "revision-outdated");
    let tag = app.show(&id).await.header("etag").unwrap().to_owned();
    let queued = app.call_with(Method::POST, &rest, &NOTHING, Some(("if-match", &*tag))).await;
    assert_eq!(queued.status, 202, "{queued:?}");
    let operation = queued.json();
    assert_eq!((&operation["kind"], &operation["state"]), (&json!("create"), &json!("queued")));
    assert_eq!((&operation["template_id"], &operation["attempts"]), (&json!(id), &json!(0)));
    assert_eq!(app.show(&id).await.json()["upstream"], json!({"state": "queued"}));
    let again =
        app.call(Method::POST, &rest, &NOTHING).await.problem(409, "upstream-action-not-possible");
    assert!(again["detail"].as_str().unwrap().ends_with('.'), "{again}");
    assert_eq!(app.operations(account).await.len(), 1);
    let unknown = app.call(Method::POST, "/1/upstream/submit", &NOTHING).await;
    unknown.problem(404, "template-unknown");
}

#[tokio::test]
async fn a_drifted_template_is_pushed_and_another_one_is_not() {
    let (app, account, id) = connected().await;
    let rest = format!("/{id}/upstream/push");
    app.call(Method::POST, &rest, &NOTHING).await.problem(409, "upstream-action-not-possible");
    app.show_at_provider(account, number(&id), "Another text.").await;
    let queued = app.call(Method::POST, &rest, &NOTHING).await;
    assert_eq!((queued.status.as_u16(), &queued.json()["kind"]), (202, &json!("edit")));
    let shown = app.show(&id).await.json();
    assert_eq!((&shown["upstream"]["state"], &shown["version"]), (&json!("queued"), &json!(1)));
}

#[tokio::test]
async fn the_content_of_the_provider_becomes_a_new_version_when_it_is_accepted() {
    let (app, account, id) = connected().await;
    let rest = format!("/{id}/upstream/accept");
    app.call(Method::POST, &rest, &NOTHING).await.problem(409, "upstream-action-not-possible");
    app.show_at_provider(account, number(&id), "Another text.").await;
    let accepted = app.call(Method::POST, &rest, &NOTHING).await;
    assert_eq!(accepted.status, 200, "{accepted:?}");
    let template = accepted.json();
    assert_eq!((&template["version"], &template["status"]), (&json!(2), &json!("APPROVED")));
    assert_eq!(template["components"][0]["text"], "Another text.");
    assert_eq!(template["upstream"]["state"], "synced");
    let shown = app.show(&id).await;
    assert_eq!(shown.header("etag"), accepted.header("etag"));
    assert_eq!(shown.json(), template);
    assert!(app.operations(account).await.is_empty());
}

#[tokio::test]
async fn a_refused_operation_is_retried_and_its_error_is_shown_until_then() {
    let (app, account, id) = connected().await;
    let rest = format!("/{id}/upstream/retry");
    app.call(Method::POST, &rest, &NOTHING).await.problem(409, "upstream-action-not-possible");
    app.refuse_submission(account, number(&id)).await;
    let shown = app.show(&id).await.json();
    assert_eq!(shown["upstream"]["state"], "refused");
    assert_eq!(shown["upstream"]["error"]["subcode"], 2_388_040);
    let queued = app.call(Method::POST, &rest, &NOTHING).await;
    assert_eq!((queued.status.as_u16(), &queued.json()["state"]), (202, &json!("queued")));
    assert_eq!(app.show(&id).await.json()["upstream"]["state"], "queued");
}

#[tokio::test]
async fn a_session_of_the_console_says_that_its_account_is_connected() {
    let (app, account, _) = connected().await;
    let cookie = signed_in(&app).await;
    assert_eq!(session(&app, &cookie).await.json()["account"]["connected"], true);
    let request = Request::get("/console/api/-/upstream").header("cookie", &cookie);
    let request = request.header("sec-fetch-site", "same-origin");
    let shown = app.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(shown.json()["state"], "connected", "{shown:?}");
    app.disconnect(account).await;
    assert_eq!(session(&app, &cookie).await.json()["account"].get("connected"), None);
}

#[tokio::test]
async fn a_list_selects_templates_that_differ_at_the_provider() {
    let (app, account, id) = connected().await;
    let count = async |filter: &str| {
        let page = app.call(Method::GET, &format!("?upstream={filter}"), &NOTHING).await.json();
        page["data"].as_array().unwrap().len()
    };
    assert_eq!((count("drifted").await, count("failed").await, count("missing").await), (0, 0, 0));
    app.show_at_provider(account, number(&id), "Another text.").await;
    assert_eq!((count("drifted").await, count("failed").await, count("missing").await), (1, 0, 0));
    app.refuse_submission(account, number(&id)).await;
    assert_eq!(count("failed").await, 1);
    let named = app.call(Method::GET, "?upstream=failed&group=name", &NOTHING).await.json();
    assert_eq!(named["data"][0]["name"], "hello", "{named}");
    app.call(Method::GET, "?upstream=lost", &NOTHING).await.problem(400, "bad-request");
}

#[tokio::test]
async fn nothing_awaits_a_reviewer_while_the_provider_decides() {
    let (app, account, _) = connected().await;
    let created = app.create(&description::template("", "pending")).await;
    assert_eq!(created.json()["status"], "PENDING", "{created:?}");
    let queue = async || {
        let page = app.call(Method::GET, "?awaiting_review=true", &NOTHING).await.json();
        page["data"].as_array().unwrap().len()
    };
    assert_eq!(queue().await, 0);
    app.disconnect(account).await;
    assert_eq!(queue().await, 1, "the account has no other reviewer now");
}

#[tokio::test]
async fn a_failure_of_a_former_version_is_neither_shown_nor_retried() {
    let (app, account, id) = connected().await;
    app.refuse_submission(account, number(&id)).await;
    assert_eq!(app.show(&id).await.json()["upstream"]["state"], "refused");
    let by = Author::operator(app.clock.now());
    app.store.set_account_review(account, Review::Manual, by).await.unwrap();
    app.clock.advance(std::time::Duration::from_secs(2));
    let mut edit = description::template("", "hello");
    edit["components"][0]["text"] = json!("Hello {{1}}, this is another text about {{2}} for you.");
    let edit = json!({"components": edit["components"]});
    let edited = app.call(Method::PATCH, &format!("/{id}"), &edit).await;
    assert_eq!(edited.status, 200, "{edited:?}");
    assert_eq!(app.show(&id).await.json()["upstream"], json!({"state": "local"}));
    let failed = app.call(Method::GET, "?upstream=failed", &NOTHING).await.json();
    assert_eq!(failed["data"], json!([]));
    let retry = app.call(Method::POST, &format!("/{id}/upstream/retry"), &NOTHING).await;
    let problem = retry.problem(409, "upstream-action-not-possible");
    assert!(problem["detail"].as_str().unwrap().contains("Submit the newest"), "{problem}");
}
