//! Documents about webhook endpoints: a minimal violation and the closest valid document for each
//! rule, and the results.

use std::fmt::Debug;

use galley_domain::{
    document::Document,
    template::lifecycle::EventType,
    violation::{Rule, Violation, Violations},
    webhook::{Change, Format, Registration, Replay, Rotation, Subscription},
};

fn with<T>(text: &str, read: impl FnOnce(&Document<'_>) -> T) -> T {
    read(&Document::parse(text.as_bytes()).unwrap())
}

fn rejected<T: Debug>(read: Result<T, Violations>) -> Vec<Violation> {
    read.map_or_else(|violations| violations.listed().to_vec(), |_| Vec::new())
}

/// The type of the document.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Registration,
    Change,
    /// A change of an endpoint whose URL is verified.
    VerifiedChange,
    Subscription,
    Rotation,
    Replay,
}

fn violations(kind: Kind, text: &str) -> Vec<String> {
    let violations = with(text, |document| match kind {
        Kind::Registration => rejected(Registration::read(document, "whatsapp")),
        Kind::Change => rejected(Change::read(document, Format::Galley)),
        Kind::VerifiedChange => rejected(Change::read(document, Format::Whatsapp)),
        Kind::Subscription => rejected(Subscription::read(document)),
        Kind::Rotation => rejected(Rotation::read(document)),
        Kind::Replay => rejected(Replay::read(document)),
    });
    assert!(violations.iter().all(|it| it.hint.is_some()), "{violations:?}");
    violations.iter().map(|it| format!("{} {}", it.pointer, it.rule.id())).collect()
}

