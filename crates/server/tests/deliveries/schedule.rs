//! The retry schedule.

use std::time::Duration;

use galley_domain::webhook::delivery::DeliveryStatus;
use galley_server::delivery::{PostOutcome, RetryAfter};
use galley_server::workers::DeliveryStepOutcome;
use galley_store::{Delivery, DeliveryQuery};

use super::fake_receiver::{Harness, no_response, status};

async fn deliveries(harness: &Harness) -> Vec<Delivery> {
    let all = DeliveryQuery { status: None, before: None, limit: 100 };
    harness.store.deliveries(harness.account, harness.webhook, all).await.unwrap().unwrap()
}

fn seconds(from: jiff::Timestamp, to: jiff::Timestamp) -> i64 {
    to.duration_since(from).as_secs()
}

#[tokio::test]
async fn an_event_is_attempted_ten_times_over_three_days_and_then_listed_as_failed() {
    let harness = Harness::start().await;
    harness.create_template("hello").await;
    harness.receiver.always_respond(Some(500));
    let delays = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    for (attempt, expected) in (1..).zip(delays) {
        let DeliveryStepOutcome::WillRetry(at) = harness.step().await else {
            panic!("attempt {attempt}")
        };
        let delay = seconds(harness.now(), at);
        assert!(
            (delay - expected).abs() <= expected / 100 + 1,
            "{delay} s after attempt {attempt}"
        );
        harness.advance_to(at - Duration::from_millis(1));
        assert!(
            matches!(harness.step().await, DeliveryStepOutcome::Idle(_)),
            "attempt {attempt}: the event is not due yet"
        );
        harness.advance_to(at);
    }
    assert_eq!(harness.step().await, DeliveryStepOutcome::GaveUp);
    harness.advance(Duration::from_secs(2));
    assert_eq!(harness.step().await, DeliveryStepOutcome::Idle(None), "no event is left");
    assert_eq!(harness.sent_seqs(), [1; 10]);
    let [delivery] = &deliveries(&harness).await[..] else { panic!("not one event") };
    assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Failed, 10));
    assert_eq!((delivery.response_status, &delivery.failure), (Some(500), &None));
}

#[tokio::test]
async fn every_attempt_has_the_same_id_and_body_and_its_own_timestamp() {
    let harness = Harness::start().await;
    harness.create_template("hello").await;
    harness.receiver.respond_with(no_response());
    let DeliveryStepOutcome::WillRetry(at) = harness.step().await else {
        panic!("the attempt failed")
    };
    let [delivery] = &deliveries(&harness).await[..] else { panic!("not one event") };
    assert!(delivery.failure.as_ref().unwrap().contains("timeout"), "{delivery:?}");
    harness.advance_to(at);
    assert_eq!(harness.step().await, DeliveryStepOutcome::Delivered);
    let requests = harness.receiver.requests.lock().unwrap();
    assert_eq!(requests[0].body, requests[1].body);
    let header = |index: usize, name: &str| {
        let header = requests[index].headers.iter().find(|(header, _)| header.as_str() == name);
        header.unwrap().1.to_str().unwrap().to_owned()
    };
    let id = header(0, "webhook-id");
    assert!(id.starts_with(&format!("evt_{}_1_", harness.account)), "{id}");
    assert_eq!(header(0, "webhook-id"), header(1, "webhook-id"));
    assert_eq!(header(1, "webhook-timestamp"), harness.now().as_second().to_string());
    assert_ne!(header(0, "webhook-timestamp"), header(1, "webhook-timestamp"));
}

#[tokio::test]
async fn retry_after_delays_all_events_of_the_endpoint() {
    let harness = Harness::start().await;
    harness.create_template("one").await;
    harness.create_template("two").await;
    let after = RetryAfter::After(Duration::from_mins(2));
    harness.receiver.respond_with(PostOutcome::Responded { status: 503, retry_after: Some(after) });
    let DeliveryStepOutcome::WillRetry(at) = harness.step().await else {
        panic!("the attempt failed")
    };
    assert_eq!(seconds(harness.now(), at), 120);
    assert_eq!(
        harness.step().await,
        DeliveryStepOutcome::Idle(Some(at)),
        "the second event waits, too"
    );
    harness.advance_to(at);
    assert_eq!(
        harness.run_until_idle().await,
        [DeliveryStepOutcome::Delivered, DeliveryStepOutcome::Delivered]
    );

    harness.create_template("three").await;
    let time = harness.now() + Duration::from_hours(1);
    let at = Some(RetryAfter::At(time));
    harness.receiver.respond_with(PostOutcome::Responded { status: 429, retry_after: at });
    assert_eq!(harness.step().await, DeliveryStepOutcome::WillRetry(time));
}

#[tokio::test]
async fn only_2xx_is_a_success() {
    let harness = Harness::start().await;
    harness.create_template("hello").await;
    for code in [301, 302, 307, 308, 400, 404, 500] {
        harness.receiver.respond_with(status(code));
        let DeliveryStepOutcome::WillRetry(at) = harness.step().await else {
            panic!("{code} is not a success")
        };
        harness.advance_to(at);
    }
    harness.receiver.respond_with(status(204));
    assert_eq!(harness.step().await, DeliveryStepOutcome::Delivered);
    assert_eq!(harness.step().await, DeliveryStepOutcome::Idle(None));
}

#[tokio::test]
async fn a_delivery_without_a_lookup_slot_is_no_attempt_and_is_repeated_after_its_lease() {
    let harness = Harness::start().await;
    harness.create_template("hello").await;
    harness.receiver.respond_with(PostOutcome::NotSent);
    assert_eq!(harness.step().await, DeliveryStepOutcome::Deferred);
    let endpoint = harness.webhook().await;
    assert_eq!((endpoint.failing_since, endpoint.resting_until), (None, None));
    let [delivery] = &deliveries(&harness).await[..] else { panic!() };
    assert_eq!((delivery.attempts, &delivery.failure), (0, &None));
    harness.advance(Duration::from_secs(25));
    assert_eq!(harness.run_until_idle().await, [DeliveryStepOutcome::Delivered]);
}

#[tokio::test]
async fn an_unrecorded_attempt_is_repeated_after_its_lease_expires() {
    let harness = Harness::start().await;
    harness.create_template("hello").await;
    // A worker leases the event and is killed.
    let lease = harness.now() + Duration::from_secs(20);
    let leased = harness.store.lease_delivery(harness.webhook, harness.now()..lease).await.unwrap();
    assert!(matches!(leased, galley_store::DeliveryLease::Due(_)));
    assert_eq!(harness.step().await, DeliveryStepOutcome::Idle(Some(lease)));
    harness.advance_to(lease);
    assert_eq!(harness.run_until_idle().await, [DeliveryStepOutcome::Delivered]);
}
