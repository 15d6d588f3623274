//! The calls below `{base}/emulator`, and the worker that applies review scripts.

use std::time::Duration;

use axum::http::Method;
use galley_domain::{emulator::messages::MessageStatus, id::TemplateId, rulebook::Category};
use galley_server::{Clock as _, workers};
use galley_store::NewMessage;
use serde_json::{Value, json};

use super::app::{PHONE, TestApp};
use crate::harness::TestResponse;

/// Calls `rest` below `{base}/emulator` as the emulator account.
async fn call(app: &TestApp, method: Method, rest: &str, body: Value) -> TestResponse {
    app.base(method, &format!("/emulator{rest}"), &body).await
}

async fn get(app: &TestApp, rest: &str) -> Value {
    let response = call(app, Method::GET, rest, Value::Null).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

/// Moves the clock and returns how many steps were applied.
async fn advance(app: &TestApp, duration: &str) -> Value {
    let moved = call(app, Method::POST, "/clock", json!({"advance": duration})).await;
    assert_eq!(moved.status, 200, "{moved:?}");
    moved.json()["applied"].clone()
}

/// Creates a template and returns its id.
async fn create(app: &TestApp, name: &str, category: &str) -> String {
    let document = json!({
        "name": name, "language": "en_US", "category": category,
        "components": [{"type": "BODY", "text": "Good morning to all of you"}],
    });
    let created = app.create(&document).await;
    assert_eq!(created.status, 201, "{created:?}");
    created.json()["id"].as_str().unwrap().to_owned()
}

async fn status(app: &TestApp, id: &str) -> String {
    app.show(id).await.json()["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn review_rules_are_replaced_as_a_whole_and_decide_on_new_versions() {
    let app = TestApp::start_emulator().await;
    assert_eq!(get(&app, "/rules").await, json!({"rules": []}));
    let rules = json!({"rules": [
        {"name": "promo_*", "category": "marketing", "outcome": "reject", "reason": "PROMOTIONAL"},
        {"name": "slow_?", "after": "10m", "outcome": "approve"},
    ]});
    let replaced = call(&app, Method::PUT, "/rules", rules).await;
    assert_eq!(replaced.status, 200, "{replaced:?}");
    assert_eq!(replaced.json(), get(&app, "/rules").await);
    assert_eq!(replaced.json()["rules"][0]["category"], "MARKETING");

    let rejected = create(&app, "promo_spring", "MARKETING").await;
    assert_eq!(status(&app, &rejected).await, "REJECTED");
    let other = create(&app, "promo_autumn", "UTILITY").await;
    assert_eq!(status(&app, &other).await, "APPROVED");
    let slow = create(&app, "slow_1", "UTILITY").await;
    assert_eq!(status(&app, &slow).await, "PENDING");

    let none = call(&app, Method::PUT, "/rules", json!({"rules": []})).await;
    assert_eq!(none.json(), json!({"rules": []}));
    let approved = create(&app, "promo_winter", "MARKETING").await;
    assert_eq!(status(&app, &approved).await, "APPROVED");
    assert_eq!(advance(&app, "10m").await, 1, "steps that are queued stay");
    assert_eq!(status(&app, &slow).await, "APPROVED");
}

#[tokio::test]
async fn an_invalid_document_is_refused_with_every_violation() {
    let app = TestApp::start_emulator().await;
    let rules = json!({"rules": [{"outcome": "aprove", "after": "soon"}, {"name": "a"}]});
    for (method, path, body, pointers) in [
        (
            Method::PUT,
            "/rules",
            rules,
            &["/rules/0/outcome", "/rules/1/outcome", "/rules/0/after"][..],
        ),
        (Method::POST, "/clock", json!({"advance": "24h", "follow": true}), &[""]),
        (Method::POST, "/clock", json!({}), &[""]),
        (Method::POST, "/clock", json!({"set": "2100-01-01T00:00:00Z"}), &["/set"]),
        (
            Method::POST,
            "/faults",
            json!({"call": "list", "kind": "drop", "times": 0}),
            &["/times", "/kind"],
        ),
    ] {
        let refused = call(&app, method, path, body).await;
        let problem = refused.problem(422, "invalid-emulator-document");
        let found = problem["violations"].as_array().unwrap().iter();
        let found: Vec<&str> = found.map(|it| it["pointer"].as_str().unwrap()).collect();
        for pointer in pointers {
            assert!(found.contains(pointer), "{pointer} in {problem}");
        }
    }
    assert_eq!(get(&app, "/rules").await, json!({"rules": []}));
    assert_eq!(get(&app, "/faults").await, json!({"data": []}));
    assert_eq!(get(&app, "/clock").await["follows"], true);
}

#[tokio::test]
async fn a_moved_clock_stands_after_every_due_step_was_applied_in_order() {
    let app = TestApp::start_emulator().await;
    let start = json!({"now": "2026-09-21T14:13:20.000Z", "follows": true});
    assert_eq!(get(&app, "/clock").await, start);
    for (name, category) in
        [("b_pending_2h", "UTILITY"), ("a_pending_1h", "UTILITY"), ("c_to_marketing", "UTILITY")]
    {
        create(&app, name, category).await;
    }
    let moved = call(&app, Method::POST, "/clock", json!({"advance": "36h"})).await;
    let expected = json!({"now": "2026-09-23T02:13:20.000Z", "follows": false, "applied": 3});
    assert_eq!(moved.json(), expected);
    let events = app.base(Method::GET, "/events?limit=100", &Value::Null).await.json();
    let events = events["data"].as_array().unwrap().iter();
    let events: Vec<String> = events
        .map(|it| format!("{} {}", it["data"]["name"], it["type"]).replace('"', ""))
        .collect();
    let last = &events[events.len() - 3..];
    let expected = [
        "a_pending_1h template.approved",
        "b_pending_2h template.approved",
        "c_to_marketing template.category_changed",
    ];
    assert_eq!(last, expected, "in the order of their times");

    app.clock.advance(Duration::from_hours(1));
    assert_eq!(get(&app, "/clock").await["now"], "2026-09-23T02:13:20.000Z", "it stands");
    let set = call(&app, Method::POST, "/clock", json!({"set": "2026-10-01T00:00:00Z"})).await;
    assert_eq!(set.json()["now"], "2026-10-01T00:00:00.000Z");
    let follow = call(&app, Method::POST, "/clock", json!({"follow": true})).await;
    assert_eq!(follow.json()["follows"], true);
    app.clock.advance(Duration::from_mins(1));
    assert_eq!(get(&app, "/clock").await["now"], "2026-10-01T00:01:00.000Z", "it runs on");
}

#[tokio::test]
async fn the_clock_never_moves_back() {
    let app = TestApp::start_emulator().await;
    advance(&app, "1d").await;
    let back = json!({"set": "2026-09-22T14:13:19.999Z"});
    let refused = call(&app, Method::POST, "/clock", back).await;
    let problem = refused.problem(409, "clock-backwards");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("2026-09-22T14:13:20.000Z"), "{detail}");
    let same = json!({"set": "2026-09-22T14:13:20Z"});
    assert_eq!(call(&app, Method::POST, "/clock", same).await.status, 200);
}

#[tokio::test]
async fn faults_are_added_listed_and_deleted() {
    let app = TestApp::start_emulator().await;
    let first = json!({"call": "create", "name": "order_*", "times": 2, "kind": "error"});
    let created = call(&app, Method::POST, "/faults", first).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.headers["location"], "faults/1");
    let fault = created.json();
    assert_eq!(
        (&fault["id"], &fault["matched"], &fault["spent"]),
        (&json!("1"), &json!(0), &json!(false))
    );
    assert_eq!((&fault["call"], &fault["name"]), (&json!("create"), &json!("order_*")));
    let second = json!({"call": "send", "share": 0.5, "kind": "delay", "delay": "5s"});
    assert_eq!(call(&app, Method::POST, "/faults", second).await.json()["id"], "2");
    let listed = get(&app, "/faults").await;
    assert_eq!(listed["data"][0], fault);
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);

    for unknown in ["3", "0", "one", "1x"] {
        let refused = call(&app, Method::DELETE, &format!("/faults/{unknown}"), Value::Null).await;
        refused.problem(404, "fault-unknown");
    }
    assert_eq!(call(&app, Method::DELETE, "/faults/1", Value::Null).await.status, 204);
    call(&app, Method::DELETE, "/faults/1", Value::Null).await.problem(404, "fault-unknown");
    assert_eq!(get(&app, "/faults").await["data"][0]["id"], "2");
    assert_eq!(call(&app, Method::DELETE, "/faults", Value::Null).await.status, 204);
    assert_eq!(get(&app, "/faults").await, json!({"data": []}));
}

