//! `galley convert`: output files, reports and exit codes.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use crate::service::{GALLEY, command};

const TO_WHATSAPP: [&str; 4] = ["--from", "v1", "--to", "whatsapp"];

/// Runs `galley convert` in `dir`, which contains neither settings nor a store. Returns the exit
/// code, standard output and standard error.
fn convert(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = command(GALLEY);
    exit_code_and_output(
        command.current_dir(dir).arg("convert").args(TO_WHATSAPP).args(arguments).output().unwrap(),
    )
}

fn exit_code_and_output(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
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

fn document(name: &str) -> String {
    format!(
        r#"{{"name":"{name}","language":"en_US","category":"UTILITY","allow_category_change":true,"components":[{{"type":"BODY","text":"Hi"}}]}}"#
    )
}

const SALE: &str = r#"{
  "name": "sale",
  "language": "de_DE",
  "category": "MARKETING",
  "allow_category_change": true,
  "components": [
    { "type": "HEADER", "format": "MEDIA", "example": { "media_url": "https://shop.example/a.jpg" } },
    { "type": "BODY", "text": "Alles ist heute billiger." }
  ]
}
"#;

const REPORT: &str = r#"changed[language-changed]: /language: becomes `de`: WhatsApp does not have `de_DE`
 --> sale.json:3:15
  |
3 |   "language": "de_DE",
  |               ^^^^^^^
  |
  = help: use another of WhatsApp's codes if this is not the language of the texts

incomplete[sample-upload]: /components/0/example/media_url: is a URL; WhatsApp requires the handle of an uploaded sample
 --> sale.json:7:70
  |
7 |     { "type": "HEADER", "format": "MEDIA", "example": { "media_url": "https://shop.example/a.jpg" } },
  |                                                                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: upload the file and replace the URL in `header_handle` by its handle

1 file: 1 incomplete, 1 changed
"#;

#[test]
fn the_document_is_written_to_stdout_and_the_report_to_stderr() {
    let dir = directory_with(&[("sale.json", SALE)]);
    let (code, stdout, stderr) = convert(dir.path(), &["sale.json"]);
    assert_eq!((code, &*stderr), (1, REPORT));
    assert!(stdout.starts_with("{\n  \"name\": \"sale\",\n  \"language\": \"de\","), "{stdout}");
    let stdout: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(stdout["components"][0]["format"], "IMAGE");
    assert_eq!(
        stdout["components"][0]["example"],
        json!({"header_handle": ["https://shop.example/a.jpg"]})
    );
}

#[test]
fn a_complete_conversion_can_be_reversed_through_a_pipe() {
    let dir = directory_with(&[("a.json", &document("a"))]);
    let (code, there, stderr) = convert(dir.path(), &["a.json"]);
    assert_eq!((code, &*stderr), (0, "1 file: complete\n"));
    let mut back = command(GALLEY)
        .args(["convert", "--from", "whatsapp", "--to", "v1", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    back.stdin.take().unwrap().write_all(there.as_bytes()).unwrap();
    let (code, back, _) = exit_code_and_output(back.wait_with_output().unwrap());
    assert_eq!((code, back), (0, there));
}

#[test]
fn several_files_need_an_output_directory_and_sources_are_not_overwritten() {
    let dir = directory_with(&[
        ("t/a.json", &document("a")),
        ("t/b/c.json", &format!("[{},{}]", document("c"), document("d"))),
    ]);
    let (code, stdout, stderr) = convert(dir.path(), &["t"]);
    assert_eq!((code, &*stdout), (2, ""));
    assert!(stderr.contains("--output-dir"), "{stderr}");
    let (code, ..) = convert(dir.path(), &["t", "--output-dir", "out"]);
    assert_eq!(code, 0);
    let read = |path: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(dir.path().join(path)).unwrap()).unwrap()
    };
    assert_eq!(read("out/t/a.json")["name"], "a");
    assert_eq!(read("out/t/b/c.json")[1]["name"], "d");

    for arguments in [["t", "--output-dir", "."], ["t/a.json", "-o", "t/a.json"]] {
        let (code, _, stderr) = convert(dir.path(), &arguments);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("is a source"), "{stderr}");
        assert_eq!(fs::read_to_string(dir.path().join("t/a.json")).unwrap(), document("a"));
    }
    let (code, stdout, _) = convert(dir.path(), &["t/a.json", "-o", "one.json"]);
    assert_eq!((code, &*stdout), (0, ""));
    assert_eq!(read("one.json")["name"], "a");
}

