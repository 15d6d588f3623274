//! Keys and tokens managed with the command line while the service runs.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    http::{Connection, Request, Response},
    service::{KEY, Launch, PHONE, Service, TOKEN, document, galley, galley_json, until},
};

/// A revocation takes effect within this time.
const REVOCATION_WINDOW: Duration = Duration::from_secs(5);

fn started() -> (TempDir, Service) {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    service.assert_works("at_the_start");
    (dir, service)
}

/// Creates a template with a new name each time.
fn create(service: &Service, key: &str, token: &str) -> Response {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let name = format!("created_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let path = format!("/api/v1.0/{PHONE}/{key}/message_templates");
    let request = Request::new("POST", path)
        .header("Authorization", &format!("Bearer {token}"))
        .body(document(&name, "Hello!").to_string());
    service.send(&request)
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_else(|| panic!("no {member} in {value}"))
}

/// The state of a credential in the list.
fn state(dir: &Path, kind: &str, id: &Value) -> String {
    let list = galley_json(dir, &[kind, "list", "default"]);
    let found = list.as_array().unwrap().iter().find(|it| it["id"] == *id);
    text(found.unwrap_or_else(|| panic!("no {id} in {list}")), "state").to_owned()
}

#[test]
fn a_new_key_works_immediately_and_a_revoked_key_fails_within_five_seconds() {
    let (dir, service) = started();
    let created = galley_json(dir.path(), &["key", "create", "default"]);
    let (id, key) = (&created["id"], text(&created, "key"));
    assert_eq!(create(&service, key, TOKEN).status, 201);
    assert_eq!(state(dir.path(), "key", id), "good");

    galley_json(dir.path(), &["key", "revoke", &id.to_string()]);
    until(REVOCATION_WINDOW, "the key is refused", || create(&service, key, TOKEN).status == 401);
    create(&service, key, TOKEN).is_problem(401, "key-revoked");
    assert_eq!(state(dir.path(), "key", id), "revoked");
    assert_eq!(create(&service, KEY, TOKEN).status, 201, "the other key still works");
}

#[test]
fn a_new_token_works_immediately_and_a_revoked_token_fails_within_five_seconds() {
    let (dir, service) = started();
    let created = galley_json(dir.path(), &["token", "create", "default"]);
    let (id, token) = (&created["id"], text(&created, "token"));
    assert_eq!(create(&service, KEY, token).status, 201);

    galley_json(dir.path(), &["token", "revoke", &id.to_string()]);
    until(REVOCATION_WINDOW, "the token is refused", || create(&service, KEY, token).status == 401);
    let refused = create(&service, KEY, token);
    refused.is_problem(401, "token-revoked");
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    assert_eq!(state(dir.path(), "token", id), "revoked");

    // The token stays revoked after a restart.
    drop(service);
    let service = Launch::new(dir.path()).start();
    create(&service, KEY, token).is_problem(401, "token-revoked");
}

#[test]
fn a_rotated_credential_stays_valid_for_the_chosen_overlap() {
    let (dir, service) = started();
    for kind in ["key", "token"] {
        let call = |secret: &str| match kind {
            "key" => create(&service, secret, TOKEN),
            _ => create(&service, KEY, secret),
        };
        let first = galley_json(dir.path(), &[kind, "create", "default"]);
        let second = galley_json(dir.path(), &[kind, "rotate", &first["id"].to_string()]);
        let old = second["id"].to_string();
        let third = galley_json(dir.path(), &[kind, "rotate", &old, "--overlap", "0s"]);

        assert_eq!(call(text(&third, kind)).status, 201, "the newest {kind} works immediately");
        until(REVOCATION_WINDOW, "a credential without overlap is refused", || {
            call(text(&second, kind)).status == 401
        });
        call(text(&second, kind)).is_problem(401, &format!("{kind}-expired"));
        assert_eq!(call(text(&first, kind)).status, 201, "the default overlap is a day");
        assert_eq!(state(dir.path(), kind, &second["id"]), "expired");
    }
}

/// The error of a command that is refused.
#[track_caller]
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = galley(dir, arguments);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_rotated_credential_keeps_its_remaining_lifetime_and_the_output_says_when_the_old_one_ends() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    for kind in ["key", "token"] {
        let created = galley_json(dir.path(), &[kind, "create", "shop", "--expires-in", "1h"]);
        let list = galley_json(dir.path(), &[kind, "list", "shop"]);
        let end = list.as_array().unwrap().last().unwrap()["expires_at"].clone();
        assert!(end.is_string(), "{list}");

        // The overlap of a day does not prolong the old one.
        let rotated = galley_json(dir.path(), &[kind, "rotate", &created["id"].to_string()]);
        assert_eq!((&rotated["expires_at"], &rotated["old_ends_at"]), (&end, &end), "{rotated}");
        assert_eq!(rotated["old_id"], created["id"]);
        let list = galley_json(dir.path(), &[kind, "list", "shop"]);
        assert_eq!(list.as_array().unwrap().last().unwrap()["expires_at"], end, "{list}");

        let flags = ["--overlap", "5m", "--expires-in", "90d"];
        let id = rotated["id"].to_string();
        let chosen = galley_json(dir.path(), &[&[kind, "rotate", &id], &flags[..]].concat());
        assert!(text(&chosen, "expires_at") > text(&rotated, "expires_at"), "{chosen}");
        assert!(text(&chosen, "old_ends_at") < text(&rotated, "old_ends_at"), "{chosen}");

        let output = galley(dir.path(), &[kind, "rotate", &chosen["id"].to_string()]);
        let shown = String::from_utf8(output.stdout).unwrap();
        let ends = format!("The old {kind} {} ends at 2", chosen["id"]);
        let expires = format!("The new {kind} expires at {}", text(&chosen, "expires_at"));
        assert!(shown.contains(&ends) && shown.contains(&expires), "{shown}");
    }
}

