//! Slow, oversized, malformed and hostile requests: each gets its status, and the service keeps
//! working.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    http::{Connection, Request, Response, TIMEOUT, is_closed},
    service::{Launch, Service, authorized, collection, document, post, raw_post, until},
};

const MAX_BODY_BYTES: usize = 256 * 1_024;

/// A service with short timeouts.
fn with_short_timeouts(flags: &[&str]) -> (TempDir, Service) {
    let dir = tempfile::tempdir().unwrap();
    let timeouts = ["--set", "header_timeout=300ms", "--set", "body_timeout=300ms"];
    let service = Launch::new(dir.path()).flags(&timeouts).flags(flags).start();
    (dir, service)
}

fn started() -> (TempDir, Service) {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    (dir, service)
}

/// Sends raw bytes and reads one response.
#[track_caller]
fn send(service: &Service, bytes: &[u8]) -> Response {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    service.try_send(bytes).unwrap_or_else(|error| panic!("{error}: {shown:?}"))
}

/// Sends single bytes, alternating with requests of other clients, until the service closes the
/// connection.
fn trickle(service: &Service, mut connection: Connection) {
    until(TIMEOUT, "the connection is closed", || {
        assert_eq!(service.send(&Request::get("/healthz")).status, 200, "other clients are served");
        connection.send(b"x").is_err_and(|error| is_closed(&error))
    });
}

#[test]
fn a_header_timeout_closes_the_connection() {
    let (_dir, service) = with_short_timeouts(&[]);
    let mut silent_client = Connection::open(service.address).unwrap();
    silent_client
        .send(b"POST /api/v1.0/1/k/message_templates HTTP/1.1\r\nHost: galley.test\r\nX-")
        .unwrap();
    let received = String::from_utf8(silent_client.read_until_closed().unwrap()).unwrap();
    assert!(received.is_empty() || received.starts_with("HTTP/1.1 408 "), "{received}");

    // The timeout starts with the first byte; further bytes do not extend it.
    let mut trickling = Connection::open(service.address).unwrap();
    trickling.send(b"GET /healthz HTTP/1.1\r\nX-Slow: ").unwrap();
    trickle(&service, trickling);
    service.assert_works("after_slow_headers");
}

#[test]
fn a_body_timeout_returns_408_and_closes_the_connection() {
    let (_dir, service) = with_short_timeouts(&[]);
    for framing in ["Content-Length: 500\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut slow = Connection::open(service.address).unwrap();
        slow.send(&raw_post("").head(framing)).unwrap();
        if framing.starts_with("Transfer") {
            slow.send(b"5\r\n{\"nam\r\n").unwrap();
        } else {
            slow.send(b"{\"nam").unwrap();
        }
        let response = slow.read_response().unwrap();
        response.is_problem(408, "body-timeout");
        assert_eq!(response.header("connection"), Some("close"));
        assert_eq!(slow.read_until_closed().unwrap(), b"");
    }

    let mut trickling = Connection::open(service.address).unwrap();
    trickling.send(&raw_post("").head("Content-Length: 100000\r\n")).unwrap();
    trickle(&service, trickling);
    service.assert_works("after_slow_bodies");
}

#[test]
fn connections_are_closed_if_idle_before_or_between_requests() {
    let (_dir, service) = with_short_timeouts(&["--set", "idle_timeout=300ms"]);
    let silent_client = Connection::open(service.address).unwrap();
    assert_eq!(silent_client.read_until_closed().unwrap(), b"");
    let mut idle = Connection::open(service.address).unwrap();
    for _ in 0..2 {
        idle.send(&Request::get("/healthz").bytes()).unwrap();
        assert_eq!(idle.read_response().unwrap().status, 200);
    }
    assert_eq!(idle.read_until_closed().unwrap(), b"");
}

#[test]
fn slow_connections_at_the_limit_only_delay_other_clients() {
    let (_dir, service) = with_short_timeouts(&["--set", "max_connections=4"]);
    let slow: Vec<Connection> = (0..8)
        .map(|_| {
            let mut connection = Connection::open(service.address).unwrap();
            connection.send(b"GET /heal").unwrap();
            connection
        })
        .collect();
    service.assert_works("after_slow_connections");
    for connection in slow {
        assert_eq!(connection.read_until_closed().unwrap(), b"");
    }
}

