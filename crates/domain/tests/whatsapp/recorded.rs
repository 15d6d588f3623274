//! Rules that are known from answers of Meta which developers have published.

use galley_domain::{
    document::Document,
    render,
    rulebook::WHATSAPP,
    template::{Template, edit::Edit},
    violation::Rule,
};
use serde_json::{Value, json};

use super::{fixture::*, table::Row};

/// A carousel with this text in the body of each card.
fn cards_with(text: &str) -> String {
    let body = json!({"type": "BODY", "text": text, "example": {"body_text": "7"}});
    let card = card(&json!([image(), body, {"type": "BUTTONS", "buttons": [link()]}]));
    // The first card has no such body, so that there is one violation.
    let valid = json!({"type": "BODY", "text": "Nothing to fill in"});
    let first = self::card(&json!([image(), valid, {"type": "BUTTONS", "buttons": [link()]}]));
    carousel(&json!([first, card]))
}

fn with_handle(handle: &Value) -> String {
    with_component(
        &json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": handle}}),
    )
}

pub(crate) fn rows() -> Vec<Row> {
    let two = "Hi {{1}} and {{2}} or another one";
    vec![
        (
            Rule::SamplesFlat,
            body(two, &json!(["a", "b"])),
            "/components/0/example/body_text samples-flat",
            (100, 2_388_043),
            body(two, &json!([["a", "b"]])),
        ),
        (
            Rule::HandleForm,
            with_handle(&json!(["https://cdn.example/a.png"])),
            "/components/1/example/header_handle/0 handle-form",
            (100, 2_388_273),
            with_handle(&json!(["4::aW1hZ2U="])),
        ),
        (
            Rule::TooFewWords,
            cards_with("Only {{1}} today"),
            "/components/1/cards/1/components/1/text too-few-words",
            (100, 2_388_293),
            cards_with("Only {{1}} left today"),
        ),
        (
            Rule::UrlHost,
            url("https://localhost/cart"),
            "/components/1/buttons/0/url url-host",
            (100, 2_388_052),
            url("https://localhost.example/cart"),
        ),
    ]
}

#[test]
fn a_url_is_not_a_handle_in_any_notation() {
    for (handle, index) in [
        (json!("https://cdn.example/a.png"), ""),
        (json!("http://cdn.example/a.png"), ""),
        (json!(["HTTPS://cdn.example/a.png"]), "/0"),
        (json!(["http://"]), "/0"),
    ] {
        let line = format!("/components/1/example/header_handle{index} handle-form");
        assert_eq!(violations_of(&with_handle(&handle)), [line], "{handle}");
    }
    for handle in [json!("4::aW1h"), json!(["2:c2FtcGxl"]), json!("httpsample"), json!("é")] {
        assert_eq!(violations_of(&with_handle(&handle)), [""; 0], "{handle}");
    }
    let image = |handle: &str| json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}});
    let card =
        |handle: &str| card(&json!([image(handle), {"type": "BUTTONS", "buttons": [link()]}]));
    assert_eq!(
        violations_of(&carousel(&json!([card("4::aW1h"), card("https://a.b/c.png")]))),
        ["/components/1/cards/1/components/0/example/header_handle/0 handle-form"]
    );
}

#[test]
fn an_edit_may_repeat_the_url_of_a_template_that_was_read() {
    let template = read(&with_handle(&json!("4::aW1h"))).unwrap();
    let mut edit: Value =
        serde_json::from_str(&with_handle(&json!(["https://cdn.example/a.png"]))).unwrap();
    edit["components"][0]["text"] = json!("Another text");
    let edit = edit.to_string();
    let edit = Edit::read(&Document::parse(edit.as_bytes()).unwrap(), &WHATSAPP, &template);
    assert!(matches!(edit, Ok(Edit::Replace { content: Some(_), .. })), "{edit:?}");
}

#[test]
fn a_button_must_not_lead_to_the_recipients_own_device() {
    for host in [
        "localhost",
        "LocalHost",
        "localhost.",
        "localhost:3000",
        "shop.localhost",
        "127.0.0.1",
        "127.8.9.10:8080",
        "[::1]",
        "[::1]:8080",
        "[::ffff:127.0.0.1]",
    ] {
        let line = "/components/1/buttons/0/url url-host";
        for path in ["", "/cart", "?a=b"] {
            let url = url(&format!("http://{host}{path}"));
            assert_eq!(violations_of(&url), [line], "{url}");
        }
        let suffixed = json!({"type": "URL", "text": "t", "url": format!("https://{host}/{{{{1}}}}"), "example": "x"});
        assert_eq!(violations_of(&button(&suffixed)), [line], "{suffixed}");
    }
    for host in ["localhost.example", "notlocalhost", "128.0.0.1", "[2001:db8::1]"] {
        assert_eq!(violations_of(&url(&format!("http://{host}/"))), [""; 0], "{host}");
    }
}

#[test]
fn samples_of_a_body_may_have_lines_and_values_of_a_message_may_not() {
    let lines = "first\nsecond\r\nthird";
    let named_samples = json!([{"param_name": "a", "example": lines}]);
    for document in [
        body("Hi {{1}} and bye", &json!([[lines]])),
        body("Hi {{1}} and bye", &json!(lines)),
        named("Hi {{a}} and bye", &named_samples),
        cards_with("Only {{1}} left today").replace("\"7\"", &json!(lines).to_string()),
    ] {
        assert_eq!(violations_of(&document), [""; 0], "{document}");
    }
    let header = json!({"type": "HEADER", "format": "TEXT", "text": "Hi {{1}}", "example": {"header_text": lines}});
    let control = "/components/1/example/header_text control-character";
    assert_eq!(violations_of(&with_component(&header)), [control]);
    assert_eq!(
        violations_of(&body("Hi {{1}} and bye", &json!("a\u{0}b"))),
        ["/components/0/example/body_text control-character"]
    );

    let template = read(&body("Hi {{1}} and bye", &json!(lines))).unwrap();
    let sent = |value: &str| {
        let values = json!({"body": [value]}).to_string();
        let values = Document::parse(values.as_bytes()).unwrap();
        render_lines(&template, &values)
    };
    assert_eq!(sent("first second third"), [""; 0]);
    assert_eq!(sent(lines), ["/body/0 value-line-break"]);
}

/// The violations of values for a template.
fn render_lines(template: &Template, values: &Document<'_>) -> Vec<String> {
    match render::render(template, &WHATSAPP, values) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.listed().iter().map(line).collect(),
    }
}
