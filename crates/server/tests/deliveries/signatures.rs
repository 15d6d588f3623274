//! Signatures during and after a rotation, and with a wrong key.

use std::time::Duration;

use galley_server::delivery::Secret;
use galley_server::workers::DeliveryStepOutcome;
use galley_store::{Author, RotateOutcome};

use super::fake_receiver::{Harness, is_signed, keyring};

#[tokio::test]
async fn both_secrets_sign_for_a_day_after_a_rotation() {
    let harness = Harness::start().await;
    let new = Secret::generate(|bytes| bytes.fill(9));
    let encrypted = keyring().encrypt(harness.account.get(), &new, [4; 24]);
    let until = harness.now() + Duration::from_hours(24);
    let rotated = harness.store.rotate_webhook(
        harness.account,
        harness.webhook,
        encrypted,
        until,
        false,
        Author::operator(harness.now()),
    );
    assert!(matches!(rotated.await.unwrap(), RotateOutcome::Done(_)));
    let signed = async |name: &str| {
        harness.create_template(name).await;
        assert_eq!(harness.step().await, DeliveryStepOutcome::Delivered);
        let request = harness.receiver.last_request();
        [&harness.secret, &new].map(|secret| is_signed(&request, secret, harness.now()))
    };
    assert_eq!(signed("now").await, [true, true]);
    harness.advance_to(until - Duration::from_millis(1));
    assert_eq!(signed("later").await, [true, true]);
    harness.advance_to(until);
    assert_eq!(signed("afterwards").await, [false, true]);
}

#[tokio::test]
async fn a_secret_that_cannot_be_decrypted_costs_no_attempt() {
    let harness = Harness::start().await;
    harness.create_template("hello").await;
    // The service was started with another key, and the secret was rotated with it.
    let other = galley_server::delivery::Keyring::new(Some("another key, by mistake")).unwrap();
    let encrypted = other.encrypt(harness.account.get(), &harness.secret, [5; 24]);
    let now = harness.now();
    let rotated = harness.store.rotate_webhook(
        harness.account,
        harness.webhook,
        encrypted,
        now,
        true,
        Author::operator(now),
    );
    assert!(matches!(rotated.await.unwrap(), RotateOutcome::Done(_)));
    assert_eq!(harness.step().await, DeliveryStepOutcome::SigningFailed);
    let DeliveryStepOutcome::Idle(Some(retry_at)) = harness.step().await else {
        panic!("the lease has not expired")
    };
    assert!(harness.sent_seqs().is_empty());
    assert_eq!(harness.webhook().await.failing_since, None);
    let encrypted = keyring().encrypt(harness.account.get(), &harness.secret, [6; 24]);
    let rotated = harness.store.rotate_webhook(
        harness.account,
        harness.webhook,
        encrypted,
        now,
        true,
        Author::operator(now),
    );
    assert!(matches!(rotated.await.unwrap(), RotateOutcome::Done(_)));
    harness.advance_to(retry_at);
    assert_eq!(harness.run_until_idle().await, [DeliveryStepOutcome::Delivered]);
}