#[test]
fn a_client_that_sends_everything_before_reading_gets_the_refusal() {
    let (_dir, service) = started();
    let chunk = vec![b' '; 64 * 1_024];
    let graph = Request::new("POST", "/v23.0/upload:x").header("Authorization", "Bearer unknown");
    for (request, status) in [(raw_post(""), 413), (graph, 401)] {
        let head = request.head(&format!("Content-Length: {}\r\n", 64 * chunk.len()));
        for _ in 0..3 {
            let mut connection = Connection::open(service.address).unwrap();
            connection.send(&head).unwrap();
            connection.wait_for_response().unwrap();
            for _ in 0..64 {
                connection.send(&chunk).unwrap();
            }
            let response = connection.read_response().unwrap();
            assert_eq!(response.status, status);
            assert_eq!(response.header("connection"), Some("close"), "{response:?}");
            assert_eq!(connection.read_until_closed().unwrap(), b"");
        }
    }
}

#[test]
fn a_response_says_whether_the_connection_closes_after_an_unread_body() {
    let (_dir, service) = started();
    let gzip = || raw_post("").header("Content-Encoding", "gzip");
    let unknown = || Request::new("POST", collection()).header("Authorization", "Bearer unknown");
    let large = format!("Content-Length: {}\r\n", MAX_BODY_BYTES + 1);
    let chunked = "Transfer-Encoding: chunked\r\n".to_owned();
    for (request, framing, status) in [
        (raw_post(""), &large, 413),
        (gzip(), &large, 415),
        (unknown(), &large, 401),
        (unknown(), &chunked, 401),
        (authorized(Request::new("POST", "/nowhere")), &large, 404),
    ] {
        let mut connection = Connection::open(service.address).unwrap();
        connection.send(&request.head(framing)).unwrap();
        let response = connection.read_response().unwrap();
        assert_eq!(
            (response.status, response.header("connection")),
            (status, Some("close")),
            "{framing}: {response:?}"
        );
    }
    // A small body that arrives with its header is no reason to close.
    let mut connection = Connection::open(service.address).unwrap();
    for _ in 0..3 {
        connection.send(&unknown().body("{}").bytes()).unwrap();
        let response = connection.read_response().unwrap();
        assert_eq!((response.status, response.header("connection")), (401, None));
    }
}

#[test]
fn a_client_that_keeps_sending_after_a_refusal_is_disconnected() {
    let (_dir, service) = started();
    let mut endless = Connection::open(service.address).unwrap();
    endless.send(&raw_post("").head("Content-Length: 99999999999\r\n")).unwrap();
    let chunk = vec![b' '; 64 * 1_024];
    let closed = (0..4_096).find_map(|_| endless.send(&chunk).err()).unwrap();
    assert!(is_closed(&closed), "{closed}");
    service.assert_works("after_an_endless_body");
}

#[test]
fn a_content_length_above_the_limit_returns_413_before_the_body_is_sent() {
    let (_dir, service) = started();
    let mut connection = Connection::open(service.address).unwrap();
    let framing = format!("Content-Length: {}\r\n", MAX_BODY_BYTES + 1);
    connection.send(&raw_post("").head(&framing)).unwrap();
    connection.read_response().unwrap().is_problem(413, "too-large");
    service.assert_works("after_an_oversized_body");
}

#[test]
fn a_chunked_body_returns_413_as_soon_as_it_exceeds_the_limit() {
    let (_dir, service) = started();
    let mut connection = Connection::open(service.address).unwrap();
    connection.send(&raw_post("").head("Transfer-Encoding: chunked\r\n")).unwrap();
    for _ in 0..MAX_BODY_BYTES / 1_024 {
        connection.send(format!("400\r\n{}\r\n", " ".repeat(1_024)).as_bytes()).unwrap();
    }
    connection.send(b"1\r\n \r\n").unwrap();
    connection.read_response().unwrap().is_problem(413, "too-large");
    service.assert_works("after_an_endless_body");
}

#[test]
fn a_request_that_is_refused_gets_no_100_continue() {
    let (_dir, service) = started();
    let framing = "Content-Length: 100\r\nExpect: 100-continue\r\n";
    let unknown_token =
        Request::new("POST", collection()).header("Authorization", "Bearer unknown");
    for (request, framing, status, slug) in [
        (unknown_token, framing.to_owned(), 401, "token-unknown"),
        (Request::new("POST", collection()), framing.to_owned(), 401, "token-missing"),
        (
            raw_post("").header("Content-Encoding", "gzip"),
            framing.to_owned(),
            415,
            "unsupported-media-type",
        ),
        (raw_post(""), framing.replace("100\r\n", "1000000\r\n"), 413, "too-large"),
        (authorized(Request::new("POST", "/nowhere")), framing.to_owned(), 404, "not-found"),
    ] {
        let mut connection = Connection::open(service.address).unwrap();
        connection.send(&request.head(&framing)).unwrap();
        connection.read_response().unwrap().is_problem(status, slug);
    }
}

