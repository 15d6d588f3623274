//! `galley lint`: what people, programs and GitHub are shown, and the exit codes.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use crate::service::{GALLEY, command, document};

/// Runs `galley lint` in `dir`, which holds neither settings nor a store.
fn lint(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = command(GALLEY).current_dir(dir).arg("lint").args(arguments).output().unwrap();
    heard(output)
}

fn heard(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn lint_json(dir: &Path, arguments: &[&str]) -> (i32, Value) {
    let (code, printed, _) = lint(dir, &[arguments, &["--json"]].concat());
    (code, serde_json::from_str(&printed).unwrap())
}

fn with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn good(name: &str) -> String {
    document(name, "All is well.").to_string()
}

const SMALL: &str = r#"{
  "name": "welcome",
  "language": "en_US",
  "category": "MARKETTING",
  "components": [
    { "type": "BODY", "text": "日本 \ud83d\ude00\n{{name}} b\u200b", "colour": 1 }
  ]
}
"#;

const SHOWN: &str = r#"error[required]: /allow_category_change: is required
 --> small.json:1:1
  |
1 | / {
2 | |   "name": "welcome",
3 | |   "language": "en_US",
4 | |   "category": "MARKETTING",
... |
8 | | }
  | |_^
  |
  = help: Whether an edit may change the category.

error[not-a-choice]: /category: `MARKETTING` is not one of MARKETING, UTILITY, AUTHENTICATION
 --> small.json:4:15
  |
4 |   "category": "MARKETTING",
  |               ^^^^^^^^^^^^
  |
  = help: did you mean `MARKETING`?

error[placeholder-syntax]: /components/0/text: `{{name}}` is not a placeholder
 --> small.json:6:49
  |
6 |     { "type": "BODY", "text": "日本 \ud83d\ude00\n{{name}} b\u200b", "colour": 1 }
  |                                                   ^^^^^^^^
  |
  = help: number the placeholders: `{{1}}`, `{{2}}` … up to `{{999}}`

warning[invisible-character]: /components/0/text: contains the zero-width space U+200B
 --> small.json:6:59
  |
6 |     { "type": "BODY", "text": "日本 \ud83d\ude00\n{{name}} b\u200b", "colour": 1 }
  |                                                             ^^^^^^
  |
  = help: remove it, unless it is intended

warning[unknown-field]: /components/0/colour: is not a field of a BODY component: neither checked nor stored
 --> small.json:6:68
  |
6 |     { "type": "BODY", "text": "日本 \ud83d\ude00\n{{name}} b\u200b", "colour": 1 }
  |                                                                      ^^^^^^^^
  |
  = help: leave it out; the fields are `type`, `text`, `example`

1 file: 3 faults, 2 warnings
"#;

#[test]
fn people_see_each_finding_in_its_line() {
    let dir = with(&[("small.json", SMALL)]);
    assert_eq!(lint(dir.path(), &["small.json"]), (1, SHOWN.to_owned(), String::new()));
}

#[test]
fn programs_get_one_document_with_all_places() {
    let dir = with(&[("small.json", SMALL), ("good.json", &good("good"))]);
    let (code, answer) = lint_json(dir.path(), &["good.json", "small.json"]);
    assert_eq!(code, 1);
    assert_eq!((&answer["violations"], &answer["warnings"]), (&json!(3), &json!(2)));
    assert_eq!(
        answer["files"][0],
        json!({"file": "good.json", "valid": true, "violations": [], "warnings": []})
    );
    let small = &answer["files"][1];
    assert_eq!((&small["file"], &small["valid"]), (&json!("small.json"), &json!(false)));
    assert_eq!(
        small["violations"][2],
        json!({
            "pointer": "/components/0/text", "rule": "placeholder-syntax",
            "message": "`{{name}}` is not a placeholder",
            "hint": "number the placeholders: `{{1}}`, `{{2}}` … up to `{{999}}`",
            "span": {"start": 5, "end": 13},
            "line": 6, "column": 49, "end_line": 6, "end_column": 57,
        })
    );
    let missing = &small["violations"][0];
    assert_eq!((&missing["line"], &missing["end_line"]), (&json!(1), &json!(8)));
    assert_eq!(small["warnings"][1]["rule"], "unknown-field");
    assert_eq!(answer["unreadable"], json!([]));
}

