//! All violations at once: whichever defects of a document are corrected, the ones that are left have
//! been reported before.

use std::collections::BTreeSet;

use galley_domain::{
    document::Document,
    rulebook::{Rulebook, V1, WHATSAPP},
    template::Template,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A defect: a JSON pointer, and the value to put there. `null` is the same as leaving it out.
type Defect = (&'static str, Value);

fn valid_v1() -> Value {
    json!({
        "name": "order_shipped", "language": "en_US", "category": "UTILITY", "allow_category_change": true,
        "components": [
            {"type": "HEADER", "format": "TEXT", "text": "Hi {{1}}", "example": {"header_text": ["Ada"]}},
            {"type": "BODY", "text": "Hi {{1}}, {{2}} is on its way.", "example": {"body_text": [["Ada", "it"]]}},
            {"type": "FOOTER", "text": "Shop"},
            {"type": "BUTTONS", "buttons": [
                {"type": "URL", "text": "Track", "url": "https://shop.example/{{1}}", "example": ["7"]},
                {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
                {"type": "COPY_CODE", "example": "SAVE25"},
            ]},
        ],
    })
}

/// Sample counts are chosen so that no correction of the text makes them fit.
fn defects_of_v1() -> Vec<Defect> {
    vec![
        ("/name", json!(" order\u{7}shipped\u{7} ")),
        ("/language", json!("xx_YY")),
        ("/language", json!("english")),
        ("/category", json!("PROMO")),
        ("/allow_category_change", json!("yes")),
        ("/components/0/text", json!("Hi {{1}}, {{3}}")),
        ("/components/0/text", json!("Hi {{name}}\u{7}")),
        ("/components/0/text", json!(format!("{{{{1}}}} {}", "x".repeat(2_000)))),
        ("/components/0/example/header_text", json!(vec!["a"; 1_000])),
        ("/components/0/example/header_text", json!([7])),
        ("/components/0/example/header_text", json!("Ada")),
        ("/components/1/text", json!("Hi {{1}}, {{3}} x!")),
        ("/components/1/text", json!("{{ 1 }} and {{x}} and {{2}}")),
        ("/components/1/example", Value::Null),
        ("/components/1/example/body_text", Value::Null),
        ("/components/1/example/body_text", json!([["Ada", "it"], ["more"]])),
        ("/components/1/example/body_text/0/0", json!("")),
        ("/components/1/example/body_text/0/1", json!("a\u{0}b\u{0}")),
        ("/components/2/text", json!("{{1}} and {{2}}")),
        ("/components/3/buttons/0/text", json!("x".repeat(129))),
        ("/components/3/buttons/0/url", json!("https://user@ shop/{{2}}")),
        ("/components/3/buttons/0/url", json!("shop example {{1}}")),
        ("/components/3/buttons/0/example", json!(["a", "b"])),
        ("/components/3/buttons/0/example", json!(7)),
        ("/components/3/buttons/1/phone_number", json!("call me")),
        ("/components/3/buttons/2/example", json!("")),
    ]
}

fn valid_whatsapp() -> Value {
    json!({
        "name": "order_shipped", "language": "en_US", "category": "MARKETING",
        "components": [
            {"type": "HEADER", "format": "TEXT", "text": "Hi {{1}}", "example": {"header_text": ["Ada"]}},
            {"type": "BODY", "text": "Hi {{1}}, your order {{2}} is on its way.", "example": {"body_text": [["Ada", "7"]]}},
            {"type": "FOOTER", "text": "Shop"},
            {"type": "BUTTONS", "buttons": [
                {"type": "URL", "text": "Track", "url": "https://shop.example/{{1}}", "example": ["https://shop.example/7"]},
                {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
            ]},
        ],
    })
}

fn defects_of_whatsapp() -> Vec<Defect> {
    vec![
        ("/name", json!("Order Shipped")),
        ("/language", json!("xx_YY")),
        ("/category", json!("PROMO")),
        ("/components/0/text", json!("*Hi* {{1}} {{3}}")),
        ("/components/0/text", json!("Hi {{Name}}\n")),
        ("/components/0/example", Value::Null),
        ("/components/0/example/header_text", json!(vec!["a"; 1_000])),
        ("/components/1/text", json!("{{1}}, {{3}}!")),
        ("/components/1/text", json!("{{ 1 }} and {{x}}")),
        ("/components/1/example", Value::Null),
        ("/components/1/example/body_text", json!([vec!["a"; 1_000]])),
        ("/components/1/example/body_text/0/0", json!("")),
        ("/components/2/text", json!("*Shop* {{1}}")),
        ("/components/3/buttons/0/text", json!("*Track* the whole order now")),
        ("/components/3/buttons/0/url", json!("https://shop.example/{{2}}")),
        ("/components/3/buttons/0/url", json!("https://wa.me/ x/{{1}}")),
        ("/components/3/buttons/0/example", json!(["a", "b"])),
        ("/components/3/buttons/1/phone_number", json!("call me")),
    ]
}

fn valid_named() -> Value {
    let card = json!({"components": [
        {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::aW1h"]}},
        {"type": "BODY", "text": "Only {{count}} left for you today",
            "example": {"body_text_named_params": [{"param_name": "count", "example": "7"}]}},
        {"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Buy", "url": "https://shop.example/7"}]},
    ]});
    json!({
        "name": "spring_sale", "language": "en_US", "category": "MARKETING", "parameter_format": "NAMED",
        "message_send_ttl_seconds": 43_200,
        "components": [
            {"type": "BODY", "text": "Hi {{first}}, these are {{number}} new offers for you.", "example": {
                "body_text_named_params": [
                    {"param_name": "first", "example": "Ada"}, {"param_name": "number", "example": "2"}]}},
            {"type": "CAROUSEL", "cards": [card, card]},
        ],
    })
}

fn defects_of_named() -> Vec<Defect> {
    vec![
        ("/name", json!("Spring Sale")),
        ("/language", json!("xx_YY")),
        ("/message_send_ttl_seconds", json!(60)),
        ("/message_send_ttl_seconds", json!(9_999_999)),
        ("/components/0/text", json!("{{First}}, {{2}} for you")),
        ("/components/0/text", json!("Hi {{first}}, {{number}} and {{other name}}!")),
        ("/components/0/example", Value::Null),
        ("/components/0/example", json!({"comment": "to be written"})),
        ("/components/0/example/body_text_named_params", json!(vec![7; 1_000])),
        ("/components/0/example/body_text_named_params/0/param_name", json!(7)),
        ("/components/0/example/body_text_named_params/1/example", json!("")),
        ("/components/1/cards/0/components/0/example/header_handle", json!(["https://a.b/c.png"])),
        ("/components/1/cards/1/components/0/example/header_handle", json!([])),
        ("/components/1/cards/0/components/1/text", json!("{{count}} left")),
        ("/components/1/cards/0/components/1/text", json!("Only {{Count}} left for you today")),
        ("/components/1/cards/0/components/1/example", Value::Null),
        ("/components/1/cards/1/components/2/buttons/0/url", json!("http://localhost/7")),
        ("/components/1/cards/1/components/2/buttons/0/text", json!("Buy 😀 it 😀 *now*")),
    ]
}

/// The violations of a document, each as its pointer and rule.
fn violations(document: &Value, rulebook: &'static Rulebook) -> BTreeSet<String> {
    let text = document.to_string();
    let document = Document::parse(text.as_bytes()).unwrap();
    match Template::read(&document, rulebook) {
        Ok(_) => BTreeSet::new(),
        Err(violations) => violations
            .listed()
            .iter()
            .map(|it| format!("{} {}", it.pointer, it.rule.id()))
            .collect(),
    }
}

/// Puts the defects into the document. Of several at one place, only the first.
fn with_defects(valid: &Value, defects: &[&Defect]) -> Value {
    let mut document = valid.clone();
    for (pointer, value) in defects {
        *document.pointer_mut(pointer).unwrap() = value.clone();
    }
    document
}

/// Keeps the defects that are not at, above or below the place of an earlier one.
fn independent<'d>(chosen: &[&'d Defect]) -> Vec<&'d Defect> {
    let mut kept: Vec<&Defect> = Vec::new();
    for defect in chosen {
        let overlaps =
            |other: &&Defect| other.0.starts_with(defect.0) || defect.0.starts_with(other.0);
        if !kept.iter().any(overlaps) {
            kept.push(defect);
        }
    }
    kept
}

