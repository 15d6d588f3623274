//! Statuses of sandbox messages by webhook.

use std::time::Duration;

use galley_domain::id::WebhookId;
use galley_server::{
    delivery::{META_SIGNATURE_HEADER, PostRequest, Secret, verify_meta},
    workers::{StatusStepOutcome, run_status_sender, send_statuses},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::emulator::{Emulator, PHONE, SECRET, message};

const TIMEOUT: Duration = Duration::from_secs(30);

/// The statuses of all requests since the last call, as lines.
pub(super) fn received(emulator: &Emulator) -> Vec<String> {
    emulator.receiver.take().iter().flat_map(|it| statuses(emulator, it)).collect()
}

/// The statuses of a request, as lines of recipient, status and code. Checks everything else.
fn statuses(emulator: &Emulator, request: &PostRequest) -> Vec<String> {
    let secret = Secret::from_app_secret(SECRET).unwrap();
    let header = |name: &str| {
        let found = request.headers.iter().find(|(header, _)| header.as_str() == name);
        found.map(|(_, value)| value.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    verify_meta(&secret, &header(META_SIGNATURE_HEADER), &request.body).unwrap();
    assert!(header("webhook-id").starts_with("sts_"), "{request:?}");
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let [entry] = &body["entry"].as_array().unwrap()[..] else { panic!("{body}") };
    assert_eq!(entry["id"], emulator.account.to_string());
    entry["changes"].as_array().unwrap().iter().map(line).collect()
}

fn line(change: &Value) -> String {
    assert_eq!(change["field"], "messages");
    let value = &change["value"];
    assert_eq!(value["metadata"]["phone_number_id"], PHONE);
    let [status] = &value["statuses"].as_array().unwrap()[..] else { panic!("{value}") };
    assert_eq!(value["contacts"][0]["wa_id"], status["recipient_id"]);
    let code = status["errors"][0]["code"].as_u64().map(|it| format!(" {it}")).unwrap_or_default();
    let text = |name: &str| status[name].as_str().unwrap();
    format!("{} {}{code}", text("recipient_id"), text("status"))
}

/// Sends all due statuses; returns those of each request.
async fn send_all(emulator: &Emulator, endpoint: WebhookId) -> Vec<Vec<String>> {
    while let StatusStepOutcome::Sent(_) = send_statuses(&emulator.app, endpoint).await.unwrap() {}
    emulator.receiver.take().iter().map(|request| statuses(emulator, request)).collect()
}

#[tokio::test]
async fn statuses_follow_the_clock_of_the_account() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.create_named("order_shipped").await;
    emulator.advance("60s").await;
    let id = emulator.send_to("order_shipped", "15550001111").await;
    assert_eq!(send_all(&emulator, endpoint).await, [["15550001111 sent"]]);
    emulator.clock.advance(Duration::from_secs(10));
    assert_eq!(send_all(&emulator, endpoint).await, [[""; 1]; 0], "the account's clock stands");
    emulator.advance("1s").await;
    let step = send_statuses(&emulator.app, endpoint).await.unwrap();
    assert_eq!(step, StatusStepOutcome::Sent(1));
    let requests = emulator.receiver.take();
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    let status = &body["entry"][0]["changes"][0]["value"]["statuses"][0];
    assert_eq!((&status["id"], &status["status"]), (&json!(id), &json!("delivered")));
    let at = jiff::Timestamp::from_second(status["timestamp"].as_str().unwrap().parse().unwrap());
    assert_eq!(at.unwrap().to_string(), "2026-11-15T12:01:01Z");
    emulator.advance("1s").await;
    assert_eq!(send_all(&emulator, endpoint).await, [[""; 1]; 0], "it is read after 3 s");
    emulator.advance("1s").await;
    assert_eq!(send_all(&emulator, endpoint).await, [["15550001111 read"]]);
    let step = send_statuses(&emulator.app, endpoint).await.unwrap();
    assert_eq!(step, StatusStepOutcome::Idle(None));
}

#[tokio::test]
async fn few_statuses_are_sent_one_by_one_in_the_order_of_their_times() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.create_named("order_shipped").await;
    emulator.advance("1s").await;
    emulator.send_to("order_shipped", "15550000001").await;
    emulator.send_to("order_shipped", "1555010131026").await;
    emulator.advance("1s").await;
    emulator.send_to("order_shipped", "15550000002").await;
    emulator.advance("60s").await;
    let expected = [
        "15550000001 sent",
        "1555010131026 sent",
        "15550000001 delivered",
        "1555010131026 failed 131026",
        "15550000002 sent",
        "15550000002 delivered",
        "15550000001 read",
        "15550000002 read",
    ];
    let sent = send_all(&emulator, endpoint).await;
    assert!(sent.iter().all(|it| it.len() == 1), "{sent:?}");
    assert_eq!(sent.concat(), expected, "those with the same time in the order of their messages");
}

#[tokio::test]
async fn many_statuses_are_sent_in_requests_of_at_most_100() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.create_named("order_shipped").await;
    emulator.advance("1s").await;
    for number in 0..120 {
        emulator.send_to("order_shipped", &format!("15550000{number:03}")).await;
    }
    emulator.advance("60s").await;
    let sent = send_all(&emulator, endpoint).await;
    let sizes: Vec<usize> = sent.iter().map(Vec::len).collect();
    assert_eq!(sizes, [100, 100, 100, 60]);
    let all = sent.concat();
    for (from, status) in [(0, "sent"), (120, "delivered"), (240, "read")] {
        for number in 0..120 {
            assert_eq!(all[from + number], format!("15550000{number:03} {status}"));
        }
    }
}

