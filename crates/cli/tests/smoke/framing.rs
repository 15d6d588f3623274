//! Requests whose end another program may see elsewhere: each is refused with 400, and nothing after
//! it is read.

use tempfile::TempDir;

use crate::{
    http::{Connection, Request},
    service::{Launch, Service, document, post, raw_post},
};

fn started() -> (TempDir, Service) {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    (dir, service)
}

/// Sends bytes, asserts that the only response is a 400 with this detail, and that the connection is
/// closed.
#[track_caller]
fn assert_refused(service: &Service, bytes: &[u8], detail: &str) {
    let shown = String::from_utf8_lossy(bytes).into_owned();
    let mut connection = Connection::open(service.address).unwrap();
    connection.send(bytes).unwrap();
    let response = connection.read_response().unwrap_or_else(|error| panic!("{error}: {shown}"));
    response.is_problem(400, "bad-request");
    assert!(response.text().contains(detail), "{shown:?}: {response:?}");
    assert_eq!(response.header("connection"), Some("close"), "{shown:?}: {response:?}");
    let rest = connection.read_until_closed().unwrap();
    assert!(rest.is_empty(), "{shown:?}: {}", String::from_utf8_lossy(&rest));
}

/// Sends an invalid body after the service has begun to process its header.
#[track_caller]
fn assert_late_body_is_refused(service: &Service, head: &[u8], body: &[u8]) {
    let mut connection = Connection::open(service.address).unwrap();
    let (first, rest) = body.split_at(1);
    // The interim response shows that the service waits for the body.
    let expecting =
        String::from_utf8_lossy(head).replacen("\r\n", "\r\nExpect: 100-continue\r\n", 1);
    connection.send(expecting.as_bytes()).unwrap();
    assert_eq!(connection.read_response().unwrap().status, 100);
    connection.send(first).unwrap();
    connection.send(rest).unwrap();
    let response = connection.read_response().unwrap();
    response.is_problem(400, "bad-request");
    assert!(response.text().contains("CRLF"), "{response:?}");
    assert_eq!(response.header("connection"), Some("close"), "{response:?}");
    assert!(connection.read_until_closed().unwrap().is_empty());
}

#[test]
fn a_request_needs_exactly_one_valid_host() {
    let (_dir, service) = started();
    for (hosts, detail) in [
        ("", "`Host` is missing"),
        ("Host: a\r\nHost: a\r\n", "`Host` is repeated"),
        ("Host: a\r\nX-Other: b\r\nhost: b\r\n", "`Host` is repeated"),
        ("Host:\r\n", "`Host` is invalid"),
        ("Host: a b\r\n", "`Host` is invalid"),
        ("Host: user@a\r\n", "`Host` is invalid"),
    ] {
        let bytes = format!("GET /healthz HTTP/1.1\r\n{hosts}\r\n");
        assert_refused(&service, bytes.as_bytes(), detail);
        // The target does not replace the header.
        let bytes = format!("GET http://a/healthz HTTP/1.1\r\n{hosts}\r\n");
        assert_refused(&service, bytes.as_bytes(), detail);
    }
    for good in [
        "GET /healthz HTTP/1.0\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHOST: [::1]:8080\r\n\r\n",
        "\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        assert_eq!(service.try_send(good.as_bytes()).unwrap().status, 200, "{good:?}");
    }
}

#[test]
fn a_transfer_encoding_is_chunked_and_alone() {
    let (_dir, service) = started();
    let body = document("encoded", "Hello!").to_string();
    let hidden = post(&document("hidden", "Hello!")).bytes();
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).into_bytes();
    let encoding = "`Transfer-Encoding` is `chunked`";
    for (framing, detail) in [
        ("Transfer-Encoding: gzip, chunked\r\n", encoding),
        ("Transfer-Encoding: chunked, chunked\r\n", encoding),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", encoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", encoding),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "both"),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "both"),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", "`Content-Length` is invalid or repeated"),
    ] {
        let bytes = [raw_post("").head(framing), chunks.clone(), hidden.clone()].concat();
        assert_refused(&service, &bytes, detail);
    }
    let chunked = [raw_post("").head("transfer-encoding: Chunked\r\n"), chunks].concat();
    assert_eq!(service.try_send(&chunked).unwrap().status, 201, "no refused request created it");
    assert_eq!(service.create(&document("hidden", "Hello!")).status, 201);
}

