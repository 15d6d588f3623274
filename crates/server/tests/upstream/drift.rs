//! Content that was changed at the provider: no edit replaces it unless a person decides so.

use std::time::Duration;

use axum::http::Method;
use galley_domain::{
    id::TemplateId,
    template::Status,
    upstream::{HeldReason, OperationState, RemoteId, operation::changed_outside},
};
use galley_server::Clock as _;
use galley_store::{UpstreamAction, UpstreamActionOutcome, testing::Fault};
use galley_upstream::Method::{Get, Post};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    connected::{Connected, SHOP},
    provider::Loss,
};
use crate::sandbox::emulator::order;

use OperationState::{Conflict, Done, Held, Queued, Superseded};

const THEIRS: &str = "Hello {{1}}, your parcel left the warehouse today.";
const THEIRS_AGAIN: &str = "Dear {{1}}, the courier will ring at your door soon.";
const OURS: &str = "Hi {{1}}, we have sent your order, it arrives soon.";

/// Longer than a look at a template is believed, and than the lease.
const LATER: Duration = Duration::from_mins(5);

fn with_text(text: &str) -> Value {
    let mut document = order("order_shipped");
    document["components"][0]["text"] = json!(text);
    document
}

/// A template that both sides have.
async fn shared() -> (Connected, TemplateId, RemoteId) {
    let connected = Connected::start().await;
    let id = connected.create(&order("order_shipped")).await;
    connected.step().await;
    connected.advance(Duration::from_secs(2));
    connected.step().await;
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.drifted, stored.state.status()), (false, Status::Approved));
    connected.take_count(Post);
    (connected, id, mirrored.id)
}

/// Edits the template at the provider.
async fn edit_outside(connected: &Connected, id: &RemoteId, text: &str) {
    let edit = json!({"components": with_text(text)["components"]});
    let path = format!("/v23.0/{id}");
    connected.emulator().call(Method::POST, &path, &edit).await.expect_success();
    connected.advance(LATER);
}

async fn act(connected: &Connected, id: TemplateId, action: UpstreamAction) {
    let change = connected.change(id).await;
    let outcome = connected.service.store.act_upstream(change, action).await.unwrap();
    let is_done =
        matches!(outcome, UpstreamActionOutcome::Queued(_) | UpstreamActionOutcome::Changed(_));
    assert!(is_done, "{action:?}: {outcome:?}");
}

#[tokio::test]
async fn an_edit_does_not_replace_content_that_was_changed_outside_until_it_is_pushed() {
    let (connected, id, remote) = shared().await;
    edit_outside(&connected, &remote, THEIRS).await;
    connected.edit(id, &with_text(OURS)).await;
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Conflict]);
    assert_eq!(connected.take_count(Post), 0, "no call is made");
    assert_eq!(connected.provided_text(&remote).await, THEIRS);
    let (mirrored, stored) = connected.only_template().await;
    assert!(mirrored.drifted);
    assert!(stored.template.content().contains("arrives soon"), "the own version is kept");
    let conflict = connected.operations().await.remove(1).operation;
    assert_eq!((conflict.error, conflict.attempts), (Some(changed_outside()), 0));
    assert!(connected.events().await.contains(&"template.drifted"));

    act(&connected, id, UpstreamAction::Retry).await;
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Conflict], "it still differs");

    act(&connected, id, UpstreamAction::Push).await;
    assert_eq!(connected.states().await, [Done, Superseded, Queued]);
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Superseded, Done]);
    assert_eq!(connected.provided_text(&remote).await, OURS);
    connected.advance(LATER);
    connected.step().await;
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.drifted, mirrored.version), (false, Some(2)));
    assert_eq!(stored.state.live_version(), Some(2));
}

#[tokio::test]
async fn an_edit_that_was_throttled_does_not_replace_content_that_was_changed_meanwhile() {
    let (connected, id, remote) = shared().await;
    connected.advance(LATER);
    connected.edit(id, &with_text(OURS)).await;
    let throttled = json!({"call": "edit", "times": 1, "kind": "error", "code": 80_008});
    connected.emulator().add_fault(&throttled).await;
    connected.try_step().await;
    assert_eq!(connected.states().await, [Done, Held(HeldReason::Throttle)]);
    assert_eq!(connected.take_count(Post), 1, "the template was looked at, and the edit refused");
    edit_outside(&connected, &remote, THEIRS).await;
    connected.advance(Duration::from_hours(24));
    connected.try_step().await;
    assert_eq!(connected.states().await, [Done, Conflict]);
    assert_eq!(connected.take_count(Post), 0, "no call is made");
    assert_eq!(connected.provided_text(&remote).await, THEIRS);
}

