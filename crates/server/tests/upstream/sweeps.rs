//! What sweeps mirror, and what they never remove.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::http::Method;
use galley_domain::{
    template::{Review, Status},
    upstream::{CallFailure, OperationState, RemoteStatus, SweepVerdict, read_hook},
};
use galley_server::{Clock as _, upstream::SyncError};
use galley_store::{
    Author, ConnectionChange, DegradedReason, UpstreamAction, UpstreamActionOutcome,
};
use galley_upstream::Method as UpstreamMethod;
use serde_json::{Value, json};

use super::{connected::Connected, rng::scale};
use crate::sandbox::emulator::order;

/// `GALLEY_UPSTREAM_TEMPLATES=6000` makes it longer.
#[tokio::test]
async fn an_import_finds_all_templates_although_pages_fail() {
    let connected = Connected::start().await;
    let templates = scale("GALLEY_UPSTREAM_TEMPLATES", 1_500);
    for number in 0..templates {
        connected.emulator().create_named(&format!("order_{number}")).await;
    }
    // The creates used up the calls of the hour at the provider.
    connected.emulator().clock.advance(Duration::from_hours(2));
    let sent: Arc<Mutex<HashMap<String, String>>> = Arc::default();
    let documents = Arc::clone(&sent);
    connected.rewrite(move |_, body| {
        for template in body["data"].as_array_mut().into_iter().flatten() {
            let components = template["components"].as_array_mut().unwrap();
            components.push(json!({"type": "HOLOGRAM", "depth": 3}));
            let id = template["id"].as_str().unwrap().to_owned();
            documents.lock().unwrap().insert(id, template.to_string());
        }
    });
    let fault = json!({"call": "list", "share": 0.1, "kind": "error", "code": 2});
    connected.emulator().add_fault(&fault).await;
    let report = connected.sweep(true).await.unwrap();
    assert_eq!((report.verdict, report.missing), (SweepVerdict::Counted, 0));
    assert_eq!(report.seen as usize, templates);
    let calls = connected.take_calls() as usize;
    println!("{templates} templates with {calls} calls");
    assert!(calls <= templates.div_ceil(100) * 13 / 10, "{calls} calls");
    let mirrored = connected.mirrored().await;
    assert_eq!(mirrored.len(), templates);
    assert!(mirrored.iter().all(|it| it.template.is_some() && it.gone_at.is_none()));
    for mirrored in mirrored {
        let store = &connected.service.store;
        let document = store.mirrored_document(connected.account, mirrored.id.clone()).await;
        let document = document.unwrap().unwrap();
        assert!(document.contains("HOLOGRAM"), "{document}");
        assert_eq!(document, sent.lock().unwrap()[mirrored.id.as_str()]);
    }
}

#[tokio::test]
async fn a_review_at_the_provider_decides_the_status() {
    let connected = Connected::start().await;
    connected.emulator().create_named("order_pending_10m").await;
    connected.sweep(true).await.unwrap();
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!(mirrored.status, RemoteStatus::Pending);
    assert_eq!((stored.state.status(), stored.state.approved_version), (Status::Pending, None));
    connected.emulator().advance("600s").await;
    let report = connected.sweep(false).await.unwrap();
    assert_eq!((report.seen, report.changed), (1, 1));
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!(mirrored.status, RemoteStatus::Approved);
    assert_eq!((stored.state.status(), stored.state.approved_version), (Status::Approved, Some(1)));
    assert_eq!(connected.events().await, ["template.created", "template.approved"]);
    assert_eq!(connected.sweep(false).await.unwrap().changed, 0);
}

