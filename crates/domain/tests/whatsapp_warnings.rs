//! Warnings about templates of the `v1` rulebook that WhatsApp cannot have.

use galley_domain::{
    document::Document,
    rulebook::V1,
    template::{Template, edit::Edit},
    violation::{Warning, WarningRule, Warnings},
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn document(components: &Value) -> Value {
    json!({"name": "n", "language": "en_US", "category": "MARKETING",
        "allow_category_change": true, "components": components})
}

fn body(text: &str) -> Value {
    let mut body = json!({"type": "BODY", "text": text});
    let samples: Vec<&str> =
        (1..=9).map_while(|n| text.contains(&format!("{{{{{n}}}}}")).then_some("x")).collect();
    if !samples.is_empty() {
        body["example"] = json!({"body_text": [samples]});
    }
    body
}

/// The template, and the warnings of a dry run.
fn check(document: &Value) -> (Template, Warnings) {
    let text = document.to_string();
    let checked = Template::check(&Document::parse(text.as_bytes()).unwrap(), &V1);
    (checked.template.unwrap(), checked.warnings)
}

/// The warnings about WhatsApp: pointer, rule and hint.
fn found(warnings: &Warnings) -> Vec<(&str, &str, &str)> {
    let is_about_whatsapp = |it: &&Warning| it.rule.id().starts_with("whatsapp-");
    let found = warnings.listed().iter().filter(is_about_whatsapp);
    found.map(|it| (&*it.pointer, it.rule.id(), &*it.hint)).collect()
}

#[test]
fn a_name_and_a_language_that_whatsapp_does_not_have_are_reported_with_those_it_has() {
    let mut spring = document(&json!([body("We are open.")]));
    spring["name"] = json!("Spring Sale! 2026");
    spring["language"] = json!("de_DE");
    let expected = [
        ("/name", "whatsapp-name", "for WhatsApp, name it `spring_sale_2026`"),
        ("/language", "whatsapp-language", "the closest code of WhatsApp is `de`"),
    ];
    let (template, warnings) = check(&spring);
    assert_eq!(found(&warnings), expected);
    assert_eq!(
        found(&template.whatsapp_identity_warnings()),
        expected,
        "a render reports the same"
    );
    // The suggestions are valid.
    spring["name"] = json!("spring_sale_2026");
    spring["language"] = json!("en_US");
    assert_eq!(found(&check(&spring).1), []);
    spring["name"] = json!("Ängström");
    assert_eq!(found(&check(&spring).1)[0].2, "for WhatsApp, name it `angstrom`");
    spring["name"] = json!("春のセール");
    assert!(found(&check(&spring).1)[0].2.contains("such as `spring_sale_2026`"));
}

#[test]
fn an_invalid_document_gets_the_warnings_about_its_valid_name_and_language() {
    let invalid = json!({"name": "A b", "language": "de_DE", "category": "NEWS", "components": []});
    let invalid = invalid.to_string();
    let checked = Template::check(&Document::parse(invalid.as_bytes()).unwrap(), &V1);
    assert!(checked.template.is_err());
    let rules: Vec<&str> = found(&checked.warnings).iter().map(|it| it.1).collect();
    assert_eq!(rules, ["whatsapp-name", "whatsapp-language"]);
    let worse = r#"{"name": " A b", "language": "deutsch"}"#;
    let checked = Template::check(&Document::parse(worse.as_bytes()).unwrap(), &V1);
    assert_eq!(found(&checked.warnings), [], "the violations say it");
}

#[test]
fn content_that_whatsapp_refuses_is_reported_at_its_place() {
    let reply = |text: &str| json!({"type": "QUICK_REPLY", "text": text});
    let url = |text: &str| json!({"type": "URL", "text": text, "url": "https://shop.example/a"});
    let buttons = |list: &Value| json!([body("b"), {"type": "BUTTONS", "buttons": list}]);
    let header =
        |text: &str| json!([body("b"), {"type": "HEADER", "format": "TEXT", "text": text}]);
    for (components, pointer) in [
        (json!([body("Hello {{1}} b")]), "/components/0/text"),
        (header("Sale {{1}} and {{2}}"), "/components/1/text"),
        (header("Our *sale*"), "/components/1/text"),
        (json!([body("b"), {"type": "FOOTER", "text": "Bye 👋"}]), "/components/1/text"),
        (buttons(&json!([reply("a"), url("u"), reply("b")])), "/components/1/buttons/2"),
        (buttons(&json!([url("a"), url("b"), url("c")])), "/components/1/buttons/2"),
        (
            buttons(&json!([{"type": "URL", "text": "t", "url": "https://localhost/1"}])),
            "/components/1/buttons/0/url",
        ),
    ] {
        let (template, warnings) = check(&document(&components));
        let reported = found(&warnings);
        assert!(
            reported.len() == 1 && reported[0].0 == pointer && reported[0].1 == "whatsapp-content",
            "{components}: {reported:?}"
        );
        assert_eq!(found(&template.whatsapp_content_warnings()), reported, "{components}");
    }
    for components in [
        json!([body("Hi {{1}}, this is for you")]),
        json!([body("b"), {"type": "HEADER", "format": "MEDIA",
            "example": {"media_url": "https://cdn.example/a.jpg"}}]),
        header("Order {{1}}"),
        buttons(&json!([{"type": "URL", "text": "t", "url": "https://shop.example/{{1}}"}])),
    ] {
        assert_eq!(found(&check(&document(&components)).1), [], "{components}");
    }
}

#[test]
fn what_another_warning_says_is_said_once() {
    let long = "word ".repeat(300);
    let texts = ["Hello to all of you, dear {{1}}.", "{{1}}, hello to all of you", long.trim()];
    let to_whatsapp = json!({"type": "URL", "text": "t", "url": "https://wa.me/1555"});
    let button = json!([body("b"), {"type": "BUTTONS", "buttons": [to_whatsapp]}]);
    for components in texts.map(|text| json!([body(text)])).into_iter().chain([button]) {
        let (template, warnings) = check(&document(&components));
        assert_eq!((warnings.count(), found(&warnings).len()), (1, 0), "{components}");
        assert_eq!(
            template.whatsapp_content_warnings().count(),
            1,
            "a render has no other warnings"
        );
    }
}

#[test]
fn an_edit_gets_the_warnings_about_its_content() {
    let (template, _) = check(&document(&json!([body("b")])));
    let edit = json!({"components": [body("Hello {{1}} b")]}).to_string();
    let (edit, warnings) = Edit::check(&Document::parse(edit.as_bytes()).unwrap(), &V1, &template);
    assert!(edit.is_ok());
    assert_eq!(found(&warnings).len(), 1, "{warnings:?}");
}

#[test]
fn an_authentication_template_is_to_be_converted() {
    let mut login = document(&json!([body("{{1}} is your code, valid until {{2}}")]));
    login["category"] = json!("AUTHENTICATION");
    let (template, warnings) = check(&login);
    let hint = "for WhatsApp, convert it: `galley convert --from v1 --to whatsapp`";
    assert_eq!(found(&warnings), [("/category", "whatsapp-content", hint)]);
    assert_eq!(warnings.count(), 1, "words in the body change nothing: {warnings:?}");
    assert_eq!(template.whatsapp_content_warnings().listed(), warnings.listed());
}

#[test]
fn an_edit_of_only_the_category_gets_one_warning_about_the_content() {
    let edited = |text: &str, category: &str| {
        let (template, _) = check(&document(&json!([body(text)])));
        let edit = json!({"category": category}).to_string();
        let (edit, warnings) =
            Edit::check(&Document::parse(edit.as_bytes()).unwrap(), &V1, &template);
        assert!(edit.is_ok());
        warnings.listed().to_vec()
    };
    let warnings = edited("We are open.", "AUTHENTICATION");
    assert!(warnings.len() == 1 && warnings[0].pointer == "/category", "{warnings:?}");
    // Three rules of WhatsApp refuse this body in every category.
    let warnings = edited("{{1}} {{2}}", "UTILITY");
    assert!(warnings.len() == 1 && warnings[0].pointer == "/category", "{warnings:?}");
    assert!(warnings[0].message.contains("`/components/0/text`"), "{warnings:?}");
    assert_eq!(edited("We are open.", "UTILITY"), []);
}

/// Texts at the edges of WhatsApp's rules.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("sale".to_owned()),
        Just("{{1}}".to_owned()),
        Just("*bold*".to_owned()),
        Just("👋".to_owned()),
        Just("_x_".to_owned()),
        Just("two words".to_owned()),
        Just("ça".to_owned()),
        Just("`c`".to_owned()),
        Just("a\nb".to_owned()),
        Just("(1/2)".to_owned()),
        Just("~".to_owned()),
        "[ -~]{1,12}",
    ];
    prop::collection::vec(part, 1..9).prop_map(|parts| parts.join(" "))
}

