//! Rendering on API v1.0 for accounts with the rulebook `whatsapp`: every kind of template, and the
//! violations of invalid values.

use axum::http::Method;
use serde_json::{Value, json};

use super::service::{Service, TOKEN};
use crate::harness::TestResponse;

async fn create(service: &Service, category: &str, components: &Value, more: &Value) -> String {
    let mut document = json!({
        "name": "template", "language": "en_US", "category": category, "components": components,
    });
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    service.create(&document).await.expect_success()["id"].as_str().unwrap().to_owned()
}

async fn render(service: &Service, id: &str, values: &Value) -> TestResponse {
    let path = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/{id}/render");
    service.call(Method::POST, &path, values).await
}

/// The texts, and the components of the message.
async fn rendered(service: &Service, id: &str, values: &Value) -> (Value, Value) {
    let mut response = render(service, id, values).await.expect_success();
    let payload = &mut response["payload"];
    assert_eq!(payload["messaging_product"], "whatsapp");
    assert_eq!(payload["template"]["name"], "template");
    assert_eq!(payload["template"]["language"], json!({"code": "en_US"}));
    let components = payload["template"]["components"].take();
    (response["texts"].take(), components)
}

/// The pointer and the rule of every violation.
async fn rejections(service: &Service, id: &str, values: &Value) -> Vec<String> {
    let response = render(service, id, values).await;
    assert_eq!(response.status, 422, "{}", response.text());
    let problem: Value = serde_json::from_str(response.text()).unwrap();
    assert_eq!(problem["type"], "/problems/invalid-values");
    let rejected = problem["violations"].as_array().unwrap().iter();
    let mut rejected: Vec<String> = rejected
        .map(|it| format!("{} {}", it["pointer"].as_str().unwrap(), it["rule"].as_str().unwrap()))
        .collect();
    rejected.sort_unstable();
    rejected
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn media(format: &str) -> Value {
    json!({"type": "HEADER", "format": format, "example": {"header_handle": ["4::aW1h"]}})
}

#[tokio::test]
async fn named_placeholders_get_values_by_name() {
    let service = Service::start().await;
    let example = json!({"body_text_named_params": [
        {"param_name": "first_name", "example": "Ada"}, {"param_name": "order", "example": "4711"}]});
    let components = json!([{
        "type": "BODY", "text": "Hello {{first_name}}, your order {{order}} is on its way to you.",
        "example": example,
    }]);
    let named = json!({"parameter_format": "NAMED"});
    let id = create(&service, "UTILITY", &components, &named).await;
    let values = json!({"body": {"order": "4711", "first_name": "Ada"}});
    let (texts, parts) = rendered(&service, &id, &values).await;
    assert_eq!(texts, json!({"body": "Hello Ada, your order 4711 is on its way to you."}));
    let by_name =
        |name: &str, value: &str| json!({"type": "text", "parameter_name": name, "text": value});
    let parameters = json!([by_name("first_name", "Ada"), by_name("order", "4711")]);
    assert_eq!(parts, json!([{"type": "body", "parameters": parameters}]));

    let values = json!({"body": {"first_nme": "Ada", "order": 4711}, "footer": "x"});
    let rejected = rejections(&service, &id, &values).await;
    assert_eq!(
        rejected,
        [
            "/body/first_name value-missing",
            "/body/first_nme value-superfluous",
            "/body/order wrong-type",
            "/footer value-superfluous",
        ]
    );
    assert_eq!(
        rejections(&service, &id, &json!({"body": ["Ada", "4711"]})).await,
        ["/body wrong-type"]
    );
}

#[tokio::test]
async fn a_header_gets_an_attachment_or_a_location() {
    let service = Service::start().await;
    let body = json!({"type": "BODY", "text": "Have a look"});
    let id = create(&service, "MARKETING", &json!([media("IMAGE"), body]), &json!({})).await;
    for (header, sent) in [
        (json!("https://shop.example/a.jpg"), json!({"link": "https://shop.example/a.jpg"})),
        (json!({"id": "2762702990552401"}), json!({"id": "2762702990552401"})),
    ] {
        let (_, parts) = rendered(&service, &id, &json!({"header": header})).await;
        let image = json!({"type": "image", "image": sent});
        assert_eq!(parts, json!([{"type": "header", "parameters": [image]}]));
    }
    let other_kind = json!({"header": "https://shop.example/a.mp4"});
    assert_eq!(rejections(&service, &id, &other_kind).await, ["/header media-kind-differs"]);
    assert_eq!(rejections(&service, &id, &json!({})).await, ["/header value-missing"]);

    let location = json!({"type": "HEADER", "format": "LOCATION"});
    let other = json!({"name": "template_with_a_location"});
    let id = create(&service, "UTILITY", &json!([location, body]), &other).await;
    let values = json!({"header": {"latitude": 91, "longitude": "13.4", "name": "Shop"}});
    let rejected = rejections(&service, &id, &values).await;
    assert_eq!(rejected, ["/header/address value-missing", "/header/latitude number-range"]);
}

#[tokio::test]
async fn each_card_has_its_own_values() {
    let service = Service::start().await;
    let card = json!({"components": [
        media("IMAGE"),
        {"type": "BODY", "text": "Only {{1}} today, so hurry up.", "example": {"body_text": [["9"]]}},
        {"type": "BUTTONS", "buttons": [
            {"type": "URL", "text": "Buy", "url": "https://shop.example/{{1}}", "example": ["a"]}]},
    ]});
    let components =
        json!([{"type": "BODY", "text": "Look"}, {"type": "CAROUSEL", "cards": [card, card]}]);
    let id = create(&service, "MARKETING", &components, &json!({})).await;
    let card = |name: &str| json!({"header": {"id": name}, "body": [name], "buttons": {"0": name}});
    let (texts, parts) = rendered(&service, &id, &json!({"cards": [card("a"), card("b")]})).await;
    assert_eq!(texts["cards"][1]["body"], "Only b today, so hurry up.");
    let sent = |index: usize, name: &str| {
        json!({"card_index": index, "components": [
            {"type": "header", "parameters": [{"type": "image", "image": {"id": name}}]},
            {"type": "body", "parameters": [text(name)]},
            {"type": "button", "sub_type": "url", "index": "0", "parameters": [text(name)]}]})
    };
    assert_eq!(parts, json!([{"type": "carousel", "cards": [sent(0, "a"), sent(1, "b")]}]));

    let values =
        json!({"cards": [card("a"), {"header": {"id": "b"}, "body": ["a\nb"]}, card("c")]});
    let rejected = rejections(&service, &id, &values).await;
    assert_eq!(
        rejected,
        [
            "/cards/1/body/0 value-line-break",
            "/cards/1/buttons/0 value-missing",
            "/cards/2 value-superfluous",
        ]
    );
}

#[tokio::test]
async fn a_one_time_code_appears_in_body_and_button() {
    let service = Service::start().await;
    let components = json!([
        {"type": "BODY", "add_security_recommendation": true},
        {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]},
    ]);
    let id = create(&service, "AUTHENTICATION", &components, &json!({})).await;
    let (texts, parts) = rendered(&service, &id, &json!({"body": "123456"})).await;
    assert_eq!(texts["buttons"], json!([{"type": "OTP", "text": "Copy code", "code": "123456"}]));
    let parameters = json!([text("123456")]);
    assert_eq!(
        parts,
        json!([
            {"type": "body", "parameters": parameters},
            {"type": "button", "sub_type": "url", "index": "0", "parameters": parameters},
        ])
    );
    let values = json!({"body": "1".repeat(16), "buttons": {"0": "123456"}});
    let rejected = rejections(&service, &id, &values).await;
    assert_eq!(rejected, ["/body too-long", "/buttons value-superfluous"]);
}

