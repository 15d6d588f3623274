//! Rendered templates of the kinds that no example of the API description shows.

use galley_domain::{document::Document, render, rulebook::WHATSAPP, template::Template};
use serde_json::{Value, json};

/// The renderings, one of each kind.
pub(crate) fn all() -> Vec<Value> {
    let media = |format: &str| json!({"type": "HEADER", "format": format, "example": {"header_handle": ["4::aW1h"]}});
    let place =
        json!({"latitude": 52.52, "longitude": 13.4, "name": "Shop", "address": "High Street"});
    let product = json!({"product_retailer_id": "k1", "catalog_id": "c"});
    let mut rendered = Vec::new();
    for (header, value) in [
        (media("IMAGE"), json!({"id": "1"})),
        (media("VIDEO"), json!("https://shop.example/a.mp4")),
        (media("GIF"), json!("https://shop.example/a.mp4")),
        (json!({"type": "HEADER", "format": "LOCATION"}), place),
        (
            json!({"type": "HEADER", "format": "TEXT", "text": "Order {{1}}", "example": {"header_text": ["1"]}}),
            json!(["4711"]),
        ),
    ] {
        rendered.push(render("MARKETING", &[header], &json!({"header": value})));
    }
    let item = json!({"product_retailer_id": "k1"});
    let sections = json!([{"title": "New", "product_items": [item]}]);
    let text = |kind: &str| json!({"type": kind, "text": "Go"});
    for (category, button, value) in [
        ("MARKETING", text("QUICK_REPLY"), json!("yes")),
        (
            "MARKETING",
            json!({"type": "PHONE_NUMBER", "text": "Call", "phone_number": "15550001111"}),
            json!(null),
        ),
        (
            "MARKETING",
            json!({"type": "FLOW", "text": "Go", "flow_id": "1"}),
            json!({"flow_token": "t", "flow_action_data": {"a": [1]}}),
        ),
        ("MARKETING", text("CATALOG"), json!({"thumbnail_product_retailer_id": "k1"})),
        ("UTILITY", text("ORDER_DETAILS"), json!({"reference_id": "4711", "total": {"value": 1}})),
        ("MARKETING", text("VOICE_CALL"), json!({"ttl_minutes": 60, "payload": "p"})),
        ("MARKETING", json!({"type": "REQUEST_CONTACT_INFO"}), json!(null)),
    ] {
        let buttons = json!({"type": "BUTTONS", "buttons": [button]});
        rendered.push(render(category, &[buttons], &json!({"buttons": {"0": value}})));
    }
    let mpm = json!({"type": "BUTTONS", "buttons": [text("MPM")]});
    let header = json!({"type": "HEADER", "format": "TEXT", "text": "New"});
    let products = json!({"thumbnail_product_retailer_id": "k1", "sections": sections});
    rendered.push(render("MARKETING", &[header, mpm], &json!({"buttons": {"0": products}})));
    let spm = json!({"type": "BUTTONS", "buttons": [{"type": "SPM"}]});
    let header = json!({"type": "HEADER", "format": "PRODUCT"});
    rendered.push(render("MARKETING", &[header, spm], &json!({"header": product})));
    let call = json!({"type": "CALL_PERMISSION_REQUEST"});
    rendered.push(render("UTILITY", &[call], &json!({})));
    rendered
}

fn render(category: &str, beside_the_body: &[Value], values: &Value) -> Value {
    let mut components = vec![json!({"type": "BODY", "text": "Good morning"})];
    components.extend(beside_the_body.iter().cloned());
    let document = json!({
        "name": "n", "language": "en_US", "category": category, "components": components,
    });
    let (document, values) = (document.to_string(), values.to_string());
    let document = Document::parse(document.as_bytes()).unwrap();
    let template = Template::read(&document, &WHATSAPP).unwrap();
    let values = Document::parse(values.as_bytes()).unwrap();
    json!(render::render(&template, &WHATSAPP, &values).unwrap())
}
