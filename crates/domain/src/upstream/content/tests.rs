//! Contents that are equal although a provider rewrites them, and contents that differ.

use serde_json::{Value, json};

use super::*;
use crate::{document::Document, rulebook::WHATSAPP};

fn of(document: &Value) -> ComparableContent {
    comparable(Document::parse(document.to_string().as_bytes()).unwrap().root())
}

/// A template as it is sent.
fn sent() -> Value {
    json!({
        "name": "order", "language": "en_US", "category": "UTILITY",
        "parameter_format": "positional",
        "message_send_ttl_seconds": 3600,
        "cta_url_link_tracking_opted_out": true,
        "degrees_of_freedom_spec": {"creative_features_spec": {
            "image_touchups": {"enroll_status": "OPT_OUT"},
            "add_text_overlay": {"enroll_status": "OPT_IN"},
        }},
        "components": [
            {"type": "buttons", "buttons": [
                {"type": "url", "text": "Track", "url": "https://x.example/t/{{1}}", "example": "abc"},
                {"type": "phone_number", "text": "Call", "phone_number": "+15550001111"},
                {"type": "flow", "text": "Rate", "flow_id": "9", "flow_action": "navigate"},
                {"type": "copy_code", "example": "SAVE10"},
            ]},
            {"type": "header", "format": "image", "example": {"header_handle": ["4::aW1hZ2U="]}},
            {"type": "body", "text": "Hello {{1}}, your order {{2}} is here.",
                "example": {"body_text": ["Ann", "17"]}},
            {"type": "footer", "text": "Thanks"},
        ],
    })
}

