//! The lifecycle of a template: create, read, edit, pause and upsert.

use std::sync::Arc;

use axum::http::Method;
use galley_store::Feed;
use serde_json::{Value, json};

use super::service::{OTHER, Service, TOKEN, hello};

#[tokio::test]
async fn a_create_returns_200_with_id_status_and_category() {
    for (service, status) in
        [(Service::start().await, "APPROVED"), (Service::start_reviewed().await, "PENDING")]
    {
        let created = service.create(&hello("hello")).await.expect_success();
        let id = created["id"].as_str().unwrap();
        assert!(id.bytes().all(|byte| byte.is_ascii_digit()), "{created}");
        assert_eq!(created, json!({"id": id, "status": status, "category": "MARKETING"}));
    }
}

#[tokio::test]
async fn a_create_and_an_edit_report_the_number_of_warnings() {
    let service = Service::start().await;
    let plain = service.create(&hello("plain")).await;
    assert_eq!(plain.header("galley-warnings"), None);
    let mut document = hello("spaced");
    document["components"][0]["text"] = json!("Good morning,\n\n\n\nall of you");
    let created = service.create(&document).await;
    assert_eq!(created.header("galley-warnings"), Some("1"));
    let id = created.expect_success()["id"].as_str().unwrap().to_owned();
    let edit = json!({"components": document["components"]});
    let edited = service.call(Method::POST, &format!("/v23.0/{id}"), &edit).await;
    assert_eq!(edited.header("galley-warnings"), Some("1"));
}

#[tokio::test]
async fn a_template_has_default_fields_or_the_requested_ones() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let usual = json!({
        "name": "hello", "language": "en_US", "status": "APPROVED", "category": "MARKETING",
        "parameter_format": "POSITIONAL",
        "components": [{"type": "BODY", "text": "Good morning, all of you"}],
        "id": id,
    });
    let account = service.shop;
    for path in [
        format!("/v23.0/{id}"),
        format!("/v19.0/{id}/"),
        format!("/v23.0/{account}/message_templates/{id}"),
    ] {
        assert_eq!(service.get(&path).await.expect_success(), usual, "{path}");
    }
    for (fields, expected) in [
        ("status", json!({"id": id, "status": "APPROVED"})),
        ("id", json!({"id": id})),
        ("whatsapp_business_account", json!({"id": id})),
        ("rejected_reason,name", json!({"id": id, "name": "hello", "rejected_reason": "NONE"})),
        ("correct_category,previous_category,message_send_ttl_seconds", json!({"id": id})),
    ] {
        let read = service.get(&format!("/v23.0/{id}?fields={fields}")).await.expect_success();
        assert_eq!(read, expected, "{fields}");
    }
    let read = service.get(&format!("/v23.0/{id}?fields=quality_score")).await.expect_success();
    assert_eq!(read["quality_score"]["score"], "UNKNOWN");
    assert!(read["quality_score"]["date"].is_u64(), "{read}");
}

#[tokio::test]
async fn buttons_are_shown_with_labels_and_lists_of_examples() {
    let service = Service::start().await;
    let mut document = hello("offer");
    document["components"] = json!([
        {"type": "body", "text": "All shoes at half the price, today only"},
        {"type": "buttons", "buttons": [
            {"type": "copy_code", "example": "SHOES50"},
            {"type": "url", "text": "Shop", "url": "https://shop.example/{{1}}", "example": "shoes"},
        ]},
    ]);
    let id = service.create(&document).await.expect_success()["id"].as_str().unwrap().to_owned();
    let read = service.get(&format!("/v23.0/{id}")).await.expect_success();
    assert_eq!(
        read["components"][1],
        json!({"type": "BUTTONS", "buttons": [
            {"type": "COPY_CODE", "text": "Copy offer code", "example": ["SHOES50"]},
            {"type": "URL", "text": "Shop", "url": "https://shop.example/{{1}}", "example": ["shoes"]},
        ]})
    );
}

#[tokio::test]
async fn creative_features_are_sent_as_a_map_and_shown_as_a_list() {
    let service = Service::start().await;
    let mut document = hello("hello");
    let spec = json!({"creative_features_spec": {"image_touchups": {"enroll_status": "opt_in"}}});
    document["degrees_of_freedom_spec"] = spec;
    let id = service.create(&document).await.expect_success()["id"].as_str().unwrap().to_owned();
    let read =
        service.get(&format!("/v23.0/{id}?fields=degrees_of_freedom_spec")).await.expect_success();
    let list = json!([{"key": "image_touchups", "value": {"enroll_status": "OPT_IN"}}]);
    assert_eq!(read["degrees_of_freedom_spec"]["creative_features_spec"], list);
}

