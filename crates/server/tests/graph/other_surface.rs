//! What accounts of either rulebook may do on the surface of the other.

use axum::http::Method;
use galley_store::AccountLimits;
use serde_json::{Value, json};

use super::service::{OTHER, Service, TOKEN, hello};

#[tokio::test]
async fn on_api_v1_an_account_with_this_rulebook_creates_and_edits_nothing() {
    let service = Service::start().await;
    let id = service.made("hello", "en_US").await;
    let list = format!("/api/v1.0/15550001111/{TOKEN}/message_templates");
    let item = format!("{list}/{id}");
    for (method, path) in [(Method::POST, &list), (Method::PATCH, &item)] {
        let answer = service.call(method, path, &hello("other")).await;
        assert_eq!(answer.status, 409, "{}", answer.text());
        let problem: Value = serde_json::from_str(answer.text()).unwrap();
        assert_eq!(problem["type"], "/problems/wrong-surface");
        assert!(problem["detail"].as_str().unwrap().contains(&service.shop.to_string()));
    }
    for (method, path, body) in [
        (Method::GET, list.clone(), Value::Null),
        (Method::GET, item.clone(), Value::Null),
        (Method::GET, format!("{item}/versions"), Value::Null),
        (Method::GET, format!("/api/v1.0/15550001111/{TOKEN}/events"), Value::Null),
        (Method::GET, format!("/api/v1.0/15550001111/{TOKEN}/webhooks"), Value::Null),
        (Method::POST, format!("{item}/review"), json!({"decision": "pause"})),
    ] {
        let answer = service.call(method, &path, &body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    service.made("hello", "de").await;
    for (query, count) in [("name=hello", 2), ("name=hello&language=de", 1), ("name=hell", 0)] {
        let found = service.get(&format!("{list}?{query}")).await.good();
        assert_eq!(found["data"].as_array().unwrap().len(), count, "{query}");
    }
    let verdict = service.call(Method::POST, &format!("{list}/validate"), &hello("Bad Name")).await;
    let verdict = verdict.good();
    assert_eq!(verdict["violations"][0]["rule"], "name-form", "{verdict}");
    let verdict = service.call(Method::POST, &format!("{list}/validate"), &hello("hello")).await;
    assert_eq!(verdict.good()["violations"][0]["rule"], "name-taken");
}

#[tokio::test]
async fn the_dry_run_compares_with_the_templates_that_are_there() {
    let service = Service::start().await;
    let id = service.made("hello", "en_US").await;
    let path = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/validate");
    let mut spanish = hello("hello");
    spanish["language"] = json!("es");
    spanish["category"] = json!("UTILITY");
    let verdict = service.call(Method::POST, &path, &spanish).await.good();
    assert_eq!(verdict["violations"][0]["rule"], "category-differs", "{verdict}");
    assert_eq!(verdict["violations"][0]["pointer"], "/category");
    // What says the same is only warned of, whatever it is called.
    let verdict = service.call(Method::POST, &path, &hello("other")).await.good();
    assert_eq!(verdict["valid"], true, "{verdict}");
    assert_eq!(verdict["warnings"][0]["rule"], "same-content");
    assert!(verdict["warnings"][0]["message"].as_str().unwrap().contains(&id), "{verdict}");
    // A template does not stand in its own way.
    let path = format!("{path}?template={id}");
    let verdict = service.call(Method::POST, &path, &hello("hello")).await.good();
    assert_eq!((&verdict["valid"], &verdict["warnings"]), (&json!(true), &json!([])), "{verdict}");
}

#[tokio::test]
async fn the_dry_run_of_an_edit_says_what_the_edit_says() {
    let service = Service::start_reviewed().await;
    let id = service.made("hello", "en_US").await;
    let list = format!("/api/v1.0/15550001111/{TOKEN}/message_templates");
    let dry = async |edit: &Value| {
        let path = format!("{list}/validate?template={id}");
        service.call(Method::POST, &path, edit).await.good()
    };
    let category = json!({"category": "UTILITY"});
    assert_eq!(dry(&category).await["valid"], true);
    // What an edit passes over is told.
    let verdict = dry(&hello("other")).await;
    assert_eq!(
        (&verdict["valid"], &verdict["warnings"][0]["pointer"]),
        (&json!(true), &json!("/name"))
    );
    // The category of a live template stays.
    let review = json!({"decision": "approve"});
    let decided = service.call(Method::POST, &format!("{list}/{id}/review"), &review).await;
    assert_eq!(decided.status, 200, "{}", decided.text());
    let verdict = dry(&category).await;
    assert_eq!(verdict["violations"][0]["rule"], "category-locked", "{verdict}");
    service.call(Method::POST, &format!("/v23.0/{id}"), &category).await.refusal(400, 100, None);
}

#[tokio::test]
async fn the_dry_run_tells_that_an_account_has_no_room_for_another_template() {
    let service = Service::start().await;
    let limits = Some(AccountLimits { templates: 1 });
    assert!(service.store.set_account_limits(service.shop, limits).await.unwrap());
    let path = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/validate");
    let verdict = service.call(Method::POST, &path, &hello("first")).await.good();
    assert_eq!(verdict["valid"], true, "{verdict}");
    let id = service.made("first", "en_US").await;
    let verdict = service.call(Method::POST, &path, &hello("second")).await.good();
    assert_eq!(verdict["violations"][0]["rule"], "limit-reached", "{verdict}");
    // An edit needs no room.
    let path = format!("{path}?template={id}");
    let verdict = service.call(Method::POST, &path, &hello("first")).await.good();
    assert_eq!(verdict["valid"], true, "{verdict}");
}

#[tokio::test]
async fn here_an_account_with_the_other_rulebook_is_sent_to_api_v1() {
    let service = Service::start().await;
    let account = service.other;
    for (method, path) in [
        (Method::GET, format!("/v23.0/{account}")),
        (Method::GET, format!("/v23.0/{account}/message_templates")),
        (Method::POST, format!("/v23.0/{account}/message_templates")),
        (Method::POST, "/v23.0/77".to_owned()),
    ] {
        let answer = service.call_as(OTHER, method, &path, &hello("hello")).await;
        let error = answer.refusal(400, 100, None);
        assert!(error["message"].as_str().unwrap().contains("API v1.0"), "{error}");
        assert_eq!(error["galley_problem"], "wrong-surface");
    }
}
