//! Archiving templates, previews of authentication templates, and comparing templates.

use axum::http::Method;
use serde_json::{Value, json};

use super::emulator::{Emulator, order};
use crate::graph::service::{Service, TOKEN, hello};

#[tokio::test]
async fn templates_are_archived_and_taken_back_one_by_one() {
    let service = Service::start_reviewed().await;
    let create = async |name: &str, decision: &str| {
        let id = service.create_named(name, "en_US").await;
        let path = format!("/api/v1.0/1/{TOKEN}/message_templates/{id}/review");
        if !decision.is_empty() {
            let decision = json!({"decision": decision, "reason": "SCAM"});
            let reviewed = service.call(Method::POST, &path, &decision).await;
            assert_eq!(reviewed.status, 200, "{reviewed:?}");
        }
        id
    };
    let approved = create("approved", "approve").await;
    let rejected = create("rejected", "reject").await;
    let pending = create("pending", "").await;
    // One client sends the ids as one text, without a version, to another host.
    let path = format!("/{}/message_templates", service.shop);
    let ids = json!({"hsm_ids": format!("{approved}, {rejected},{pending},{approved},7")});
    let archived = service.call(Method::POST, &format!("{path}/archive"), &ids).await;
    let archived = archived.expect_success();
    assert_eq!(archived["archived_templates"], json!([approved, rejected]));
    let failed = archived["failed_templates"].as_object().unwrap();
    assert_eq!(failed.len(), 2, "{archived}");
    let reason = failed[&pending].as_str().unwrap();
    assert!(reason.contains("PENDING, which does not allow `archive`"), "{reason}");
    assert!(failed["7"].as_str().unwrap().contains("does not exist"), "{archived}");

    let statuses =
        service.get(&format!("{}?status=ARCHIVED&fields=name", service.templates())).await;
    assert_eq!(statuses.expect_success()["data"].as_array().unwrap().len(), 2);
    let ids = json!({"hsm_ids": [approved.parse::<u64>().unwrap(), rejected]});
    let back = service.call(Method::POST, &format!("{path}/unarchive"), &ids).await;
    let expected = json!({"unarchived_templates": [approved, rejected], "failed_templates": {}});
    assert_eq!(back.expect_success(), expected);
    for (id, status) in [(&approved, "APPROVED"), (&rejected, "REJECTED")] {
        let shown = service.get(&format!("/v23.0/{id}?fields=status")).await.expect_success();
        assert_eq!(shown["status"], status);
    }
    for invalid in
        [json!({}), json!({"hsm_ids": []}), json!({"hsm_ids": ","}), json!({"hsm_ids": {}})]
    {
        let response = service.call(Method::POST, &format!("{path}/archive"), &invalid).await;
        response.expect_error(400, 100, None);
    }
}

#[tokio::test]
async fn an_archived_template_is_not_sent() {
    let emulator = Emulator::start().await;
    let id = emulator.create_named("order_shipped").await;
    let path = format!("{}/archive", emulator.templates());
    emulator.call(Method::POST, &path, &json!({"hsm_ids": [id]})).await.expect_success();
    let refused = emulator.try_send(&super::emulator::message("order_shipped", &["Ada"])).await;
    assert_eq!(refused.json()["error"]["code"], 132_001);
}

#[tokio::test]
async fn previews_show_metas_texts() {
    let service = Service::start().await;
    let path = format!("/v23.0/{}/message_template_previews?category=AUTHENTICATION", service.shop);
    let query = "&languages=en_US,es_ES&add_security_recommendation=true&code_expiration_minutes=10&button_types=OTP";
    let previews = service.get(&format!("{path}{query}")).await.expect_success();
    let expected = json!({"data": [
        {
            "body": "*{{1}}* is your verification code. For your security, do not share this code.",
            "buttons": [{"autofill_text": "Autofill", "text": "Copy code"}],
            "footer": "This code expires in 10 minutes.", "language": "en_US",
        },
        {
            "body": "Tu código de verificación es *{{1}}*. Por tu seguridad, no lo compartas.",
            "buttons": [{"autofill_text": "Autocompletar", "text": "Copiar código"}],
            "footer": "Este código caduca en 10 minutos.", "language": "es_ES",
        },
    ]});
    assert_eq!(previews, expected);
    let all = service.get(&path).await.expect_success();
    assert!(all["data"].as_array().unwrap().len() > 100);
    assert_eq!(
        all["data"][0],
        json!({"body": "*{{1}}* is your verification code.", "language": "af"})
    );
    for invalid in ["&languages=xx", "&code_expiration_minutes=91", "&button_types=URL"] {
        service.get(&format!("{path}{invalid}")).await.expect_error(400, 100, None);
    }
    let other = path.replace("AUTHENTICATION", "UTILITY");
    service.get(&other).await.expect_error(400, 100, None);
}

