//! The exact texts and messages for each type of component.

use serde_json::{Value, json};

use super::fixture::{
    authentication, button, carousel, code, header, media, named, numbered, offer, products, read,
    rendered, template, try_render,
};

const NONE: Value = Value::Null;

#[test]
fn numbered_values_are_sent_in_order() {
    let values = json!({"header": ["4711"], "body": ["Ada", "{{1}}"]});
    let expected = json!({
        "texts": {"header": "Order 4711",
            "body": "Hello Ada, your order\n{{1}} is on its way, so Ada can wait."},
        "payload": {"messaging_product": "whatsapp", "type": "template", "template": {
            "name": "n", "language": {"code": "en_US"}, "components": [
                {"type": "header", "parameters": [{"type": "text", "text": "4711"}]},
                {"type": "body", "parameters": [
                    {"type": "text", "text": "Ada"}, {"type": "text", "text": "{{1}}"}]},
            ]}},
    });
    assert_eq!(try_render(&numbered(), &values), Ok(expected));
}

#[test]
fn named_values_are_sent_with_their_names() {
    let values = json!({"header": {"who": "Ada L."}, "body": {"order": "{{first_name}}", "first_name": "Ada"},
        "buttons": {"0": "a?b=c", "1": "d"}});
    let (texts, components) = rendered(&named(), &values);
    assert_eq!(
        texts,
        json!({"header": "For Ada L.", "footer": "Small print",
            "body": "Hello Ada, your order {{first_name}} is on its way, Ada dear.",
            "buttons": [
                {"type": "URL", "text": "Track", "url": "https://shop.example/a?b=c"},
                {"type": "URL", "text": "See", "url": "https://shop.example/d"}]})
    );
    let text =
        |name: &str, value: &str| json!({"type": "text", "parameter_name": name, "text": value});
    assert_eq!(
        components,
        json!([
            {"type": "header", "parameters": [text("who", "Ada L.")]},
            {"type": "body", "parameters": [text("first_name", "Ada"), text("order", "{{first_name}}")]},
            {"type": "button", "sub_type": "url", "index": "0", "parameters": [text("path", "a?b=c")]},
            {"type": "button", "sub_type": "url", "index": "1",
                "parameters": [{"type": "text", "text": "d"}]},
        ])
    );
}

#[test]
fn headers_other_than_texts_are_rendered() {
    let link = "https://cdn.example/a%20b";
    let bill = "https://cdn.example/Bill%201.PDF?x=1";
    let place =
        json!({"latitude": 52.5, "longitude": "-13.25", "name": "Shop", "address": "Main St 1"});
    for (format, value, shown, parameter) in [
        ("IMAGE", json!(link), link, json!({"type": "image", "image": {"link": link}})),
        ("IMAGE", json!({"id": "7"}), "7", json!({"type": "image", "image": {"id": "7"}})),
        ("VIDEO", json!({"link": link}), link, json!({"type": "video", "video": {"link": link}})),
        ("GIF", json!({"id": "7"}), "7", json!({"type": "gif", "gif": {"id": "7"}})),
        ("DOCUMENT", json!(link), link, json!({"type": "document", "document": {"link": link}})),
        (
            "DOCUMENT",
            json!({"link": bill}),
            bill,
            json!({"type": "document", "document": {"link": bill, "filename": "Bill 1.PDF"}}),
        ),
        (
            "DOCUMENT",
            json!({"link": bill, "filename": "Yours.pdf"}),
            bill,
            json!({"type": "document", "document": {"link": bill, "filename": "Yours.pdf"}}),
        ),
        (
            "DOCUMENT",
            json!({"id": "7", "filename": "Bill.pdf"}),
            "7",
            json!({"type": "document", "document": {"id": "7", "filename": "Bill.pdf"}}),
        ),
        ("DOCUMENT", json!({"id": "7"}), "7", json!({"type": "document", "document": {"id": "7"}})),
        (
            "LOCATION",
            place,
            "Shop, Main St 1",
            json!({"type": "location", "location": {"latitude": 52.5, "longitude": -13.25,
                "name": "Shop", "address": "Main St 1"}}),
        ),
    ] {
        let (texts, components) = rendered(&header(format), &json!({"header": value}));
        assert_eq!(texts, json!({"header": shown, "body": "b"}), "{format}");
        assert_eq!(components, json!([{"type": "header", "parameters": [parameter]}]));
    }
}

