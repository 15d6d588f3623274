//! Sending messages to the sandbox.

use axum::{
    body::Body,
    http::{Method, Request, header},
};
use galley_domain::template::lifecycle::Trigger;
use galley_server::Clock as _;
use galley_store::{Actor, ChangeOutcome, StoredMessage, TemplateChange};
use serde_json::{Value, json};

use super::emulator::{Emulator, NORMAL, PHONE, TOKEN, message, order};

async fn kept(emulator: &Emulator) -> Vec<StoredMessage> {
    emulator.store.messages(emulator.account, None, 100, emulator.clock.now()).await.unwrap()
}

/// The error of a refused message: its code, and the code and pointer of each violation.
async fn refused(emulator: &Emulator, status: u16, message: &Value) -> (Value, Vec<String>) {
    let response = emulator.try_send(message).await;
    assert_eq!(response.status, status, "{response:?}");
    let error = response.json()["error"].clone();
    assert_eq!(error["galley_problem"], "message-refused", "{error}");
    assert_eq!(error["type"], "OAuthException");
    assert_eq!(error["error_data"]["messaging_product"], "whatsapp");
    assert_eq!(error["error_data"]["details"], error["error_user_msg"]);
    let violations = error["galley_violations"].as_array().unwrap();
    let line = |it: &Value| format!("{} {}", it["code"], it["pointer"].as_str().unwrap());
    let lines = violations.iter().map(line).collect();
    (error, lines)
}

#[tokio::test]
async fn a_message_that_fits_its_template_is_accepted_and_kept() {
    let emulator = Emulator::start().await;
    let id = emulator.create_named("order_shipped").await;
    let sent = emulator.try_send(&message("order_shipped", &["Ada"])).await.expect_success();
    let wamid = sent["messages"][0]["id"].as_str().unwrap().to_owned();
    assert!(wamid.starts_with("wamid.sandbox."), "{sent}");
    let expected = json!({
        "messaging_product": "whatsapp",
        "contacts": [{"input": "+1 555 000 1111", "wa_id": "15550001111"}],
        "messages": [{"id": wamid, "message_status": "accepted"}],
    });
    assert_eq!(sent, expected);
    let [kept] = &kept(&emulator).await[..] else { panic!("not one message") };
    assert_eq!((kept.id.to_string(), kept.template.to_string()), (wamid, id));
    assert_eq!((&*kept.to, &*kept.phone, kept.version), ("15550001111", PHONE, 1));
    let texts: Value = serde_json::from_str(&kept.texts).unwrap();
    assert_eq!(texts["body"], "Hi Ada, your order is on its way to you.");
}

#[tokio::test]
async fn the_error_names_what_is_wrong_with_the_parameters() {
    let emulator = Emulator::start().await;
    emulator.create_named("order_shipped").await;
    let (error, lines) = refused(&emulator, 400, &message("order_shipped", &[])).await;
    assert_eq!(error["code"], 132_000);
    assert_eq!(error["message"], "(#132000) Number of parameters does not match");
    let details = error["error_data"]["details"].as_str().unwrap();
    assert!(details.contains("(0) does not match the expected number of params (1)"), "{details}");
    assert_eq!(lines.len(), 1, "{error}");

    let mut several = message("order_shipped", &["two\nlines"]);
    several["messaging_product"] = json!("sms");
    let (error, _) = refused(&emulator, 400, &several).await;
    assert_eq!(error["code"], 131_009, "the envelope comes first");
    several["messaging_product"] = json!("whatsapp");
    let (error, _) = refused(&emulator, 400, &several).await;
    assert_eq!(error["code"], 132_018);

    let mut currency = message("order_shipped", &["x"]);
    currency["template"]["components"][0]["parameters"][0] = json!({"type": "image", "image": {}});
    let (error, _) = refused(&emulator, 400, &currency).await;
    assert_eq!(error["code"], 132_012);
    let (error, lines) = refused(&emulator, 400, &json!({"to": "15550001111"})).await;
    assert_eq!(error["code"], 131_008);
    assert_eq!(lines, ["131008 /messaging_product", "131008 /type"]);
    let text = json!({"messaging_product": "whatsapp", "to": "15550001111", "type": "text",
        "text": {"body": "Hello"}});
    let (error, lines) = refused(&emulator, 400, &text).await;
    assert_eq!((&error["code"], &*lines), (&json!(131_051), &["131051 /type".to_owned()][..]));
    assert_eq!(kept(&emulator).await, []);
}

