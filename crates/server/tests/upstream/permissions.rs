//! A provider that does not accept the token, and one that does not allow single calls with it.

use std::time::Duration;

use galley_domain::{
    template::Review,
    upstream::{HeldReason, OperationState},
};
use galley_server::Clock as _;
use galley_store::{Author, ConnectionChange, DegradedReason};
use galley_upstream::Method::{Get, Post};
use jiff::SignedDuration;
use serde_json::json;

use super::{connected::Connected, operations::with_picture};
use crate::sandbox::emulator::{TOKEN, order};

use OperationState::{Done, Held};

const HELD: OperationState = Held(HeldReason::Credentials);

/// Lets all calls of a kind fail with a code.
async fn refuse(connected: &Connected, call: &str, code: u32) {
    let fault = json!({"call": call, "share": 1.0, "kind": "error", "code": code});
    connected.emulator().add_fault(&fault).await;
}

async fn degraded(connected: &Connected) -> Option<DegradedReason> {
    let connection = connected.service.store.connection(connected.account).await.unwrap().unwrap();
    connection.degraded.map(|it| it.reason)
}

async fn replace_token(connected: &Connected) {
    let by = Author::operator(connected.service.clock.now());
    let change = ConnectionChange::Token(connected.sealed(TOKEN), None);
    let store = &connected.service.store;
    assert!(store.change_connection(connected.account, change, by).await.unwrap());
}

/// How often it was told that calls fail, and that they succeed again.
async fn told(connected: &Connected) -> (usize, usize) {
    let events = connected.events().await;
    let count = |kind| events.iter().filter(|it| **it == kind).count();
    (count("upstream.degraded"), count("upstream.recovered"))
}

/// Does what is due in so many minutes.
async fn work(connected: &Connected, minutes: usize) {
    for _ in 0..minutes {
        while connected.has_work().await {
            connected.try_step().await;
        }
        connected.advance(Duration::from_mins(1));
    }
}

/// A template whose sample the token may not upload, and one without a sample.
async fn with_forbidden_upload() -> Connected {
    let connected = Connected::start_with(Review::Auto, Some("634974688087057")).await;
    let document = with_picture(&connected).await;
    refuse(&connected, "upload", 10).await;
    connected.create(&document).await;
    connected.create(&order("order_paid")).await;
    connected
}

#[tokio::test]
async fn a_call_that_the_token_may_not_make_holds_only_its_operation() {
    let connected = with_forbidden_upload().await;
    connected.step().await;
    assert_eq!(connected.states().await, [HELD, Done], "the other operation is made");
    assert_eq!(degraded(&connected).await, None);
    let held = connected.operations().await.remove(0).operation;
    let wait = held.held_until.unwrap().duration_since(connected.service.clock.now());
    assert_eq!(wait, SignedDuration::from_hours(24));
    assert_eq!(held.error.unwrap().code, 10);
    assert!(!connected.events().await.contains(&"upstream.degraded"));

    connected.take_count(Post);
    work(&connected, 23 * 60).await;
    assert_eq!(connected.take_count(Post), 0, "sweeps that succeed do not release it");
    assert_eq!(degraded(&connected).await, None);
    connected.clear_faults().await;
    work(&connected, 61).await;
    assert_eq!(connected.states().await, [Done, Done], "it is tried once a day");
}

#[tokio::test]
async fn a_new_token_continues_what_the_former_one_was_not_allowed() {
    let connected = with_forbidden_upload().await;
    connected.step().await;
    assert_eq!(connected.states().await, [HELD, Done]);
    connected.clear_faults().await;
    replace_token(&connected).await;
    work(&connected, 1).await;
    assert_eq!(connected.states().await, [Done, Done]);
}

#[tokio::test]
async fn the_account_is_asked_once_for_many_calls_that_are_not_allowed() {
    let connected = Connected::start().await;
    connected.step().await;
    refuse(&connected, "create", 200).await;
    for number in 0..5 {
        connected.create(&order(&format!("order_{number}"))).await;
    }
    connected.take_count(Get);
    connected.step().await;
    assert_eq!(connected.states().await, [HELD; 5]);
    assert_eq!(connected.take_count(Get), 1);
}

#[tokio::test]
async fn a_token_without_permissions_for_the_account_holds_all_operations() {
    let connected = Connected::start().await;
    connected.step().await;
    for call in ["create", "list"] {
        refuse(&connected, call, 200).await;
    }
    for name in ["order_1", "order_2"] {
        connected.create(&order(name)).await;
    }
    connected.try_step().await;
    assert_eq!(connected.states().await, [HELD, OperationState::Queued]);
    assert_eq!(degraded(&connected).await, Some(DegradedReason::Credentials));
    let held = connected.operations().await.remove(0).operation;
    assert_eq!(held.held_until, None, "a call that succeeds ends it");
    connected.clear_faults().await;
    work(&connected, 20).await;
    assert_eq!(connected.states().await, [Done, Done]);
    assert_eq!(degraded(&connected).await, None);
}