#[test]
fn buttons_of_every_type_are_rendered() {
    let sections = json!([{"title": "Tea", "product_items": [{"product_retailer_id": "k1"}]}]);
    let items = json!({"thumbnail_product_retailer_id": "k1", "sections": sections});
    let order = json!({"reference_id": "r", "items": [1, 2.5, null, true, {"a": "b"}]});
    let text = |kind: &str| json!({"type": kind, "text": "t"});
    let flow = json!({"type": "FLOW", "text": "t", "flow_id": "1"});
    let link = |url: &str| json!({"type": "URL", "text": "t", "url": url});
    let mut open = link("https://a.example/{{1}}");
    open["example"] = json!(["x"]);
    let phone = json!({"type": "PHONE_NUMBER", "text": "t", "phone_number": "+15550001111"});
    let coupon = json!({"type": "COPY_CODE", "text": "Copy offer code", "code": "SAVE25"});
    let rows = [
        (text("QUICK_REPLY"), NONE, text("QUICK_REPLY"), NONE),
        (
            text("QUICK_REPLY"),
            json!("yes-4711"),
            text("QUICK_REPLY"),
            json!({"sub_type": "quick_reply", "index": "0",
                "parameters": [{"type": "payload", "payload": "yes-4711"}]}),
        ),
        (link("https://a.example"), NONE, link("https://a.example"), NONE),
        (
            open,
            json!("x/y"),
            link("https://a.example/x/y"),
            json!({"sub_type": "url", "index": "0", "parameters": [{"type": "text", "text": "x/y"}]}),
        ),
        (phone.clone(), NONE, phone, NONE),
        (
            json!({"type": "COPY_CODE", "example": "x"}),
            json!("SAVE25"),
            coupon,
            json!({"sub_type": "copy_code", "index": "0",
                "parameters": [{"type": "coupon_code", "coupon_code": "SAVE25"}]}),
        ),
        (
            flow.clone(),
            NONE,
            text("FLOW"),
            json!({"sub_type": "flow", "index": "0", "parameters": [{"type": "action", "action": {}}]}),
        ),
        (
            flow,
            json!({"flow_token": "t", "flow_action_data": {"a": 1}}),
            text("FLOW"),
            json!({"sub_type": "flow", "index": "0", "parameters": [{"type": "action",
                "action": {"flow_token": "t", "flow_action_data": {"a": 1}}}]}),
        ),
        (text("CATALOG"), NONE, text("CATALOG"), NONE),
        (
            text("CATALOG"),
            json!({"thumbnail_product_retailer_id": "k1"}),
            text("CATALOG"),
            json!({"sub_type": "catalog", "index": "0", "parameters": [{"type": "action",
                "action": {"thumbnail_product_retailer_id": "k1"}}]}),
        ),
        (
            text("MPM"),
            items.clone(),
            text("MPM"),
            json!({"sub_type": "mpm", "index": "0", "parameters": [{"type": "action", "action": items}]}),
        ),
        (
            text("ORDER_DETAILS"),
            order.clone(),
            text("ORDER_DETAILS"),
            json!({"sub_type": "order_details", "index": "0", "parameters": [{"type": "action",
                "action": {"order_details": order}}]}),
        ),
        (text("VOICE_CALL"), NONE, text("VOICE_CALL"), NONE),
        (
            text("VOICE_CALL"),
            json!(60),
            text("VOICE_CALL"),
            json!({"sub_type": "voice_call", "parameters": [{"type": "ttl_minutes", "ttl_minutes": 60}]}),
        ),
        (
            text("VOICE_CALL"),
            json!({"ttl_minutes": 43_200, "payload": "p"}),
            text("VOICE_CALL"),
            json!({"sub_type": "voice_call", "parameters": [
                {"type": "ttl_minutes", "ttl_minutes": 43_200}, {"type": "payload", "payload": "p"}]}),
        ),
        (
            json!({"type": "REQUEST_CONTACT_INFO"}),
            NONE,
            json!({"type": "REQUEST_CONTACT_INFO", "text": "Share Contact Info"}),
            NONE,
        ),
    ];
    for (defined, value, shown, sent) in rows {
        let (texts, components) = rendered(&button(&defined), &json!({"buttons": {"0": value}}));
        assert_eq!(texts["buttons"], json!([shown]), "{defined}");
        let mut expected = sent.clone();
        if expected.is_object() {
            expected["type"] = json!("button");
            expected = json!([expected]);
        }
        assert_eq!(components, expected, "{defined}");
    }
}

