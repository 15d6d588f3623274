//! Templates of a connected account are put aside and taken back by the provider.

use std::time::Duration;

use axum::http::Method;
use galley_domain::{
    id::TemplateId,
    template::Status,
    upstream::{HeldReason, OperationKind, OperationState},
};
use galley_store::{DegradedReason, UpstreamAction, UpstreamActionOutcome};
use galley_upstream::Method::{Get, Post};
use serde_json::{Value, json};

use super::{connected::Connected, provider::Loss};
use crate::sandbox::emulator::order;

use OperationState::{Done, Held, Queued, Refused, Unknown};

/// Longer than any backoff, and than the lease.
const LATER: Duration = Duration::from_mins(5);

/// A template that the provider has approved.
async fn approved(connected: &Connected) -> TemplateId {
    let id = connected.create(&order("order_shipped")).await;
    connected.step().await;
    connected.step().await;
    assert_eq!(connected.only_template().await.1.state.status(), Status::Approved);
    connected.take_count(Post);
    id
}

async fn act(connected: &Connected, id: TemplateId, action: UpstreamAction) {
    let change = connected.change(id).await;
    let outcome = connected.service.store.act_upstream(change, action).await.unwrap();
    assert!(matches!(outcome, UpstreamActionOutcome::Queued(_)), "{outcome:?}");
}

/// The status at the provider, and here.
async fn statuses(connected: &Connected) -> (String, Status) {
    let (mirrored, stored) = connected.only_template().await;
    (connected.provided_status(&mirrored.id).await, stored.state.status())
}

/// The state of the newest operation.
async fn state(connected: &Connected) -> OperationState {
    *connected.states().await.last().unwrap()
}

/// A call of a client.
async fn call(connected: &Connected, edge: &str, ids: &Value) -> Value {
    let path = format!("/{}/message_templates/{edge}", connected.account);
    connected.call(Method::POST, &path, &json!({"hsm_ids": ids})).await.expect_success()
}

#[tokio::test]
async fn clients_archive_and_unarchive_at_the_provider_with_either_id() {
    let connected = Connected::start().await;
    let _worker = connected.run_worker();
    let created = connected.post_order("order_shipped").await.expect_success();
    let remote = created["id"].as_str().unwrap();
    let own = connected.only_template().await.1.id.to_string();
    connected.take_count(Post);
    let archived = call(&connected, "archive", &json!([remote, own, "17"])).await;
    assert_eq!(archived["archived_templates"], json!([remote, own]));
    let failed = archived["failed_templates"].as_object().unwrap();
    assert_eq!(failed.keys().collect::<Vec<_>>(), ["17"], "{archived}");
    assert_eq!(statuses(&connected).await, ("ARCHIVED".to_owned(), Status::Archived));
    assert_eq!(connected.take_count(Post), 1, "both ids are of one template");
    let shown = connected.call(Method::GET, &format!("/v23.0/{remote}"), &Value::Null).await;
    assert_eq!(shown.expect_success()["status"], "ARCHIVED");
    let back = call(&connected, "unarchive", &json!(remote)).await;
    assert_eq!(back, json!({"unarchived_templates": [remote], "failed_templates": {}}));
    assert_eq!(statuses(&connected).await, ("APPROVED".to_owned(), Status::Approved));
    let events = connected.events().await;
    assert_eq!(events[events.len() - 2..], ["template.archived", "template.unarchived"]);
}

#[tokio::test]
async fn a_template_that_is_archived_already_needs_no_call() {
    let connected = Connected::start().await;
    let id = approved(&connected).await;
    act(&connected, id, UpstreamAction::Archive).await;
    connected.step().await;
    assert_eq!(statuses(&connected).await, ("ARCHIVED".to_owned(), Status::Archived));
    act(&connected, id, UpstreamAction::Archive).await;
    connected.step().await;
    assert_eq!((state(&connected).await, connected.take_count(Post)), (Done, 1));
    // The mirror does not know yet that it was taken back there.
    let (mirrored, _) = connected.only_template().await;
    let path = format!("{}/unarchive", connected.emulator().templates());
    let ids = json!({"hsm_ids": [mirrored.id.as_str()]});
    connected.emulator().call(Method::POST, &path, &ids).await.expect_success();
    act(&connected, id, UpstreamAction::Archive).await;
    connected.step().await;
    assert_eq!((state(&connected).await, connected.take_count(Post)), (Done, 1));
    assert_eq!(statuses(&connected).await, ("ARCHIVED".to_owned(), Status::Archived));
}

