//! The parts of a proof, for valid and invalid documents of both rulebooks.

use galley_domain::{
    document::Document,
    proof::Proof,
    rulebook::{V1, WHATSAPP},
    template::Template,
};
use serde_json::{Value, json};

use super::{proof_of, shown, with_body};

fn order() -> Value {
    json!({
        "name": "order", "language": "en_US", "category": "UTILITY", "allow_category_change": true,
        "components": [
            {"type": "header", "format": "text", "text": "Order {{1}}", "example": {"header_text": ["A-17"]}},
            {"type": "BODY", "text": "Hi *{{1}}*!", "example": {"body_text": [["Ada"]]}},
            {"type": "FOOTER", "text": "Acme *shop*"},
            {"type": "BUTTONS", "buttons": [
                {"type": "url", "text": "Track", "url": "https://acme.example/t/{{1}}", "example": ["A-17"]},
                {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
                {"type": "COPY_CODE", "example": "SAVE25"},
                {"type": "QUICK_REPLY", "text": "Stop"},
            ]},
        ],
    })
}

#[test]
fn a_valid_document_is_shown_with_its_samples() {
    let proof = proof_of(&V1, &json!({"document": order()}));
    assert_eq!(
        proof,
        json!({
            "approved": false,
            "direction": "ltr",
            "header": {"format": "TEXT", "text": [
                {"text": "Order ", "style": []},
                {"text": "A-17", "style": [], "placeholder": {"name": "1", "filled": true}},
            ]},
            "body": [
                {"text": "Hi ", "style": []},
                {"text": "Ada", "style": ["bold"], "placeholder": {"name": "1", "filled": true}},
                {"text": "!", "style": []},
            ],
            "footer": [{"text": "Acme *shop*", "style": []}],
            "buttons": [
                {"type": "URL", "text": "Track", "url": "https://acme.example/t/A-17"},
                {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
                {"type": "COPY_CODE", "text": "Copy offer code", "code": "SAVE25"},
                {"type": "QUICK_REPLY", "text": "Stop"},
            ],
            "violations": [],
        })
    );
}

#[test]
fn sent_values_replace_all_samples_and_missing_ones_stay_visible() {
    let values = json!({"body": ["Bo"], "buttons": {"0": "B-2"}});
    let proof = proof_of(&V1, &json!({"document": order(), "values": values}));
    assert_eq!(shown(&proof["body"]), ["Hi ", "Bo [bold]", "!"]);
    assert_eq!(proof["header"]["text"][1]["text"], "{{1}}");
    assert_eq!(proof["header"]["text"][1]["placeholder"]["filled"], false);
    assert_eq!(proof["buttons"][0]["url"], "https://acme.example/t/B-2");
    assert_eq!(proof["buttons"][2].get("code"), None);
    assert_eq!(proof["violations"], json!([]));
    let refused: Vec<&Value> =
        proof["value_violations"].as_array().unwrap().iter().map(|it| &it["pointer"]).collect();
    assert_eq!(refused, ["/header/0", "/buttons/2"]);
}

#[test]
fn an_invalid_document_shows_every_readable_part_and_its_violations() {
    let document = json!({
        "name": 7, "language": "klingon",
        "components": [
            7, {"type": "HEADER", "text": "No format"}, {"type": "BODY", "text": "{{2}} {{x}} *ok*"},
            {"type": "BODY", "text": "again"}, {"type": "FOOTER", "text": ["a"]},
            {"type": "BUTTONS", "buttons": [{"text": "no type"}, {"type": "EMAIL", "text": "Mail"},
                {"type": "URL", "url": "ftp://{{1}}"}]},
        ],
    });
    let text = document.to_string();
    let expected = Template::read(&Document::parse(text.as_bytes()).unwrap(), &V1).unwrap_err();
    let proof = proof_of(&V1, &json!({"document": document}));
    assert_eq!(shown(&proof["header"]["text"]), ["No format"]);
    assert_eq!(shown(&proof["body"]), ["{{2}}", " ", "{{x}}", " ", "ok [bold]"]);
    assert_eq!(proof.get("footer"), None);
    let buttons = json!([{"type": "EMAIL", "text": "Mail"}, {"type": "URL", "text": "", "url": "ftp://{{1}}"}]);
    assert_eq!(proof["buttons"], buttons);
    assert_eq!(proof["violations"], serde_json::to_value(expected.listed()).unwrap());
    assert_eq!(proof.get("value_violations"), None);
}

#[test]
fn any_document_has_a_proof_but_a_request_without_one_is_refused() {
    for document in [json!(7), json!([]), json!("x"), json!({})] {
        let proof = proof_of(&V1, &json!({"document": document}));
        assert_eq!((&proof["body"], &proof["direction"]), (&json!([]), &json!("ltr")));
        assert!(!proof["violations"].as_array().unwrap().is_empty(), "{proof}");
    }
    for (request, pointer, rule) in [
        ("{}", "/document", "required"),
        (r#"{"document":null}"#, "/document", "required"),
        ("[]", "", "wrong-type"),
    ] {
        let document = Document::parse(request.as_bytes()).unwrap();
        let refused = Proof::read(document, &V1).unwrap_err();
        let violation = &refused.listed()[0];
        assert_eq!((&*violation.pointer, violation.rule.id()), (pointer, rule), "{request}");
    }
}

#[test]
fn attachments_are_named_and_never_loaded() {
    let media = |format: &str, example: Value, values: Value| {
        let mut document = with_body("Hello there");
        let header = json!({"type": "HEADER", "format": format, "example": example});
        document["components"].as_array_mut().unwrap().push(header);
        proof_of(&WHATSAPP, &json!({"document": document, "values": values}))["header"].take()
    };
    let pdf = json!({"media_url": "https://a.b/in%20voice.pdf?x"});
    assert_eq!(
        media("MEDIA", pdf, Value::Null),
        json!({"format": "MEDIA", "media": {"url": "https://a.b/in%20voice.pdf?x", "kind": "document",
            "filename": "in voice.pdf"}})
    );
    let handle = json!({"header_handle": ["4::abc"]});
    assert_eq!(
        media("image", handle.clone(), Value::Null),
        json!({"format": "IMAGE", "media": {"handle": "4::abc", "kind": "image"}})
    );
    assert_eq!(
        media("VIDEO", handle.clone(), json!({"header": {"id": "77"}})),
        json!({"format": "VIDEO", "media": {"id": "77", "kind": "video"}})
    );
    assert_eq!(media("IMAGE", handle, json!({})), json!({"format": "IMAGE"}));
    let place =
        json!({"header": {"name": "Shop", "address": "1 Road", "latitude": 1, "longitude": 2}});
    assert_eq!(
        media("LOCATION", Value::Null, place),
        json!({"format": "LOCATION", "location": {"name": "Shop", "address": "1 Road"}})
    );
}

#[test]
fn cards_and_offers_are_shown() {
    let card = |text: &str| {
        json!({"components": [
            {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::abc"]}},
            {"type": "BODY", "text": text, "example": {"body_text": [["5"]]}},
            {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "More"}]},
        ]})
    };
    let document = json!({
        "name": "sale", "language": "ar", "category": "MARKETING", "parameter_format": "named",
        "components": [
            {"type": "BODY", "text": "Hi {{first_name}}, look at this",
                "example": {"body_text_named_params": [{"param_name": "first_name", "example": "Ada"}]}},
            {"type": "CAROUSEL", "cards": [card("From *{{1}}* euros"), card("plain")]},
            {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Sale", "has_expiration": true}},
            {"type": "BUTTONS", "buttons": [{"type": "COPY_CODE", "example": "SAVE25"}]},
        ],
    });
    let proof = proof_of(&WHATSAPP, &json!({"document": document}));
    assert_eq!(proof["direction"], "rtl");
    assert_eq!(shown(&proof["body"]), ["Hi ", "Ada", ", look at this"]);
    assert_eq!(shown(&proof["cards"][0]["body"]), ["From ", "5 [bold]", " euros"]);
    assert_eq!(shown(&proof["cards"][1]["body"]), ["plain"]);
    assert_eq!(proof["cards"][0]["buttons"], json!([{"type": "QUICK_REPLY", "text": "More"}]));
    assert_eq!(proof["offer"], json!({"text": "Sale", "has_expiration": true, "code": "SAVE25"}));
    let values = json!({"body": {"first_name": "Bo"}, "cards": [{"body": ["9"]}, 7],
        "offer": "2026-11-15T09:30:00Z", "buttons": {"0": "NEW"}});
    let proof = proof_of(&WHATSAPP, &json!({"document": document, "values": values}));
    assert_eq!(shown(&proof["body"]), ["Hi ", "Bo", ", look at this"]);
    assert_eq!(shown(&proof["cards"][0]["body"]), ["From ", "9 [bold]", " euros"]);
    assert_eq!(
        proof["offer"],
        json!({"text": "Sale", "has_expiration": true, "expiration_time_ms": 1_794_735_000_000_i64,
            "code": "NEW"})
    );
}

#[test]
fn an_authentication_template_shows_its_code() {
    let document = json!({
        "name": "code", "language": "en", "category": "AUTHENTICATION",
        "components": [
            {"type": "BODY", "add_security_recommendation": true},
            {"type": "FOOTER", "code_expiration_minutes": 5},
            {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]},
        ],
    });
    let proof = proof_of(&WHATSAPP, &json!({"document": document}));
    assert_eq!(shown(&proof["body"]), ["Your code is ", "123456", ". Keep it to yourself."]);
    assert_eq!(shown(&proof["footer"]), ["The code is good for 5 minutes."]);
    assert_eq!(proof["buttons"], json!([{"type": "OTP", "text": "Copy code", "code": "123456"}]));
    assert_eq!((&proof["code"], &proof["violations"]), (&json!("123456"), &json!([])));
    let proof = proof_of(&WHATSAPP, &json!({"document": document, "values": {"body": ["777"]}}));
    assert_eq!(proof["code"], "777");
    assert_eq!(shown(&proof["body"])[1], "777");
}

#[test]
fn a_stored_template_is_shown_as_its_document_is() {
    let text = order().to_string();
    let template = Template::read(&Document::parse(text.as_bytes()).unwrap(), &V1).unwrap();
    let stored = serde_json::to_value(Proof::of_template(&template, &V1, true)).unwrap();
    let mut expected = proof_of(&V1, &json!({"document": order()}));
    expected["approved"] = json!(true);
    assert_eq!(stored, expected);
}
