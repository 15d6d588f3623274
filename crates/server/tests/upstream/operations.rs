//! How the operations of a connected account reach the provider, once each, whatever is lost.

use std::time::Duration;

use axum::http::Method;
use galley_domain::{
    template::{Review, Status},
    upstream::{HeldReason, OperationState, RemoteStatus},
};
use galley_server::Clock as _;
use galley_store::ConnectionChange;
use galley_upstream::Method::{Delete, Get, Post};
use serde_json::{Value, json};

use super::{connected::Connected, provider::Loss};
use crate::{
    graph::uploads::PNG,
    sandbox::emulator::{TOKEN, order},
};

use OperationState::{Conflict, Done, Held, Queued, Refused, Unknown};

/// Longer than any backoff, and than the lease.
const LATER: Duration = Duration::from_mins(5);

/// A template whose body has this text.
fn with_text(name: &str, text: &str) -> Value {
    let mut document = order(name);
    document["components"][0]["text"] = json!(text);
    document
}

const OTHER_TEXT: &str = "Hello {{1}}, your parcel left the warehouse today.";

#[tokio::test]
async fn a_create_is_made_once_and_linked() {
    let connected = Connected::start().await;
    let id = connected.create(&order("order_shipped")).await;
    assert_eq!(connected.states().await, [Queued]);
    connected.step().await;
    assert_eq!(connected.states().await, [Done]);
    assert_eq!(connected.take_count(Post), 1);
    let (mirrored, _) = connected.only_template().await;
    assert_eq!(mirrored.template, Some(id));
    connected.step().await;
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.version, mirrored.drifted), (Some(1), false));
    assert_eq!(stored.state.status(), Status::Approved, "the provider has approved it");
    assert_eq!(
        connected.events().await,
        ["template.created", "template.submitted", "template.approved"]
    );
    connected.step().await;
    assert_eq!(connected.take_count(Post), 0);
}

#[tokio::test]
async fn a_create_whose_response_is_lost_is_adopted() {
    let connected = Connected::start().await;
    let id = connected.create(&order("order_shipped")).await;
    connected.lose(Post, Loss::Response);
    connected.step().await;
    assert_eq!(connected.states().await, [Unknown]);
    connected.service.clock.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await, [Done]);
    assert_eq!(connected.take_count(Post), 1, "it is not made again");
    assert_eq!(connected.provided().await, ["order_shipped"]);
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.template, mirrored.version), (Some(id), Some(1)));
    assert_eq!(stored.state.status(), Status::Approved);
}

#[tokio::test]
async fn a_create_that_is_lost_on_its_way_is_made_again() {
    let connected = Connected::start().await;
    connected.create(&order("order_shipped")).await;
    connected.lose(Post, Loss::Request);
    for expected in [Unknown, Queued, Done] {
        connected.step().await;
        assert_eq!(connected.states().await, [expected]);
        connected.service.clock.advance(LATER);
    }
    assert_eq!(connected.take_count(Post), 2);
    assert_eq!(connected.provided().await, ["order_shipped"]);
}

#[tokio::test]
async fn a_process_that_dies_during_a_call_leaves_it_to_be_probed() {
    let connected = Connected::start().await;
    connected.create(&order("order_shipped")).await;
    connected.lose(Post, Loss::NoEnd);
    connected.kill_step().await;
    assert_eq!(connected.states().await, [OperationState::Sending]);
    connected.step().await;
    assert_eq!(connected.states().await, [OperationState::Sending], "the lease lasts");
    connected.service.clock.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await, [Done]);
    assert_eq!(connected.take_count(Post), 1);
    assert_eq!(connected.provided().await, ["order_shipped"]);
}