#[tokio::test]
async fn a_push_replaces_only_the_content_that_was_seen() {
    let (connected, id, remote) = shared().await;
    edit_outside(&connected, &remote, THEIRS).await;
    connected.sweep(true).await.unwrap();
    act(&connected, id, UpstreamAction::Push).await;
    edit_outside(&connected, &remote, THEIRS_AGAIN).await;
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Conflict]);
    assert_eq!(connected.take_count(Post), 0);
    assert_eq!(connected.provided_text(&remote).await, THEIRS_AGAIN);
    act(&connected, id, UpstreamAction::Push).await;
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Superseded, Done]);
    assert_eq!(connected.provided_text(&remote).await, order("")["components"][0]["text"]);
}

#[tokio::test]
async fn a_push_whose_response_is_lost_is_made_once() {
    for (loss, posts) in [(Loss::Response, 1), (Loss::Request, 2)] {
        let (connected, id, remote) = shared().await;
        edit_outside(&connected, &remote, THEIRS).await;
        connected.sweep(true).await.unwrap();
        act(&connected, id, UpstreamAction::Push).await;
        connected.lose(Post, loss);
        for _ in 0..3 {
            connected.try_step().await;
            connected.advance(LATER);
        }
        assert_eq!(connected.states().await, [Done, Done], "{loss:?}");
        assert_eq!(connected.take_count(Post), posts, "{loss:?}");
        assert_eq!(connected.provided_text(&remote).await, order("")["components"][0]["text"]);
    }
}

#[tokio::test]
async fn accepted_content_ends_the_conflict_and_the_next_edit_is_sent() {
    let (connected, id, remote) = shared().await;
    edit_outside(&connected, &remote, THEIRS).await;
    connected.edit(id, &with_text(OURS)).await;
    connected.step().await;
    act(&connected, id, UpstreamAction::Accept).await;
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.drifted, stored.state.live_version()), (false, Some(3)));
    assert_eq!(connected.states().await, [Done, Superseded]);
    connected.edit(id, &with_text(OURS)).await;
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Superseded, Done]);
    assert_eq!(connected.provided_text(&remote).await, OURS);
}

#[tokio::test]
async fn a_process_that_dies_before_the_conflict_is_stored_leaves_the_content_as_it_is() {
    for fault in [Fault::Hangs, Fault::Held] {
        let (connected, id, remote) = shared().await;
        edit_outside(&connected, &remote, THEIRS).await;
        connected.edit(id, &with_text(OURS)).await;
        let faults = &connected.store_faults;
        faults.set("record_conflict", fault);
        tokio::select! {
            biased;
            () = faults.hanging(1) => {}
            () = faults.held() => {}
            () = connected.try_step() => panic!("the conflict is recorded"),
        }
        faults.clear();
        connected.advance(LATER);
        connected.step().await;
        assert_eq!(connected.states().await, [Done, Conflict]);
        assert_eq!(connected.take_count(Post), 0);
        assert_eq!(connected.provided_text(&remote).await, THEIRS);
    }
}

#[tokio::test]
async fn an_edit_whose_look_at_the_template_fails_waits_and_is_made_later() {
    let (connected, id, remote) = shared().await;
    connected.advance(LATER);
    connected.edit(id, &with_text(OURS)).await;
    connected.lose(Get, Loss::Request);
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Queued]);
    assert_eq!(connected.take_count(Post), 0);
    connected.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Done]);
    assert_eq!(connected.provided_text(&remote).await, OURS);
}

