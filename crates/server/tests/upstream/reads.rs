//! Templates whose reads fail while others can be read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use galley_domain::{
    template::Status,
    upstream::{CallFailure, RemoteId, read_hook},
};
use galley_server::{
    Clock as _,
    upstream::{SyncError, sync_connection},
};
use galley_store::{DegradedReason, MirroredTemplate};
use serde_json::json;

use super::connected::Connected;
use crate::sandbox::emulator::order;

/// When the read of a template that failed is due again.
const POSTPONED: Duration = Duration::from_secs(15 * 60 + 1);

/// A connected account with this many templates that were approved at the provider since they were
/// imported; returns their ids.
async fn with_approved(count: usize) -> (Connected, Vec<RemoteId>) {
    let connected = Connected::start().await;
    let mut ids = Vec::new();
    for number in 0..count {
        let id = connected.emulator().create_named(&format!("order_{number}_pending_10m")).await;
        ids.push(RemoteId::parse(&id).unwrap());
    }
    connected.step().await;
    connected.emulator().advance("600s").await;
    (connected, ids)
}

/// Lets webhooks name templates.
async fn hint(connected: &Connected, ids: &[RemoteId]) {
    let waba = connected.emulator().account.to_string();
    let changes: Vec<_> = ids
        .iter()
        .map(|id| {
            let value = json!({"message_template_id": id.as_str().parse::<u64>().unwrap()});
            json!({"field": "message_template_components_update", "value": value})
        })
        .collect();
    let body = json!({"object": "whatsapp_business_account", "entry": [{
        "id": waba, "time": 1, "changes": changes,
    }]});
    let hints = read_hook(body.to_string().as_bytes(), &waba).unwrap();
    let now = connected.service.clock.now();
    connected.service.store.record_hints(connected.account, hints, now).await.unwrap();
}

/// From now on, the provider answers reads of these templates with something else.
fn make_unreadable(connected: &Connected, ids: &[RemoteId]) {
    let paths: Vec<String> = ids.iter().map(|id| format!("/v23.0/{id}")).collect();
    connected.rewrite(move |path, body| {
        if paths.iter().any(|it| it == path) {
            *body = json!({"success": true});
        }
    });
}

async fn row(connected: &Connected, id: &RemoteId) -> MirroredTemplate {
    let store = &connected.service.store;
    store.mirrored_template(connected.account, id).await.unwrap().unwrap()
}

async fn status(connected: &Connected, id: &RemoteId) -> Status {
    let template = row(connected, id).await.template.unwrap();
    let stored = connected.service.store.template(connected.account, template).await.unwrap();
    stored.unwrap().state.status()
}

async fn degraded(connected: &Connected) -> Option<DegradedReason> {
    let connection = connected.service.store.connection(connected.account).await.unwrap().unwrap();
    connection.degraded.map(|it| it.reason)
}

#[tokio::test]
async fn a_template_that_the_token_may_not_read_stops_neither_other_reads_nor_sweeps() {
    let (connected, ids) = with_approved(2).await;
    let path = format!("/v23.0/{}", ids[0]);
    connected.rewrite(move |at, body| {
        if at == path {
            *body = json!({"error": {"message": "No permission", "code": 10}});
        }
    });
    hint(&connected, &ids).await;
    connected.advance(POSTPONED);
    connected.step().await;
    assert_eq!(degraded(&connected).await, None);
    let statuses = [status(&connected, &ids[0]).await, status(&connected, &ids[1]).await];
    assert_eq!(statuses, [Status::Pending, Status::Approved]);
    let connection = connected.service.store.connection(connected.account).await.unwrap();
    assert_eq!(connection.unwrap().swept_at, Some(connected.service.clock.now()));
    assert!(!connected.events().await.contains(&"upstream.degraded"));
}

#[tokio::test]
async fn a_template_that_cannot_be_read_stops_neither_other_reads_nor_sweeps() {
    let (connected, ids) = with_approved(3).await;
    make_unreadable(&connected, &ids[..1]);
    hint(&connected, &ids).await;
    connected.take_calls();
    connected.step().await;
    assert_eq!(connected.take_calls(), 3);
    assert_eq!(degraded(&connected).await, None);
    for (id, expected) in
        [(&ids[0], Status::Pending), (&ids[1], Status::Approved), (&ids[2], Status::Approved)]
    {
        assert_eq!(status(&connected, id).await, expected, "{id}");
    }
    assert!(!connected.has_work().await, "it is not read again at once");
    connected.step().await;
    assert_eq!(connected.take_calls(), 0);
    // It is tried again each time, and sweeps go on. The first one shows another status, which is
    // one more reason to read it.
    for calls in [3, 2, 2] {
        connected.advance(POSTPONED);
        assert!(connected.has_work().await);
        connected.step().await;
        let connection = connected.service.store.connection(connected.account).await.unwrap();
        assert_eq!(connection.unwrap().swept_at, Some(connected.service.clock.now()));
        assert_eq!(connected.take_calls(), calls);
        assert!(!connected.has_work().await);
    }
    assert_eq!(degraded(&connected).await, None);
    // A webhook is a reason to try it at once.
    make_unreadable(&connected, &[]);
    hint(&connected, &ids[..1]).await;
    assert!(connected.has_work().await);
    connected.step().await;
    assert_eq!(status(&connected, &ids[0]).await, Status::Approved);
    assert_eq!(row(&connected, &ids[0]).await.dirty_at, None);
}