#[tokio::test]
async fn an_account_has_at_most_100_faults() {
    let app = TestApp::start_emulator().await;
    let fault = json!({"call": "upload", "times": 1, "kind": "truncate"});
    for _ in 0..100 {
        assert_eq!(call(&app, Method::POST, "/faults", fault.clone()).await.status, 201);
    }
    let refused = call(&app, Method::POST, "/faults", fault.clone()).await;
    refused.problem(409, "too-many-faults");
    assert_eq!(call(&app, Method::DELETE, "/faults/7", Value::Null).await.status, 204);
    assert_eq!(call(&app, Method::POST, "/faults", fault).await.json()["id"], "101");
}

/// Stores a message of the emulator account.
async fn send(app: &TestApp, template: &str, to: &str, failure: Option<u32>) -> String {
    let new = NewMessage {
        account: app.store.accounts().await.unwrap()[0].id,
        phone: PHONE.to_owned(),
        to: to.to_owned(),
        template: template.parse::<TemplateId>().unwrap(),
        version: 1,
        category: Category::Utility,
        texts: r#"{"body":"Good morning"}"#.to_owned(),
        failure,
        callback_data: None,
        at: app.clock.now(),
    };
    let stored = app.store.add_message(new).await.unwrap().unwrap();
    assert_eq!(stored.status, MessageStatus::Sent);
    stored.id.to_string()
}

