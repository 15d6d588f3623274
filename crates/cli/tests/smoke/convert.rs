//! `galley convert`: what is written where, what is told, and the exit codes.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use crate::service::{GALLEY, command};

const TO_WHATSAPP: [&str; 4] = ["--from", "v1", "--to", "whatsapp"];

/// Runs `galley convert` in `dir`, which holds neither settings nor a store.
fn convert(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = command(GALLEY);
    heard(
        command.current_dir(dir).arg("convert").args(TO_WHATSAPP).args(arguments).output().unwrap(),
    )
}

fn heard(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
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

const TOLD: &str = r#"changed[language-changed]: /language: becomes `de`: WhatsApp does not have `de_DE`
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
fn the_document_goes_out_and_the_report_is_told_beside_it() {
    let dir = with(&[("sale.json", SALE)]);
    let (code, written, told) = convert(dir.path(), &["sale.json"]);
    assert_eq!((code, &*told), (1, TOLD));
    assert!(written.starts_with("{\n  \"name\": \"sale\",\n  \"language\": \"de\","), "{written}");
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["components"][0]["format"], "IMAGE");
    assert_eq!(
        written["components"][0]["example"],
        json!({"header_handle": ["https://shop.example/a.jpg"]})
    );
}

#[test]
fn what_converts_whole_comes_back_through_a_pipe() {
    let dir = with(&[("a.json", &document("a"))]);
    let (code, there, told) = convert(dir.path(), &["a.json"]);
    assert_eq!((code, &*told), (0, "1 file: converted whole\n"));
    let mut back = command(GALLEY)
        .args(["convert", "--from", "whatsapp", "--to", "v1", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    back.stdin.take().unwrap().write_all(there.as_bytes()).unwrap();
    let (code, back, _) = heard(back.wait_with_output().unwrap());
    assert_eq!((code, back), (0, there));
}

#[test]
fn several_files_go_to_a_directory_and_a_source_stays_what_it_is() {
    let dir = with(&[
        ("t/a.json", &document("a")),
        ("t/b/c.json", &format!("[{},{}]", document("c"), document("d"))),
    ]);
    let (code, written, told) = convert(dir.path(), &["t"]);
    assert_eq!((code, &*written), (2, ""));
    assert!(told.contains("--output-dir"), "{told}");
    let (code, ..) = convert(dir.path(), &["t", "--output-dir", "out"]);
    assert_eq!(code, 0);
    let read = |path: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(dir.path().join(path)).unwrap()).unwrap()
    };
    assert_eq!(read("out/t/a.json")["name"], "a");
    assert_eq!(read("out/t/b/c.json")[1]["name"], "d");

    for arguments in [["t", "--output-dir", "."], ["t/a.json", "-o", "t/a.json"]] {
        let (code, _, told) = convert(dir.path(), &arguments);
        assert_eq!(code, 2, "{told}");
        assert!(told.contains("is a source"), "{told}");
        assert_eq!(fs::read_to_string(dir.path().join("t/a.json")).unwrap(), document("a"));
    }
    let (code, written, _) = convert(dir.path(), &["t/a.json", "-o", "one.json"]);
    assert_eq!((code, &*written), (0, ""));
    assert_eq!(read("one.json")["name"], "a");
}

#[test]
fn no_result_is_written_over_another_and_no_source_by_another_name() {
    let dir = with(&[
        ("t/a.json", &document("above")),
        ("sub/t/a.json", &document("below")),
        ("sub/s.json", &document("source")),
    ]);
    let sub = dir.path().join("sub");
    let (code, _, told) = convert(&sub, &["--output-dir", "out", "t/a.json", "../t/a.json"]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("was written just now"), "{told}");
    assert!(told.ends_with("2 files: 1 not written\n"), "{told}");
    let written = fs::read_to_string(sub.join("out/t/a.json")).unwrap();
    assert!(written.contains("below"), "{written}");

    fs::hard_link(sub.join("s.json"), sub.join("hard.json")).unwrap();
    let (code, _, told) = convert(&sub, &["-o", "hard.json", "s.json"]);
    assert_eq!(code, 2, "{told}");
    assert_eq!(fs::read_to_string(sub.join("s.json")).unwrap(), document("source"));
    // Nothing is left lying about.
    let mut left: Vec<_> = fs::read_dir(&sub).unwrap().map(|it| it.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["hard.json", "out", "s.json", "t"]);
}

#[test]
fn a_result_that_cannot_be_written_is_not_called_whole() {
    let dir = with(&[("a.json", &document("a")), ("file", "")]);
    let (code, _, told) = convert(dir.path(), &["a.json", "-o", "file/a.json"]);
    assert_eq!(code, 2, "{told}");
    assert!(told.ends_with("1 file: 1 not written\n"), "{told}");
}

#[test]
fn results_that_would_have_one_name_and_fields_that_nobody_knows_are_told() {
    let misspelt = document("c").replace("\"Hi\"", "\"Hi\", \"exmaple\": {}");
    let dir = with(&[
        ("a.json", &document("Sale!")),
        ("b.json", &document("sale")),
        ("c.json", &misspelt),
    ]);
    let (code, _, told) =
        convert(dir.path(), &["a.json", "b.json", "c.json", "--output-dir", "out"]);
    assert_eq!(code, 1, "{told}");
    assert!(
        told.contains(
            "incomplete[name-taken]: /name: is the name of another template, at a.json:1:9"
        ),
        "{told}"
    );
    assert!(told.contains("lost[field-lost]: /components/0/exmaple"), "{told}");
    assert!(told.ends_with("3 files: 1 lost, 1 incomplete, 1 changed\n"), "{told}");
}

#[test]
fn what_cannot_be_converted_is_told_and_not_written() {
    let dir =
        with(&[("bad.json", r#"{"name": "x"}"#), ("not.json", "["), ("a.json", &document("a"))]);
    let (code, written, told) = convert(dir.path(), &["bad.json"]);
    assert_eq!((code, &*written), (2, ""));
    assert!(told.contains("error[required]: /language"), "{told}");
    assert!(told.ends_with("1 file: 1 not converted\n"), "{told}");
    for (arguments, why) in [
        (&["not.json"][..], "malformed-json"),
        (&["missing.json"], "No such file"),
        (&["a.json", "--to", "v1"], "cannot be used multiple times"),
    ] {
        let (code, written, told) = convert(dir.path(), arguments);
        assert_eq!((code, &*written), (2, ""), "{told}");
        assert!(told.contains(why), "{told}");
    }
    let same = ["convert", "--from", "v1", "--to", "v1", "a.json"];
    let output = command(GALLEY).current_dir(dir.path()).args(same).output().unwrap();
    let (code, _, told) = heard(output);
    assert_eq!((code, &*told), (2, "galley: `--from` and `--to` are both v1\n"));
}

#[test]
fn programs_get_documents_and_reports() {
    let dir = with(&[("sale.json", SALE), ("bad.json", r#"{"name": "x"}"#)]);
    let (code, answer, _) = convert(dir.path(), &["sale.json", "bad.json", "--json"]);
    assert_eq!(code, 2);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let [sale, bad] = &answer["files"].as_array().unwrap()[..] else { panic!("{answer}") };
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