fn some_button() -> impl Strategy<Value = Value> {
    let address = prop_oneof![
        Just("https://shop.example/a"),
        Just("https://wa.me/1"),
        Just("https://localhost/"),
        Just("http://shop.example"),
        Just("https://api.whatsapp.com/x"),
        Just("https://a"),
        Just("https://shop.example/{{1}}"),
        Just("https://chat.whatsapp.com"),
    ];
    (0..4, text(), address).prop_map(|(kind, text, address)| match kind {
        0 => json!({"type": "QUICK_REPLY", "text": text}),
        1 => json!({"type": "URL", "text": text, "url": address, "example": "x"}),
        2 => json!({"type": "PHONE_NUMBER", "text": text, "phone_number": "+15550001111"}),
        _ => json!({"type": "COPY_CODE", "example": text}),
    })
}

fn any_document() -> impl Strategy<Value = Value> {
    use prop::option::of;
    let header = prop_oneof![
        Just(
            json!({"type": "HEADER", "format": "MEDIA", "example": {"media_url": "https://a.example/b.png"}})
        ),
        text().prop_map(|text| json!({"type": "HEADER", "format": "TEXT", "text": text})),
    ];
    let footer = text().prop_map(|text| json!({"type": "FOOTER", "text": text}));
    let buttons = prop::collection::vec(some_button(), 1..12)
        .prop_map(|buttons| json!({"type": "BUTTONS", "buttons": buttons}));
    let category = prop_oneof![Just("MARKETING"), Just("UTILITY"), Just("AUTHENTICATION")];
    (text(), of(header), of(footer), of(buttons), category).prop_map(
        |(text, header, footer, buttons, category)| {
            let mut components = vec![body(&text)];
            components.extend([header, footer, buttons].into_iter().flatten());
            let mut document = document(&json!(components));
            document["category"] = json!(category);
            document
        },
    )
}

/// The warnings that stand for a violation of WhatsApp's rules.
const COVERING: [WarningRule; 4] = [
    WarningRule::LinkShortener,
    WarningRule::OverWhatsappLimit,
    WarningRule::BodyBeginsWithPlaceholder,
    WarningRule::BodyEndsWithPlaceholder,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// The quick recognition of acceptable contents misses nothing that the whole check finds.
    #[test]
    fn a_dry_run_reports_all_that_whatsapps_rules_refuse(document in any_document()) {
        let text = document.to_string();
        let checked = Template::check(&Document::parse(text.as_bytes()).unwrap(), &V1);
        if let Ok(template) = &checked.template {
            for refused in template.whatsapp_content_warnings().listed() {
                let is_reported = checked.warnings.listed().iter().any(|it| {
                    it == refused || it.pointer == refused.pointer && COVERING.contains(&it.rule)
                });
                prop_assert!(is_reported, "{refused:?} of {document}");
            }
        }
    }
}
