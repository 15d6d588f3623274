//! The Graph surface of a connected account: the call to the provider is part of the request, and
//! clients see the ids of the provider.

use std::{sync::atomic::Ordering, time::Duration};

use axum::http::Method;
use galley_domain::{
    template::{Review, lifecycle::Trigger},
    upstream::{CallKind, OperationState, RemoteTemplate},
};
use galley_server::Clock as _;
use galley_store::{CallPermit, Fenced, ReadRecord};
use galley_upstream::Method as UpstreamMethod;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{connected::Connected, provider::Loss};
use crate::sandbox::emulator::order;

#[tokio::test]
async fn a_create_answers_with_the_id_of_the_provider_and_both_ids_resolve() {
    let connected = Connected::start().await;
    let _worker = connected.run_worker();
    let created = connected.post_order("order_shipped");
    let created = created.await.expect_success();
    assert_eq!((&created["status"], &created["category"]), (&json!("APPROVED"), &json!("UTILITY")));
    assert!(created.get("galley_upstream").is_none(), "{created}");
    let id = created["id"].as_str().unwrap();
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!(mirrored.id.as_str(), id);
    for known in [id.to_owned(), stored.id.to_string()] {
        for path in [format!("/v23.0/{known}"), format!("{}/{known}", connected.templates())] {
            let shown = connected.call(Method::GET, &path, &Value::Null).await.expect_success();
            assert_eq!((&shown["id"], &shown["name"]), (&json!(id), &json!("order_shipped")));
        }
    }
    let list = connected.call(Method::GET, &connected.templates(), &Value::Null).await;
    assert_eq!(list.expect_success()["data"][0]["id"], id);
}

