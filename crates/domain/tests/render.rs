//! Rendering: a minimal violation and the closest valid values for each rule, and the results for
//! valid values.

use galley_domain::{
    document::Document,
    render,
    rulebook::{Category, V1},
    template::Template,
    violation::{Rule, Violation, Violations},
};
use serde_json::{Value, json};

fn read(components: &Value) -> Result<Template, Violations> {
    let document = json!({"name": "order_sent", "language": "en_US", "category": "UTILITY",
        "allow_category_change": true, "components": components})
    .to_string();
    Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1)
}

fn template(components: &Value) -> Template {
    read(components).unwrap()
}

/// A template with every component, each with all its fields.
fn full() -> Template {
    template(&json!([
        {"type": "BODY", "text": "Hi {{2}},\n\"{{1}}\" is on its way, {{2}}!", "example": {"body_text": [["the kettle", "Ada"]]}},
        {"type": "BUTTONS", "buttons": [
            {"type": "QUICK_REPLY", "text": "Thanks"},
            {"type": "URL", "text": "Track it", "url": "https://shop.example/track/{{1}}", "example": ["4711"]},
            {"type": "PHONE_NUMBER", "text": "Call us", "phone_number": "+15550001111"},
            {"type": "COPY_CODE", "example": "SAVE25"},
            {"type": "URL", "text": "Shop", "url": "https://shop.example/"},
        ]},
        {"type": "FOOTER", "text": "Reply STOP to \"opt out\""},
        {"type": "HEADER", "format": "TEXT", "text": "Order {{1}}"},
    ]))
}

fn media() -> Template {
    template(&json!([
        {"type": "HEADER", "format": "MEDIA", "example": {"media_url": "https://cdn.example/a.png"}},
        {"type": "BODY", "text": "b"},
    ]))
}

fn body(text: &str, samples: &[&str]) -> Template {
    template(&json!([{"type": "BODY", "text": text, "example": {"body_text": [samples]}}]))
}

fn try_render(template: &Template, values: &str) -> Result<Value, Violations> {
    let values = Document::parse(values.as_bytes()).unwrap();
    let rendered = render::render(template, &V1, &values)?;
    // Through text, as in a response.
    Ok(serde_json::from_str(&serde_json::to_string(&rendered).unwrap()).unwrap())
}

fn violation_lines(template: &Template, values: &str) -> Vec<String> {
    let line = |it: &Violation| format!("{} {}", it.pointer, it.rule.id());
    match try_render(template, values) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.listed().iter().map(line).collect(),
    }
}

fn only_violation(template: &Template, values: &str) -> Value {
    let violations = try_render(template, values).unwrap_err();
    let [violation] = violations.listed() else { panic!("{violations:?}") };
    serde_json::to_value(violation).unwrap()
}

const GOOD: &str =
    r#"{"header":["4711"],"body":["The Kettle","Ada"],"buttons":{"1":"4711?a=b","3":"SAVE25"}}"#;