#[tokio::test]
async fn an_offer_gets_its_expiration_and_its_code() {
    let service = Service::start().await;
    let components = json!([
        {"type": "BODY", "text": "Cheaper today"},
        {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Today", "has_expiration": true}},
        {"type": "BUTTONS", "buttons": [
            {"type": "COPY_CODE", "example": "SAVE25"},
            {"type": "URL", "text": "Go", "url": "https://shop.example"},
        ]},
    ]);
    let id = create(&service, "MARKETING", &components, &json!({})).await;
    let values = json!({"offer": "2026-11-15T09:10:00Z", "buttons": {"0": "SAVE25"}});
    let (texts, parts) = rendered(&service, &id, &values).await;
    let end = json!({"expiration_time_ms": 1_794_733_800_000_i64});
    assert_eq!(texts["offer"]["expiration_time_ms"], end["expiration_time_ms"]);
    let offer = json!({"type": "limited_time_offer", "limited_time_offer": end});
    assert_eq!(parts[0], json!({"type": "limited_time_offer", "parameters": [offer]}));
    let coupon = json!({"type": "coupon_code", "coupon_code": "SAVE25"});
    assert_eq!(parts[1]["parameters"], json!([coupon]));

    let rejected =
        rejections(&service, &id, &json!({"offer": "tomorrow", "buttons": {"0": "25 %"}})).await;
    assert_eq!(rejected, ["/buttons/0 code-form", "/offer moment-form"]);
}

#[tokio::test]
async fn only_a_live_version_can_be_rendered() {
    let service = Service::start_reviewed().await;
    let components = json!([{"type": "BODY", "text": "Good morning"}]);
    let id = create(&service, "UTILITY", &components, &json!({})).await;
    let review = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/{id}/review");
    for (decision, status) in [(None, 409), (Some("approve"), 200), (Some("pause"), 409)] {
        if let Some(decision) = decision {
            service
                .call(Method::POST, &review, &json!({"decision": decision}))
                .await
                .expect_success();
        }
        let response = render(&service, &id, &json!({})).await;
        assert_eq!(response.status, status, "{decision:?}: {}", response.text());
        assert_eq!(response.text().contains("/problems/not-live"), status == 409, "{decision:?}");
    }
}

#[tokio::test]
async fn positional_placeholders_accept_the_values_of_rulebook_v1() {
    let service = Service::start().await;
    let components = json!([
        {"type": "BODY", "text": "Hello {{1}}, this is for you.", "example": {"body_text": [["Ada"]]}},
    ]);
    let id = create(&service, "UTILITY", &components, &json!({})).await;
    let (texts, parts) = rendered(&service, &id, &json!({"body": ["Grace"]})).await;
    assert_eq!(texts, json!({"body": "Hello Grace, this is for you."}));
    assert_eq!(parts, json!([{"type": "body", "parameters": [text("Grace")]}]));
}
