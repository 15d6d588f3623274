//! Graceful shutdown: readiness fails first, running requests finish, then exit code 0.

use std::time::{Duration, Instant};

use crate::{
    http::{Connection, Request},
    service::{GALLEY, Launch, command, document, galley_json, get, post, until},
};

#[test]
fn sigterm_stops_the_service_within_ten_seconds_with_exit_code_0() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    // An idle connection must not delay the shutdown.
    let mut idle = Connection::open(service.address).unwrap();
    idle.send(&Request::get("/healthz").bytes()).unwrap();
    assert_eq!(idle.read_response().unwrap().status, 200);
    let (status, took) = service.end();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(idle.read_until_closed().unwrap(), b"");
}

#[test]
fn unfinished_requests_do_not_prevent_the_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--set", "drain_delay=100ms", "--set", "drain_timeout=500ms"];
    let service = Launch::new(dir.path()).flags(&flags).start();
    let mut half_head = Connection::open(service.address).unwrap();
    half_head.send(b"POST /api/v1.0/").unwrap();
    let mut half_body = Connection::open(service.address).unwrap();
    let head = post(&document("", "")).header("Expect", "100-continue");
    half_body.send(&head.head("Content-Length: 500\r\n")).unwrap();
    assert_eq!(half_body.read_response().unwrap().status, 100);
    let (status, took) = service.end();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn a_store_locked_by_another_process_returns_503_and_does_not_prevent_the_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    service.assert_works("before_the_lock");
    let other = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting: Vec<_> = (0..20)
        .map(|number| {
            let mut connection = Connection::open(service.address).unwrap();
            let create = post(&document(&format!("waiting_{number}"), "text"));
            connection.send(&create.bytes()).unwrap();
            connection
        })
        .collect();
    let started = Instant::now();
    for connection in &mut waiting {
        assert_eq!(connection.read_response().unwrap().status, 503);
    }
    // At most two lock waits of five seconds: the first batch, and a batch with all other creates.
    assert!(started.elapsed() < Duration::from_secs(14), "{:?}", started.elapsed());
    let mut last = Connection::open(service.address).unwrap();
    last.send(&post(&document("last", "text")).bytes()).unwrap();
    let (status, took) = service.end();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn sigint_stops_the_service_gracefully_without_the_drain_delay() {
    let dir = tempfile::tempdir().unwrap();
    let mut service = Launch::new(dir.path())
        .flags(&["--set", "drain_delay=9s"])
        .flags(&["--set", "drain_timeout=1s"])
        .start();
    service.assert_works("before_the_interrupt");
    let started = Instant::now();
    service.signal("INT");
    assert_eq!(service.wait().code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(9), "the service waited for the drain delay");
}

#[test]
fn readiness_fails_immediately_and_a_running_request_finishes() {
    let dir = tempfile::tempdir().unwrap();
    let mut service = Launch::new(dir.path())
        .flags(&["--set", "drain_delay=3s", "--set", "drain_timeout=6s"])
        .start();
    // The service sends "100 Continue" when it starts to read the body, so the request is running.
    let body = document("in_flight", "Sent in two halves.").to_string();
    let (first, second) = body.split_at(body.len() / 2);
    let head = post(&document("", "")).header("Expect", "100-continue");
    let head = head.head(&format!("Content-Length: {}\r\n", body.len()));
    let mut running = Connection::open(service.address).unwrap();
    running.send(&head).unwrap();
    assert_eq!(running.read_response().unwrap().status, 100);
    running.send(first.as_bytes()).unwrap();

    let started = Instant::now();
    service.signal("TERM");
    until(Duration::from_secs(1), "readiness fails", || {
        service.send(&Request::get("/readyz")).status == 503
    });
    service.send(&Request::get("/readyz")).is_problem(503, "not-ready");
    assert_eq!(service.send(&Request::get("/healthz")).status, 200);

    running.send(second.as_bytes()).unwrap();
    let created = running.read_response().unwrap();
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(service.wait().code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());

    let service = Launch::new(dir.path()).start();
    let id = created.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(service.send(&get(&id)).json()["name"], "in_flight");
}

#[test]
fn sighup_drains_like_sigterm_and_a_second_one_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // Below `nohup`, these tests ignore the signal, and so would the service.
    let mut galley = command("env");
    galley.args(["--default-signal=HUP", GALLEY]);
    let mut service = Launch::with(galley, dir.path())
        .flags(&["--set", "drain_delay=5s", "--set", "drain_timeout=1s"])
        .start();
    service.signal("HUP");
    until(Duration::from_secs(4), "readiness fails", || {
        service.send(&Request::get("/readyz")).status == 503
    });
    service.signal("HUP");
    assert_eq!(service.send(&Request::get("/healthz")).status, 200);
    assert_eq!(service.wait().code(), Some(0));
}

#[test]
fn a_stop_records_the_last_use_of_credentials() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).canaries().start();
    let tokens = || galley_json(dir.path(), &["token", "list", "default"]);
    assert!(tokens()[0]["last_used_at"].is_null());
    service.assert_works("before_the_stop");
    assert_eq!(service.end().0.code(), Some(0));
    assert!(tokens()[0]["last_used_at"].is_string(), "{}", tokens());
}

#[test]
#[cfg(target_os = "linux")]
fn a_service_under_nohup_ignores_sighup() {
    let dir = tempfile::tempdir().unwrap();
    let mut shell = command("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", GALLEY]);
    let service = Launch::with(shell, dir.path()).canaries().start();
    service.signal("HUP");
    service.assert_works("after_the_hangup");
    assert_eq!(service.send(&Request::get("/readyz")).status, 200);
    assert_eq!(service.end().0.code(), Some(0));
}
