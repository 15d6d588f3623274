//! Rows of the rule table for elements that depend on other elements.

use galley_domain::violation::Rule;
use serde_json::{Value, json};

use super::{fixture::*, table::Row};

fn product_card(components: &[Value]) -> Value {
    let mut all = vec![json!({"type": "HEADER", "format": "PRODUCT"})];
    all.extend_from_slice(components);
    card(&all.into())
}

/// A carousel with this card twice.
fn carousel_of_two(card: &Value) -> String {
    carousel(&json!([card, card]))
}

fn spm_component() -> Value {
    json!({"type": "BUTTONS", "buttons": [{"type": "SPM"}]})
}

pub(crate) fn rows() -> Vec<Row> {
    [top_level(), headers_and_footers(), buttons_together(), offers()].concat()
}

fn top_level() -> Vec<Row> {
    let library = |name: Value| with_field("library_template_name", name);
    let option = |length: usize| with_field("bid_spec", json!({"a": "x".repeat(length - 8)}));
    vec![
        (
            Rule::NotCovered,
            library(json!("shipment_update_1")),
            "/library_template_name not-covered",
            (100, 0),
            library(Value::Null),
        ),
        (Rule::TooLong, option(4_097), "/bid_spec too-long", (100, 2_388_040), option(4_096)),
    ]
}

fn headers_and_footers() -> Vec<Row> {
    let mut code = authentication(&json!([{"type": "OTP", "otp_type": "COPY_CODE"}]));
    let bare = code.to_string();
    code["components"][0]["example"] = json!({});
    let gif = |category: &str| {
        let mut gif = image();
        gif["format"] = json!("GIF");
        template(category, &json!([{"type": "BODY", "text": "b"}, gif])).to_string()
    };
    vec![
        (
            Rule::SamplesNotAllowed,
            with_component(&json!({"type": "FOOTER", "text": "f", "example": {}})),
            "/components/1/example samples-not-allowed",
            (100, 2_388_043),
            footer("f"),
        ),
        (
            Rule::SamplesNotAllowed,
            code.to_string(),
            "/components/0/example samples-not-allowed",
            (100, 2_388_043),
            bare,
        ),
        (
            Rule::CategoryUnfit,
            gif("UTILITY"),
            "/components/1 category-unfit",
            (100, 0),
            gif("MARKETING"),
        ),
    ]
}

fn buttons_together() -> Vec<Row> {
    let items = |header: Value| {
        with_components(&json!([header, {"type": "BODY", "text": "b"},
            {"type": "BUTTONS", "buttons": [{"type": "MPM"}]}]))
    };
    let checkout = |header: Value| {
        with_components(&json!([{"type": "BODY", "text": "b"}, header,
            {"type": "BUTTONS", "buttons": [{"type": "ORDER_DETAILS"}, reply("Later")]}]))
    };
    let contact = |text: &str| button(&json!({"type": "REQUEST_CONTACT_INFO", "text": text}));
    let app = |fields: Value| {
        let mut link = link();
        link["app_deep_link"] = fields;
        button(&link)
    };
    vec![
        (
            Rule::HeaderMissing,
            items(json!({"type": "FOOTER", "text": "f"})),
            "/components/2/buttons/0 header-missing",
            (100, 2_388_043),
            items(json!({"type": "HEADER", "format": "TEXT", "text": "h"})),
        ),
        (
            Rule::CategoryUnfit,
            checkout(json!({"type": "HEADER", "format": "TEXT", "text": "h"})),
            "/components/2/buttons/0 category-unfit",
            (100, 0),
            checkout(image()),
        ),
        (
            Rule::NotAChoice,
            contact("Give me your number"),
            "/components/1/buttons/0/text not-a-choice",
            (100, 2_388_060),
            contact("Share contact info"),
        ),
        (
            Rule::Required,
            app(json!({"meta_app_id": 7})),
            "/components/1/buttons/0/app_deep_link/android_deep_link required",
            (100, 2_388_050),
            app(json!({"meta_app_id": 7, "android_deep_link": "shop://x",
                "android_fallback_playstore_url": "https://play.example/{{1}}"})),
        ),
    ]
}

fn offers() -> Vec<Row> {
    let offer = |buttons: Value| offer(true, &buttons).to_string();
    let coupon = |length: usize| json!({"type": "COPY_CODE", "example": "A".repeat(length)});
    let good = || offer(json!([code(), link()]));
    vec![
        (
            Rule::OfferButtons,
            offer(json!([code(), link(), reply("No")])),
            "/components/2/buttons/2 offer-buttons",
            (100, 0),
            good(),
        ),
        (
            Rule::OfferButtons,
            offer(json!([code(), link(), link()])),
            "/components/2/buttons/2 offer-buttons",
            (100, 0),
            good(),
        ),
        (
            Rule::TooLong,
            offer(json!([coupon(16), link()])),
            "/components/2/buttons/0/example too-long",
            (100, 2_388_040),
            offer(json!([coupon(15), link()])),
        ),
    ]
}

#[test]
fn a_product_card_has_one_button_and_no_body() {
    let buttons = |buttons: Value| json!({"type": "BUTTONS", "buttons": buttons});
    let body = json!({"type": "BODY", "text": "b"});
    for (components, line) in [
        (vec![spm_component()], None),
        (vec![buttons(json!([link()]))], None),
        (vec![body, spm_component()], Some("/components/1 component-unfit")),
        (
            vec![buttons(json!([{"type": "SPM"}, link()]))],
            Some("/components/1/buttons/1 button-alone"),
        ),
        (vec![buttons(json!([reply("No")]))], Some("/components/0 product-header")),
    ] {
        let lines: Vec<String> = (0..2)
            .filter_map(|card| Some(format!("/components/1/cards/{card}{}", line?)))
            .collect();
        assert_eq!(
            violations_of(&carousel_of_two(&product_card(&components))),
            lines,
            "{components:?}"
        );
    }
}
