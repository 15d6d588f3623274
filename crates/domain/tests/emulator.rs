//! The documents of the emulator: a minimal violation and the closest valid document for each rule.

use galley_domain::{
    document::Document,
    emulator::{
        clock::{Clock, ClockChange, ClockRefusal, MAX_AHEAD},
        faults::Fault,
        rules::ReviewRules,
    },
    violation::{Rule, Violations},
};
use jiff::{SignedDuration, Timestamp};

#[derive(Clone, Copy)]
enum Kind {
    Clock,
    Rules,
    Fault,
}

fn violations(kind: Kind, text: &str) -> Vec<String> {
    let document = Document::parse(text.as_bytes()).unwrap();
    let result = match kind {
        Kind::Clock => ClockChange::read(&document).map(drop),
        Kind::Rules => ReviewRules::read(&document).map(drop),
        Kind::Fault => Fault::read(&document).map(drop),
    };
    result.map_or_else(|violations| lines(&violations), |()| Vec::new())
}

fn lines(violations: &Violations) -> Vec<String> {
    assert!(violations.listed().iter().all(|it| it.hint.is_some()), "{violations:?}");
    violations.listed().iter().map(|it| format!("{} {}", it.pointer, it.rule.id())).collect()
}

/// An invalid document, its violations, and the closest valid document.
const TABLE: &[(Kind, &str, &[&str], &str)] = &[
    (Kind::Clock, "[]", &[" wrong-type"], r#"{"follow":true}"#),
    (Kind::Clock, "{}", &[" clock-what"], r#"{"advance":"24h"}"#),
    (
        Kind::Clock,
        r#"{"advance":"24h","follow":true}"#,
        &[" clock-what"],
        r#"{"advance":"24h","follow":null,"other":1}"#,
    ),
    (Kind::Clock, r#"{"follow":false}"#, &["/follow clock-what"], r#"{"follow":true}"#),
    (Kind::Clock, r#"{"advance":"0s"}"#, &["/advance duration-form"], r#"{"advance":"1s"}"#),
    (Kind::Clock, r#"{"advance":"1 day"}"#, &["/advance duration-form"], r#"{"advance":"1d"}"#),
    (Kind::Clock, r#"{"advance":"366d"}"#, &["/advance duration-form"], r#"{"advance":"365d"}"#),
    (Kind::Clock, r#"{"advance":" "}"#, &["/advance empty"], r#"{"advance":"1h30m"}"#),
    (Kind::Clock, r#"{"advance":24}"#, &["/advance wrong-type"], r#"{"advance":"24h"}"#),
    (
        Kind::Clock,
        r#"{"set":"tomorrow"}"#,
        &["/set moment-form"],
        r#"{"set":"2026-11-18T00:00:00Z"}"#,
    ),
    (Kind::Rules, "{}", &["/rules required"], r#"{"rules":[]}"#),
    (
        Kind::Rules,
        r#"{"rules":[{}]}"#,
        &["/rules/0/outcome required"],
        r#"{"rules":[{"outcome":"approve"}]}"#,
    ),
    (
        Kind::Rules,
        r#"{"rules":[{"outcome":"approve"},{"name":" ","category":"PROMO","after":"soon","outcome":"reject","reason":"NONE"}]}"#,
        &[
            "/rules/1/name empty",
            "/rules/1/category not-a-choice",
            "/rules/1/reason not-a-choice",
            "/rules/1/after duration-form",
        ],
        r#"{"rules":[{"outcome":"approve"},{"name":"*","category":"utility","after":"0s","outcome":"REJECT","reason":"scam"}]}"#,
    ),
    (
        Kind::Rules,
        r#"{"rules":[{"outcome":"pause","reason":"SCAM"}]}"#,
        &["/rules/0/reason rule-reason"],
        r#"{"rules":[{"outcome":"reject","reason":"SCAM"}]}"#,
    ),
    (
        Kind::Rules,
        r#"{"rules":[{"outcome":"rejct","reason":"SCAM"}]}"#,
        &["/rules/0/outcome not-a-choice"],
        r#"{"rules":[{"outcome":"reject","reason":null}]}"#,
    ),
    (
        Kind::Fault,
        "{}",
        &["/call required", "/kind required", " fault-fields"],
        r#"{"call":"create","kind":"truncate","times":1}"#,
    ),
    (Kind::Fault, "7", &[" wrong-type"], r#"{"call":"read","kind":"error","share":1}"#),
    (
        Kind::Fault,
        r#"{"call":"create","kind":"truncate","times":1,"share":0.5}"#,
        &[" fault-fields"],
        r#"{"call":"create","kind":"truncate","share":0.5}"#,
    ),
    (
        Kind::Fault,
        r#"{"call":"create","kind":"truncate","times":0}"#,
        &["/times number-range"],
        r#"{"call":"create","kind":"truncate","times":1000000}"#,
    ),
    (
        Kind::Fault,
        r#"{"call":"create","kind":"truncate","share":0}"#,
        &["/share fault-share"],
        r#"{"call":"create","kind":"truncate","share":0.000001}"#,
    ),
    (
        Kind::Fault,
        r#"{"call":"create","kind":"truncate","share":"half"}"#,
        &["/share fault-share"],
        r#"{"call":"create","kind":"truncate","share":0.5}"#,
    ),
    (
        Kind::Fault,
        r#"{"call":"create","kind":"drop","times":1}"#,
        &["/kind fault-kind"],
        r#"{"call":"webhook","kind":"drop","times":1}"#,
    ),
    (
        Kind::Fault,
        r#"{"call":"webhook","kind":"error","times":1}"#,
        &["/kind fault-kind"],
        r#"{"call":"webhook","kind":"delay","delay":"30s","times":1}"#,
    ),
    (
        Kind::Fault,
        r#"{"call":"send","kind":"error","code":7,"times":1}"#,
        &["/code fault-code"],
        r#"{"call":"send","kind":"error","code":131026,"times":1}"#,
    ),
    (
        Kind::Fault,
        r#"{"call":"send","kind":"delay","code":2,"times":1}"#,
        &["/code fault-fields", "/delay fault-fields"],
        r#"{"call":"send","kind":"delay","delay":"0s","times":1}"#,
    ),
    (
        Kind::Fault,
        r#"{"call":"send","kind":"delay","delay":"31s","times":1}"#,
        &["/delay duration-form"],
        r#"{"call":"send","kind":"delay","delay":"30s","times":1}"#,
    ),
    (
        Kind::Fault,
        r#"{"call":"list","name":"a*","kind":"error","times":1}"#,
        &["/name fault-fields"],
        r#"{"call":"read","name":"a*","kind":"error","times":1}"#,
    ),
];

#[test]
fn every_violation_is_reported_and_the_closest_valid_document_is_accepted() {
    for (kind, bad, expected, good) in TABLE {
        assert_eq!(violations(*kind, bad), *expected, "{bad}");
        assert_eq!(violations(*kind, good), [""; 0], "{good}");
    }
    let in_table = |rule: &Rule| {
        let mut broken = TABLE.iter().flat_map(|(_, _, violations, _)| violations.iter());
        broken.any(|it| it.ends_with(rule.id()))
    };
    // How far ahead a clock is depends on the real time: the next test.
    let by_document = Rule::EMULATOR.iter().filter(|rule| **rule != Rule::ClockAhead);
    let missing: Vec<_> = by_document.filter(|rule| !in_table(rule)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_clock_is_at_most_ten_years_ahead() {
    let real: Timestamp = "2026-11-17T09:00:00Z".parse().unwrap();
    let clock = Clock { at: real + MAX_AHEAD, since: None };
    let advance = ClockChange::Advance(SignedDuration::from_secs(1));
    let Err(ClockRefusal::TooFarAhead(violations)) = clock.changed(advance, real) else {
        panic!("the clock has moved")
    };
    assert_eq!(lines(&violations), ["/advance clock-ahead"]);
}

#[test]
fn an_account_has_at_most_a_hundred_rules() {
    let rules = |count: usize| {
        format!(r#"{{"rules":[{}]}}"#, vec![r#"{"outcome":"flag"}"#; count].join(","))
    };
    assert_eq!(violations(Kind::Rules, &rules(100)), [""; 0]);
    assert_eq!(violations(Kind::Rules, &rules(101)), ["/rules too-many"]);
    assert_eq!(violations(Kind::Rules, &rules(3_000)), ["/rules too-many"]);
}