fn correcting_some_defects_reveals_no_other(
    valid: &Value,
    defects: &[Defect],
    rulebook: &'static Rulebook,
    chosen: &[prop::sample::Index],
    left: usize,
) {
    let chosen: Vec<&Defect> = chosen.iter().map(|index| index.get(defects)).collect();
    let chosen = independent(&chosen);
    let reported = violations(&with_defects(valid, &chosen), rulebook);
    let (left, corrected) = chosen.split_at(left.min(chosen.len()));
    // What is reported inside a corrected value depends on the correction.
    let depends = |line: &String| corrected.iter().any(|(pointer, _)| line.starts_with(pointer));
    let mut revealed = &violations(&with_defects(valid, left), rulebook) - &reported;
    revealed.retain(|line| !depends(line));
    assert!(revealed.is_empty(), "{left:#?} without {corrected:#?} reveals {revealed:#?}");
}

#[test]
fn every_defect_is_reported_and_the_documents_without_defects_are_valid() {
    for (valid, defects, rulebook) in [
        (valid_v1(), defects_of_v1(), &V1),
        (valid_whatsapp(), defects_of_whatsapp(), &WHATSAPP),
        (valid_named(), defects_of_named(), &WHATSAPP),
    ] {
        assert_eq!(violations(&valid, rulebook), BTreeSet::new());
        for defect in &defects {
            let found = violations(&with_defects(&valid, &[defect]), rulebook);
            assert!(found.iter().any(|it| it.starts_with(defect.0)), "{defect:?}: {found:?}");
        }
    }
}