#[tokio::test]
async fn a_read_that_shows_another_template_fails_and_is_made_later() {
    let (connected, ids) = with_approved(2).await;
    let (path, other) = (format!("/v23.0/{}", ids[0]), ids[1].to_string());
    connected.rewrite(move |at, body| {
        if at == path {
            body["id"] = json!(other);
            body["name"] = json!("order_1_pending_10m");
        }
    });
    hint(&connected, &ids[..1]).await;
    let before = row(&connected, &ids[1]).await;
    connected.take_calls();
    for _ in 0..60 {
        connected.step().await;
        connected.advance(Duration::from_secs(1));
    }
    assert_eq!(connected.take_calls(), 1);
    assert_eq!(row(&connected, &ids[1]).await, before, "it tells nothing of the other one");
    assert_eq!(degraded(&connected).await, None);
    connected.rewrite(|_, _| {});
    connected.advance(POSTPONED);
    connected.step().await;
    assert_eq!(status(&connected, &ids[0]).await, Status::Approved);
}

#[tokio::test]
async fn a_template_whose_absence_cannot_be_confirmed_is_asked_for_later() {
    let (connected, ids) = with_approved(10).await;
    connected.sweep(true).await.unwrap();
    let path = format!("{}?name=order_3_pending_10m", connected.emulator().templates());
    let delete = connected.emulator().call(axum::http::Method::DELETE, &path, &json!(null));
    delete.await.expect_success();
    for _ in 0..2 {
        connected.sweep(false).await.unwrap();
    }
    make_unreadable(&connected, &ids[3..4]);
    assert!(connected.has_work().await);
    connected.step().await;
    assert_eq!(row(&connected, &ids[3]).await.gone_at, None);
    assert!(!connected.has_work().await);
    make_unreadable(&connected, &[]);
    connected.advance(POSTPONED);
    connected.step().await;
    assert!(row(&connected, &ids[3]).await.gone_at.is_some());
}

#[tokio::test]
async fn a_provider_that_answers_no_read_counts_as_unreachable() {
    let (connected, ids) = with_approved(8).await;
    make_unreadable(&connected, &ids);
    hint(&connected, &ids).await;
    connected.take_calls();
    let failed = sync_connection(&connected.context, connected.account).await.unwrap_err();
    assert!(matches!(failed, SyncError::Call(CallFailure::Unknown(_))), "{failed:?}");
    assert_eq!(connected.take_calls(), 5);
    assert_eq!(degraded(&connected).await, Some(DegradedReason::Unreachable));
    // The others are not behind those that failed.
    connected.advance(Duration::from_mins(1));
    connected.step().await;
    assert_eq!(connected.take_calls(), 4);
    make_unreadable(&connected, &[]);
    connected.advance(POSTPONED);
    connected.step().await;
    for id in &ids {
        assert_eq!(status(&connected, id).await, Status::Approved, "{id}");
    }
    assert_eq!(degraded(&connected).await, None);
}

#[tokio::test]
async fn a_template_that_the_provider_shows_a_moment_after_its_create_is_read_again() {
    let connected = Connected::start().await;
    connected.step().await;
    connected.rewrite(|_, body| {
        if body.get("name").is_some() {
            *body = json!({"error": {"code": 100, "error_subcode": 33, "message": "Unknown"}});
        }
    });
    connected.create(&order("order_paid")).await;
    connected.step().await;
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.gone_at, mirrored.missing), (None, 0));
    assert_eq!(stored.state.status(), Status::Pending);
    connected.rewrite(|_, _| {});
    connected.advance(Duration::from_secs(31));
    connected.step().await;
    assert_eq!(connected.only_template().await.1.state.status(), Status::Approved);
}

#[tokio::test]
async fn a_read_after_a_create_that_shows_another_template_is_made_later() {
    let connected = Connected::start().await;
    connected.step().await;
    let reads = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&reads);
    connected.rewrite(move |_, body| {
        if body.get("name").is_some() {
            body["id"] = json!("999");
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    connected.create(&order("order_paid")).await;
    for _ in 0..60 {
        connected.step().await;
        connected.advance(Duration::from_secs(1));
    }
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    connected.rewrite(|_, _| {});
    connected.advance(POSTPONED);
    connected.step().await;
    assert_eq!(connected.only_template().await.1.state.status(), Status::Approved);
}

#[tokio::test]
async fn a_template_is_read_at_once_while_a_request_waits_for_it() {
    for (age, reads) in [(0, 1), (10, 1), (11, 0)] {
        let connected = Connected::start().await;
        connected.step().await;
        connected.create(&order("order_paid")).await;
        connected.advance(Duration::from_secs(age));
        let session = connected.session().await;
        connected.take_calls();
        assert_eq!(session.run_operations(10).await.unwrap(), 1);
        session.end().await.unwrap();
        assert_eq!(connected.take_calls(), 1 + reads, "{age}");
    }
}
