//! The Big List of Naughty Strings, sent as names, as texts and as bodies.

use serde_json::{Value, json};

use super::data;
use crate::{
    http::{Connection, Response},
    service::{Launch, Service, document, get, post, print_line, raw_post},
};

fn strings() -> Vec<String> {
    let list: Vec<String> = serde_json::from_str(&data::read("blns/resources/blns.json")).unwrap();
    assert!(list.len() > 450, "{} strings", list.len());
    list
}

fn send(service: &Service, document: &Value) -> Response {
    let mut connection = Connection::open(service.address).unwrap();
    connection.send(&post(document).bytes()).unwrap();
    connection.read_response().unwrap()
}

/// Reads a created template.
fn read(service: &Service, created: &Response) -> Value {
    let response = service.send(&get(created.json()["id"].as_str().unwrap()));
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

#[test]
fn naughty_strings_as_names_are_stored_unchanged_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let (mut stored, mut refused) = (0, 0);
    for string in strings() {
        let created = send(&service, &document(&string, "Hello!"));
        match created.status {
            201 => {
                assert_eq!(read(&service, &created)["name"], *string);
                stored += 1;
            }
            409 => created.is_problem(409, "name-taken"),
            _ => {
                created.is_problem(422, "invalid-template");
                let violations = created.json()["violations"].clone();
                assert_eq!(violations[0]["pointer"], "/name", "{string:?}: {violations}");
                refused += 1;
            }
        }
    }
    print_line(format_args!("naughty strings as names: {stored} stored, {refused} refused"));
    assert!(stored > 400 && refused > 0, "{stored} stored, {refused} refused");
}

#[test]
fn naughty_strings_as_texts_are_stored_unchanged_or_refused() {
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
        for (variant, components) in components.into_iter().enumerate() {
            let mut document = document(&format!("naughty_{number}_{variant}"), "");
            document["components"] = components;
            let created = send(&service, &document);
            if created.status == 201 {
                assert_eq!(read(&service, &created)["components"], document["components"]);
                stored += 1;
            } else {
                created.is_problem(422, "invalid-template");
                refused += 1;
            }
        }
    }
    print_line(format_args!("naughty strings as texts: {stored} stored, {refused} refused"));
    assert!(stored > 2_000 && refused > 0, "{stored} stored, {refused} refused");
}

#[test]
fn naughty_strings_as_bodies_are_refused_and_the_service_stays_healthy() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let (mut json, mut other) = (0, 0);
    for string in strings() {
        let response = service.send(&raw_post(string.as_bytes()));
        // Some are JSON, such as numbers; none is a template.
        if serde_json::from_str::<Value>(&string).is_ok() {
            response.is_problem(422, "invalid-template");
            json += 1;
        } else {
            response.is_problem(400, "malformed-json");
            other += 1;
        }
    }
    print_line(format_args!("naughty strings as bodies: {json} are JSON, {other} are not"));
    assert!(json > 0 && other > 400, "{json} are JSON, {other} are not");
    service.assert_works("after_all_bodies");
}
