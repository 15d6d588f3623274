//! Who can know that an event comes from the service.

use std::time::Duration;

use galley_server::delivery::Secret;
use galley_server::workers::Step;
use galley_store::Rotation;

use super::bench::{Bench, is_signed, keyring};

#[tokio::test]
async fn for_a_day_after_a_rotation_events_are_signed_with_both_secrets() {
    let bench = Bench::start().await;
    let new = Secret::generate(|bytes| bytes.fill(9));
    let sealed = keyring().seal(bench.account.get(), &new, [4; 24]);
    let until = bench.now() + Duration::from_hours(24);
    let rotated =
        bench.store.rotate_webhook(bench.account, bench.webhook, sealed, until, false, bench.now());
    assert!(matches!(rotated.await.unwrap(), Rotation::Done(_)));
    let signed = async |name: &str| {
        bench.create(name).await;
        assert_eq!(bench.step().await, Step::Delivered);
        let post = bench.receiver.last();
        [&bench.secret, &new].map(|secret| is_signed(&post, secret, bench.now()))
    };
    assert_eq!(signed("now").await, [true, true]);
    bench.wait_until(until - Duration::from_millis(1));
    assert_eq!(signed("later").await, [true, true]);
    bench.wait_until(until);
    assert_eq!(signed("afterwards").await, [false, true]);
}

#[tokio::test]
async fn a_secret_that_cannot_be_opened_costs_the_endpoint_nothing() {
    let bench = Bench::start().await;
    bench.create("hello").await;
    // The service was started with another key, and somebody rotated with it.
    let other = galley_server::delivery::Keyring::new(Some("another key, by mistake")).unwrap();
    let sealed = other.seal(bench.account.get(), &bench.secret, [5; 24]);
    let now = bench.now();
    let rotated = bench.store.rotate_webhook(bench.account, bench.webhook, sealed, now, true, now);
    assert!(matches!(rotated.await.unwrap(), Rotation::Done(_)));
    assert_eq!(bench.step().await, Step::Unsigned);
    let Step::Idle(Some(again)) = bench.step().await else { panic!("its lease has to end") };
    assert!(bench.sent().is_empty());
    assert_eq!(bench.endpoint().await.failing_since, None);
    let sealed = keyring().seal(bench.account.get(), &bench.secret, [6; 24]);
    let rotated = bench.store.rotate_webhook(bench.account, bench.webhook, sealed, now, true, now);
    assert!(matches!(rotated.await.unwrap(), Rotation::Done(_)));
    bench.wait_until(again);
    assert_eq!(bench.settle().await, [Step::Delivered]);
}