#[test]
fn a_client_that_sends_all_of_an_oversized_body_reads_its_413() {
    let (_dir, service) = started();
    for size in [MAX_BODY_BYTES + 1, 1_024 * 1_024] {
        let mut connection = Connection::open(service.address).unwrap();
        connection.send(&raw_post("").head(&format!("Content-Length: {size}\r\n"))).unwrap();
        // The service may close the connection during this write; the client must still get the
        // response.
        let _ = connection.send(&vec![b' '; size]);
        connection.read_response().unwrap().is_problem(413, "too-large");
    }
}

#[test]
fn a_body_of_exactly_the_maximum_size_is_accepted() {
    let (_dir, service) = started();
    let document = document("largest", "Hello!").to_string();
    let padded = format!("{document}{}", " ".repeat(MAX_BODY_BYTES - document.len()));
    assert_eq!(padded.len(), MAX_BODY_BYTES);
    assert_eq!(service.send(&raw_post(padded)).status, 201);
}

#[test]
fn only_uncompressed_json_in_utf_8_is_accepted() {
    let (_dir, service) = started();
    let create = |name: &str, headers: &[(&str, &str)]| {
        let body = document(name, "Hello!").to_string();
        let request = authorized(Request::new("POST", collection())).body(body);
        let add = |request: Request, (name, value): &(&str, &str)| request.header(name, value);
        service.send(&headers.iter().fold(request, add))
    };
    for content_type in [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "application/vnd.x+json",
        "application/json; charset=utf-16",
        "application/json; charset=\"iso-8859-1\"",
        "application/json; charset=utf-7",
        "json",
        "",
        "\u{fc}",
    ] {
        create("refused", &[("Content-Type", content_type)])
            .is_problem(415, "unsupported-media-type");
    }
    for encoding in ["gzip", "deflate", "br", "identity, gzip"] {
        let headers = [("Content-Type", "application/json"), ("Content-Encoding", encoding)];
        create("refused", &headers).is_problem(415, "unsupported-media-type");
    }
    assert_eq!(create("no_content_type", &[]).status, 201);
    for (name, content_type) in [
        ("plain", "application/json"),
        ("upper", "Application/JSON"),
        ("charset", "application/json; charset=utf-8"),
        ("quoted", "application/json;charset=\"UTF-8\""),
        ("other_parameter", "application/json; profile=x"),
    ] {
        let response = create(name, &[("Content-Type", content_type)]);
        assert_eq!(response.status, 201, "{content_type}: {response:?}");
    }
}

#[test]
fn a_body_that_is_not_json_returns_400() {
    let (_dir, service) = started();
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes();
    let long_literal = format!("{{\"name\": {}", "x".repeat(200_000)).into_bytes();
    let mut cases: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"{".to_vec(),
        b"{\"name\": \"\xff\xfe\"}".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        b"{\"name\": \"\xed\xa0\x80\"}".to_vec(),
        b"{\"name\": \"\\ud800\"}".to_vec(),
        b"{} {}".to_vec(),
        b"{\"name\": 1e400}".to_vec(),
        b"\0".to_vec(),
        "[".repeat(200_000).into_bytes(),
        "{\"a\":".repeat(40_000).into_bytes(),
        long_literal,
    ];
    cases.extend([33, 127, 128, 1_000, 100_000].map(deep));
    cases.push(document("x", "y").to_string().encode_utf16().flat_map(u16::to_le_bytes).collect());
    for body in cases {
        let response = service.send(&raw_post(body));
        response.is_problem(400, "malformed-json");
        assert!(response.body.len() < 2_048, "{} bytes", response.body.len());
    }
    let response = service.send(&raw_post(deep(32)));
    response.is_problem(422, "invalid-template");
    service.assert_works("after_malformed_json");
}

#[test]
fn a_request_with_ambiguous_framing_returns_400_and_closes_the_connection() {
    let (_dir, service) = started();
    let body = document("smuggled", "Hello!").to_string();
    let length = body.len();
    let chunk = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    for (framing, body) in [
        (format!("Content-Length: {length}\r\nContent-Length: {}\r\n", length - 1), &body),
        ("Transfer-Encoding: chunked, identity\r\n".to_owned(), &chunk),
        (format!("Content-Length: {length}\r\nTransfer-Encoding: identity\r\n"), &body),
        ("Content-Length: -1\r\n".to_owned(), &body),
        (format!("Content-Length: +{length}\r\n"), &body),
        ("Content-Length: 99999999999999999999999\r\n".to_owned(), &body),
    ] {
        let mut connection = Connection::open(service.address).unwrap();
        let request = [raw_post("").head(&framing), body.clone().into_bytes()].concat();
        connection.send(&request).unwrap();
        let response = connection.read_response().unwrap();
        assert_eq!(response.status, 400, "{framing:?}: {response:?}");
        let rest = connection.read_until_closed().unwrap();
        assert!(rest.is_empty(), "{framing:?}: {}", String::from_utf8_lossy(&rest));
    }
    // None of these requests created the template.
    assert_eq!(service.create(&document("smuggled", "Hello!")).status, 201);
}

