//! Edits of what a provider does not show, or of what looks like that: they are sent, and no version is
//! live before the provider has approved it.

use std::time::Duration;

use galley_domain::{
    id::TemplateId,
    template::Status,
    upstream::{OperationState, RemoteId},
};
use galley_store::{UpstreamAction, UpstreamActionOutcome};
use galley_upstream::Method::Post;
use serde_json::{Value, json};

use super::{connected::Connected, provider::Loss};

use OperationState::{Conflict, Done, Superseded, Unknown};

/// Longer than a look at a template is believed, and than the lease.
const LATER: Duration = Duration::from_mins(5);

/// A template that both sides have, and that the provider has approved.
async fn approved(document: &Value) -> (Connected, TemplateId, RemoteId) {
    let connected = Connected::start().await;
    let id = connected.create(document).await;
    connected.step().await;
    connected.advance(LATER);
    connected.step().await;
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.version, mirrored.drifted), (Some(1), false));
    assert_eq!((stored.state.status(), stored.state.live_version()), (Status::Approved, Some(1)));
    connected.take_count(Post);
    (connected, id, mirrored.id)
}

/// Edits the template, and expects that the edit is sent, and that no sweep before takes the new version
/// for the one that the provider has approved.
async fn edit_is_sent(connected: &Connected, id: TemplateId, edited: &Value) {
    connected.edit(id, edited).await;
    connected.sweep(true).await.unwrap();
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!(stored.state.version, 2);
    assert_eq!(
        (stored.state.newest_status, stored.state.live_version()),
        (Status::Pending, Some(1))
    );
    assert_eq!((mirrored.version, mirrored.drifted), (Some(1), false));
    connected.step().await;
    assert_eq!(connected.take_count(Post), 1, "the edit is sent");
    assert_eq!(connected.states().await, [Done, Done]);
    connected.advance(LATER);
    connected.step().await;
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.version, mirrored.drifted), (Some(2), false));
    assert_eq!((stored.state.status(), stored.state.live_version()), (Status::Approved, Some(2)));
    assert_eq!(connected.take_count(Post), 0);
}

#[tokio::test]
async fn an_edit_is_sent_although_its_link_looks_like_that_of_a_code() {
    let template = |body: &str, label: &str, url: &str| {
        json!({"name": "order", "language": "en_US", "category": "UTILITY", "components": [
            {"type": "BODY", "text": body},
            {"type": "FOOTER", "text": label},
            {"type": "BUTTONS", "buttons": [{"type": "URL", "text": label, "url": url}]}]})
    };
    let url = "https://shop.example/go?x=whatsapp.com/otp/code/?otp_type=COPY_CODE";
    let (connected, id, remote) = approved(&template("Your order is here.", "Track", url)).await;
    let body = "Send us your password to receive a prize.";
    let edited = template(body, "Win", &url.replace("shop", "evil"));
    edit_is_sent(&connected, id, &edited).await;
    assert_eq!(connected.provided_text(&remote).await, body);
}

/// An authentication template with one app.
fn code(app: &str, label: &str) -> Value {
    json!({"name": "code", "language": "en_US", "category": "AUTHENTICATION", "components": [
        {"type": "BODY", "add_security_recommendation": true},
        {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "ONE_TAP",
            "text": label, "autofill_text": "Fill in",
            "supported_apps": [{"package_name": app, "signature_hash": "K8a/AINcGX7"}]}]}]})
}

#[tokio::test]
async fn an_edit_of_the_app_that_receives_a_code_is_sent_although_no_read_shows_it() {
    let (connected, id, _) = approved(&code("com.example.shop", "Copy code")).await;
    edit_is_sent(&connected, id, &code("com.example.evil", "Copy code")).await;
}

#[tokio::test]
async fn a_create_of_a_code_whose_response_is_lost_is_adopted() {
    let connected = Connected::start().await;
    connected.create(&code("com.example.shop", "Copy code")).await;
    connected.lose(Post, Loss::Response);
    connected.step().await;
    assert_eq!(connected.states().await, [Unknown]);
    connected.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await, [Done]);
    assert_eq!(connected.take_count(Post), 1, "it is not made again");
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.version, mirrored.drifted), (Some(1), false));
    assert_eq!(stored.state.live_version(), Some(1));
}

#[tokio::test]
async fn a_code_of_another_author_under_the_same_name_is_not_taken_for_the_own_one() {
    let connected = Connected::start().await;
    let path = connected.emulator().templates();
    let foreign = code("com.example.foreign", "Copy code");
    connected.emulator().call(axum::http::Method::POST, &path, &foreign).await.expect_success();
    connected.create(&code("com.example.shop", "Copy code")).await;
    connected.step().await;
    connected.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await, [Conflict]);
    let (_, stored) = connected.only_template().await;
    assert_eq!(stored.state.live_version(), None);
}

#[tokio::test]
async fn an_edit_that_creates_takes_no_code_of_another_author_for_its_own() {
    let connected = Connected::start().await;
    let path = connected.emulator().templates();
    let foreign = code("com.example.foreign", "Copy code");
    connected.emulator().call(axum::http::Method::POST, &path, &foreign).await.expect_success();
    connected.rewrite(|_, list| {
        if let Some(data) = list.get_mut("data") {
            *data = json!([]);
        }
    });
    let id = connected.create(&code("com.example.shop", "Copy code")).await;
    connected.lose(Post, Loss::Request);
    connected.step().await;
    connected.edit(id, &code("com.example.other", "Copy code")).await;
    for _ in 0..3 {
        connected.advance(LATER);
        connected.step().await;
    }
    assert_eq!(connected.states().await, [Done, Unknown], "the name is in use");
    connected.rewrite(|_, _| {});
    connected.advance(LATER);
    connected.step().await;
    connected.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await[1], Conflict);
    let (_, stored) = connected.only_template().await;
    assert_eq!(stored.state.live_version(), None);
}

