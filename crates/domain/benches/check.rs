//! The cost of reading and checking the sample document, compared with `serde_json` into a struct.

use galley_domain::{
    document::Document,
    rulebook::{V1, WHATSAPP},
    template::Template,
};
use serde::Deserialize;

static SAMPLE: &[u8] = include_bytes!("../../../bench/sample.json");

/// A template with every common component.
static FULL_WHATSAPP: &[u8] = br#"{
    "name": "seasonal_promotion", "language": "en_US", "category": "MARKETING",
    "parameter_format": "POSITIONAL", "allow_category_change": true,
    "message_send_ttl_seconds": 43200, "cta_url_link_tracking_opted_out": false,
    "components": [
        {"type": "HEADER", "format": "TEXT", "text": "Our {{1}} is on!", "example": {"header_text": ["Summer Sale"]}},
        {"type": "BODY", "text": "Hello {{1}}, shop now through {{2}} and use code {{3}} to get {{4}} off of all merchandise. We look forward to your visit, as always, and hope that you find what you like.", "example": {"body_text": [["Ada", "the end of August", "25OFF", "25%"]]}},
        {"type": "FOOTER", "text": "Use the buttons below to manage your marketing subscriptions"},
        {"type": "BUTTONS", "buttons": [
            {"type": "QUICK_REPLY", "text": "Unsubscribe from Promos"},
            {"type": "QUICK_REPLY", "text": "Unsubscribe from All"},
            {"type": "URL", "text": "Shop", "url": "https://www.shop.example/promo/{{1}}", "example": ["summer2026"]},
            {"type": "URL", "text": "About us", "url": "https://www.shop.example/about"},
            {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "15550051310"},
            {"type": "COPY_CODE", "example": "250FF"}
        ]}
    ]
}"#;

fn main() {
    divan::main();
}

#[divan::bench]
fn read_and_check() -> Template {
    let document = Document::parse(divan::black_box(SAMPLE)).expect("the sample is JSON");
    Template::read(&document, &V1).expect("the sample is valid")
}

/// What a create does: also counts the warnings.
#[divan::bench]
fn read_and_check_with_warnings() -> usize {
    let document = Document::parse(divan::black_box(SAMPLE)).expect("the sample is JSON");
    Template::check(&document, &V1).warnings.count()
}

#[divan::bench]
fn read_and_check_a_full_whatsapp_template() -> Template {
    let document = Document::parse(divan::black_box(FULL_WHATSAPP)).expect("the template is JSON");
    Template::read(&document, &WHATSAPP).expect("the template is valid")
}

#[divan::bench]
fn serde_json_into_a_struct() -> PlainTemplate {
    serde_json::from_slice(divan::black_box(SAMPLE)).expect("the sample is JSON")
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the cost of deserialising is measured")]
struct PlainTemplate {
    name: String,
    language: String,
    category: String,
    allow_category_change: bool,
    components: Vec<Component>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the cost of deserialising is measured")]
struct Component {
    r#type: String,
    format: Option<String>,
    text: Option<String>,
    example: Option<Example>,
    buttons: Option<Vec<Button>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the cost of deserialising is measured")]
struct Example {
    media_url: Option<String>,
    header_text: Option<Vec<String>>,
    body_text: Option<Vec<Vec<String>>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the cost of deserialising is measured")]
struct Button {
    r#type: String,
    text: Option<String>,
    url: Option<String>,
    phone_number: Option<String>,
    example: Option<String>,
}