#[tokio::test]
async fn templates_are_compared_by_the_messages_of_the_sandbox() {
    let emulator = Emulator::start().await;
    let one = emulator.create_named("one").await;
    let two = emulator.create_named("two").await;
    emulator.send_to("one", "15550000001").await;
    emulator.advance("3600s").await;
    emulator.send_to("one", "15550000001").await;
    emulator.send_to("two", "15550000001").await;
    let start = 1_794_744_000; // 2026-11-15T12:00:00Z
    let compare = async |start: i64, end: i64| {
        let path = format!("/v23.0/{one}/compare?template_ids=[{two}]&start={start}&end={end}");
        emulator.get(&path).await.expect_success()["data"].clone()
    };
    let all = compare(start, start + 7_200).await;
    let number = |id: &str, value: u64| json!({"key": id, "value": value});
    assert_eq!(all[0]["order_by_relative_metric"], json!([one, two]));
    assert_eq!(all[1]["number_values"], json!([number(&one, 2), number(&two, 1)]));
    assert_eq!(all[2]["string_values"], json!([]));
    let first = compare(start, start + 60).await;
    assert_eq!(first[1]["number_values"], json!([number(&one, 1), number(&two, 0)]));
    let backwards = format!("/v23.0/{one}/compare?template_ids=[{two}]&start=9&end=9");
    emulator.get(&backwards).await.expect_error(400, 100, None);

    let service = Service::start().await;
    let id = service.create(&hello("hello")).await.expect_success()["id"].clone();
    let path = format!("/v23.0/{}/compare?template_ids=[1]&start=1&end=2", id.as_str().unwrap());
    let error = service.get(&path).await.expect_error(404, 100, Some(33));
    assert_eq!(error["galley_problem"], "not-an-emulator");
    assert!(error["message"].as_str().unwrap().contains("no analytics"), "{error}");
}

#[tokio::test]
async fn the_quality_of_a_template_is_shown_and_filtered() {
    let emulator = Emulator::start().await;
    for name in ["order_quality_green", "order_quality_red", "plain", "order_to_marketing"] {
        emulator.create(&order(name)).await.expect_success();
    }
    let list = async |query: &str| {
        let path = format!("{}?fields=name,quality_score{query}", emulator.templates());
        emulator.get(&path).await.expect_success()
    };
    let names = |list: &Value| -> Vec<String> {
        let data = list["data"].as_array().unwrap().iter();
        data.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    let red = list("&quality_score=red&summary=total_count").await;
    assert_eq!(names(&red), ["order_quality_red"]);
    assert_eq!(red["data"][0]["quality_score"]["score"], "RED");
    assert_eq!(red["summary"]["total_count"], 1);
    let several = list("&quality_score=GREEN,UNKNOWN&limit=2").await;
    assert_eq!(names(&several), ["order_to_marketing", "plain"]);
    let after = several["paging"]["cursors"]["after"].as_str().unwrap();
    let rest = list(&format!("&quality_score=GREEN,UNKNOWN&after={after}")).await;
    assert_eq!(names(&rest), ["order_quality_green"]);

    let path = format!("{}?fields=name,category,correct_category", emulator.templates());
    let announced = emulator.get(&path).await.expect_success()["data"][0].clone();
    assert_eq!(announced["category"], "UTILITY");
    assert_eq!(announced["correct_category"], "MARKETING");
    emulator.advance("86400s").await;
    let changed = emulator.get(&path).await.expect_success()["data"][0].clone();
    assert_eq!(changed["category"], "MARKETING");
    assert_eq!(changed["correct_category"], "MARKETING");
}