#[tokio::test]
async fn a_lost_edit_is_made_again_if_no_read_shows_all_of_it() {
    let (connected, id, _) = approved(&code("com.example.shop", "Copy code")).await;
    let mut edited = code("com.example.other", "Copy code");
    edited["components"][0]["add_security_recommendation"] = json!(false);
    connected.edit(id, &edited).await;
    connected.lose(Post, Loss::Response);
    connected.step().await;
    assert_eq!(connected.states().await[1], Unknown);
    for _ in 0..2 {
        connected.advance(LATER);
        connected.step().await;
    }
    assert_eq!(connected.states().await[1], Done);
    assert_eq!(connected.take_count(Post), 2, "lost, and made again");
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.version, mirrored.drifted), (Some(2), false));
    assert_eq!(stored.state.live_version(), Some(2));
}

#[tokio::test]
async fn a_code_of_another_author_is_not_deleted_with_the_own_one() {
    let connected = Connected::start().await;
    connected.step().await;
    let id = connected.create(&code("com.example.shop", "Copy code")).await;
    connected.lose(Post, Loss::NotSent);
    connected.try_step().await;
    let path = connected.emulator().templates();
    let foreign = code("com.example.foreign", "Copy code");
    connected.emulator().call(axum::http::Method::POST, &path, &foreign).await.expect_success();
    connected.delete(id).await;
    connected.advance(LATER);
    connected.step_until_settled().await;
    assert_eq!(connected.provided().await, ["code"]);
}

/// Expects that the call of the newest operation is lost, that its version is not live after the look
/// at the provider, and that the call is made again and makes it live.
async fn lost_edit_is_made_again(connected: &Connected, version: u64) {
    connected.take_count(Post);
    connected.lose(Post, Loss::Request);
    connected.step().await;
    assert_eq!(connected.states().await.last(), Some(&Unknown));
    connected.advance(LATER);
    connected.step().await;
    let (mirrored, stored) = connected.only_template().await;
    assert_ne!(stored.state.live_version(), Some(version));
    assert_ne!(mirrored.version, Some(version), "the provider never got it");
    connected.advance(LATER);
    connected.step().await;
    connected.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await.last(), Some(&Done));
    assert_eq!(connected.take_count(Post), 2, "lost, and made");
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.version, mirrored.drifted), (Some(version), false));
    assert_eq!(stored.state.live_version(), Some(version));
}

#[tokio::test]
async fn a_lost_edit_is_not_taken_for_made_because_a_version_before_it_was_never_sent() {
    let shop = code("com.example.shop", "Copy code");
    let evil = code("com.example.evil", "Copy code");
    let mut other = shop.clone();
    other["components"][0]["add_security_recommendation"] = json!(false);
    for unsent in [&evil, &other] {
        let (connected, id, _) = approved(&shop).await;
        connected.edit(id, unsent).await;
        connected.edit(id, &evil).await;
        assert_eq!(connected.states().await[1], Superseded);
        lost_edit_is_made_again(&connected, 3).await;
    }
}

#[tokio::test]
async fn a_lost_push_is_not_taken_for_made() {
    let connected = Connected::start().await;
    let path = connected.emulator().templates();
    let foreign = code("com.example.foreign", "Copy code");
    connected.emulator().call(axum::http::Method::POST, &path, &foreign).await.expect_success();
    let id = connected.create(&code("com.example.shop", "Copy code")).await;
    connected.step().await;
    connected.advance(LATER);
    connected.step().await;
    assert_eq!(connected.states().await, [Conflict]);
    let change = connected.change(id).await;
    let pushed = connected.service.store.act_upstream(change, UpstreamAction::Push).await.unwrap();
    assert!(matches!(pushed, UpstreamActionOutcome::Queued(_)), "{pushed:?}");
    lost_edit_is_made_again(&connected, 1).await;
}

#[tokio::test]
async fn a_label_that_was_changed_at_the_provider_is_drift() {
    let (connected, ..) = approved(&code("com.example.shop", "Copy code")).await;
    connected.rewrite(|_, document| {
        let lists = document.get_mut("data").and_then(Value::as_array_mut);
        let templates = match lists {
            Some(templates) => templates.iter_mut().collect(),
            None => vec![document],
        };
        for template in templates {
            if let Some(label) = template.pointer_mut("/components/1/buttons/0/text") {
                *label = json!("Send it");
            }
        }
    });
    connected.sweep(true).await.unwrap();
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.version, mirrored.drifted), (None, true));
    assert_eq!(stored.state.live_version(), None);
}

#[tokio::test]
async fn an_edit_of_the_notation_of_a_phone_number_is_sent() {
    let call = |number: &str| {
        json!({"name": "a", "language": "en_US", "category": "UTILITY", "components": [
            {"type": "BODY", "text": "Your order is here."},
            {"type": "BUTTONS", "buttons": [
                {"type": "PHONE_NUMBER", "text": "Call", "phone_number": number}]}]})
    };
    let (connected, id, _) = approved(&call("+15550001111")).await;
    edit_is_sent(&connected, id, &call("15550001111")).await;
}
