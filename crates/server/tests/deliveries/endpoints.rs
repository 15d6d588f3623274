//! What becomes of endpoints that fail.

use std::time::Duration;

use galley_domain::{template::lifecycle::EventType, webhook::delivery::DisableReason};
use galley_server::workers::Step;
use galley_store::{EventSubject, Feed, WebhookChange};

use super::bench::{Bench, silence, status};

async fn last_event(bench: &Bench) -> galley_store::Event {
    let newest = bench.store.newest_event(bench.account).await.unwrap();
    match bench.store.events(bench.account, Some(newest - 1), 1).await.unwrap() {
        Feed::Events(mut events) => events.remove(0),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_endpoint_that_answers_410_is_disabled_at_once_and_an_event_says_so() {
    let bench = Bench::start().await;
    bench.create("one").await;
    bench.create("two").await;
    bench.receiver.answer(status(410));
    assert_eq!(bench.step().await, Step::Disabled(DisableReason::Gone));
    assert_eq!(bench.step().await, Step::Idle(None));
    let event = last_event(&bench).await;
    let origin = "https://shop.example".to_owned();
    let about = EventSubject::Webhook { id: bench.webhook, origin };
    assert_eq!((event.kind, event.about), (EventType::WebhookDisabled, about));
    assert_eq!(event.reason.as_deref(), Some("gone"));

    let on = WebhookChange { disabled: Some(false), ..WebhookChange::default() };
    bench.store.change_webhook(bench.account, bench.webhook, on, bench.now()).await.unwrap();
    bench.pass(Duration::from_secs(6));
    let steps = bench.settle().await;
    assert_eq!(steps, [Step::Delivered; 3], "nothing was lost while it was off");
}

#[tokio::test]
async fn an_endpoint_that_fails_for_five_days_is_disabled_and_one_that_recovers_is_not() {
    let bench = Bench::start().await;
    let begun = bench.now();
    bench.receiver.always(Some(500));
    let mut made = 0;
    let mut step = loop {
        // Somebody makes a template every few hours.
        if bench.now() >= begun + Duration::from_hours(6 * made) {
            made += 1;
            bench.create(&format!("t{made}")).await;
        }
        match bench.step().await {
            Step::Idle(due) => {
                let later = begun + Duration::from_hours(6 * made);
                bench.wait_until(due.map_or(later, |due| due.min(later)).max(bench.now()));
            }
            Step::WillRetry(_) | Step::GaveUp => {}
            step => break step,
        }
        assert!(bench.now() < begun + Duration::from_hours(6 * 24), "it is never given up");
    };
    assert_eq!(step, Step::Disabled(DisableReason::Failing));
    let took = bench.now().duration_since(begun);
    assert!(took.as_hours() >= 120, "{took:?}");
    assert_eq!(last_event(&bench).await.reason.as_deref(), Some("failing"));

    let on = WebhookChange { disabled: Some(false), ..WebhookChange::default() };
    bench.store.change_webhook(bench.account, bench.webhook, on, bench.now()).await.unwrap();
    assert_eq!(bench.endpoint().await.failing_since, None, "it begins anew");
    // Four days of failures, one success, four days of failures: that is no five days.
    for _ in 0..2 {
        for _ in 0..4 {
            bench.create(&format!("u{made}")).await;
            made += 1;
            step = bench.step().await;
            assert!(!matches!(step, Step::Disabled(_)), "{step:?}");
            bench.pass(Duration::from_hours(24));
        }
        bench.receiver.always(Some(200));
        bench.create(&format!("u{made}")).await;
        made += 1;
        bench.settle().await;
        bench.receiver.always(Some(500));
    }
    assert_eq!(bench.endpoint().await.disabled, None);
}

#[tokio::test]
async fn an_endpoint_that_is_down_is_probed_once_a_minute_and_told_everything_afterwards() {
    let bench = Bench::start().await;
    for index in 0..50 {
        bench.create(&format!("t{index}")).await;
    }
    for _ in 0..10 {
        bench.receiver.answer(silence());
    }
    assert_eq!(bench.settle().await.len(), 10, "ten failures in a row are enough");
    assert!(bench.endpoint().await.resting_until.is_some());
    bench.receiver.always(Some(503));
    let before = bench.sent().len();
    let end = bench.now() + Duration::from_hours(1);
    while bench.now() < end {
        match bench.step().await {
            Step::Idle(Some(due)) => bench.wait_until(due.max(bench.now())),
            Step::Idle(None) => panic!("there is more to deliver"),
            _ => {}
        }
    }
    let probes = bench.sent().len() - before;
    assert!((55..=75).contains(&probes), "{probes} attempts in an hour");
    bench.receiver.always(None);
    loop {
        match bench.step().await {
            Step::Idle(Some(due)) => bench.wait_until(due.max(bench.now())),
            Step::Idle(None) => break,
            _ => {}
        }
    }
    let mut sent = bench.sent();
    sent.sort_unstable();
    sent.dedup();
    assert_eq!(sent, (1..=50).collect::<Vec<_>>());
    assert_eq!(bench.endpoint().await.failing_since, None);
}
