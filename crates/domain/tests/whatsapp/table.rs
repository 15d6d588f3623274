//! One row for each rule: a minimal invalid document, its violation, and a similar valid document.

use galley_domain::{
    rulebook::{Rulebook, V1, WHATSAPP},
    violation::Rule,
};
use serde_json::{Value, json};

use super::{fixture::*, placement, recorded};

/// A rule, a document that breaks it, the reported violation, the code and subcode (or 0) of the Graph
/// API, and a similar document that does not break it.
pub(crate) type Row = (Rule, String, &'static str, (u32, u32), String);

/// Rules that `v1` has too.
fn shared_rules() -> Vec<Row> {
    let twice = r#"{"name":"a","name":"n","language":"en","category":"UTILITY","components":[{"type":"BODY","text":"b"}]}"#;
    let replies = |count| {
        let reply = |number| reply(&format!("t{number}"));
        buttons(&json!((0..count).map(reply).collect::<Vec<_>>()))
    };
    vec![
        (
            Rule::Required,
            with_field("language", Value::Null),
            "/language required",
            (100, 0),
            with_field("language", json!("de")),
        ),
        (
            Rule::WrongType,
            with_field("message_send_ttl_seconds", json!("43200")),
            "/message_send_ttl_seconds wrong-type",
            (100, 0),
            with_field("message_send_ttl_seconds", json!(43_200)),
        ),
        (
            Rule::DuplicateKey,
            twice.to_owned(),
            "/name duplicate-key",
            (100, 0),
            twice.replace(r#""name":"a","#, ""),
        ),
        (Rule::Empty, footer(" "), "/components/1/text empty", (100, 2_388_073), footer(" .")),
        (
            Rule::TooLong,
            header(&"é".repeat(61)),
            "/components/1/text too-long",
            (100, 2_388_040),
            header(&"é".repeat(60)),
        ),
        (
            Rule::ControlCharacter,
            header("a\nb"),
            "/components/1/text control-character",
            (100, 2_388_047),
            with_components(&json!([{"type": "BODY", "text": "a\nb"}])),
        ),
        (
            Rule::TooFew,
            carousel(&json!([plain_card()])),
            "/components/1/cards too-few",
            (100, 0),
            carousel(&json!([plain_card(), plain_card()])),
        ),
        (Rule::TooMany, replies(11), "/components/1/buttons too-many", (100, 0), replies(10)),
        (
            Rule::NotAChoice,
            with_field("parameter_format", json!("NUMBERED")),
            "/parameter_format not-a-choice",
            (100, 0),
            with_field("parameter_format", json!("positional")),
        ),
    ]
}

/// Rules about texts and URLs that `v1` has too.
fn shared_text_rules() -> Vec<Row> {
    let call = |number: &str| {
        button(&json!({"type": "PHONE_NUMBER", "text": "t", "phone_number": number}))
    };
    vec![
        (
            Rule::BodyMissing,
            with_components(&json!([{"type": "FOOTER", "text": "f"}])),
            "/components body-missing",
            (100, 2_388_043),
            footer("f"),
        ),
        (
            Rule::ComponentRepeated,
            with_component(&json!({"type": "body", "text": "b"})),
            "/components/1 component-repeated",
            (100, 0),
            header("b"),
        ),
        (
            Rule::PlaceholderSyntax,
            body("Hi {{name}} and bye", &json!("a")),
            "/components/0/text placeholder-syntax",
            (100, 2_388_072),
            body("Hi {{1}} and bye", &json!("a")),
        ),
        (
            Rule::PlaceholderGap,
            body("Hi {{2}} and bye", &json!("a")),
            "/components/0/text placeholder-gap",
            (100, 2_388_037),
            body("Hi {{1}} and bye", &json!("a")),
        ),
        (
            Rule::PlaceholderNotAllowed,
            button(&reply("{{1}}")),
            "/components/1/buttons/0/text placeholder-not-allowed",
            (100, 2_388_060),
            button(&reply("1")),
        ),
        (
            Rule::SamplesCount,
            body("Hi {{1}} and bye", &json!([["a", "b"]])),
            "/components/0/example/body_text/0 samples-count",
            (100, 2_388_043),
            body("Hi {{1}} and bye", &json!(["a"])),
        ),
        (
            Rule::UrlScheme,
            url("shop.example"),
            "/components/1/buttons/0/url url-scheme",
            (100, 2_388_052),
            url("http://shop.example"),
        ),
        (
            Rule::UrlHost,
            url("https:///a"),
            "/components/1/buttons/0/url url-host",
            (100, 2_388_052),
            url("https://a"),
        ),
        (
            Rule::UrlUserInfo,
            url("https://me@shop.example"),
            "/components/1/buttons/0/url url-user-info",
            (100, 2_388_052),
            url("https://shop.example/me@"),
        ),
        (
            Rule::UrlWhiteSpace,
            url("https://shop.example/a b"),
            "/components/1/buttons/0/url url-white-space",
            (100, 2_388_052),
            url("https://shop.example/a%20b"),
        ),
        (
            Rule::PhoneForm,
            call("+1-2-3-4"),
            "/components/1/buttons/0/phone_number phone-form",
            (192, 0),
            call("+55-0-955-585-95436"),
        ),
    ]
}

/// Rules about single fields.
fn field_rules() -> Vec<Row> {
    let lifetime = |seconds: i64| with_field("message_send_ttl_seconds", json!(seconds));
    let sample = |name: &str| json!([{"param_name": name, "example": "Ada"}]);
    vec![
        (
            Rule::NameForm,
            with_field("name", json!("N")),
            "/name name-form",
            (100, 2_388_046),
            with_field("name", json!("n_1")),
        ),
        (
            Rule::LanguageUnsupported,
            with_field("language", json!("de_DE")),
            "/language language-unsupported",
            (100, 0),
            with_field("language", json!("de_AT")),
        ),
        (
            Rule::PlaceholderName,
            named("Hi {{1}} and bye", &sample("first_name")),
            "/components/0/text placeholder-name",
            (100, 2_388_072),
            named("Hi {{first_name}} and bye", &sample("first_name")),
        ),
        (
            Rule::PlaceholderCount,
            with_component(
                &json!({"type": "HEADER", "format": "TEXT", "text": "{{1}} {{2}}", "example": {"header_text": ["a"]}}),
            ),
            "/components/1/text placeholder-count",
            (100, 2_388_047),
            with_component(
                &json!({"type": "HEADER", "format": "TEXT", "text": "{{1}} 2", "example": {"header_text": ["a"]}}),
            ),
        ),
        (
            Rule::SamplesNotAllowed,
            with_components(&json!([{"type": "BODY", "text": "b", "example": {}}])),
            "/components/0/example samples-not-allowed",
            (100, 2_388_043),
            with_components(&json!([{"type": "BODY", "text": "b", "example": null}])),
        ),
        (
            Rule::SampleName,
            named("Hi {{a}} and bye", &sample("b")),
            "/components/0/example/body_text_named_params/0/param_name sample-name",
            (100, 2_388_043),
            named("Hi {{a}} and bye", &sample("a")),
        ),
        (
            Rule::WhatsappLink,
            url("https://wa.me/15550001111"),
            "/components/1/buttons/0/url whatsapp-link",
            (100, 2_388_081),
            url("https://wa.example/15550001111"),
        ),
        (
            Rule::NumberRange,
            lifetime(2_592_001),
            "/message_send_ttl_seconds number-range",
            (100, 0),
            lifetime(2_592_000),
        ),
        (
            Rule::NumberRange,
            lifetime(43_199),
            "/message_send_ttl_seconds number-range",
            (100, 0),
            lifetime(43_200),
        ),
        (
            Rule::PackageForm,
            app("shop", "K8a/AINcGX7"),
            "/components/1/buttons/0/supported_apps/0/package_name package-form",
            (100, 0),
            app("com.shop", "K8a/AINcGX7"),
        ),
        (
            Rule::SignatureForm,
            app("com.shop", "K8a/AINcGX"),
            "/components/1/buttons/0/supported_apps/0/signature_hash signature-form",
            (100, 0),
            app("com.shop", "K8a/AINcGX="),
        ),
    ]
}

/// Rules about the content of texts.
fn text_rules() -> Vec<Row> {
    vec![
        (
            Rule::PlaceholderAtStart,
            body("{{1}}, one two three", &json!("a")),
            "/components/0/text placeholder-at-start",
            (100, 2_388_299),
            body("One {{1}}, two three", &json!("a")),
        ),
        (
            Rule::PlaceholderAtEnd,
            body("one two three {{1}}.", &json!("a")),
            "/components/0/text placeholder-at-end",
            (100, 2_388_299),
            body("one two {{1}} three.", &json!("a")),
        ),
        (
            Rule::TooFewWords,
            body("one {{1}} two", &json!("a")),
            "/components/0/text too-few-words",
            (100, 2_388_293),
            body("one {{1}} two three", &json!("a")),
        ),
        (
            Rule::Formatting,
            footer("*b*"),
            "/components/1/text formatting",
            (100, 2_388_073),
            footer("*b"),
        ),
        (
            Rule::Formatting,
            header("b*"),
            "/components/1/text formatting",
            (100, 2_388_047),
            header("b_"),
        ),
        (
            Rule::Formatting,
            button(&reply("~5 min")),
            "/components/1/buttons/0/text formatting",
            (100, 2_388_060),
            button(&reply("5 _min")),
        ),
        (
            Rule::ControlCharacter,
            footer("a\u{2028}b"),
            "/components/1/text control-character",
            (100, 2_388_073),
            with_components(&json!([{"type": "BODY", "text": "a\u{2028}b"}])),
        ),
        (
            Rule::Emoji,
            button(&reply("Yes 😀")),
            "/components/1/buttons/0/text emoji",
            (100, 2_388_060),
            button(&reply("Yes ©")),
        ),
    ]
}

/// Rules about buttons.
fn button_rules() -> Vec<Row> {
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
        template(category, &json!([{"type": "BODY", "text": "b"}, buttons])).to_string()
    };
    let product = |header: &Value| {
        let buttons = json!({"type": "BUTTONS", "buttons": [{"type": "SPM"}]});
        with_components(&json!([{"type": "BODY", "text": "b"}, buttons, header]))
    };
    vec![
        (
            Rule::LabelRepeated,
            buttons(&json!([reply("Yes"), reply("Yes")])),
            "/components/1/buttons/1/text label-repeated",
            (100, 0),
            buttons(&json!([reply("Yes"), reply("No")])),
        ),
        (
            Rule::ButtonCount,
            buttons(&json!([link(), link(), link()])),
            "/components/1/buttons/2 button-count",
            (100, 0),
            buttons(&json!([link(), link()])),
        ),
        (
            Rule::QuickRepliesApart,
            buttons(&json!([reply("Yes"), link(), reply("No")])),
            "/components/1/buttons/2 quick-replies-apart",
            (100, 0),
            buttons(&json!([link(), reply("Yes"), reply("No")])),
        ),
        (
            Rule::ButtonAlone,
            buttons(&json!([{"type": "CATALOG"}, reply("No")])),
            "/components/1/buttons/0 button-alone",
            (100, 0),
            buttons(&json!([{"type": "CATALOG"}])),
        ),
        (
            Rule::CategoryUnfit,
            order("MARKETING"),
            "/components/1/buttons/0 category-unfit",
            (100, 0),
            order("utility"),
        ),
        (
            Rule::TermsNotAccepted,
            zero_tap(false),
            "/components/1/buttons/0/zero_tap_terms_accepted terms-not-accepted",
            (100, 2_388_050),
            zero_tap(true),
        ),
        (
            Rule::FlowSource,
            flow(&["flow_id", "flow_name"]),
            "/components/1/buttons/0 flow-source",
            (100, 2_388_050),
            flow(&["flow_id"]),
        ),
        (
            Rule::ProductHeader,
            product(&json!({"type": "FOOTER", "text": "f"})),
            "/components/1/buttons/0 product-header",
            (100, 0),
            product(&json!({"type": "HEADER", "format": "PRODUCT"})),
        ),
        (
            Rule::AuthenticationButton,
            template("AUTHENTICATION", &json!([{"type": "BODY"}])).to_string(),
            "/components authentication-button",
            (100, 0),
            one_time_code(&json!({"otp_type": "copy_code"})),
        ),
    ]
}

/// Rules about components.
fn component_rules() -> Vec<Row> {
    let texts = |text: &Value| {
        let mut document = authentication(&json!([{"type": "OTP", "otp_type": "COPY_CODE"}]));
        document["components"][0]["text"] = text.clone();
        document.to_string()
    };
    let second = |second: &Value| carousel(&json!([plain_card(), second]));
    vec![
        (
            Rule::ComponentUnfit,
            with_components(&json!([
                {"type": "BODY", "text": "b"},
                {"type": "FOOTER", "text": "f"},
                {"type": "CAROUSEL", "cards": [plain_card(), plain_card()]},
            ])),
            "/components/1 component-unfit",
            (100, 0),
            carousel(&json!([plain_card(), plain_card()])),
        ),
        (
            Rule::AuthenticationText,
            texts(&json!("Your code")),
            "/components/0/text authentication-text",
            (100, 2_388_043),
            texts(&Value::Null),
        ),
        (
            Rule::AuthenticationOnly,
            with_component(&json!({"type": "FOOTER", "text": "f", "code_expiration_minutes": 5})),
            "/components/1/code_expiration_minutes authentication-only",
            (100, 2_388_043),
            footer("f"),
        ),
        (
            Rule::CardIncomplete,
            second(&card(&json!([{"type": "BUTTONS", "buttons": [link()]}]))),
            "/components/1/cards/1/components card-incomplete",
            (100, 2_388_043),
            second(&plain_card()),
        ),
        (
            Rule::CardsDiffer,
            second(&card(&json!([image(), {"type": "BUTTONS", "buttons": [link(), reply("No")]}]))),
            "/components/1/cards/1 cards-differ",
            (100, 0),
            second(&plain_card()),
        ),
        (
            Rule::OfferButtons,
            offer(true, &json!([link(), code()])).to_string(),
            "/components/2/buttons/1 offer-buttons",
            (100, 0),
            offer(true, &json!([code(), link()])).to_string(),
        ),
    ]
}

fn table() -> Vec<Row> {
    let parts = [shared_rules(), shared_text_rules(), field_rules(), text_rules()];
    let more = [button_rules(), component_rules(), placement::rows(), recorded::rows()];
    parts.into_iter().chain(more).flatten().collect()
}

#[test]
fn every_rule_rejects_the_invalid_and_accepts_the_valid_document() {
    for (rule, bad, line, code, good) in table() {
        assert_eq!(violations_of(&bad), [line], "{} rejects {bad}", rule.id());
        assert_eq!(codes(&bad), [code], "{}: {bad}", rule.id());
        assert_eq!(violations_of(&good), [""; 0], "{} accepts {good}", rule.id());
        assert!(line.ends_with(rule.id()));
    }
}

#[test]
fn every_rule_of_every_rulebook_has_a_row() {
    // A new rulebook needs a table like this one.
    assert_eq!(Rulebook::ALL, [&V1, &WHATSAPP]);
    assert_eq!(V1.rules, Rule::DOCUMENT, "`rules.rs` contains their rows");
    let rows: Vec<Rule> = table().into_iter().map(|(rule, ..)| rule).collect();
    let missing: Vec<&str> =
        WHATSAPP.rules.iter().filter(|rule| !rows.contains(rule)).map(|it| it.id()).collect();
    assert_eq!(missing, [""; 0]);
    let unlisted: Vec<&str> =
        rows.iter().filter(|rule| !WHATSAPP.rules.contains(rule)).map(|it| it.id()).collect();
    assert_eq!(unlisted, [""; 0], "rules that the rulebook does not list");
}
