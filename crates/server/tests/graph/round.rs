//! A template's whole life: created, read, edited, paused, taken away.

use std::sync::Arc;

use axum::http::Method;
use galley_store::Feed;
use serde_json::{Value, json};

use super::service::{OTHER, Service, TOKEN, hello};

#[tokio::test]
async fn a_creation_answers_id_status_and_category_with_200() {
    for (service, status) in
        [(Service::start().await, "APPROVED"), (Service::start_reviewed().await, "PENDING")]
    {
        let created = service.create(&hello("hello")).await.good();
        let id = created["id"].as_str().unwrap();
        assert!(id.bytes().all(|byte| byte.is_ascii_digit()), "{created}");
        assert_eq!(created, json!({"id": id, "status": status, "category": "MARKETING"}));
    }
}

#[tokio::test]
async fn a_template_is_read_with_the_usual_fields_or_with_those_asked_for() {
    let service = Service::start().await;
    let id = service.made("hello", "en_US").await;
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
        assert_eq!(service.get(&path).await.good(), usual, "{path}");
    }
    for (fields, expected) in [
        ("status", json!({"id": id, "status": "APPROVED"})),
        ("id", json!({"id": id})),
        ("whatsapp_business_account", json!({"id": id})),
        ("rejected_reason,name", json!({"id": id, "name": "hello", "rejected_reason": "NONE"})),
        ("correct_category,previous_category,message_send_ttl_seconds", json!({"id": id})),
    ] {
        let read = service.get(&format!("/v23.0/{id}?fields={fields}")).await.good();
        assert_eq!(read, expected, "{fields}");
    }
    let read = service.get(&format!("/v23.0/{id}?fields=quality_score")).await.good();
    assert_eq!(read["quality_score"]["score"], "UNKNOWN");
    assert!(read["quality_score"]["date"].is_u64(), "{read}");
}

#[tokio::test]
async fn buttons_are_read_back_with_labels_and_lists_of_examples() {
    let service = Service::start().await;
    let mut document = hello("offer");
    document["components"] = json!([
        {"type": "body", "text": "All shoes at half the price, today only"},
        {"type": "buttons", "buttons": [
            {"type": "copy_code", "example": "SHOES50"},
            {"type": "url", "text": "Shop", "url": "https://shop.example/{{1}}", "example": "shoes"},
        ]},
    ]);
    let id = service.create(&document).await.good()["id"].as_str().unwrap().to_owned();
    let read = service.get(&format!("/v23.0/{id}")).await.good();
    assert_eq!(
        read["components"][1],
        json!({"type": "BUTTONS", "buttons": [
            {"type": "COPY_CODE", "text": "Copy offer code", "example": ["SHOES50"]},
            {"type": "URL", "text": "Shop", "url": "https://shop.example/{{1}}", "example": ["shoes"]},
        ]})
    );
}

#[tokio::test]
async fn what_may_be_improved_is_sent_as_a_map_and_read_as_a_list() {
    let service = Service::start().await;
    let mut document = hello("hello");
    let spec = json!({"creative_features_spec": {"image_touchups": {"enroll_status": "opt_in"}}});
    document["degrees_of_freedom_spec"] = spec;
    let id = service.create(&document).await.good()["id"].as_str().unwrap().to_owned();
    let read = service.get(&format!("/v23.0/{id}?fields=degrees_of_freedom_spec")).await.good();
    let list = json!([{"key": "image_touchups", "value": {"enroll_status": "OPT_IN"}}]);
    assert_eq!(read["degrees_of_freedom_spec"]["creative_features_spec"], list);
}

#[tokio::test]
async fn an_edit_passes_over_what_never_changes_and_answers_what_clients_insist_on() {
    let service = Service::start().await;
    let id = service.made("hello", "en_US").await;
    let mut edit = hello("another name");
    edit["language"] = json!("de");
    edit["components"][0]["text"] = json!("Good evening");
    let edited = service.call(Method::POST, &format!("/v23.0/{id}"), &edit).await.good();
    assert_eq!(
        edited,
        json!({"success": true, "id": id, "name": "hello", "category": "MARKETING", "status": "APPROVED"})
    );
    let read = service.get(&format!("/v23.0/{id}")).await.good();
    assert_eq!(read["components"][0]["text"], "Good evening");
    assert_eq!((&read["name"], &read["language"]), (&json!("hello"), &json!("en_US")));
    assert_eq!(events(&service).await, ["template.created", "template.edited"]);
}

#[tokio::test]
async fn a_pause_ends_by_the_call_for_it() {
    let service = Service::start().await;
    let id = service.made("hello", "en_US").await;
    let unpause = format!("/v23.0/{id}/unpause");
    service.call(Method::POST, &unpause, &Value::Null).await.refusal(400, 100, Some(2_388_039));
    // Whoever reviews does so on API v1.0.
    let review = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/{id}/review");
    let paused = service.call(Method::POST, &review, &json!({"decision": "pause"})).await;
    assert_eq!(paused.status, 200, "{}", paused.text());
    assert_eq!(service.get(&format!("/v23.0/{id}")).await.good()["status"], "PAUSED");
    let answer = service.call(Method::POST, &unpause, &Value::Null).await.good();
    assert_eq!(answer, json!({"success": true}));
    assert_eq!(service.get(&format!("/v23.0/{id}")).await.good()["status"], "APPROVED");
}

