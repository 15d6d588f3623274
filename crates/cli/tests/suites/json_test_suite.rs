//! The parsing cases of `JSONTestSuite`, each sent as a body. Their names say what they are: `y_` is
//! JSON, `n_` is not, `i_` may be read either way.

use serde_json::Value;

use super::data;
use crate::{
    http::Connection,
    service::{Launch, raw_post},
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
