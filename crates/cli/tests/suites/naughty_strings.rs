//! The Big List of Naughty Strings, sent as names, as texts and as bodies.

use serde_json::{Value, json};

use super::data;
use crate::{
    http::{Answer, Connection},
    service::{Launch, Service, document, get, post, raw_post, tell},
};

fn strings() -> Vec<String> {
    let list: Vec<String> = serde_json::from_str(&data::read("blns/resources/blns.json")).unwrap();
    assert!(list.len() > 450, "{} strings", list.len());
    list
}

fn send(service: &Service, document: &Value) -> Answer {
    let mut connection = Connection::open(service.address).unwrap();
    connection.send(&post(document).bytes()).unwrap();
    connection.answer().unwrap()
}

/// What is kept under the id of an answer.
fn kept(service: &Service, made: &Answer) -> Value {
    let answer = service.send(&get(made.json()["id"].as_str().unwrap()));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn naughty_strings_as_names_are_kept_as_they_are_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let (mut stored, mut refused) = (0, 0);
    for string in strings() {
        let made = send(&service, &document(&string, "Hello!"));
        match made.status {
            201 => {
                assert_eq!(kept(&service, &made)["name"], *string);
                stored += 1;
            }
            409 => made.is_problem(409, "name-taken"),
            _ => {
                made.is_problem(422, "invalid-template");
                let violations = made.json()["violations"].clone();
                assert_eq!(violations[0]["pointer"], "/name", "{string:?}: {violations}");
                refused += 1;
            }
        }
    }
    tell(format_args!("naughty strings as names: {stored} stored, {refused} refused"));
    assert!(stored > 400 && refused > 0, "{stored} stored, {refused} refused");
}

#[test]
fn naughty_strings_as_texts_come_back_character_by_character() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let (mut stored, mut refused) = (0, 0);
    for (number, string) in strings().into_iter().enumerate() {
        let components = [
            json!([{"type": "BODY", "text": string}]),
            json!([{"type": "BODY", "text": "x"}, {"type": "FOOTER", "text": string}]),
            json!([{"type": "HEADER", "format": "TEXT", "text": string}, {"type": "BODY", "text": "x"}]),
            json!([
                {"type": "BODY", "text": "x"},
                {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": string}]},
            ]),
            json!([{"type": "BODY", "text": "{{1}}", "example": {"body_text": [[string]]}}]),
        ];
        for (place, components) in components.into_iter().enumerate() {
            let mut document = document(&format!("naughty_{number}_{place}"), "");
            document["components"] = components;
            let made = send(&service, &document);
            if made.status == 201 {
                assert_eq!(kept(&service, &made)["components"], document["components"]);
                stored += 1;
            } else {
                made.is_problem(422, "invalid-template");
                refused += 1;
            }
        }
    }
    tell(format_args!("naughty strings as texts: {stored} stored, {refused} refused"));
    assert!(stored > 2_000 && refused > 0, "{stored} stored, {refused} refused");
}

#[test]
fn naughty_strings_as_bodies_are_refused_and_hurt_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let (mut json, mut other) = (0, 0);
    for string in strings() {
        let answer = service.send(&raw_post(string.as_bytes()));
        // Some are JSON, such as numbers; none is a template.
        if serde_json::from_str::<Value>(&string).is_ok() {
            answer.is_problem(422, "invalid-template");
            json += 1;
        } else {
            answer.is_problem(400, "malformed-json");
            other += 1;
        }
    }
    tell(format_args!("naughty strings as bodies: {json} are JSON, {other} are not"));
    assert!(json > 0 && other > 400, "{json} are JSON, {other} are not");
    service.is_well("after_all_bodies");
}
