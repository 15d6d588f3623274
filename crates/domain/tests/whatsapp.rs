//! Every rule of the `whatsapp` rulebook: the smallest document that breaks it, the nearest one
//! that does not, and where the violation is told. The rules of `v1` have theirs in `rules.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use galley_domain::{
    json::Document,
    rulebook::{Rulebook, V1, WHATSAPP},
    template::Template,
    violation::{Rule, Violation, Violations},
};
use serde_json::{Value, json};

fn read(document: &str) -> Result<Template, Violations> {
    Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP)
}

fn told(document: &str) -> Vec<String> {
    match read(document) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.told().iter().map(line).collect(),
    }
}

fn line(violation: &Violation) -> String {
    assert!(violation.hint.is_some(), "{violation:?} says how to mend it");
    format!("{} {}", violation.pointer, violation.rule.id())
}

/// A valid template of that category with these components.
fn of(category: &str, components: &Value) -> Value {
    json!({"name": "n", "language": "en_US", "category": category, "components": components})
}

fn with(components: &Value) -> String {
    of("MARKETING", components).to_string()
}

/// A valid template with a body and this component.
fn and(component: &Value) -> String {
    with(&json!([{"type": "BODY", "text": "b"}, component]))
}

/// A valid template in which one top-level field has another value.
fn top(field: &str, value: Value) -> String {
    let mut document = of("MARKETING", &json!([{"type": "BODY", "text": "b"}]));
    document[field] = value;
    document.to_string()
}

fn header(text: &str) -> String {
    and(&json!({"type": "HEADER", "format": "TEXT", "text": text}))
}

fn footer(text: &str) -> String {
    and(&json!({"type": "FOOTER", "text": text}))
}

fn buttons(buttons: &Value) -> String {
    and(&json!({"type": "BUTTONS", "buttons": buttons}))
}

fn button(button: &Value) -> String {
    buttons(&json!([button]))
}

fn url(url: &str) -> String {
    button(&json!({"type": "URL", "text": "t", "url": url}))
}

/// A template with a text in its body and samples for it.
fn body(text: &str, samples: &Value) -> String {
    with(&json!([{"type": "BODY", "text": text, "example": {"body_text": samples}}]))
}

fn named(text: &str, samples: &Value) -> String {
    let body =
        json!([{"type": "BODY", "text": text, "example": {"body_text_named_params": samples}}]);
    let mut document = of("MARKETING", &body);
    document["parameter_format"] = json!("named");
    document.to_string()
}

fn reply(text: &str) -> Value {
    json!({"type": "QUICK_REPLY", "text": text})
}

fn link() -> Value {
    json!({"type": "URL", "text": "Go", "url": "https://shop.example"})
}

fn code() -> Value {
    json!({"type": "COPY_CODE", "example": "SAVE25"})
}

fn image() -> Value {
    json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::aW1h"]}})
}

/// An authentication template with these buttons.
fn authentication(buttons: &Value) -> Value {
    of("AUTHENTICATION", &json!([{"type": "BODY"}, {"type": "BUTTONS", "buttons": buttons}]))
}

fn one_time_code(otp: &Value) -> String {
    let mut button = json!({"type": "OTP"});
    button.as_object_mut().unwrap().extend(otp.as_object().unwrap().clone());
    authentication(&json!([button])).to_string()
}

fn app(package: &str, signature: &str) -> String {
    let apps = json!([{"package_name": package, "signature_hash": signature}]);
    one_time_code(&json!({"otp_type": "ONE_TAP", "supported_apps": apps}))
}

fn card(components: &Value) -> Value {
    json!({"components": components})
}

fn carousel(cards: &Value) -> String {
    and(&json!({"type": "CAROUSEL", "cards": cards}))
}

fn plain_card() -> Value {
    card(&json!([image(), {"type": "BUTTONS", "buttons": [link()]}]))
}