#[test]
fn an_ambiguous_request_to_the_graph_surface_is_refused_in_its_format() {
    let (_dir, service) = started();
    for path in ["/v23.0/123/message_templates", "/123/message_templates"] {
        let bytes = format!("GET {path} HTTP/1.1\r\nHost: a\nX: b\r\n\r\n");
        let response = service.try_send(bytes.as_bytes()).unwrap();
        assert_eq!(response.status, 400);
        assert!(response.json()["error"]["code"].is_u64(), "{response:?}");
    }
}

#[test]
fn every_line_of_a_request_ends_with_crlf() {
    let (_dir, service) = started();
    let hidden = post(&document("hidden", "Hello!")).bytes();
    for request in [
        "GET /healthz HTTP/1.1\nHost: a\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nX: b\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\n\n",
        "GET /healthz HTTP/1.1\nHost: a\n\n",
        "\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let bytes = [request.as_bytes(), &hidden].concat();
        assert_refused(&service, &bytes, "LF alone");
        // The refusal does not depend on how the bytes arrive.
        let mut connection = Connection::open(service.address).unwrap();
        for byte in request.as_bytes() {
            connection.send(&[*byte]).unwrap();
        }
        connection.read_response().unwrap().is_problem(400, "bad-request");
        assert_eq!(connection.read_until_closed().unwrap(), b"");
    }
    assert_eq!(service.create(&document("hidden", "Hello!")).status, 201);
}

#[test]
fn every_line_of_a_chunked_body_ends_with_crlf() {
    let (_dir, service) = started();
    let hidden = post(&document("hidden", "Hello!")).bytes();
    let body = document("chunked", "Hello!").to_string();
    let size = format!("{:x}", body.len());
    for chunks in [
        format!("{size}\n{body}\r\n0\r\n\r\n"),
        format!("{size};a\nb\r\n{body}\r\n0\r\n\r\n"),
        format!("{size}\r\n{body}\n0\r\n\r\n"),
        format!("{size}\r\n{body}\r\n0\n\r\n"),
        format!("{size}\r\n{body}\r\n0\r\nX: y\n\r\n"),
        format!("{size}\r\n{body}\r\n0\r\n\n"),
    ] {
        let head = raw_post("").head("Transfer-Encoding: chunked\r\n");
        let chunks = chunks.into_bytes();
        assert_refused(&service, &[head.clone(), chunks.clone(), hidden.clone()].concat(), "CRLF");
        assert_late_body_is_refused(&service, &head, &chunks);
    }
    for name in ["chunked", "hidden"] {
        assert_eq!(service.create(&document(name, "Hello!")).status, 201, "{name}");
    }
}

#[test]
fn a_valid_request_before_an_invalid_one_gets_its_response() {
    let (_dir, service) = started();
    let mut connection = Connection::open(service.address).unwrap();
    let invalid = b"GET /healthz HTTP/1.1\nHost: a\n\n".to_vec();
    let first = post(&document("first", "Hello!")).bytes();
    connection.send(&[first, invalid, Request::get("/healthz").bytes()].concat()).unwrap();
    assert_eq!(connection.read_response().unwrap().status, 201);
    connection.read_response().unwrap().is_problem(400, "bad-request");
    assert_eq!(connection.read_until_closed().unwrap(), b"");
    let metrics = service.send(&Request::get("/metrics")).text();
    let line = r#"galley_http_requests_total{method="GET",route="(none)",status="400"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
}