#[tokio::test]
async fn an_edit_ignores_fixed_fields_and_returns_what_clients_require() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let mut edit = hello("another name");
    edit["language"] = json!("de");
    edit["components"][0]["text"] = json!("Good evening");
    let edited = service.call(Method::POST, &format!("/v23.0/{id}"), &edit).await.expect_success();
    assert_eq!(
        edited,
        json!({"success": true, "id": id, "name": "hello", "category": "MARKETING", "status": "APPROVED"})
    );
    let read = service.get(&format!("/v23.0/{id}")).await.expect_success();
    assert_eq!(read["components"][0]["text"], "Good evening");
    assert_eq!((&read["name"], &read["language"]), (&json!("hello"), &json!("en_US")));
    assert_eq!(events(&service).await, ["template.created", "template.edited"]);
}

#[tokio::test]
async fn unpause_ends_a_pause() {
    let service = Service::start().await;
    let id = service.create_named("hello", "en_US").await;
    let unpause = format!("/v23.0/{id}/unpause");
    service.call(Method::POST, &unpause, &Value::Null).await.expect_error(
        400,
        100,
        Some(2_388_039),
    );
    // Reviews are calls of API v1.0.
    let review = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/{id}/review");
    let paused = service.call(Method::POST, &review, &json!({"decision": "pause"})).await;
    assert_eq!(paused.status, 200, "{}", paused.text());
    assert_eq!(service.get(&format!("/v23.0/{id}")).await.expect_success()["status"], "PAUSED");
    let response = service.call(Method::POST, &unpause, &Value::Null).await.expect_success();
    assert_eq!(response, json!({"success": true}));
    assert_eq!(service.get(&format!("/v23.0/{id}")).await.expect_success()["status"], "APPROVED");
}

#[tokio::test]
async fn a_rejection_reason_becomes_one_of_metas_values() {
    for (reason, expected) in [
        (json!("promotional: too loud"), "PROMOTIONAL"),
        (json!("SCAM"), "SCAM"),
        (json!("I do not like it"), "INVALID_FORMAT"),
        (Value::Null, "INVALID_FORMAT"),
    ] {
        let service = Service::start_reviewed().await;
        let id = service.create_named("hello", "en_US").await;
        let review = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/{id}/review");
        let decision = json!({"decision": "reject", "reason": reason});
        assert_eq!(service.call(Method::POST, &review, &decision).await.status, 200);
        let read = service
            .get(&format!("/v23.0/{id}?fields=status,rejected_reason"))
            .await
            .expect_success();
        assert_eq!(read, json!({"id": id, "status": "REJECTED", "rejected_reason": expected}));
    }
}

#[tokio::test]
async fn an_account_can_be_read_by_its_id() {
    let service = Service::start().await;
    let account = service.shop.to_string();
    let read = service.get(&format!("/v23.0/{account}")).await.expect_success();
    assert_eq!(
        read,
        json!({"id": account, "name": format!("the owner of {TOKEN}"), "timezone_id": "0"})
    );
    let response = service.get(&format!("/v23.0/{account}?fields=whatsapp_business_account")).await;
    assert_eq!(response.expect_success(), json!({"id": account}));
    for stranger in [service.stranger, service.other] {
        service.get(&format!("/v23.0/{stranger}")).await.expect_error(400, 100, Some(33));
    }
    assert_ne!(OTHER, TOKEN);
}

