//! `{base}/webhooks`: endpoints, their secrets, and their deliveries.

use std::time::Duration;

use axum::http::Method;
use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::delivery::{Reply, Verdict},
};
use galley_server::Clock as _;
use galley_store::{Attempt, DeliveryLease, DueDelivery};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::app::{Answer, KEY, PHONE, TOKEN, TestApp, request};

const URL: &str = "https://hooks.example/galley";

async fn call(app: &TestApp, method: Method, rest: &str, body: &Value) -> Answer {
    app.base(method, &format!("/webhooks{rest}"), body).await
}

async fn get(app: &TestApp, rest: &str) -> Answer {
    call(app, Method::GET, rest, &Value::Null).await
}

/// Registers an endpoint and answers what was told of it.
async fn registered(app: &TestApp, document: &Value) -> Value {
    let answer = call(app, Method::POST, "", document).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

async fn id_of_one(app: &TestApp) -> String {
    registered(app, &json!({"url": URL})).await["id"].as_str().unwrap().to_owned()
}

fn later(app: &TestApp, hours: i64) -> String {
    (app.clock.now() + SignedDuration::from_hours(hours)).to_string()
}

#[tokio::test]
async fn an_endpoint_is_registered_with_a_secret_that_is_told_once() {
    let app = TestApp::start().await;
    let events = json!(["template.approved", "template.rejected"]);
    let answer = call(&app, Method::POST, "", &json!({"url": URL, "events": events})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let mut told = answer.json();
    let id = told["id"].as_str().unwrap().to_owned();
    assert_eq!(answer.header("location"), Some(&*format!("webhooks/{id}")));
    let secret = told.as_object_mut().unwrap().remove("secret").unwrap();
    let secret = secret.as_str().unwrap();
    let key = secret.strip_prefix("whsec_").unwrap();
    assert!((32..=88).contains(&key.len()), "{secret}");
    let now = app.clock.now().to_string();
    assert_eq!(
        told,
        json!({"id": id, "url": URL, "events": events, "format": "galley", "behind": 0,
            "created_at": now, "updated_at": now})
    );
    assert_eq!(get(&app, &format!("/{id}")).await.json(), told);
    assert_eq!(get(&app, "").await.json(), json!({"data": [told]}));
    let other = registered(&app, &json!({"url": URL})).await;
    assert_ne!(other["secret"].as_str(), Some(secret), "every endpoint has its own");
    assert_eq!(other.get("events"), None, "absent means all of them");
    let changed = json!({"disabled": true});
    let answers = [
        call(&app, Method::PATCH, &format!("/{id}"), &changed).await,
        get(&app, &format!("/{id}/deliveries")).await,
        get(&app, "").await,
    ];
    for answer in answers {
        assert!(!answer.text.contains("secret"), "{answer:?}");
    }
    let kept = app.store.webhooks(account(&app).await).await.unwrap();
    let kept = format!("{:?}", kept[0].secret);
    assert!(!kept.contains(&format!("{:?}", secret.as_bytes())[1..20]), "{kept}");
    let log = app.into_log();
    assert!(!log.contains("whsec_") && !log.contains("hooks.example"), "{log}");
}

#[tokio::test]
async fn a_document_is_told_everything_that_is_wrong_with_it() {
    let app = TestApp::start().await;
    let faulty = json!({"url": "ftp://hooks.example", "events": ["template.aproved", 7]});
    let problem = call(&app, Method::POST, "", &faulty).await.problem(422, "invalid-webhook");
    let told: Vec<(&str, &str)> = problem["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["pointer"].as_str().unwrap(), it["rule"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [("/url", "url-scheme"), ("/events/0", "not-a-choice"), ("/events/1", "wrong-type")]
    );
    assert_eq!(problem["violations"][1]["hint"], "did you mean `template.approved`?");
    call(&app, Method::POST, "", &json!({})).await.problem(422, "invalid-webhook");
    call(&app, Method::POST, "", &Value::Null).await.problem(400, "malformed-json");
    assert_eq!(get(&app, "").await.json(), json!({"data": []}));
    let id = id_of_one(&app).await;
    let item = format!("/{id}");
    call(&app, Method::PATCH, &item, &json!({})).await.problem(422, "invalid-webhook");
    call(&app, Method::PATCH, &item, &json!({"disabled": 1})).await.problem(422, "invalid-webhook");
    get(&app, "?limit=1").await.problem(400, "bad-request");
    get(&app, &format!("/{id}?version=1")).await.problem(400, "bad-request");
}

#[tokio::test]
async fn a_type_that_is_named_twice_counts_once() {
    let app = TestApp::start().await;
    let twice = json!(["template.created", "TEMPLATE.CREATED", "template.deleted"]);
    let told = registered(&app, &json!({"url": URL, "events": twice})).await;
    assert_eq!(told["events"], json!(["template.created", "template.deleted"]));
}

#[tokio::test]
async fn where_nothing_may_be_sent_nothing_is_registered_and_no_address_is_changed() {
    let app = TestApp::start().await;
    let id = id_of_one(&app).await;
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
        let answers = [
            call(&app, Method::POST, "", &document).await,
            call(&app, Method::PATCH, &format!("/{id}"), &document).await,
        ];
        for answer in answers {
            let problem = answer.problem(422, "invalid-webhook");
            let told = problem["violations"].as_array().unwrap();
            assert_eq!(told.len(), 1, "{url}: {problem}");
            let violation = &told[0];
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
async fn an_operator_can_allow_private_networks_and_http() {
    let app = TestApp::start_private().await;
    for url in ["http://127.0.0.1:9000/hook", "https://private.example/", "http://unknown.example"]
    {
        let told = registered(&app, &json!({"url": url})).await;
        assert_eq!(told["url"], url);
    }
    let odd = json!({"url": "http://me:secret@127.0.0.1/"});
    call(&app, Method::POST, "", &odd).await.problem(422, "invalid-webhook");
}

#[tokio::test]
async fn an_endpoint_can_be_changed_and_what_is_left_out_stays() {
    let app = TestApp::start().await;
    let id = id_of_one(&app).await;
    let item = format!("/{id}");
    let created_at = get(&app, &item).await.json()["created_at"].clone();
    app.clock.advance(Duration::from_secs(1));
    let change = async |document: Value| {
        let answer = call(&app, Method::PATCH, &item, &document).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(get(&app, &item).await.json(), answer.json());
        answer.json()
    };
    let events = json!(["template.created"]);
    let told = change(json!({"events": events})).await;
    assert_eq!((&told["url"], &told["events"]), (&json!(URL), &events));
    assert_eq!(told["created_at"], created_at);
    assert_eq!(told["updated_at"], app.clock.now().to_string());
    let other = "https://hooks.example/v2";
    let told = change(json!({"url": other})).await;
    assert_eq!((&told["url"], &told["events"]), (&json!(other), &events));
    assert_eq!(change(json!({"events": []})).await.get("events"), None);
}

#[tokio::test]
async fn an_endpoint_can_be_switched_off_and_on_again() {
    let app = TestApp::start().await;
    let id = id_of_one(&app).await;
    let item = format!("/{id}");
    let off = call(&app, Method::PATCH, &item, &json!({"disabled": true})).await.json();
    let since = app.clock.now().to_string();
    assert_eq!(off["disabled_at"], since);
    assert_eq!(off["disabled_because"], "switched_off");
    app.made("while it is off").await;
    app.clock.advance(Duration::from_mins(1));
    let again = call(&app, Method::PATCH, &item, &json!({"disabled": true})).await.json();
    assert_eq!(again["disabled_at"], since, "it has been off since then");
    assert_eq!(again["behind"], 1);
    let on = call(&app, Method::PATCH, &item, &json!({"disabled": false})).await.json();
    assert_eq!((on.get("disabled_at"), on.get("disabled_because")), (None, None));
    assert_eq!(on["behind"], 1, "what came meanwhile is delivered");
}

#[tokio::test]
async fn an_account_has_at_most_twenty_endpoints() {
    let app = TestApp::start().await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(id_of_one(&app).await);
    }
    call(&app, Method::POST, "", &json!({"url": URL})).await.problem(409, "too-many-webhooks");
    let listed = get(&app, "").await.json();
    let listed: Vec<&str> =
        listed["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(listed, ids, "oldest first");
    call(&app, Method::DELETE, &format!("/{}", ids[7]), &Value::Null).await;
    id_of_one(&app).await;
    app.account("second", &["222"], "second-key", "second-token").await;
    let theirs = request(
        Method::POST,
        "/api/v1.0/222/second-key/webhooks",
        "second-token",
        json!({"url": URL}).to_string(),
    );
    assert_eq!(app.send(theirs).await.status, 201, "each account has its own twenty");
}

#[tokio::test]
async fn a_deleted_endpoint_is_gone_and_another_accounts_is_not_there() {
    let app = TestApp::start().await;
    app.made("t").await;
    let id = id_of_one(&app).await;
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
    let refused = async |phone: &str, key: &str, token: &str, id: &str| {
        for (method, rest, body) in &calls {
            let path = format!("/api/v1.0/{phone}/{key}/webhooks/{id}{rest}");
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let answer = app.send(request(method.clone(), &path, token, body)).await;
            answer.problem(404, "webhook-unknown");
        }
    };
    refused("222", "second-key", "second-token", &id).await;
    for no_id in ["0", "01", "x", "9007199254740992"] {
        refused(PHONE, KEY, TOKEN, no_id).await;
    }
    assert_eq!(get(&app, "").await.json(), before);
    let gone = call(&app, Method::DELETE, &format!("/{id}"), &Value::Null).await;
    assert_eq!((gone.status.as_u16(), &*gone.text), (204, ""));
    refused(PHONE, KEY, TOKEN, &id).await;
    assert_eq!(get(&app, "").await.json(), json!({"data": []}));
}

#[tokio::test]
async fn an_idempotency_key_is_not_looked_at() {
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
async fn a_rotation_tells_the_new_secret_and_the_former_counts_for_a_day() {
    let app = TestApp::start().await;
    let first = registered(&app, &json!({"url": URL})).await;
    let item = format!("/{}", first["id"].as_str().unwrap());
    let rotate =
        async |body: Value| call(&app, Method::POST, &format!("{item}/rotate"), &body).await;
    app.clock.advance(Duration::from_secs(1));
    let answer = rotate(Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let second = answer.json();
    assert_ne!(second["secret"], first["secret"]);
    let until = later(&app, 24);
    assert_eq!(second["former_secret_until"], until);
    assert_eq!(second["updated_at"], app.clock.now().to_string());
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

/// Takes what is due, as whoever delivers does.
async fn take(app: &TestApp, id: &str) -> Option<Box<DueDelivery>> {
    let now = app.clock.now();
    let lease = now + SignedDuration::from_secs(20);
    let id: WebhookId = id.parse().unwrap();
    match app.store.lease_delivery(id, now, lease).await.unwrap() {
        DeliveryLease::Due(due) => Some(due),
        DeliveryLease::Nothing(_) => None,
    }
}

async fn record(app: &TestApp, due: &DueDelivery, answer: Option<u16>, verdict: Verdict) {
    let attempt = Attempt {
        webhook: due.webhook.id,
        seq: due.event.seq,
        lease: due.lease,
        url: due.webhook.url.clone(),
        at: app.clock.now(),
        reply: answer.map_or(Reply::None, |status| Reply::of(status, None)),
        answer,
        failure: answer.is_none().then(|| "no \"answer\"".to_owned()),
        verdict,
    };
    app.store.record_attempt(attempt).await.unwrap();
}

/// An endpoint with one delivery that went well, one that is tried again and one that failed.
async fn with_deliveries(app: &TestApp) -> (String, Vec<String>) {
    let id = id_of_one(app).await;
    let mut templates = Vec::new();
    for name in ["first", "second", "third"] {
        templates.push(app.made(name).await);
    }
    let outcomes = [
        (Some(204), Verdict::Delivered),
        (None, Verdict::Again(Duration::from_secs(5))),
        (Some(500), Verdict::Failed),
    ];
    for (answer, verdict) in outcomes {
        let due = take(app, &id).await.unwrap();
        record(app, &due, answer, verdict).await;
    }
    (id, templates)
}

#[tokio::test]
async fn deliveries_tell_what_has_become_of_each_event() {
    let app = TestApp::start().await;
    let (id, templates) = with_deliveries(&app).await;
    let now = app.clock.now();
    let next = now + SignedDuration::from_secs(5);
    let now = now.to_string();
    let delivered = json!({
        "seq": 1, "type": "template.created", "template_id": templates[0], "status": "delivered",
        "attempts": 1, "last_attempt_at": now, "response_status": 204,
    });
    let waiting = json!({
        "seq": 2, "type": "template.created", "template_id": templates[1], "status": "waiting",
        "attempts": 1, "last_attempt_at": now, "next_attempt_at": next.to_string(),
        "failure": "no \"answer\"",
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
async fn one_event_or_all_since_a_moment_are_sent_once_more() {
    let app = TestApp::start().await;
    let (id, _) = with_deliveries(&app).await;
    let replay =
        async |what: Value| call(&app, Method::POST, &format!("/{id}/replay"), &what).await;
    let answer = replay(json!({"event": 3})).await;
    assert_eq!((answer.status.as_u16(), &*answer.text), (202, r#"{"events":1}"#));
    assert_eq!(take(&app, &id).await.unwrap().event.seq, 3);
    let begin: Timestamp = app.clock.now();
    app.clock.advance(Duration::from_mins(1));
    app.made("fourth").await;
    let all = replay(json!({"since": begin.to_string()})).await;
    assert_eq!((all.status.as_u16(), &*all.text), (202, r#"{"events":4}"#));
    let none = replay(json!({"since": later(&app, 1)})).await;
    assert_eq!(none.json(), json!({"events": 0}));
    for unknown in [5, 9_007_199_254_740_991_u64] {
        replay(json!({"event": unknown})).await.problem(404, "event-unknown");
    }
    for faulty in [
        json!({}),
        json!({"event": 1, "since": begin.to_string()}),
        json!({"event": 0}),
        json!({"event": "1"}),
        json!({"since": "yesterday"}),
    ] {
        replay(faulty).await.problem(422, "invalid-webhook");
    }
}

#[tokio::test]
async fn an_event_that_is_not_kept_any_more_cannot_be_sent_again() {
    let app = TestApp::start().await;
    app.made("first").await;
    app.clock.advance(Duration::from_hours(1));
    app.made("second").await;
    let id = id_of_one(&app).await;
    assert_eq!(app.store.delete_expired_events(app.clock.now()).await.unwrap(), 1);
    let replay =
        async |what: Value| call(&app, Method::POST, &format!("/{id}/replay"), &what).await;
    let problem = replay(json!({"event": 1})).await.problem(410, "events-forgotten");
    assert_eq!(problem["oldest"], 2);
    assert_eq!(replay(json!({"event": 2})).await.status, 202);
    let since = json!({"since": "2000-01-01T00:00:00Z"});
    assert_eq!(replay(since).await.json(), json!({"events": 1}), "as far as they are kept");
}
