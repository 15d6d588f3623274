//! Calls to a provider whose budget is almost used up, and to one that takes long.

use std::time::Duration;

use galley_domain::{
    id::TemplateId,
    template::Review,
    upstream::{HeldReason, OperationState},
};
use galley_server::{Clock as _, upstream::SyncError};
use galley_store::UpstreamConnection;
use galley_upstream::Method::{Get, Post};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{connected::Connected, operations::with_picture, provider::Loss};
use crate::sandbox::emulator::order;

use OperationState::{Done, Held, Queued};

/// Longer than a look at a template is believed, and shorter than the time between two sweeps.
const LATER: Duration = Duration::from_mins(5);

const HELD: OperationState = Held(HeldReason::Throttle);

async fn connection(connected: &Connected) -> UpstreamConnection {
    connected.service.store.connection(connected.account).await.unwrap().unwrap()
}

/// Leaves so many calls of the budget.
async fn leave_calls(connected: &mut Connected, calls: u32) {
    let used = connection(connected).await.budget.calls.used(connected.service.clock.now());
    connected.context.settings.calls_per_hour = used + calls;
}

fn edited() -> Value {
    let mut document = order("order_shipped");
    document["components"][0]["text"] = json!("Hello {{1}}, your order is on its way to you.");
    document
}

/// A template that both sides have, and whose last look is old.
async fn shared() -> (Connected, TemplateId) {
    let connected = Connected::start().await;
    let id = connected.create(&order("order_shipped")).await;
    connected.step().await;
    connected.advance(Duration::from_secs(2));
    connected.step().await;
    connected.advance(LATER);
    connected.take_calls();
    (connected, id)
}

#[tokio::test]
async fn an_edit_looks_at_the_template_only_if_the_budget_has_room_for_its_call_too() {
    let (mut connected, id) = shared().await;
    leave_calls(&mut connected, 1).await;
    connected.edit(id, &edited()).await;
    for _ in 0..5 {
        connected.try_step().await;
        assert_eq!(connected.states().await, [Done, HELD]);
        connected.advance(Duration::from_mins(1));
    }
    assert_eq!(connected.take_calls(), 0, "neither the look nor the call is made");
    assert_eq!(connection(&connected).await.degraded, None);
    let held_until = connected.operations().await[1].operation.held_until.unwrap();
    let wait = held_until.duration_since(connected.service.clock.now());
    connected.advance(Duration::try_from(wait).unwrap());
    connected.try_step().await;
    assert_eq!(connected.states().await, [Done, Done]);
}

#[tokio::test]
async fn operations_that_need_fewer_calls_do_not_wait_for_one_that_needs_several() {
    let (mut connected, id) = shared().await;
    leave_calls(&mut connected, 1).await;
    connected.edit(id, &edited()).await;
    connected.create(&order("order_paid")).await;
    connected.try_step().await;
    assert_eq!(connected.states().await, [Done, HELD, Done]);
    assert_eq!(connected.take_calls(), 1);
}

#[tokio::test]
async fn a_sample_is_uploaded_only_if_the_budget_has_room_for_the_create_too() {
    let mut connected = Connected::start_with(Review::Auto, Some("634974688087057")).await;
    connected.sweep(true).await.unwrap();
    connected.take_calls();
    let document = with_picture(&connected).await;
    connected.create(&document).await;
    leave_calls(&mut connected, 2).await;
    connected.try_step().await;
    assert_eq!((connected.states().await, connected.take_calls()), (vec![HELD], 0));
    leave_calls(&mut connected, 3).await;
    connected.advance(Duration::from_hours(2));
    connected.try_step().await;
    assert_eq!(connected.states().await, [Done]);
}

#[tokio::test]
async fn the_calls_of_an_edit_are_made_together_although_each_asks_for_a_rest() {
    let (connected, id) = shared().await;
    connected.edit(id, &edited()).await;
    connected.set_usage(95);
    connected.try_step().await;
    assert_eq!(connected.states().await, [Done, Done]);
    assert_eq!(connected.take_calls(), 2, "the look and the edit");
    assert!(!connected.has_work().await, "the rest begins after both");
    connected.advance(Duration::from_mins(9));
    connected.try_step().await;
    assert_eq!(connected.take_calls(), 0);
}

#[tokio::test]
async fn the_rest_begins_although_the_operation_that_asked_for_it_fails() {
    let (connected, id) = shared().await;
    connected.edit(id, &edited()).await;
    connected.set_usage(95);
    connected.lose(Post, Loss::NotSent);
    connected.try_step().await;
    assert_eq!(connected.states().await, [Done, Queued]);
    let rest_until = connection(&connected).await.budget.rest_until.unwrap();
    let rest = rest_until.duration_since(connected.service.clock.now());
    assert_eq!(rest.as_mins(), 10);
}

#[tokio::test]
async fn a_create_that_never_tells_its_outcome_leaves_the_calls_to_others() {
    let connected = Connected::start().await;
    connected.sweep(true).await.unwrap();
    let fails =
        json!({"call": "create", "name": "order_lost", "share": 1.0, "kind": "error", "code": 2});
    connected.emulator().add_fault(&fails).await;
    connected.create(&order("order_lost")).await;
    connected.take_count(Post);
    let mut hours = Vec::new();
    for _ in 0..4 {
        for _ in 0..60 {
            connected.advance(Duration::from_mins(1));
            connected.try_step().await;
        }
        hours.push(connected.take_count(Post));
    }
    assert_eq!(hours[0], 10, "{hours:?}");
    assert!(hours[1..].iter().all(|calls| *calls <= 1), "{hours:?}");
    let operation = connected.operations().await.remove(0).operation;
    assert!(operation.unknown_calls > 10 && operation.held_until.is_some(), "{operation:?}");
    connected.clear_faults().await;
    connected.advance(Duration::from_hours(1));
    connected.step_until_settled().await;
    assert_eq!(connected.states().await, [Done]);
    assert_eq!(connected.provided().await, ["order_lost"]);
}

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
    assert_eq!(connection(&connected).await.degraded, None);
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
