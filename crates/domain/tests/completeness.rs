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
    for (valid, defects, rulebook) in
        [(valid_v1(), defects_of_v1(), &V1), (valid_whatsapp(), defects_of_whatsapp(), &WHATSAPP)]
    {
        assert_eq!(violations(&valid, rulebook), BTreeSet::new());
        for defect in &defects {
            let found = violations(&with_defects(&valid, &[defect]), rulebook);
            assert!(found.iter().any(|it| it.starts_with(defect.0)), "{defect:?}: {found:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

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
}