#[tokio::test]
async fn another_template_in_the_place_is_a_conflict_and_stays_as_it_is() {
    let connected = Connected::start().await;
    let other = with_text("order_shipped", OTHER_TEXT);
    let other = connected.emulator().create(&other).await.expect_success();
    let id = connected.create(&order("order_shipped")).await;
    for _ in 0..3 {
        connected.step().await;
        connected.service.clock.advance(LATER);
    }
    assert_eq!(connected.states().await, [Conflict]);
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!(
        (mirrored.id.as_str(), mirrored.template),
        (other["id"].as_str().unwrap(), Some(id))
    );
    assert!(mirrored.drifted);
    assert!(!stored.template.content().contains("warehouse"));
    assert_eq!(connected.provided_text(&mirrored.id).await, OTHER_TEXT);
    // The provider approves its own content, which is not the one here.
    connected.advance(Duration::from_hours(24));
    connected.sweep(true).await.unwrap();
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!(mirrored.status, RemoteStatus::Approved);
    assert_eq!(stored.state.newest_status, Status::Pending);
    assert!(!connected.events().await.contains(&"template.approved"));
}

#[tokio::test]
async fn a_sweep_that_finds_another_template_in_the_place_first_makes_it_a_conflict_too() {
    let connected = Connected::start().await;
    let other = with_text("order_shipped", OTHER_TEXT);
    connected.emulator().create(&other).await.expect_success();
    connected.create(&order("order_shipped")).await;
    // A page is recorded before the operations are made.
    connected.sweep(true).await.unwrap();
    for _ in 0..3 {
        connected.service.clock.advance(LATER);
        connected.step().await;
    }
    assert_eq!(connected.states().await, [Conflict]);
    let (mirrored, _) = connected.only_template().await;
    assert_eq!(connected.provided_text(&mirrored.id).await, OTHER_TEXT);
}

#[tokio::test]
async fn an_edit_is_made_once_even_if_its_response_is_lost() {
    let connected = Connected::start().await;
    let id = connected.create(&order("order_shipped")).await;
    connected.step().await;
    connected.step().await;
    connected.take_count(Post);
    connected.edit(id, &with_text("order_shipped", OTHER_TEXT)).await;
    connected.lose(Post, Loss::Response);
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Unknown]);
    connected.service.clock.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Done]);
    assert_eq!(connected.take_count(Post), 1);
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.version, mirrored.drifted), (Some(2), false));
    assert_eq!((stored.state.status(), stored.state.approved_version), (Status::Approved, Some(2)));
    assert_eq!(connected.provided_text(&mirrored.id).await, OTHER_TEXT);
}

#[tokio::test]
async fn content_that_the_provider_has_is_not_sent() {
    let connected = Connected::start().await;
    let id = connected.create(&order("order_shipped")).await;
    connected.step().await;
    connected.step().await;
    connected.take_count(Post);
    // The mirror still shows the first text when the third version restores it.
    connected.edit(id, &with_text("order_shipped", OTHER_TEXT)).await;
    connected.step().await;
    connected.edit(id, &order("order_shipped")).await;
    connected.step().await;
    connected.step().await;
    assert_eq!(connected.take_count(Post), 2, "the third version is not what the provider has");
    connected.edit(id, &order("order_shipped")).await;
    connected.step().await;
    connected.step().await;
    assert_eq!(connected.take_count(Post), 0);
    assert!(connected.states().await.iter().all(|it| *it == Done));
    let (mirrored, stored) = connected.only_template().await;
    assert!(!mirrored.drifted);
    assert_eq!((stored.state.version, stored.state.status()), (4, Status::Approved));
}

#[tokio::test]
async fn a_delete_is_confirmed_by_a_read_if_its_response_is_lost() {
    let connected = Connected::start().await;
    let id = connected.create(&order("order_shipped")).await;
    connected.step().await;
    connected.step().await;
    connected.delete(id).await;
    connected.lose(Delete, Loss::Response);
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Unknown]);
    connected.service.clock.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await, [Done, Done]);
    assert_eq!(connected.take_count(Delete), 1);
    assert!(connected.provided().await.is_empty());
    assert!(connected.mirrored().await.iter().all(|it| it.gone_at.is_some()));
}