/// A string with several defects, and what is left when some of them are corrected.
#[test]
fn a_partly_corrected_string_breaks_no_other_rule() {
    let (v1, whatsapp, named) = (valid_v1(), valid_whatsapp(), valid_named());
    let (body, link) = ("/components/1/text", "/components/3/buttons/0/url");
    let long_body = format!("Hi {{{{name}}}}\u{7} {}", "word ".repeat(900));
    let long_header = format!("*Hi* 😀 {{{{1}}}} {{{{x}}}} {}", "word ".repeat(20));
    let long_url = format!("ftp://u@h/a b{}", "a".repeat(2_000));
    let long_local_url = format!("http://localhost/{}", "a".repeat(2_000));
    for (valid, rulebook, pointer, defective, corrected) in [
        (&v1, &V1, "/language", "xx_YY", &["en_YY", "xx_US"][..]),
        (&v1, &V1, "/name", " a\u{7}b ", &["a\u{7}b", " ab "]),
        (
            &v1,
            &V1,
            "/components/1/text",
            "{{1}} {{x}} {{4}}\u{7}",
            &["{{1}} {{2}} {{4}}\u{7}", "{{1}} {{x}} {{2}}\u{7}", "{{1}} {{x}} {{4}}"],
        ),
        (&v1, &V1, link, "ftp://me@a b/{{2}}", &["ftp://me@ab/{{2}}", "https://me@a b/{{2}}"]),
        (
            &whatsapp,
            &WHATSAPP,
            "/components/0/text",
            "*Hi* 😀 {{1}} {{3}} {{x}}\n",
            &["Hi 😀 {{1}} {{3}} {{x}}\n", "*Hi* {{1}} {{3}} {{x}}", "*Hi* 😀 {{1}} {{x}}\n"],
        ),
        (
            &whatsapp,
            &WHATSAPP,
            "/components/1/text",
            "{{1}} and {{4}} {{x}}",
            &["See {{1}} and {{4}} {{x}}", "{{1}} and {{2}} {{x}}", "{{1}} and {{4}} you"],
        ),
        (
            &whatsapp,
            &WHATSAPP,
            link,
            "ftp://localhost/a b{{2}}",
            &[
                "https://localhost/a b{{2}}",
                "ftp://shop.example/a b{{2}}",
                "ftp://localhost/ab{{2}}",
            ],
        ),
        (&v1, &V1, "/name", &*format!(" a\u{7} {}", "x".repeat(600)), &[" a\u{7}"]),
        (&v1, &V1, body, &*long_body, &["Hi {{name}}\u{7}", "Hi \u{7}", "Hi {{name}}"]),
        (&v1, &V1, link, &*long_url, &["ftp://u@h/a b", "https://u@h/"]),
        (
            &whatsapp,
            &WHATSAPP,
            "/components/3/buttons/0/text",
            "*Track* the whole order now",
            &["*Track* the order now"],
        ),
        (&whatsapp, &WHATSAPP, "/components/0/text", &*long_header, &["*Hi* 😀 {{1}} {{x}}"]),
        (&whatsapp, &WHATSAPP, body, &*long_body, &["Hi {{name}}\u{7} you", "Hi \u{7} you"]),
        (&whatsapp, &WHATSAPP, link, &*long_url, &["ftp://u@h/a b", "https://u@h/"]),
        (&whatsapp, &WHATSAPP, link, &*long_local_url, &["http://localhost/"]),
        (
            &named,
            &WHATSAPP,
            "/components/1/cards/0/components/1/text",
            "{{count}} {{A}}",
            &["Only {{count}} {{A}}", "{{count}} {{a}}", "{{count}} left"],
        ),
    ] {
        let with = |text: &str| {
            let defect = (pointer, json!(text));
            violations(&with_defects(valid, &[&defect]), rulebook)
        };
        let reported = with(defective);
        for corrected in corrected {
            let mut revealed = &with(corrected) - &reported;
            // The number of samples depends on the number of placeholders.
            revealed.retain(|line| line.starts_with(&format!("{pointer} ")));
            assert!(revealed.is_empty(), "{corrected:?} reveals {revealed:?} of {defective:?}");
        }
    }
}