#[tokio::test]
async fn an_edit_of_drifted_content_on_the_graph_surface_says_who_changed_it() {
    let (connected, _, remote) = shared().await;
    edit_outside(&connected, &remote, THEIRS).await;
    let _worker = connected.run_worker();
    let edit = json!({"components": with_text(OURS)["components"]});
    let path = format!("/v23.0/{remote}");
    let refused = connected.call(Method::POST, &path, &edit).await;
    let error = refused.expect_error(400, 100, None);
    assert_eq!(error["galley_problem"], "upstream-action-not-possible");
    let message = error["error_user_msg"].as_str().unwrap();
    assert!(message.contains("was changed at the provider"), "{message}");
    assert_eq!(connected.provided_text(&remote).await, THEIRS);
}

/// Why the template does not render.
async fn not_live(connected: &Connected, id: TemplateId) -> String {
    let path = format!("/api/v1.0/15550001111/{SHOP}/message_templates/{id}/render");
    let response = connected.call(Method::POST, &path, &json!({"body": ["Ada"]})).await;
    response.problem(409, "not-live")["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_template_without_a_live_version_says_what_the_provider_has_to_do_with_it() {
    let (connected, id, remote) = shared().await;
    edit_outside(&connected, &remote, THEIRS).await;
    connected.sweep(true).await.unwrap();
    let (mirrored, stored) = connected.only_template().await;
    assert!(mirrored.drifted && stored.state.live_version().is_none());
    let detail = not_live(&connected, id).await;
    assert!(detail.contains("changed at the provider. Accept that content, or push"), "{detail}");
    act(&connected, id, UpstreamAction::Push).await;
    let detail = not_live(&connected, id).await;
    assert!(detail.contains("is being submitted to the provider"), "{detail}");
}

#[tokio::test]
async fn an_edit_that_the_provider_reviews_takes_the_live_version_away() {
    let (connected, id, _) = shared().await;
    connected.edit(id, &with_text(OURS)).await;
    let (_, stored) = connected.only_template().await;
    assert_eq!(stored.state.live_version(), Some(1), "the provider has not got it");
    // The emulator approves at once.
    connected.rewrite(|_, body| {
        if body.get("status").is_some() {
            body["status"] = json!("PENDING");
        }
        let list = body.get_mut("data").and_then(Value::as_array_mut);
        for template in list.into_iter().flatten() {
            template["status"] = json!("PENDING");
        }
    });
    connected.step().await;
    connected.advance(LATER);
    connected.sweep(true).await.unwrap();
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.status.as_str(), stored.state.live_version()), ("PENDING", None));
    let detail = not_live(&connected, id).await;
    assert!(detail.contains("PENDING") && detail.contains("has not approved"), "{detail}");
}

#[tokio::test]
async fn an_edit_in_the_second_of_the_import_is_found_although_the_clocks_differ() {
    let second = SignedDuration::from_secs(1);
    for ahead in [-1_500, -500, 0, 500, 1_500] {
        let connected = Connected::start().await;
        // The provider's clock is 0.6 s after a full second; the other one is so much ahead of it.
        let now = connected.emulator().clock.now();
        let full = Timestamp::from_second(now.as_second() + 10).unwrap();
        let imported_at = full + SignedDuration::from_millis(600);
        connected.emulator().clock.advance_to(imported_at);
        let remote = connected.emulator().create_named("order_shipped").await;
        let offset = SignedDuration::from_millis(ahead);
        connected.service.clock.advance_to(imported_at + offset);
        connected.step().await;
        connected.advance(Duration::from_millis(200));
        let edit = json!({"components": with_text(THEIRS)["components"]});
        let path = format!("/v23.0/{remote}");
        connected.emulator().call(Method::POST, &path, &edit).await.expect_success();
        connected.take_calls();
        assert!(!connected.has_work().await, "{ahead}");
        while connected.emulator().clock.now() < full + second {
            assert!(!connected.has_work().await, "{ahead}: the second is not over");
            connected.advance(Duration::from_millis(100));
        }
        for _ in 0..10 {
            connected.step().await;
            connected.advance(Duration::from_secs(1));
        }
        assert_eq!(connected.take_calls(), 1, "{ahead}: one more look");
        let (mirrored, stored) = connected.only_template().await;
        assert!(mirrored.drifted && stored.state.live_version().is_none(), "{ahead}");
        act(&connected, stored.id, UpstreamAction::Accept).await;
        let (mirrored, stored) = connected.only_template().await;
        assert_eq!((mirrored.drifted, stored.state.live_version()), (false, Some(2)));
    }
}