#[test]
fn results_overwrite_neither_each_other_nor_a_hard_linked_source() {
    let dir = directory_with(&[
        ("t/a.json", &document("above")),
        ("sub/t/a.json", &document("below")),
        ("sub/s.json", &document("source")),
    ]);
    let sub = dir.path().join("sub");
    let (code, _, stderr) = convert(&sub, &["--output-dir", "out", "t/a.json", "../t/a.json"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("or this run already wrote it"), "{stderr}");
    assert!(stderr.ends_with("2 files: 1 not written\n"), "{stderr}");
    let written = fs::read_to_string(sub.join("out/t/a.json")).unwrap();
    assert!(written.contains("below"), "{written}");

    fs::hard_link(sub.join("s.json"), sub.join("hard.json")).unwrap();
    let (code, _, stderr) = convert(&sub, &["-o", "hard.json", "s.json"]);
    assert_eq!(code, 2, "{stderr}");
    assert_eq!(fs::read_to_string(sub.join("s.json")).unwrap(), document("source"));
    // No temporary files remain.
    let mut left: Vec<_> = fs::read_dir(&sub).unwrap().map(|it| it.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["hard.json", "out", "s.json", "t"]);
}

#[test]
fn a_result_that_cannot_be_written_is_counted_as_not_written() {
    let dir = directory_with(&[("a.json", &document("a")), ("file", "")]);
    let (code, _, stderr) = convert(dir.path(), &["a.json", "-o", "file/a.json"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.ends_with("1 file: 1 not written\n"), "{stderr}");
}

#[test]
fn duplicate_result_names_and_unknown_fields_are_reported() {
    let misspelt = document("c").replace("\"Hi\"", "\"Hi\", \"exmaple\": {}");
    let dir = directory_with(&[
        ("a.json", &document("Sale!")),
        ("b.json", &document("sale")),
        ("c.json", &misspelt),
    ]);
    let (code, _, stderr) =
        convert(dir.path(), &["a.json", "b.json", "c.json", "--output-dir", "out"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains(
            "incomplete[name-taken]: /name: is already the name of another template, at a.json:1:9"
        ),
        "{stderr}"
    );
    assert!(stderr.contains("lost[field-lost]: /components/0/exmaple"), "{stderr}");
    assert!(stderr.ends_with("3 files: 1 lost, 1 incomplete, 1 changed\n"), "{stderr}");
}

#[test]
fn a_document_that_cannot_be_converted_is_reported_and_not_written() {
    let dir = directory_with(&[
        ("bad.json", r#"{"name": "x"}"#),
        ("not.json", "["),
        ("a.json", &document("a")),
    ]);
    let (code, stdout, stderr) = convert(dir.path(), &["bad.json"]);
    assert_eq!((code, &*stdout), (2, ""));
    assert!(stderr.contains("error[required]: /language"), "{stderr}");
    assert!(stderr.ends_with("1 file: 1 not converted\n"), "{stderr}");
    for (arguments, expected) in [
        (&["not.json"][..], "malformed-json"),
        (&["missing.json"], "No such file"),
        (&["a.json", "--to", "v1"], "cannot be used multiple times"),
    ] {
        let (code, stdout, stderr) = convert(dir.path(), arguments);
        assert_eq!((code, &*stdout), (2, ""), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    let same = ["convert", "--from", "v1", "--to", "v1", "a.json"];
    let output = command(GALLEY).current_dir(dir.path()).args(same).output().unwrap();
    let (code, _, stderr) = exit_code_and_output(output);
    assert_eq!((code, &*stderr), (2, "galley: `--from` and `--to` are both v1\n"));
}

#[test]
fn json_output_contains_documents_and_reports() {
    let dir = directory_with(&[("sale.json", SALE), ("bad.json", r#"{"name": "x"}"#)]);
    let (code, output, _) = convert(dir.path(), &["sale.json", "bad.json", "--json"]);
    assert_eq!(code, 2);
    let output: Value = serde_json::from_str(&output).unwrap();
    let [sale, bad] = &output["files"].as_array().unwrap()[..] else { panic!("{output}") };
    assert_eq!(sale["document"]["language"], "de");
    assert_eq!(
        sale["report"][0],
        json!({
            "level": "changed", "id": "language-changed", "pointer": "/language",
            "message": "becomes `de`: WhatsApp does not have `de_DE`",
            "hint": "use another of WhatsApp's codes if this is not the language of the texts",
            "line": 3, "column": 15, "end_line": 3, "end_column": 22,
        })
    );
    assert!(bad.get("document").is_none() && bad["violations"][0]["rule"] == "required", "{bad}");
}