/// The same template as Meta shows it.
fn shown() -> Value {
    json!({
        "id": "7", "name": "order", "language": "en_US", "status": "APPROVED",
        "category": "MARKETING", "previous_category": "UTILITY", "sub_category": "CUSTOM",
        "quality_score": {"score": "GREEN"}, "rejected_reason": "NONE",
        "parameter_format": "POSITIONAL",
        "message_send_ttl_seconds": 3600,
        "cta_url_link_tracking_opted_out": true,
        "degrees_of_freedom_spec": {"creative_features_spec": [
            {"key": "add_text_overlay", "value": {"enroll_status": "OPT_IN"}},
            {"key": "image_touchups", "value": {"enroll_status": "OPT_OUT"}},
        ]},
        "components": [
            {"type": "HEADER", "format": "IMAGE",
                "example": {"header_handle": ["https://scontent.example/v/t61?oe=66F"]}},
            {"type": "BODY", "text": "Hello {{1}}, your order {{2}} is here.",
                "example": {"body_text": [["Ann", "17"]]}},
            {"type": "FOOTER", "text": "Thanks", "example": {}},
            {"type": "BUTTONS", "buttons": [
                {"type": "URL", "text": "Track", "url": "https://x.example/t/{{1}}",
                    "example": ["https://x.example/t/abc"]},
                {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
                {"type": "FLOW", "text": "Rate", "flow_id": "9"},
                {"type": "COPY_CODE", "example": ["SAVE10"]},
            ]},
        ],
    })
}

#[test]
fn what_meta_rewrites_is_equal() {
    assert_eq!(of(&sent()), of(&shown()));
    assert_eq!(of(&sent()).key(), of(&shown()).key());
}

#[test]
fn what_meta_adds_by_default_is_equal() {
    let short = json!({"category": "MARKETING", "components": [{"type": "BODY", "text": "Hi"}]});
    let long = json!({
        "category": "MARKETING", "parameter_format": "POSITIONAL", "sub_category": null,
        "message_send_ttl_seconds": 2_592_000, "cta_url_link_tracking_opted_out": false,
        "components": [{"text": "Hi", "type": "BODY", "example": {"body_text": []}, "x": null, "y": ""}],
    });
    assert_eq!(of(&short), of(&long));
    let unlimited = json!({"category": "UTILITY", "message_send_ttl_seconds": -1,
        "components": [{"type": "BODY", "text": "Hi"}]});
    assert_eq!(of(&short), of(&unlimited));
}

#[test]
fn every_real_change_is_different() {
    let base = of(&shown());
    let edits: [(&str, Value); 23] = [
        ("/components/1/text", json!("Hello {{1}}, your order {{2}} is there.")),
        ("/components/1/text", json!("Hello {{1}}, your order {{2}} is here. ")),
        ("/components/1/example/body_text/0/0", json!("Bob")),
        ("/components/1/example/body_text/0/0", json!("")),
        ("/components/0/format", json!("VIDEO")),
        ("/components/0/example/header_handle", json!([])),
        ("/components/2/text", json!("Thank you")),
        ("/components/2", json!({"type": "UNHEARD_OF", "members": [1, 2]})),
        ("/components/3/buttons/0/text", json!("Follow")),
        ("/components/3/buttons/0/url", json!("https://y.example/t/{{1}}")),
        ("/components/3/buttons/0/example/0", json!("https://x.example/t/abd")),
        ("/components/3/buttons/1/phone_number", json!("+15550001112")),
        ("/components/3/buttons/2/flow_id", json!("8")),
        ("/components/3/buttons/3/example/0", json!("SAVE20")),
        ("/components/3/buttons/3", json!({"type": "QUICK_REPLY", "text": "Stop"})),
        ("/components/3/buttons", json!([])),
        ("/components", json!([])),
        ("/parameter_format", json!("NAMED")),
        ("/sub_category", json!("ORDER_STATUS")),
        ("/message_send_ttl_seconds", json!(7200)),
        ("/message_send_ttl_seconds", json!(null)),
        ("/cta_url_link_tracking_opted_out", json!(false)),
        ("/degrees_of_freedom_spec/creative_features_spec/0/value/enroll_status", json!("OPT_OUT")),
    ];
    for (pointer, value) in edits {
        let mut changed = shown();
        *changed.pointer_mut(pointer).unwrap() = value.clone();
        assert_ne!(of(&changed), base, "{pointer} {value}");
        assert_ne!(of(&changed).key(), base.key());
    }
    for (pointer, key) in
        [("/components/1", "new_member"), ("/components/3/buttons/0", "new_member")]
    {
        let mut changed = shown();
        changed.pointer_mut(pointer).unwrap()[key] = json!({"deep": [true]});
        assert_ne!(of(&changed), base, "an unknown member of {pointer}");
    }
    let mut swapped = shown();
    swapped.pointer_mut("/components/3/buttons").unwrap().as_array_mut().unwrap().swap(0, 1);
    assert_ne!(of(&swapped), base, "the order of buttons");
}

#[test]
fn what_the_provider_owns_does_not_count() {
    let base = of(&shown());
    for (key, value) in [
        ("category", json!("UTILITY")),
        ("status", json!("REJECTED")),
        ("quality_score", json!({"score": "RED"})),
        ("id", json!("8")),
        ("last_updated_time", json!(1)),
    ] {
        let mut changed = shown();
        changed[key] = value;
        assert_eq!(of(&changed), base, "{key}");
    }
    let mut renewed = shown();
    *renewed.pointer_mut("/components/0/example/header_handle/0").unwrap() = json!("https://other");
    assert_eq!(of(&renewed), base, "links to samples expire");
}

#[test]
fn named_samples_have_no_order() {
    let of_samples = |samples: Value| {
        of(&json!({"parameter_format": "NAMED", "components": [{"type": "BODY",
            "text": "{{a}} {{b}}", "example": {"body_text_named_params": samples}}]}))
    };
    let sample = |name: &str, value: &str| json!({"param_name": name, "example": value});
    let one = of_samples(json!([sample("a", "1"), sample("b", "2")]));
    assert_eq!(one, of_samples(json!([sample("b", "2"), sample("a", "1")])));
    assert_ne!(one, of_samples(json!([sample("a", "2"), sample("b", "1")])));
}

#[test]
fn a_bare_sample_is_a_list_of_one() {
    let body = |sample: Value| {
        of(
            &json!({"components": [{"type": "BODY", "text": "Hi {{1}}!", "example": {"body_text": sample}}]}),
        )
    };
    assert_eq!(body(json!("Ann")), body(json!([["Ann"]])));
    assert_eq!(body(json!(["Ann"])), body(json!([["Ann"]])));
    let header = |sample: Value| {
        of(
            &json!({"components": [{"type": "HEADER", "format": "TEXT", "text": "Hi {{1}}", "example": {"header_text": sample}}]}),
        )
    };
    assert_eq!(header(json!("Ann")), header(json!(["Ann"])));
    assert_ne!(header(json!("Ann")), header(json!(["Bob"])));
}

#[test]
fn cards_are_compared_like_templates() {
    let carousel = |handle: &str, body: &str, is_shown: bool| {
        let header =
            json!({"type": "header", "format": "image", "example": {"header_handle": [handle]}});
        let body = json!({"type": "body", "text": body});
        let components = if is_shown { json!([body, header]) } else { json!([header, body]) };
        of(&json!({"components": [{"type": "CAROUSEL", "cards": [{"components": components}]}]}))
    };
    assert_eq!(carousel("4::a", "One", false), carousel("https://b", "One", true));
    assert_ne!(carousel("4::a", "One", false), carousel("4::a", "Two", false));
}

/// An authentication template as it is sent.
fn code_sent(security: bool, minutes: u8, otp_type: &str) -> Value {
    json!({"category": "AUTHENTICATION", "message_send_ttl_seconds": 600, "components": [
        {"type": "BODY", "add_security_recommendation": security},
        {"type": "FOOTER", "code_expiration_minutes": minutes},
        {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": otp_type, "autofill_text": "Fill",
            "supported_apps": [{"package_name": "com.example", "signature_hash": "K8a/AINcGX7"}]}]},
    ]})
}