#[tokio::test]
async fn content_that_changes_outside_is_flagged_and_the_own_content_stays() {
    let connected = Connected::start().await;
    let id = connected.emulator().create_named("order_shipped").await;
    connected.sweep(true).await.unwrap();
    let (_, before) = connected.only_template().await;
    let mut edit = order("order_shipped");
    edit["components"][0]["text"] = json!("Hello {{1}}, your parcel left the warehouse today.");
    let edit = json!({"components": edit["components"]});
    let path = format!("/v23.0/{id}");
    connected.emulator().call(Method::POST, &path, &edit).await.expect_success();
    connected.sweep(true).await.unwrap();
    let (mirrored, after) = connected.only_template().await;
    assert!(mirrored.drifted);
    assert_eq!(after.template.content(), before.template.content());
    assert_eq!(after.state.approved_version, None, "the provider has another content");
    let events = connected.events().await;
    assert_eq!(events.iter().filter(|it| **it == "template.drifted").count(), 1, "{events:?}");
}

#[tokio::test]
async fn a_deleted_template_is_gone_after_two_sweeps_and_a_read() {
    let connected = Connected::start().await;
    for number in 0..10 {
        connected.emulator().create_named(&format!("order_{number}")).await;
    }
    connected.sweep(true).await.unwrap();
    let path = format!("{}?name=order_3", connected.emulator().templates());
    connected.emulator().call(Method::DELETE, &path, &Value::Null).await.expect_success();
    for (missing, gone) in [(1, 0), (1, 1)] {
        let report = connected.sweep(false).await.unwrap();
        assert_eq!((report.verdict, report.missing), (SweepVerdict::Counted, missing));
        let session = connected.session().await;
        let store = &connected.service.store;
        let wanted = store.templates_to_read(connected.account, 10).await.unwrap();
        session.read_templates(&wanted).await.unwrap();
        session.end().await.unwrap();
        let mirrored = connected.mirrored().await;
        assert_eq!(mirrored.iter().filter(|it| it.gone_at.is_some()).count(), gone);
    }
    let events = connected.events().await;
    assert_eq!(events.iter().filter(|it| **it == "template.gone").count(), 1);
}

#[tokio::test]
async fn an_empty_list_removes_nothing_and_is_suspicious() {
    let connected = Connected::start().await;
    for number in 0..10 {
        connected.emulator().create_named(&format!("order_{number}")).await;
    }
    connected.sweep(true).await.unwrap();
    connected.rewrite(|_, body| {
        if body.get("data").is_some() {
            *body = json!({"data": []});
        }
    });
    let report = connected.sweep(false).await.unwrap();
    assert_eq!((report.verdict, report.suspicious), (SweepVerdict::Suspicious, true));
    let mirrored = connected.mirrored().await;
    assert!(mirrored.iter().all(|it| it.missing == 0 && it.gone_at.is_none()));
    let connection = connected.service.store.connection(connected.account).await.unwrap().unwrap();
    assert!(connection.suspicious_at.is_some());
    // The list may be that of another account: nothing is sent there until a person has looked.
    connected.create(&order("order_new")).await;
    connected.take_count(UpstreamMethod::Post);
    connected.step().await;
    assert_eq!(connected.take_count(UpstreamMethod::Post), 0);
    assert_eq!(connected.states().await, [OperationState::Queued]);
    let answered = connected.post_order("order_newer").await.expect_success();
    assert_eq!(answered["galley_upstream"]["state"], "queued", "at once: {answered}");
    let by = Author::operator(connected.service.clock.now());
    let resumed = ConnectionChange::Resumed;
    connected.service.store.change_connection(connected.account, resumed, by).await.unwrap();
    connected.step().await;
    assert_eq!(connected.states().await, [OperationState::Done; 2]);
}

