//! `POST {base}/message_templates/{id}/review`.

use axum::http::Method;
use serde_json::{Value, json};

use super::app::{Answer, TestApp};

async fn decide(app: &TestApp, id: &str, decision: &Value) -> Answer {
    app.call(Method::POST, &format!("/{id}/review"), decision).await
}

async fn edit(app: &TestApp, id: &str, text: &str) -> Answer {
    let components = json!({"components": [{"type": "BODY", "text": text}]});
    app.call(Method::PATCH, &format!("/{id}"), &components).await
}

#[tokio::test]
async fn a_reviewer_decides_with_a_reason_and_the_answer_shows_it() {
    let app = TestApp::start_reviewed().await;
    let id = app.made("welcome").await;
    let waiting = app.show(&id).await.json();
    assert_eq!((&waiting["status"], waiting.get("live_version")), (&json!("PENDING"), None));
    let reject = json!({"decision": "reject", "reason": "Too \"loud\"\nfor us"});
    let rejected = decide(&app, &id, &reject).await;
    assert_eq!((rejected.status.as_u16(), rejected.header("etag")), (200, Some("\"2\"")));
    let rejected = rejected.json();
    assert_eq!(rejected["status"], "REJECTED");
    assert_eq!(rejected["rejection_reason"], reject["reason"]);
    assert_eq!(app.show(&id).await.json(), rejected);
    let versions = app.call(Method::GET, &format!("/{id}/versions"), &Value::Null).await.json();
    let version = &versions["data"][0];
    assert_eq!((&version["status"], &version["reason"]), (&json!("REJECTED"), &reject["reason"]));
    assert!(version["decided_by"].is_string() && version["decided_at"].is_string(), "{version}");
}

#[tokio::test]
async fn while_an_edit_waits_the_approved_version_stays_live_and_renders() {
    let app = TestApp::start_reviewed().await;
    let id = app.made("welcome").await;
    let render = async || {
        let values = json!({"body": ["Ada"]});
        app.call(Method::POST, &format!("/{id}/render"), &values).await
    };
    render().await.problem(409, "not-live");
    decide(&app, &id, &json!({"decision": "approve"})).await;
    assert_eq!(render().await.json()["texts"]["body"], "Hello Ada");
    let waiting = edit(&app, &id, "Goodbye").await.json();
    assert_eq!(
        (&waiting["status"], &waiting["version"], &waiting["live_version"]),
        (&json!("PENDING"), &json!(2), &json!(1))
    );
    assert_eq!(render().await.json()["texts"]["body"], "Hello Ada");
    let refused = decide(&app, &id, &json!({"decision": "reject"})).await.json();
    assert_eq!((&refused["status"], &refused["live_version"]), (&json!("REJECTED"), &json!(1)));
    assert_eq!(render().await.json()["texts"]["body"], "Hello Ada");
    edit(&app, &id, "Farewell").await;
    let approved = decide(&app, &id, &json!({"decision": "approve"})).await.json();
    assert_eq!((&approved["status"], &approved["live_version"]), (&json!("APPROVED"), &json!(3)));
    render().await.problem(422, "invalid-values");
}

#[tokio::test]
async fn a_hold_keeps_a_template_from_being_sent_until_it_ends() {
    let app = TestApp::start().await;
    let id = app.made("welcome").await;
    let paused = decide(&app, &id, &json!({"decision": "pause", "reason": "flagged"})).await.json();
    assert_eq!((&paused["status"], paused.get("live_version")), (&json!("PAUSED"), None));
    let render = app.call(Method::POST, &format!("/{id}/render"), &json!({"body": ["Ada"]})).await;
    assert!(render.problem(409, "not-live")["detail"].as_str().unwrap().contains("PAUSED"));
    let resumed = decide(&app, &id, &json!({"decision": "RESUME"})).await.json();
    assert_eq!((&resumed["status"], &resumed["live_version"]), (&json!("APPROVED"), &json!(1)));
    let disabled = decide(&app, &id, &json!({"decision": "disable"})).await.json();
    assert_eq!(disabled["status"], "DISABLED");
    let problem = edit(&app, &id, "Goodbye").await.problem(409, "move-not-possible");
    assert_eq!(problem["possible"], json!(["delete"]));
}

#[tokio::test]
async fn a_move_that_the_table_does_not_have_lists_those_that_it_has() {
    let app = TestApp::start().await;
    let id = app.made("welcome").await;
    let before = app.show(&id).await.json();
    let problem =
        decide(&app, &id, &json!({"decision": "approve"})).await.problem(409, "move-not-possible");
    assert_eq!(problem["possible"], json!(["edit", "pause", "disable", "delete"]));
    assert!(problem["detail"].as_str().unwrap().contains("APPROVED"), "{problem}");
    decide(&app, &id, &json!({"decision": "resume"})).await.problem(409, "move-not-possible");
    assert_eq!(app.show(&id).await.json(), before);
}

#[tokio::test]
async fn a_decision_that_makes_no_sense_is_told_all_that_is_wrong() {
    let app = TestApp::start().await;
    let id = app.made("welcome").await;
    let faulty = json!({"decision": "aprove", "reason": "\u{7}"});
    let problem = decide(&app, &id, &faulty).await.problem(422, "invalid-decision");
    let told = problem["violations"].as_array().unwrap();
    assert_eq!(
        (&told[0]["pointer"], &told[0]["hint"]),
        (&json!("/decision"), &json!("did you mean `approve`?"))
    );
    assert_eq!(told[1]["pointer"], "/reason");
    decide(&app, &id, &json!({})).await.problem(422, "invalid-decision");
    decide(&app, "7", &json!({"decision": "approve"})).await.problem(404, "template-unknown");
}

#[tokio::test]
async fn whoever_decides_on_what_he_saw_is_told_when_it_has_changed() {
    let app = TestApp::start_reviewed().await;
    let id = app.made("welcome").await;
    edit(&app, &id, "something else").await;
    let approve = json!({"decision": "approve"});
    let review = format!("/{id}/review");
    let seen = ("if-match", "\"1\"");
    let answer = app.call_with(Method::POST, &review, &approve, Some(seen)).await;
    answer.problem(412, "revision-outdated");
    assert_eq!(app.show(&id).await.json()["status"], "PENDING");
    let seen = ("if-match", "\"2\"");
    assert_eq!(app.call_with(Method::POST, &review, &approve, Some(seen)).await.status, 200);
}
