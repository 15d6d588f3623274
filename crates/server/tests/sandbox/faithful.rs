//! What faithful emulator accounts do as Meta does, each beside an account that does not.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Method, Request, StatusCode, header},
};
use galley_server::{Clock as _, delivery::Secret};
use galley_store::{AccountLimits, Author};
use serde_json::{Value, json};

use super::emulator::{Emulator, PHONE, SECRET, TOKEN, order};
use crate::deliveries::fake_receiver::keyring;

/// A template that delivers a code.
fn code(name: &str) -> Value {
    json!({
        "name": name, "language": "en_US", "category": "AUTHENTICATION",
        "components": [
            {"type": "BODY", "add_security_recommendation": true},
            {"type": "FOOTER", "code_expiration_minutes": 5},
            {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]},
        ],
    })
}

/// The path of a new template.
async fn created(emulator: &Emulator, document: &Value) -> String {
    let created = emulator.create(document).await.expect_success();
    format!("/v23.0/{}", created["id"].as_str().unwrap())
}

/// Uploads a picture and returns its handle.
async fn uploaded(emulator: &Emulator) -> String {
    let begin = "/v23.0/app/uploads?file_length=8&file_type=image/png";
    let upload = emulator.call(Method::POST, begin, &Value::Null).await.expect_success();
    let path = format!("/v23.0/{}", upload["id"].as_str().unwrap());
    let request = Request::post(path).header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
    let sent = emulator.send(request.body(Body::from(&b"\x89PNG\r\n\x1a\n"[..])).unwrap()).await;
    sent.expect_success()["h"].as_str().unwrap().to_owned()
}

/// A template with a picture.
fn picture(name: &str, handle: &str) -> Value {
    let mut document = order(name);
    let header =
        json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}});
    document["components"].as_array_mut().unwrap().insert(0, header);
    document
}

#[tokio::test]
async fn a_one_time_code_button_is_shown_as_a_url_button_with_metas_texts() {
    let faithful = Emulator::start_faithful().await;
    let path = created(&faithful, &code("one_time_code")).await;
    let url =
        "https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code_expiration_minutes=5&code=otp";
    let expected = json!([
        {
            "type": "BODY", "add_security_recommendation": true,
            "text": "*{{1}}* is your verification code. For your security, do not share this code.",
            "example": {"body_text": [["123456"]]},
        },
        {"type": "FOOTER", "text": "This code expires in 5 minutes.", "code_expiration_minutes": 5},
        {"type": "BUTTONS", "buttons": [{
            "type": "URL", "text": "Copy code", "url": format!("{url}{{{{1}}}}"),
            "example": [format!("{url}123456")],
        }]},
    ]);
    assert_eq!(faithful.get(&path).await.expect_success()["components"], expected);
    let list = faithful.get(&faithful.templates()).await.expect_success();
    assert_eq!(list["data"][0]["components"], expected);

    let other = Emulator::start().await;
    let path = created(&other, &code("one_time_code")).await;
    let shown = other.get(&path).await.expect_success();
    assert_eq!(shown["components"][2]["buttons"][0]["type"], "OTP");
    assert_eq!(shown["components"][0].get("text"), None);
}

#[tokio::test]
async fn a_recipient_reads_metas_text_of_a_code() {
    for (emulator, body) in [
        (
            Emulator::start_faithful().await,
            "*4711* is your verification code. For your security, do not share this code.",
        ),
        (Emulator::start().await, "Your code is 4711. Keep it to yourself."),
    ] {
        emulator.create(&code("one_time_code")).await.expect_success();
        let parameter = json!([{"type": "text", "text": "4711"}]);
        let message = json!({
            "messaging_product": "whatsapp", "to": "15550001111", "type": "template",
            "template": {"name": "one_time_code", "language": {"code": "en_US"}, "components": [
                {"type": "body", "parameters": parameter},
                {"type": "button", "sub_type": "url", "index": "0", "parameters": parameter},
            ]},
        });
        emulator.try_send(&message).await.expect_success();
        let now = emulator.clock.now();
        let messages = emulator.store.messages(emulator.account, None, 1, now).await.unwrap();
        let texts: Value = serde_json::from_str(&messages[0].texts).unwrap();
        assert_eq!(texts["body"], body);
        assert_eq!(texts["buttons"][0]["code"], "4711", "{texts}");
    }
}

/// The path of the link to the sample of a template.
async fn link(emulator: &Emulator, path: &str) -> String {
    let shown = emulator.get(path).await.expect_success();
    let link = &shown["components"][0]["example"]["header_handle"][0];
    link.as_str().unwrap().strip_prefix("https://galley.test").unwrap().to_owned()
}