/// The names of the templates with a status, as the account lists them.
async fn listed(connected: &Connected, status: &str) -> Vec<String> {
    let path = format!("{}?fields=name&status={status}", connected.templates());
    let list = connected.call(Method::GET, &path, &Value::Null).await.expect_success();
    let data = list["data"].as_array().unwrap().iter();
    data.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn lists_by_status_show_a_change_as_soon_as_it_is_answered() {
    let connected = Connected::start().await;
    let _worker = connected.run_worker();
    let mut names = Vec::new();
    for number in 1..=5 {
        let name = format!("order_{number}");
        let created = connected.post_order(&name).await.expect_success();
        // The newest one comes first.
        names.insert(0, name);
        assert_eq!(created["status"], "APPROVED");
        assert_eq!(listed(&connected, "APPROVED").await, names);
        let mut edit = json!({"components": order("order")["components"]});
        edit["components"][0]["text"] = json!("Hello {{1}}, your parcel left the warehouse.");
        let path = format!("/v23.0/{}", created["id"].as_str().unwrap());
        connected.call(Method::POST, &path, &edit).await.expect_success();
        assert_eq!(listed(&connected, "APPROVED").await, names);
    }
}

#[tokio::test]
async fn a_create_does_not_wait_for_a_read_that_is_made_later() {
    for (usage, loss) in [
        (0, Some(Loss::NotSent)),
        (0, Some(Loss::Request)),
        (0, Some(Loss::Response)),
        // The provider asks for a rest.
        (100, None),
    ] {
        let connected = Connected::start().await;
        connected.step().await;
        connected.provider.usage.store(usage, Ordering::Relaxed);
        let losses = loss.map(|loss| (UpstreamMethod::Get, loss));
        connected.provider.losses.lock().unwrap().extend(losses);
        let _worker = connected.run_worker();
        let created = timeout(AT_ONCE, connected.post_order("order_paid")).await.unwrap();
        assert_eq!(created.expect_success()["status"], "APPROVED", "{loss:?}");
        assert!(connected.provider.losses.lock().unwrap().is_empty(), "{loss:?}");
    }
}

#[tokio::test]
async fn edits_and_deletes_by_the_id_of_the_provider_reach_the_provider() {
    let connected = Connected::start().await;
    let _worker = connected.run_worker();
    let created = connected.post_order("order_shipped");
    let id = created.await.expect_success()["id"].as_str().unwrap().to_owned();
    let text = "Hello {{1}}, your parcel left the warehouse today.";
    let mut components = order("order_shipped")["components"].clone();
    components[0]["text"] = json!(text);
    let edit = json!({"components": components});
    let edited = connected.call(Method::POST, &format!("/v23.0/{id}"), &edit).await;
    let edited = edited.expect_success();
    assert_eq!((&edited["id"], &edited["success"]), (&json!(id), &json!(true)));
    assert!(edited.get("galley_upstream").is_none(), "{edited}");
    let (mirrored, _) = connected.only_template().await;
    assert_eq!(connected.provided_text(&mirrored.id).await, text);
    let path = format!("{}?name=order_shipped&hsm_id={id}", connected.templates());
    let deleted = connected.call(Method::DELETE, &path, &Value::Null).await.expect_success();
    assert_eq!(deleted, json!({"success": true}));
    assert!(connected.provided().await.is_empty());
}

#[tokio::test]
async fn several_templates_are_deleted_by_the_ids_of_the_provider() {
    let connected = Connected::start().await;
    let _worker = connected.run_worker();
    let mut ids = Vec::new();
    for name in ["order_1", "order_2"] {
        let created = connected.post_order(name).await;
        ids.push(created.expect_success()["id"].as_str().unwrap().to_owned());
    }
    let path = format!("{}?hsm_ids={}", connected.templates(), ids.join(","));
    let deleted = connected.call(Method::DELETE, &path, &Value::Null).await.expect_success();
    assert_eq!(deleted, json!({"success": true}));
    assert!(connected.provided().await.is_empty());
}

#[tokio::test]
async fn a_refused_create_has_the_error_of_the_provider_and_leaves_the_name_free() {
    let connected = Connected::start().await;
    let _worker = connected.run_worker();
    let fault = json!({"call": "create", "times": 1, "kind": "error", "code": 2_388_040});
    connected.emulator().add_fault(&fault).await;
    let refused = connected.post_order("order_shipped");
    let error = refused.await.expect_error(400, 100, Some(2_388_040));
    assert_eq!(error["error_user_title"], "Text too long");
    assert_eq!(error["error_user_msg"], "A text exceeds its character limit.");
    assert_eq!(error["galley_problem"], "upstream-refused");
    let again = connected.post_order("order_shipped");
    let again = again.await.expect_success();
    assert_eq!(again["status"], "APPROVED");
    assert_eq!(connected.provided().await, ["order_shipped"]);
}

#[tokio::test]
async fn a_refused_edit_keeps_the_template_that_only_the_account_has() {
    let connected = Connected::start().await;
    let id = connected.create_with(&order("order_shipped"), Review::Auto).await;
    let _worker = connected.run_worker();
    let fault = json!({"call": "create", "times": 1, "kind": "error", "code": 2_388_040});
    connected.emulator().add_fault(&fault).await;
    let mut edit = json!({"components": order("order_shipped")["components"]});
    edit["components"][0]["text"] = json!("Hello {{1}}, your order is on its way to you.");
    let edited = connected.call(Method::POST, &format!("/v23.0/{id}"), &edit).await;
    edited.expect_error(400, 100, Some(2_388_040));
    let stored = connected.service.store.template(connected.account, id).await.unwrap();
    assert_eq!(stored.map(|it| it.state.version), Some(2));
}

#[tokio::test]
async fn a_create_that_waits_for_a_token_is_pending_with_its_state() {
    let connected = Connected::start().await;
    let _worker = connected.run_worker();
    let fault = json!({"call": "create", "share": 1.0, "kind": "error", "code": 190});
    connected.emulator().add_fault(&fault).await;
    let created = connected.post_order("order_shipped");
    let created = created.await.expect_success();
    assert_eq!(created["status"], "PENDING");
    assert_eq!(created["galley_upstream"], json!({"state": "held"}));
    let id = created["id"].as_str().unwrap();
    let shown = connected.call(Method::GET, &format!("/v23.0/{id}"), &Value::Null).await;
    assert_eq!(shown.expect_success()["name"], "order_shipped");
}

#[tokio::test]
async fn a_paused_connection_answers_at_once() {
    let connected = Connected::start().await;
    connected.pause().await;
    let created = connected.post_order("order_shipped");
    let created = created.await.expect_success();
    assert_eq!(created["galley_upstream"], json!({"state": "queued"}));
    assert_eq!(connected.states().await, [OperationState::Queued]);
}

/// Shorter than a request waits for the provider.
const AT_ONCE: Duration = Duration::from_secs(8);

#[tokio::test]
async fn a_connection_that_rests_answers_at_once() {
    let connected = Connected::start().await;
    let (store, now) = (&connected.service.store, connected.service.clock.now());
    let until = now + SignedDuration::from_mins(1);
    let fence = store.lease_connection(connected.account, now..until).await.unwrap().unwrap().fence;
    for _ in 0..100 {
        let call = store.take_call(fence, CallKind::Create, false, 5_000, now).await.unwrap();
        assert_eq!(call, Fenced::Done(CallPermit::Granted));
    }
    // No more creates in this hour.
    let created = timeout(AT_ONCE, connected.post_order("order_1")).await.unwrap();
    let created = created.expect_success();
    assert_eq!(created["status"], "PENDING");
    assert_eq!(created["galley_upstream"], json!({"state": "queued"}));
    // No more calls: the provider has asked for a rest.
    let rest = store.rest_calls(fence, SignedDuration::from_mins(5), now).await.unwrap();
    assert_eq!(rest, Fenced::Done(()));
    let path = format!("/v23.0/{}", created["id"].as_str().unwrap());
    let edit = json!({"components": order("order_1")["components"]});
    let edited = timeout(AT_ONCE, connected.call(Method::POST, &path, &edit)).await.unwrap();
    assert_eq!(edited.expect_success()["galley_upstream"], json!({"state": "queued"}));
}

#[tokio::test]
async fn a_request_that_waits_ends_when_the_connection_begins_to_rest() {
    let connected = Connected::start().await;
    let created = timeout(AT_ONCE, connected.post_order("order_shipped"));
    let pause = async {
        while connected.states().await.is_empty() {
            tokio::task::yield_now().await;
        }
        connected.pause().await;
    };
    let (created, ()) = tokio::join!(created, pause);
    let created = created.unwrap().expect_success();
    assert_eq!(created["galley_upstream"], json!({"state": "queued"}));
}

#[tokio::test]
async fn a_version_that_a_reviewer_has_to_approve_first_is_submitted_after_that() {
    let connected = Connected::start_with(Review::Manual, None).await;
    let _worker = connected.run_worker();
    let created = connected.post_order("order_shipped");
    let created = created.await.expect_success();
    assert_eq!(created["status"], "PENDING");
    assert_eq!(created["galley_upstream"], json!({"state": "local"}));
    assert!(connected.provided().await.is_empty());
    let id = created["id"].as_str().unwrap().parse().unwrap();
    let change = connected.change(id).await;
    let store = &connected.service.store;
    store.review_template(change, Trigger::Approve, None).await.unwrap();
    connected.step_until_settled().await;
    assert_eq!(connected.provided().await, ["order_shipped"]);
}

#[tokio::test]
async fn the_former_ids_of_a_template_resolve_and_the_present_one_is_shown() {
    let connected = Connected::start().await;
    let emulator = connected.emulator();
    let former = emulator.create_named("order_shipped").await;
    connected.sweep(true).await.unwrap();
    let (_, stored) = connected.only_template().await;
    let path = format!("{}?name=order_shipped", emulator.templates());
    emulator.call(Method::DELETE, &path, &Value::Null).await.expect_success();
    // The name is locked for 30 days.
    connected.advance(Duration::from_hours(31 * 24));
    let present = emulator.create_named("order_shipped").await;
    assert_ne!(present, former);
    connected.sweep(true).await.unwrap();
    for known in [former, present.clone(), stored.id.to_string()] {
        let shown = connected.call(Method::GET, &format!("/v23.0/{known}"), &Value::Null).await;
        let shown = shown.expect_success();
        assert_eq!((&shown["id"], &shown["name"]), (&json!(present), &json!("order_shipped")));
    }
    let list = connected.call(Method::GET, &connected.templates(), &Value::Null).await;
    let list = list.expect_success();
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, [&json!(present)]);
}

