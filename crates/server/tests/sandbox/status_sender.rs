//! The worker that sends statuses: its pace, its lease, and what happens beside another process or
//! when the store fails.

use std::{sync::Arc, time::Duration};

use galley_domain::id::WebhookId;
use galley_server::{
    App,
    workers::{StatusStepOutcome, run_status_sender, send_statuses},
};
use galley_store::{
    StoreError,
    testing::{Fault, Faults},
};
use tokio::time::{Instant, timeout};

use super::{emulator::Emulator, statuses::received};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends messages to the numbers in a range, all at the same time of the account's clock.
async fn send_messages(emulator: &Emulator, numbers: std::ops::Range<u32>) {
    for number in numbers {
        emulator.send_to("order_shipped", &format!("1555000{number:04}")).await;
    }
}

/// The lines of a status of messages to the numbers in a range.
fn lines(numbers: std::ops::Range<u32>, status: &str) -> Vec<String> {
    numbers.map(|number| format!("1555000{number:04} {status}")).collect()
}

/// Sends the due statuses of an endpoint until it has got all of them; returns how many.
async fn send_all(app: &App, endpoint: WebhookId) -> usize {
    let mut sent = 0;
    loop {
        match send_statuses(app, endpoint).await.unwrap() {
            StatusStepOutcome::Sent(count) => sent += count,
            StatusStepOutcome::Idle(None) => return sent,
            // Another process is sending.
            StatusStepOutcome::Idle(Some(_)) => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn two_processes_send_each_status_once_and_in_order() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.create_named("order_shipped").await;
    let other = emulator.other_process();
    emulator.advance("1s").await;
    for round in 0..20 {
        // Both one by one and in batches.
        let numbers = 0..if round % 2 == 0 { 3 } else { 11 };
        send_messages(&emulator, numbers.clone()).await;
        emulator.advance("60s").await;
        let (first, second) =
            tokio::join!(send_all(&emulator.app, endpoint), send_all(&other, endpoint));
        let statuses = ["sent", "delivered", "read"];
        let expected = statuses.map(|status| lines(numbers.clone(), status)).concat();
        assert_eq!(received(&emulator), expected);
        assert_eq!(first + second, expected.len());
    }
}

#[tokio::test]
async fn statuses_that_could_not_be_recorded_are_sent_again_when_their_lease_ends() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.create_named("order_shipped").await;
    emulator.advance("1s").await;
    send_messages(&emulator, 0..2).await;
    let failing = Fault::Fails(|| StoreError::Damaged(Arc::new(std::fmt::Error)));
    emulator.store_faults.set("record_statuses", failing);
    assert!(send_statuses(&emulator.app, endpoint).await.is_err());
    assert_eq!(received(&emulator), lines(0..2, "sent"));
    emulator.store_faults.clear();
    send_messages(&emulator, 2..4).await;
    let StatusStepOutcome::Idle(Some(lease_end)) =
        send_statuses(&emulator.app, endpoint).await.unwrap()
    else {
        panic!("the lease lasts")
    };
    // 5 s to begin requests, 5 s and 15 s for one of them, and 5 s to record it.
    assert_eq!(lease_end.to_string(), "2026-11-15T12:00:30Z");
    emulator.clock.advance_to(lease_end);
    assert_eq!(send_all(&emulator.app, endpoint).await, 4);
    assert_eq!(received(&emulator), lines(0..4, "sent"), "nothing is lost");
}

#[tokio::test]
async fn a_step_begins_requests_for_five_seconds() {
    let emulator = Emulator::start().await;
    let endpoint = emulator.register().await;
    emulator.create_named("order_shipped").await;
    emulator.advance("1s").await;
    send_messages(&emulator, 0..5).await;
    let clock = Arc::clone(&emulator.clock);
    emulator.receiver.on_arrival(move || clock.advance(Duration::from_secs(3)));
    for sent in [2, 2, 1] {
        let step = send_statuses(&emulator.app, endpoint).await.unwrap();
        assert_eq!(step, StatusStepOutcome::Sent(sent));
    }
    assert_eq!(received(&emulator), lines(0..5, "sent"));
}

#[tokio::test]
async fn an_endpoint_gets_statuses_at_the_configured_pace() {
    let emulator = Emulator::start_paced(2).await;
    emulator.register().await;
    emulator.create_named("order_shipped").await;
    emulator.advance("1s").await;
    let mut arrivals = emulator.receiver.arrivals();
    send_messages(&emulator, 0..10).await;
    let started = Instant::now();
    let sender = tokio::spawn(run_status_sender(emulator.app.clone()));
    for _ in 0..10 {
        timeout(TIMEOUT, arrivals.recv()).await.unwrap().unwrap();
    }
    // The burst is over.
    send_messages(&emulator, 10..11).await;
    timeout(TIMEOUT, arrivals.recv()).await.unwrap().unwrap();
    assert!(started.elapsed() >= Duration::from_millis(500), "{:?}", started.elapsed());
    emulator.app.start_draining();
    timeout(TIMEOUT, sender).await.unwrap().unwrap();
    assert_eq!(received(&emulator), lines(0..11, "sent"));
}

#[tokio::test]
async fn the_sender_polls_less_often_the_longer_a_poll_takes() {
    let emulator = Emulator::start().await;
    emulator.create_named("order_shipped").await;
    let faults: &Faults = &emulator.store_faults;
    faults.set("endpoints_with_statuses", Fault::Held);
    let sender = tokio::spawn(run_status_sender(emulator.app.clone()));
    timeout(TIMEOUT, faults.held()).await.unwrap();
    // A message wakes the sender at once, if it may poll.
    send_messages(&emulator, 0..1).await;
    faults.set("endpoints_with_statuses", Fault::Held);
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(100)).await;
    faults.release();
    let started = Instant::now();
    faults.held().await;
    assert!(started.elapsed() >= Duration::from_millis(900), "{:?}", started.elapsed());
    faults.release();
    tokio::time::resume();
    emulator.app.start_draining();
    timeout(TIMEOUT, sender).await.unwrap().unwrap();
}