#[tokio::test]
async fn a_rejection_is_told_in_words_that_clients_know() {
    for (reason, told) in [
        (json!("promotional: too loud"), "PROMOTIONAL"),
        (json!("SCAM"), "SCAM"),
        (json!("I do not like it"), "INVALID_FORMAT"),
        (Value::Null, "INVALID_FORMAT"),
    ] {
        let service = Service::start_reviewed().await;
        let id = service.made("hello", "en_US").await;
        let review = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/{id}/review");
        let decision = json!({"decision": "reject", "reason": reason});
        assert_eq!(service.call(Method::POST, &review, &decision).await.status, 200);
        let read = service.get(&format!("/v23.0/{id}?fields=status,rejected_reason")).await.good();
        assert_eq!(read, json!({"id": id, "status": "REJECTED", "rejected_reason": told}));
    }
}

#[tokio::test]
async fn the_account_is_read_by_its_id() {
    let service = Service::start().await;
    let account = service.shop.to_string();
    let read = service.get(&format!("/v23.0/{account}")).await.good();
    assert_eq!(
        read,
        json!({"id": account, "name": format!("the owner of {TOKEN}"), "timezone_id": "0"})
    );
    let asked = service.get(&format!("/v23.0/{account}?fields=whatsapp_business_account")).await;
    assert_eq!(asked.good(), json!({"id": account}));
    for stranger in [service.stranger, service.other] {
        service.get(&format!("/v23.0/{stranger}")).await.refusal(400, 100, Some(33));
    }
    assert_ne!(OTHER, TOKEN);
}

#[tokio::test]
async fn one_template_in_many_languages_is_made_or_edited_by_one_call() {
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
    let made = service.call(Method::POST, &path, &document(5)).await.good();
    let languages: Vec<&Value> =
        made["data"].as_array().unwrap().iter().map(|it| &it["language"]).collect();
    assert_eq!(languages, ["en_US", "es"]);
    // A string that holds the document, as one client sends it.
    let wrapped = json!(document(10).to_string());
    let again = service.call(Method::POST, &path, &wrapped).await.good();
    assert_eq!(again, made, "the same templates, edited");
    let id = made["data"][1]["id"].as_str().unwrap();
    let read = service.get(&format!("/v23.0/{id}")).await.good();
    assert_eq!(read["components"][1]["code_expiration_minutes"], 10, "{read}");
    let mut silent = document(5);
    silent["name"] = json!("silent");
    silent["components"][0] = json!({"type": "BODY"});
    silent["components"][1] = json!({"type": "FOOTER"});
    let made = service.call(Method::POST, &path, &silent).await.good();
    let id = made["data"][0]["id"].as_str().unwrap();
    let read = service.get(&format!("/v23.0/{id}")).await.good();
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
    service.call(Method::POST, &path, &marketing).await.refusal(400, 100, None);
    service.call(Method::POST, &path, &hello("code")).await.refusal(400, 100, None);
}

/// What has happened in the shop's account.
pub(crate) async fn events(service: &Service) -> Vec<&'static str> {
    match service.store.events(service.shop, None, 100).await.unwrap() {
        Feed::Events(events) => events.iter().map(|event| event.kind.as_str()).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn of_edits_at_the_same_time_none_is_lost_and_none_judged_by_another_template() {
    let service = Arc::new(Service::start_reviewed().await);
    for round in 0..10 {
        let mut document = hello(&format!("hello_{round}"));
        document["category"] = json!("UTILITY");
        let id = service.create(&document).await.good()["id"].as_str().unwrap().to_owned();
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
        let read = service.get(&format!("/v23.0/{id}")).await.good();
        assert_eq!((statuses[0], &read["components"][0]["text"]), (200, &json!("Good evening")));
        // A minute is too short for MARKETING: whichever comes second is refused.
        let (lifetime, category) = (read.get("message_send_ttl_seconds"), &read["category"]);
        match (statuses[1], statuses[2]) {
            (200, 400) => assert_eq!((lifetime, category), (Some(&json!(60)), &json!("UTILITY"))),
            (400, 200) => assert_eq!((lifetime, category), (None, &json!("MARKETING"))),
            other => panic!("{other:?}: {read}"),
        }
    }
}

#[tokio::test]
async fn an_upsert_takes_each_language_once_and_passes_over_what_it_does_not_know() {
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
    let made = service.call(Method::POST, &path, &document).await.good();
    let languages: Vec<&Value> =
        made["data"].as_array().unwrap().iter().map(|it| &it["language"]).collect();
    assert_eq!(languages, ["en_US", "es"]);
    let all = service.get(&service.templates()).await.good();
    assert!(all["data"].as_array().unwrap().iter().all(|it| it["name"] == "code"), "{all}");
    // Sent again it changes nothing.
    assert_eq!(service.call(Method::POST, &path, &document).await.good(), made);
    let odd = json!({"x\":1,\"name\":\"injected\",\"y": 1, "languages": ["en_US"],
        "category": "AUTHENTICATION", "components": document["components"]});
    service.call(Method::POST, &path, &odd).await.refusal(400, 100, None);
}
