//! Cases of the clock guard.

use std::sync::Arc;

use galley_store::ClockStatus;
use galley_test_macros::on_both_databases;
use jiff::{SignedDuration, Timestamp};

use super::fixture::{Shared, noon};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

async fn is_trusted(store: &Shared, now: Timestamp) -> bool {
    store.observe_clock(now).await.unwrap() == ClockStatus::Trusted
}

#[on_both_databases]
async fn a_jump_ahead_is_trusted_after_a_day_of_observations(store: &Shared) {
    assert!(is_trusted(store, noon(0)).await, "the first time that a new store sees");
    assert!(is_trusted(store, noon(HOUR)).await);
    let jumped = HOUR + 45 * DAY;
    let unconfirmed = |hours| ClockStatus::Unconfirmed {
        trusted_at: noon(HOUR),
        remaining: SignedDuration::from_hours(hours),
    };
    for hour in 0..24 {
        let status = store.observe_clock(noon(jumped + hour * HOUR)).await.unwrap();
        assert_eq!(status, unconfirmed(24 - hour));
    }
    assert!(is_trusted(store, noon(jumped + 24 * HOUR)).await);
    assert!(!is_trusted(store, noon(jumped + 26 * HOUR)).await, "a new jump");
}

#[on_both_databases]
async fn checking_the_clock_records_nothing(store: &Shared) {
    let check = async |at| store.check_clock(noon(at)).await.unwrap().unwrap();
    assert_eq!(check(45 * DAY).await, ClockStatus::Trusted, "a new store has no time yet");
    assert!(is_trusted(store, noon(0)).await);
    for hour in 0..30 {
        assert_ne!(check(45 * DAY + hour * HOUR).await, ClockStatus::Trusted);
    }
    assert_eq!(check(HOUR).await, ClockStatus::Trusted);
}

#[on_both_databases]
async fn an_accepted_time_is_trusted(store: &Shared) {
    assert!(is_trusted(store, noon(0)).await);
    assert!(!is_trusted(store, noon(45 * DAY)).await);
    store.accept_clock(noon(45 * DAY + 1)).await.unwrap();
    assert!(is_trusted(store, noon(45 * DAY + MINUTE)).await);
    assert!(!is_trusted(store, noon(47 * DAY)).await, "only this time was accepted");
}

#[on_both_databases]
async fn a_corrected_clock_is_trusted_and_the_jump_forgotten(store: &Shared) {
    assert!(is_trusted(store, noon(0)).await);
    for hour in 0..20 {
        assert!(!is_trusted(store, noon(45 * DAY + hour * HOUR)).await);
    }
    assert!(is_trusted(store, noon(20 * MINUTE)).await);
    for hour in 20..40 {
        assert!(!is_trusted(store, noon(45 * DAY + hour * HOUR)).await);
    }
}

#[on_both_databases]
async fn concurrent_observations_of_a_new_store_are_all_trusted(store: &Shared) {
    let observers: Vec<_> = (0..8)
        .map(|second| {
            let store = Arc::clone(store);
            tokio::spawn(async move { is_trusted(&store, noon(second * 1_000)).await })
        })
        .collect();
    for observer in observers {
        assert!(observer.await.unwrap());
    }
    assert!(!is_trusted(store, noon(2 * HOUR)).await);
}

#[on_both_databases]
async fn an_instance_with_a_wrong_clock_is_not_trusted_beside_one_that_is_right(store: &Shared) {
    for half_hour in 0..60 {
        let now = half_hour * 30 * MINUTE;
        assert!(is_trusted(store, noon(now)).await, "the right one after {half_hour} half hours");
        assert!(!is_trusted(store, noon(now + 45 * DAY)).await, "the one that is ahead");
        assert!(is_trusted(store, noon(now - 45 * DAY)).await, "the one that is behind");
    }
}
