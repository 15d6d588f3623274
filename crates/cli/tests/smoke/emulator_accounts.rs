//! Emulator accounts and their clocks, managed with the command line.

use std::{path::Path, process::Output};

use serde_json::{Value, json};

use crate::{
    http::Request,
    service::{Launch, galley, galley_json},
};

const CREATE: [&str; 6] = ["account", "create", "test", "--rulebook", "whatsapp", "--emulator"];

/// Asserts that a command is refused, and returns what it says.
#[track_caller]
fn refused(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn an_emulator_account_is_created_listed_and_keeps_its_kind() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (flags, code, expected) in [
        (&["account", "create", "a", "--emulator"][..], 1, "add --rulebook whatsapp"),
        (&["account", "create", "a", "--rulebook", "whatsapp", "--faithful"], 2, "--emulator"),
        (&[&CREATE[..], &["--review", "auto"]].concat(), 2, "--review"),
    ] {
        let said = refused(&galley(dir, flags), code);
        assert!(said.contains(expected), "{expected} in {said}");
    }
    galley_json(dir, &CREATE);
    galley_json(
        dir,
        &["account", "create", "faithful", "--rulebook", "whatsapp", "--emulator", "--faithful"],
    );
    galley_json(dir, &["account", "create", "shop", "--rulebook", "whatsapp"]);
    let listed = galley_json(dir, &["account", "list"]);
    let kinds = |name: &str| -> Vec<Value> {
        listed.as_array().unwrap().iter().map(|it| it[name].clone()).collect()
    };
    assert_eq!(kinds("emulator"), [json!("standard"), json!("faithful"), Value::Null]);
    assert_eq!(kinds("review"), ["scripted", "scripted", "auto"]);
    assert_eq!(galley_json(dir, &["account", "show", "faithful"])["emulator"], "faithful");
    for (name, limit) in [("test", Value::Null), ("faithful", json!(6_000)), ("shop", Value::Null)]
    {
        let shown = galley_json(dir, &["account", "show", name]);
        assert_eq!(shown["template_limit"], limit, "{name}");
    }
    let unlimited = galley_json(dir, &["account", "limit", "faithful", "none"]);
    assert_eq!(unlimited["template_limit"], Value::Null);
    let tokens = galley_json(dir, &["token", "list", "test"]);
    assert_eq!(tokens[0]["scopes"], "read,write,review,webhooks,emulator");

    let said = refused(&galley(dir, &["account", "change", "test", "--review", "manual"]), 1);
    assert!(said.contains("a script reviews the templates of an emulator account"), "{said}");
    let said = refused(&galley(dir, &["account", "change", "shop", "--review", "scripted"]), 1);
    assert!(said.contains("--review must be auto or manual"), "{said}");
}

/// Sends a request as the account that `account create` printed.
fn request(account: &Value, method: &'static str, rest: &str, body: &Value) -> Request {
    let member = |name: &str| account[name].as_str().unwrap();
    let path = format!("/api/v1.0/{}/{}{rest}", member("phone_number_id"), member("key"));
    let request = Request::new(method, path);
    let request = request.header("Authorization", &format!("Bearer {}", member("token")));
    if body.is_null() { request } else { request.body(body.to_string()) }
}

fn pending() -> Value {
    json!({
        "name": "order_pending_2h", "language": "en_US", "category": "UTILITY",
        "components": [{"type": "BODY", "text": "Good morning to all of you"}],
    })
}

#[test]
fn a_service_serves_emulator_accounts_only_with_the_setting() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let account = galley_json(dir, &CREATE);
    let list = request(&account, "GET", "/message_templates", &Value::Null);
    let service = Launch::new(dir).start();
    service.send(&list).is_problem(403, "emulator-off");
    drop(service);

    let service = Launch::new(dir).variable("GALLEY_EMULATOR", "true").start();
    assert_eq!(service.send(&list).status, 200);
    let create = request(&account, "POST", "/message_templates", &pending());
    let created = service.send(&create).json();
    assert_eq!(created["status"], "PENDING", "{created}");
    // The command works on the store directly, also while the service runs.
    let moved = galley_json(dir, &["clock", "test", "--advance", "2h"]);
    assert_eq!((&moved["applied"], &moved["follows"]), (&json!(1), &json!(false)), "{moved}");
    let path = format!("/message_templates/{}", created["id"].as_str().unwrap());
    let shown = service.send(&request(&account, "GET", &path, &Value::Null)).json();
    assert_eq!(shown["status"], "APPROVED", "{shown}");
    let clock = service.send(&request(&account, "GET", "/emulator/clock", &Value::Null)).json();
    assert_eq!(clock["now"], moved["now"], "{clock}");
}

fn clock(dir: &Path, flags: &[&str]) -> Value {
    galley_json(dir, &[&["clock", "test"], flags].concat())
}

#[test]
fn the_clock_is_shown_moved_and_never_set_back() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    galley_json(dir, &CREATE);
    galley_json(dir, &["account", "create", "shop"]);
    let shown = clock(dir, &[]);
    assert_eq!((&shown["follows"], shown.get("applied")), (&json!(true), None), "{shown}");
    let moved = clock(dir, &["--to", "2035-01-01T00:00:00Z"]);
    let expected = json!({"now": "2035-01-01T00:00:00.000Z", "follows": false, "applied": 0});
    assert_eq!(moved, expected);
    assert_eq!(clock(dir, &["--advance", "1d"])["now"], "2035-01-02T00:00:00.000Z");
    assert_eq!(clock(dir, &["--follow"])["follows"], true);

    for (flags, code, expected) in [
        (&["test", "--to", "2035-01-01T00:00:00Z"][..], 1, "never moves back"),
        (&["test", "--to", "2100-01-01T00:00:00Z"], 1, "ten years after the present"),
        (&["test", "--to", "tomorrow"], 1, "--to: "),
        (&["test", "--advance", "soon"], 1, "--advance: `soon` is not a duration; write it like"),
        (&["test", "--advance", "1h", "--follow"], 2, "cannot be used with"),
        (&["shop"], 1, "the account \"shop\" is not an emulator"),
        (&["shop", "--follow"], 1, "the account \"shop\" is not an emulator"),
    ] {
        let said = refused(&galley(dir, &[&["clock"], flags].concat()), code);
        assert!(said.contains(expected), "{expected} in {said}");
    }
}