#[test]
fn a_missing_example_is_reported_beside_the_gap_of_the_placeholders() {
    let mut document = valid_v1();
    document["components"][1] = json!({"type": "BODY", "text": "Hi {{1}}, {{3}} x!"});
    document["components"][0] = json!({"type": "HEADER", "format": "TEXT", "text": "{{2}}", "example": {"header_text": [""]}});
    document["language"] = json!("xx_YY");
    let expected = [
        "/components/0/example/header_text/0 empty",
        "/components/0/text placeholder-gap",
        "/components/1/example required",
        "/components/1/text placeholder-gap",
        "/language language-unknown",
        "/language region-unknown",
    ];
    assert_eq!(violations(&document, &V1), expected.map(str::to_owned).into());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn correcting_defects_of_v1_reveals_no_other(
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 2..8), left in 1..6_usize,
    ) {
        correcting_some_defects_reveals_no_other(&valid_v1(), &defects_of_v1(), &V1, &chosen, left);
    }

    #[test]
    fn correcting_defects_of_whatsapp_reveals_no_other(
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 2..8), left in 1..6_usize,
    ) {
        let (valid, defects) = (valid_whatsapp(), defects_of_whatsapp());
        correcting_some_defects_reveals_no_other(&valid, &defects, &WHATSAPP, &chosen, left);
    }

    #[test]
    fn correcting_defects_of_named_placeholders_and_cards_reveals_no_other(
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 2..8), left in 1..6_usize,
    ) {
        let (valid, defects) = (valid_named(), defects_of_named());
        correcting_some_defects_reveals_no_other(&valid, &defects, &WHATSAPP, &chosen, left);
    }
}