#[test]
fn github_gets_annotations() {
    let dir = with(&[("a,b.json", SMALL)]);
    let (code, printed, _) = lint(dir.path(), &["a,b.json", "--github"]);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(code, 1);
    assert_eq!(
        lines[..2],
        [
            "::error file=a%2Cb.json,line=1,endLine=8,title=required::/allow_category_change: is required%0AWhether an edit may change the category.",
            "::error file=a%2Cb.json,line=4,endLine=4,col=15,endColumn=27,title=not-a-choice::/category: `MARKETTING` is not one of MARKETING, UTILITY, AUTHENTICATION%0Adid you mean `MARKETING`?",
        ]
    );
    assert!(
        lines[3].starts_with("::warning file=a%2Cb.json,line=6,endLine=6,col=59,endColumn=65,")
    );
    assert_eq!(lines[5..], ["1 file: 3 faults, 2 warnings"]);
    let (code, _, complaint) = lint(dir.path(), &["a,b.json", "--github", "--json"]);
    assert!(code == 2 && complaint.contains("--json"), "{complaint}");
}

#[test]
fn the_exit_code_tells_good_faulty_and_unreadable_apart() {
    let warned = good("warned").replace("\"name\"", "\"colour\":1,\"name\"");
    let good = good("good");
    let files = [("good.json", &*good), ("warned.json", &*warned), ("faulty.json", "{}")];
    let dir = with(&files);
    fs::create_dir(dir.path().join("empty")).unwrap();
    for (arguments, code, last) in [
        (&["good.json"][..], 0, "1 file: no faults, no warnings"),
        (&["good.json", "good.json"], 0, "1 file: no faults, no warnings"),
        (&["warned.json"], 0, "1 file: no faults, 1 warning"),
        (&["warned.json", "--deny-warnings"], 1, "1 file: no faults, 1 warning (denied)"),
        (&["good.json", "--deny-warnings"], 0, "1 file: no faults, no warnings"),
        (&["good.json", "faulty.json"], 1, "2 files: 5 faults, no warnings"),
        (&["absent.json"], 2, "no files: no faults, no warnings; 1 could not be read"),
        (&["faulty.json", "absent.json"], 2, "1 file: 5 faults, no warnings; 1 could not be read"),
        (&["empty"], 2, "no files: no faults, no warnings; 1 could not be read"),
        (&["good.json", "--rulebook", "v1"], 0, "1 file: no faults, no warnings"),
        (&["good.json", "--rulebook", "v0"], 2, ""),
        (&["good.json", "--rulebook", "whatsapp"], 0, "1 file: no faults, no warnings"),
        (&[], 2, ""),
    ] {
        let (found, printed, complaint) = lint(dir.path(), arguments);
        assert_eq!(found, code, "{arguments:?}: {printed}{complaint}");
        assert_eq!(printed.lines().last().unwrap_or_default(), last, "{arguments:?}");
        assert_eq!(complaint.is_empty(), code < 2, "{arguments:?}: {complaint}");
    }
    let (_, _, complaint) = lint(dir.path(), &["absent.json"]);
    assert!(complaint.starts_with("galley: absent.json: "), "{complaint}");
    assert_eq!(lint(dir.path(), &["empty"]).2, "galley: empty: holds no file that ends in .json\n");
    let (_, answer) = lint_json(dir.path(), &["absent.json"]);
    assert_eq!(answer["unreadable"][0]["file"], "absent.json");
}