#[test]
fn values_beyond_those_that_are_kept_are_not_ignored() {
    let hi = body("Hi {{1}}", &["Ada"]);
    let values = |count: usize| format!(r#"{{"body":["Ada"{}]}}"#, ",null".repeat(count - 1));
    assert!(try_render(&hi, &values(2_048)).is_ok());
    let long = values(2_048).replace("]}", r#","a","b"]}"#);
    assert_eq!(
        only_violation(&hi, &long),
        json!({"pointer": "/body", "rule": "value-superfluous",
            "message": "has 2050 items; 1 is expected", "hint": "remove the superfluous ones"})
    );
}

#[test]
fn every_rule_rejects_a_minimal_violation_and_accepts_the_closest_valid_values() {
    let hi = body("Hi {{1}}", &["Ada"]);
    let code = template(&json!([{"type": "BODY", "text": "b"},
        {"type": "BUTTONS", "buttons": [{"type": "COPY_CODE", "example": "c"}]}]));
    let link = template(&json!([{"type": "BODY", "text": "b"}, {"type": "BUTTONS", "buttons":
        [{"type": "URL", "text": "t", "url": "https://shop.example{{1}}"}]}]));
    let ada = r#"{"body":["Ada"]}"#;
    let rows = [
        (&hi, r#"{"body":[]}"#, "/body/0 value-missing", ada),
        (&hi, r#"{"body":null}"#, "/body/0 value-missing", ada),
        (&hi, r#"{"body":[null]}"#, "/body/0 value-missing", ada),
        (&media(), "{}", "/header/0 value-missing", r#"{"header":["https://a.b/c.png"]}"#),
        (&code, r#"{"buttons":{}}"#, "/buttons/0 value-missing", r#"{"buttons":{"0":"A"}}"#),
        (&hi, r#"{"body":["Ada","Bob"]}"#, "/body/1 value-superfluous", r#"{"body":["Ada",null]}"#),
        (
            &hi,
            r#"{"body":["Ada"],"header":["x"]}"#,
            "/header value-superfluous",
            r#"{"body":["Ada"],"header":[null]}"#,
        ),
        (
            &hi,
            r#"{"body":["Ada"],"buttons":{"0":"x"}}"#,
            "/buttons value-superfluous",
            r#"{"body":["Ada"],"buttons":{}}"#,
        ),
        (
            &hi,
            r#"{"body":["Ada"],"boddy":["Ada"]}"#,
            "/boddy value-superfluous",
            r#"{"body":["Ada"],"boddy":null}"#,
        ),
        (
            &code,
            r#"{"buttons":{"0":"A","1":"B"}}"#,
            "/buttons/1 value-superfluous",
            r#"{"buttons":{"0":"A","1":null}}"#,
        ),
        (
            &code,
            r#"{"buttons":{"0":"A","00":"B"}}"#,
            "/buttons/00 value-superfluous",
            r#"{"buttons":{"0":"A"}}"#,
        ),
        (&hi, r#"{"body":["A\nda"]}"#, "/body/0 value-line-break", ada),
        (
            &code,
            r#"{"buttons":{"0":"A\tB"}}"#,
            "/buttons/0 value-line-break",
            r#"{"buttons":{"0":"A B"}}"#,
        ),
        (&hi, r#"{"body":["A     da"]}"#, "/body/0 value-spaces", r#"{"body":["A    da"]}"#),
        (
            &media(),
            r#"{"header":["https://a.b/c.webp"]}"#,
            "/header/0 media-kind-unknown",
            r#"{"header":["https://a.b/c.PNG"]}"#,
        ),
        // Rules that values share with templates.
        (&hi, "[]", " wrong-type", ada),
        (&hi, r#"{"body":"Ada"}"#, "/body wrong-type", ada),
        (&hi, r#"{"body":[7]}"#, "/body/0 wrong-type", r#"{"body":["7"]}"#),
        (&code, r#"{"buttons":["A"]}"#, "/buttons wrong-type", r#"{"buttons":{"0":"A"}}"#),
        (&code, r#"{"buttons":{"0":1}}"#, "/buttons/0 wrong-type", r#"{"buttons":{"0":"1"}}"#),
        (&hi, r#"{"body":["Ada"],"body":[]}"#, "/body duplicate-key", ada),
        (&hi, r#"{"body":[" \n"]}"#, "/body/0 empty", ada),
        (&media(), r#"{"header":[""]}"#, "/header/0 empty", r#"{"header":["https://a.b/c.pdf"]}"#),
        (&link, r#"{"buttons":{"0":""}}"#, "/buttons/0 empty", r#"{"buttons":{"0":"/"}}"#),
        (&hi, r#"{"body":["A\u0007"]}"#, "/body/0 control-character", ada),
        (
            &media(),
            r#"{"header":["ftp://a.b/c.png"]}"#,
            "/header/0 url-scheme",
            r#"{"header":["http://a.b/c.png"]}"#,
        ),
        (
            &link,
            r#"{"buttons":{"0":"/a\nb"}}"#,
            "/buttons/0 url-white-space",
            r#"{"buttons":{"0":"/a%0Ab"}}"#,
        ),
        (
            &link,
            r#"{"buttons":{"0":"@b"}}"#,
            "/buttons/0 url-user-info",
            r#"{"buttons":{"0":"/@b"}}"#,
        ),
        (
            &link,
            r#"{"buttons":{"0":".evil.com/"}}"#,
            "/buttons/0 url-host",
            r#"{"buttons":{"0":"/.evil.com/"}}"#,
        ),
    ];
    for (template, bad, line, good) in rows {
        assert_eq!(violation_lines(template, bad), [line], "{bad} should be rejected");
        assert_eq!(violation_lines(template, good), [""; 0], "{good} should be accepted");
    }
    let has_row = |id| rows.iter().any(|(.., line, _)| line.split(' ').nth(1) == Some(id));
    assert!(Rule::VALUES.iter().all(|rule| has_row(rule.id())));
}

#[test]
fn valid_values_produce_the_texts_and_the_message_for_whatsapp() {
    let expected = json!({
        "texts": {
            "header": "Order 4711",
            "body": "Hi Ada,\n\"The Kettle\" is on its way, Ada!",
            "footer": "Reply STOP to \"opt out\"",
            "buttons": [
                {"type": "QUICK_REPLY", "text": "Thanks"},
                {"type": "URL", "text": "Track it", "url": "https://shop.example/track/4711?a=b"},
                {"type": "PHONE_NUMBER", "text": "Call us", "phone_number": "+15550001111"},
                {"type": "COPY_CODE", "code": "SAVE25"},
                {"type": "URL", "text": "Shop", "url": "https://shop.example/"},
            ],
        },
        "payload": {
            "messaging_product": "whatsapp",
            "type": "template",
            "template": {
                "name": "order_sent",
                "language": {"code": "en_US"},
                "components": [
                    {"type": "header", "parameters": [{"type": "text", "text": "4711"}]},
                    {"type": "body", "parameters": [
                        {"type": "text", "text": "The Kettle"}, {"type": "text", "text": "Ada"},
                    ]},
                    {"type": "button", "sub_type": "url", "index": "1",
                        "parameters": [{"type": "text", "text": "4711?a=b"}]},
                    {"type": "button", "sub_type": "copy_code", "index": "3",
                        "parameters": [{"type": "coupon_code", "coupon_code": "SAVE25"}]},
                ],
            },
        },
    });
    assert_eq!(try_render(&full(), GOOD), Ok(expected));
}

#[test]
fn a_value_that_looks_like_a_placeholder_is_inserted_unchanged() {
    let values =
        r#"{"header":["{{1}}"],"body":["{{2}}","{{1}}"],"buttons":{"1":"{{1}}","3":"{{"}}"#;
    let texts = &try_render(&full(), values).unwrap()["texts"];
    assert_eq!(texts["header"], "Order {{1}}");
    assert_eq!(texts["body"], "Hi {{1}},\n\"{{2}}\" is on its way, {{1}}!");
    assert_eq!(texts["buttons"][1]["url"], "https://shop.example/track/{{1}}");
    assert_eq!(texts["buttons"][3]["code"], "{{");
}

#[test]
fn the_message_of_a_template_without_placeholders_has_no_components() {
    let message = json!({"messaging_product": "whatsapp", "type": "template",
        "template": {"name": "order_sent", "language": {"code": "en_US"}}});
    let expected = json!({"texts": {"body": "Hello"}, "payload": message});
    assert_eq!(
        try_render(&template(&json!([{"type": "BODY", "text": "Hello"}])), "{}"),
        Ok(expected)
    );
}

#[test]
fn the_file_extension_determines_the_type_of_an_attachment() {
    for (url, parameter) in [
        ("https://a.b/c.jpg", json!({"type": "image", "image": {"link": "https://a.b/c.jpg"}})),
        (
            "https://a.b/c.mp4?t=1",
            json!({"type": "video", "video": {"link": "https://a.b/c.mp4?t=1"}}),
        ),
        (
            "https://a.b/c/Bill.PDF#p2",
            json!({"type": "document", "document": {"link": "https://a.b/c/Bill.PDF#p2", "filename": "Bill.PDF"}}),
        ),
    ] {
        let rendered = try_render(&media(), &json!({"header": [url]}).to_string()).unwrap();
        assert_eq!(rendered["texts"], json!({"header": url, "body": "b"}));
        let sent = &rendered["payload"]["template"]["components"];
        assert_eq!(*sent, json!([{"type": "header", "parameters": [parameter]}]));
    }
}

#[test]
fn all_violations_are_reported_together() {
    let invalid = r#"{"boddy":[],"header":["a\nb"],"body":["x     y",7,"z"],"buttons":{"0":"x","x":"y","1":"a b"}}"#;
    let lines = [
        "/boddy value-superfluous",
        "/header/0 value-line-break",
        "/body/0 value-spaces",
        "/body/1 wrong-type",
        "/body/2 value-superfluous",
        "/buttons/0 value-superfluous",
        "/buttons/x value-superfluous",
        "/buttons/3 value-missing",
        "/buttons/1 url-white-space",
    ];
    assert_eq!(violation_lines(&full(), invalid), lines);
    let missing = ["/header/0", "/body/0", "/body/1", "/buttons/1", "/buttons/3"];
    assert_eq!(
        violation_lines(&full(), "{}"),
        missing.map(|pointer| format!("{pointer} value-missing"))
    );
    let unreadable = r#"{"header":["https://:a@/c"]}"#;
    let both = ["/header/0 url-user-info", "/header/0 url-host", "/header/0 media-kind-unknown"];
    assert_eq!(violation_lines(&media(), unreadable), both);
}

#[test]
fn violations_have_a_pointer_a_message_and_a_hint() {
    let link = |end: &str| GOOD.replace("4711?a=b", end);
    for (values, expected) in [
        (
            GOOD.replace("\"Ada\"", "null"),
            json!({"pointer": "/body/1", "rule": "value-missing",
                "message": "is missing: the value of `{{2}}` in the body", "hint": "for example `Ada`"}),
        ),
        (
            GOOD.replace("\"1\":\"4711?a=b\",", ""),
            json!({"pointer": "/buttons/1", "rule": "value-missing",
                "message": "is missing: the end of the URL of the button `Track it`", "hint": "for example `4711`"}),
        ),
        (
            GOOD.replace("\"header\":[\"4711\"],", ""),
            json!({"pointer": "/header/0", "rule": "value-missing",
                "message": "is missing: the value of `{{1}}` in the header", "hint": "add it"}),
        ),
        (
            GOOD.replace("\"Ada\"", "25.5"),
            json!({"pointer": "/body/1", "rule": "wrong-type",
                "message": "must be a string, not a number", "hint": "write it in quotes: `\"25.5\"`"}),
        ),
        (
            GOOD.replace("Ada", "\u{e9} \\r\\n\\tx"),
            json!({"pointer": "/body/1", "rule": "value-line-break", "span": {"start": 2, "end": 5},
                "message": "contains a line break or a tab, which WhatsApp rejects in values",
                "hint": "write it on one line"}),
        ),
        (
            GOOD.replace("Ada", "\u{e9}      x"),
            json!({"pointer": "/body/1", "rule": "value-spaces", "span": {"start": 1, "end": 7},
                "message": "contains 6 spaces in a row; WhatsApp accepts at most 4", "hint": "write a single space"}),
        ),
        (
            link("\u{e9} x"),
            json!({"pointer": "/buttons/1", "rule": "url-white-space", "span": {"start": 1, "end": 2},
                "message": "contains whitespace", "hint": "remove it, or write it as `%20`"}),
        ),
        (
            GOOD.replace("\"3\":", "\"2\":\"x\",\"3\":"),
            json!({"pointer": "/buttons/2", "rule": "value-superfluous",
                "message": "button 2 does not take a value", "hint": "buttons that take a value: `1`, `3`"}),
        ),
        (
            GOOD.replace("\"body\"", "\"Bodies\":[],\"body\""),
            json!({"pointer": "/Bodies", "rule": "value-superfluous",
                "message": "unknown member `Bodies`",
                "hint": "known members: `header`, `body`, `buttons`"}),
        ),
        (
            GOOD.replace("\"body\"", "\"heder\":[],\"body\""),
            json!({"pointer": "/heder", "rule": "value-superfluous",
                "message": "unknown member `heder`", "hint": "did you mean `header`?"}),
        ),
        (
            GOOD.replace("Ada", &"\u{e9}".repeat(2_040)),
            json!({"pointer": "/body", "rule": "too-long",
                "message": "results in a text of 4114 characters; at most 4096 are allowed",
                "hint": "shorten it by 18"}),
        ),
    ] {
        assert_eq!(only_violation(&full(), &values), expected, "{values}");
    }
    let hint = &only_violation(&media(), r#"{"header":["https://a.b/c"]}"#)["hint"];
    let extensions =
        ".jpg, .jpeg, .png, .mp4, .3gp, .pdf, .doc, .docx, .xls, .xlsx, .ppt, .pptx, .txt";
    assert_eq!(hint, &format!("use a file with one of these extensions: {extensions}"));
}

/// Builds a component from its text, and values from one value.
type Made<'a> = &'a dyn Fn(&str) -> Value;

#[test]
fn a_filled_text_has_the_limit_of_a_text_without_placeholders() {
    let and = |component: Value| json!([{"type": "BODY", "text": "b"}, component]);
    let button = |button: Value| and(json!({"type": "BUTTONS", "buttons": [button]}));
    let header = |text: &str| and(json!({"type": "HEADER", "format": "TEXT", "text": text}));
    let body =
        |text: &str| json!([{"type": "BODY", "text": text, "example": {"body_text": [["x"]]}}]);
    let url = |url: &str| button(json!({"type": "URL", "text": "t", "url": url}));
    let code = |code: &str| button(json!({"type": "COPY_CODE", "example": code}));
    let media = |url: &str| {
        and(json!({"type": "HEADER", "format": "MEDIA", "example": {"media_url": url}}))
    };
    let in_header = |value: &str| json!({"header": [value]});
    let in_body = |value: &str| json!({"body": [value]});
    let in_buttons = |value: &str| json!({"buttons": {"0": value}});
    let file = "https://a.b/c.png?";
    // The limit, the component, its text with and without a placeholder, the values, and the pointer
    // of the violation.
    let rows: [(usize, Made<'_>, &str, &str, Made<'_>, &str); 5] = [
        (1_024, &header, "a{{1}}", "a", &in_header, "/header"),
        (4_096, &body, "a{{1}}", "a", &in_body, "/body"),
        (2_000, &url, "https://a.b/{{1}}", "https://a.b/", &in_buttons, "/buttons/0"),
        (128, &code, "x", "", &in_buttons, "/buttons/0"),
        (2_000, &media, file, file, &in_header, "/header/0"),
    ];
    for (limit, part, open, start, values, place) in rows {
        let text = |length| format!("{start}{}", "\u{e9}".repeat(length - start.len()));
        template(&part(&text(limit)));
        let refused = read(&part(&text(limit + 1))).unwrap_err();
        assert_eq!(refused.listed()[0].rule, Rule::TooLong, "{place}");
        let fixed = open.strip_suffix("{{1}}").unwrap_or_default();
        let filled_to = |length| values(text(length).strip_prefix(fixed).unwrap()).to_string();
        let open = template(&part(open));
        assert_eq!(violation_lines(&open, &filled_to(limit)), [""; 0], "{place}");
        assert_eq!(violation_lines(&open, &filled_to(limit + 1)), [format!("{place} too-long")]);
    }
}

#[test]
fn hostile_values_cannot_cause_a_long_response() {
    let hi = body("Hi {{1}}", &["Ada"]);
    let list = format!(r#"{{"body":[{}"x"]}}"#, r#""x","#.repeat(50_000));
    let violations = try_render(&hi, &list).unwrap_err();
    assert_eq!((violations.listed().len(), violations.omitted()), (100, 49_900));
    let key = "~/\u{1}".repeat(30_000);
    let keys = json!({"body": ["x"], &key: 1, "buttons": {&key: 1}}).to_string();
    let violations = try_render(&full(), &keys).unwrap_err();
    let answer = serde_json::to_string(violations.listed()).unwrap();
    assert!(answer.len() < 4_000, "{answer}");
    let repeated = body(&"{{1}}".repeat(800), &["Ada"]);
    let value = json!({"body": ["x".repeat(200_000)]}).to_string();
    assert_eq!(violation_lines(&repeated, &value), ["/body too-long"]);
}

#[expect(clippy::disallowed_methods, reason = "what a store may have kept is tried here")]
fn restored(content: &str) -> Template {
    let (name, language) = ("n".to_owned(), "en_US".to_owned());
    Template::restore(name, language, Category::Utility, true, content.to_owned())
}

#[test]
fn unknown_parts_of_stored_templates_are_treated_as_absent() {
    for content in [
        "",
        "7",
        "{}",
        r#"{"components":{}}"#,
        r#"{"components":[7,{"type":"CAROUSEL"}]}"#,
        r#"{"components":[{"type":"HEADER","format":"LOCATION"},{"type":"BODY","text":7},{"type":"BUTTONS","buttons":[7,{"type":"OTP"}]}]}"#,
    ] {
        assert_eq!(try_render(&restored(content), "{}").unwrap()["texts"], json!({}), "{content}");
        assert_eq!(
            violation_lines(&restored(content), r#"{"body":["x"]}"#),
            ["/body value-superfluous"]
        );
    }
    let buttons =
        r#"{"components":[{"type":"BUTTONS","buttons":[{"type":"OTP"},{"type":"COPY_CODE"}]}]}"#;
    let rendered = try_render(&restored(buttons), r#"{"buttons":{"1":"A"}}"#).unwrap();
    assert_eq!(rendered["payload"]["template"]["components"][0]["index"], "1");
}