/// The same as Meta shows it, with texts of its own.
fn code_shown(security: bool, minutes: u8, otp_type: &str) -> Value {
    let url = |code: &str| {
        format!(
            "https://www.whatsapp.com/otp/code/?otp_type={otp_type}&code_expiration_minutes={minutes}&code=otp{code}"
        )
    };
    json!({"category": "AUTHENTICATION", "parameter_format": "POSITIONAL", "components": [
        {"type": "BODY", "text": "*{{1}}* ist dein Code.", "add_security_recommendation": security,
            "example": {"body_text": [["123456"]]}},
        {"type": "FOOTER", "text": "Läuft ab.", "code_expiration_minutes": minutes},
        {"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Code kopieren", "url": url("{{1}}"),
            "example": [url("123456")]}]},
    ]})
}

#[test]
fn the_texts_that_meta_writes_for_codes_do_not_count() {
    let sent = code_sent(true, 5, "one_tap");
    assert_eq!(compare(&sent, &code_shown(true, 5, "ONE_TAP")), ContentMatch::Alike);
    let mut without_footer = code_shown(true, 5, "ONE_TAP");
    without_footer["components"].as_array_mut().unwrap().remove(1);
    for shown in [
        code_shown(false, 5, "ONE_TAP"),
        code_shown(true, 6, "ONE_TAP"),
        code_shown(true, 5, "COPY_CODE"),
        without_footer,
    ] {
        assert_eq!(compare(&sent, &shown), ContentMatch::Different, "{shown}");
    }
    let empty =
        json!({"category": "AUTHENTICATION", "components": [{"type": "BODY"}, {"type": "FOOTER"}]});
    let shown = json!({"category": "AUTHENTICATION", "components": [
        {"type": "BODY", "text": "x", "add_security_recommendation": false}]});
    assert_eq!(compare(&empty, &shown), ContentMatch::Equal, "an empty footer is not shown");
}

