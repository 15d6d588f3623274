//! Every issue: a minimal document with it, its pointer, and the closest document without it.

use std::collections::HashSet;

use galley_domain::{
    convert::{
        Direction::{self, ToV1, ToWhatsapp},
        Issue,
    },
    violation::Rule,
};
use serde_json::{Value, json};

use super::fixture::{body, button, converted, v1, whatsapp, with};

/// An issue, its pointer, a document with it, and one without it.
type Row = (Issue, &'static str, Value, Value);

/// Every row and the direction of its conversion.
pub(crate) fn rows() -> Vec<(Direction, Row)> {
    let there = to_whatsapp().into_iter().map(|row| (ToWhatsapp, row));
    let back = texts_to_v1().into_iter().chain(pieces_to_v1()).map(|row| (ToV1, row));
    there.chain(back).collect()
}

fn plain() -> Value {
    v1(&json!([body()]))
}

fn rich() -> Value {
    whatsapp(&json!([body()]))
}

fn footer() -> Value {
    json!({"type": "FOOTER", "text": "Small print"})
}

fn reply() -> Value {
    json!({"type": "QUICK_REPLY", "text": "Yes"})
}

fn coupon() -> Value {
    json!({"type": "COPY_CODE", "example": "A"})
}

fn to_whatsapp() -> Vec<Row> {
    let code = |components: &Value| with(v1(components), "category", json!("AUTHENTICATION"));
    let media = |url: &str| {
        let header = json!({"type": "HEADER", "format": "MEDIA", "example": {"media_url": url}});
        v1(&json!([header, body()]))
    };
    vec![
        (Issue::NameChanged, "/name", with(plain(), "name", json!("N")), plain()),
        (
            Issue::LanguageChanged,
            "/language",
            with(plain(), "language", json!("de_DE")),
            with(plain(), "language", json!("de_AT")),
        ),
        (
            Issue::ButtonReplaced,
            "/components/1/buttons/0",
            code(&button(&coupon())),
            v1(&button(&coupon())),
        ),
        (Issue::ButtonReplaced, "/components", code(&json!([body()])), plain()),
        (
            Issue::MediaFormatUnknown,
            "/components/0/format",
            media("https://a.b/c.webp"),
            media("https://a.b/c.jpg"),
        ),
        (
            Issue::SampleUpload,
            "/components/0/example/media_url",
            media("https://a.b/c.jpg"),
            plain(),
        ),
        (
            Issue::TextOfWhatsapp,
            "/components/0/text",
            code(&json!([body()])),
            with(plain(), "category", json!("UTILITY")),
        ),
        (
            Issue::ComponentLost,
            "/components/1",
            code(&json!([body(), footer()])),
            v1(&json!([body(), footer()])),
        ),
        (
            Issue::ButtonLost,
            "/components/1/buttons/0",
            code(&button(&reply())),
            v1(&button(&reply())),
        ),
    ]
}

fn texts_to_v1() -> Vec<Row> {
    let samples = json!({"body_text_named_params": [{"param_name": "who", "example": "Ada"}]});
    let text = |text: &str, example: &Value, format: &str| {
        let components = json!([{"type": "BODY", "text": text, "example": example}]);
        with(whatsapp(&components), "parameter_format", json!(format))
    };
    let link = |url: &str| {
        let link = json!({"type": "URL", "text": "Go", "url": url, "example": ["a"]});
        with(whatsapp(&button(&link)), "parameter_format", json!("NAMED"))
    };
    let code = |body: Value| {
        let otp = json!({"type": "OTP", "otp_type": "COPY_CODE"});
        let components = json!([body, {"type": "BUTTONS", "buttons": [otp]}]);
        with(whatsapp(&components), "category", json!("AUTHENTICATION"))
    };
    vec![
        (
            Issue::LanguageChanged,
            "/language",
            with(rich(), "language", json!("de")),
            with(rich(), "language", json!("de_AT")),
        ),
        (
            Issue::PlaceholdersNumbered,
            "/components/0/text",
            text("Hello {{who}} out there", &samples, "NAMED"),
            text("Hello {{1}} out there", &json!({"body_text": [["Ada"]]}), "POSITIONAL"),
        ),
        (
            Issue::PlaceholdersNumbered,
            "/components/1/buttons/0/url",
            link("https://a.b/{{end}}"),
            link("https://a.b/{{1}}"),
        ),
        (Issue::TextMissing, "/components/0/text", code(json!({"type": "BODY"})), rich()),
        (
            Issue::LabelLost,
            "/components/1/buttons/0/text",
            whatsapp(&button(&with(coupon(), "text", json!("Copy it")))),
            whatsapp(&button(&coupon())),
        ),
        (
            Issue::SettingLost,
            "/components/0/add_security_recommendation",
            code(json!({"type": "BODY", "add_security_recommendation": true})),
            code(json!({"type": "BODY"})),
        ),
        (
            Issue::SettingLost,
            "/cta_url_link_tracking_opted_out",
            with(rich(), "cta_url_link_tracking_opted_out", json!(true)),
            with(rich(), "cta_url_link_tracking_opted_out", json!(false)),
        ),
    ]
}

fn pieces_to_v1() -> Vec<Row> {
    let attached = |format: &str, handle: &str| {
        let example = json!({"header_handle": [handle]});
        let header = json!({"type": "HEADER", "format": format, "example": example});
        whatsapp(&json!([header, body()]))
    };
    let offer = json!({"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Now"}});
    let link = json!({"type": "URL", "text": "Go", "url": "https://a.b/"});
    let buttons = json!({"type": "BUTTONS", "buttons": [link]});
    let card = json!({"components": [{"type": "HEADER", "format": "PRODUCT"},
        {"type": "BUTTONS", "buttons": [{"type": "SPM"}]}]});
    let mut rows = vec![
        (
            Issue::MediaKindUntold,
            "/components/0/example/header_handle",
            attached("IMAGE", "https://a.b/c.pdf"),
            attached("IMAGE", "https://a.b/c.png"),
        ),
        (
            Issue::SampleAddress,
            "/components/0/example/header_handle",
            attached("VIDEO", "4::aW1h"),
            attached("VIDEO", "https://a.b/c.mp4"),
        ),
        (
            Issue::ComponentLost,
            "/components/0",
            whatsapp(&json!([{"type": "HEADER", "format": "LOCATION"}, body()])),
            whatsapp(&json!([{"type": "HEADER", "format": "TEXT", "text": "Hi"}, body()])),
        ),
        (
            Issue::ComponentLost,
            "/components/1",
            whatsapp(&json!([body(), offer, buttons])),
            whatsapp(&json!([body(), footer(), buttons])),
        ),
    ];
    for lost in [
        json!({"type": "CALL_PERMISSION_REQUEST"}),
        json!({"type": "CAROUSEL", "cards": [card, card]}),
    ] {
        let has_not = whatsapp(&json!([body(), footer()]));
        rows.push((
            Issue::ComponentLost,
            "/components/1",
            whatsapp(&json!([body(), lost])),
            has_not,
        ));
    }
    for lost in [
        json!({"type": "CATALOG"}),
        json!({"type": "FLOW", "text": "Go", "flow_id": "1"}),
        json!({"type": "VOICE_CALL", "text": "Call"}),
        json!({"type": "REQUEST_CONTACT_INFO"}),
    ] {
        let (has, has_not) = (whatsapp(&button(&lost)), whatsapp(&button(&reply())));
        rows.push((Issue::ButtonLost, "/components/1/buttons/0", has, has_not));
    }
    let misspelt = json!({"type": "BODY", "text": "Hi", "exmaple": {}});
    let has = whatsapp(&json!([misspelt]));
    rows.push((Issue::FieldLost, "/components/0/exmaple", has, whatsapp(&json!([body()]))));
    let known = with(whatsapp(&json!([body()])), "status", json!("APPROVED"));
    rows.push((Issue::FieldLost, "/stauts", with(known.clone(), "stauts", json!("A")), known));
    rows
}

#[test]
fn every_issue_is_reported_for_a_minimal_document_and_not_for_the_closest_one_without_it() {
    let mut seen = HashSet::new();
    for (direction, (issue, pointer, has, has_not)) in rows() {
        let line = format!("{} {} {pointer}", issue.level().as_str(), issue.id());
        let (_, notes) = converted(&has, direction);
        assert!(notes.contains(&line), "{line} is not among {notes:?}");
        let (_, notes) = converted(&has_not, direction);
        assert!(!notes.contains(&line), "{line} is notes of {has_not}");
        seen.insert(issue);
    }
    let all: HashSet<Issue> = Issue::ALL.iter().copied().collect();
    assert_eq!(seen, all, "each has a row");
}

#[test]
fn every_issue_is_documented_and_its_id_differs_from_rule_ids() {
    let page = include_str!("../../../../docs/convert.md");
    for issue in Issue::ALL {
        assert!(Rule::ALL.iter().all(|rule| rule.id() != issue.id()), "{}", issue.id());
        let row = format!("| `{}` | {} | {} |", issue.id(), issue.level().as_str(), issue.about());
        assert!(page.contains(&row), "{row}");
    }
}
