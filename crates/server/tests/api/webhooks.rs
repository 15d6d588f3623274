//! `{base}/webhooks`: endpoints, their secrets, and their deliveries.

use std::time::Duration;

use axum::http::Method;
use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::delivery::{DeliveryOutcome, RetryDecision},
};
use galley_server::Clock as _;
use galley_store::{Attempt, DeliveryLease, DueDelivery};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::app::{KEY, PHONE, TOKEN, TestApp, request};
use crate::harness::TestResponse;

const URL: &str = "https://hooks.example/galley";

async fn call(app: &TestApp, method: Method, rest: &str, body: &Value) -> TestResponse {
    app.base(method, &format!("/webhooks{rest}"), body).await
}

async fn get(app: &TestApp, rest: &str) -> TestResponse {
    call(app, Method::GET, rest, &Value::Null).await
}

/// Registers an endpoint and returns the response.
async fn register(app: &TestApp, document: &Value) -> Value {
    let response = call(app, Method::POST, "", document).await;
    assert_eq!(response.status, 201, "{response:?}");
    response.json()
}

/// Registers an endpoint and returns its id.
async fn register_id(app: &TestApp) -> String {
    register(app, &json!({"url": URL})).await["id"].as_str().unwrap().to_owned()
}

fn later(app: &TestApp, hours: i64) -> String {
    format!("{:.3}", app.clock.now() + SignedDuration::from_hours(hours))
}

#[tokio::test]
async fn the_secret_of_an_endpoint_is_shown_only_once() {
    let app = TestApp::start().await;
    let events = json!(["template.approved", "template.rejected"]);
    let response = call(&app, Method::POST, "", &json!({"url": URL, "events": events})).await;
    assert_eq!(response.status, 201, "{response:?}");
    let mut endpoint = response.json();
    let id = endpoint["id"].as_str().unwrap().to_owned();
    assert_eq!(response.header("location"), Some(&*format!("webhooks/{id}")));
    let secret = endpoint.as_object_mut().unwrap().remove("secret").unwrap();
    let secret = secret.as_str().unwrap();
    let key = secret.strip_prefix("whsec_").unwrap();
    assert!((32..=88).contains(&key.len()), "{secret}");
    let now = format!("{:.3}", app.clock.now());
    assert_eq!(
        endpoint,
        json!({"id": id, "url": URL, "events": events, "format": "galley", "behind": 0,
            "created_at": now, "updated_at": now})
    );
    assert_eq!(get(&app, &format!("/{id}")).await.json(), endpoint);
    assert_eq!(get(&app, "").await.json(), json!({"data": [endpoint]}));
    let other = register(&app, &json!({"url": URL})).await;
    assert_ne!(other["secret"].as_str(), Some(secret), "every endpoint has its own");
    assert_eq!(other.get("events"), None, "absent means all types");
    let changed = json!({"disabled": true});
    let responses = [
        call(&app, Method::PATCH, &format!("/{id}"), &changed).await,
        get(&app, &format!("/{id}/deliveries")).await,
        get(&app, "").await,
    ];
    for response in responses {
        assert!(!response.text().contains("secret"), "{response:?}");
    }
    let stored = app.store.webhooks(account(&app).await).await.unwrap();
    let stored = format!("{:?}", stored[0].secret);
    assert!(!stored.contains(&format!("{:?}", secret.as_bytes())[1..20]), "{stored}");
    let log = app.into_log();
    assert!(!log.contains("whsec_") && !log.contains("hooks.example"), "{log}");
}