#[tokio::test]
async fn the_link_to_a_sample_expires_on_the_clock() {
    let faithful = Emulator::start_faithful().await;
    let handle = uploaded(&faithful).await;
    let path = created(&faithful, &picture("with_picture", &handle)).await;
    let first = link(&faithful, &path).await;
    assert_eq!(faithful.get(&first).await.status, 200);
    faithful.advance("1209599s").await;
    assert_eq!(faithful.get(&first).await.status, 200);
    faithful.advance("1s").await;
    let expired = faithful.get(&first).await;
    expired.problem(404, "not-found");
    assert!(expired.text().contains("The link has expired"), "{expired:?}");
    let second = link(&faithful, &path).await;
    assert_eq!(faithful.get(&second).await.status, 200);
}

#[tokio::test]
async fn a_link_that_is_written_back_stands_for_the_sample() {
    let faithful = Emulator::start_faithful().await;
    let handle = uploaded(&faithful).await;
    let path = created(&faithful, &picture("with_picture", &handle)).await;
    let mut components = faithful.get(&path).await.expect_success()["components"].clone();
    components[1]["text"] = json!("Hi {{1}}, your order has arrived at your house.");
    let edit = json!({"components": components});
    faithful.call(Method::POST, &path, &edit).await.expect_success();
    faithful.advance("1209600s").await;
    let new = link(&faithful, &path).await;
    assert_eq!(faithful.get(&new).await.status, 200, "{new}");
}

#[tokio::test]
async fn a_sample_is_not_served_without_an_expiry_or_with_one_too_far_ahead() {
    let faithful = Emulator::start_faithful().await;
    let handle = uploaded(&faithful).await;
    let path = created(&faithful, &picture("with_picture", &handle)).await;
    let link_of_it = link(&faithful, &path).await;
    let (url, expiry) = link_of_it.split_once("?oe=").unwrap();
    let later = i64::from_str_radix(expiry, 16).unwrap() + 61;
    for query in ["", "?oe=", "?oe=x", "?oe=-1", &format!("?oe={later:x}")] {
        faithful.get(&format!("{url}{query}")).await.problem(404, "not-found");
    }
    let other = Emulator::start().await;
    let handle = uploaded(&other).await;
    let path = created(&other, &picture("with_picture", &handle)).await;
    let url = link(&other, &path).await;
    assert!(!url.contains('?'), "{url}");
    assert_eq!(other.get(&url).await.status, 200);
}

#[tokio::test]
async fn a_handle_expires_on_the_clock_unless_a_template_uses_it() {
    let emulator = Emulator::start().await;
    let used = uploaded(&emulator).await;
    emulator.create(&picture("one", &used)).await.expect_success();
    let unused = uploaded(&emulator).await;
    emulator.advance("604800s").await;
    emulator.create(&picture("two", &unused)).await.expect_success();
    let unused = uploaded(&emulator).await;
    emulator.advance("604801s").await;
    emulator.create(&picture("three", &used)).await.expect_success();
    let refused = emulator.create(&picture("four", &unused)).await;
    let error = refused.expect_error(400, 100, Some(2_388_043));
    assert_eq!(error["galley_violations"][0]["rule"], "sample-unknown");
    let text = error["error_user_msg"].as_str().unwrap();
    assert!(text.contains("more than 7 days ago on the clock of the account"), "{text}");
}

#[tokio::test]
async fn cursors_expire_on_the_clock() {
    let faithful = Emulator::start_faithful().await;
    for name in ["one", "two", "three"] {
        faithful.create(&order(name)).await.expect_success();
    }
    let list = format!("{}?fields=name&limit=1", faithful.templates());
    let first = faithful.get(&list).await.expect_success();
    assert_eq!(first["data"][0]["name"], "three");
    let after = first["paging"]["cursors"]["after"].as_str().unwrap();
    assert!(after.parse::<u64>().is_err(), "{after}");
    let next = first["paging"]["next"].as_str().unwrap();
    let next = next.strip_prefix("https://galley.test").unwrap();
    faithful.advance("3600s").await;
    let second = faithful.get(next).await.expect_success();
    assert_eq!(second["data"][0]["name"], "two");
    let before = second["paging"]["cursors"]["before"].as_str().unwrap();
    let back = faithful.get(&format!("{list}&before={before}")).await.expect_success();
    assert_eq!(back["data"][0]["name"], "three");
    faithful.advance("1s").await;
    faithful.get(next).await.expect_error(400, 131_059, None);
    faithful.get(&format!("{list}&after=7")).await.expect_error(400, 131_059, None);

    let other = Emulator::start().await;
    for name in ["one", "two"] {
        other.create(&order(name)).await.expect_success();
    }
    let first = other.get(&format!("{}?limit=1", other.templates())).await.expect_success();
    let next = first["paging"]["next"].as_str().unwrap();
    other.advance("864000s").await;
    other.get(next.strip_prefix("https://galley.test").unwrap()).await.expect_success();
}

