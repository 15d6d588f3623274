//! Faults that strike webhook requests, of templates and of statuses.

use std::time::{Duration, Instant};

use axum::{
    body::Body,
    http::{Method, Request},
};
use galley_domain::id::WebhookId;
use galley_server::workers::{DeliveryStepOutcome, StatusStepOutcome, deliver_one, send_statuses};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    emulator::{Emulator, NORMAL, order},
    statuses::received,
};

const TIMEOUT: Duration = Duration::from_secs(30);

fn webhook_fault(kind: &str) -> Value {
    json!({"call": "webhook", "times": 1, "kind": kind})
}

/// The names of the templates in the requests since the last call.
fn names(emulator: &Emulator) -> Vec<String> {
    let name = |body: Value| {
        let value = &body["entry"][0]["changes"][0]["value"];
        value["message_template_name"].as_str().unwrap_or("a status").to_owned()
    };
    let requests = emulator.receiver.take();
    requests.iter().map(|it| name(serde_json::from_slice(&it.body).unwrap())).collect()
}

async fn deliver(emulator: &Emulator, endpoint: WebhookId) -> DeliveryStepOutcome {
    deliver_one(&emulator.app, endpoint).await.unwrap()
}

#[tokio::test]
async fn a_template_webhook_is_repeated_dropped_or_late() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.add_fault(&webhook_fault("duplicate")).await;
    emulator.create_named("one").await;
    assert_eq!(deliver(&emulator, endpoint).await, DeliveryStepOutcome::Delivered);
    let twice = emulator.receiver.take();
    assert_eq!(twice.len(), 2);
    assert_eq!(twice[0], twice[1], "a receiver recognises it by its id");

    emulator.add_fault(&webhook_fault("drop")).await;
    emulator.create_named("two").await;
    assert_eq!(deliver(&emulator, endpoint).await, DeliveryStepOutcome::Delivered);
    assert_eq!(names(&emulator), [""; 0]);
    assert_eq!(deliver(&emulator, endpoint).await, DeliveryStepOutcome::Idle(None));

    let delay = json!({"call": "webhook", "times": 1, "kind": "delay", "delay": "1s"});
    emulator.add_fault(&delay).await;
    emulator.create_named("three").await;
    emulator.create_named("four").await;
    let mut arrivals = emulator.receiver.arrivals();
    let started = Instant::now();
    while deliver(&emulator, endpoint).await == DeliveryStepOutcome::Delivered {}
    for _ in 0..2 {
        timeout(TIMEOUT, arrivals.recv()).await.unwrap().unwrap();
    }
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(names(&emulator), ["four", "three"]);
}

#[tokio::test]
async fn a_reordered_webhook_is_sent_after_the_next_one() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.add_fault(&webhook_fault("reorder")).await;
    let mut arrivals = emulator.receiver.arrivals();
    let id = emulator.create_named("one").await;
    assert_eq!(deliver(&emulator, endpoint).await, DeliveryStepOutcome::Delivered);
    assert_eq!(names(&emulator), [""; 0]);
    // Also of the same template, whose webhooks otherwise keep their order.
    let edit = json!({"components": [{"type": "BODY", "text": "Your order is on its way."}]});
    let path = format!("/v23.0/{id}");
    emulator.call(axum::http::Method::POST, &path, &edit).await.expect_success();
    assert_eq!(deliver(&emulator, endpoint).await, DeliveryStepOutcome::Delivered);
    let mut fields = Vec::new();
    for _ in 0..2 {
        let body = timeout(TIMEOUT, arrivals.recv()).await.unwrap().unwrap();
        fields.push(body["entry"][0]["changes"][0]["field"].as_str().unwrap().to_owned());
    }
    let expected = ["message_template_components_update", "message_template_status_update"];
    assert_eq!(fields, expected);
}

#[tokio::test]
async fn a_fault_with_a_name_strikes_webhooks_of_such_templates_only() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    let fault = json!({"call": "webhook", "name": "lost_*", "times": 9, "kind": "drop"});
    emulator.add_fault(&fault).await;
    emulator.create_named("lost_one").await;
    emulator.create_named("other").await;
    emulator.send_to("lost_one", "15550000001").await;
    while deliver(&emulator, endpoint).await == DeliveryStepOutcome::Delivered {}
    let step = send_statuses(&emulator.app, endpoint).await.unwrap();
    assert_eq!(step, StatusStepOutcome::Sent(1));
    assert_eq!(names(&emulator), ["other", "a status"]);
}

#[tokio::test]
async fn a_status_webhook_is_repeated_dropped_or_reordered() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.create_named("order_shipped").await;
    while deliver(&emulator, endpoint).await == DeliveryStepOutcome::Delivered {}
    emulator.receiver.take();
    let mut arrivals = emulator.receiver.arrivals();
    emulator.advance("1s").await;
    emulator.send_to("order_shipped", "15550000001").await;
    for kind in ["reorder", "duplicate", "drop", "reorder"] {
        emulator.add_fault(&webhook_fault(kind)).await;
    }
    emulator.advance("60s").await;
    emulator.send_to("order_shipped", "15550000002").await;
    emulator.advance("60s").await;
    let mut sent = Vec::new();
    while let StatusStepOutcome::Sent(count) = send_statuses(&emulator.app, endpoint).await.unwrap()
    {
        sent.push(count);
    }
    assert_eq!(sent, [2, 3, 1], "a step ends when requests follow that a fault has held back");
    let mut statuses = Vec::new();
    while let Ok(body) = arrivals.try_recv() {
        let status = &body["entry"][0]["changes"][0]["value"]["statuses"][0]["status"];
        statuses.push(status.as_str().unwrap().to_owned());
    }
    // Of the first message, `sent` comes after `delivered`, which comes twice, and `read` is lost. Of
    // the second one, `sent` comes between the two others.
    assert_eq!(statuses, ["delivered", "delivered", "sent", "delivered", "sent", "read"]);
}

