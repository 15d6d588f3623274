//! Every rule of values: a minimal violation, its pointer, and the closest valid values.

use galley_domain::violation::Rule;
use serde_json::{Value, json};

use super::fixture::{
    button, carousel, code, header, named, numbered, offer, products, violation_lines,
    violation_text,
};

/// A row: the template, invalid values, their violations, valid values.
type Row = (galley_domain::template::Template, Value, &'static str, Value);

fn row(
    template: galley_domain::template::Template,
    bad: Value,
    line: &'static str,
    good: Value,
) -> Row {
    (template, bad, line, good)
}

fn buttons(value: &Value) -> Value {
    json!({"buttons": {"0": value}})
}

fn in_header(value: &Value) -> Value {
    json!({"header": value})
}

fn texts() -> Vec<Row> {
    let good = || json!({"header": ["1"], "body": ["Ada", "2"]});
    let of = |body: Value| json!({"header": ["1"], "body": body});
    let by_name = |who: Value, body: Value| json!({"header": who, "body": body, "buttons": {"0": "a", "1": "b"}});
    let who = || json!({"who": "Ada"});
    let names = || json!({"first_name": "Ada", "order": "1"});
    let named_good = || by_name(who(), names());
    vec![
        row(numbered(), of(json!(["Ada"])), "/body/1 value-missing", good()),
        row(numbered(), of(json!(["Ada", null])), "/body/1 value-missing", good()),
        row(
            numbered(),
            of(json!(["Ada", "2", "3"])),
            "/body/2 value-superfluous",
            of(json!(["Ada", "2", null])),
        ),
        row(numbered(), of(json!(["Ada", 2])), "/body/1 wrong-type", good()),
        row(numbered(), of(json!({"1": "Ada", "2": "x"})), "/body wrong-type", good()),
        row(numbered(), of(json!(["Ada", " "])), "/body/1 empty", good()),
        row(numbered(), of(json!(["Ada", "a\nb"])), "/body/1 value-line-break", good()),
        row(numbered(), of(json!(["Ada", "a\tb"])), "/body/1 value-line-break", good()),
        row(numbered(), of(json!(["Ada", "a\u{2028}b"])), "/body/1 value-line-break", good()),
        row(
            numbered(),
            of(json!(["Ada", "a     b"])),
            "/body/1 value-spaces",
            of(json!(["Ada", "a    b"])),
        ),
        row(numbered(), of(json!(["Ada", "\u{7}"])), "/body/1 control-character", good()),
        row(
            numbered(),
            json!({"header": ["1"], "body": ["Ada", "2"], "heder": []}),
            "/heder value-superfluous",
            good(),
        ),
        row(
            numbered(),
            json!({"header": ["1"], "body": ["Ada", "2"], "cards": [{}]}),
            "/cards value-superfluous",
            json!({"header": ["1"], "body": ["Ada", "2"], "cards": []}),
        ),
        row(
            numbered(),
            json!({"header": ["1"], "body": ["Ada", "2"], "offer": 7}),
            "/offer value-superfluous",
            good(),
        ),
        row(numbered(), json!([]), " wrong-type", good()),
        row(
            named(),
            by_name(who(), json!({"order": "1"})),
            "/body/first_name value-missing",
            named_good(),
        ),
        row(
            named(),
            by_name(who(), json!({"first_name": "Ada", "order": "1", "orders": "1"})),
            "/body/orders value-superfluous",
            named_good(),
        ),
        row(named(), by_name(json!(["Ada"]), names()), "/header wrong-type", named_good()),
        row(
            named(),
            by_name(who(), json!({"first_name": "Ada", "order": 1})),
            "/body/order wrong-type",
            named_good(),
        ),
        row(named(), by_name(json!({"who": ""}), names()), "/header/who empty", named_good()),
        row(code(), json!({}), "/body/0 value-missing", json!({"body": ["1"]})),
        row(code(), json!({"body": 123_456}), "/body wrong-type", json!({"body": "123456"})),
        row(code(), json!({"body": {"0": "1"}}), "/body wrong-type", json!({"body": "1"})),
        row(
            code(),
            json!({"body": ["1", "1"]}),
            "/body/1 value-superfluous",
            json!({"body": ["1"]}),
        ),
        row(
            code(),
            json!({"body": "1", "buttons": {"0": "1"}}),
            "/buttons value-superfluous",
            json!({"body": "1", "buttons": {}}),
        ),
        row(code(), json!({"body": "1 \n2"}), "/body value-line-break", json!({"body": "1 2"})),
        row(code(), json!({"body": "1\u{2029}"}), "/body value-line-break", json!({"body": "1"})),
    ]
}

/// The URL of an attachment may be in a list of one.
fn listed() -> Vec<Row> {
    let list = |urls: &[&str]| in_header(&json!(urls));
    let picture = "https://a/b.png";
    let film = list(&["https://a/b.mp4"]);
    vec![
        row(header("IMAGE"), film, "/header/0 media-kind-differs", list(&[picture])),
        row(header("IMAGE"), list(&[picture, picture]), "/header wrong-type", list(&[picture])),
    ]
}

fn headers() -> Vec<Row> {
    let link = |url: &str| in_header(&json!({"link": url}));
    let place = |key: &str, value: Value| {
        let mut place = json!({"latitude": 1, "longitude": 180, "name": "n", "address": "a"});
        place[key] = value;
        in_header(&place)
    };
    let good_place = || place("latitude", json!(-90));
    let product = |id: Value| in_header(&json!({"product_retailer_id": id, "catalog_id": "c"}));
    let spm = || button(&json!({"type": "SPM"}));
    let id = || in_header(&json!({"id": "7"}));
    vec![
        row(header("IMAGE"), json!({}), "/header value-missing", id()),
        row(header("IMAGE"), in_header(&json!({})), "/header/link value-missing", id()),
        row(header("IMAGE"), in_header(&json!([7])), "/header wrong-type", id()),
        row(header("IMAGE"), in_header(&json!({"id": 7})), "/header/id wrong-type", id()),
        row(
            header("IMAGE"),
            in_header(&json!({"id": "7", "link": "https://a.b"})),
            "/header/id value-superfluous",
            link("https://a.b"),
        ),
        row(
            header("IMAGE"),
            in_header(&json!({"id": "7", "filename": "f"})),
            "/header/filename value-superfluous",
            id(),
        ),
        row(
            header("IMAGE"),
            in_header(&json!("https://a.b/c.mp4")),
            "/header media-kind-differs",
            in_header(&json!("https://a.b/c.webp")),
        ),
        row(
            header("GIF"),
            link("https://a.b/c.png"),
            "/header/link media-kind-differs",
            link("https://a.b/c.mp4"),
        ),
        row(header("VIDEO"), link("a.b/c"), "/header/link url-scheme", link("http://a.b/c")),
        row(header("VIDEO"), link("https://"), "/header/link url-host", link("https://a")),
        row(
            header("VIDEO"),
            link("https://u@a.b/c"),
            "/header/link url-user-info",
            link("https://a.b/u@c"),
        ),
        row(
            header("DOCUMENT"),
            link("https://a.b/c d"),
            "/header/link url-white-space",
            link("https://a.b/c%20d"),
        ),
        row(
            header("DOCUMENT"),
            in_header(&json!({"id": "7", "filename": " "})),
            "/header/filename empty",
            in_header(&json!({"id": "7", "filename": "f"})),
        ),
        row(
            header("LOCATION"),
            place("name", json!(null)),
            "/header/name value-missing",
            good_place(),
        ),
        row(
            header("LOCATION"),
            place("latitude", json!(null)),
            "/header/latitude value-missing",
            good_place(),
        ),
        row(
            header("LOCATION"),
            place("latitude", json!("NaN")),
            "/header/latitude wrong-type",
            place("latitude", json!("9.5")),
        ),
        row(
            header("LOCATION"),
            place("latitude", json!(90.1)),
            "/header/latitude number-range",
            good_place(),
        ),
        row(
            header("LOCATION"),
            place("town", json!("t")),
            "/header/town value-superfluous",
            good_place(),
        ),
        row(
            spm(),
            product(json!(null)),
            "/header/product_retailer_id value-missing",
            product(json!("k")),
        ),
        row(spm(), in_header(&json!("k")), "/header wrong-type", product(json!("k"))),
    ]
}

fn pressed() -> Vec<Row> {
    let of = |kind: &str| button(&json!({"type": kind, "text": "t"}));
    let reply = || of("QUICK_REPLY");
    let coupon = || button(&json!({"type": "COPY_CODE", "example": "x"}));
    let flow = || button(&json!({"type": "FLOW", "text": "t", "flow_id": "1"}));
    let url = || {
        button(
            &json!({"type": "URL", "text": "t", "url": "https://a.example{{1}}", "example": ["x"]}),
        )
    };
    vec![
        row(coupon(), json!({}), "/buttons/0 value-missing", buttons(&json!("A"))),
        row(coupon(), buttons(&json!("A-1")), "/buttons/0 code-form", buttons(&json!("A1"))),
        row(coupon(), buttons(&json!("\u{c4}")), "/buttons/0 code-form", buttons(&json!("a"))),
        row(coupon(), buttons(&json!(["A"])), "/buttons/0 wrong-type", buttons(&json!("A"))),
        row(coupon(), json!({"buttons": ["A"]}), "/buttons wrong-type", buttons(&json!("A"))),
        row(
            coupon(),
            json!({"buttons": {"0": "A", "1": "B"}}),
            "/buttons/1 value-superfluous",
            json!({"buttons": {"0": "A", "1": null}}),
        ),
        row(
            button(&json!({"type": "REQUEST_CONTACT_INFO"})),
            buttons(&json!("x")),
            "/buttons value-superfluous",
            json!({}),
        ),
        row(url(), json!({}), "/buttons/0 value-missing", buttons(&json!("/"))),
        row(url(), buttons(&json!("@b")), "/buttons/0 url-user-info", buttons(&json!("/@b"))),
        row(url(), buttons(&json!(".evil.com/")), "/buttons/0 url-host", buttons(&json!("?q"))),
        row(url(), buttons(&json!("\\.evil.com")), "/buttons/0 url-host", buttons(&json!("#b"))),
        row(url(), buttons(&json!(":8080/")), "/buttons/0 url-host", buttons(&json!("/:8080"))),
        row(reply(), buttons(&json!("")), "/buttons/0 empty", buttons(&json!("a\n      \tb"))),
        row(reply(), buttons(&json!(1)), "/buttons/0 wrong-type", buttons(&json!("1"))),
        row(
            flow(),
            buttons(&json!("t")),
            "/buttons/0 wrong-type",
            buttons(&json!({"flow_token": "t"})),
        ),
        row(
            flow(),
            buttons(&json!({"flow_action_data": "x"})),
            "/buttons/0/flow_action_data wrong-type",
            buttons(&json!({"flow_action_data": {}})),
        ),
        row(
            flow(),
            buttons(&json!({"token": "x"})),
            "/buttons/0/token value-superfluous",
            buttons(&json!({"flow_token": "x"})),
        ),
    ]
}

fn shopping() -> Vec<Row> {
    let of = |kind: &str| button(&json!({"type": kind, "text": "t"}));
    let item = || json!({"product_retailer_id": "k"});
    let section = |items: Value| {
        buttons(&json!({"thumbnail_product_retailer_id": "k",
            "sections": [{"title": "t", "product_items": items}]}))
    };
    let sections = |count: usize| {
        let section = json!({"title": "t", "product_items": [item()]});
        buttons(&json!({"thumbnail_product_retailer_id": "k", "sections": vec![section; count]}))
    };
    vec![
        row(
            of("CATALOG"),
            buttons(&json!({"thumbnail": "x"})),
            "/buttons/0/thumbnail value-superfluous",
            buttons(&json!({"thumbnail_product_retailer_id": "x"})),
        ),
        row(
            of("MPM"),
            buttons(&json!({"thumbnail_product_retailer_id": "x"})),
            "/buttons/0/sections value-missing",
            section(json!([item()])),
        ),
        row(
            of("MPM"),
            section(json!([])),
            "/buttons/0/sections/0/product_items value-missing",
            section(json!([item()])),
        ),
        row(
            of("MPM"),
            section(json!(["k"])),
            "/buttons/0/sections/0/product_items/0 wrong-type",
            section(json!([item()])),
        ),
        row(
            of("MPM"),
            section(json!(vec![item(); 31])),
            "/buttons/0/sections too-many",
            section(json!(vec![item(); 30])),
        ),
        row(of("MPM"), sections(11), "/buttons/0/sections too-many", sections(10)),
        row(of("ORDER_DETAILS"), json!({}), "/buttons/0 value-missing", buttons(&json!({"a": 1}))),
        row(
            of("ORDER_DETAILS"),
            buttons(&json!({})),
            "/buttons/0 empty",
            buttons(&json!({"a": 1})),
        ),
        row(of("VOICE_CALL"), buttons(&json!(0)), "/buttons/0 number-range", buttons(&json!(1))),
        row(
            of("VOICE_CALL"),
            buttons(&json!({"ttl_minutes": 43_201})),
            "/buttons/0/ttl_minutes number-range",
            buttons(&json!({"ttl_minutes": 43_200})),
        ),
        row(
            of("VOICE_CALL"),
            buttons(&json!({"ttl_minutes": "9"})),
            "/buttons/0/ttl_minutes wrong-type",
            buttons(&json!({"ttl_minutes": 9})),
        ),
    ]
}

fn cards_and_offers() -> Vec<Row> {
    let card = || json!({"header": {"id": "7"}, "body": ["x"], "buttons": {"1": "y"}});
    let good = || json!({"cards": [card(), card()]});
    let second = |card: Value| {
        let mut cards = good();
        cards["cards"][1] = card;
        cards
    };
    let product = || json!({"header": {"product_retailer_id": "k", "catalog_id": "c"}});
    let ends = |end: Value| json!({"buttons": {"0": "A"}, "offer": end});
    let end = || ends(json!(1_794_733_800_000_i64));
    vec![
        row(
            carousel(),
            json!({"cards": [card(), card(), card()]}),
            "/cards/2 value-superfluous",
            good(),
        ),
        row(carousel(), json!({"cards": {"0": card()}}), "/cards wrong-type", good()),
        row(carousel(), second(json!("x")), "/cards/1 wrong-type", good()),
        row(
            carousel(),
            second(json!({"header": {"id": "7"}, "buttons": {"1": "y"}, "body": ["a\tb"]})),
            "/cards/1/body/0 value-line-break",
            good(),
        ),
        row(
            carousel(),
            second(
                json!({"header": {"id": "7"}, "buttons": {"1": "y"}, "body": ["a"], "offer": 1}),
            ),
            "/cards/1/offer value-superfluous",
            good(),
        ),
        row(
            carousel(),
            second(json!({"header": {"id": "7"}, "body": ["a"]})),
            "/cards/1/buttons/1 value-missing",
            good(),
        ),
        row(
            products(),
            json!({"cards": vec![product(); 11]}),
            "/cards/10 value-superfluous",
            json!({"cards": vec![product(); 10]}),
        ),
        row(
            products(),
            json!({"cards": [product()]}),
            "/cards/1/header/product_retailer_id value-missing",
            json!({"cards": vec![product(); 2]}),
        ),
        row(offer(true), ends(json!(null)), "/offer value-missing", end()),
        row(offer(true), ends(json!(1_794_733_800)), "/offer number-range", end()),
        row(offer(true), ends(json!(1.5)), "/offer wrong-type", end()),
        row(offer(true), ends(json!({})), "/offer wrong-type", end()),
        row(
            offer(true),
            ends(json!("tomorrow")),
            "/offer moment-form",
            ends(json!("2026-11-15T09:30:00Z")),
        ),
        row(offer(false), end(), "/offer value-superfluous", ends(json!(null))),
    ]
}

#[test]
fn every_rule_rejects_a_minimal_violation_and_accepts_the_closest_valid_values() {
    let rows: Vec<Row> = [texts(), listed(), headers(), pressed(), shopping(), cards_and_offers()]
        .into_iter()
        .flatten()
        .collect();
    for (template, bad, line, good) in &rows {
        let lines = violation_lines(template, bad);
        // A missing product also lacks its catalogue.
        assert_eq!(lines.first().map(String::as_str), Some(*line), "{bad} should be rejected");
        let same =
            |it: &String| it.split_once(' ').map(|it| it.1) == line.split_once(' ').map(|it| it.1);
        assert!(lines.iter().all(same), "{bad}: {lines:?}");
        assert_eq!(violation_lines(template, good), [""; 0], "{good} should be accepted");
    }
    let has_row =
        |rule: &Rule| rows.iter().any(|(_, _, line, _)| line.ends_with(&format!(" {}", rule.id())));
    // The format of the header determines the type of the file.
    let needless = Rule::MediaKindUnknown;
    // Values cannot violate it: see `kinds.rs`.
    let of_templates = Rule::PartUnknown;
    let rules = Rule::VALUES.iter().chain(Rule::WHATSAPP_VALUES);
    for rule in rules.filter(|it| ![needless, of_templates].contains(it)) {
        assert!(has_row(rule), "{rule:?}");
    }
    let twice = r#"{"header":["1"],"body":["Ada","2"],"body":["Ada","2"]}"#;
    assert_eq!(violation_text(&numbered(), twice), ["/body duplicate-key"]);
}