#[tokio::test]
async fn an_invalid_document_lists_all_violations() {
    let app = TestApp::start().await;
    let invalid = json!({"url": "ftp://hooks.example", "events": ["template.aproved", 7]});
    let problem = call(&app, Method::POST, "", &invalid).await.problem(422, "invalid-webhook");
    let violations: Vec<(&str, &str)> = problem["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["pointer"].as_str().unwrap(), it["rule"].as_str().unwrap()))
        .collect();
    assert_eq!(
        violations,
        [("/url", "url-scheme"), ("/events/0", "not-a-choice"), ("/events/1", "wrong-type")]
    );
    assert_eq!(problem["violations"][1]["hint"], "did you mean `template.approved`?");
    call(&app, Method::POST, "", &json!({})).await.problem(422, "invalid-webhook");
    call(&app, Method::POST, "", &Value::Null).await.problem(400, "malformed-json");
    assert_eq!(get(&app, "").await.json(), json!({"data": []}));
    let id = register_id(&app).await;
    let item = format!("/{id}");
    call(&app, Method::PATCH, &item, &json!({})).await.problem(422, "invalid-webhook");
    call(&app, Method::PATCH, &item, &json!({"disabled": 1})).await.problem(422, "invalid-webhook");
    get(&app, "?limit=1").await.problem(400, "bad-request");
    get(&app, &format!("/{id}?version=1")).await.problem(400, "bad-request");
}

#[tokio::test]
async fn duplicate_event_types_are_stored_once() {
    let app = TestApp::start().await;
    let twice = json!(["template.created", "TEMPLATE.CREATED", "template.deleted"]);
    let endpoint = register(&app, &json!({"url": URL, "events": twice})).await;
    assert_eq!(endpoint["events"], json!(["template.created", "template.deleted"]));
}

#[tokio::test]
async fn a_forbidden_address_is_neither_registered_nor_stored() {
    let app = TestApp::start().await;
    let id = register_id(&app).await;
    let before = get(&app, "").await.json();
    for url in [
        "http://hooks.example/galley",
        "https://127.0.0.1/",
        "https://[::1]:8443/",
        "https://169.254.169.254/latest/meta-data",
        "https://private.example/",
        "https://mixed.example/",
        "https://unknown.example/",
    ] {
        let document = json!({"url": url});
        let responses = [
            call(&app, Method::POST, "", &document).await,
            call(&app, Method::PATCH, &format!("/{id}"), &document).await,
        ];
        for response in responses {
            let problem = response.problem(422, "invalid-webhook");
            let violations = problem["violations"].as_array().unwrap();
            assert_eq!(violations.len(), 1, "{url}: {problem}");
            let violation = &violations[0];
            assert_eq!(
                (&violation["pointer"], &violation["rule"]),
                (&json!("/url"), &json!("webhook-address")),
                "{url}"
            );
            assert!(!violation["message"].as_str().unwrap().is_empty(), "{url}");
            assert!(violation["hint"].is_string(), "{url}");
        }
    }
    assert_eq!(get(&app, "").await.json(), before);
}

#[tokio::test]
async fn a_private_name_gets_the_same_answer_as_a_name_that_does_not_exist() {
    let app = TestApp::start().await;
    let id = register_id(&app).await;
    let item = format!("/{id}");
    for (method, path) in [(Method::POST, ""), (Method::PATCH, &*item)] {
        let mut answers = Vec::new();
        for name in ["private.example", "mixed.example", "unknown.example"] {
            let document = json!({"url": format!("https://{name}/")});
            let response = call(&app, method.clone(), path, &document).await;
            let problem = response.problem(422, "invalid-webhook");
            answers.push(problem["violations"].to_string().replace(name, "NAME"));
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{answers:?}");
    }
}

#[tokio::test]
async fn an_operator_can_allow_private_networks_and_http() {
    let app = TestApp::start_private().await;
    for url in ["http://127.0.0.1:9000/hook", "https://private.example/", "http://unknown.example"]
    {
        let endpoint = register(&app, &json!({"url": url})).await;
        assert_eq!(endpoint["url"], url);
    }
    let with_password = json!({"url": "http://me:secret@127.0.0.1/"});
    call(&app, Method::POST, "", &with_password).await.problem(422, "invalid-webhook");
}

#[tokio::test]
async fn an_edit_changes_only_the_given_fields_of_an_endpoint() {
    let app = TestApp::start().await;
    let id = register_id(&app).await;
    let item = format!("/{id}");
    let created_at = get(&app, &item).await.json()["created_at"].clone();
    app.clock.advance(Duration::from_secs(1));
    let change = async |document: Value| {
        let response = call(&app, Method::PATCH, &item, &document).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(get(&app, &item).await.json(), response.json());
        response.json()
    };
    let events = json!(["template.created"]);
    let endpoint = change(json!({"events": events})).await;
    assert_eq!((&endpoint["url"], &endpoint["events"]), (&json!(URL), &events));
    assert_eq!(endpoint["created_at"], created_at);
    assert_eq!(endpoint["updated_at"], format!("{:.3}", app.clock.now()));
    let other = "https://hooks.example/v2";
    let endpoint = change(json!({"url": other})).await;
    assert_eq!((&endpoint["url"], &endpoint["events"]), (&json!(other), &events));
    assert_eq!(change(json!({"events": []})).await.get("events"), None);
}

#[tokio::test]
async fn an_endpoint_can_be_disabled_and_enabled_again() {
    let app = TestApp::start().await;
    let id = register_id(&app).await;
    let item = format!("/{id}");
    let off = call(&app, Method::PATCH, &item, &json!({"disabled": true})).await.json();
    let since = format!("{:.3}", app.clock.now());
    assert_eq!(off["disabled_at"], since);
    assert_eq!(off["disabled_because"], "switched_off");
    app.create_named("while disabled").await;
    app.clock.advance(Duration::from_mins(1));
    let again = call(&app, Method::PATCH, &item, &json!({"disabled": true})).await.json();
    assert_eq!(again["disabled_at"], since, "it has been disabled since then");
    assert_eq!(again["behind"], 1);
    let on = call(&app, Method::PATCH, &item, &json!({"disabled": false})).await.json();
    assert_eq!((on.get("disabled_at"), on.get("disabled_because")), (None, None));
    assert_eq!(on["behind"], 1, "events during the time are delivered");
}

#[tokio::test]
async fn an_account_has_at_most_twenty_endpoints() {
    let app = TestApp::start().await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(register_id(&app).await);
    }
    call(&app, Method::POST, "", &json!({"url": URL})).await.problem(409, "too-many-webhooks");
    let listed = get(&app, "").await.json();
    let listed: Vec<&str> =
        listed["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(listed, ids, "oldest first");
    call(&app, Method::DELETE, &format!("/{}", ids[7]), &Value::Null).await;
    register_id(&app).await;
    app.account("second", &["222"], "second-key", "second-token").await;
    let by_stranger = request(
        Method::POST,
        "/api/v1.0/222/second-key/webhooks",
        "second-token",
        json!({"url": URL}).to_string(),
    );
    assert_eq!(app.send(by_stranger).await.status, 201, "the limit is per account");
}

#[tokio::test]
async fn a_deleted_endpoint_and_one_of_another_account_are_404() {
    let app = TestApp::start().await;
    app.create_named("t").await;
    let id = register_id(&app).await;
    app.account("second", &["222"], "second-key", "second-token").await;
    let calls = [
        (Method::GET, "", Value::Null),
        (Method::PATCH, "", json!({"disabled": true})),
        (Method::POST, "/rotate", Value::Null),
        (Method::GET, "/deliveries", Value::Null),
        (Method::POST, "/replay", json!({"event": 1})),
        (Method::POST, "/replay", json!({"since": "2026-01-01T00:00:00Z"})),
        (Method::DELETE, "", Value::Null),
    ];
    let before = get(&app, "").await.json();
    let rejected = async |phone: &str, key: &str, token: &str, id: &str| {
        for (method, rest, body) in &calls {
            let path = format!("/api/v1.0/{phone}/{key}/webhooks/{id}{rest}");
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let response = app.send(request(method.clone(), &path, token, body)).await;
            response.problem(404, "webhook-unknown");
        }
    };
    rejected("222", "second-key", "second-token", &id).await;
    for no_id in ["0", "01", "x", "9007199254740992"] {
        rejected(PHONE, KEY, TOKEN, no_id).await;
    }
    assert_eq!(get(&app, "").await.json(), before);
    let deleted = call(&app, Method::DELETE, &format!("/{id}"), &Value::Null).await;
    assert_eq!((deleted.status.as_u16(), deleted.text()), (204, ""));
    rejected(PHONE, KEY, TOKEN, &id).await;
    assert_eq!(get(&app, "").await.json(), json!({"data": []}));
}

#[tokio::test]
async fn registering_an_endpoint_ignores_the_idempotency_key() {
    let app = TestApp::start().await;
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let path = format!("/api/v1.0/{PHONE}/{KEY}/webhooks");
        let mut request = request(Method::POST, &path, TOKEN, json!({"url": URL}).to_string());
        request.headers_mut().insert("idempotency-key", "the same".parse().unwrap());
        secrets.push(app.send(request).await.json()["secret"].clone());
    }
    assert_ne!(secrets[0], secrets[1]);
    assert_eq!(get(&app, "").await.json()["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn after_a_rotation_the_former_secret_is_valid_for_a_day() {
    let app = TestApp::start().await;
    let first = register(&app, &json!({"url": URL})).await;
    let item = format!("/{}", first["id"].as_str().unwrap());
    let rotate =
        async |body: Value| call(&app, Method::POST, &format!("{item}/rotate"), &body).await;
    app.clock.advance(Duration::from_secs(1));
    let response = rotate(Value::Null).await;
    assert_eq!(response.status, 200, "{response:?}");
    let second = response.json();
    assert_ne!(second["secret"], first["secret"]);
    let until = later(&app, 24);
    assert_eq!(second["former_secret_until"], until);
    assert_eq!(second["updated_at"], format!("{:.3}", app.clock.now()));
    let shown = get(&app, &item).await.json();
    assert_eq!((&shown["former_secret_until"], shown.get("secret")), (&json!(until), None));

    app.clock.advance(Duration::from_hours(23));
    for body in [Value::Null, json!({}), json!({"force": false})] {
        let problem = rotate(body).await.problem(409, "rotation-open");
        assert_eq!(problem["until"], until);
    }
    let forced = rotate(json!({"force": true})).await.json();
    assert_ne!(forced["secret"], second["secret"]);
    assert_eq!(forced["former_secret_until"], later(&app, 24));

    app.clock.advance(Duration::from_hours(24));
    assert_eq!(get(&app, &item).await.json().get("former_secret_until"), None);
    assert_eq!(rotate(json!({})).await.status, 200);
    rotate(json!({"force": "yes"})).await.problem(422, "invalid-webhook");
    rotate(json!([])).await.problem(422, "invalid-webhook");
    let path = format!("/api/v1.0/{PHONE}/{KEY}/webhooks{item}/rotate");
    app.send(request(Method::POST, &path, TOKEN, "{")).await.problem(400, "malformed-json");
}

async fn account(app: &TestApp) -> AccountId {
    app.store.accounts().await.unwrap()[0].id
}

/// Leases the next due delivery, as a delivery worker does.
async fn lease(app: &TestApp, id: &str) -> Option<Box<DueDelivery>> {
    let now = app.clock.now();
    let lease = now + SignedDuration::from_secs(20);
    let id: WebhookId = id.parse().unwrap();
    match app.store.lease_delivery(id, now..lease).await.unwrap() {
        DeliveryLease::Due(due) => Some(due),
        DeliveryLease::NothingDue(_) => None,
    }
}

/// Records an attempt with this response status, or without a response.
async fn record(app: &TestApp, due: &DueDelivery, status: Option<u16>, verdict: RetryDecision) {
    let attempt = Attempt {
        webhook: due.webhook.id,
        seq: due.event.seq,
        lease_until: due.lease_until,
        url: due.webhook.url.clone(),
        at: app.clock.now(),
        outcome: status.map_or(DeliveryOutcome::NoResponse, |status| {
            DeliveryOutcome::from_status(status, None)
        }),
        response_status: status,
        failure: status.is_none().then(|| "no \"response\"".to_owned()),
        decision: verdict,
    };
    app.store.record_attempt(attempt).await.unwrap();
}

/// An endpoint with one successful, one waiting and one failed delivery.
async fn with_deliveries(app: &TestApp) -> (String, Vec<String>) {
    let id = register_id(app).await;
    let mut templates = Vec::new();
    for name in ["first", "second", "third"] {
        templates.push(app.create_named(name).await);
    }
    let outcomes = [
        (Some(204), RetryDecision::Delivered),
        (None, RetryDecision::RetryAfter(Duration::from_secs(5))),
        (Some(500), RetryDecision::Failed),
    ];
    for (status, verdict) in outcomes {
        let due = lease(app, &id).await.unwrap();
        record(app, &due, status, verdict).await;
    }
    (id, templates)
}

#[tokio::test]
async fn deliveries_show_the_result_of_each_event() {
    let app = TestApp::start().await;
    let (id, templates) = with_deliveries(&app).await;
    let now = app.clock.now();
    let next = now + SignedDuration::from_secs(5);
    let now = format!("{now:.3}");
    let delivered = json!({
        "seq": 1, "type": "template.created", "template_id": templates[0], "status": "delivered",
        "attempts": 1, "last_attempt_at": now, "response_status": 204,
    });
    let waiting = json!({
        "seq": 2, "type": "template.created", "template_id": templates[1], "status": "waiting",
        "attempts": 1, "last_attempt_at": now, "next_attempt_at": format!("{next:.3}"),
        "failure": "no \"response\"",
    });
    let failed = json!({
        "seq": 3, "type": "template.created", "template_id": templates[2], "status": "failed",
        "attempts": 1, "last_attempt_at": now, "response_status": 500,
    });
    let listed = async |query: &str| get(&app, &format!("/{id}/deliveries{query}")).await;
    assert_eq!(
        listed("").await.json(),
        json!({"data": [failed, waiting, delivered], "paging": {"cursors": {"after": "1"}}})
    );
    for (query, expected) in [
        ("?status=delivered", &delivered),
        ("?status=WAITING", &waiting),
        ("?status=failed&limit=1", &failed),
    ] {
        assert_eq!(listed(query).await.json()["data"], json!([expected]), "{query}");
    }
    let page = listed("?limit=2").await.json();
    assert_eq!(page["data"], json!([failed, waiting]));
    assert_eq!(page["paging"]["next"], "?limit=2&after=2");
    assert_eq!(
        listed("?limit=2&after=2").await.json(),
        json!({"data": [delivered], "paging": {"cursors": {"after": "1"}}})
    );
    assert_eq!(listed("?after=1").await.json(), json!({"data": [], "paging": {"cursors": {}}}));
    for query in ["?status=lost", "?after=0", "?after=x", "?limit=0", "?wait=1"] {
        listed(query).await.problem(400, "bad-request");
    }
    let webhook = get(&app, &format!("/{id}")).await.json();
    assert_eq!((&webhook["failing_since"], &webhook["behind"]), (&json!(now), &json!(0)));
}

#[tokio::test]
async fn a_replay_sends_one_event_or_all_since_a_timestamp() {
    let app = TestApp::start().await;
    let (id, _) = with_deliveries(&app).await;
    let replay =
        async |what: Value| call(&app, Method::POST, &format!("/{id}/replay"), &what).await;
    let response = replay(json!({"event": 3})).await;
    assert_eq!((response.status.as_u16(), response.text()), (202, r#"{"events":1}"#));
    assert_eq!(lease(&app, &id).await.unwrap().event.seq, 3);
    let begin: Timestamp = app.clock.now();
    app.clock.advance(Duration::from_mins(1));
    app.create_named("fourth").await;
    let all = replay(json!({"since": begin.to_string()})).await;
    assert_eq!((all.status.as_u16(), all.text()), (202, r#"{"events":4}"#));
    let none = replay(json!({"since": later(&app, 1)})).await;
    assert_eq!(none.json(), json!({"events": 0}));
    for unknown in [5, 9_007_199_254_740_991_u64] {
        replay(json!({"event": unknown})).await.problem(404, "event-unknown");
    }
    for invalid in [
        json!({}),
        json!({"event": 1, "since": begin.to_string()}),
        json!({"event": 0}),
        json!({"event": "1"}),
        json!({"since": "yesterday"}),
    ] {
        replay(invalid).await.problem(422, "invalid-webhook");
    }
}

#[tokio::test]
async fn a_deleted_event_cannot_be_replayed() {
    let app = TestApp::start().await;
    app.create_named("first").await;
    app.clock.advance(Duration::from_hours(1));
    app.create_named("second").await;
    let id = register_id(&app).await;
    assert_eq!(app.store.delete_expired_events(app.clock.now()).await.unwrap(), 1);
    let replay =
        async |what: Value| call(&app, Method::POST, &format!("/{id}/replay"), &what).await;
    let problem = replay(json!({"event": 1})).await.problem(410, "events-forgotten");
    assert_eq!(problem["oldest"], 2);
    assert_eq!(replay(json!({"event": 2})).await.status, 202);
    let since = json!({"since": "2000-01-01T00:00:00Z"});
    assert_eq!(replay(since).await.json(), json!({"events": 1}), "only stored events are replayed");
}