#[tokio::test]
async fn only_webhooks_of_emulator_accounts_look_for_faults() {
    let emulator = Emulator::start().await;
    let (mine, other) = (emulator.register().await, emulator.register_for(emulator.normal).await);
    let path = format!("/v23.0/{}/message_templates", emulator.normal);
    let create = Request::post(path).header("authorization", format!("Bearer {NORMAL}"));
    let create = create.body(Body::from(order("order_shipped").to_string())).unwrap();
    emulator.send(create).await.expect_success();
    assert_eq!(deliver(&emulator, other).await, DeliveryStepOutcome::Delivered);
    assert_eq!(emulator.store_faults.calls("decide_fault"), 0);
    emulator.create_named("order_shipped").await;
    let before = emulator.store_faults.calls("decide_fault");
    assert_eq!(deliver(&emulator, mine).await, DeliveryStepOutcome::Delivered);
    assert_eq!(emulator.store_faults.calls("decide_fault"), before + 1);
}

#[tokio::test]
async fn a_template_webhook_is_recorded_before_its_copy_and_those_held_back_are_sent() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    for kind in ["reorder", "duplicate"] {
        emulator.add_fault(&webhook_fault(kind)).await;
    }
    emulator.create_named("one").await;
    assert_eq!(deliver(&emulator, endpoint).await, DeliveryStepOutcome::Delivered);
    emulator.create_named("two").await;
    let mut arrivals = emulator.receiver.arrivals();
    emulator.receiver.respond_only(1);
    let app = emulator.app.clone();
    let step = tokio::spawn(async move { deliver_one(&app, endpoint).await.unwrap() });
    for _ in 0..2 {
        timeout(TIMEOUT, arrivals.recv()).await.unwrap().unwrap();
    }
    // The receiver takes longer for the copy than the lease lasts.
    emulator.clock.advance(Duration::from_mins(10));
    let other = timeout(TIMEOUT, deliver(&emulator, endpoint)).await.unwrap();
    assert_eq!(other, DeliveryStepOutcome::Idle(None));
    emulator.receiver.unblock();
    assert_eq!(step.await.unwrap(), DeliveryStepOutcome::Delivered);
    assert_eq!(names(&emulator), ["two", "two", "one"]);
}

#[tokio::test]
async fn statuses_are_recorded_before_their_copy_and_those_held_back_are_sent() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.create_named("order_shipped").await;
    for kind in ["reorder", "duplicate"] {
        emulator.add_fault(&webhook_fault(kind)).await;
    }
    emulator.advance("1s").await;
    emulator.send_to("order_shipped", "15550000001").await;
    emulator.send_to("order_shipped", "15550000002").await;
    let mut arrivals = emulator.receiver.arrivals();
    emulator.receiver.respond_only(1);
    let app = emulator.app.clone();
    let step = tokio::spawn(async move { send_statuses(&app, endpoint).await.unwrap() });
    for _ in 0..2 {
        timeout(TIMEOUT, arrivals.recv()).await.unwrap().unwrap();
    }
    emulator.clock.advance(Duration::from_mins(10));
    let other = timeout(TIMEOUT, send_statuses(&emulator.app, endpoint)).await.unwrap().unwrap();
    assert_eq!(other, StatusStepOutcome::Idle(None));
    emulator.receiver.unblock();
    assert_eq!(step.await.unwrap(), StatusStepOutcome::Sent(2));
    let second = "15550000002 sent";
    assert_eq!(received(&emulator), [second, second, "15550000001 sent"]);
}

#[tokio::test]
async fn template_webhooks_have_the_times_of_the_clock() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.advance("31536000s").await;
    emulator.create_named("order_to_marketing").await;
    while deliver(&emulator, endpoint).await == DeliveryStepOutcome::Delivered {}
    let requests = emulator.receiver.take();
    let body: Value = serde_json::from_slice(&requests[1].body).unwrap();
    let now = 1_794_744_000 + 31_536_000; // 2026-11-15T12:00:00Z and a year
    assert_eq!(body["entry"][0]["time"], now);
    let value = &body["entry"][0]["changes"][0]["value"];
    assert_eq!(value["correct_category"], "MARKETING");
    assert_eq!(value["category_update_timestamp"], now + 86_400);

    // A step that is applied late has the time at which it was due.
    emulator.advance("172800s").await;
    while deliver(&emulator, endpoint).await == DeliveryStepOutcome::Delivered {}
    let requests = emulator.receiver.take();
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(body["entry"][0]["changes"][0]["value"]["new_category"], "MARKETING");
    assert_eq!(body["entry"][0]["time"], now + 86_400);

    let path = format!("/v23.0/{}/message_templates?name=order_to_marketing", emulator.account);
    emulator.call(Method::DELETE, &path, &Value::Null).await.expect_success();
    while deliver(&emulator, endpoint).await == DeliveryStepOutcome::Delivered {}
    let requests = emulator.receiver.take();
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(body["entry"][0]["changes"][0]["value"]["event"], "DELETED");
    assert_eq!(body["entry"][0]["time"], now + 2 * 86_400);
}
