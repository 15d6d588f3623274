//! Calls to a provider whose budget is almost used up, and to one that takes long.

use std::time::Duration;

use galley_domain::upstream::{HeldReason, OperationState};
use galley_server::upstream::SyncError;
use galley_upstream::Method::{Get, Post};
use serde_json::json;
use tokio::time::timeout;

use super::{connected::Connected, provider::Loss};
use crate::sandbox::emulator::order;

#[tokio::test]
async fn a_provider_whose_budget_is_almost_used_up_gets_no_call_before_the_rest_is_over() {
    let connected = Connected::start().await;
    for number in 0..10 {
        connected.create(&order(&format!("order_{number}"))).await;
    }
    connected.set_usage(95);
    connected.try_step().await;
    assert_eq!(connected.take_calls(), 1, "the response of the first call asks for a rest");
    let states = connected.states().await;
    assert_eq!(states[0], OperationState::Done, "that response is used");
    let held = states.iter().filter(|it| **it == OperationState::Held(HeldReason::Throttle));
    assert!(held.count() <= 1, "the others wait as they are: {states:?}");
    let connection = connected.service.store.connection(connected.account).await.unwrap().unwrap();
    assert_eq!(connection.degraded, None);
    for _ in 0..9 {
        connected.advance(Duration::from_mins(1));
        assert!(!connected.has_work().await);
        connected.try_step().await;
    }
    assert_eq!(connected.take_calls(), 0);
    connected.set_usage(94);
    connected.advance(Duration::from_mins(1));
    assert!(connected.has_work().await);
    connected.step_until_settled().await;
    assert!(connected.states().await.iter().all(|it| *it == OperationState::Done));
    assert_eq!(connected.provided().await.len(), 10);
}

#[tokio::test]
async fn an_edit_is_made_although_each_call_asks_for_a_rest() {
    let connected = Connected::start().await;
    let id = connected.create(&order("order_shipped")).await;
    connected.step().await;
    connected.advance(Duration::from_hours(1));
    connected.step().await;
    connected.advance(Duration::from_hours(1));
    let mut document = order("order_shipped");
    document["components"][0]["text"] = json!("Hello {{1}}, your order is on its way to you.");
    connected.edit(id, &document).await;
    connected.set_usage(95);
    connected.take_count(Post);
    for _ in 0..4 {
        connected.try_step().await;
        connected.advance(Duration::from_mins(11));
    }
    assert_eq!(connected.take_count(Post), 1);
    assert_eq!(connected.states().await, [OperationState::Done; 2]);
}

#[tokio::test]
async fn a_sweep_rests_with_the_page_that_asks_for_it() {
    let connected = Connected::start().await;
    for number in 0..150 {
        connected.emulator().create_named(&format!("order_{number}")).await;
    }
    connected.set_usage(100);
    let rested = connected.sweep(true).await.unwrap_err();
    assert!(matches!(rested, SyncError::NotBefore(_)), "{rested:?}");
    assert_eq!((connected.take_calls(), connected.mirrored().await.len()), (1, 100));
    connected.set_usage(1);
    // A quarter of an hour later.
    let report = connected.sweep(true).await.unwrap();
    assert_eq!((report.seen, connected.take_calls()), (150, 1), "it continues after that page");
}

#[tokio::test]
async fn a_lease_lasts_as_long_as_a_check_takes() {
    let connected = Connected::start().await.with_lease(Duration::from_millis(30));
    connected.lose(Get, Loss::NoEnd);
    let session = connected.session().await;
    let leased_until = async || {
        let store = &connected.service.store;
        store.connection(connected.account).await.unwrap().unwrap().leased_until
    };
    let first = leased_until().await;
    let extended = async {
        connected.provider.hangs.notified().await;
        connected.service.clock.advance(Duration::from_secs(1));
        while leased_until().await == first {
            tokio::task::yield_now().await;
        }
    };
    let extended = timeout(Duration::from_secs(10), async {
        tokio::select! {
            () = extended => {}
            checked = session.check() => panic!("the provider does not answer: {checked:?}"),
        }
    });
    extended.await.expect("the lease is extended");
}
