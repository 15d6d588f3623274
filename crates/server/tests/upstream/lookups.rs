//! Lookups at the provider before a call, which fail.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::http::Method as HttpMethod;
use galley_domain::upstream::OperationState;
use galley_store::{DegradedReason, UpstreamAction, UpstreamActionOutcome};
use galley_upstream::Method::{Delete, Get, Post};
use serde_json::{Value, json};

use super::{connected::Connected, provider::Loss};
use crate::sandbox::emulator::order;

use OperationState::{Done, Queued, Unknown};

/// Longer than any backoff, and than the lease.
const LATER: Duration = Duration::from_mins(5);

/// How many pages a lookup by name reads before it fails: it goes on with smaller ones.
const LOOKUP_CALLS: usize = 4;

/// Loses the calls of so many lookups by name.
fn lose_lookups(connected: &Connected, count: usize) {
    for _ in 0..count * LOOKUP_CALLS {
        connected.lose(Get, Loss::Request);
    }
}

/// Creates templates whose creates were lost on their way back, and deletes them. Their deletes have
/// to look for them.
async fn lost_and_deleted(connected: &Connected, count: usize) {
    // The sweep is over before the templates exist, so that the mirror does not have them.
    connected.step().await;
    let mut lost = Vec::new();
    for number in 0..count {
        let id = connected.create(&order(&format!("lost_{number}"))).await;
        connected.lose(Post, Loss::Response);
        connected.step().await;
        lost.push(id);
    }
    for id in lost {
        connected.delete(id).await;
    }
    connected.service.clock.advance(LATER);
    // The probes of the creates.
    connected.step().await;
    connected.take_count(Get);
}

async fn degraded(connected: &Connected) -> Option<DegradedReason> {
    let connection = connected.service.store.connection(connected.account).await.unwrap().unwrap();
    let degraded = connection.degraded?;
    assert!(degraded.error.is_some_and(|it| !it.message.is_empty()), "it says what failed");
    Some(degraded.reason)
}

#[tokio::test]
async fn a_delete_whose_lookup_fails_backs_off_and_blocks_no_other_operation() {
    let connected = Connected::start().await;
    lost_and_deleted(&connected, 1).await;
    connected.create(&order("order_shipped")).await;
    lose_lookups(&connected, 1);
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Queued, Done]);
    let delete = connected.operations().await.remove(1).operation;
    assert!(delete.held_until.is_some(), "it backs off: {delete:?}");
    assert_eq!(degraded(&connected).await, None);
    assert_eq!(connected.take_count(Delete), 0);
    connected.service.clock.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Done, Done]);
    assert_eq!(connected.provided().await, ["order_shipped"]);
}

#[tokio::test]
async fn a_template_that_was_gone_and_pushed_again_is_deleted_although_the_push_was_lost() {
    let connected = Connected::start().await;
    // If all templates were missing, that would be suspicious.
    for number in 0..9 {
        connected.emulator().create_named(&format!("other_{number}")).await;
    }
    let id = connected.create(&order("order_shipped")).await;
    connected.step().await;
    connected.advance(LATER);
    connected.step().await;
    let path = format!("{}?name=order_shipped", connected.emulator().templates());
    connected.emulator().call(HttpMethod::DELETE, &path, &Value::Null).await.expect_success();
    for _ in 0..3 {
        connected.sweep(false).await.unwrap();
        connected.step().await;
    }
    assert_eq!(connected.mirrored().await.iter().filter(|it| it.gone_at.is_some()).count(), 1);
    // The name of a deleted template is locked for 30 days.
    connected.advance(Duration::from_hours(31 * 24));
    connected.step().await;
    let push = connected.change(id).await;
    let pushed = connected.service.store.act_upstream(push, UpstreamAction::Push).await.unwrap();
    assert!(matches!(pushed, UpstreamActionOutcome::Queued(_)), "{pushed:?}");
    connected.lose(Post, Loss::Response);
    connected.step().await;
    let provided = connected.provided().await;
    assert!(provided.contains(&"order_shipped".to_owned()), "the push was made: {provided:?}");
    connected.delete(id).await;
    connected.advance(LATER);
    connected.step_until_settled().await;
    assert!(!connected.provided().await.contains(&"order_shipped".to_owned()));
}

#[tokio::test]
async fn after_five_lookups_with_an_unknown_outcome_the_provider_counts_as_unreachable() {
    let connected = Connected::start().await;
    lost_and_deleted(&connected, 7).await;
    lose_lookups(&connected, 7);
    connected.try_step().await;
    assert_eq!(connected.take_count(Get), 5 * LOOKUP_CALLS);
    assert_eq!(degraded(&connected).await, Some(DegradedReason::Unreachable));
}

#[tokio::test]
async fn operations_whose_reads_show_another_template_are_made_later() {
    for is_lost in [false, true] {
        let connected = Connected::start().await;
        let mut ids = Vec::new();
        // One fewer lost call than a provider that is unreachable.
        for number in 0..if is_lost { 4 } else { 6 } {
            ids.push(connected.create(&order(&format!("order_{number}"))).await);
        }
        connected.step_until_settled().await;
        connected.advance(LATER);
        connected.step().await;
        let mut edit = order("order");
        edit["components"][0]["text"] = json!("Hello {{1}}, your parcel left the warehouse.");
        for id in &ids {
            connected.edit(*id, &edit).await;
        }
        if is_lost {
            for _ in &ids {
                connected.lose(Post, Loss::Request);
            }
            connected.step().await;
            assert_eq!(connected.states().await[ids.len()..], *vec![Unknown; ids.len()]);
        }
        connected.advance(LATER);
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        connected.rewrite(move |path, body| {
            if body.get("components").is_some() && !path.ends_with("templates") {
                counted.fetch_add(1, Ordering::Relaxed);
                body["id"] = json!("999");
            }
        });
        for _ in 0..60 {
            connected.step().await;
            connected.advance(Duration::from_mins(1));
            assert_eq!(degraded(&connected).await, None, "{is_lost}");
        }
        let reads = reads.load(Ordering::Relaxed);
        assert!(reads <= 4 * ids.len(), "{is_lost}: {reads} reads in an hour");
        connected.create(&order("order_new")).await;
        connected.step().await;
        assert!(connected.provided().await.contains(&"order_new".to_owned()), "{is_lost}");
        connected.rewrite(|_, _| {});
        connected.advance(Duration::from_mins(15));
        connected.step_until_settled().await;
        assert!(connected.states().await.iter().all(|it| *it == Done), "{is_lost}");
    }
}