#[tokio::test]
async fn an_upsert_creates_or_edits_several_languages() {
    let service = Service::start().await;
    let path = format!("/v23.0/{}/upsert_message_templates", service.shop);
    let document = |minutes: u64| {
        json!({
            "name": "code", "languages": ["en_US", "es"], "category": "AUTHENTICATION",
            "components": [
                {"type": "BODY", "add_security_recommendation": true},
                {"type": "FOOTER", "code_expiration_minutes": minutes},
                {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]},
            ],
        })
    };
    let created = service.call(Method::POST, &path, &document(5)).await.expect_success();
    let languages: Vec<&Value> =
        created["data"].as_array().unwrap().iter().map(|it| &it["language"]).collect();
    assert_eq!(languages, ["en_US", "es"]);
    // One client sends the document inside a JSON string.
    let wrapped = json!(document(10).to_string());
    let again = service.call(Method::POST, &path, &wrapped).await.expect_success();
    assert_eq!(again, created, "the same templates, edited");
    let id = created["data"][1]["id"].as_str().unwrap();
    let read = service.get(&format!("/v23.0/{id}")).await.expect_success();
    assert_eq!(read["components"][1]["code_expiration_minutes"], 10, "{read}");
    let mut silent = document(5);
    silent["name"] = json!("silent");
    silent["components"][0] = json!({"type": "BODY"});
    silent["components"][1] = json!({"type": "FOOTER"});
    let created = service.call(Method::POST, &path, &silent).await.expect_success();
    let id = created["data"][0]["id"].as_str().unwrap();
    let read = service.get(&format!("/v23.0/{id}")).await.expect_success();
    assert_eq!(
        read["components"],
        json!([
            {"type": "BODY", "add_security_recommendation": false},
            {"type": "BUTTONS", "buttons": [
                {"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy code"},
            ]},
        ])
    );
    let mut marketing = hello("code");
    marketing["languages"] = json!(["de"]);
    service.call(Method::POST, &path, &marketing).await.expect_error(400, 100, None);
    service.call(Method::POST, &path, &hello("code")).await.expect_error(400, 100, None);
}

/// The types of all events of the shop's account.
pub(crate) async fn events(service: &Service) -> Vec<&'static str> {
    match service.store.events(service.shop, None, 100).await.unwrap() {
        Feed::Events(events) => events.iter().map(|event| event.kind.as_str()).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn concurrent_edits_are_neither_lost_nor_checked_against_old_content() {
    let service = Arc::new(Service::start_reviewed().await);
    for round in 0..10 {
        let mut document = hello(&format!("hello_{round}"));
        document["category"] = json!("UTILITY");
        let id =
            service.create(&document).await.expect_success()["id"].as_str().unwrap().to_owned();
        let edits = [
            json!({"components": [{"type": "BODY", "text": "Good evening"}]}),
            json!({"message_send_ttl_seconds": 60}),
            json!({"category": "MARKETING"}),
        ];
        let tasks = edits.map(|edit| {
            let (service, path) = (Arc::clone(&service), format!("/v23.0/{id}"));
            tokio::spawn(async move { service.call(Method::POST, &path, &edit).await.status })
        });
        let mut statuses = Vec::new();
        for task in tasks {
            statuses.push(task.await.unwrap().as_u16());
        }
        let read = service.get(&format!("/v23.0/{id}")).await.expect_success();
        assert_eq!((statuses[0], &read["components"][0]["text"]), (200, &json!("Good evening")));
        // A minute is too short for MARKETING, so the second of these two edits is rejected.
        let (lifetime, category) = (read.get("message_send_ttl_seconds"), &read["category"]);
        match (statuses[1], statuses[2]) {
            (200, 400) => assert_eq!((lifetime, category), (Some(&json!(60)), &json!("UTILITY"))),
            (400, 200) => assert_eq!((lifetime, category), (None, &json!("MARKETING"))),
            other => panic!("{other:?}: {read}"),
        }
    }
}

#[tokio::test]
async fn an_upsert_ignores_duplicate_languages_and_unknown_fields() {
    let service = Service::start().await;
    let path = format!("/v23.0/{}/upsert_message_templates", service.shop);
    let document = json!({
        "name": "code", "languages": ["en_US", "es", "en_US"], "category": "AUTHENTICATION",
        "x\":1,\"name\":\"injected\",\"y": 1,
        "components": [
            {"type": "BODY"},
            {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]}
        ]
    });
    let created = service.call(Method::POST, &path, &document).await.expect_success();
    let languages: Vec<&Value> =
        created["data"].as_array().unwrap().iter().map(|it| &it["language"]).collect();
    assert_eq!(languages, ["en_US", "es"]);
    let all = service.get(&service.templates()).await.expect_success();
    assert!(all["data"].as_array().unwrap().iter().all(|it| it["name"] == "code"), "{all}");
    // Repeating the call changes nothing.
    assert_eq!(service.call(Method::POST, &path, &document).await.expect_success(), created);
    let invalid = json!({"x\":1,\"name\":\"injected\",\"y": 1, "languages": ["en_US"],
        "category": "AUTHENTICATION", "components": document["components"]});
    service.call(Method::POST, &path, &invalid).await.expect_error(400, 100, None);
}
