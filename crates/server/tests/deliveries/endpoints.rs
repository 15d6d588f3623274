//! Failing endpoints: probing, disabling and recovery.

use std::time::Duration;

use galley_domain::{template::lifecycle::EventType, webhook::delivery::DisableReason};
use galley_server::workers::DeliveryStepOutcome;
use galley_store::{Author, EventSubject, Feed, WebhookChange};

use super::fake_receiver::{Harness, no_response, status};

async fn last_event(harness: &Harness) -> galley_store::Event {
    let newest = harness.store.newest_event(harness.account).await.unwrap();
    match harness.store.events(harness.account, Some(newest - 1), 1).await.unwrap() {
        Feed::Events(mut events) => events.remove(0),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_endpoint_that_responds_410_is_disabled_and_an_event_reports_it() {
    let harness = Harness::start().await;
    harness.create_template("one").await;
    harness.create_template("two").await;
    harness.receiver.respond_with(status(410));
    assert_eq!(harness.step().await, DeliveryStepOutcome::Disabled(DisableReason::Gone));
    assert_eq!(harness.step().await, DeliveryStepOutcome::Idle(None));
    let event = last_event(&harness).await;
    let origin = "https://shop.example".to_owned();
    let about = EventSubject::Webhook { id: harness.webhook, origin };
    assert_eq!((event.kind, event.subject), (EventType::WebhookDisabled, about));
    assert_eq!(event.reason.as_deref(), Some("gone"));

    let enable = WebhookChange { disabled: Some(false), ..WebhookChange::default() };
    harness
        .store
        .change_webhook(harness.account, harness.webhook, enable, Author::operator(harness.now()))
        .await
        .unwrap();
    harness.advance(Duration::from_secs(6));
    let steps = harness.run_until_idle().await;
    assert_eq!(
        steps,
        [DeliveryStepOutcome::Delivered; 3],
        "no event was lost while the endpoint was disabled"
    );
}

#[tokio::test]
async fn an_endpoint_that_fails_for_five_days_is_disabled_and_one_that_recovers_is_not() {
    let harness = Harness::start().await;
    let started = harness.now();
    harness.receiver.always_respond(Some(500));
    let mut created = 0;
    let mut step = loop {
        // A client creates a template every six hours.
        if harness.now() >= started + Duration::from_hours(6 * created) {
            created += 1;
            harness.create_template(&format!("t{created}")).await;
        }
        match harness.step().await {
            DeliveryStepOutcome::Idle(due) => {
                let later = started + Duration::from_hours(6 * created);
                harness.advance_to(due.map_or(later, |due| due.min(later)).max(harness.now()));
            }
            DeliveryStepOutcome::WillRetry(_) | DeliveryStepOutcome::GaveUp => {}
            step => break step,
        }
        assert!(
            harness.now() < started + Duration::from_hours(6 * 24),
            "the endpoint is never disabled"
        );
    };
    assert_eq!(step, DeliveryStepOutcome::Disabled(DisableReason::Failing));
    let took = harness.now().duration_since(started);
    assert!(took.as_hours() >= 120, "{took:?}");
    assert_eq!(last_event(&harness).await.reason.as_deref(), Some("failing"));

    let enable = WebhookChange { disabled: Some(false), ..WebhookChange::default() };
    harness
        .store
        .change_webhook(harness.account, harness.webhook, enable, Author::operator(harness.now()))
        .await
        .unwrap();
    assert_eq!(harness.webhook().await.failing_since, None, "enabling resets the failure streak");
    // Four days of failures, one success, four days of failures: never five days in a row.
    for _ in 0..2 {
        for _ in 0..4 {
            harness.create_template(&format!("u{created}")).await;
            created += 1;
            step = harness.step().await;
            assert!(!matches!(step, DeliveryStepOutcome::Disabled(_)), "{step:?}");
            harness.advance(Duration::from_hours(24));
        }
        harness.receiver.always_respond(Some(200));
        harness.create_template(&format!("u{created}")).await;
        created += 1;
        harness.run_until_idle().await;
        harness.receiver.always_respond(Some(500));
    }
    assert_eq!(harness.webhook().await.disabled, None);
}

#[tokio::test]
async fn an_endpoint_that_is_down_is_probed_every_minute_and_gets_all_events_later() {
    let harness = Harness::start().await;
    for index in 0..50 {
        harness.create_template(&format!("t{index}")).await;
    }
    for _ in 0..10 {
        harness.receiver.respond_with(no_response());
    }
    assert_eq!(
        harness.run_until_idle().await.len(),
        10,
        "the endpoint is down after ten failures in a row"
    );
    assert!(harness.webhook().await.resting_until.is_some());
    harness.receiver.always_respond(Some(503));
    let before = harness.sent_seqs().len();
    let end = harness.now() + Duration::from_hours(1);
    while harness.now() < end {
        match harness.step().await {
            DeliveryStepOutcome::Idle(Some(due)) => harness.advance_to(due.max(harness.now())),
            DeliveryStepOutcome::Idle(None) => panic!("more events are due"),
            _ => {}
        }
    }
    let probes = harness.sent_seqs().len() - before;
    assert!((55..=75).contains(&probes), "{probes} attempts in an hour");
    harness.receiver.always_respond(None);
    loop {
        match harness.step().await {
            DeliveryStepOutcome::Idle(Some(due)) => harness.advance_to(due.max(harness.now())),
            DeliveryStepOutcome::Idle(None) => break,
            _ => {}
        }
    }
    let mut sent = harness.sent_seqs();
    sent.sort_unstable();
    sent.dedup();
    assert_eq!(sent, (1..=50).collect::<Vec<_>>());
    assert_eq!(harness.webhook().await.failing_since, None);
}
