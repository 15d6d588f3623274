//! "Did you mean": a suggestion is a valid value itself.

use galley_domain::{
    document::Document,
    rulebook::{Rulebook, V1, WHATSAPP},
    template::Template,
    violation::Violation,
};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Value, json};

fn template() -> Value {
    json!({
        "name": "n", "language": "en_US", "category": "MARKETING", "allow_category_change": true,
        "components": [
            {"type": "BODY", "text": "b"},
            {"type": "BUTTONS", "buttons": [
                {"type": "URL", "text": "Go", "url": "https://shop.example"},
                {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
            ]},
        ],
    })
}

const POINTERS: [&str; 6] = [
    "/name",
    "/language",
    "/category",
    "/components/0/text",
    "/components/1/buttons/0/url",
    "/components/1/buttons/1/phone_number",
];

fn with_value(pointer: &str, value: &str, format: &str) -> Value {
    let mut document = template();
    document["parameter_format"] = json!(format);
    *document.pointer_mut(pointer).unwrap() = json!(value);
    document
}

/// The violations of the value at a pointer.
fn violations_at(pointer: &str, document: &Value, rulebook: &'static Rulebook) -> Vec<Violation> {
    let text = document.to_string();
    let read = Template::read(&Document::parse(text.as_bytes()).unwrap(), rulebook);
    let violations = read.err().map(|it| it.listed().to_vec()).unwrap_or_default();
    violations.into_iter().filter(|it| it.pointer == pointer).collect()
}

/// The values that warnings about the value at a pointer suggest.
fn suggested_by_warnings(
    pointer: &str,
    document: &Value,
    rulebook: &'static Rulebook,
) -> Vec<String> {
    let text = document.to_string();
    let warnings = Template::check(&Document::parse(text.as_bytes()).unwrap(), rulebook).warnings;
    let here = warnings.listed().iter().filter(|it| it.pointer == pointer);
    here.filter_map(|it| suggested(&it.hint)).collect()
}

fn suggestion(violation: &Violation) -> Option<String> {
    suggested(violation.hint.as_deref()?)
}

fn suggested(hint: &str) -> Option<String> {
    Some(hint.strip_prefix("did you mean `")?.strip_suffix("`?").unwrap().to_owned())
}

/// Applies every suggestion about a value. Returns how many there are.
fn check(pointer: &str, value: &str, format: &str, rulebook: &'static Rulebook) -> usize {
    let at = |value: &str| violations_at(pointer, &with_value(pointer, value, format), rulebook);
    let violations = at(value);
    let mut count = 0;
    let document = with_value(pointer, value, format);
    for suggested in suggested_by_warnings(pointer, &document, rulebook) {
        count += 1;
        let left = at(&suggested);
        assert!(left.is_empty(), "{value:?}: {suggested:?} is not valid: {left:?}");
    }
    for (violation, suggested) in violations.iter().filter_map(|it| Some((it, suggestion(it)?))) {
        count += 1;
        if let Some(span) = violation.span.filter(|_| suggested.starts_with("{{")) {
            // A placeholder instead of the marked one. Others may still be invalid.
            let characters: Vec<char> = value.chars().collect();
            let (before, after) = (&characters[..span.start], &characters[span.end..]);
            let suggested: Vec<char> = suggested.chars().collect();
            let corrected: String = [before, &suggested, after].into_iter().flatten().collect();
            let same = |it: &&Violation| it.rule == violation.rule;
            let (left, found) = (at(&corrected), violations.iter().filter(same).count());
            let left = left.iter().filter(same).count();
            assert!(left < found, "{value:?}: {corrected:?} still breaks {:?}", violation.rule);
        } else {
            let left = at(&suggested);
            assert!(left.is_empty(), "{value:?}: {suggested:?} is not valid: {left:?}");
        }
    }
    count
}

fn fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "b c",
        " ",
        "/",
        "//",
        "://",
        ":",
        "http",
        "HTTPS://",
        "http://",
        "ftp://",
        "shop.example",
        "localhost",
        "127.0.0.1",
        "wa.me/1",
        "me@",
        "?q=",
        "{{1}}",
        "{{ 1 }}",
        "{{2}}",
        "{{Name}}",
        "{{first name}}",
        "{{a-much-longer-name-than-any-message-can-quote}}",
        "{{",
        "}}",
        "\u{7}",
        "\n",
        "é",
        "😀",
        "+1555",
        "+1 555 000-1111",
        "(0)",
        "-",
        ".",
        "en",
        "EN",
        "_",
        "us",
        "-US",
        "de-DE",
        "xx",
        "YY",
        "english",
        "MARKETTING",
        "utilty",
        "Order Update",
        "this-part-alone-is-longer-than-40-characters",
    ])
}