#[tokio::test]
async fn the_list_has_no_name_filter_and_a_summary_with_limits() {
    for (emulator, count) in [(Emulator::start_faithful().await, 2), (Emulator::start().await, 1)] {
        for name in ["one", "two"] {
            emulator.create(&order(name)).await.expect_success();
        }
        let query = "?name=one&fields=name,last_updated_time&summary=true";
        let list = emulator.get(&format!("{}{query}", emulator.templates())).await.expect_success();
        assert_eq!(list["data"].as_array().unwrap().len(), count, "{list}");
        assert_eq!(list["data"][0]["last_updated_time"], emulator.clock.now().as_second());
        let summary = json!({
            "total_count": count, "message_template_count": 2, "message_template_limit": 6_000,
            "are_translations_complete": true,
        });
        assert_eq!(list["summary"], summary);
    }
}

#[tokio::test]
async fn responses_tell_the_usage() {
    let faithful = Emulator::start_faithful().await;
    let response = faithful.get(&faithful.templates()).await;
    let usage: Value = serde_json::from_str(response.header(USAGE).unwrap()).unwrap();
    let expected = json!([{
        "type": "whatsapp_business_management", "call_count": 0, "total_cputime": 0,
        "total_time": 0, "estimated_time_to_regain_access": 0,
    }]);
    assert_eq!(usage[faithful.account.to_string()], expected);
    let refused = faithful.create(&json!({})).await;
    assert!(refused.header(USAGE).is_some(), "also with an error: {refused:?}");
    let other = Emulator::start().await;
    assert_eq!(other.get(&other.templates()).await.header(USAGE), None);
}

#[tokio::test]
async fn the_usage_is_that_of_an_hour_of_the_clock() {
    let faithful = Emulator::start_faithful().await;
    faithful.advance("0s").await;
    let percent = async || {
        let response = faithful.get("/v23.0/7").await;
        let usage: Value = serde_json::from_str(response.header(USAGE).unwrap()).unwrap();
        usage[faithful.account.to_string()][0]["call_count"].clone()
    };
    for _ in 0..49 {
        assert_eq!(percent().await, 0);
    }
    assert_eq!(percent().await, 1);
    faithful.clock.advance(Duration::from_hours(1));
    assert_eq!(percent().await, 1, "the clock of the account stands");
    faithful.advance("3600s").await;
    assert_eq!(percent().await, 0);
}

#[tokio::test]
async fn limits_are_shown_and_the_clock_frees_quotas() {
    let faithful = Emulator::start_faithful().await;
    let (limits, by) = (AccountLimits { templates: 101 }, Author::operator(faithful.clock.now()));
    assert!(faithful.store.set_account_limits(faithful.account, Some(limits), by).await.unwrap());
    let first = created(&faithful, &order("order_0")).await;
    for index in 1..100 {
        faithful.create_named(&format!("order_{index}")).await;
    }
    faithful.create(&order("next")).await.expect_error(400, 80_008, None);
    let list = faithful.get(&format!("{}?summary=true", faithful.templates())).await;
    assert_eq!(list.expect_success()["summary"]["message_template_limit"], 101);
    faithful.advance("3600s").await;
    faithful.create_named("next").await;
    faithful.create(&order("last")).await.expect_error(400, 100, Some(2_388_019));

    let edit = async |text: &str| {
        let components = json!({"components": [{"type": "BODY", "text": text}]});
        faithful.call(Method::POST, &first, &components).await
    };
    edit("Your order is on its way.").await.expect_success();
    edit("Your order has arrived.").await.expect_error(400, 100, Some(2_388_124));
    faithful.advance("86400s").await;
    edit("Your order has arrived.").await.expect_success();
}

const USAGE: &str = "x-business-use-case-usage";

#[tokio::test]
async fn the_name_of_a_deleted_approved_template_is_locked() {
    let faithful = Emulator::start_faithful().await;
    faithful.create(&order("one")).await.expect_success();
    let delete = format!("{}?name=one", faithful.templates());
    faithful.call(Method::DELETE, &delete, &Value::Null).await.expect_success();
    let locked = faithful.create(&order("one")).await;
    let error = locked.expect_error(400, 100, Some(2_388_023));
    assert_eq!(error["galley_problem"], "name-locked");
    assert_eq!(error["error_user_title"], "Template is being deleted");
    let text = error["error_user_msg"].as_str().unwrap();
    assert!(text.contains("Try again in 4 weeks"), "{text}");
    assert!(text.contains("2026-12-15T12:00:00.000Z on the clock"), "{text}");
    let v1 = format!("/api/v1.0/{}/{TOKEN}/message_templates", super::emulator::PHONE);
    let problem = faithful.call(Method::POST, &v1, &order("one")).await.problem(409, "name-locked");
    assert_eq!(problem["until"], "2026-12-15T12:00:00.000Z");
    faithful.advance("2592000s").await;
    faithful.create(&order("one")).await.expect_success();

    let other = Emulator::start().await;
    other.create(&order("one")).await.expect_success();
    let delete = format!("{}?name=one", other.templates());
    other.call(Method::DELETE, &delete, &Value::Null).await.expect_success();
    other.create(&order("one")).await.expect_success();
}

