//! The document that creates a token: a minimal violation and the closest valid document for each
//! rule, and the result.

use galley_domain::{
    account::Scopes,
    document::Document,
    token::NewToken,
    violation::{Rule, Violations},
};
use jiff::Timestamp;

const NOW: &str = "2026-11-16T12:00:00.500Z";

fn read(text: &str) -> Result<NewToken, Violations> {
    let now: Timestamp = NOW.parse().unwrap();
    NewToken::read(&Document::parse(text.as_bytes()).unwrap(), now)
}

fn violations(text: &str) -> Vec<String> {
    let Err(violations) = read(text) else { return Vec::new() };
    assert!(violations.listed().iter().all(|it| it.hint.is_some()), "{violations:?}");
    violations.listed().iter().map(|it| format!("{} {}", it.pointer, it.rule.id())).collect()
}

/// An invalid document, its violations, and the closest valid document.
const TABLE: &[(&str, &[&str], &str)] = &[
    ("[]", &[" wrong-type"], r#"{"name":"ci","scopes":["read"]}"#),
    ("{}", &["/name required", "/scopes required"], r#"{"name":"ci","scopes":["READ"]}"#),
    (
        r#"{"name":" ci","scopes":["reed"]}"#,
        &["/name name-edges", "/scopes/0 not-a-choice"],
        r#"{"name":"c i","scopes":["read","audit"]}"#,
    ),
    (
        r#"{"name":"Ser\u200bvice","scopes":["read"]}"#,
        &["/name token-name"],
        r#"{"name":"Customer Ser\u200bvice","scopes":["read"]}"#,
    ),
    (
        r#"{"name":"\u202e\u0007","scopes":["read"]}"#,
        &["/name control-character"],
        r#"{"name":"\u05d0","scopes":["read"]}"#,
    ),
    (
        r#"{"name":"Ada\u202e","scopes":["read"]}"#,
        &["/name token-name"],
        r#"{"name":"Ada\u200d","scopes":["read"]}"#,
    ),
    (
        r#"{"name":"ci","scopes":[]}"#,
        &["/scopes token-scopes"],
        r#"{"name":"ci","scopes":["audit"]}"#,
    ),
    (
        r#"{"name":"ci","scopes":["read"],"expires_in":60,"expires_at":"2027-01-01T00:00:00Z"}"#,
        &[" token-expiry"],
        r#"{"name":"ci","scopes":["read"],"expires_in":null,"expires_at":"2027-01-01T00:00:00Z"}"#,
    ),
    (
        r#"{"name":"ci","scopes":["read"],"expires_at":"2026-11-16T12:00:00.500Z"}"#,
        &["/expires_at token-expiry"],
        r#"{"name":"ci","scopes":["read"],"expires_at":"2026-11-16T12:00:00.501Z"}"#,
    ),
    (
        r#"{"name":"ci","scopes":["read"],"expires_in":9007199254740991}"#,
        &["/expires_in token-expiry"],
        r#"{"name":"ci","scopes":["read"],"expires_in":1}"#,
    ),
];

#[test]
fn every_violation_is_reported_and_the_closest_valid_document_is_accepted() {
    for (bad, expected, good) in TABLE {
        assert_eq!(violations(bad), *expected, "{bad}");
        assert_eq!(violations(good), [""; 0], "{good}");
    }
    let in_table = |rule: &&Rule| {
        let broken = TABLE.iter().flat_map(|(_, violations, _)| violations.iter());
        broken.into_iter().any(|it| it.ends_with(rule.id()))
    };
    assert!(Rule::TOKENS.iter().all(|rule| in_table(&rule)));
}

#[test]
fn a_lifetime_counts_from_now() {
    let token = read(r#"{"name":"ci","scopes":["write","read","read"],"expires_in":90}"#).unwrap();
    assert_eq!((&*token.name, token.scopes), ("ci", Scopes::parse("read,write").unwrap()));
    assert_eq!(token.expires_at, Some("2026-11-16T12:01:30.500Z".parse().unwrap()));
    let unlimited = read(r#"{"name":"ci","scopes":["audit"]}"#).unwrap();
    assert_eq!(unlimited.expires_at, None);
}
