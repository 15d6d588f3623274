//! The loop that delivers by itself.

use std::time::Duration;

use galley_domain::template::lifecycle::Trigger;
use galley_server::workers::deliver_webhooks_forever;
use tokio::time::timeout;

use super::bench::{Bench, status};

const BOUND: Duration = Duration::from_secs(10);

#[tokio::test]
async fn an_event_that_the_receiver_hangs_on_delays_no_other_template() {
    let bench = Bench::start().await;
    let mut arrivals = bench.receiver.watch();
    bench.receiver.hang_on(1);
    let rounds = tokio::spawn(deliver_webhooks_forever(bench.app.clone()));
    let one = bench.create("one").await;
    assert_eq!(timeout(BOUND, arrivals.recv()).await.unwrap(), Some(1));
    // The first attempt is still under way when these happen.
    bench.decide(one, Trigger::Pause).await;
    bench.create("two").await;
    assert_eq!(timeout(BOUND, arrivals.recv()).await.unwrap(), Some(3), "2 waits for 1");
    rounds.abort();
}

#[tokio::test]
async fn when_the_service_ends_nothing_new_is_taken_and_the_loop_ends() {
    let bench = Bench::start().await;
    let mut arrivals = bench.receiver.watch();
    bench.receiver.answer(status(200));
    let rounds = tokio::spawn(deliver_webhooks_forever(bench.app.clone()));
    bench.create("one").await;
    assert_eq!(timeout(BOUND, arrivals.recv()).await.unwrap(), Some(1));
    bench.app.start_draining();
    timeout(BOUND, rounds).await.unwrap().unwrap();
    bench.create("two").await;
    assert_eq!(bench.sent(), [1]);
}
