//! How texts are formatted.

use galley_domain::rulebook::V1;
use serde_json::json;

use super::{proof_of, shown, with_body};

fn body(text: &str) -> Vec<String> {
    shown(&proof_of(&V1, &json!({"document": with_body(text)}))["body"])
}

#[test]
fn marks_around_a_text_format_it() {
    for (text, expected) in [
        (
            "*b* _i_ ~s~ `c`",
            &["b [bold]", " ", "i [italic]", " ", "s [strike]", " ", "c [monospace]"][..],
        ),
        ("(*b*), \"_i_\"!", &["(", "b [bold]", "), \"", "i [italic]", "\"!"]),
        ("*two words* é", &["two words [bold]", " é"]),
        ("```a\n*b*```!", &["a\n*b* [monospace, block]", "!"]),
        ("x ```y``` z", &["x ", "y [monospace, block]", " z"]),
        ("`*a* _b_`", &["*a* _b_ [monospace]"]),
    ] {
        assert_eq!(body(text), expected, "{text}");
    }
}

#[test]
fn styles_are_nested() {
    for (text, expected) in [
        ("*_a_*", &["a [bold, italic]"][..]),
        ("~*_a_*~", &["a [bold, italic, strike]"]),
        ("*a _b_ c*", &["a  [bold]", "b [bold, italic]", " c [bold]"]),
        ("*a `b` c*", &["a  [bold]", "b [bold, monospace]", " c [bold]"]),
        ("*_a*_", &["_a [bold]", "_"]),
        ("> *a*\n- _b_", &["a [bold, quote]", "\n [quote]", "b [italic, list]"]),
    ] {
        assert_eq!(body(text), expected, "{text}");
    }
}

#[test]
fn marks_without_a_counterpart_are_text() {
    for text in [
        "5 * 3 * 2",
        "order_id and item_id",
        "~30 min",
        "a*b*c",
        "*a",
        "a*",
        "**",
        "****",
        "x * *",
        "*a *",
        "_a\nb_",
        "``",
        "``````",
        "``` ```",
        "`a",
        "*a\n*",
        "2. ",
        "- ",
        ">x",
        "-x",
        "1.x",
        "1234. x",
        "•",
    ] {
        assert_eq!(body(text), [text], "{text}");
    }
}

#[test]
fn lines_of_lists_and_quotes_have_their_style() {
    assert_eq!(
        body("Buy:\n- milk\n* *two* eggs\n1. pay\n12. go\n> really\nBye\nnow"),
        [
            "Buy:\n",
            "milk\n [list]",
            "two [bold, list]",
            " eggs\n [list]",
            "1. pay\n [numbered]",
            "12. go\n [numbered]",
            "really\n [quote]",
            "Bye\nnow",
        ]
    );
    assert_eq!(
        body("a\n```- b\n- c```\n- d"),
        ["a\n", "- b\n- c [monospace, block]", "\n", "d [list]"]
    );
}

#[test]
fn the_device_formats_values_but_not_unfilled_placeholders() {
    let request = |values: serde_json::Value| {
        let mut document = with_body("Hi *{{1}}*, _{{2}}_ {{_x_}} ok");
        document["components"][0]["example"] = json!({"body_text": [["Ada", "~old~ new"]]});
        proof_of(&V1, &json!({"document": document, "values": values}))["body"].clone()
    };
    let body = request(serde_json::Value::Null);
    assert_eq!(
        shown(&body),
        ["Hi ", "Ada [bold]", ", ", "old [italic, strike]", " new [italic]", " ", "{{_x_}}", " ok"]
    );
    assert_eq!(body[1]["placeholder"], json!({"name": "1", "filled": true}));
    assert_eq!(body[4]["placeholder"], json!({"name": "2", "filled": true}));
    assert_eq!(body[6]["placeholder"], json!({"name": "_x_", "filled": false}));
    assert_eq!(body[7].get("placeholder"), None);
    let body = request(json!({"body": ["Bo"]}));
    assert_eq!(shown(&body)[1..4], ["Bo [bold]", ", ", "{{2}} [italic]"]);
    assert_eq!(body[3]["placeholder"], json!({"name": "2", "filled": false}));
}
