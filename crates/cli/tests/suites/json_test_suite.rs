//! The parsing cases of `JSONTestSuite`, each sent as a body, as a name and as a text. Their names
//! say what they are: `y_` is JSON, `n_` is not, `i_` may be read either way.

use serde_json::Value;

use super::data;
use crate::{
    http::Connection,
    service::{Launch, document, get, post, raw_post, tell},
};

/// The cases `i_` that are read as JSON; the others are refused. Fixed here, so that a new parser
/// cannot change what the service takes without anybody noticing.
const TAKEN: [&str; 5] = [
    "i_number_double_huge_neg_exp.json",
    "i_number_real_underflow.json",
    "i_number_too_big_neg_int.json",
    "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json",
];

/// Stands in the package, which keeps the cases as text, for each byte that is not UTF-8.
const REPLACED: char = '\u{fffd}';

/// Name and body of every case, with bytes that are not UTF-8 put back where they were.
fn cases() -> Vec<(String, Vec<u8>)> {
    let script = data::read("json-test-suite/data/parsing.js");
    let (_, list) = script.split_once("export default").unwrap();
    let list: Value = serde_json::from_str(list.trim().trim_end_matches(';')).unwrap();
    let text = |case: &Value, member: &str| case[member].as_str().unwrap().to_owned();
    let list = list.as_array().unwrap().iter();
    list.map(|case| (text(case, "name"), bytes(&text(case, "input")))).collect()
}

fn bytes(text: &str) -> Vec<u8> {
    let mut letter = [0; 4];
    let parts = text.chars().flat_map(|it| match it {
        REPLACED => vec![0xff],
        other => other.encode_utf8(&mut letter).as_bytes().to_vec(),
    });
    parts.collect()
}

#[test]
fn every_case_of_json_test_suite_is_taken_or_refused_as_its_name_says() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let cases = cases();
    assert_eq!(cases.len(), 318);
    let mut wrong = Vec::new();
    for (name, body) in &cases {
        let mut connection = Connection::open(service.address).unwrap();
        connection.send(&raw_post(body.as_slice()).bytes()).unwrap();
        let answer = connection.answer().unwrap();
        let wanted = match name.split_once('_').unwrap().0 {
            "y" => 422,
            "n" => 400,
            _ if TAKEN.contains(&&**name) => 422,
            _ => 400,
        };
        if answer.status == wanted {
            answer.is_problem(
                wanted,
                if wanted == 400 { "malformed-json" } else { "invalid-template" },
            );
        } else {
            wrong.push(format!("{name}: {} instead of {wanted}", answer.status));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    service.is_well("after_all_cases");
}

#[test]
fn every_case_of_json_test_suite_as_a_name_or_a_text_is_kept_as_it_is_or_refused() {
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
        for (document, place) in documents {
            connection.send(&post(&document).bytes()).unwrap();
            let made = connection.answer().unwrap();
            assert!(made.status < 500, "{case} at {place}: {made:?}");
            match made.status {
                201 => {
                    let id = made.json()["id"].as_str().unwrap().to_owned();
                    connection.send(&get(&id).bytes()).unwrap();
                    let kept = connection.answer().unwrap();
                    assert_eq!(kept.status, 200, "{case} at {place}: {kept:?}");
                    let kept = kept.json();
                    assert_eq!(kept.pointer(place), document.pointer(place), "{case}");
                    stored += 1;
                }
                // Cases that differ only in bytes that are not UTF-8 are one name.
                409 => made.is_problem(409, "name-taken"),
                // The longest cases are larger than a request may be.
                413 => {
                    made.is_problem(413, "too-large");
                    connection = Connection::open(service.address).unwrap();
                    refused += 1;
                }
                _ => {
                    made.is_problem(422, "invalid-template");
                    let violations = made.json()["violations"].clone();
                    assert_eq!(violations[0]["pointer"], place, "{case}: {violations}");
                    refused += 1;
                }
            }
        }
    }
    tell(format_args!("JSONTestSuite as names and texts: {stored} stored, {refused} refused"));
    assert!(stored > 400 && refused > 0, "{stored} stored, {refused} refused");
    service.is_well("after_all_names_and_texts");
}