#[tokio::test]
async fn a_token_that_has_expired_ends_all_calls_for_a_quarter_of_an_hour() {
    let connected = Connected::start().await;
    let fault = json!({"call": "list", "share": 1.0, "kind": "error", "code": 190});
    connected.emulator().add_fault(&fault).await;
    let failed = connected.sweep(true).await.unwrap_err();
    assert!(matches!(failed, SyncError::Call(CallFailure::Credentials(_))), "{failed:?}");
    let connection = connected.service.store.connection(connected.account).await.unwrap().unwrap();
    let degraded = connection.degraded.unwrap();
    assert_eq!(degraded.reason, DegradedReason::Credentials);
    let rest = degraded.until.unwrap().duration_since(connected.service.clock.now());
    assert_eq!(rest.as_mins(), 15);
    assert_eq!(connected.events().await, ["upstream.degraded"]);
}

#[tokio::test]
async fn a_second_process_does_not_work_on_a_leased_connection() {
    let connected = Connected::start().await;
    connected.emulator().create_named("order_shipped").await;
    let first = connected.session().await;
    // Longer than the lease.
    connected.service.clock.advance(Duration::from_mins(10));
    let second = connected.session().await;
    let lost = first.sweep(true, false, &mut |_| {}).await.unwrap_err();
    assert!(matches!(lost, SyncError::LeaseLost), "{lost:?}");
    second.sweep(true, false, &mut |_| {}).await.unwrap();
    assert_eq!(connected.mirrored().await.len(), 1);
}

#[tokio::test]
async fn the_worker_sweeps_every_quarter_of_an_hour_and_reads_all_contents_once_a_day() {
    let connected = Connected::start().await;
    connected.emulator().create_named("order_shipped").await;
    let mut calls = Vec::new();
    for minutes in [0, 14, 1, 15, 24 * 60] {
        connected.service.clock.advance(Duration::from_mins(minutes));
        connected.take_calls();
        if connected.has_work().await {
            connected.step().await;
        }
        calls.push(connected.take_calls());
    }
    assert_eq!(calls, [2, 0, 1, 1, 2], "a full sweep also asks about the token");
    let connection = connected.service.store.connection(connected.account).await.unwrap().unwrap();
    assert_eq!(connection.read_all_at, connection.swept_at, "the last sweep read all contents");
}

#[tokio::test]
async fn a_template_that_a_webhook_names_is_read_before_the_next_sweep() {
    let connected = Connected::start().await;
    let id = connected.emulator().create_named("order_pending_10m").await;
    connected.step().await;
    connected.emulator().advance("600s").await;
    assert!(!connected.has_work().await);
    let body = json!({"object": "whatsapp_business_account", "entry": [{
        "id": connected.emulator().account.to_string(), "time": 1, "changes": [{
            "field": "message_template_status_update",
            "value": {
                "event": "REJECTED", "message_template_id": id.parse::<u64>().unwrap(),
                "message_template_name": "order_pending_10m", "message_template_language": "en-US",
                "reason": "NONE",
            },
        }],
    }]});
    let waba = connected.emulator().account.to_string();
    let hints = read_hook(body.to_string().as_bytes(), &waba).unwrap();
    let now = connected.service.clock.now();
    connected.service.store.record_hints(connected.account, hints, now).await.unwrap();
    assert!(connected.has_work().await);
    connected.step().await;
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!(
        mirrored.status,
        RemoteStatus::Approved,
        "a webhook is a hint, and the read decides"
    );
    assert_eq!(stored.state.status(), Status::Approved);
    assert!(!connected.has_work().await);
}

#[tokio::test]
async fn an_approval_from_before_the_connection_ends_with_the_import() {
    let connected = Connected::start().await;
    let (store, account) = (&connected.service.store, connected.account);
    let id = connected.create_with(&order("order_shipped"), Review::Auto).await;
    let read = async || store.template(account, id).await.unwrap().unwrap();
    assert_eq!(read().await.state.live_version(), Some(1));
    assert!(connected.operations().await.is_empty());
    connected.sweep(true).await.unwrap();
    let withdrawn = read().await;
    let state = (withdrawn.state.status(), withdrawn.state.live_version());
    assert_eq!(state, (Status::Pending, None));
    assert_eq!(connected.events().await, ["template.created", "template.drifted"]);
    connected.sweep(true).await.unwrap();
    assert_eq!(read().await.revision, withdrawn.revision, "it is told once");

    let change = connected.change(id).await;
    let submitted = store.act_upstream(change, UpstreamAction::Submit).await.unwrap();
    assert!(matches!(submitted, UpstreamActionOutcome::Queued(_)), "{submitted:?}");
    connected.step_until_settled().await;
    assert_eq!(connected.provided().await, ["order_shipped"]);
    connected.sweep(true).await.unwrap();
    assert_eq!(read().await.state.live_version(), Some(1), "the provider has approved it");
}