/// An invalid document, its violations, and the closest valid document.
const TABLE: &[(Kind, &str, &[&str], &str)] = &[
    (Kind::Registration, "[]", &[" wrong-type"], r#"{"url":"https://a.b"}"#),
    (Kind::Registration, "{}", &["/url required"], r#"{"url":"https://a.b","events":null}"#),
    (
        Kind::Registration,
        r#"{"url":"ftp://a.b","events":["template.crated",7,"template.edited"]}"#,
        &["/url url-scheme", "/events/0 not-a-choice", "/events/1 wrong-type"],
        r#"{"url":"http://a.b","events":["Template.Created","template.edited"]}"#,
    ),
    (
        Kind::Registration,
        r#"{"url":"https://me:secret@a.b/","events":"template.created"}"#,
        &["/url url-user-info", "/events wrong-type"],
        r#"{"url":"https://a.b/","events":[]}"#,
    ),
    (
        Kind::Registration,
        r#"{"url":"https://a.b","url":"https://c.d"}"#,
        &["/url duplicate-key"],
        r#"{"url":"https://a.b","uri":"https://c.d"}"#,
    ),
    (
        Kind::Registration,
        r#"{"url":"https://a.b","format":"standard"}"#,
        &["/format not-a-choice"],
        r#"{"url":"https://a.b","format":"galley"}"#,
    ),
    (
        Kind::Registration,
        r#"{"url":"https://a.b","format":"whatsapp"}"#,
        &["/verify_token webhook-format"],
        r#"{"url":"https://a.b","format":"whatsapp","verify_token":"t"}"#,
    ),
    (
        Kind::Registration,
        r#"{"url":"https://a.b","verify_token":"t","secret":"0123456789abcdef"}"#,
        &["/verify_token webhook-format", "/secret webhook-format"],
        r#"{"url":"https://a.b","verify_token":null,"secret":null}"#,
    ),
    (
        Kind::Registration,
        r#"{"url":"https://a.b","format":"whatsapp","verify_token":"t","secret":"0123456789abcde"}"#,
        &["/secret secret-form"],
        r#"{"url":"https://a.b","format":"WhatsApp","verify_token":"t","secret":"0123456789abcdef"}"#,
    ),
    (
        Kind::Registration,
        r#"{"url":"https://a.b","format":"whatsapp","verify_token":"t","secret":"0123456789 abcdef"}"#,
        &["/secret secret-form"],
        r#"{"url":"https://a.b","format":"whatsapp","verify_token":"t","secret":"!~#3456789_abcdef"}"#,
    ),
    (
        Kind::VerifiedChange,
        r#"{"url":"https://a.b"}"#,
        &["/verify_token webhook-format"],
        r#"{"url":"https://a.b","verify_token":"t"}"#,
    ),
    (Kind::VerifiedChange, "{}", &[" nothing-to-change"], r#"{"verify_token":"t"}"#),
    (
        Kind::Change,
        r#"{"url":"https://a.b","verify_token":"t"}"#,
        &["/verify_token webhook-format"],
        r#"{"url":"https://a.b"}"#,
    ),
    (
        Kind::Subscription,
        r#"{"override_callback_uri":"https://a.b"}"#,
        &["/verify_token webhook-format"],
        r#"{"override_callback_uri":"https://a.b","verify_token":"t"}"#,
    ),
    (Kind::Subscription, "[]", &[" wrong-type"], "{}"),
    (Kind::Change, "{}", &[" nothing-to-change"], r#"{"disabled":false}"#),
    (Kind::Change, r#"{"url":null}"#, &[" nothing-to-change"], r#"{"url":"https://a.b"}"#),
    (
        Kind::Change,
        r#"{"url":" ","events":["webhook"],"disabled":"yes"}"#,
        &["/url empty", "/events/0 not-a-choice", "/disabled wrong-type"],
        r#"{"url":"https://a.b","events":["webhook.disabled"],"disabled":true}"#,
    ),
    (Kind::Change, "null", &[" wrong-type"], r#"{"events":[]}"#),
    (Kind::Rotation, r#"{"force":1}"#, &["/force wrong-type"], r#"{"force":true}"#),
    (Kind::Rotation, "[]", &[" wrong-type"], "{}"),
    (Kind::Replay, "{}", &[" replay-what"], r#"{"event":1}"#),
    (
        Kind::Replay,
        r#"{"event":1,"since":"2026-11-15T09:30:00Z"}"#,
        &[" replay-what"],
        r#"{"event":null,"since":"2026-11-15T09:30:00Z"}"#,
    ),
    (Kind::Replay, r#"{"event":0}"#, &["/event wrong-type"], r#"{"event":9007199254740991}"#),
    (
        Kind::Replay,
        r#"{"since":"2026-11-15 09:30"}"#,
        &["/since moment-form"],
        r#"{"since":"2026-11-15T09:30:00+01:00"}"#,
    ),
    (Kind::Replay, "7", &[" wrong-type"], r#"{"event":7}"#),
];

#[test]
fn every_violation_is_reported_and_the_closest_valid_document_is_accepted() {
    for (kind, bad, expected, good) in TABLE {
        assert_eq!(violations(*kind, bad), *expected, "{kind:?} {bad}");
        assert_eq!(violations(*kind, good), [""; 0], "{kind:?} {good}");
    }
    // Whether a URL is allowed and verified is checked elsewhere: that needs DNS and a request.
    let in_table = |rule: &Rule| {
        TABLE
            .iter()
            .any(|(_, _, violations, _)| violations.iter().any(|it| it.ends_with(rule.id())))
    };
    let uncovered: Vec<&Rule> = Rule::WEBHOOKS.iter().filter(|rule| !in_table(rule)).collect();
    assert_eq!(uncovered, [&Rule::WebhookAddress, &Rule::WebhookHandshake]);
}

#[test]
fn an_unknown_event_type_gets_a_suggestion() {
    let text = r#"{"url":"https://a.b","events":["template.aproved","order.created"]}"#;
    let violations = with(text, |document| rejected(Registration::read(document, "whatsapp")));
    assert_eq!(violations[0].hint.as_deref(), Some("did you mean `template.approved`?"));
    assert!(violations[1].hint.as_deref().unwrap().contains("template.created, template.edited"));
}

#[test]
fn too_many_event_types_are_one_violation() {
    let list = |count: usize| {
        let words = vec![r#""template.created""#; count].join(",");
        format!(r#"{{"url":"https://a.b","events":[{words}]}}"#)
    };
    let most = EventType::VALUES.len();
    assert_eq!(violations(Kind::Registration, &list(most)), [""; 0]);
    assert_eq!(violations(Kind::Registration, &list(50_000)), ["/events too-many"]);
}

#[test]
fn event_types_are_deduplicated_in_order() {
    let text = r#"{"url":"https://a.b","events":
        ["template.deleted","template.created","TEMPLATE.DELETED"]}"#;
    let registration = with(text, |it| Registration::read(it, "v1")).unwrap();
    assert_eq!(registration.events, [EventType::Deleted, EventType::Created]);
    assert_eq!(registration.url, "https://a.b");
}

#[test]
fn a_change_distinguishes_omitted_from_empty_fields() {
    let change = |text: &str| with(text, |it| Change::read(it, Format::Galley)).unwrap();
    let off = Change { url: None, verify_token: None, events: None, disabled: Some(true) };
    assert_eq!(change(r#"{"disabled":true,"url":null,"events":null}"#), off);
    assert_eq!(change(r#"{"events":[]}"#).events, Some(Vec::new()));
    assert_eq!(change(r#"{"url":"https://c.d"}"#).url.as_deref(), Some("https://c.d"));
}

#[test]
fn rotations_and_replays_are_read() {
    assert!(!with("{}", Rotation::read).unwrap().force);
    assert!(!with(r#"{"force":false}"#, Rotation::read).unwrap().force);
    assert!(with(r#"{"force":true}"#, Rotation::read).unwrap().force);
    assert_eq!(with(r#"{"event":12}"#, Replay::read).unwrap(), Replay::Event(12));
    let since = with(r#"{"since":"2026-11-15T09:30:00+01:00"}"#, Replay::read).unwrap();
    assert_eq!(since, Replay::Since("2026-11-15T08:30:00Z".parse().unwrap()));
}

#[test]
fn only_accounts_with_the_rulebook_whatsapp_have_endpoints_of_its_format() {
    let text = r#"{"url":"https://a.b","format":"whatsapp","verify_token":"t"}"#;
    let refused = with(text, |it| rejected(Registration::read(it, "v1")));
    assert_eq!((&*refused[0].pointer, refused[0].rule), ("/format", Rule::WebhookFormat));
    assert_eq!(refused.len(), 1);
    let taken = with(text, |it| Registration::read(it, "whatsapp")).unwrap();
    assert_eq!(taken.format, Format::Whatsapp);
    let usual = with(r#"{"url":"https://a.b"}"#, |it| Registration::read(it, "whatsapp")).unwrap();
    assert_eq!(usual.format, Format::Galley);
}

#[test]
fn an_address_of_a_subscription_is_200_characters_long_at_most() {
    let violations = |length: usize| {
        let path = "x".repeat(length - "https://a.b/".len());
        let text =
            format!(r#"{{"override_callback_uri":"https://a.b/{path}","verify_token":"t"}}"#);
        violations(Kind::Subscription, &text)
    };
    assert_eq!(violations(200), [""; 0]);
    assert_eq!(violations(201), ["/override_callback_uri too-long"]);
}
