//! Results of whole documents, and violations of the target rulebook.

use galley_domain::{
    convert::Direction::{self, ToV1, ToWhatsapp},
    rulebook::{V1, WHATSAPP},
};
use serde_json::{Value, json};

use super::fixture::{body, converted, try_convert, v1, whatsapp, with};

#[test]
fn a_document_that_both_rulebooks_support_is_unchanged() {
    let components = json!([
        {"type": "HEADER", "format": "TEXT", "text": "Order {{1}}", "example": {"header_text": ["4711"]}},
        {"type": "BODY", "text": "Hi {{1}}, your order {{2}} is on its way to you.",
            "example": {"body_text": [["Ada", "4711"]]}},
        {"type": "FOOTER", "text": "The shop"},
        {"type": "BUTTONS", "buttons": [
            {"type": "QUICK_REPLY", "text": "Thanks"},
            {"type": "URL", "text": "Track", "url": "https://shop.example/{{1}}", "example": "4711"},
            {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
            {"type": "COPY_CODE", "example": "SAVE25"},
        ]},
    ]);
    let document = v1(&components);
    let (there, notes) = converted(&document, ToWhatsapp);
    assert_eq!((&there, notes), (&document, vec![]));
    assert_eq!(converted(&there, ToV1), (document, vec![]));
}

#[test]
fn members_have_the_order_of_the_rulebook() {
    let document = json!({"components": [{"text": "Hi", "type": "body"}], "allow_category_change": true,
        "category": "utility", "language": "en_US", "name": "n", "colour": "red"});
    let conversion = try_convert(&document, ToWhatsapp).unwrap();
    assert_eq!(
        serde_json::to_string(conversion.document.root()).unwrap(),
        r#"{"name":"n","language":"en_US","category":"UTILITY","allow_category_change":true,"components":[{"type":"BODY","text":"Hi"}]}"#
    );
}

#[test]
fn names_and_languages_are_adapted_to_the_target_rulebook() {
    for (name, becomes) in [
        ("Spring Sale 2026!", "spring_sale_2026"),
        ("caf\u{e9}-menu", "cafe_menu"),
        ("\u{c4}rger & Stra\u{df}e", "arger_strasse"),
        ("A\u{308}rger", "arger"),
        ("\u{130}zmir", "izmir"),
        ("__a__", "__a__"),
        ("a  b", "a_b"),
        ("\u{65e5}\u{672c}", "\u{65e5}\u{672c}"),
    ] {
        let (there, _) = converted(&with(v1(&json!([body()])), "name", json!(name)), ToWhatsapp);
        assert_eq!(there["name"], becomes);
    }
    let language = |document: Value, code: &str, direction: Direction| {
        let (there, notes) = converted(&with(document, "language", json!(code)), direction);
        (there["language"].as_str().unwrap().to_owned(), notes)
    };
    let there = |code: &str| language(v1(&json!([body()])), code, ToWhatsapp);
    let back = |code: &str| language(whatsapp(&json!([body()])), code, ToV1);
    assert_eq!(there("pt_AO").0, "pt_PT");
    assert_eq!(there("tl_PH").0, "fil");
    assert_eq!(there("hi_IN").0, "hi");
    assert_eq!(
        there("kw_GB"),
        ("kw_GB".to_owned(), vec!["incomplete language-unsupported /language".to_owned()])
    );
    assert_eq!(back("es").0, "es_ES");
    assert_eq!(
        back("fil"),
        ("fil".to_owned(), vec!["incomplete language-form /language".to_owned()])
    );
}

#[test]
fn attachments_change_their_format_and_keep_the_url_of_the_sample() {
    for (format, url) in [
        ("IMAGE", "https://shop.example/a.jpg"),
        ("VIDEO", "https://shop.example/a.mp4?x=1"),
        ("DOCUMENT", "https://shop.example/a.PDF"),
    ] {
        let header = json!({"type": "HEADER", "format": "MEDIA", "example": {"media_url": url}});
        let document = v1(&json!([header, body()]));
        let (there, notes) = converted(&document, ToWhatsapp);
        let header =
            json!({"type": "HEADER", "format": format, "example": {"header_handle": [url]}});
        assert_eq!(there["components"][0], header);
        assert_eq!(notes, ["incomplete sample-upload /components/0/example/media_url"]);
        assert_eq!(converted(&there, ToV1), (document, vec![]));
    }
    let header =
        json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::aW1h"]}});
    let (there, notes) = converted(&whatsapp(&json!([header, body()])), ToV1);
    assert_eq!(there["components"][0], json!({"type": "HEADER", "format": "MEDIA"}));
    // The rulebook's violation about the missing sample is not repeated.
    assert_eq!(notes, ["incomplete sample-address /components/0/example/header_handle"]);
}

#[test]
fn named_placeholders_and_their_samples_become_numbered() {
    let example = |name: &str, value: &str| json!({"param_name": name, "example": value});
    let components = json!([
        {"type": "HEADER", "format": "TEXT", "text": "For {{who}}",
            "example": {"header_text_named_params": [example("who", "Ada")]}},
        {"type": "BODY", "text": "Hello {{first}}, your order {{order}} is on its way, {{first}} dear.",
            "example": {"body_text_named_params": [example("order", "4711"), example("first", "Ada")]}},
    ]);
    let document = with(whatsapp(&components), "parameter_format", json!("named"));
    let conversion = try_convert(&document, ToV1).unwrap();
    let notes = conversion.notes.iter().map(|it| &*it.message).collect::<Vec<_>>();
    assert_eq!(
        notes,
        ["`{{who}}` becomes `{{1}}`", "`{{first}}` becomes `{{1}}`, `{{order}}` becomes `{{2}}`"]
    );
    let (there, _) = converted(&document, ToV1);
    assert_eq!(
        there["components"],
        json!([
            {"type": "HEADER", "format": "TEXT", "text": "For {{1}}", "example": {"header_text": ["Ada"]}},
            {"type": "BODY", "text": "Hello {{1}}, your order {{2}} is on its way, {{1}} dear.",
                "example": {"body_text": [["Ada", "4711"]]}},
        ])
    );
}

#[test]
fn pointers_refer_to_the_source_even_after_dropped_components() {
    let long = "x".repeat(26);
    // A component and a button before it are dropped; violations still point into the source.
    let components = json!([
        {"type": "HEADER", "format": "LOCATION"},
        {"type": "BUTTONS", "buttons": [
            {"type": "VOICE_CALL", "text": "Call"},
            {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
        ]},
        body(),
    ]);
    let (there, notes) = converted(&whatsapp(&components), ToV1);
    assert_eq!(there["components"].as_array().unwrap().len(), 2);
    assert_eq!(there["components"][0]["buttons"].as_array().unwrap().len(), 1);
    assert_eq!(
        notes,
        ["lost component-lost /components/0", "lost button-lost /components/1/buttons/0"]
    );

    let components = json!([body(), {"type": "BUTTONS", "buttons": [
        {"type": "QUICK_REPLY", "text": "Yes"}, {"type": "QUICK_REPLY", "text": long}]}]);
    let (_, notes) = converted(&v1(&components), ToWhatsapp);
    assert_eq!(notes, ["incomplete too-long /components/1/buttons/1/text"]);
}

#[test]
fn a_one_time_code_is_delivered_by_an_otp_button() {
    let components = json!([
        {"type": "HEADER", "format": "TEXT", "text": "Log in"},
        {"type": "BODY", "text": "Your code is {{1}}.", "example": {"body_text": [["1234"]]}},
        {"type": "BUTTONS", "buttons": [
            {"type": "QUICK_REPLY", "text": "It was not me"},
            {"type": "COPY_CODE", "example": "1234"},
            {"type": "COPY_CODE", "example": "1234"},
        ]},
    ]);
    let document = with(v1(&components), "category", json!("AUTHENTICATION"));
    let (there, notes) = converted(&document, ToWhatsapp);
    let otp = json!({"type": "OTP", "otp_type": "COPY_CODE"});
    let expected = json!([{"type": "BODY"}, {"type": "BUTTONS", "buttons": [otp]}]);
    assert_eq!(there["components"], expected);
    assert_eq!(
        notes,
        [
            "lost component-lost /components/0",
            "lost text-of-whatsapp /components/1/text",
            "lost button-lost /components/2/buttons/0",
            "changed button-replaced /components/2/buttons/1",
            "lost button-lost /components/2/buttons/2",
        ]
    );
}

#[test]
fn an_invalid_source_is_not_converted() {
    let document = json!({"name": "n"});
    for direction in [ToWhatsapp, ToV1] {
        let refused = try_convert(&document, direction).unwrap_err();
        assert!(refused.listed().iter().any(|it| it.rule.id() == "required"));
    }
}

#[test]
fn conversions_exist_between_different_rulebooks_only() {
    assert_eq!(Direction::between(&V1, &WHATSAPP), Some(ToWhatsapp));
    assert_eq!(Direction::between(&WHATSAPP, &V1), Some(ToV1));
    assert_eq!(Direction::between(&V1, &V1), None);
    assert_eq!(Direction::between(&WHATSAPP, &WHATSAPP), None);
}
