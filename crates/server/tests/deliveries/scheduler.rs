//! The delivery scheduler.

use std::time::Duration;

use galley_domain::template::lifecycle::Trigger;
use galley_server::workers::run_delivery_scheduler;
use tokio::time::timeout;

use super::fake_receiver::{Harness, status};

const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_hanging_delivery_does_not_delay_other_templates() {
    let harness = Harness::start().await;
    let mut arrivals = harness.receiver.arrivals();
    harness.receiver.hang_on(1);
    let scheduler = tokio::spawn(run_delivery_scheduler(harness.app.clone()));
    let one = harness.create_template("one").await;
    assert_eq!(timeout(TIMEOUT, arrivals.recv()).await.unwrap(), Some(1));
    // The first attempt is still running.
    harness.review(one, Trigger::Pause).await;
    harness.create_template("two").await;
    assert_eq!(
        timeout(TIMEOUT, arrivals.recv()).await.unwrap(),
        Some(3),
        "event 2 waits for event 1"
    );
    scheduler.abort();
}

#[tokio::test]
async fn a_panicking_delivery_stops_neither_other_deliveries_nor_its_own_retry() {
    let harness = Harness::start().await;
    let mut arrivals = harness.receiver.arrivals();
    let mut arrival = async || timeout(TIMEOUT, arrivals.recv()).await.unwrap();
    harness.receiver.panic_on(Some(1));
    let scheduler = tokio::spawn(run_delivery_scheduler(harness.app.clone()));
    harness.create_template("one").await;
    assert_eq!(arrival().await, Some(1));
    harness.create_template("two").await;
    assert_eq!(arrival().await, Some(2), "another template does not wait");
    harness.receiver.panic_on(None);
    // The lease of the attempt that panicked ends.
    harness.advance(Duration::from_secs(30));
    assert_eq!(arrival().await, Some(1), "the event is sent again");
    scheduler.abort();
}

#[tokio::test]
async fn the_scheduler_stops_without_new_deliveries_when_the_service_drains() {
    let harness = Harness::start().await;
    let mut arrivals = harness.receiver.arrivals();
    harness.receiver.respond_with(status(200));
    let scheduler = tokio::spawn(run_delivery_scheduler(harness.app.clone()));
    harness.create_template("one").await;
    assert_eq!(timeout(TIMEOUT, arrivals.recv()).await.unwrap(), Some(1));
    harness.app.start_draining();
    timeout(TIMEOUT, scheduler).await.unwrap().unwrap();
    harness.create_template("two").await;
    assert_eq!(harness.sent_seqs(), [1]);
}