#[tokio::test]
async fn a_template_that_is_deleted_before_its_create_is_known_leaves_nothing_behind() {
    for loss in [Loss::Response, Loss::Request] {
        let connected = Connected::start().await;
        let id = connected.create(&order("order_shipped")).await;
        connected.lose(Post, loss);
        connected.step().await;
        connected.delete(id).await;
        // Nor does a new template with the name overtake the delete.
        let other = connected.create(&with_text("order_shipped", OTHER_TEXT)).await;
        for _ in 0..5 {
            connected.service.clock.advance(LATER);
            connected.step().await;
        }
        let states = connected.states().await;
        let operations = connected.operations().await;
        let created = operations.iter().find(|it| it.template == other).unwrap();
        let is_over = |it: &OperationState| it.is_settled() || matches!(it, Held(_));
        assert!(states.iter().all(is_over), "{loss:?}: {states:?}");
        match created.operation.state {
            Done => assert_eq!(connected.provided().await, ["order_shipped"]),
            // The name of a deleted template is locked at Meta.
            Held(HeldReason::NameLock) => assert!(connected.provided().await.is_empty()),
            other => panic!("{loss:?}: {other:?}"),
        }
        let templates = connected.emulator().store.template(connected.account, id).await.unwrap();
        assert!(templates.is_none());
    }
}

#[tokio::test]
async fn a_refused_operation_keeps_the_error_of_the_provider() {
    let connected = Connected::start().await;
    let fault = json!({"call": "create", "times": 1, "kind": "error", "code": 2_388_040});
    connected.emulator().add_fault(&fault).await;
    connected.create(&order("order_shipped")).await;
    connected.step().await;
    assert_eq!(connected.states().await, [Refused]);
    let error = connected.operations().await.remove(0).operation.error.unwrap();
    assert_eq!((error.code, error.subcode), (100, Some(2_388_040)));
    assert_eq!(error.title.as_deref(), Some("Text too long"));
    assert!(connected.events().await.contains(&"template.upstream_refused"));
    connected.service.clock.advance(LATER);
    connected.take_calls();
    assert!(!connected.has_work().await);
}

#[tokio::test]
async fn a_new_token_continues_a_probe_that_the_former_one_could_not_make() {
    let connected = Connected::start().await;
    connected.step().await;
    connected.create(&order("order_shipped")).await;
    connected.lose(Post, Loss::Response);
    connected.try_step().await;
    assert_eq!(connected.states().await, [Unknown]);
    let fault = json!({"times": 1, "kind": "error", "code": 190, "call": "list"});
    connected.emulator().add_fault(&fault).await;
    connected.advance(Duration::from_secs(2));
    connected.try_step().await;
    assert_eq!(connected.states().await, [Unknown]);
    connected.advance(Duration::from_mins(1));
    assert!(!connected.has_work().await, "no call is made before the token is replaced");
    let by = galley_store::Author::operator(connected.service.clock.now());
    let change = ConnectionChange::Token(connected.sealed(TOKEN), None);
    connected.service.store.change_connection(connected.account, change, by).await.unwrap();
    assert!(connected.has_work().await);
    connected.step().await;
    assert_eq!(connected.states().await, [Done]);
    assert_eq!(connected.take_count(Post), 1);
}

#[tokio::test]
async fn operations_that_a_token_held_continue_after_another_failure_and_a_success() {
    let connected = Connected::start().await;
    let fault = json!({"times": 1, "kind": "error", "code": 190, "call": "create"});
    connected.emulator().add_fault(&fault).await;
    connected.create(&order("order_shipped")).await;
    connected.try_step().await;
    assert_eq!(connected.states().await, [Held(HeldReason::Credentials)]);
    connected.lose(Get, Loss::NotSent);
    for _ in 0..60 {
        if connected.has_work().await {
            connected.try_step().await;
        }
        connected.advance(Duration::from_mins(1));
    }
    assert_eq!(connected.states().await, [Done]);
}

