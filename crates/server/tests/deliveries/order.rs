//! In which order events arrive.

use std::collections::HashMap;

use galley_domain::template::lifecycle::Trigger;
use galley_server::workers::Step;

use super::bench::{Bench, body, status};

#[tokio::test]
async fn a_failing_event_holds_back_later_ones_of_its_template_and_no_others() {
    let bench = Bench::start().await;
    let one = bench.create("one").await;
    bench.create("two").await;
    bench.decide(one, Trigger::Pause).await;
    bench.receiver.answer(status(500));
    let steps = bench.settle().await;
    assert!(matches!(steps[..], [Step::WillRetry(_), Step::Delivered]), "{steps:?}");
    assert_eq!(bench.sent(), [1, 2], "3 waits for 1");
    let Step::Idle(Some(due)) = bench.step().await else { panic!("1 will be tried again") };
    bench.wait_until(due);
    assert_eq!(bench.settle().await, [Step::Delivered; 2]);
    assert_eq!(bench.sent(), [1, 2, 1, 3]);
}

#[tokio::test]
async fn an_event_that_is_given_up_lets_the_next_one_go() {
    let bench = Bench::start().await;
    let one = bench.create("one").await;
    bench.decide(one, Trigger::Pause).await;
    for _ in 0..10 {
        bench.receiver.answer(status(500));
    }
    while let Step::WillRetry(at) = bench.step().await {
        bench.wait_until(at);
    }
    assert_eq!(bench.sent(), [1; 10]);
    assert_eq!(bench.settle().await, [], "ten failures in a row: the endpoint rests");
    bench.pass(std::time::Duration::from_secs(2));
    assert_eq!(bench.settle().await, [Step::Delivered]);
    assert_eq!(bench.sent()[10..], [2]);
}

/// A receiver that fails at random: whatever it does, the first success of each event comes in
/// the order of the events of its template, and every event arrives.
#[tokio::test]
async fn whatever_fails_the_events_of_each_template_arrive_in_their_order() {
    let bench = Bench::start().await;
    let mut dice: u64 = 42;
    let mut roll = move |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    let mut templates = Vec::new();
    for name in 0..6 {
        templates.push((bench.create(&format!("t{name}")).await, Trigger::Pause));
    }
    let mut received: Vec<(String, u64)> = Vec::new();
    for _ in 0..60 {
        let index = usize::try_from(roll(6)).unwrap();
        let (id, trigger) = templates[index];
        bench.decide(id, trigger).await;
        let next = if trigger == Trigger::Pause { Trigger::Resume } else { Trigger::Pause };
        templates[index].1 = next;
        for _ in 0..roll(4) {
            let refused = roll(3) == 0;
            bench.receiver.answer(status(if refused { 500 } else { 200 }));
            match bench.step().await {
                Step::Delivered => {
                    let event = body(&bench.receiver.last());
                    let template = event["template_id"].as_str().unwrap().to_owned();
                    received.push((template, event["seq"].as_u64().unwrap()));
                }
                Step::Idle(Some(due)) => bench.wait_until(due.max(bench.now())),
                _ => {}
            }
        }
    }
    bench.receiver.always(Some(200));
    loop {
        match bench.step().await {
            Step::Delivered => {
                let event = body(&bench.receiver.last());
                let template = event["template_id"].as_str().unwrap().to_owned();
                received.push((template, event["seq"].as_u64().unwrap()));
            }
            Step::Idle(Some(due)) => bench.wait_until(due.max(bench.now())),
            Step::Idle(None) => break,
            step => panic!("{step:?}"),
        }
    }
    let mut last: HashMap<&str, u64> = HashMap::new();
    for (template, seq) in &received {
        let before = last.insert(template, *seq).unwrap_or(0);
        assert!(before < *seq, "{seq} of {template} came after {before}");
    }
    let mut all: Vec<u64> = received.iter().map(|(_, seq)| *seq).collect();
    all.sort_unstable();
    assert_eq!(all, (1..=66).collect::<Vec<_>>());
}
