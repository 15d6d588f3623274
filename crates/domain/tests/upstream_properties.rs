//! A property of comparisons with a provider: an edit that changes anything that a recipient can see
//! is never taken for what the provider has.

use galley_domain::{
    document::Document,
    rulebook::{Category, WHATSAPP},
    template::Template,
    upstream::content::{ContentMatch, VersionContent},
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn choice(values: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(values)
}

/// Addresses, among them those by which a comparison knows what Meta writes.
const URLS: &[&str] = &[
    "https://shop.example/a",
    "https://shop.example/b?x=whatsapp.com/otp/code/?otp_type=COPY_CODE",
    "https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE",
    "https://www.whatsapp.com/otp/code/?otp_type=ONE_TAP",
    "https://shop.example/www.whatsapp.com/otp/code/?otp_type=COPY_CODE",
];

fn button() -> impl Strategy<Value = Value> {
    let label = || choice(&["Go", "Buy", "Copy code"]);
    prop_oneof![
        label().prop_map(|text| json!({"type": "QUICK_REPLY", "text": text})),
        (label(), choice(URLS))
            .prop_map(|(text, url)| json!({"type": "URL", "text": text, "url": url})),
        (label(), choice(&["+15550001111", "+15550001112"])).prop_map(
            |(text, number)| json!({"type": "PHONE_NUMBER", "text": text, "phone_number": number})
        ),
    ]
}

fn message() -> impl Strategy<Value = Value> {
    let words = || choice(&["Your order has left.", "Your order has arrived.", "Order: ready."]);
    let short = || prop::option::of(choice(&["Shop", "Thanks", "By the provider"]));
    let category = choice(&["UTILITY", "MARKETING"]);
    let buttons = prop::collection::vec(button(), 0..3);
    (category, short(), words(), short(), buttons).prop_map(
        |(category, header, body, footer, buttons)| {
            let mut components = vec![json!({"type": "BODY", "text": body})];
            components
                .extend(header.map(|it| json!({"type": "HEADER", "format": "TEXT", "text": it})));
            components.extend(footer.map(|it| json!({"type": "FOOTER", "text": it})));
            if !buttons.is_empty() {
                components.push(json!({"type": "BUTTONS", "buttons": buttons}));
            }
            json!({"name": "a", "language": "en", "category": category, "components": components})
        },
    )
}

/// A message with a one-time code.
fn code() -> impl Strategy<Value = Value> {
    let otp_type = choice(&["COPY_CODE", "ONE_TAP", "ZERO_TAP"]);
    let minutes = prop::option::of(1..3_u8);
    let label = prop::option::of(choice(&["Copy code", "Copy"]));
    let autofill = prop::option::of(choice(&["Autofill", "Fill in"]));
    let app = choice(&["com.example.a", "com.example.b"]);
    (otp_type, any::<bool>(), minutes, label, autofill, app).prop_map(
        |(otp_type, security, minutes, label, autofill, app)| {
            let mut button = json!({"type": "OTP", "otp_type": otp_type});
            if let Some(label) = label {
                button["text"] = label.into();
            }
            if otp_type != "COPY_CODE" {
                button["supported_apps"] =
                    json!([{"package_name": app, "signature_hash": "K8a/AINcGX7"}]);
                if let Some(autofill) = autofill {
                    button["autofill_text"] = autofill.into();
                }
            }
            if otp_type == "ZERO_TAP" {
                button["zero_tap_terms_accepted"] = true.into();
            }
            let mut components = vec![
                json!({"type": "BODY", "add_security_recommendation": security}),
                json!({"type": "BUTTONS", "buttons": [button]}),
            ];
            components.extend(
                minutes.map(|it| json!({"type": "FOOTER", "code_expiration_minutes": it})),
            );
            json!({"name": "a", "language": "en", "category": "AUTHENTICATION", "components": components})
        },
    )
}

/// A valid template. Some messages have too many buttons of one type.
fn template() -> impl Strategy<Value = Template> {
    let document = prop_oneof![3 => message(), 1 => code()];
    document.prop_filter_map("a valid template", |document| {
        let text = document.to_string();
        Template::read(&Document::parse(text.as_bytes()).ok()?, &WHATSAPP).ok()
    })
}

/// What a client has written, in the order of the components' types.
fn written(template: &Template) -> Vec<Value> {
    let content: Value = serde_json::from_str(template.content()).unwrap();
    let mut components = content["components"].as_array().unwrap().clone();
    components.sort_by_key(|it| it["type"].to_string());
    components
}

/// The document of a provider that has the template: as it was sent, or as Meta shows codes.
fn shown(template: &Template) -> Value {
    let category = template.category();
    let mut components = written(template);
    if category == Category::Authentication {
        let footer = components.iter().find_map(|it| it.get("code_expiration_minutes")).cloned();
        for component in &mut components {
            match component["type"].as_str().unwrap() {
                "BODY" => component["text"] = "*{{1}}* is your code.".into(),
                "FOOTER" => component["text"] = "It expires.".into(),
                _ => {
                    let button = &component["buttons"][0];
                    let otp_type = button["otp_type"].as_str().unwrap();
                    let minutes = footer.as_ref().map_or_else(String::new, |it| format!("&m={it}"));
                    let url = format!(
                        "https://www.whatsapp.com/otp/code/?otp_type={otp_type}{minutes}&code=otp{{{{1}}}}"
                    );
                    component["buttons"] =
                        json!([{"type": "URL", "text": button["text"], "url": url}]);
                }
            }
        }
    }
    json!({"id": "1", "status": "APPROVED", "category": category.as_str(), "components": components})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_edit_that_a_recipient_could_see_is_taken_for_what_the_provider_has(
        approved in template(),
        edited in template(),
    ) {
        let document = shown(&approved);
        let compare = |it: &Template| VersionContent::of(it).compare(&document.to_string());
        let own = compare(&approved);
        let is_code = approved.category() == Category::Authentication;
        prop_assert!(own == ContentMatch::Equal || (own == ContentMatch::Alike && is_code));
        if written(&approved) != written(&edited) {
            prop_assert_ne!(compare(&edited), ContentMatch::Equal);
            let are_codes = is_code && edited.category() == Category::Authentication;
            prop_assert!(compare(&edited) == ContentMatch::Different || are_codes);
        }
    }
}