/// Works for so many minutes. Returns the number of exchanges with POST in each of them.
async fn posts(connected: &Connected, minutes: usize) -> Vec<usize> {
    let mut posts = Vec::new();
    for _ in 0..minutes {
        while connected.has_work().await {
            connected.try_step().await;
        }
        posts.push(connected.take_count(Post));
        connected.advance(Duration::from_mins(1));
    }
    posts
}

#[tokio::test]
async fn at_most_one_hundred_templates_are_created_in_any_hour() {
    let connected = Connected::start().await;
    for number in 0..300 {
        connected.create(&order(&format!("order_{number}"))).await;
    }
    let posts = posts(&connected, 250).await;
    assert_eq!(posts.iter().sum::<usize>(), 300);
    let busiest = posts.windows(60).map(|hour| hour.iter().sum::<usize>()).max();
    assert_eq!(busiest, Some(100));
    assert!(connected.states().await.iter().all(|it| *it == Done));
}

#[tokio::test]
async fn a_provider_that_throttles_gets_one_call_in_each_rest() {
    let connected = Connected::start().await;
    for number in 0..20 {
        connected.create(&order(&format!("order_{number}"))).await;
    }
    let fault = json!({"call": "create", "share": 1.0, "kind": "error", "code": 80_008});
    connected.emulator().add_fault(&fault).await;
    // A rest of five minutes: the error does not tell how long it lasts.
    let throttled = posts(&connected, 30).await;
    assert!(throttled.iter().all(|posts| *posts <= 1), "{throttled:?}");
    assert_eq!(throttled.iter().sum::<usize>(), 6, "{throttled:?}");
    connected.clear_faults().await;
    assert_eq!(posts(&connected, 10).await.iter().sum::<usize>(), 20);
    assert!(connected.states().await.iter().all(|it| *it == Done));
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_not_called_for_each_operation() {
    let connected = Connected::start().await;
    for number in 0..20 {
        connected.create(&order(&format!("order_{number}"))).await;
        connected.lose(Post, Loss::NotSent);
    }
    connected.try_step().await;
    assert_eq!(connected.take_count(Post), 1);
    assert!(!connected.has_work().await, "the connection rests");
}

/// A template with a picture that was uploaded to the connected account.
pub(super) async fn with_picture(connected: &Connected) -> Value {
    let path =
        format!("/v23.0/1/uploads?file_name=a.png&file_length={}&file_type=image/png", PNG.len());
    let begun = connected.call(Method::POST, &path, &Value::Null).await.expect_success();
    let sent = connected.upload(begun["id"].as_str().unwrap(), PNG).await.expect_success();
    let mut document = order("order_shipped");
    let header =
        json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [sent["h"]]}});
    document["components"].as_array_mut().unwrap().insert(0, header);
    document
}

#[tokio::test]
async fn a_sample_is_uploaded_to_the_provider_at_submission() {
    let connected = Connected::start_with(Review::Auto, Some("634974688087057")).await;
    let document = with_picture(&connected).await;
    connected.create(&document).await;
    connected.step().await;
    assert_eq!(connected.states().await, [Done]);
    let list = format!("{}?fields=components", connected.emulator().templates());
    let list = connected.emulator().get(&list).await.expect_success();
    let handle = &list["data"][0]["components"][0]["example"]["header_handle"][0];
    let handle = handle.as_str().unwrap();
    assert!(handle.starts_with("https://galley.test/media/"), "{handle}");
    connected.step().await;
    let (mirrored, _) = connected.only_template().await;
    assert!(!mirrored.drifted, "a sample is shown in another form");
    assert!(connected.take_count(Get) > 0);
}

#[tokio::test]
async fn a_sample_without_an_app_is_refused_with_the_option_that_names_one() {
    let connected = Connected::start().await;
    let document = with_picture(&connected).await;
    connected.create(&document).await;
    connected.step().await;
    assert_eq!(connected.states().await, [Refused]);
    let error = connected.operations().await.remove(0).operation.error.unwrap();
    assert!(error.message.contains("--app-id"), "{error}");
    assert_eq!(connected.take_count(Post), 0);
}
