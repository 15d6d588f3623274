//! `galley lint`: human, JSON and GitHub output, and exit codes.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use crate::service::{GALLEY, command, document};

/// Runs `galley lint` in `dir`, which contains neither settings nor a store. Returns the exit code,
/// standard output and standard error.
fn lint(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = command(GALLEY).current_dir(dir).arg("lint").args(arguments).output().unwrap();
    exit_code_and_output(output)
}

fn exit_code_and_output(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn lint_json(dir: &Path, arguments: &[&str]) -> (i32, Value) {
    let (code, stdout, _) = lint(dir, &[arguments, &["--json"]].concat());
    (code, serde_json::from_str(&stdout).unwrap())
}

fn directory_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn valid(name: &str) -> String {
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

const HUMAN_OUTPUT: &str = r#"error[required]: /allow_category_change: is required
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

error[required]: /components/0/example: is required
 --> small.json:6:5
  |
6 |     { "type": "BODY", "text": "日本 \ud83d\ude00\n{{name}} b\u200b", "colour": 1 }
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: Sample values for the placeholders.

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

1 file: 4 errors, 2 warnings
"#;

#[test]
fn human_output_shows_each_finding_with_its_source_line() {
    let dir = directory_with(&[("small.json", SMALL)]);
    assert_eq!(lint(dir.path(), &["small.json"]), (1, HUMAN_OUTPUT.to_owned(), String::new()));
}

#[test]
fn json_output_is_one_document_with_all_positions() {
    let dir = directory_with(&[("small.json", SMALL), ("good.json", &valid("good"))]);
    let (code, report) = lint_json(dir.path(), &["good.json", "small.json"]);
    assert_eq!(code, 1);
    assert_eq!((&report["violations"], &report["warnings"]), (&json!(4), &json!(2)));
    assert_eq!(
        report["files"][0],
        json!({"file": "good.json", "valid": true, "violations": [], "warnings": []})
    );
    let small = &report["files"][1];
    assert_eq!((&small["file"], &small["valid"]), (&json!("small.json"), &json!(false)));
    assert_eq!(
        small["violations"][3],
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
    assert_eq!(report["unreadable"], json!([]));
}

#[test]
fn github_output_contains_annotations() {
    let dir = directory_with(&[("a,b.json", SMALL)]);
    let (code, stdout, _) = lint(dir.path(), &["a,b.json", "--github"]);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(code, 1);
    assert_eq!(
        lines[..2],
        [
            "::error file=a%2Cb.json,line=1,endLine=8,title=required::/allow_category_change: is required%0AWhether an edit may change the category.",
            "::error file=a%2Cb.json,line=4,endLine=4,col=15,endColumn=27,title=not-a-choice::/category: `MARKETTING` is not one of MARKETING, UTILITY, AUTHENTICATION%0Adid you mean `MARKETING`?",
        ]
    );
    assert!(
        lines[4].starts_with("::warning file=a%2Cb.json,line=6,endLine=6,col=59,endColumn=65,")
    );
    assert_eq!(lines[6..], ["1 file: 4 errors, 2 warnings"]);
    let (code, _, stderr) = lint(dir.path(), &["a,b.json", "--github", "--json"]);
    assert!(code == 2 && stderr.contains("--json"), "{stderr}");
}

#[test]
fn the_exit_code_distinguishes_valid_invalid_and_unreadable_files() {
    let warned = valid("warned").replace("\"name\"", "\"colour\":1,\"name\"");
    let valid_document = valid("good");
    let files =
        [("good.json", &*valid_document), ("warned.json", &*warned), ("invalid.json", "{}")];
    let dir = directory_with(&files);
    fs::create_dir(dir.path().join("empty")).unwrap();
    for (arguments, code, last) in [
        (&["good.json"][..], 0, "1 file: no errors, no warnings"),
        (&["good.json", "good.json"], 0, "1 file: no errors, no warnings"),
        (&["warned.json"], 0, "1 file: no errors, 1 warning"),
        (&["warned.json", "--deny-warnings"], 1, "1 file: no errors, 1 warning (denied)"),
        (&["good.json", "--deny-warnings"], 0, "1 file: no errors, no warnings"),
        (&["good.json", "invalid.json"], 1, "2 files: 5 errors, no warnings"),
        (&["absent.json"], 2, "no files: no errors, no warnings; 1 could not be read"),
        (&["invalid.json", "absent.json"], 2, "1 file: 5 errors, no warnings; 1 could not be read"),
        (&["empty"], 2, "no files: no errors, no warnings; 1 could not be read"),
        (&["good.json", "--rulebook", "v1"], 0, "1 file: no errors, no warnings"),
        (&["good.json", "--rulebook", "v0"], 2, ""),
        (&["good.json", "--rulebook", "whatsapp"], 0, "1 file: no errors, no warnings"),
        (&[], 2, ""),
    ] {
        let (found, stdout, stderr) = lint(dir.path(), arguments);
        assert_eq!(found, code, "{arguments:?}: {stdout}{stderr}");
        assert_eq!(stdout.lines().last().unwrap_or_default(), last, "{arguments:?}");
        assert_eq!(stderr.is_empty(), code < 2, "{arguments:?}: {stderr}");
    }
    let (_, _, stderr) = lint(dir.path(), &["absent.json"]);
    assert!(stderr.starts_with("galley: absent.json: "), "{stderr}");
    assert_eq!(lint(dir.path(), &["empty"]).2, "galley: empty: contains no .json file\n");
    let (_, report) = lint_json(dir.path(), &["absent.json"]);
    assert_eq!(report["unreadable"][0]["file"], "absent.json");
}

#[test]
fn malformed_json_is_reported_at_the_position_of_the_error() {
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
        let (code, stdout, stderr) = lint(dir.path(), &["x.json"]);
        let shown = format!("error[malformed-json]: {shown}");
        assert!(stdout.starts_with(&shown), "{stdout}\nmust begin with\n{shown}");
        assert!(stdout.ends_with("\n1 file: 1 error, no warnings\n"), "{stdout}");
        assert_eq!((code, &*stderr), (1, ""));
    }
}

#[test]
fn a_dash_reads_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = command(GALLEY)
        .current_dir(dir.path())
        .args(["lint", "-", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(SMALL.as_bytes()).unwrap();
    let (code, stdout, _) = exit_code_and_output(child.wait_with_output().unwrap());
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &report["files"][0]["file"]), (1, &json!("<stdin>")));
    assert_eq!(report["files"].as_array().unwrap().len(), 1, "standard input is read only once");
}

#[test]
fn a_directory_is_walked_in_order_without_hidden_and_build_directories() {
    let names = ["b.json", "a/z.json", "a/y.JSON", "c/d/e.json"];
    let skipped = [".git/x.json", "node_modules/x.json", "c/target/x.json", "a/.x.json", "x.txt"];
    let texts: Vec<String> = names.iter().map(|name| valid(name)).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (*name, &**text)).collect();
    files.extend(skipped.iter().map(|name| (*name, "invalid")));
    let dir = directory_with(&files);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(dir.path(), dir.path().join("c/round")).unwrap();
        std::os::unix::fs::symlink("../b.json", dir.path().join("c/again.json")).unwrap();
    }
    let (code, report) = lint_json(dir.path(), &["."]);
    let found: Vec<&str> = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["file"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["a/y.JSON", "a/z.json", "b.json", "c/d/e.json"]);
    assert_eq!((code, &report["violations"]), (0, &json!(0)));
    let (code, report) = lint_json(dir.path(), &["a", ".git"]);
    assert_eq!(
        (code, report["files"].as_array().unwrap().len()),
        (1, 3),
        "a directory given as an argument is not skipped"
    );
}