#[test]
fn an_expired_or_revoked_credential_cannot_be_rotated() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    let create = ["token", "create", "shop", "--scopes", "read", "--expires-in"];
    let expired = galley_json(dir.path(), &[&create[..], &["0s"]].concat())["id"].to_string();
    let revoked = galley_json(dir.path(), &[&create[..], &["1h"]].concat())["id"].to_string();
    galley_json(dir.path(), &["token", "revoke", &revoked]);
    let before = galley_json(dir.path(), &["token", "list", "shop"]);
    for (id, expected) in [(&expired, "expired at 2"), (&revoked, "was revoked at 2")] {
        let stderr = refused(dir.path(), &["token", "rotate", id, "--expires-in", "90d"]);
        assert!(stderr.contains(expected), "{stderr}");
        assert!(stderr.contains("`galley token create "), "{stderr}");
        assert!(stderr.contains(" --scopes read`"), "{stderr}");
    }
    assert_eq!(galley_json(dir.path(), &["token", "list", "shop"]), before);
}

#[test]
fn a_credential_is_valid_until_it_expires() {
    let (dir, service) = started();
    let valid = galley_json(dir.path(), &["token", "create", "default", "--expires-in", "90d"]);
    assert_eq!(create(&service, KEY, text(&valid, "token")).status, 201);
    for kind in ["key", "token"] {
        let expired = galley_json(dir.path(), &[kind, "create", "default", "--expires-in", "0s"]);
        let response = match kind {
            "key" => create(&service, text(&expired, kind), TOKEN),
            _ => create(&service, KEY, text(&expired, kind)),
        };
        response.is_problem(401, &format!("{kind}-expired"));
    }
}

#[test]
fn a_token_is_limited_to_its_scopes() {
    let (dir, service) = started();
    let created = create(&service, KEY, TOKEN).json();
    let reader = galley_json(dir.path(), &["token", "create", "default", "--scopes", "read"]);
    let token = text(&reader, "token");
    let path = format!("/api/v1.0/{PHONE}/{KEY}/message_templates/{}", text(&created, "id"));
    let read = Request::get(path).header("Authorization", &format!("Bearer {token}"));
    assert_eq!(service.send(&read).status, 200);
    let refused = create(&service, KEY, token);
    refused.is_problem(403, "scope-missing");
    assert!(text(&refused.json(), "detail").contains("write"));

    let output = galley(dir.path(), &["token", "create", "default", "--scopes", "raed"]);
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("read"));
}

