//! A row for each rule: the smallest breach, where it is told, and the nearest good document.

use galley_domain::{
    rulebook::{Rulebook, V1, WHATSAPP},
    violation::Rule,
};
use serde_json::{Value, json};

use super::fixture::*;

/// Rule, a document that breaks it, what is then told, and the nearest document that does not.
type Row = (Rule, String, &'static str, String);

/// The rules of any document that `v1` has, too.
fn shared() -> Vec<Row> {
    let twice = r#"{"name":"a","name":"n","language":"en","category":"UTILITY","components":[{"type":"BODY","text":"b"}]}"#;
    let replies = |count| {
        let reply = |number| reply(&format!("t{number}"));
        buttons(&json!((0..count).map(reply).collect::<Vec<_>>()))
    };
    vec![
        (
            Rule::Required,
            top("language", Value::Null),
            "/language required",
            top("language", json!("de")),
        ),
        (
            Rule::WrongType,
            top("message_send_ttl_seconds", json!("43200")),
            "/message_send_ttl_seconds wrong-type",
            top("message_send_ttl_seconds", json!(43_200)),
        ),
        (
            Rule::DuplicateKey,
            twice.to_owned(),
            "/name duplicate-key",
            twice.replace(r#""name":"a","#, ""),
        ),
        (Rule::Empty, footer(" "), "/components/1/text empty", footer(" .")),
        (
            Rule::TooLong,
            header(&"é".repeat(61)),
            "/components/1/text too-long",
            header(&"é".repeat(60)),
        ),
        (
            Rule::ControlCharacter,
            header("a\nb"),
            "/components/1/text control-character",
            with(&json!([{"type": "BODY", "text": "a\nb"}])),
        ),
        (
            Rule::TooFew,
            carousel(&json!([plain_card()])),
            "/components/1/cards too-few",
            carousel(&json!([plain_card(), plain_card()])),
        ),
        (Rule::TooMany, replies(11), "/components/1/buttons too-many", replies(10)),
        (
            Rule::NotAChoice,
            top("parameter_format", json!("NUMBERED")),
            "/parameter_format not-a-choice",
            top("parameter_format", json!("positional")),
        ),
    ]
}

/// Likewise, of texts and addresses.
fn shared_by_texts() -> Vec<Row> {
    let call = |number: &str| {
        button(&json!({"type": "PHONE_NUMBER", "text": "t", "phone_number": number}))
    };
    vec![
        (
            Rule::BodyMissing,
            with(&json!([{"type": "FOOTER", "text": "f"}])),
            "/components body-missing",
            footer("f"),
        ),
        (
            Rule::ComponentRepeated,
            and(&json!({"type": "body", "text": "b"})),
            "/components/1 component-repeated",
            header("b"),
        ),
        (
            Rule::PlaceholderSyntax,
            body("Hi {{name}} and bye", &json!("a")),
            "/components/0/text placeholder-syntax",
            body("Hi {{1}} and bye", &json!("a")),
        ),
        (
            Rule::PlaceholderGap,
            body("Hi {{2}} and bye", &json!("a")),
            "/components/0/text placeholder-gap",
            body("Hi {{1}} and bye", &json!("a")),
        ),
        (
            Rule::PlaceholderNotAllowed,
            button(&reply("{{1}}")),
            "/components/1/buttons/0/text placeholder-not-allowed",
            button(&reply("1")),
        ),
        (
            Rule::SamplesCount,
            body("Hi {{1}} and bye", &json!(["a", "b"])),
            "/components/0/example/body_text samples-count",
            body("Hi {{1}} and bye", &json!(["a"])),
        ),
        (
            Rule::UrlScheme,
            url("shop.example"),
            "/components/1/buttons/0/url url-scheme",
            url("http://shop.example"),
        ),
        (
            Rule::UrlHost,
            url("https:///a"),
            "/components/1/buttons/0/url url-host",
            url("https://a"),
        ),
        (
            Rule::UrlUserInfo,
            url("https://me@shop.example"),
            "/components/1/buttons/0/url url-user-info",
            url("https://shop.example/me@"),
        ),
        (
            Rule::UrlWhiteSpace,
            url("https://shop.example/a b"),
            "/components/1/buttons/0/url url-white-space",
            url("https://shop.example/a%20b"),
        ),
        (
            Rule::PhoneForm,
            call("015550001111"),
            "/components/1/buttons/0/phone_number phone-form",
            call("15550001111"),
        ),
    ]
}

/// The rules of single fields.
fn of_fields() -> Vec<Row> {
    let lifetime = |seconds: i64| top("message_send_ttl_seconds", json!(seconds));
    let sample = |name: &str| json!([{"param_name": name, "example": "Ada"}]);
    vec![
        (Rule::NameForm, top("name", json!("N")), "/name name-form", top("name", json!("n_1"))),
        (
            Rule::LanguageUnsupported,
            top("language", json!("de_DE")),
            "/language language-unsupported",
            top("language", json!("de_AT")),
        ),
        (
            Rule::PlaceholderName,
            named("Hi {{1}} and bye", &Value::Null),
            "/components/0/text placeholder-name",
            named("Hi {{first_name}} and bye", &sample("first_name")),
        ),
        (
            Rule::PlaceholderCount,
            and(
                &json!({"type": "HEADER", "format": "TEXT", "text": "{{1}} {{2}}", "example": {"header_text": ["a", "b"]}}),
            ),
            "/components/1/text placeholder-count",
            and(
                &json!({"type": "HEADER", "format": "TEXT", "text": "{{1}} 2", "example": {"header_text": ["a"]}}),
            ),
        ),
        (
            Rule::PlaceholderAtStart,
            body("{{1}}, one two three", &json!("a")),
            "/components/0/text placeholder-at-start",
            body("One {{1}}, two three", &json!("a")),
        ),
        (
            Rule::PlaceholderAtEnd,
            body("one two three {{1}}.", &json!("a")),
            "/components/0/text placeholder-at-end",
            body("one two {{1}} three.", &json!("a")),
        ),
        (
            Rule::TooFewWords,
            body("one {{1}} two", &json!("a")),
            "/components/0/text too-few-words",
            body("one {{1}} two three", &json!("a")),
        ),
        (Rule::Formatting, footer("*b*"), "/components/1/text formatting", footer("*b")),
        (Rule::Formatting, header("b*"), "/components/1/text formatting", header("b_")),
        (
            Rule::Emoji,
            button(&reply("Yes 😀")),
            "/components/1/buttons/0/text emoji",
            button(&reply("Yes ©")),
        ),
        (
            Rule::SamplesNotAllowed,
            with(&json!([{"type": "BODY", "text": "b", "example": {}}])),
            "/components/0/example samples-not-allowed",
            with(&json!([{"type": "BODY", "text": "b", "example": null}])),
        ),
        (
            Rule::SampleName,
            named("Hi {{a}} and bye", &sample("b")),
            "/components/0/example/body_text_named_params/0/param_name sample-name",
            named("Hi {{a}} and bye", &sample("a")),
        ),
        (
            Rule::WhatsappLink,
            url("https://wa.me/15550001111"),
            "/components/1/buttons/0/url whatsapp-link",
            url("https://wa.example/15550001111"),
        ),
        (
            Rule::NumberRange,
            lifetime(2_592_001),
            "/message_send_ttl_seconds number-range",
            lifetime(2_592_000),
        ),
        (
            Rule::NumberRange,
            lifetime(43_199),
            "/message_send_ttl_seconds number-range",
            lifetime(43_200),
        ),
        (
            Rule::PackageForm,
            app("shop", "K8a/AINcGX7"),
            "/components/1/buttons/0/supported_apps/0/package_name package-form",
            app("com.shop", "K8a/AINcGX7"),
        ),
        (
            Rule::SignatureForm,
            app("com.shop", "K8a/AINcGX"),
            "/components/1/buttons/0/supported_apps/0/signature_hash signature-form",
            app("com.shop", "K8a/AINcGX="),
        ),
    ]
}

/// The rules about buttons.
fn of_buttons() -> Vec<Row> {
    let flow = |fields: &[&str]| {
        let mut flow = json!({"type": "FLOW", "text": "t"});
        for field in fields {
            flow[*field] = json!("1");
        }
        button(&flow)
    };
    let zero_tap = |accepted: bool| {
        let apps = json!([{"package_name": "com.shop", "signature_hash": "K8a/AINcGX7"}]);
        one_time_code(
            &json!({"otp_type": "ZERO_TAP", "supported_apps": apps, "zero_tap_terms_accepted": accepted}),
        )
    };
    let order = |category: &str| {
        let buttons = json!({"type": "BUTTONS", "buttons": [{"type": "ORDER_DETAILS"}]});
        of(category, &json!([{"type": "BODY", "text": "b"}, buttons])).to_string()
    };
    let product = |header: &Value| {
        let buttons = json!({"type": "BUTTONS", "buttons": [{"type": "SPM"}]});
        with(&json!([{"type": "BODY", "text": "b"}, buttons, header]))
    };
    vec![
        (
            Rule::LabelRepeated,
            buttons(&json!([reply("Yes"), reply("Yes")])),
            "/components/1/buttons/1/text label-repeated",
            buttons(&json!([reply("Yes"), reply("No")])),
        ),
        (
            Rule::ButtonCount,
            buttons(&json!([link(), link(), link()])),
            "/components/1/buttons/2 button-count",
            buttons(&json!([link(), link()])),
        ),
        (
            Rule::QuickRepliesApart,
            buttons(&json!([reply("Yes"), link(), reply("No")])),
            "/components/1/buttons/2 quick-replies-apart",
            buttons(&json!([link(), reply("Yes"), reply("No")])),
        ),
        (
            Rule::ButtonAlone,
            buttons(&json!([{"type": "CATALOG"}, reply("No")])),
            "/components/1/buttons/0 button-alone",
            buttons(&json!([{"type": "CATALOG"}])),
        ),
        (
            Rule::CategoryUnfit,
            order("MARKETING"),
            "/components/1/buttons/0 category-unfit",
            order("utility"),
        ),
        (
            Rule::TermsNotAccepted,
            zero_tap(false),
            "/components/1/buttons/0/zero_tap_terms_accepted terms-not-accepted",
            zero_tap(true),
        ),
        (
            Rule::FlowSource,
            flow(&["flow_id", "flow_name"]),
            "/components/1/buttons/0 flow-source",
            flow(&["flow_id"]),
        ),
        (
            Rule::ProductHeader,
            product(&json!({"type": "FOOTER", "text": "f"})),
            "/components/1/buttons/0 product-header",
            product(&json!({"type": "HEADER", "format": "PRODUCT"})),
        ),
        (
            Rule::AuthenticationButton,
            of("AUTHENTICATION", &json!([{"type": "BODY"}])).to_string(),
            "/components authentication-button",
            one_time_code(&json!({"otp_type": "copy_code"})),
        ),
    ]
}

/// The rules about components.
fn of_components() -> Vec<Row> {
    let texts = |text: &Value| {
        let mut document = authentication(&json!([{"type": "OTP", "otp_type": "COPY_CODE"}]));
        document["components"][0]["text"] = text.clone();
        document.to_string()
    };
    let second = |second: &Value| carousel(&json!([plain_card(), second]));
    vec![
        (
            Rule::ComponentUnfit,
            with(&json!([
                {"type": "BODY", "text": "b"},
                {"type": "FOOTER", "text": "f"},
                {"type": "CAROUSEL", "cards": [plain_card(), plain_card()]},
            ])),
            "/components/1 component-unfit",
            carousel(&json!([plain_card(), plain_card()])),
        ),
        (
            Rule::AuthenticationText,
            texts(&json!("Your code")),
            "/components/0/text authentication-text",
            texts(&Value::Null),
        ),
        (
            Rule::AuthenticationOnly,
            and(&json!({"type": "FOOTER", "text": "f", "code_expiration_minutes": 5})),
            "/components/1/code_expiration_minutes authentication-only",
            footer("f"),
        ),
        (
            Rule::CardIncomplete,
            second(&card(&json!([{"type": "BUTTONS", "buttons": [link()]}]))),
            "/components/1/cards/1/components card-incomplete",
            second(&plain_card()),
        ),
        (
            Rule::CardsDiffer,
            second(&card(&json!([image(), {"type": "BUTTONS", "buttons": [link(), reply("No")]}]))),
            "/components/1/cards/1 cards-differ",
            second(&plain_card()),
        ),
        (
            Rule::OfferButtons,
            offer(true, &json!([link(), code()])).to_string(),
            "/components/2/buttons/1 offer-buttons",
            offer(true, &json!([code(), link()])).to_string(),
        ),
    ]
}

fn table() -> Vec<Row> {
    let parts = [shared(), shared_by_texts(), of_fields(), of_buttons(), of_components()];
    parts.into_iter().flatten().collect()
}

#[test]
fn every_rule_refuses_the_smallest_breach_and_takes_the_nearest_document() {
    for (rule, bad, line, good) in table() {
        assert_eq!(told(&bad), [line], "{} should refuse {bad}", rule.id());
        assert_eq!(told(&good), [""; 0], "{} should take {good}", rule.id());
        assert!(line.ends_with(rule.id()));
    }
}

#[test]
fn no_rule_of_any_rulebook_is_without_its_row() {
    // A third rulebook needs a table like this one.
    assert_eq!(Rulebook::ALL, [&V1, &WHATSAPP]);
    assert_eq!(V1.rules, Rule::DOCUMENT, "their rows stand in `rules.rs`");
    let rows: Vec<Rule> = table().into_iter().map(|(rule, ..)| rule).collect();
    let without: Vec<&str> =
        WHATSAPP.rules.iter().filter(|rule| !rows.contains(rule)).map(|it| it.id()).collect();
    assert_eq!(without, [""; 0]);
    let unlisted: Vec<&str> =
        rows.iter().filter(|rule| !WHATSAPP.rules.contains(rule)).map(|it| it.id()).collect();
    assert_eq!(unlisted, [""; 0], "rules that the rulebook does not name");
}
