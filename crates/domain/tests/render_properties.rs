//! Properties of rendering: a text is filled part by part, and no values or stored templates cause a
//! panic.

use galley_domain::{
    document::Document,
    render,
    rulebook::{Category, V1},
    template::Template,
    violation::{Rule, Violations},
};
use proptest::prelude::*;
use serde_json::{Value, json};

#[expect(clippy::disallowed_methods, reason = "what a store may have kept is tried here")]
fn stored(components: &Value) -> Template {
    let content = json!({"components": components}).to_string();
    Template::restore("n".to_owned(), "en_US".to_owned(), Category::Utility, true, content)
}

fn try_render(template: &Template, values: &Value) -> Result<Value, Violations> {
    let values = values.to_string();
    let values = Document::parse(values.as_bytes()).unwrap();
    Ok(serde_json::to_value(render::render(template, &V1, &values)?).unwrap())
}

/// A valid value, often one that looks like a placeholder.
fn good_value() -> impl Strategy<Value = String> {
    let any = "[^\\p{Cc}]{1,12}".prop_filter("blank, or too many spaces", |value| {
        !value.trim().is_empty() && !value.contains("     ")
    });
    prop_oneof![any, "[{}1-3]{1,8}", Just("{{1}}".to_owned()), Just("{{2}}".to_owned())]
}

/// Text between placeholders, without braces.
fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z .\n\u{e9}]{0,6}", Just("} }} ".to_owned()), Just("{ ".to_owned())]
}

/// The parts of a text: each is some text followed by a placeholder, with all of `1..=count` present.
fn pieces() -> impl Strategy<Value = (Vec<(String, usize)>, Vec<String>)> {
    (1_usize..6).prop_flat_map(|count| {
        let extra = prop::collection::vec(1..=count, 0..4);
        let numbers = extra.prop_map(move |extra| (1..=count).chain(extra).collect::<Vec<_>>());
        let numbers = numbers.prop_shuffle().prop_flat_map(|numbers| {
            prop::collection::vec(words(), numbers.len())
                .prop_map(move |words| words.into_iter().zip(numbers.clone()).collect())
        });
        (numbers, prop::collection::vec(good_value(), count))
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec![
            "Ada",
            " ",
            "a\nb",
            "a      b",
            "https://a.b/c.pdf",
            "HEADER",
            "BODY",
            "FOOTER",
            "BUTTONS",
            "TEXT",
            "MEDIA",
            "URL",
            "COPY_CODE",
            "QUICK_REPLY",
            "https://a.b/{{1}}",
            "{{2}} {{1}}"
        ])
        .prop_map(Value::from),
    ];
    let key = prop_oneof![
        9 => prop::sample::select(vec!["header", "body", "buttons", "0", "1", "3", "components",
            "type", "format", "text", "url", "example", "header_text", "body_text"]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    leaf.prop_recursive(5, 50, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_filled_text_is_its_pieces_with_each_value_in_its_place((pieces, values) in pieces()) {
        let join = |fill: &dyn Fn(usize) -> String| -> String {
            pieces.iter().flat_map(|(words, number)| [words.clone(), fill(*number)]).collect()
        };
        let text = join(&|number| format!("{{{{{number}}}}}"));
        let naive = join(&|number| values[number - 1].clone());
        let template = stored(&json!([{"type": "BODY", "text": text}]));
        let rendered = try_render(&template, &json!({"body": &values})).unwrap();
        prop_assert_eq!(&rendered["texts"]["body"], &naive);
        let sent = &rendered["payload"]["template"]["components"][0]["parameters"];
        let parameters = values.iter().map(|value| json!({"type": "text", "text": value}));
        prop_assert_eq!(sent, &parameters.collect::<Value>());
    }

    #[test]
    fn nothing_sent_or_stored_makes_it_panic_and_what_is_refused_is_there(
        values in any_value(),
        components in prop::collection::vec(any_value(), 0..4),
    ) {
        let usual = json!([
            {"type": "HEADER", "format": "MEDIA"},
            {"type": "BODY", "text": "{{1}} {{2}}"},
            {"type": "BUTTONS", "buttons": [
                {"type": "URL", "url": "https://a.b/{{1}}", "text": "t"}, {"type": "COPY_CODE"},
            ]},
        ]);
        for template in [stored(&usual), stored(&components.into())] {
            match try_render(&template, &values) {
                Ok(rendered) => prop_assert!(!rendered.to_string().contains(":null")),
                Err(violations) => for it in violations.listed() {
                    let there = values.pointer(&it.pointer).is_some();
                    prop_assert!(there || it.rule == Rule::ValueMissing, "{it:?}");
                    prop_assert!(!it.message.is_empty() && it.hint.is_some(), "{it:?}");
                },
            }
        }
    }
}