#[test]
fn a_single_product_is_rendered() {
    let product = json!({"product_retailer_id": "k1", "catalog_id": "c"});
    let (texts, components) =
        rendered(&button(&json!({"type": "SPM"})), &json!({"header": product}));
    let buttons = json!([{"type": "SPM", "text": "View"}]);
    assert_eq!(texts, json!({"header": "k1", "body": "b", "buttons": buttons}));
    let parameter = json!({"type": "product", "product": product});
    assert_eq!(components, json!([{"type": "header", "parameters": [parameter]}]));
}

#[test]
fn a_one_time_code_is_in_the_body_and_in_the_button() {
    let parameters = json!([{"type": "text", "text": "J$FpnYnP"}]);
    let sent = json!([
        {"type": "body", "parameters": parameters},
        {"type": "button", "sub_type": "url", "index": "0", "parameters": parameters},
    ]);
    for body in [json!("J$FpnYnP"), json!(["J$FpnYnP"])] {
        let (texts, components) = rendered(&code(), &json!({"body": body}));
        let buttons = json!([{"type": "OTP", "text": "Copy code", "code": "J$FpnYnP"}]);
        assert_eq!(texts, json!({"body": "Your code is J$FpnYnP.", "buttons": buttons}));
        assert_eq!(components, sent);
    }
    let apps = json!([{"package_name": "com.example.shop", "signature_hash": "K8a/AINcGX7"}]);
    for (otp, terms) in [("ONE_TAP", NONE), ("ZERO_TAP", json!(true))] {
        let button = json!({"type": "OTP", "otp_type": otp, "text": "Copy", "autofill_text": "Fill in",
            "supported_apps": apps, "zero_tap_terms_accepted": terms});
        let footer = json!({"type": "FOOTER", "code_expiration_minutes": 10});
        let template =
            authentication(&json!({"add_security_recommendation": true}), Some(footer), &button);
        let (texts, components) = rendered(&template, &json!({"body": ["J$FpnYnP"]}));
        assert_eq!(
            texts,
            json!({"body": "Your code is J$FpnYnP. Keep it to yourself.",
                "footer": "The code is good for 10 minutes.",
                "buttons": [{"type": "OTP", "text": "Copy", "autofill_text": "Fill in", "code": "J$FpnYnP"}]})
        );
        assert_eq!(components, sent);
    }
}

#[test]
fn an_offer_is_sent_with_its_end() {
    let coupon = json!({"type": "button", "sub_type": "copy_code", "index": "0",
        "parameters": [{"type": "coupon_code", "coupon_code": "A"}]});
    for end in [json!(1_794_733_800_000_i64), json!("2026-11-15T10:10:00+01:00")] {
        let values = json!({"buttons": {"0": "A"}, "offer": end});
        let (texts, components) = rendered(&offer(true), &values);
        assert_eq!(
            texts["offer"],
            json!({"text": "Now", "expiration_time_ms": 1_794_733_800_000_i64})
        );
        let parameter = json!({"type": "limited_time_offer",
            "limited_time_offer": {"expiration_time_ms": 1_794_733_800_000_i64}});
        let part = json!({"type": "limited_time_offer", "parameters": [parameter]});
        assert_eq!(components, json!([part, coupon]));
    }
    let (texts, components) = rendered(&offer(false), &json!({"buttons": {"0": "A"}}));
    assert_eq!((&texts["offer"], components), (&json!({"text": "Now"}), json!([coupon])));
}