#[tokio::test]
async fn only_a_live_version_in_exactly_this_language_is_sent() {
    let emulator = Emulator::start().await;
    let mut other_language = message("order_shipped", &["Ada"]);
    emulator.create_named("order_shipped").await;
    other_language["template"]["language"]["code"] = json!("en");
    let (error, _) = refused(&emulator, 404, &other_language).await;
    assert_eq!(error["code"], 132_001);
    let (error, _) = refused(&emulator, 404, &message("unknown", &["Ada"])).await;
    assert_eq!(error["code"], 132_001);

    emulator.create_named("later_pending_10m").await;
    let (error, _) = refused(&emulator, 404, &message("later_pending_10m", &["Ada"])).await;
    let details = error["error_data"]["details"].as_str().unwrap();
    assert!(details.contains("its status is PENDING"), "{details}");
    emulator.advance("600s").await;
    emulator.try_send(&message("later_pending_10m", &["Ada"])).await.expect_success();

    emulator.create_named("order_pause").await;
    let (error, _) = refused(&emulator, 400, &message("order_pause", &["Ada"])).await;
    assert_eq!(error["code"], 132_015);
    emulator.create_named("order_disable").await;
    let (error, _) = refused(&emulator, 400, &message("order_disable", &["Ada"])).await;
    assert_eq!(error["code"], 132_016);
    emulator.create_named("order_reject_scam").await;
    let (error, _) = refused(&emulator, 404, &message("order_reject_scam", &["Ada"])).await;
    assert_eq!(error["code"], 132_001);
}

#[tokio::test]
async fn the_approved_version_is_sent_while_an_edit_awaits_review() {
    let emulator = Emulator::start().await;
    let id = emulator.create_named("order_pending").await;
    let change = TemplateChange {
        account: emulator.account,
        id: id.parse().unwrap(),
        expected: None,
        version: None,
        review: galley_domain::template::Review::Scripted,
        actor: Actor::Operator,
        trace: None,
        at: emulator.clock.now(),
    };
    let approved = emulator.store.review_template(change, Trigger::Approve, None).await.unwrap();
    assert!(matches!(approved, ChangeOutcome::Done(_)), "{approved:?}");
    let edit = json!({"components": [{"type": "BODY", "text": "Your order is on its way."}]});
    emulator.call(Method::POST, &format!("/v23.0/{id}"), &edit).await.expect_success();
    emulator.try_send(&message("order_pending", &["Ada"])).await.expect_success();
    let [kept] = &kept(&emulator).await[..] else { panic!("not one message") };
    assert_eq!(kept.version, 1);
    assert!(kept.texts.contains("Hi Ada"), "{}", kept.texts);
}

#[tokio::test]
async fn a_magic_recipient_provokes_a_refusal() {
    let emulator = Emulator::start().await;
    emulator.create_named("order_shipped").await;
    for code in [131_056, 130_429] {
        let mut message = message("order_shipped", &["Ada"]);
        message["to"] = json!(format!("+1555010{code}"));
        let response = emulator.try_send(&message).await;
        assert_eq!(response.status, 400);
        let error = response.json()["error"].clone();
        assert_eq!((&error["code"], &error["is_transient"]), (&json!(code), &json!(true)));
        assert_eq!(error["error_data"]["messaging_product"], "whatsapp", "{error}");
    }
    assert_eq!(kept(&emulator).await, []);
}

#[tokio::test]
async fn a_form_is_read_like_a_json_body() {
    let emulator = Emulator::start().await;
    emulator.create_named("order_shipped").await;
    let template = message("order_shipped", &["Ada"])["template"].to_string();
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("messaging_product", "whatsapp").append_pair("to", "15550001111");
    form.append_pair("type", "template").append_pair("template", &template);
    let request = Request::post(format!("/v23.0/{PHONE}/messages?access_token={TOKEN}"))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(form.finish()))
        .unwrap();
    let sent = emulator.send(request).await.expect_success();
    assert_eq!(sent["contacts"][0]["wa_id"], "15550001111");
}

#[tokio::test]
async fn only_emulator_accounts_with_the_phone_number_send() {
    let emulator = Emulator::start().await;
    emulator.create_named("order_shipped").await;
    let message = message("order_shipped", &["Ada"]);
    let path = format!("/v23.0/{PHONE}/messages");
    let request = Request::post(&path).header(header::AUTHORIZATION, format!("Bearer {NORMAL}"));
    let refused = emulator.send(request.body(Body::from(message.to_string())).unwrap()).await;
    let error = refused.expect_error(404, 100, Some(33));
    assert_eq!(error["galley_problem"], "not-an-emulator");
    let text = error["error_user_msg"].as_str().unwrap();
    assert!(text.contains("only emulator accounts have a sandbox"), "{text}");
    let other = emulator.call(Method::POST, "/v23.0/15550000000/messages", &message).await;
    let error = other.expect_error(400, 100, Some(33));
    assert_eq!(error["galley_problem"], "phone-unknown");
    assert_eq!(kept(&emulator).await, []);
}

#[tokio::test]
async fn the_access_log_contains_neither_message_nor_recipient() {
    let emulator = Emulator::start().await;
    emulator.create(&order("order_shipped")).await.expect_success();
    emulator.try_send(&message("order_shipped", &["Ada Lovelace"])).await.expect_success();
    emulator.try_send(&message("order_shipped", &["Ada Lovelace", "x"])).await;
    let log = emulator.into_log();
    assert_eq!(log.matches("/messages\"").count(), 2, "{log}");
    assert!(!log.contains("Ada") && !log.contains("0001111"), "{log}");
}