#[tokio::test]
async fn an_id_of_the_provider_that_belongs_to_no_template_is_unknown() {
    let connected = Connected::start().await;
    // No template gets the id of the account, which was created at the same time.
    connected.advance(Duration::from_secs(1));
    let own = connected.create(&order("order_shipped")).await;
    let path = format!("/v23.0/{own}");
    connected.call(Method::GET, &path, &Value::Null).await.expect_success();
    // The provider had another template with the same number.
    let document = json!({
        "id": own.to_string(), "name": "order_lost", "language": "en_US", "status": "DELETED",
        "category": "UTILITY", "components": [],
    });
    let deleted = RemoteTemplate::parse(&document.to_string()).unwrap();
    let store = &connected.service.store;
    let now = connected.service.clock.now();
    let until = now.checked_add(SignedDuration::from_mins(1)).unwrap();
    let lease = store.lease_connection(connected.account, now..until).await.unwrap().unwrap();
    let read = ReadRecord { template: deleted, asked: None, confirmed: None, seen_at: now };
    let recorded = store.record_read(lease.fence, read, now).await.unwrap();
    assert_eq!(recorded, Fenced::Done(None));
    let unknown = connected.call(Method::GET, &path, &Value::Null).await;
    unknown.expect_error(400, 100, Some(33));
}