#[test]
fn a_file_can_contain_a_list_and_duplicate_names_are_errors() {
    let list = format!("[\n{},\n{},\n7]", valid("one"), valid("two"));
    let dir =
        directory_with(&[("a.json", &valid("two")), ("list.json", &list), ("none.json", "[]")]);
    let (code, report) = lint_json(dir.path(), &["list.json", "a.json", "none.json"]);
    assert_eq!(code, 1);
    let wrong = &report["files"][0]["violations"][0];
    assert_eq!((&wrong["pointer"], &wrong["rule"]), (&json!("/2"), &json!("wrong-type")));
    assert_eq!((&wrong["line"], &wrong["column"]), (&json!(4), &json!(1)));
    let duplicate = &report["files"][1]["violations"][0];
    assert_eq!(
        (&duplicate["pointer"], &duplicate["rule"]),
        (&json!("/name"), &json!("name-taken"))
    );
    let message = duplicate["message"].as_str().unwrap();
    assert!(message.contains("another template, at list.json:3:"), "{message}");
    assert_eq!(report["files"][2]["valid"], true);
    let (code, report) = lint_json(dir.path(), &["a.json", "list.json"]);
    assert_eq!((code, &report["files"][1]["violations"][0]["pointer"]), (1, &json!("/1/name")));
}

