//! The orderly end: readiness first, then the running requests, then exit code 0.

use std::time::{Duration, Instant};

use crate::{
    http::{Connection, Request},
    service::{Launch, document, get, post, until},
};

#[test]
fn a_service_that_is_asked_to_end_does_so_within_ten_seconds_with_exit_code_0() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    // A connection that stands idle must not hold it up.
    let mut idle = Connection::open(service.address).unwrap();
    idle.send(&Request::get("/healthz").bytes()).unwrap();
    assert_eq!(idle.answer().unwrap().status, 200);
    let (status, took) = service.end();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(idle.until_closed().unwrap(), b"");
}

#[test]
fn connections_that_never_finish_do_not_keep_it_from_ending() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--set", "drain_delay=100ms", "--set", "drain_timeout=500ms"];
    let service = Launch::new(dir.path()).flags(&flags).start();
    let mut half_head = Connection::open(service.address).unwrap();
    half_head.send(b"POST /api/v1.0/").unwrap();
    let mut half_body = Connection::open(service.address).unwrap();
    let head = post(&document("", "")).header("Expect", "100-continue");
    half_body.send(&head.head("Content-Length: 500\r\n")).unwrap();
    assert_eq!(half_body.answer().unwrap().status, 100);
    let (status, took) = service.end();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn a_lock_that_another_process_holds_is_waited_for_once_and_does_not_keep_it_from_ending() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    service.is_well("before_the_lock");
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
    let asked = Instant::now();
    for connection in &mut waiting {
        assert_eq!(connection.answer().unwrap().status, 503);
    }
    // Two waits of five seconds at most: the batch that was under way, and all the others.
    assert!(asked.elapsed() < Duration::from_secs(14), "{:?}", asked.elapsed());
    let mut last = Connection::open(service.address).unwrap();
    last.send(&post(&document("the_last", "text")).bytes()).unwrap();
    let (status, took) = service.end();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn an_interrupt_ends_it_in_order_too_and_sooner() {
    let dir = tempfile::tempdir().unwrap();
    let mut service = Launch::new(dir.path())
        .flags(&["--set", "drain_delay=9s"])
        .flags(&["--set", "drain_timeout=1s"])
        .start();
    service.is_well("before_the_interrupt");
    let asked = Instant::now();
    service.signal("INT");
    assert_eq!(service.wait().code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(9), "it waited for a balancer");
}

#[test]
fn readiness_is_refused_at_once_and_a_running_request_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let mut service = Launch::new(dir.path())
        .flags(&["--set", "drain_delay=3s", "--set", "drain_timeout=6s"])
        .start();
    // The service says "100 Continue" when it begins to read the body: then it is at work.
    let body = document("in_flight", "Sent in two halves.").to_string();
    let (first, second) = body.split_at(body.len() / 2);
    let head = post(&document("", "")).header("Expect", "100-continue");
    let head = head.head(&format!("Content-Length: {}\r\n", body.len()));
    let mut running = Connection::open(service.address).unwrap();
    running.send(&head).unwrap();
    assert_eq!(running.answer().unwrap().status, 100);
    running.send(first.as_bytes()).unwrap();

    let asked = Instant::now();
    service.signal("TERM");
    until(Duration::from_secs(1), "readiness is refused", || {
        service.send(&Request::get("/readyz")).status == 503
    });
    service.send(&Request::get("/readyz")).is_problem(503, "not-ready");
    assert_eq!(service.send(&Request::get("/healthz")).status, 200);

    running.send(second.as_bytes()).unwrap();
    let made = running.answer().unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(service.wait().code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());

    let service = Launch::new(dir.path()).start();
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(service.send(&get(&id)).json()["name"], "in_flight");
}
