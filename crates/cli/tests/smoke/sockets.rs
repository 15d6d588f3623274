//! Silent, idle and busy connections at the limit, and the listener for health checks.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    http::{Connection, Request, TIMEOUT},
    service::{KEY, Launch, PHONE, Service, authorized, document, until},
};

fn started(settings: &[&str]) -> (TempDir, Service) {
    let dir = tempfile::tempdir().unwrap();
    let flags: Vec<&str> = settings.iter().flat_map(|it| ["--set", it]).collect();
    let service = Launch::new(dir.path()).flags(&flags).start();
    (dir, service)
}

/// A request that waits for events.
fn long_poll() -> Request {
    authorized(Request::get(format!("/api/v1.0/{PHONE}/{KEY}/events?after=latest&wait=25")))
}

/// The number of connections that the service has closed for this reason.
fn closed(service: &Service, reason: &str) -> u32 {
    let metrics = service.send(&Request::get("/metrics")).text();
    let line = format!("galley_http_connections_closed_total{{reason=\"{reason}\"}} ");
    let value = metrics.lines().find_map(|it| it.strip_prefix(&line));
    value.map_or(0, |value| value.parse().unwrap())
}

#[test]
fn a_connection_without_a_first_byte_is_closed_after_the_header_timeout() {
    let (_dir, service) = started(&["header_timeout=300ms", "idle_timeout=1h"]);
    let silent = Connection::open(service.address).unwrap();
    assert_eq!(silent.read_until_closed().unwrap(), b"");
    assert_eq!(closed(&service, "header_timeout"), 1);
    // A connection that has sent a request may be idle for longer.
    let mut idle = Connection::open(service.address).unwrap();
    for _ in 0..2 {
        idle.send(&Request::get("/healthz").bytes()).unwrap();
        assert_eq!(idle.read_response().unwrap().status, 200);
        let silent = Connection::open(service.address).unwrap();
        assert_eq!(silent.read_until_closed().unwrap(), b"");
    }
}

#[test]
fn silent_connections_at_the_limit_do_not_lock_other_clients_out() {
    let (_dir, service) = started(&["max_connections=100", "header_timeout=10s"]);
    let silent: Vec<_> = (0..110).map(|_| Connection::open(service.address).unwrap()).collect();
    let begun = Instant::now();
    assert_eq!(service.send(&Request::get("/healthz")).status, 200);
    service.assert_works("beside_silent_connections");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert!(closed(&service, "evicted") >= 10);
    assert_eq!(closed(&service, "header_timeout"), 0);
    drop(silent);
}

#[test]
fn a_running_request_is_not_closed_to_make_room() {
    let (_dir, service) = started(&["max_connections=3", "header_timeout=1s"]);
    let mut waiting = Connection::open(service.address).unwrap();
    waiting.send(&long_poll().bytes()).unwrap();
    let mut idle: Vec<_> = (0..2)
        .map(|_| {
            let mut connection = Connection::open(service.address).unwrap();
            connection.send(&Request::get("/healthz").bytes()).unwrap();
            assert_eq!(connection.read_response().unwrap().status, 200);
            connection
        })
        .collect();
    // Each of these needs the place of an idle connection.
    let mut new: Vec<_> = (0..2)
        .map(|_| {
            let mut connection = Connection::open(service.address).unwrap();
            connection.send(&Request::get("/healthz").bytes()).unwrap();
            assert_eq!(connection.read_response().unwrap().status, 200);
            connection
        })
        .collect();
    for connection in idle.drain(..) {
        assert_eq!(connection.read_until_closed().unwrap(), b"");
    }
    drop(new.pop());
    assert_eq!(service.create(&document("an_event", "Hello!")).status, 201);
    let response = waiting.read_response().unwrap();
    assert_eq!(response.json()["data"][0]["data"]["name"], "an_event", "{response:?}");
}

#[test]
fn clients_that_do_not_read_are_disconnected_and_logged_once() {
    let (_dir, service) = started(&["send_timeout=500ms"]);
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let mut client = Connection::open(service.address).unwrap();
            client.send(&Request::get("/docs/swagger-ui-bundle.js").bytes()).unwrap();
            client
        })
        .collect();
    until(TIMEOUT, "the connections are closed", || closed(&service, "send_timeout") == 3);
    let line = "a client that does not read its response";
    let log = service.log.wait_for("the slow client", |log| log.contains(line));
    assert!(log.contains("client=127.0.0.1"), "{log}");
    assert_eq!(log.matches(line).count(), 1, "{log}");
    drop(clients);
    service.assert_works("beside_slow_clients");
}

/// The address of the health listener.
fn health_address(service: &Service) -> SocketAddr {
    let start = "serving /healthz, /readyz and /metrics on http://";
    let log = service.log.wait_for("the health listener", |log| log.contains(start));
    let (_, rest) = log.split_once(start).unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn the_health_listener_works_while_all_connections_are_busy() {
    let (_dir, service) = started(&["health_listen=127.0.0.1:0", "max_connections=1"]);
    let address = health_address(&service);
    let mut busy = Connection::open(service.address).unwrap();
    busy.send(&long_poll().bytes()).unwrap();
    let get = |path: &str| {
        let mut connection = Connection::open(address).unwrap();
        connection.send(&Request::get(path).bytes()).unwrap();
        connection.read_response().unwrap()
    };
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(get(path).status, 200, "{path}");
    }
    for path in ["/", "/docs", "/openapi.json", "/problems/internal", "/v23.0/1"] {
        assert_eq!(get(path).status, 404, "{path}");
    }
    let mut connection = Connection::open(address).unwrap();
    connection.send(&long_poll().bytes()).unwrap();
    connection.read_response().unwrap().is_problem(404, "not-found");
    // The listener answers until the requests of the other one are done, and then stops, too.
    let mut idle = Connection::open(address).unwrap();
    idle.send(&Request::get("/healthz").bytes()).unwrap();
    assert_eq!(idle.read_response().unwrap().status, 200);
    let (status, took) = service.end();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(idle.read_until_closed().unwrap(), b"");
    assert_eq!(busy.read_response().unwrap().status, 200);
}

#[test]
fn the_setting_about_origins_applies_to_the_api_and_not_to_the_health_listener() {
    let origin = "https://console.example";
    let setting = format!("cors_origins={origin}");
    let (_dir, service) = started(&["health_listen=127.0.0.1:0", &setting]);
    let health = health_address(&service);
    let ask = |address: SocketAddr| {
        let path = format!("/api/v1.0/{PHONE}/{KEY}/message_templates");
        let ask = Request::new("OPTIONS", path).header("Origin", origin);
        let mut connection = Connection::open(address).unwrap();
        connection.send(&ask.header("Access-Control-Request-Method", "POST").bytes()).unwrap();
        let response = connection.read_response().unwrap();
        let allowed = response.header("access-control-allow-origin").map(str::to_owned);
        (response.status, allowed)
    };
    assert_eq!(ask(service.address), (204, Some(origin.to_owned())));
    assert_eq!(ask(health), (404, None));
}
