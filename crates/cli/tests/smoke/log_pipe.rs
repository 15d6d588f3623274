//! Standard error that is not read or already closed: the service works on and shuts down.

use std::{
    io::{Read as _, Write as _},
    path::Path,
    time::Duration,
};

use serde_json::Value;

use crate::{
    http::{Connection, Request, TIMEOUT},
    listener::Listener,
    service::{
        GALLEY, Launch, Service, authorized, collection, command, document, galley, galley_json,
        store, until,
    },
};

/// Enough access log lines to fill a pipe, which holds 64 KiB on Linux.
const FILLING_REQUESTS: usize = 2_000;

/// The value of a metric; 0 if the page does not contain it.
fn metric(service: &Service, series: &str) -> u64 {
    let page = service.send(&Request::get("/metrics")).text();
    let line = page.lines().find_map(|line| line.strip_prefix(series));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

fn lost_lines(service: &Service) -> u64 {
    metric(service, r#"galley_log_lines_dropped_total{reason="write_failed"}"#)
}

/// Writes more access log lines than the pipe holds.
fn fill_pipe(service: &Service) {
    let mut connection = Connection::open(service.address).unwrap();
    for _ in 0..FILLING_REQUESTS {
        connection.send(&Request::get("/healthz").bytes()).unwrap();
        assert_eq!(connection.read_response().unwrap().status, 200);
    }
}

/// Makes every read of a template fail, which the service logs.
fn break_templates(dir: &Path) {
    let store = rusqlite::Connection::open(dir.join("galley.db")).unwrap();
    store.execute_batch("ALTER TABLE template RENAME TO template_away").unwrap();
}

#[test]
fn a_stalled_reader_of_the_log_stops_neither_requests_nor_the_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--set", "access_log=all"];
    let (service, mut unread) = Launch::new(dir.path()).flags(&flags).start_unread();
    fill_pipe(&service);
    break_templates(dir.path());
    // More than the runtime has threads.
    for _ in 0..64 {
        assert_eq!(service.send(&authorized(Request::get(collection()))).status, 500);
    }
    assert_eq!(service.send(&Request::get("/healthz")).status, 200);
    let (status, took) = service.end();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
    let mut log = String::new();
    unread.read_to_string(&mut log).unwrap();
    let lines = log.lines().filter(|line| line.contains(" /healthz ")).count();
    assert!(lines < FILLING_REQUESTS, "the pipe was not full");
}

#[test]
fn a_closed_standard_error_stops_neither_requests_nor_deliveries() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--set", "webhooks_allow_private=true", "--set", "access_log=false"];
    let (service, unread) = Launch::new(dir.path()).flags(&flags).start_unread();
    // The service cannot decrypt this secret, which it logs.
    let mut add = command(GALLEY);
    add.args(["webhook", "add", "default", "http://127.0.0.1:9/", "--store", &store(dir.path())]);
    add.args(["--set", "webhooks_allow_private=true"]).current_dir(dir.path());
    add.env("GALLEY_SECRET_KEY", "a key that the service does not have");
    assert!(add.output().unwrap().status.success());
    let listener = Listener::start(dir.path(), &["--json"]);
    let add = ["webhook", "add", "default", &listener.url, "--set", "webhooks_allow_private=true"];
    galley_json(dir.path(), &add);

    drop(unread);
    assert_eq!(service.create(&document("first", "Hello!")).status, 201);
    until(TIMEOUT, "lost lines are counted", || lost_lines(&service) > 0);
    assert_eq!(service.create(&document("second", "Hello!")).status, 201);
    let names: Vec<_> =
        listener.received(2).iter().map(|it| it["body"]["data"]["name"].clone()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(
        metric(&service, r#"galley_worker_restarts_total{worker="delivery_scheduler"}"#),
        0,
        "a line that cannot be written is no reason to panic"
    );
    let (status, took) = service.end();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn a_first_start_does_not_wait_for_a_stalled_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    let (_unread, mut stdout) = std::io::pipe().unwrap();
    // On Linux this fills the pipe without blocking.
    stdout.write_all(&vec![b'.'; 64 * 1_024]).unwrap();
    let service = Launch::with(command(GALLEY), dir.path()).start_printing_to(stdout);
    assert_eq!(service.send(&Request::get("/healthz")).status, 200);
    let log = service.log.wait_for("an error", |log| log.contains("cannot be shown"));
    assert!(log.contains("galley account create"), "{log}");
    let (status, took) = service.end();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn the_last_message_of_a_failed_start_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("galley.db"), "no database").unwrap();
    for _ in 0..10 {
        let output = galley(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(output.status.code(), Some(1));
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(log.contains("galley: the store"), "{log}");
    }
}

#[test]
fn every_line_of_a_json_log_has_a_level_and_a_message() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).flags(&["--log-format", "json"]).start();
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    service.assert_works("logged");
    break_templates(dir.path());
    let failing = authorized(Request::get(collection())).header("traceparent", traceparent);
    assert_eq!(service.send(&failing).status, 500);
    let log = service.log.wait_for("the failure", |log| log.contains("request failed"));
    let (status, _) = service.end();
    assert_eq!(status.code(), Some(0));
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    for line in &lines {
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
        assert!(line["timestamp"].is_string(), "{line}");
    }
    let failed = lines.iter().find(|line| line["message"] == "request failed").unwrap();
    assert_eq!(failed["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736", "{failed}");
    assert_eq!(failed["span_id"], "00f067aa0ba902b7", "{failed}");
    // The last message of a service that cannot start is one of them, too. A directory of its own: SQLite
    // restores a file from the log of changes that the former service may have left.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("galley.db"), "no database").unwrap();
    let start = ["serve", "--listen", "127.0.0.1:0", "--log-format", "json"];
    let output = galley(dir.path(), &start);
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).expect("a JSON line");
    assert_eq!(last["level"], "ERROR", "{last}");
    assert!(last["message"].as_str().unwrap().starts_with("the store"), "{last}");
}