#[test]
fn templates_of_one_run_are_compared_by_the_rules_of_whatsapp() {
    let template = |name: &str, language: &str, category: &str| {
        json!({"name": name, "language": language, "category": category,
            "components": [{"type": "BODY", "text": "See you soon"}]})
        .to_string()
    };
    let dir = directory_with(&[
        ("a.json", &template("hello", "en_US", "UTILITY")),
        ("b.json", &template("hello", "es", "MARKETING")),
    ]);
    let (code, report) = lint_json(dir.path(), &["a.json", "b.json", "--rulebook", "whatsapp"]);
    assert_eq!((code, &report["files"][0]["valid"]), (1, &json!(true)), "{report}");
    let second = &report["files"][1];
    assert_eq!(second["violations"][0]["rule"], "category-differs", "{report}");
    assert_eq!(second["warnings"][0]["rule"], "same-content", "{report}");
    for finding in [&second["violations"][0], &second["warnings"][0]] {
        assert!(finding["message"].as_str().unwrap().contains("at a.json:1:"), "{finding}");
    }
}

#[test]
fn lint_needs_neither_settings_nor_a_store() {
    let dir = directory_with(&[("galley.toml", "not = [toml"), ("good.json", &valid("good"))]);
    let mut command = command(GALLEY);
    command.current_dir(dir.path()).args(["lint", "good.json"]);
    command.env("GALLEY_ODD", "1").env("GALLEY_LISTEN", "nowhere");
    let (code, stdout, stderr) = exit_code_and_output(command.output().unwrap());
    let expected = (0, "1 file: no errors, no warnings\n".to_owned(), String::new());
    assert_eq!((code, stdout, stderr), expected);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "lint creates no files");
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let text = "{\"name\":\"\\u001b[31m\u{9b}31m\u{202e}\",\"\u{9b}\":\"\u{7f}\"}";
    let dir = directory_with(&[("x.json", text)]);
    for format in [&["x.json"][..], &["x.json", "--github"]] {
        let (_, stdout, _) = lint(dir.path(), format);
        let is_unsafe = |it: char| (it.is_control() && it != '\n') || it == '\u{202e}';
        assert!(!stdout.contains(is_unsafe), "{stdout:?}");
    }
}

#[test]
fn long_lines_spans_and_lists_of_findings_are_shortened() {
    let filler = "\"a\",".repeat(30_000);
    let line = format!("[{{\"x\":[{filler}0]}}]");
    let lines = line.replace(',', ",\n");
    let many_errors = valid("n").replace("All is well.", &"{{x}}".repeat(150));
    let dir = directory_with(&[
        ("line.json", &line),
        ("lines.json", &lines),
        ("many.json", &many_errors),
    ]);
    let help =
        "The name of the template, unique across the whole service. Names are case-sensitive.";
    let (_, stdout, _) = lint(dir.path(), &["line.json"]);
    let shown =
        format!("error[required]: /0/name: is required\n--> line.json:1:2\n = help: {help}\n");
    assert!(stdout.starts_with(&shown), "{}", &stdout[..400]);
    let (_, stdout, _) = lint(dir.path(), &["lines.json"]);
    let shown = "error[required]: /0/name: is required\n --> lines.json:1:2\n  |\n1 | [{\"x\":[\"a\",\n  |  ^\n";
    assert!(stdout.starts_with(shown), "{}", &stdout[..400]);
    let (_, stdout, _) = lint(dir.path(), &["many.json"]);
    let end = "\nnote: many.json: 51 more errors are not shown\n\n1 file: 151 errors, 3 warnings\n";
    assert!(stdout.ends_with(end), "{}", &stdout[stdout.len() - 400..]);
}

#[test]
fn the_examples_have_no_errors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (code, report) = lint_json(&root, &["examples"]);
    assert_eq!((code, &report["violations"]), (0, &json!(0)), "{report}");
}

#[test]
fn the_rulebook_whatsapp_applies_the_rules_of_whatsapp() {
    let dir = directory_with(&[(
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