#[tokio::test]
async fn an_expired_token_costs_four_calls_an_hour_and_a_new_one_continues_all() {
    let connected = Connected::start().await;
    for call in ["create", "edit", "delete", "list", "read"] {
        refuse(&connected, call, 190).await;
    }
    for name in ["order_1", "order_2"] {
        connected.create(&order(name)).await;
    }
    let mut calls = Vec::new();
    for _ in 0..180 {
        while connected.has_work().await {
            connected.try_step().await;
        }
        calls.push(connected.take_calls());
        connected.advance(Duration::from_mins(1));
    }
    let busiest = calls.windows(60).map(|hour| hour.iter().sum::<u32>()).max();
    assert_eq!(busiest, Some(4), "{calls:?}");
    assert_eq!(degraded(&connected).await, Some(DegradedReason::Credentials));
    connected.clear_faults().await;
    replace_token(&connected).await;
    work(&connected, 1).await;
    assert_eq!(connected.states().await, [Done, Done]);
    assert_eq!(connected.provided().await.len(), 2);
    assert_eq!(degraded(&connected).await, None);
}

#[tokio::test]
async fn a_token_that_is_not_accepted_for_creates_alone_degrades_the_connection_once() {
    let connected = Connected::start().await;
    refuse(&connected, "create", 190).await;
    for name in ["order_1", "order_2"] {
        connected.create(&order(name)).await;
    }
    work(&connected, 10 * 60).await;
    assert_eq!(connected.states().await, [HELD, HELD]);
    assert_eq!(connected.take_count(Post), 3, "the first one is tried again");
    assert_eq!(degraded(&connected).await, None);
    let events = connected.events().await;
    assert_eq!(events.iter().filter(|it| **it == "upstream.degraded").count(), 1, "{events:?}");
}

#[tokio::test]
async fn a_failure_of_a_token_that_was_replaced_meanwhile_holds_nothing() {
    for code in [190, 200] {
        let connected = Connected::start_without_import(Review::Auto, None).await;
        connected.create(&order("order_paid")).await;
        let session = connected.session().await;
        replace_token(&connected).await;
        refuse(&connected, "create", code).await;
        assert!(session.run_operations(10).await.is_err());
        session.end().await.unwrap();
        assert_eq!(degraded(&connected).await, None);
        connected.clear_faults().await;
        work(&connected, 1).await;
        assert_eq!(connected.states().await, [Done], "{code}");
    }
}

#[tokio::test]
async fn a_token_that_expires_during_the_work_holds_operations_until_there_is_a_new_one() {
    let connected = Connected::start().await;
    connected.step().await;
    for name in ["order_1", "order_2"] {
        connected.create(&order(name)).await;
    }
    let session = connected.session().await;
    refuse(&connected, "create", 200).await;
    assert_eq!(session.run_operations(1).await.unwrap(), 1, "the account can be read");
    connected.clear_faults().await;
    for call in ["create", "list"] {
        refuse(&connected, call, 190).await;
    }
    assert!(session.run_operations(1).await.is_err());
    session.end().await.unwrap();
    assert_eq!(degraded(&connected).await, Some(DegradedReason::Credentials));
    let is_forbidden: Vec<bool> =
        connected.operations().await.iter().map(|it| it.operation.held_until.is_some()).collect();
    assert_eq!(is_forbidden, [true, false]);
}

#[tokio::test]
async fn an_account_that_is_restricted_is_read_and_gets_one_call_in_a_quarter_of_an_hour() {
    let connected = Connected::start().await;
    connected.step().await;
    refuse(&connected, "create", 368).await;
    for number in 0..5 {
        connected.create(&order(&format!("order_{number}"))).await;
    }
    connected.take_count(Post);
    work(&connected, 120).await;
    assert_eq!(connected.take_count(Post), 8);
    assert_eq!(degraded(&connected).await, Some(DegradedReason::Restricted));
    assert_eq!(told(&connected).await, (1, 0));
    let connection = connected.service.store.connection(connected.account).await.unwrap().unwrap();
    let swept_before = connected.service.clock.now().duration_since(connection.swept_at.unwrap());
    assert!(swept_before < SignedDuration::from_mins(31), "{swept_before}");
    connected.clear_faults().await;
    work(&connected, 20).await;
    assert_eq!(connected.states().await, [Done; 5]);
    assert_eq!((degraded(&connected).await, told(&connected).await), (None, (1, 1)));
}

#[tokio::test]
async fn an_account_whose_reads_are_restricted_is_told_of_once() {
    let connected = Connected::start().await;
    connected.step().await;
    refuse(&connected, "list", 368).await;
    work(&connected, 120).await;
    assert_eq!(degraded(&connected).await, Some(DegradedReason::Restricted));
    assert_eq!(told(&connected).await, (1, 0));
    connected.clear_faults().await;
    work(&connected, 20).await;
    assert_eq!((degraded(&connected).await, told(&connected).await), (None, (1, 1)));
}