#[tokio::test]
async fn a_sweep_counts_although_templates_are_deleted_and_created_meanwhile() {
    for (is_deleted, is_created) in [(true, false), (false, true), (true, true)] {
        let connected = Connected::start().await;
        for number in 0..120 {
            connected.emulator().create_named(&format!("order_{number}")).await;
        }
        connected.sweep(true).await.unwrap();
        // The first page asks for a rest.
        connected.set_usage(100);
        let rested = connected.sweep(false).await.unwrap_err();
        assert!(matches!(rested, SyncError::NotBefore(_)), "{rested:?}");
        connected.set_usage(1);
        let mirrored = connected.mirrored().await;
        let newest = mirrored.iter().map(|it| it.sweep).max();
        let unseen: Vec<_> = mirrored.iter().filter(|it| Some(it.sweep) != newest).collect();
        assert_eq!(unseen.len(), 20);
        if is_deleted {
            let path = format!("{}?name={}", connected.emulator().templates(), unseen[0].name);
            let deleted = connected.emulator().call(Method::DELETE, &path, &Value::Null);
            deleted.await.expect_success();
        }
        if is_created {
            connected.emulator().create_named("order_of_today").await;
        }
        let report = connected.sweep(false).await.unwrap();
        let case = format!("deleted {is_deleted}, created {is_created}: {report:?}");
        assert_eq!((report.verdict, report.suspicious), (SweepVerdict::Counted, false), "{case}");
        assert_eq!(report.missing, u32::from(is_deleted), "{case}");
        let mirrored = connected.mirrored().await;
        let is_found = mirrored.iter().any(|it| it.name == "order_of_today");
        assert!(is_found || !is_created || !is_deleted, "{case}");
    }
}

/// Lets the provider count one template more than it has, so many times.
fn count_one_more(connected: &Connected, times: u32) {
    let left = AtomicU32::new(times);
    connected.rewrite(move |_, body| {
        let Some(total) = body["summary"]["total_count"].as_u64() else { return };
        if left.load(Ordering::Relaxed) > 0 {
            left.fetch_sub(1, Ordering::Relaxed);
            body["summary"]["total_count"] = json!(total + 1);
        }
    });
}

#[tokio::test]
async fn a_count_that_does_not_agree_is_asked_for_once_more() {
    let connected = Connected::start().await;
    for number in 0..3 {
        connected.emulator().create_named(&format!("order_{number}")).await;
    }
    for (times, verdict) in [(0, SweepVerdict::Counted), (1, SweepVerdict::Counted)] {
        count_one_more(&connected, times);
        connected.take_calls();
        let report = connected.sweep(true).await.unwrap();
        assert_eq!((report.verdict, report.seen, connected.take_calls()), (verdict, 3, 1 + times));
        count_one_more(&connected, times);
        let session = connected.session().await;
        let walked = session.walk(&mut |_| {}).await.unwrap();
        session.end().await.unwrap();
        assert!(walked.progress.is_complete(), "{:?}", walked.progress);
        assert_eq!((walked.templates().len(), connected.take_calls()), (3, 1 + times));
    }
    count_one_more(&connected, 2);
    assert_eq!(connected.sweep(true).await.unwrap().verdict, SweepVerdict::Incomplete);
    assert_eq!(connected.take_calls(), 2, "it is asked for once");
}