#[tokio::test]
async fn after_a_failure_the_same_statuses_are_sent_again() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.create_named("order_shipped").await;
    emulator.advance("1s").await;
    emulator.send_to("order_shipped", "15550000001").await;
    emulator.send_to("order_shipped", "15550000002").await;
    emulator.receiver.respond(&[200, 503, 500]);
    let step = async || send_statuses(&emulator.app, endpoint).await.unwrap();
    assert_eq!(step().await, StatusStepOutcome::Failed);
    assert_eq!(step().await, StatusStepOutcome::Failed, "the lease has ended");
    assert_eq!(step().await, StatusStepOutcome::Sent(1));
    let sent = emulator.receiver.take();
    let lines: Vec<String> = sent.iter().flat_map(|it| statuses(&emulator, it)).collect();
    let second = "15550000002 sent";
    assert_eq!(lines, ["15550000001 sent", second, second, second]);
    assert_eq!(sent[1].headers, sent[3].headers, "the receiver recognises the repetition");
}

#[tokio::test]
async fn the_sender_wakes_for_a_message_and_drains() {
    let emulator = Emulator::start().await;
    emulator.register().await;
    emulator.create_named("order_shipped").await;
    let mut arrivals = emulator.receiver.arrivals();
    let sender = tokio::spawn(run_status_sender(emulator.app.clone()));
    emulator.advance("1s").await;
    for number in 1..=3 {
        let to = format!("1555000000{number}");
        emulator.send_to("order_shipped", &to).await;
        let body = timeout(TIMEOUT, arrivals.recv()).await.unwrap().unwrap();
        assert_eq!(line(&body["entry"][0]["changes"][0]), format!("{to} sent"));
    }
    // A failing receiver does not stop the sender.
    emulator.receiver.respond(&[500]);
    emulator.send_to("order_shipped", "15550000004").await;
    for _ in 0..2 {
        let body = timeout(TIMEOUT, arrivals.recv()).await.unwrap().unwrap();
        assert_eq!(line(&body["entry"][0]["changes"][0]), "15550000004 sent");
    }
    emulator.app.start_draining();
    timeout(TIMEOUT, sender).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_status_contains_what_the_client_wants_back() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.create_named("order_shipped").await;
    let mut message = message("order_shipped", &["Ada"]);
    message["biz_opaque_callback_data"] = json!("order 4711");
    emulator.try_send(&message).await.expect_success();
    send_statuses(&emulator.app, endpoint).await.unwrap();
    let body: Value = serde_json::from_slice(&emulator.receiver.take()[0].body).unwrap();
    let status = &body["entry"][0]["changes"][0]["value"]["statuses"][0];
    assert_eq!(status["biz_opaque_callback_data"], "order 4711");
    let pricing = json!({
        "billable": true, "pricing_model": "PMP", "type": "regular", "category": "utility",
    });
    assert_eq!(status["pricing"], pricing);
}