#[tokio::test]
async fn messages_are_listed_newest_first_with_what_their_recipients_read() {
    let app = TestApp::start_emulator().await;
    assert_eq!(get(&app, "/messages").await, json!({"data": []}));
    let template = create(&app, "hello", "UTILITY").await;
    let first = send(&app, &template, "4915550001", None).await;
    let second = send(&app, &template, "15550102", Some(131_026)).await;
    let third = send(&app, &template, "15550103", None).await;
    let newest = get(&app, "/messages?limit=1").await;
    assert_eq!(newest["data"][0]["id"], third.as_str());
    assert_eq!(newest["next"], "?limit=1&after=3");
    let rest = get(&app, "/messages?limit=2&after=3").await;
    assert_eq!(rest.get("next"), None, "{rest}");
    assert_eq!(rest["data"][0]["id"], second.as_str());
    assert_eq!(
        rest["data"][1],
        json!({
            "id": first, "to": "4915550001", "phone_number_id": PHONE, "template_id": template,
            "name": "hello", "language": "en_US", "version": 1, "category": "UTILITY", "texts": {"body": "Good morning"},
            "status": "sent", "sent_at": "2026-09-21T14:13:20.000Z",
        })
    );

    advance(&app, "1s").await;
    let statuses = |page: &Value| -> Vec<String> {
        let messages = page["data"].as_array().unwrap().iter();
        messages.map(|it| format!("{} {}", it["status"], it["code"]).replace('"', "")).collect()
    };
    let expected = ["delivered null", "failed 131026", "delivered null"];
    assert_eq!(statuses(&get(&app, "/messages").await), expected);
    let delete = format!("/message_templates/{template}");
    assert_eq!(app.base(Method::DELETE, &delete, &Value::Null).await.status, 204);
    let message = get(&app, "/messages?limit=1").await["data"][0].clone();
    let shown = (&message["name"], &message["language"], &message["template_deleted"]);
    assert_eq!(shown, (&json!("hello"), &json!("en_US"), &json!(true)), "{message}");
    for bad in ["?limit=0", "?after=0", "?after=x", "?before=3"] {
        let refused = call(&app, Method::GET, &format!("/messages{bad}"), Value::Null).await;
        refused.problem(400, "bad-request");
    }
}

#[tokio::test]
async fn the_worker_applies_what_is_due_on_clocks_that_run() {
    let app = TestApp::start_emulator().await;
    let soon = create(&app, "soon_pending_10s", "UTILITY").await;
    let later = create(&app, "later_pending_20s", "UTILITY").await;
    let next = workers::apply_due_scripts(&app.app, app.clock.now()).await.unwrap();
    assert_eq!(next.unwrap().to_string(), "2026-09-21T14:13:30Z");
    app.clock.advance(Duration::from_secs(10));
    let next = workers::apply_due_scripts(&app.app, app.clock.now()).await.unwrap();
    assert_eq!(next.unwrap().to_string(), "2026-09-21T14:13:40Z");
    assert_eq!(status(&app, &soon).await, "APPROVED");
    assert_eq!(status(&app, &later).await, "PENDING");

    advance(&app, "1s").await;
    app.clock.advance(Duration::from_mins(1));
    let next = workers::apply_due_scripts(&app.app, app.clock.now()).await.unwrap();
    assert_eq!((next, &*status(&app, &later).await), (None, "PENDING"), "the clock stands");
}

#[tokio::test]
async fn the_running_worker_wakes_after_a_change_and_ends_when_the_service_drains() {
    let app = TestApp::start_emulator().await;
    let running = tokio::spawn(workers::run_script_runner(app.app.clone()));
    create(&app, "order_pending_10s", "UTILITY").await;
    app.clock.advance(Duration::from_secs(10));
    // Any write of an emulator account wakes the worker.
    let follow = call(&app, Method::POST, "/rules", json!({})).await;
    follow.problem(405, "method-not-allowed");
    assert_eq!(call(&app, Method::PUT, "/rules", json!({"rules": []})).await.status, 200);
    let path = "/events?after=1&wait=20";
    let events = app.base(Method::GET, path, &Value::Null).await.json();
    assert_eq!(events["data"][0]["type"], "template.approved", "{events}");
    app.app.start_draining();
    running.await.unwrap();
}