#[test]
fn text_that_is_not_json_is_shown_where_it_stops_being_so() {
    for (text, shown) in [
        (
            &b"{\n  \"a\": [1,]\n}\n"[..],
            "trailing comma\n --> x.json:2:11\n  |\n2 |   \"a\": [1,]\n  |           ^",
        ),
        (b"{\n  \"a\": 1\n\n", "EOF while parsing an object\n --> x.json:2:9\n"),
        (b"", "EOF while parsing a value\n --> x.json:1:1\n"),
        (b"{\"a\": \"caf\xe9\"}", "not UTF-8\n --> x.json:1:11\n"),
        (
            b"\xef\xbb\xbf{}",
            "expected value\n --> x.json:1:1\n  |\n1 | <U+FEFF>{}\n  | ^^^^^^^^\n  |\n  = help: save the file without a byte order mark",
        ),
        (&[b'['; 40], "nested deeper than 32 levels\n --> x.json:1:33\n"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x.json"), text).unwrap();
        let (code, printed, complaint) = lint(dir.path(), &["x.json"]);
        let shown = format!("error[malformed-json]: {shown}");
        assert!(printed.starts_with(&shown), "{printed}\nshould begin with\n{shown}");
        assert!(printed.ends_with("\n1 file: 1 fault, no warnings\n"), "{printed}");
        assert_eq!((code, &*complaint), (1, ""));
    }
}

#[test]
fn standard_input_is_a_file_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = command(GALLEY)
        .current_dir(dir.path())
        .args(["lint", "-", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(SMALL.as_bytes()).unwrap();
    let (code, printed, _) = heard(child.wait_with_output().unwrap());
    let answer: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &answer["files"][0]["file"]), (1, &json!("<stdin>")));
    assert_eq!(answer["files"].as_array().unwrap().len(), 1, "it can be read only once");
}

#[test]
fn a_directory_is_walked_in_order_and_only_where_templates_are() {
    let names = ["b.json", "a/z.json", "a/y.JSON", "c/d/e.json"];
    let passed = [".git/x.json", "node_modules/x.json", "c/target/x.json", "a/.x.json", "x.txt"];
    let texts: Vec<String> = names.iter().map(|name| good(name)).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (*name, &**text)).collect();
    files.extend(passed.iter().map(|name| (*name, "faulty")));
    let dir = with(&files);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(dir.path(), dir.path().join("c/round")).unwrap();
        std::os::unix::fs::symlink("../b.json", dir.path().join("c/again.json")).unwrap();
    }
    let (code, answer) = lint_json(dir.path(), &["."]);
    let found: Vec<&str> = answer["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["file"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["a/y.JSON", "a/z.json", "b.json", "c/d/e.json"]);
    assert_eq!((code, &answer["violations"]), (0, &json!(0)));
    let (code, answer) = lint_json(dir.path(), &["a", ".git"]);
    assert_eq!((code, answer["files"].as_array().unwrap().len()), (1, 3), "what is named is read");
}

#[test]
fn a_file_may_hold_a_list_and_no_two_templates_one_name() {
    let list = format!("[\n{},\n{},\n7]", good("one"), good("two"));
    let dir = with(&[("a.json", &good("two")), ("list.json", &list), ("none.json", "[]")]);
    let (code, answer) = lint_json(dir.path(), &["list.json", "a.json", "none.json"]);
    assert_eq!(code, 1);
    let wrong = &answer["files"][0]["violations"][0];
    assert_eq!((&wrong["pointer"], &wrong["rule"]), (&json!("/2"), &json!("wrong-type")));
    assert_eq!((&wrong["line"], &wrong["column"]), (&json!(4), &json!(1)));
    let taken = &answer["files"][1]["violations"][0];
    assert_eq!((&taken["pointer"], &taken["rule"]), (&json!("/name"), &json!("name-taken")));
    let message = taken["message"].as_str().unwrap();
    assert!(message.contains("another template, at list.json:3:"), "{message}");
    assert_eq!(answer["files"][2]["valid"], true);
    let (code, answer) = lint_json(dir.path(), &["a.json", "list.json"]);
    assert_eq!((code, &answer["files"][1]["violations"][0]["pointer"]), (1, &json!("/1/name")));
}

#[test]
fn templates_of_one_run_are_compared_as_whatsapp_compares_them() {
    let template = |name: &str, language: &str, category: &str| {
        json!({"name": name, "language": language, "category": category,
            "components": [{"type": "BODY", "text": "See you soon"}]})
        .to_string()
    };
    let dir = with(&[
        ("a.json", &template("hello", "en_US", "UTILITY")),
        ("b.json", &template("hello", "es", "MARKETING")),
    ]);
    let (code, answer) = lint_json(dir.path(), &["a.json", "b.json", "--rulebook", "whatsapp"]);
    assert_eq!((code, &answer["files"][0]["valid"]), (1, &json!(true)), "{answer}");
    let second = &answer["files"][1];
    assert_eq!(second["violations"][0]["rule"], "category-differs", "{answer}");
    assert_eq!(second["warnings"][0]["rule"], "same-content", "{answer}");
    for place in [&second["violations"][0], &second["warnings"][0]] {
        assert!(place["message"].as_str().unwrap().contains("at a.json:1:"), "{place}");
    }
}

