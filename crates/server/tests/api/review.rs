//! `POST {base}/message_templates/{id}/review`.

use axum::http::Method;
use serde_json::{Value, json};

use super::app::TestApp;
use crate::harness::TestResponse;

async fn decide(app: &TestApp, id: &str, decision: &Value) -> TestResponse {
    app.call(Method::POST, &format!("/{id}/review"), decision).await
}

async fn edit(app: &TestApp, id: &str, text: &str) -> TestResponse {
    let components = json!({"components": [{"type": "BODY", "text": text}]});
    app.call(Method::PATCH, &format!("/{id}"), &components).await
}

#[tokio::test]
async fn a_decision_and_its_reason_are_shown() {
    let app = TestApp::start_reviewed().await;
    let id = app.create_named("welcome").await;
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
async fn the_approved_version_stays_live_while_an_edit_is_pending() {
    let app = TestApp::start_reviewed().await;
    let id = app.create_named("welcome").await;
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
    let rejected = decide(&app, &id, &json!({"decision": "reject"})).await.json();
    assert_eq!((&rejected["status"], &rejected["live_version"]), (&json!("REJECTED"), &json!(1)));
    assert_eq!(render().await.json()["texts"]["body"], "Hello Ada");
    edit(&app, &id, "Farewell").await;
    let approved = decide(&app, &id, &json!({"decision": "approve"})).await.json();
    assert_eq!((&approved["status"], &approved["live_version"]), (&json!("APPROVED"), &json!(3)));
    render().await.problem(422, "invalid-values");
}

#[tokio::test]
async fn a_template_is_not_live_during_a_hold() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
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
async fn a_rejected_transition_lists_the_allowed_actions() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let before = app.show(&id).await.json();
    let problem =
        decide(&app, &id, &json!({"decision": "approve"})).await.problem(409, "move-not-possible");
    assert_eq!(problem["possible"], json!(["edit", "pause", "disable", "delete"]));
    assert!(problem["detail"].as_str().unwrap().contains("APPROVED"), "{problem}");
    decide(&app, &id, &json!({"decision": "resume"})).await.problem(409, "move-not-possible");
    assert_eq!(app.show(&id).await.json(), before);
}

#[tokio::test]
async fn an_invalid_decision_lists_all_violations() {
    let app = TestApp::start().await;
    let id = app.create_named("welcome").await;
    let invalid = json!({"decision": "aprove", "reason": "\u{7}"});
    let problem = decide(&app, &id, &invalid).await.problem(422, "invalid-decision");
    let violations = problem["violations"].as_array().unwrap();
    assert_eq!(
        (&violations[0]["pointer"], &violations[0]["hint"]),
        (&json!("/decision"), &json!("did you mean `approve`?"))
    );
    assert_eq!(violations[1]["pointer"], "/reason");
    decide(&app, &id, &json!({})).await.problem(422, "invalid-decision");
    decide(&app, "7", &json!({"decision": "approve"})).await.problem(404, "template-unknown");
}

#[tokio::test]
async fn a_decision_with_an_outdated_revision_is_rejected() {
    let app = TestApp::start_reviewed().await;
    let id = app.create_named("welcome").await;
    edit(&app, &id, "something else").await;
    let approve = json!({"decision": "approve"});
    let review = format!("/{id}/review");
    let seen = ("if-match", "\"1\"");
    let response = app.call_with(Method::POST, &review, &approve, Some(seen)).await;
    response.problem(412, "revision-outdated");
    assert_eq!(app.show(&id).await.json()["status"], "PENDING");
    let seen = ("if-match", "\"2\"");
    assert_eq!(app.call_with(Method::POST, &review, &approve, Some(seen)).await.status, 200);
}

#[tokio::test]
async fn a_decision_names_the_version_that_the_reviewer_has_seen() {
    let app = TestApp::start_reviewed().await;
    let id = app.create_named("welcome").await;
    edit(&app, &id, "something else").await;
    for decision in ["approve", "reject", "pause", "disable"] {
        for version in [1, 3] {
            let outdated =
                decide(&app, &id, &json!({"decision": decision, "version": version})).await;
            assert_eq!(outdated.header("etag"), Some("\"2\""), "{outdated:?}");
            outdated.problem(412, "revision-outdated");
        }
    }
    assert_eq!(app.show(&id).await.json()["status"], "PENDING");
    let approve = json!({"decision": "approve", "version": 2});
    // Both conditions hold, or nothing is decided.
    let review = format!("/{id}/review");
    let seen = ("if-match", "\"1\"");
    let response = app.call_with(Method::POST, &review, &approve, Some(seen)).await;
    response.problem(412, "revision-outdated");
    let approved = decide(&app, &id, &approve).await.json();
    assert_eq!((&approved["status"], &approved["live_version"]), (&json!("APPROVED"), &json!(2)));
}

#[tokio::test]
async fn a_decision_with_a_member_that_it_does_not_have_decides_nothing() {
    let app = TestApp::start_reviewed().await;
    let id = app.create_named("welcome").await;
    let in_query = format!("/{id}/review?version=1");
    let response = app.call(Method::POST, &in_query, &json!({"decision": "approve"})).await;
    let problem = response.problem(400, "bad-request");
    assert!(problem["detail"].as_str().unwrap().contains("`version`"), "{problem}");
    let misspelt = json!({"decision": "approve", "verison": 1, "comment": null, "version": "1"});
    let problem = decide(&app, &id, &misspelt).await.problem(422, "invalid-decision");
    let violations: Vec<(&str, &str, &str)> = problem["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| ["pointer", "rule", "hint"].map(|name| it[name].as_str().unwrap()).into())
        .collect();
    assert_eq!(
        violations,
        [
            ("/version", "wrong-type", "write a positive integer"),
            (
                "/comment",
                "decision-member",
                "leave it out; the members are `decision`, `reason`, `version`"
            ),
            ("/verison", "decision-member", "did you mean `version`?"),
        ]
    );
    for version in [json!(0), json!(-1), json!(1.5), json!(true), json!([1]), json!(null)] {
        let wrong = json!({"decision": "approve", "version": version});
        let problem = decide(&app, &id, &wrong).await.problem(422, "invalid-decision");
        assert_eq!(problem["violations"][0]["pointer"], "/version", "{problem}");
    }
    assert_eq!(app.show(&id).await.json()["status"], "PENDING");
}

#[tokio::test]
async fn a_decision_that_races_with_an_edit_never_makes_the_unseen_version_live() {
    let app = TestApp::start_reviewed().await;
    for round in 0..60 {
        let id = app.create_named(&format!("welcome{round}")).await;
        let approve = json!({"decision": "approve", "version": 1});
        // Both are sent before either is answered, in either order.
        let (decided, edited) = if round % 2 == 0 {
            let (edited, decided) =
                tokio::join!(edit(&app, &id, "unseen"), decide(&app, &id, &approve));
            (decided, edited)
        } else {
            tokio::join!(decide(&app, &id, &approve), edit(&app, &id, "unseen"))
        };
        assert_eq!(edited.status, 200, "{edited:?}");
        let end = app.show(&id).await.json();
        let live = if decided.status == 200 { json!(1) } else { json!(null) };
        assert!([200, 412].contains(&decided.status.as_u16()), "{decided:?}");
        assert_eq!((&end["version"], &end["live_version"]), (&json!(2), &live), "round {round}");
    }
}