#[tokio::test]
async fn an_edit_replaces_the_content_and_a_pending_template_is_not_editable() {
    let edit = json!({"components": [{"type": "BODY", "text": "Your order is on its way."}]});
    let faithful = Emulator::start_faithful().await;
    let path = created(&faithful, &order("order_pending_10m")).await;
    let refused = faithful.call(Method::POST, &path, &edit).await;
    refused.expect_error(400, 100, Some(2_388_039));
    faithful.advance("600s").await;
    faithful.send_to("order_pending_10m", "15550001111").await;
    faithful.call(Method::POST, &path, &edit).await.expect_success();
    let message = super::emulator::message("order_pending_10m", &["Ada"]);
    let error = faithful.try_send(&message).await.json()["error"].clone();
    assert_eq!(error["code"], 132_001, "the former text is not live: {error}");

    let other = Emulator::start().await;
    let path = created(&other, &order("order_pending_10m")).await;
    other.call(Method::POST, &path, &edit).await.expect_success();
}

#[tokio::test]
async fn an_override_callback_uri_is_stored_and_ignored() {
    let faithful = Emulator::start_faithful().await;
    let callback = faithful.register().await;
    let path = format!("/v23.0/{}/subscribed_apps", faithful.account);
    let shown = async || faithful.get(&path).await.expect_success()["data"][0].clone();
    assert_eq!(shown().await.get("override_callback_uri"), None);
    for number in [1, 2] {
        let url = format!("http://127.0.0.1/hooks/{number}");
        let body = json!({"override_callback_uri": url, "verify_token": "token"});
        let subscribed = faithful.call(Method::POST, &path, &body).await.expect_success();
        assert_eq!(subscribed, json!({"success": true}));
        assert_eq!(shown().await["override_callback_uri"], url);
    }
    let webhooks = faithful.store.webhooks(faithful.account).await.unwrap();
    let ids: Vec<_> = webhooks.iter().map(|it| (it.id, it.disabled)).collect();
    assert_eq!(ids, [(callback, None)], "webhooks go to the callback only");

    faithful.call(Method::DELETE, &path, &Value::Null).await.expect_success();
    assert_eq!(shown().await.get("override_callback_uri"), None);
    let webhooks = faithful.store.webhooks(faithful.account).await.unwrap();
    assert_eq!(webhooks.len(), 1);
    assert!(webhooks[0].disabled.is_some(), "the app is not subscribed any more");
    faithful.call(Method::POST, &path, &Value::Null).await.expect_success();
    let webhooks = faithful.store.webhooks(faithful.account).await.unwrap();
    assert_eq!((webhooks[0].id, webhooks[0].disabled), (callback, None));
}

#[tokio::test]
async fn the_only_endpoint_in_metas_format_is_the_callback_of_the_app() {
    let faithful = Emulator::start_faithful().await;
    let path = format!("/api/v1.0/{PHONE}/{TOKEN}/webhooks");
    let body = json!({
        "url": "http://127.0.0.1/meta", "format": "whatsapp", "verify_token": "token",
    });
    let created = faithful.call(Method::POST, &path, &body).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.json());
    let webhooks = faithful.store.webhooks(faithful.account).await.unwrap();
    assert!(webhooks[0].subscribed);
    let second = faithful.call(Method::POST, &path, &body).await;
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert_eq!(second.json()["type"], "/problems/too-many-webhooks");
    let own_format = json!({"url": "http://127.0.0.1/galley"});
    let created = faithful.call(Method::POST, &path, &own_format).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.json());
}

#[tokio::test]
async fn every_callback_of_a_client_gets_the_app_secret() {
    let emulator = Emulator::start().await;
    let secret = Secret::from_app_secret(SECRET).unwrap();
    let stored = keyring().encrypt(emulator.account.get(), &secret, [4; 24]);
    assert!(emulator.store.set_app_secret(emulator.account, stored).await.unwrap());
    let path = format!("/v23.0/{}/subscribed_apps", emulator.account);
    let body = json!({"override_callback_uri": "http://127.0.0.1/meta", "verify_token": "token"});
    for _ in 0..2 {
        let subscribed = emulator.call(Method::POST, &path, &body).await.expect_success();
        assert_eq!(subscribed["galley_secret"], SECRET);
        emulator.call(Method::DELETE, &path, &Value::Null).await.expect_success();
    }
}
