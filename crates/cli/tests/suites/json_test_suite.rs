//! The parsing cases of `JSONTestSuite`, each sent as a body, as a name and as a text. Their names
//! give the expected result: `y_` is valid JSON, `n_` is not, `i_` depends on the implementation.

use serde_json::Value;

use super::data;
use crate::{
    http::Connection,
    service::{Launch, document, get, post, print_line, raw_post},
};

/// The `i_` cases that the service accepts; it refuses the others. The list is fixed, so that this
/// test fails if a new parser accepts other input.
const ACCEPTED: [&str; 5] = [
    "i_number_double_huge_neg_exp.json",
    "i_number_real_underflow.json",
    "i_number_too_big_neg_int.json",
    "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json",
];

/// Replaces each byte that is not UTF-8 in the package, which contains the cases as text.
const REPLACEMENT: char = '\u{fffd}';

/// Name and body of every case, with bytes that are not UTF-8 restored.
fn cases() -> Vec<(String, Vec<u8>)> {
    let script = data::read("json-test-suite/data/parsing.js");
    let (_, list) = script.split_once("export default").unwrap();
    let list: Value = serde_json::from_str(list.trim().trim_end_matches(';')).unwrap();
    let text = |case: &Value, member: &str| case[member].as_str().unwrap().to_owned();
    let list = list.as_array().unwrap().iter();
    list.map(|case| (text(case, "name"), bytes(&text(case, "input")))).collect()
}

fn bytes(text: &str) -> Vec<u8> {
    let mut buffer = [0; 4];
    let parts = text.chars().flat_map(|it| match it {
        REPLACEMENT => vec![0xff],
        other => other.encode_utf8(&mut buffer).as_bytes().to_vec(),
    });
    parts.collect()
}

#[test]
fn every_case_of_json_test_suite_is_accepted_or_refused_as_its_name_requires() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let cases = cases();
    assert_eq!(cases.len(), 318);
    let mut wrong = Vec::new();
    for (name, body) in &cases {
        let mut connection = Connection::open(service.address).unwrap();
        connection.send(&raw_post(body.as_slice()).bytes()).unwrap();
        let response = connection.read_response().unwrap();
        let wanted = match name.split_once('_').unwrap().0 {
            "y" => 422,
            "n" => 400,
            _ if ACCEPTED.contains(&&**name) => 422,
            _ => 400,
        };
        if response.status == wanted {
            response.is_problem(
                wanted,
                if wanted == 400 { "malformed-json" } else { "invalid-template" },
            );
        } else {
            wrong.push(format!("{name}: {} instead of {wanted}", response.status));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    service.assert_works("after_all_cases");
}

#[test]
fn every_case_of_json_test_suite_as_a_name_or_a_text_is_stored_unchanged_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let mut connection = Connection::open(service.address).unwrap();
    let (mut stored, mut refused) = (0, 0);
    for (number, (case, body)) in cases().into_iter().enumerate() {
        let text = String::from_utf8_lossy(&body);
        let documents = [
            (document(&text, "Hello!"), "/name"),
            (document(&format!("case_{number}"), &text), "/components/0/text"),
        ];
        for (document, pointer) in documents {
            connection.send(&post(&document).bytes()).unwrap();
            let created = connection.read_response().unwrap();
            assert!(created.status < 500, "{case} at {pointer}: {created:?}");
            match created.status {
                201 => {
                    let id = created.json()["id"].as_str().unwrap().to_owned();
                    connection.send(&get(&id).bytes()).unwrap();
                    let stored_template = connection.read_response().unwrap();
                    assert_eq!(
                        stored_template.status, 200,
                        "{case} at {pointer}: {stored_template:?}"
                    );
                    let stored_template = stored_template.json();
                    assert_eq!(
                        stored_template.pointer(pointer),
                        document.pointer(pointer),
                        "{case}"
                    );
                    stored += 1;
                }
                // Cases that differ only in bytes that are not UTF-8 become the same name.
                409 => created.is_problem(409, "name-taken"),
                // The longest cases exceed the size limit of a request.
                413 => {
                    created.is_problem(413, "too-large");
                    connection = Connection::open(service.address).unwrap();
                    refused += 1;
                }
                _ => {
                    created.is_problem(422, "invalid-template");
                    let violations = created.json()["violations"].clone();
                    assert_eq!(violations[0]["pointer"], pointer, "{case}: {violations}");
                    refused += 1;
                }
            }
        }
    }
    print_line(format_args!(
        "JSONTestSuite as names and texts: {stored} stored, {refused} refused"
    ));
    assert!(stored > 400 && refused > 0, "{stored} stored, {refused} refused");
    service.assert_works("after_all_names_and_texts");
}