fn value() -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(), 1..5).prop_map(|fragments| fragments.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_suggestion_is_valid(value in value()) {
        for pointer in POINTERS {
            check(pointer, &value, "POSITIONAL", &V1);
            check(pointer, &value, "POSITIONAL", &WHATSAPP);
            check(pointer, &value, "NAMED", &WHATSAPP);
        }
    }
}

#[test]
fn a_second_placeholder_of_a_url_gets_no_suggestion() {
    let pointer = "/components/1/buttons/0/url";
    check(pointer, "https://shop.example/{{Name}}{{name}}", "NAMED", &WHATSAPP);
    check(pointer, "{{Name}}{{1}}", "NAMED", &WHATSAPP);
}

#[test]
fn suggestions_are_given_for_every_kind_of_value() {
    let mut runner = TestRunner::deterministic();
    let values: Vec<String> =
        (0..300).map(|_| value().new_tree(&mut runner).unwrap().current()).collect();
    for pointer in POINTERS {
        let formats = [("POSITIONAL", &V1), ("NAMED", &WHATSAPP)];
        let count: usize = formats
            .into_iter()
            .flat_map(|(format, rulebook)| values.iter().map(move |it| (format, rulebook, it)))
            .map(|(format, rulebook, value)| check(pointer, value, format, rulebook))
            .sum();
        assert!(count > 3, "{pointer}: {count}");
    }
}

#[test]
fn a_text_that_no_scheme_turns_into_a_url_gets_an_example_instead_of_a_suggestion() {
    let hint = |url: &str, rulebook: &'static Rulebook| {
        let pointer = "/components/1/buttons/0/url";
        let document = with_value(pointer, url, "POSITIONAL");
        let violations = violations_at(pointer, &document, rulebook);
        let scheme = violations.into_iter().find(|it| it.rule.id() == "url-scheme");
        scheme.unwrap().hint.unwrap()
    };
    let example = "write a URL such as `https://shop.example/path`";
    for rulebook in [&V1, &WHATSAPP] {
        assert_eq!(hint("not a url", rulebook), example);
        assert_eq!(hint("me@shop.example", rulebook), example);
        assert_eq!(
            hint("shop.example/{{1}}", rulebook),
            "did you mean `https://shop.example/{{1}}`?"
        );
        let long = format!("shop.example/{}", "x".repeat(40));
        assert_eq!(hint(&long, rulebook), "begin it with `https://`");
    }
    assert_eq!(hint("localhost/cart", &WHATSAPP), example);
    assert_eq!(hint("wa.me/1", &WHATSAPP), example);
}

#[test]
fn a_warning_suggests_a_url_only_if_it_is_valid() {
    let pointer = "/components/1/buttons/0/url";
    let suggested = |url: &str, rulebook| {
        suggested_by_warnings(pointer, &with_value(pointer, url, "POSITIONAL"), rulebook)
    };
    for rulebook in [&V1, &WHATSAPP] {
        assert_eq!(suggested("https://a.example{{1}}", rulebook), ["https://a.example/{{1}}"]);
        assert_eq!(suggested("https://a@b.example{{1}}", rulebook), [""; 0]);
    }
    for url in ["https://localhost{{1}}", "https://wa.me{{1}}"] {
        assert_eq!(suggested(url, &WHATSAPP), [""; 0], "{url}");
    }
}