#[tokio::test]
async fn a_lost_response_is_followed_by_a_look_and_no_second_call() {
    let connected = Connected::start().await;
    let id = approved(&connected).await;
    for (action, expected) in [
        (UpstreamAction::Archive, ("ARCHIVED".to_owned(), Status::Archived)),
        (UpstreamAction::Unarchive, ("APPROVED".to_owned(), Status::Approved)),
    ] {
        connected.lose(Post, Loss::Response);
        act(&connected, id, action).await;
        connected.step().await;
        assert_eq!(state(&connected).await, Unknown);
        connected.service.clock.advance(LATER);
        connected.step().await;
        assert_eq!(state(&connected).await, Done);
        assert_eq!(connected.take_count(Post), 1, "it is not made again");
        assert_eq!(statuses(&connected).await, expected);
    }
    let events = connected.provider_events().await;
    let archived = events.iter().filter(|it| **it == "template.archived").count();
    assert_eq!(archived, 1, "{events:?}");
}

#[tokio::test]
async fn a_lost_request_is_made_again_after_a_look() {
    let connected = Connected::start().await;
    let id = approved(&connected).await;
    connected.lose(Post, Loss::Request);
    act(&connected, id, UpstreamAction::Archive).await;
    for expected in [Unknown, Queued, Done] {
        connected.step().await;
        assert_eq!(state(&connected).await, expected);
        connected.service.clock.advance(LATER);
    }
    assert_eq!(connected.take_count(Post), 2);
    assert_eq!(statuses(&connected).await, ("ARCHIVED".to_owned(), Status::Archived));
}

#[tokio::test]
async fn a_process_that_dies_during_the_call_leaves_it_to_be_probed() {
    let connected = Connected::start().await;
    let id = approved(&connected).await;
    act(&connected, id, UpstreamAction::Archive).await;
    connected.lose(Post, Loss::NoEnd);
    connected.kill_step().await;
    assert_eq!(state(&connected).await, OperationState::Sending);
    connected.service.clock.advance(LATER);
    connected.step().await;
    assert_eq!((state(&connected).await, connected.take_count(Post)), (Done, 1));
    assert_eq!(statuses(&connected).await, ("ARCHIVED".to_owned(), Status::Archived));
}

#[tokio::test]
async fn a_status_that_is_lost_after_the_call_is_read_later() {
    let connected = Connected::start().await;
    let id = approved(&connected).await;
    act(&connected, id, UpstreamAction::Archive).await;
    connected.lose(Get, Loss::NotSent);
    connected.try_step().await;
    assert_eq!(state(&connected).await, Done);
    assert_eq!(statuses(&connected).await, ("ARCHIVED".to_owned(), Status::Approved));
    connected.service.clock.advance(LATER);
    connected.step().await;
    assert_eq!(statuses(&connected).await, ("ARCHIVED".to_owned(), Status::Archived));
    assert_eq!(connected.take_count(Post), 1);
}

#[tokio::test]
async fn a_template_that_the_provider_reviews_is_refused_with_its_reason() {
    let connected = Connected::start().await;
    let _worker = connected.run_worker();
    let created = connected.post_order("order_pending_10m").await.expect_success();
    let id = created["id"].as_str().unwrap();
    let refused = call(&connected, "archive", &json!([id])).await;
    assert_eq!(refused["archived_templates"], json!([]));
    let reason = refused["failed_templates"][id].as_str().unwrap();
    assert!(reason.contains("PENDING, which does not allow `archive`"), "{reason}");
    assert_eq!(state(&connected).await, Refused);
    let events = connected.events().await;
    assert_eq!(events.last(), Some(&"template.upstream_refused"));
}

#[tokio::test]
async fn a_request_that_does_not_wait_says_that_the_provider_has_not_answered() {
    let connected = Connected::start().await;
    let id = approved(&connected).await.to_string();
    connected.pause().await;
    let pending = call(&connected, "archive", &json!([id])).await;
    let reason = pending["failed_templates"][&id].as_str().unwrap();
    assert!(reason.contains("has not answered yet") && reason.contains("`queued`"), "{reason}");
    assert_eq!(state(&connected).await, Queued);
}