#[test]
fn lists_show_credentials_without_secrets() {
    let (dir, _service) = started();
    let created = galley_json(dir.path(), &["token", "create", "default"]);
    for arguments in [
        &["key", "list", "default"][..],
        &["token", "list", "default"],
        &["account", "show", "default"],
        &["token", "list", "default", "--json"],
    ] {
        let output = galley(dir.path(), arguments);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && !shown.is_empty(), "{arguments:?}");
        for secret in [KEY, TOKEN, text(&created, "token")] {
            assert!(!shown.contains(secret), "{arguments:?}: {shown}");
        }
    }
}

#[test]
fn a_revoked_token_ends_its_long_poll_within_five_seconds() {
    let (dir, service) = started();
    let created = galley_json(dir.path(), &["token", "create", "default"]);
    let (id, token) = (&created["id"], text(&created, "token"));
    let path = format!("/api/v1.0/{PHONE}/{KEY}/events?after=latest&wait=25");
    let poll = Request::get(path).header("Authorization", &format!("Bearer {token}"));
    let mut waiting = Connection::open(service.address).unwrap();
    // The response to a first request shows that the connection is served.
    let empty = Request::get(format!("/api/v1.0/{PHONE}/{KEY}/events?after=latest"));
    let empty = empty.header("Authorization", &format!("Bearer {token}"));
    waiting.send(&empty.bytes()).unwrap();
    assert_eq!(waiting.read_response().unwrap().status, 200);
    waiting.send(&poll.bytes()).unwrap();
    galley_json(dir.path(), &["token", "revoke", &id.to_string()]);
    let revoked = Instant::now();
    waiting.read_response().unwrap().is_problem(401, "token-revoked");
    assert!(revoked.elapsed() < REVOCATION_WINDOW, "{:?}", revoked.elapsed());
}

#[test]
fn credentials_have_names_that_lists_and_rotations_keep() {
    let (dir, _service) = started();
    for kind in ["key", "token"] {
        let created = galley_json(dir.path(), &[kind, "create", "default", "--name", "CI"]);
        galley_json(dir.path(), &[kind, "rotate", &created["id"].to_string()]);
        let list = galley_json(dir.path(), &[kind, "list", "default"]);
        let names: Vec<&str> = list.as_array().unwrap().iter().map(|it| text(it, "name")).collect();
        assert_eq!(names, [&*format!("first {kind}"), "CI", "CI"]);
        assert!(list[0]["created_at"].is_string(), "{list}");
        let refused = galley(dir.path(), &[kind, "create", "default", "--name", " CI"]);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert!(message.contains("--name begins or ends with whitespace"), "{message}");
    }
    let token = galley_json(dir.path(), &["token", "create", "default"]);
    let list = galley_json(dir.path(), &["token", "list", "default"]);
    let created = list.as_array().unwrap().iter().find(|it| it["id"] == token["id"]).unwrap();
    assert_eq!(created["scopes"], "read,write,review,webhooks", "others only by name");
    let scopes = ["--scopes", "credentials,audit"];
    galley_json(dir.path(), &[&["token", "create", "default"], &scopes[..]].concat());
}

#[test]
fn no_new_name_looks_like_a_built_in_author_or_turns_the_text_around() {
    let (dir, _service) = started();
    let token = galley_json(dir.path(), &["token", "create", "default", "--name", "Ada"]);
    let id = token["id"].to_string();
    let built_in = "looks like `operator`, which Galley itself shows as an author";
    let directional = "contains the directional character U+202E";
    for (name, expected) in [
        ("Operator", built_in),
        ("the\u{a0}oper\u{200b}ator", built_in),
        ("\u{ff4f}perator", built_in),
        ("a\u{202e}b", directional),
        ("a\u{1b}[2Jb", "contains the control character U+001B"),
        ("\u{200b}", "has no visible character"),
    ] {
        for arguments in [
            &["token", "create", "default", "--name", name][..],
            &["key", "create", "default", "--name", name],
            &["token", "rotate", &id, "--name", name],
            &["console", "default", "--name", name],
            &["account", "create", name],
            &["account", "rename", "default", name],
        ] {
            let refused = galley(dir.path(), arguments);
            let message = String::from_utf8(refused.stderr).unwrap();
            assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {message}");
            assert!(message.contains(expected), "{arguments:?}: {message}");
        }
    }
    let accounts = galley_json(dir.path(), &["account", "list"]);
    assert_eq!(accounts.as_array().unwrap().len(), 1, "{accounts}");
    assert_eq!(text(&accounts[0], "name"), "default");
}