#[test]
fn the_default_of_the_time_to_live_is_that_of_the_category() {
    let with = |category: &str, seconds: Option<i64>| {
        json!({"category": category, "message_send_ttl_seconds": seconds,
            "components": [{"type": "BODY", "text": "Hi"}]})
    };
    for (category, default, other) in
        [("UTILITY", 2_592_000, 600), ("MARKETING", 2_592_000, 600), ("AUTHENTICATION", 600, -1)]
    {
        let shown = with(category, None);
        let key = document_key(&shown.to_string());
        for (seconds, expected) in
            [(default, ContentMatch::Equal), (other, ContentMatch::Different)]
        {
            let own = with(category, Some(seconds));
            assert_eq!(compare(&own, &shown), expected, "{category} {seconds}");
            assert_eq!(compare(&shown, &own), expected, "{category} {seconds}");
            let key_of_own = document_key(&own.to_string());
            assert_eq!(key_of_own == key, expected == ContentMatch::Equal, "{category} {seconds}");
        }
    }
}

/// How a version of the account compares with a document of the provider.
fn compare(own: &Value, shown: &Value) -> ContentMatch {
    let category = Category::parse(own["category"].as_str().unwrap()).unwrap();
    let content = own.to_string();
    VersionContent { category, content: &content }.compare(&shown.to_string())
}

#[test]
fn a_client_cannot_have_its_texts_ignored_by_a_link_that_looks_like_that_of_a_code() {
    for url in [
        "https://shop.example/go?x=whatsapp.com/otp/code/?otp_type=COPY_CODE",
        "https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}",
        "https://www.whatsapp.com.shop.example/otp/code/?otp_type=COPY_CODE",
        "http://www.whatsapp.com/otp/code/?otp_type=COPY_CODE",
    ] {
        let document = |category: &str, body: &str, label: &str, url: &str| {
            json!({"category": category, "components": [
                {"type": "BODY", "text": body},
                {"type": "BUTTONS", "buttons": [{"type": "URL", "text": label, "url": url}]}]})
        };
        for category in ["UTILITY", "MARKETING", "AUTHENTICATION"] {
            let shown = document(category, "Approved", "Go", url);
            for edit in [
                document("UTILITY", "Never approved", "Go", url),
                document("UTILITY", "Approved", "Buy", url),
                document("UTILITY", "Approved", "Go", &format!("{url}&more=1")),
            ] {
                assert_eq!(compare(&edit, &shown), ContentMatch::Different, "{edit} {category}");
            }
        }
        // Only the address that a provider writes is ignored, and only in messages with codes.
        let shown = document("AUTHENTICATION", "Your code", "Go", url);
        let other = document("AUTHENTICATION", "Your code", "Go", "https://other.example");
        assert_eq!(compare(&other, &shown), ContentMatch::Different, "{url}");
    }
}

#[test]
fn what_the_provider_does_not_show_of_a_code_is_never_taken_for_equal() {
    let shown = code_shown(true, 5, "ONE_TAP");
    let one_tap = code_sent(true, 5, "ONE_TAP");
    assert_eq!(compare(&one_tap, &shown), ContentMatch::Alike);
    let mut other_app = one_tap.clone();
    other_app["components"][2]["buttons"][0]["supported_apps"][0]["package_name"] = json!("x.y");
    assert_eq!(compare(&other_app, &shown), ContentMatch::Alike);
    assert_eq!(compare(&shown, &shown), ContentMatch::Equal, "imported");

    let copy = |label: &str| {
        let mut sent = code_sent(true, 5, "COPY_CODE");
        let button = json!({"type": "OTP", "otp_type": "COPY_CODE", "text": label});
        sent["components"][2]["buttons"] = json!([button]);
        sent
    };
    let shown = code_shown(true, 5, "COPY_CODE");
    assert_eq!(compare(&copy("Code kopieren"), &shown), ContentMatch::Equal, "all of it is shown");
    assert_eq!(compare(&copy("Copy code"), &shown), ContentMatch::Alike);
    assert_eq!(compare(&copy("Kopieren"), &shown), ContentMatch::Different, "another label");
    let utility = json!({"category": "UTILITY", "components": copy("Code kopieren")["components"]});
    assert_eq!(compare(&utility, &shown), ContentMatch::Different, "one side is no code");
}

