//! `galley webhook test`: one signed test event to an endpoint, without a running service.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::Output,
    thread::JoinHandle,
};

use serde_json::{Value, json};

use crate::{
    listener::Listener,
    service::{galley, galley_json},
};

const ALLOW_PRIVATE: [&str; 2] = ["--set", "webhooks_allow_private=true"];

/// A store with an account and an endpoint. Returns the endpoint, with its secret.
fn endpoint(dir: &Path) -> Value {
    galley_json(dir, &["account", "create", "shop"]);
    add(dir, "http://127.0.0.1:9/hook", &[])
}

#[track_caller]
fn add(dir: &Path, url: &str, flags: &[&str]) -> Value {
    galley_json(dir, &[&["webhook", "add", "shop", url], flags, &ALLOW_PRIVATE].concat())
}

fn test(dir: &Path, id: &str, flags: &[&str]) -> Output {
    galley(dir, &[&["webhook", "test", "shop", id], flags].concat())
}

/// Runs the test with `--json`. Returns the exit code and the report.
#[track_caller]
fn report(dir: &Path, webhook: &Value) -> (Option<i32>, Value) {
    let id = webhook["id"].as_str().unwrap();
    let output = test(dir, id, &[&ALLOW_PRIVATE[..], &["--json"]].concat());
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|_| panic!("{output:?}")))
}

#[track_caller]
fn move_to(dir: &Path, webhook: &Value, url: &str) {
    let id = webhook["id"].as_str().unwrap();
    let change = ["webhook", "change", "shop", id, "--url", url];
    galley_json(dir, &[&change[..], &ALLOW_PRIVATE].concat());
}

/// A receiver that answers one request with these bytes. Returns its URL.
fn answering(response: &'static str) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4_096];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(response.as_bytes()).unwrap();
    });
    (url, answering)
}

/// Tests an endpoint whose receiver accepts events: the event is of this type, it is signed, and
/// nothing has changed.
#[track_caller]
fn assert_accepted(dir: &Path, webhook: &Value, listener: &Listener, kind: &str) {
    let id = webhook["id"].as_str().unwrap();
    let before = galley_json(dir, &["webhook", "show", "shop", id]);
    let (code, report) = report(dir, webhook);
    assert_eq!((code, &report["result"]), (Some(0), &json!("accepted")), "{report}");
    assert_eq!(report["response_status"], 200);
    assert!(report["latency_ms"].is_u64() && report["fix"].is_null(), "{report}");
    let received = &listener.received(1)[0];
    assert_eq!((&received["type"], &received["verified"]), (&json!(kind), &json!(true)));
    assert!(received["id"].as_str().unwrap().starts_with("test_"), "{received}");

    assert_eq!(galley_json(dir, &["webhook", "show", "shop", id]), before);
    assert_eq!(galley_json(dir, &["webhook", "deliveries", "shop", id]), json!([]));
    assert_eq!(galley(dir, &["events", "shop", "--json"]).stdout, b"");
}

#[test]
fn a_test_event_is_signed_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let webhook = endpoint(dir.path());
    let secret = webhook["secret"].as_str().unwrap();
    let listener = Listener::start(dir.path(), &["--json", "--secret", secret]);
    move_to(dir.path(), &webhook, &listener.url);
    assert_accepted(dir.path(), &webhook, &listener, "webhook.test");
}

#[test]
fn a_test_event_in_meta_format_is_signed_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop", "--rulebook", "whatsapp"]);
    let secrets = ["--verify-token", "a-token", "--secret", "0123456789abcdef0123456789abcdef"];
    let listener = Listener::start(dir.path(), &[&["--json"], &secrets[..]].concat());
    let flags = [&["--format", "whatsapp"], &secrets[..]].concat();
    let webhook = add(dir.path(), &listener.url, &flags);
    assert_accepted(dir.path(), &webhook, &listener, "message_template_status_update");
}

#[test]
fn a_refusal_shows_the_status_the_response_and_a_fix() {
    let dir = tempfile::tempdir().unwrap();
    let webhook = endpoint(dir.path());
    let response = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 17\r\n\r\nwrong signature\u{1b}c";
    let (url, answering) = answering(response);
    move_to(dir.path(), &webhook, &url);
    let output = test(dir.path(), webhook["id"].as_str().unwrap(), &ALLOW_PRIVATE);
    answering.join().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    for expected in ["401", "wrong signature c", "refused", "galley webhook rotate", "latency ms"] {
        assert!(shown.contains(expected), "{expected:?} in {shown}");
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let webhook = endpoint(dir.path());
    let (url, answering) = answering(
        "HTTP/1.1 308 Moved\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
    );
    move_to(dir.path(), &webhook, &url);
    let (code, report) = report(dir.path(), &webhook);
    answering.join().unwrap();
    assert_eq!((code, &report["response_status"]), (Some(1), &json!(308)), "{report}");
    assert!(report["fix"].as_str().unwrap().contains("--url"), "{report}");
}

#[test]
fn a_failure_names_its_cause_and_a_fix() {
    let dir = tempfile::tempdir().unwrap();
    let webhook = endpoint(dir.path());
    let (code, unreachable) = report(dir.path(), &webhook);
    assert_eq!((code, &unreachable["result"]), (Some(1), &json!("failed")), "{unreachable}");
    assert!(unreachable["failure"].as_str().unwrap().starts_with("unreachable: "), "{unreachable}");
    assert!(unreachable["fix"].as_str().unwrap().contains("listens"), "{unreachable}");

    // Without the setting, the guard refuses the address.
    let id = webhook["id"].as_str().unwrap();
    let refused = test(dir.path(), id, &["--json"]);
    assert_eq!(refused.status.code(), Some(1));
    let refused: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert!(refused["failure"].as_str().unwrap().starts_with("refused: "), "{refused}");
    assert!(refused["failure"].as_str().unwrap().contains("WEBHOOKS_ALLOW_PRIVATE"), "{refused}");

    let absent = test(dir.path(), "99", &[]);
    assert_eq!(absent.status.code(), Some(1));
    assert!(String::from_utf8(absent.stderr).unwrap().contains("no webhook 99"));
}
