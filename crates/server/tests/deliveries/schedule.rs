//! When an event is tried again, and when no more.

use std::time::Duration;

use galley_domain::webhook::delivery::DeliveryStatus;
use galley_server::delivery::{Outcome, RetryAfter};
use galley_server::workers::Step;
use galley_store::{Deliveries, Delivery};

use super::bench::{Bench, silence, status};

async fn deliveries(bench: &Bench) -> Vec<Delivery> {
    let all = Deliveries { status: None, before: None, limit: 100 };
    bench.store.deliveries(bench.account, bench.webhook, all).await.unwrap().unwrap()
}

fn seconds(from: jiff::Timestamp, to: jiff::Timestamp) -> i64 {
    to.duration_since(from).as_secs()
}

#[tokio::test]
async fn an_event_is_tried_ten_times_over_three_days_and_then_listed_as_failed() {
    let bench = Bench::start().await;
    bench.create("hello").await;
    bench.receiver.always(Some(500));
    let wanted = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    for (attempt, wanted) in (1..).zip(wanted) {
        let Step::WillRetry(at) = bench.step().await else { panic!("attempt {attempt}") };
        let delay = seconds(bench.now(), at);
        assert!((delay - wanted).abs() <= wanted / 100 + 1, "{delay} s after attempt {attempt}");
        bench.wait_until(at - Duration::from_millis(1));
        assert!(matches!(bench.step().await, Step::Idle(_)), "{attempt}: it is not due yet");
        bench.wait_until(at);
    }
    assert_eq!(bench.step().await, Step::GaveUp);
    bench.pass(Duration::from_secs(2));
    assert_eq!(bench.step().await, Step::Idle(None), "nothing is left to do");
    assert_eq!(bench.sent(), [1; 10]);
    let [delivery] = &deliveries(&bench).await[..] else { panic!("there is one event") };
    assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Failed, 10));
    assert_eq!((delivery.answer, &delivery.failure), (Some(500), &None));
}

#[tokio::test]
async fn every_attempt_carries_the_same_id_and_body_and_the_time_it_was_made() {
    let bench = Bench::start().await;
    bench.create("hello").await;
    bench.receiver.answer(silence());
    let Step::WillRetry(at) = bench.step().await else { panic!("nothing came") };
    let [delivery] = &deliveries(&bench).await[..] else { panic!("there is one event") };
    assert!(delivery.failure.as_ref().unwrap().contains("timeout"), "{delivery:?}");
    bench.wait_until(at);
    assert_eq!(bench.step().await, Step::Delivered);
    let posts = bench.receiver.posts.lock().unwrap();
    assert_eq!(posts[0].body, posts[1].body);
    let header = |post: usize, name: &str| {
        let header = posts[post].headers.iter().find(|(header, _)| header.as_str() == name);
        header.unwrap().1.to_str().unwrap().to_owned()
    };
    let id = header(0, "webhook-id");
    assert!(id.starts_with(&format!("evt_{}_1_", bench.account)), "{id}");
    assert_eq!(header(0, "webhook-id"), header(1, "webhook-id"));
    assert_eq!(header(1, "webhook-timestamp"), bench.now().as_second().to_string());
    assert_ne!(header(0, "webhook-timestamp"), header(1, "webhook-timestamp"));
}

#[tokio::test]
async fn what_an_endpoint_asks_for_is_waited_for_by_all_its_events() {
    let bench = Bench::start().await;
    bench.create("one").await;
    bench.create("two").await;
    let after = RetryAfter::After(Duration::from_mins(2));
    bench.receiver.answer(Outcome::Answered { status: 503, retry_after: Some(after) });
    let Step::WillRetry(at) = bench.step().await else { panic!("it was refused") };
    assert_eq!(seconds(bench.now(), at), 120);
    assert_eq!(bench.step().await, Step::Idle(Some(at)), "the second event waits, too");
    bench.wait_until(at);
    assert_eq!(bench.settle().await, [Step::Delivered, Step::Delivered]);

    bench.create("three").await;
    let moment = bench.now() + Duration::from_hours(1);
    let at = Some(RetryAfter::At(moment));
    bench.receiver.answer(Outcome::Answered { status: 429, retry_after: at });
    assert_eq!(bench.step().await, Step::WillRetry(moment));
}

#[tokio::test]
async fn only_2xx_is_success_and_a_redirect_is_none() {
    let bench = Bench::start().await;
    bench.create("hello").await;
    for refusal in [301, 302, 307, 308, 400, 404, 500] {
        bench.receiver.answer(status(refusal));
        let Step::WillRetry(at) = bench.step().await else { panic!("{refusal} is no success") };
        bench.wait_until(at);
    }
    bench.receiver.answer(status(204));
    assert_eq!(bench.step().await, Step::Delivered);
    assert_eq!(bench.step().await, Step::Idle(None));
}

#[tokio::test]
async fn an_attempt_that_nobody_wrote_down_is_made_again_after_its_lease() {
    let bench = Bench::start().await;
    bench.create("hello").await;
    // Somebody takes the event, and is killed.
    let lease = bench.now() + Duration::from_secs(20);
    let taken = bench.store.lease_delivery(bench.webhook, bench.now(), lease).await.unwrap();
    assert!(matches!(taken, galley_store::DeliveryLease::Due(_)));
    assert_eq!(bench.step().await, Step::Idle(Some(lease)));
    bench.wait_until(lease);
    assert_eq!(bench.settle().await, [Step::Delivered]);
}