#[test]
fn another_notation_of_a_phone_number_is_never_taken_for_equal() {
    let with = |number: &str| {
        let mut document = sent();
        document["components"][0]["buttons"][1]["phone_number"] = json!(number);
        for identity in ["name", "language"] {
            document.as_object_mut().unwrap().remove(identity);
        }
        document
    };
    let shown = with("+15550001111");
    assert_eq!(compare(&with("+15550001111"), &shown), ContentMatch::Equal);
    assert_eq!(compare(&with("+1 (555) 000-1111"), &shown), ContentMatch::Alike);
    assert_eq!(compare(&with("15550001111"), &shown), ContentMatch::Alike);
    assert_eq!(compare(&with("+15550001112"), &shown), ContentMatch::Different);
}

#[test]
fn a_fingerprint_tells_every_change_of_what_a_provider_shows() {
    let is_shown = |own: &Value, shown: &Value| {
        let content = json!({"components": own["components"]}).to_string();
        let version = VersionContent { category: Category::Authentication, content: &content };
        version.is_shown_by(document_key(&shown.to_string()))
    };
    let own = json!({"components": sent()["components"]});
    assert!(is_shown(&own, &json!({"components": shown()["components"]})));
    let code = code_shown(true, 5, "ONE_TAP");
    let own = json!({"components": code["components"]});
    assert!(is_shown(&own, &code) && !is_shown(&code_sent(true, 5, "ONE_TAP"), &code));
    for pointer in ["/components/0/text", "/components/2/buttons/0/text"] {
        let mut changed = code.clone();
        *changed.pointer_mut(pointer).unwrap() = json!("Changed");
        assert!(!is_shown(&own, &changed), "{pointer}");
    }
}

#[test]
fn an_option_that_the_provider_does_not_show_is_never_taken_for_equal() {
    let with = |products: Value| {
        let mut document = sent();
        document["product_set_id"] = products;
        document
    };
    let shown = with(json!("1"));
    let own = |products| {
        let mut own = with(products);
        for identity in ["name", "language"] {
            own.as_object_mut().unwrap().remove(identity);
        }
        own
    };
    assert_eq!(compare(&own(json!("1")), &shown), ContentMatch::Equal);
    assert_eq!(compare(&own(json!("2")), &shown), ContentMatch::Alike);
    assert_eq!(compare(&own(json!("2")), &with(Value::Null)), ContentMatch::Alike);
    assert_eq!(compare(&own(Value::Null), &with(Value::Null)), ContentMatch::Equal);
}

#[test]
fn every_option_of_a_version_is_compared_or_has_to_be_shown() {
    let fields = WHATSAPP.template.fields.iter().map(|field| field.name);
    let uncompared: Vec<&str> = fields.filter(|name| !COMPARED.contains(name)).collect();
    assert_eq!(uncompared[..4], ["name", "language", "category", "allow_category_change"]);
    assert!(COMPARED.iter().all(|name| WHATSAPP.template.fields.iter().any(|it| it.name == *name)));
    // Those can differ only between creates: an edit cannot change them.
    assert!(
        uncompared[4..].iter().all(|name| WHATSAPP.edit.fields.iter().all(|it| it.name != *name))
    );
}

#[test]
fn the_fingerprint_is_the_sha_256_of_the_text() {
    let content = of(&json!({"components": [{"type": "BODY", "text": "Hi"}]}));
    assert_eq!(content.as_str(), r#"{"components":[{"text":"Hi","type":"BODY"}]}"#);
    let fingerprint = content.key().map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(fingerprint, "b7f00c523553aada669f07096784333398f27f43e30b0a3cc36790d4ddf1e71d");
}
