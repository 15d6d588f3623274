//! The order in which events arrive.

use std::collections::HashMap;

use galley_domain::template::lifecycle::Trigger;
use galley_server::workers::DeliveryStepOutcome;

use super::fake_receiver::{Harness, body, status};

#[tokio::test]
async fn a_failing_event_blocks_only_later_events_of_its_template() {
    let harness = Harness::start().await;
    let one = harness.create_template("one").await;
    harness.create_template("two").await;
    harness.review(one, Trigger::Pause).await;
    harness.receiver.respond_with(status(500));
    let steps = harness.run_until_idle().await;
    assert!(
        matches!(steps[..], [DeliveryStepOutcome::WillRetry(_), DeliveryStepOutcome::Delivered]),
        "{steps:?}"
    );
    assert_eq!(harness.sent_seqs(), [1, 2], "event 3 waits for event 1");
    let DeliveryStepOutcome::Idle(Some(due)) = harness.step().await else {
        panic!("event 1 is retried")
    };
    harness.advance_to(due);
    assert_eq!(harness.run_until_idle().await, [DeliveryStepOutcome::Delivered; 2]);
    assert_eq!(harness.sent_seqs(), [1, 2, 1, 3]);
}

#[tokio::test]
async fn after_the_last_attempt_of_an_event_the_next_one_is_delivered() {
    let harness = Harness::start().await;
    let one = harness.create_template("one").await;
    harness.review(one, Trigger::Pause).await;
    for _ in 0..10 {
        harness.receiver.respond_with(status(500));
    }
    while let DeliveryStepOutcome::WillRetry(at) = harness.step().await {
        harness.advance_to(at);
    }
    assert_eq!(harness.sent_seqs(), [1; 10]);
    assert_eq!(
        harness.run_until_idle().await,
        [],
        "the endpoint is paused after ten failures in a row"
    );
    harness.advance(std::time::Duration::from_secs(2));
    assert_eq!(harness.run_until_idle().await, [DeliveryStepOutcome::Delivered]);
    assert_eq!(harness.sent_seqs()[10..], [2]);
}

/// With a receiver that fails at random, every event arrives, and the events of each template
/// arrive in order.
#[tokio::test]
async fn events_of_each_template_arrive_in_order_despite_failures() {
    let harness = Harness::start().await;
    let mut state: u64 = 42;
    let mut roll = move |sides: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    };
    let mut templates = Vec::new();
    for name in 0..6 {
        templates.push((harness.create_template(&format!("t{name}")).await, Trigger::Pause));
    }
    let mut received: Vec<(String, u64)> = Vec::new();
    for _ in 0..60 {
        let index = usize::try_from(roll(6)).unwrap();
        let (id, trigger) = templates[index];
        harness.review(id, trigger).await;
        let next = if trigger == Trigger::Pause { Trigger::Resume } else { Trigger::Pause };
        templates[index].1 = next;
        for _ in 0..roll(4) {
            let fails = roll(3) == 0;
            harness.receiver.respond_with(status(if fails { 500 } else { 200 }));
            match harness.step().await {
                DeliveryStepOutcome::Delivered => {
                    let event = body(&harness.receiver.last_request());
                    let template = event["template_id"].as_str().unwrap().to_owned();
                    received.push((template, event["seq"].as_u64().unwrap()));
                }
                DeliveryStepOutcome::Idle(Some(due)) => harness.advance_to(due.max(harness.now())),
                _ => {}
            }
        }
    }
    harness.receiver.always_respond(Some(200));
    loop {
        match harness.step().await {
            DeliveryStepOutcome::Delivered => {
                let event = body(&harness.receiver.last_request());
                let template = event["template_id"].as_str().unwrap().to_owned();
                received.push((template, event["seq"].as_u64().unwrap()));
            }
            DeliveryStepOutcome::Idle(Some(due)) => harness.advance_to(due.max(harness.now())),
            DeliveryStepOutcome::Idle(None) => break,
            step => panic!("{step:?}"),
        }
    }
    let mut last: HashMap<&str, u64> = HashMap::new();
    for (template, seq) in &received {
        let before = last.insert(template, *seq).unwrap_or(0);
        assert!(before < *seq, "{seq} of {template} arrived after {before}");
    }
    let mut all: Vec<u64> = received.iter().map(|(_, seq)| *seq).collect();
    all.sort_unstable();
    assert_eq!(all, (1..=66).collect::<Vec<_>>());
}