#[test]
fn cards_are_sent_with_their_index() {
    let card = |name: &str| json!({"header": {"id": name}, "body": [name], "buttons": {"0": name, "1": name}});
    let (texts, components) = rendered(&carousel(), &json!({"cards": [card("a"), card("b")]}));
    let read = |name: &str| {
        json!({"header": name, "body": format!("Only {name} today, so hurry up."), "buttons": [
            {"type": "QUICK_REPLY", "text": "More"},
            {"type": "URL", "text": "Buy", "url": format!("https://shop.example/{name}")}]})
    };
    assert_eq!(texts, json!({"body": "b", "cards": [read("a"), read("b")]}));
    let sent = |index: usize, name: &str| {
        json!({"card_index": index, "components": [
            {"type": "header", "parameters": [{"type": "image", "image": {"id": name}}]},
            {"type": "body", "parameters": [{"type": "text", "text": name}]},
            {"type": "button", "sub_type": "quick_reply", "index": "0",
                "parameters": [{"type": "payload", "payload": name}]},
            {"type": "button", "sub_type": "url", "index": "1",
                "parameters": [{"type": "text", "text": name}]}]})
    };
    assert_eq!(components, json!([{"type": "carousel", "cards": [sent(0, "a"), sent(1, "b")]}]));
}

#[test]
fn a_message_may_have_more_product_cards_than_the_template() {
    let card = json!({"header": {"product_retailer_id": "k", "catalog_id": "c"}});
    let (texts, components) = rendered(&products(), &json!({"cards": [card, card, card]}));
    let read = json!({"header": "k", "buttons": [{"type": "SPM", "text": "View"}]});
    assert_eq!(texts, json!({"body": "b", "cards": [read, read, read]}));
    let last = json!({"card_index": 2, "components": [{"type": "header", "parameters": [
        {"type": "product", "product": {"product_retailer_id": "k", "catalog_id": "c"}}]}]});
    assert_eq!(components[0]["cards"][2], last);
}

#[test]
fn cards_of_a_template_with_named_parameters_take_named_values() {
    let example = json!({"body_text_named_params": [{"param_name": "price", "example": "9"}]});
    let card = json!({"components": [
        media("IMAGE"),
        {"type": "BODY", "text": "Only {{price}} today, so hurry up.", "example": example},
        {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "More"}]},
    ]});
    let template = read(&json!({"name": "n", "language": "de", "category": "MARKETING",
        "parameter_format": "NAMED", "components": [{"type": "BODY", "text": "b"},
            {"type": "CAROUSEL", "cards": [card, card]}]}))
    .unwrap();
    let card = json!({"header": {"id": "7"}, "body": {"price": "7 \u{20ac}"}});
    let (texts, components) = rendered(&template, &json!({"cards": [card, card]}));
    assert_eq!(texts["cards"][1]["body"], "Only 7 \u{20ac} today, so hurry up.");
    let parameter = json!({"type": "text", "parameter_name": "price", "text": "7 \u{20ac}"});
    let body = json!({"type": "body", "parameters": [parameter]});
    assert_eq!(components[0]["cards"][1]["components"][1], body);
}

#[test]
fn components_without_values_are_shown_but_not_sent() {
    let template = template(&json!([
        {"type": "HEADER", "format": "TEXT", "text": "h"},
        {"type": "BODY", "text": "b"},
        {"type": "FOOTER", "text": "f"},
        {"type": "CALL_PERMISSION_REQUEST"},
    ]));
    let message = json!({"messaging_product": "whatsapp", "type": "template",
        "template": {"name": "n", "language": {"code": "en_US"}}});
    let texts = json!({"header": "h", "body": "b", "footer": "f", "call_permission_request": true});
    let expected = json!({"texts": texts, "payload": message});
    assert_eq!(try_render(&template, &json!({})), Ok(expected));
}