#[test]
fn an_incomplete_body_or_invalid_chunks_create_nothing() {
    let (_dir, service) = started();
    for chunks in ["zz\r\n{}\r\n", "-5\r\n", "ffffffffffffffffff\r\n{}", "2;\nx\r\n{}\r\n"] {
        let head = raw_post("").head("Transfer-Encoding: chunked\r\n");
        let response = send(&service, &[head, chunks.as_bytes().to_vec()].concat());
        response.is_problem(400, "bad-request");
    }
    // The client disconnects before it has sent the whole document.
    let whole = post(&document("incomplete", "Hello!")).bytes();
    let mut connection = Connection::open(service.address).unwrap();
    connection.send(&whole[..whole.len() - 10]).unwrap();
    drop(connection);
    assert_eq!(service.create(&document("incomplete", "Hello!")).status, 201);
}

#[test]
fn too_many_or_too_large_headers_return_431() {
    let (_dir, service) = started();
    let many = (0..150).fold(Request::get("/healthz"), |request, number| {
        request.header(&format!("X-Header-{number}"), "x")
    });
    assert_eq!(service.send(&many).status, 431);
    // The response may arrive before the whole request is sent.
    let mut connection = Connection::open(service.address).unwrap();
    let large = Request::get("/healthz").header("X-Large", &"x".repeat(1_024 * 1_024));
    let _ = connection.send(&large.bytes());
    match connection.read_response() {
        Ok(response) => assert_eq!(response.status, 431, "{response:?}"),
        Err(error) => assert!(is_closed(&error), "{error}"),
    }
    let some = (0..80).fold(Request::get("/healthz"), |request, number| {
        request.header(&format!("X-Header-{number}"), "x")
    });
    assert_eq!(service.send(&some).status, 200);
}

#[test]
fn bytes_that_are_not_http_get_400_or_a_closed_connection() {
    let (_dir, service) = started();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nNo Colon\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n",
        b"GET /hea\0lthz HTTP/1.1\r\n\r\n",
        b"\r\n\r\n\r\n\0\0\0\0",
    ] {
        let mut connection = Connection::open(service.address).unwrap();
        connection.send(bytes).unwrap();
        match connection.read_response() {
            Ok(response) => assert_eq!(response.status, 400, "{bytes:?}: {response:?}"),
            Err(error) => assert!(is_closed(&error), "{bytes:?}: {error}"),
        }
    }
    service.assert_works("after_invalid_http");
}

#[test]
fn the_response_to_a_document_with_many_violations_is_small() {
    let (_dir, service) = started();
    let component = |text: &str| json!({"type": "BODY", "format": 1, "text": text});
    let control: Vec<Value> = vec![json!({"type": "\u{1}".repeat(41)}); 20];
    let buttons: Vec<Value> = vec![json!({"type": "BUTTONS", "buttons": control}); 20];
    let braces: Vec<Value> = (0..20).map(|_| component(&"{{x}} ".repeat(1_500))).collect();
    let components: Vec<Value> = (0..10_000).map(|_| json!({"type": "NOTHING"})).collect();
    let with = |components: Value| {
        let mut document = document("x", "");
        document["components"] = components;
        document.to_string()
    };
    let long = "\\u0001".repeat(160);
    let nested = format!("{{\"{long}\":").repeat(6);
    let duplicates = vec!["\"t\":0"; 10_000].join(",");
    let long_duplicates = vec![format!("\"{}\":0", "k".repeat(900)); 250].join(",");
    for body in [
        with(components.into()),
        with(braces.into()),
        with(buttons.into()),
        format!("{{{}}}", vec!["\"name\":1"; 20_000].join(",")),
        format!("{{\"{}\":1,\"{0}\":2}}", "n".repeat(120_000)),
        format!("{{{long_duplicates}}}"),
        format!("{nested}{{{duplicates}}}{}", "}".repeat(6)),
    ] {
        assert!(body.len() <= MAX_BODY_BYTES, "{} bytes", body.len());
        let response = service.send(&raw_post(body));
        response.is_problem(422, "invalid-template");
        let count = response.json()["violations"].as_array().unwrap().len();
        assert!((1..=100).contains(&count), "{count} violations");
        assert!(
            response.body.len() < 64 * 1_024,
            "{} bytes: {}",
            response.body.len(),
            &response.text()[..600]
        );
    }
}
