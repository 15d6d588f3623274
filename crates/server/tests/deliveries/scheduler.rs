//! The delivery scheduler.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::{
    body::{Body, to_bytes},
    http::Request,
};
use galley_domain::{rulebook::V1, template::lifecycle::Trigger, webhook::Format};
use galley_server::{
    Galley,
    delivery::{
        Failure, PostReport, PostRequest, ResolvedTarget, ResponseStart, Secret, WebhookClient,
    },
    workers::run_delivery_scheduler,
};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use super::fake_receiver::{Harness, status};
use crate::harness::TestAccount;

const TIMEOUT: Duration = Duration::from_secs(30);

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
async fn a_panicking_delivery_is_counted_and_stops_neither_others_nor_its_own_retry() {
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
    // A draining scheduler ends after its tasks, so the panic has been counted.
    harness.app.start_draining();
    timeout(TIMEOUT, scheduler).await.unwrap().unwrap();
    let panics = "galley_worker_restarts_total{worker=\"delivery_task\"} 1";
    let metrics = metrics(&harness).await;
    assert!(metrics.lines().any(|line| line == panics), "{metrics}");
}

/// Hangs on URLs that contain `slow`, and reports the others.
struct PartlySlowReceiver {
    hanging: watch::Sender<usize>,
    quick: mpsc::UnboundedSender<String>,
}

#[async_trait]
impl WebhookClient for PartlySlowReceiver {
    async fn post(&self, request: PostRequest) -> PostReport {
        if request.url.contains("slow") {
            self.hanging.send_modify(|count| *count += 1);
            std::future::pending::<()>().await;
        }
        let _ = self.quick.send(request.url);
        status(200).into()
    }

    async fn get(&self, target: ResolvedTarget) -> Result<ResponseStart, Failure> {
        panic!("unexpected GET of {target:?}")
    }
}

#[tokio::test]
async fn hanging_endpoints_of_four_accounts_leave_slots_to_a_fifth() {
    let (hanging, mut hangs) = watch::channel(0);
    let (quick, mut arrivals) = mpsc::unbounded_channel();
    let client = Arc::new(PartlySlowReceiver { hanging, quick });
    let secret = Secret::generate(|bytes| bytes.fill(7));
    let url = "https://quick.example/hooks";
    let harness = Harness::start_with(&V1, client, Format::Galley, url, secret).await;
    for number in 0..4 {
        let account = harness.account(TestAccount::named(&format!("slow{number}"))).await;
        for endpoint in 0..20 {
            harness.add_endpoint(account, &format!("https://slow.example/{endpoint}")).await;
        }
        for template in 0..8 {
            harness.create_template_of(account, &format!("slow_{number}_{template}")).await;
        }
    }
    let scheduler = tokio::spawn(run_delivery_scheduler(harness.app.clone()));
    // 640 deliveries are due, and the four accounts get two thirds of the 512 slots.
    timeout(TIMEOUT, hangs.wait_for(|count| *count >= 340)).await.unwrap().unwrap();
    for name in ["one", "two", "three"] {
        harness.create_template(name).await;
        assert_eq!(timeout(TIMEOUT, arrivals.recv()).await.unwrap().as_deref(), Some(url));
    }
    assert!(*hangs.borrow() < 500, "slots stay free");
    scheduler.abort();
}

/// The page `/metrics`.
async fn metrics(harness: &Harness) -> String {
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let response = Galley::new(harness.app.clone()).handle(request).await;
    let page = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(page.into()).unwrap()
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