fn offer(ends: bool, buttons: &Value) -> Value {
    of(
        "MARKETING",
        &json!([
            {"type": "BODY", "text": "b"},
            {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Now", "has_expiration": ends}},
            {"type": "BUTTONS", "buttons": buttons},
        ]),
    )
}

/// A body text that is long enough for three placeholders.
const LONG: &str = "Hello there, this is the news for today";

/// Rule, a document that breaks it, what is then told, and the nearest document that does not.
type Row = (Rule, String, &'static str, String);

fn shared() -> Vec<Row> {
    let call = |number: &str| {
        button(&json!({"type": "PHONE_NUMBER", "text": "t", "phone_number": number}))
    };
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
    [shared(), of_fields(), of_buttons(), of_components()].into_iter().flatten().collect()
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

#[test]
fn examples_are_taken_in_every_spelling_and_kept_in_one() {
    let kept = |document: &str| {
        let template = read(document).unwrap();
        let content: Value = serde_json::from_str(template.content()).unwrap();
        content["components"].clone()
    };
    for samples in [json!([["Ada"]]), json!(["Ada"]), json!("Ada")] {
        let components = kept(&body("Hi {{1}} and bye", &samples));
        assert_eq!(components[0]["example"], json!({"body_text": [["Ada"]]}), "{samples}");
    }
    let two = kept(&body("Hi {{1}} and {{2}} or somebody else", &json!(["a", "b"])));
    assert_eq!(two[0]["example"], json!({"body_text": [["a", "b"]]}));
    for sample in [json!("Ada"), json!(["Ada"])] {
        let header = json!({"type": "HEADER", "format": "TEXT", "text": "Hi {{1}}", "example": {"header_text": sample}});
        assert_eq!(kept(&and(&header))[1]["example"], json!({"header_text": ["Ada"]}));
        let image =
            json!({"type": "HEADER", "format": "image", "example": {"header_handle": sample}});
        assert_eq!(kept(&and(&image))[1]["example"], json!({"header_handle": ["Ada"]}));
        let link =
            json!({"type": "URL", "text": "Go", "url": "https://a.b/{{1}}", "example": sample});
        assert_eq!(kept(&button(&link))[1]["buttons"][0]["example"], json!(["Ada"]));
        let copy = json!({"type": "copy_code", "example": sample});
        let copied = json!({"type": "COPY_CODE", "text": "Copy offer code", "example": ["Ada"]});
        assert_eq!(kept(&button(&copy))[1]["buttons"][0], copied);
    }
    let samples = json!([{"example": "x", "param_name": "b", "more": 1}, {"param_name": "a", "example": "y"}]);
    let named = kept(&named(&format!("{LONG} {{{{a}}}} and {{{{b}}}} bye"), &samples));
    let expected =
        json!([{"param_name": "b", "example": "x"}, {"param_name": "a", "example": "y"}]);
    assert_eq!(named[0]["example"], json!({"body_text_named_params": expected}));
}

#[test]
fn samples_fit_the_text_and_the_format() {
    let text = "Hi {{1}} and bye";
    for (samples, line) in [
        (json!([]), "/components/0/example/body_text samples-count"),
        (json!([["a"], ["b"]]), "/components/0/example/body_text samples-count"),
        (json!([["a", "b"]]), "/components/0/example/body_text/0 samples-count"),
        (json!(7), "/components/0/example/body_text wrong-type"),
        (json!([7]), "/components/0/example/body_text/0 wrong-type"),
        (json!([[7]]), "/components/0/example/body_text/0/0 wrong-type"),
        (json!(" "), "/components/0/example/body_text empty"),
    ] {
        assert_eq!(told(&body(text, &samples)), [line], "{samples}");
    }
    assert_eq!(
        told(&with(&json!([{"type": "BODY", "text": text}]))),
        ["/components/0/example required"]
    );
    let other = json!([{"type": "BODY", "text": text, "example": {"body_text_named_params": []}}]);
    let lines = [
        "/components/0/example/body_text required",
        "/components/0/example/body_text_named_params samples-not-allowed",
    ];
    assert_eq!(told(&with(&other)), lines);
    let list = "/components/0/example/body_text_named_params";
    for (samples, lines) in [
        (json!([]), vec![" samples-count"]),
        (json!({}), vec![" wrong-type"]),
        (json!([7]), vec!["/0 wrong-type"]),
        (json!([{}]), vec!["/0/param_name required", "/0/example required"]),
        (
            json!([{"param_name": 1, "example": 2}]),
            vec!["/0/param_name wrong-type", "/0/example wrong-type"],
        ),
    ] {
        let lines: Vec<String> = lines.iter().map(|line| format!("{list}{line}")).collect();
        assert_eq!(told(&named("Hi {{a}} and bye", &samples)), lines, "{samples}");
    }
    let link = |example: Value| {
        button(
            &json!({"type": "URL", "text": "Go", "url": "https://a.b/{{1}}", "example": example}),
        )
    };
    assert_eq!(told(&link(Value::Null)), ["/components/1/buttons/0/example required"]);
    assert_eq!(told(&link(json!([]))), ["/components/1/buttons/0/example samples-count"]);
    let fixed = json!({"type": "URL", "text": "Go", "url": "https://a.b/", "example": ["x"]});
    assert_eq!(told(&button(&fixed)), ["/components/1/buttons/0/example samples-not-allowed"]);
}

#[test]
fn words_are_taken_in_any_letter_case_and_kept_in_upper_case() {
    let document = json!({
        "name": "n", "language": "pt_BR", "category": "marketing", "parameter_format": "Named",
        "message_send_ttl_seconds": 43_200, "cta_url_link_tracking_opted_out": true, "id": "102290129340398",
        "degrees_of_freedom_spec": {"creative_features_spec": {"image_touchups": {"enroll_status": "opt_in"}}},
        "components": [
            {"type": "body", "text": "b"},
            {"type": "Buttons", "buttons": [
                {"type": "flow", "text": "t", "flow_id": "1", "flow_action": "navigate", "icon": "review"},
                {"type": "voice_call", "text": "t"},
                {"type": "url", "text": "t", "url": "https://a.b/{{code}}", "example": "c",
                    "app_deep_link": {"meta_app_id": "7", "android_deep_link": "shop://x"}},
            ]},
        ],
    });
    let template = read(&document.to_string()).unwrap();
    assert!(template.allow_category_change(), "nothing was said against it");
    assert_eq!(
        template.content(),
        concat!(
            r#"{"parameter_format":"NAMED","message_send_ttl_seconds":43200,"cta_url_link_tracking_opted_out":true,"#,
            r#""degrees_of_freedom_spec":{"creative_features_spec":{"image_touchups":{"enroll_status":"OPT_IN"}}},"#,
            r#""components":[{"type":"BODY","text":"b"},{"type":"BUTTONS","buttons":["#,
            r#"{"type":"FLOW","text":"t","flow_id":"1","flow_action":"NAVIGATE","icon":"REVIEW"},"#,
            r#"{"type":"VOICE_CALL","text":"t"},"#,
            r#"{"type":"URL","text":"t","url":"https://a.b/{{code}}","example":["c"],"#,
            r#""app_deep_link":{"meta_app_id":"7","android_deep_link":"shop://x"}}]}]}"#,
        )
    );
    let plain = read(&top("allow_category_change", json!(false))).unwrap();
    assert!(!plain.allow_category_change());
    assert_eq!(
        plain.content(),
        r#"{"parameter_format":"POSITIONAL","components":[{"type":"BODY","text":"b"}]}"#
    );
}

#[test]
fn an_authentication_template_has_its_own_form() {
    let apps = json!([{"package_name": "com.shop", "signature_hash": "K8a/AINcGX7"}]);
    let mut document = authentication(&json!([{
        "type": "otp", "otp_type": "one_tap", "text": "Copy", "autofill_text": "Fill in", "supported_apps": apps,
    }]));
    document["components"][0]["add_security_recommendation"] = json!(true);
    let footer = json!({"type": "FOOTER", "code_expiration_minutes": 10});
    document["components"].as_array_mut().unwrap().push(footer);
    document["message_send_ttl_seconds"] = json!(-1);
    assert_eq!(told(&document.to_string()), [""; 0]);
    document["components"][2]["code_expiration_minutes"] = json!(91);
    document["components"][2]["text"] = json!("f");
    document["components"][1]["buttons"] =
        json!([reply("No"), {"type": "OTP", "otp_type": "COPY_CODE"}]);
    document["components"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "HEADER", "format": "LOCATION"}));
    document["message_send_ttl_seconds"] = json!(901);
    assert_eq!(
        told(&document.to_string()),
        [
            "/components/2/code_expiration_minutes number-range",
            "/message_send_ttl_seconds number-range",
            "/components/2/text authentication-text",
            "/components/3 component-unfit",
            "/components/1/buttons/0 authentication-button",
        ]
    );
    assert_eq!(
        told(&of("UTILITY", &json!([{"type": "BODY"}, {"type": "FOOTER"}])).to_string()),
        ["/components/0/text required", "/components/1/text required"]
    );
}

#[test]
fn special_pieces_have_their_categories_and_neighbours() {
    let text = |length: usize| "b".repeat(length);
    let mut long = offer(false, &json!([link()]));
    long["components"][0]["text"] = json!(text(601));
    assert_eq!(told(&long.to_string()), ["/components/0/text too-long"]);
    long["components"][0]["text"] = json!(text(600));
    assert_eq!(told(&long.to_string()), [""; 0]);
    long["category"] = json!("UTILITY");
    assert_eq!(told(&long.to_string()), ["/components/1 category-unfit"]);
    assert_eq!(told(&offer(true, &json!([link()])).to_string()), ["/components/2 offer-buttons"]);
    assert_eq!(told(&offer(false, &json!([code()])).to_string()), ["/components/2 offer-buttons"]);

    let product = |header: Value, length: usize| {
        with(
            &json!([header, {"type": "BODY", "text": text(length)}, {"type": "BUTTONS", "buttons": [{"type": "SPM"}]}]),
        )
    };
    let shown = json!({"type": "HEADER", "format": "PRODUCT"});
    assert_eq!(told(&product(shown.clone(), 160)), [""; 0]);
    assert_eq!(told(&product(shown.clone(), 161)), ["/components/1/text too-long"]);
    assert_eq!(
        told(&product(image(), 160)),
        ["/components/0 component-unfit", "/components/2/buttons/0 product-header"]
    );
    assert_eq!(told(&and(&shown)), ["/components/1 product-header"]);
    let catalog = |header: Value| {
        with(
            &json!([header, {"type": "BODY", "text": "b"}, {"type": "BUTTONS", "buttons": [{"type": "MPM"}]}]),
        )
    };
    assert_eq!(told(&catalog(json!({"type": "HEADER", "format": "TEXT", "text": "h"}))), [""; 0]);
    assert_eq!(told(&catalog(image())), ["/components/0 component-unfit"]);
    let permission = json!([{"type": "BODY", "text": "b"}, {"type": "call_permission_request"}]);
    assert_eq!(told(&of("UTILITY", &permission).to_string()), [""; 0]);
    let otp = json!({"type": "OTP", "otp_type": "COPY_CODE"});
    assert_eq!(told(&button(&otp)), ["/components/1/buttons/0 category-unfit"]);
    let mut order = of(
        "MARKETING",
        &json!([{"type": "BODY", "text": "b"}, {"type": "BUTTONS", "buttons": [{"type": "ORDER_DETAILS"}]}]),
    );
    order["display_format"] = json!("order_details");
    assert_eq!(told(&order.to_string()), [""; 0]);
}

#[test]
fn cards_are_judged_like_small_templates() {
    let body = |text: &str| json!({"type": "BODY", "text": text});
    let card = |body: &Value, buttons: &Value| {
        card(&json!([image(), body, {"type": "BUTTONS", "buttons": buttons}]))
    };
    let good = card(&body("b"), &json!([link()]));
    let cases = [
        (
            card(&body(&"b".repeat(161)), &json!([link()])),
            "/components/0/cards/1/components/1/text too-long",
        ),
        (
            card(&body("{{1}} b"), &json!([link()])),
            "/components/0/cards/1/components/1/text placeholder-at-start",
        ),
        (
            card(&body("b"), &json!([link(), link(), link()])),
            "/components/0/cards/1/components/2/buttons too-many",
        ),
        (
            card(&body("b"), &json!([{"type": "CATALOG"}])),
            "/components/0/cards/1/components/2/buttons/0/type not-a-choice",
        ),
        (plain_card(), "/components/0/cards/1 cards-differ"),
    ];
    for (bad, line) in cases {
        let document = with(
            &json!([{"type": "CAROUSEL", "cards": [good, bad]}, {"type": "BODY", "text": "b"}]),
        );
        assert!(told(&document).contains(&line.to_owned()), "{:?}", told(&document));
    }
    let products = json!({"components": [
        {"type": "HEADER", "format": "PRODUCT"}, {"type": "BUTTONS", "buttons": [{"type": "SPM"}]},
    ]});
    assert_eq!(told(&carousel(&json!([products, products]))), [""; 0]);
}

#[test]
fn a_claim_never_equals_a_name_and_differs_by_account_name_and_language() {
    use galley_domain::id::AccountId;
    let (one, two) = (AccountId::new(1).unwrap(), AccountId::new(11).unwrap());
    let claims = [
        (WHATSAPP.claim)(one, "n", "en"),
        (WHATSAPP.claim)(two, "n", "en"),
        (WHATSAPP.claim)(one, "m", "en"),
        (WHATSAPP.claim)(one, "n", "de"),
    ];
    for (index, claim) in claims.iter().enumerate() {
        assert!(!claims[..index].contains(claim));
        assert!(claim.starts_with(char::is_control), "no name holds such a character");
    }
}

#[test]
fn what_was_meant_is_told() {
    let hint = |document: &str| read(document).unwrap_err().told()[0].hint.clone().unwrap();
    assert_eq!(hint(&top("language", json!("en-US"))), "did you mean `en_US`?");
    assert_eq!(hint(&top("language", json!("pt"))), "did you mean `pt_BR`?");
    assert_eq!(hint(&top("name", json!("Order Update"))), "did you mean `order_update`?");
    assert_eq!(
        hint(&named("Hi {{First Name}} and bye", &Value::Null)),
        "did you mean `{{first_name}}`?"
    );
    let misspelt = button(&json!({"type": "QUICK_REPLAY", "text": "t"}));
    assert_eq!(hint(&misspelt), "did you mean `QUICK_REPLY`?");
}