#[test]
fn neither_settings_nor_a_store_are_asked_for() {
    let dir = with(&[("galley.toml", "not = [toml"), ("good.json", &good("good"))]);
    let mut command = command(GALLEY);
    command.current_dir(dir.path()).args(["lint", "good.json"]);
    command.env("GALLEY_ODD", "1").env("GALLEY_LISTEN", "nowhere");
    let (code, printed, complaint) = heard(command.output().unwrap());
    let expected = (0, "1 file: no faults, no warnings\n".to_owned(), String::new());
    assert_eq!((code, printed, complaint), expected);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left behind");
}

#[test]
fn what_a_file_holds_cannot_write_to_the_terminal() {
    let text = "{\"name\":\"\\u001b[31m\u{9b}31m\u{202e}\",\"\u{9b}\":\"\u{7f}\"}";
    let dir = with(&[("x.json", text)]);
    for format in [&["x.json"][..], &["x.json", "--github"]] {
        let (_, printed, _) = lint(dir.path(), format);
        let wild = |it: char| (it.is_control() && it != '\n') || it == '\u{202e}';
        assert!(!printed.contains(wild), "{printed:?}");
    }
}

#[test]
fn of_what_is_too_much_to_read_only_the_place_is_shown() {
    let filler = "\"a\",".repeat(30_000);
    let line = format!("[{{\"x\":[{filler}0]}}]");
    let lines = line.replace(',', ",\n");
    let doubtful = good("n").replace("All is well.", &"{{x}}".repeat(150));
    let dir = with(&[("line.json", &line), ("lines.json", &lines), ("many.json", &doubtful)]);
    let help =
        "The name of the template, unique across the whole service. Names are case-sensitive.";
    let (_, printed, _) = lint(dir.path(), &["line.json"]);
    let shown =
        format!("error[required]: /0/name: is required\n--> line.json:1:2\n = help: {help}\n");
    assert!(printed.starts_with(&shown), "{}", &printed[..400]);
    let (_, printed, _) = lint(dir.path(), &["lines.json"]);
    let shown = "error[required]: /0/name: is required\n --> lines.json:1:2\n  |\n1 | [{\"x\":[\"a\",\n  |  ^\n";
    assert!(printed.starts_with(shown), "{}", &printed[..400]);
    let (_, printed, _) = lint(dir.path(), &["many.json"]);
    let end = "\nnote: many.json: 50 more faults are not shown\n\n1 file: 150 faults, 3 warnings\n";
    assert!(printed.ends_with(end), "{}", &printed[printed.len() - 400..]);
}

#[test]
fn the_examples_have_no_faults() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (code, answer) = lint_json(&root, &["examples"]);
    assert_eq!((code, &answer["violations"]), (0, &json!(0)), "{answer}");
}

#[test]
fn a_file_is_checked_by_whatsapps_own_rules_when_that_is_wanted() {
    let dir = with(&[(
        "meta.json",
        r#"{"name":"Spring-Sale","language":"en-US","category":"marketing","components":[
            {"type":"header","format":"image","example":{"header_handle":["4::aW"]}},
            {"type":"body","text":"{{1}} waits for you","example":{"body_text":[["Ada"]]}},
            {"type":"buttons","buttons":[
                {"type":"quick_reply","text":"Yes"},
                {"type":"url","text":"Shop","url":"https://wa.me/15550001111"},
                {"type":"quick_reply","text":"No"}]}]}"#,
    )]);
    let (code, report) = lint_json(dir.path(), &["meta.json", "--rulebook", "whatsapp"]);
    let rules: Vec<&str> = report["files"][0]["violations"]
        .as_array()
        .unwrap_or_else(|| panic!("{report}"))
        .iter()
        .map(|it| it["rule"].as_str().unwrap())
        .collect();
    assert_eq!(code, 1);
    for rule in [
        "name-form",
        "language-unsupported",
        "placeholder-at-start",
        "whatsapp-link",
        "quick-replies-apart",
    ] {
        assert!(rules.contains(&rule), "{rule} in {rules:?}");
    }
}