#[tokio::test]
async fn a_response_that_does_not_name_the_template_is_followed_by_a_look() {
    let connected = Connected::start().await;
    let id = approved(&connected).await;
    connected.rewrite(|path, body| {
        if path.ends_with("/archive") {
            *body = json!({"archived_templates": [], "failed_templates": {}});
        }
    });
    act(&connected, id, UpstreamAction::Archive).await;
    connected.step().await;
    assert_eq!(state(&connected).await, Unknown, "the response says nothing of the template");
    connected.service.clock.advance(LATER);
    connected.step().await;
    assert_eq!(state(&connected).await, Done, "the read tells");
}

#[tokio::test]
async fn a_deleted_template_is_not_archived_any_more() {
    let connected = Connected::start().await;
    let id = approved(&connected).await;
    act(&connected, id, UpstreamAction::Archive).await;
    connected.lose(Post, Loss::Request);
    connected.step().await;
    assert_eq!(state(&connected).await, Unknown);
    connected.delete(id).await;
    for _ in 0..4 {
        connected.service.clock.advance(LATER);
        connected.step().await;
    }
    let operations = connected.operations().await;
    let ended = |kind| operations.iter().find(|it| it.operation.kind == kind).unwrap();
    assert_eq!(ended(OperationKind::Archive).operation.state, Done);
    assert_eq!(ended(OperationKind::Delete).operation.state, Done);
    assert_eq!(connected.take_count(Post), 1, "it was made once, and lost");
    assert!(connected.provided().await.is_empty());
}

#[tokio::test]
async fn an_edit_before_the_archive_is_made_too() {
    let connected = Connected::start().await;
    let id = approved(&connected).await;
    let mut other = order("order_shipped");
    other["components"][0]["text"] = json!("Hello {{1}}, your parcel left the warehouse today.");
    connected.edit(id, &other).await;
    act(&connected, id, UpstreamAction::Archive).await;
    connected.step_until_settled().await;
    assert!(connected.states().await.iter().all(|it| *it == Done));
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!(connected.provided_text(&mirrored.id).await, other["components"][0]["text"]);
    assert_eq!((stored.state.status(), mirrored.drifted), (Status::Archived, false));
}

/// Archives a template at a provider that does not know the address of the call. Returns the state of
/// the operation, and why the connection is degraded.
async fn archive_unknown(connected: &Connected) -> (OperationState, Option<DegradedReason>) {
    connected.rewrite(|path, body| {
        if path.ends_with("/archive") {
            *body = json!({"error": {"code": 100, "error_subcode": 33, "message": "Unknown"}});
        }
    });
    let [template] = &connected.mirrored().await[..] else { panic!("there is not one template") };
    act(connected, template.template.unwrap(), UpstreamAction::Archive).await;
    connected.try_step().await;
    let connection = connected.service.store.connection(connected.account).await.unwrap().unwrap();
    (state(connected).await, connection.degraded.map(|it| it.reason))
}

#[tokio::test]
async fn a_provider_without_the_call_refuses_it_if_the_account_can_be_read() {
    let connected = Connected::start().await;
    approved(&connected).await;
    assert_eq!(archive_unknown(&connected).await, (Refused, None));
    let error = connected.operations().await.pop().unwrap().operation.error.unwrap();
    assert_eq!((error.code, error.subcode), (100, Some(33)));
}

#[tokio::test]
async fn a_call_about_an_account_that_cannot_be_read_is_held() {
    for code in [33, 190] {
        let connected = Connected::start().await;
        approved(&connected).await;
        let fault = json!({"call": "list", "times": 1, "kind": "error", "code": code});
        connected.emulator().add_fault(&fault).await;
        let held = (Held(HeldReason::Credentials), Some(DegradedReason::Credentials));
        assert_eq!(archive_unknown(&connected).await, held, "{code}");
        connected.take_count(Post);
        connected.advance(Duration::from_mins(15));
        connected.step().await;
        assert_eq!(connected.take_count(Post), 1, "it is made again when the account can be read");
    }
}
