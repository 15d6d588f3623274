//! Four eyes: authors do not decide on their own texts, on no surface.

use axum::http::Method;
use galley_server::Clock as _;
use galley_store::Author;
use serde_json::json;

use super::{
    app::{TestApp, hello},
    console::{call, cookie_of, link, sign_in, signed_in, templates},
};

#[tokio::test]
async fn under_four_eyes_the_author_of_a_version_does_not_decide_on_it() {
    let app = TestApp::start_reviewed().await;
    let account = app.store.accounts().await.unwrap()[0].id;
    let by = Author::operator(app.clock.now());
    app.store.set_account_four_eyes(account, true, by).await.unwrap();
    let cookie = signed_in(&app).await;
    link(&app, "gl_reviewer", "read,review").await;
    let reviewer = cookie_of(&sign_in(&app, &json!({"link": "gl_reviewer"})).await);
    let id = app.create_named("a").await;
    let review = templates(&format!("/{id}/review"));
    let approve = json!({"decision": "approve"});
    let own = call(&app, Method::POST, &review, &cookie, &approve).await;
    own.problem(403, "four-eyes");
    let programs = app.call(Method::POST, &format!("/{id}/review"), &approve).await;
    programs.problem(403, "four-eyes");
    let other = call(&app, Method::POST, &review, &reviewer, &approve).await;
    assert_eq!(other.status, 200, "{other:?}");
    assert_eq!(other.json()["status"], "APPROVED");
}

#[tokio::test]
async fn four_eyes_compare_tokens_on_every_surface() {
    let app = TestApp::start_reviewed().await;
    let account = app.store.accounts().await.unwrap()[0].id;
    let by = Author::operator(app.clock.now());
    app.store.set_account_four_eyes(account, true, by).await.unwrap();
    let (one, two) = (signed_in(&app).await, signed_in(&app).await);
    link(&app, "gl_other", "read,write,review").await;
    let other = cookie_of(&sign_in(&app, &json!({"link": "gl_other"})).await);
    let approve = json!({"decision": "approve"});
    let created = call(&app, Method::POST, &templates(""), &other, &hello("a")).await.json();
    let id = created["id"].as_str().unwrap();
    let (item, review) = (templates(&format!("/{id}")), templates(&format!("/{id}/review")));
    // Who edits the version of another person is its author. Two sessions of a token are one person.
    let edit = json!({"components": [{"type": "BODY", "text": "Edited"}]});
    assert_eq!(call(&app, Method::PATCH, &item, &one, &edit).await.status, 200);
    for cookie in [&one, &two] {
        call(&app, Method::POST, &review, cookie, &approve).await.problem(403, "four-eyes");
    }
    app.call(Method::POST, &format!("/{id}/review"), &approve).await.problem(403, "four-eyes");
    let approved = call(&app, Method::POST, &review, &other, &approve).await;
    assert_eq!(approved.json()["status"], "APPROVED", "{approved:?}");
}

#[tokio::test]
async fn under_four_eyes_saving_the_text_of_an_author_again_does_not_make_it_another_text() {
    let app = TestApp::start_reviewed().await;
    let account = app.store.accounts().await.unwrap()[0].id;
    let by = Author::operator(app.clock.now());
    app.store.set_account_four_eyes(account, true, by).await.unwrap();
    link(&app, "gl_colleague", "read,write").await;
    let colleague = cookie_of(&sign_in(&app, &json!({"link": "gl_colleague"})).await);
    let id = app.create_named("a").await;
    let (item, review) = (templates(&format!("/{id}")), format!("/{id}/review"));
    let components = app.show(&id).await.json()["components"].clone();
    let same = json!({"components": components});
    for (edit, version) in [(same, 2), (json!({"category": "MARKETING"}), 3)] {
        assert_eq!(call(&app, Method::PATCH, &item, &colleague, &edit).await.status, 200);
        let approve = json!({"decision": "approve", "version": version});
        app.call(Method::POST, &review, &approve).await.problem(403, "four-eyes");
    }
    let rewritten = json!({"components": [{"type": "BODY", "text": "Written by the colleague"}]});
    assert_eq!(call(&app, Method::PATCH, &item, &colleague, &rewritten).await.status, 200);
    let approve = json!({"decision": "approve", "version": 4});
    let approved = app.call(Method::POST, &review, &approve).await;
    assert_eq!(approved.json()["live_version"], 4, "{approved:?}");
}
