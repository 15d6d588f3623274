//! Templates listed, shown and reviewed with the command line while the service runs.

use serde_json::{Value, json};

use crate::{
    http::{Request, Response, TIMEOUT},
    service::{Launch, Service, document, galley, galley_json, until},
};

/// Creates an account with manual review.
fn account_with_review(dir: &std::path::Path) -> Value {
    galley_json(dir, &["account", "create", "shop", "--review", "manual"])
}

fn call(
    service: &Service,
    account: &Value,
    method: &'static str,
    rest: &str,
    body: &Value,
) -> Response {
    let member = |name: &str| account[name].as_str().unwrap();
    let (phone, key) = (member("phone_number_id"), member("key"));
    let path = format!("/api/v1.0/{phone}/{key}/message_templates{rest}");
    let request =
        Request::new(method, path).header("Authorization", &format!("Bearer {}", member("token")));
    service.send(&if body.is_null() { request } else { request.body(body.to_string()) })
}

fn create(service: &Service, account: &Value, name: &str) -> String {
    let created = call(service, account, "POST", "", &document(name, "Hello!"));
    assert_eq!(created.status, 201, "{created:?}");
    created.json()["id"].as_str().unwrap().to_owned()
}

#[test]
fn pending_templates_are_listed_and_a_decision_takes_effect_immediately() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = account_with_review(dir.path());
    let id = create(&service, &account, "first");
    let other = create(&service, &account, "second");
    let pending = galley_json(dir.path(), &["review", "list"]);
    let ids: Vec<&Value> = pending.as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, [&json!(other), &json!(id)]);
    assert_eq!(pending[0]["account"], "shop");

    let approved = galley_json(dir.path(), &["review", "approve", &id, "--version", "1"]);
    assert_eq!((&approved["status"], &approved["live_version"]), (&json!("APPROVED"), &json!(1)));
    let shown = call(&service, &account, "GET", &format!("/{id}"), &Value::Null).json();
    assert_eq!(shown["status"], "APPROVED");
    let versions = call(&service, &account, "GET", &format!("/{id}/versions"), &Value::Null).json();
    assert_eq!(versions["data"][0]["decided_by"], "operator");

    // Without `--version`, the command decides on the version that it has read and prints.
    let rejected = galley(dir.path(), &["review", "reject", &other, "--reason", "too loud"]);
    let stderr = String::from_utf8(rejected.stderr).unwrap();
    assert!(rejected.status.success(), "{stderr}");
    assert!(stderr.contains("reject version 1 of second (en_US)"), "{stderr}");
    let shown = galley_json(dir.path(), &["template", "show", &other]);
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("REJECTED"), &json!("too loud")));
    assert_eq!(galley_json(dir.path(), &["review", "list", "shop"]), json!([]));
}

#[test]
fn a_reviewer_sees_how_a_pending_template_looks() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = account_with_review(dir.path());
    let unsaved = json!({"document": document("first", "*Hello* you")});
    let unsaved = call(&service, &account, "POST", "/proof", &unsaved).json();
    let created = call(&service, &account, "POST", "", &document("first", "*Hello* you"));
    let id = created.json()["id"].as_str().unwrap().to_owned();
    let pending = call(&service, &account, "GET", &format!("/{id}/proof"), &Value::Null).json();
    assert_eq!(pending, unsaved);
    assert_eq!(pending["body"][0], json!({"text": "Hello", "style": ["bold"]}));
    galley_json(dir.path(), &["review", "approve", &id]);
    let approved = call(&service, &account, "GET", &format!("/{id}/proof"), &Value::Null).json();
    assert_eq!((&pending["approved"], &approved["approved"]), (&json!(false), &json!(true)));
}

#[test]
fn an_invalid_decision_is_refused_with_the_possible_ones() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = account_with_review(dir.path());
    let id = create(&service, &account, "first");
    for (arguments, expected) in [
        (vec!["resume", &id], "possible: edit, approve, reject, disable, delete"),
        (vec!["approve", &id, "--version", "2"], "newest version"),
        (vec!["approve", "7"], "no template 7"),
        (vec!["reject", &id, "--reason", " "], "the reason must not be empty"),
    ] {
        let output = galley(dir.path(), &[&["review"], &arguments[..]].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

#[test]
fn templates_are_listed_by_filter_and_shown_in_each_version() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = account_with_review(dir.path());
    let id = create(&service, &account, "first");
    create(&service, &account, "second");
    let edit = json!({"components": [{"type": "BODY", "text": "Good evening!"}]});
    assert_eq!(call(&service, &account, "PATCH", &format!("/{id}"), &edit).status, 200);
    let names = |arguments: &[&str]| -> Vec<String> {
        let list = galley_json(dir.path(), &[&["template", "list", "shop"], arguments].concat());
        let names = list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    };
    assert_eq!(names(&[]), ["second", "first"]);
    assert_eq!(names(&["--name", "first"]), ["first"]);
    assert_eq!(names(&["--status", "approved"]), [""; 0]);
    assert_eq!(names(&["--limit", "1"]), ["second"]);
    let text = |arguments: &[&str]| {
        let shown = galley_json(dir.path(), &[&["template", "show", &id], arguments].concat());
        assert_eq!(shown["versions"], json!([2, 1]));
        shown["components"][0]["text"].clone()
    };
    assert_eq!(text(&[]), "Good evening!");
    assert_eq!(text(&["--version", "1"]), "Hello!");
}

#[test]
fn a_search_finds_a_template_created_just_before() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = account_with_review(dir.path());
    create(&service, &account, "order_shipped");
    until(TIMEOUT, "the search index is up to date", || {
        let found = call(&service, &account, "GET", "?q=ship", &Value::Null).json();
        found["data"][0]["name"] == "order_shipped"
    });
}
