//! Requests that are slow, oversized, malformed or hostile: each gets its status, none hangs the
//! service or makes it fail, and it goes on afterwards.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    http::{Answer, BOUND, Connection, Request, is_closed},
    service::{Launch, Service, authorized, collection, document, post, raw_post, until},
};

const LARGEST_BODY: usize = 256 * 1_024;

/// A service that loses patience soon.
fn impatient(flags: &[&str]) -> (TempDir, Service) {
    let dir = tempfile::tempdir().unwrap();
    let patience = ["--set", "header_timeout=300ms", "--set", "body_timeout=300ms"];
    let service = Launch::new(dir.path()).flags(&patience).flags(flags).start();
    (dir, service)
}

fn started() -> (TempDir, Service) {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    (dir, service)
}

/// Sends bytes as they are and reads one answer.
#[track_caller]
fn send(service: &Service, bytes: &[u8]) -> Answer {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    service.try_send(bytes).unwrap_or_else(|error| panic!("{error}: {shown:?}"))
}

/// Sends a byte now and then, between the requests of others, until the service has had enough.
fn trickle(service: &Service, mut connection: Connection) {
    until(BOUND, "the connection is closed", || {
        assert_eq!(service.send(&Request::get("/healthz")).status, 200, "others are served");
        connection.send(b"x").is_err_and(|error| is_closed(&error))
    });
}

#[test]
fn a_header_that_comes_too_slowly_ends_the_connection() {
    let (_dir, service) = impatient(&[]);
    let mut silent = Connection::open(service.address).unwrap();
    silent
        .send(b"POST /api/v1.0/1/k/message_templates HTTP/1.1\r\nHost: galley.test\r\nX-")
        .unwrap();
    let said = String::from_utf8(silent.until_closed().unwrap()).unwrap();
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 408 "), "{said}");

    // The time runs from the first byte: sending another now and then does not renew it.
    let mut trickling = Connection::open(service.address).unwrap();
    trickling.send(b"GET /healthz HTTP/1.1\r\nX-Slow: ").unwrap();
    trickle(&service, trickling);
    service.is_well("after_slow_headers");
}

#[test]
fn a_body_that_comes_too_slowly_is_answered_408_and_the_connection_ends() {
    let (_dir, service) = impatient(&[]);
    for framing in ["Content-Length: 500\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut slow = Connection::open(service.address).unwrap();
        slow.send(&raw_post("").head(framing)).unwrap();
        if framing.starts_with("Transfer") {
            slow.send(b"5\r\n{\"nam\r\n").unwrap();
        } else {
            slow.send(b"{\"nam").unwrap();
        }
        let answer = slow.answer().unwrap();
        answer.is_problem(408, "body-timeout");
        assert_eq!(answer.header("connection"), Some("close"));
        assert_eq!(slow.until_closed().unwrap(), b"");
    }

    let mut trickling = Connection::open(service.address).unwrap();
    trickling.send(&raw_post("").head("Content-Length: 100000\r\n")).unwrap();
    trickle(&service, trickling);
    service.is_well("after_slow_bodies");
}

#[test]
fn a_connection_that_says_nothing_is_closed_and_one_between_two_requests_too() {
    let (_dir, service) = impatient(&["--set", "idle_timeout=300ms"]);
    let silent = Connection::open(service.address).unwrap();
    assert_eq!(silent.until_closed().unwrap(), b"");
    let mut resting = Connection::open(service.address).unwrap();
    for _ in 0..2 {
        resting.send(&Request::get("/healthz").bytes()).unwrap();
        assert_eq!(resting.answer().unwrap().status, 200);
    }
    assert_eq!(resting.until_closed().unwrap(), b"");
}

#[test]
fn slow_connections_up_to_the_cap_delay_others_but_do_not_shut_them_out() {
    let (_dir, service) = impatient(&["--set", "max_connections=4"]);
    let slow: Vec<Connection> = (0..8)
        .map(|_| {
            let mut connection = Connection::open(service.address).unwrap();
            connection.send(b"GET /heal").unwrap();
            connection
        })
        .collect();
    service.is_well("behind_the_slow_ones");
    for connection in slow {
        assert_eq!(connection.until_closed().unwrap(), b"");
    }
}

#[test]
fn a_refusal_reaches_whoever_sends_everything_before_reading_anything() {
    let (_dir, service) = started();
    let piece = vec![b' '; 64 * 1_024];
    let graph = Request::new("POST", "/v23.0/upload:x").header("Authorization", "Bearer nobody");
    for (request, status) in [(raw_post(""), 413), (graph, 401)] {
        let head = request.head(&format!("Content-Length: {}\r\n", 64 * piece.len()));
        for _ in 0..3 {
            let mut connection = Connection::open(service.address).unwrap();
            connection.send(&head).unwrap();
            connection.until_answered().unwrap();
            for _ in 0..64 {
                connection.send(&piece).unwrap();
            }
            assert_eq!(connection.answer().unwrap().status, status);
            assert_eq!(connection.until_closed().unwrap(), b"");
        }
    }
}

#[test]
fn whoever_goes_on_sending_after_a_refusal_is_not_heard_for_ever() {
    let (_dir, service) = started();
    let mut endless = Connection::open(service.address).unwrap();
    endless.send(&raw_post("").head("Content-Length: 99999999999\r\n")).unwrap();
    let piece = vec![b' '; 64 * 1_024];
    let closed = (0..4_096).find_map(|_| endless.send(&piece).err()).unwrap();
    assert!(is_closed(&closed), "{closed}");
    service.is_well("after_an_endless_body");
}

#[test]
fn a_body_that_says_it_is_too_large_is_answered_413_before_it_is_sent() {
    let (_dir, service) = started();
    let mut connection = Connection::open(service.address).unwrap();
    let framing = format!("Content-Length: {}\r\n", LARGEST_BODY + 1);
    connection.send(&raw_post("").head(&framing)).unwrap();
    connection.answer().unwrap().is_problem(413, "too-large");
    service.is_well("after_an_oversized_body");
}

#[test]
fn a_body_without_a_length_is_answered_413_as_soon_as_it_is_too_large() {
    let (_dir, service) = started();
    let mut connection = Connection::open(service.address).unwrap();
    connection.send(&raw_post("").head("Transfer-Encoding: chunked\r\n")).unwrap();
    for _ in 0..LARGEST_BODY / 1_024 {
        connection.send(format!("400\r\n{}\r\n", " ".repeat(1_024)).as_bytes()).unwrap();
    }
    connection.send(b"1\r\n \r\n").unwrap();
    connection.answer().unwrap().is_problem(413, "too-large");
    service.is_well("after_an_endless_body");
}

#[test]
fn no_body_is_asked_for_before_the_request_is_known_to_be_good() {
    let (_dir, service) = started();
    let framing = "Content-Length: 100\r\nExpect: 100-continue\r\n";
    let foreign = Request::new("POST", collection()).header("Authorization", "Bearer nobody");
    for (request, framing, status, slug) in [
        (foreign, framing.to_owned(), 401, "token-unknown"),
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
        connection.answer().unwrap().is_problem(status, slug);
    }
}

#[test]
fn a_client_that_sends_all_of_an_oversized_body_reads_its_413() {
    let (_dir, service) = started();
    for size in [LARGEST_BODY + 1, 1_024 * 1_024] {
        let mut connection = Connection::open(service.address).unwrap();
        connection.send(&raw_post("").head(&format!("Content-Length: {size}\r\n"))).unwrap();
        // The service may close while this is on its way; its answer has to come all the same.
        let _ = connection.send(&vec![b' '; size]);
        connection.answer().unwrap().is_problem(413, "too-large");
    }
}

#[test]
fn the_largest_body_is_read() {
    let (_dir, service) = started();
    let document = document("largest", "Hello!").to_string();
    let padded = format!("{document}{}", " ".repeat(LARGEST_BODY - document.len()));
    assert_eq!(padded.len(), LARGEST_BODY);
    assert_eq!(service.send(&raw_post(padded)).status, 201);
}

#[test]
fn only_json_in_utf_8_that_is_not_compressed_is_read() {
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
    assert_eq!(create("none_at_all", &[]).status, 201);
    for (name, content_type) in [
        ("plain", "application/json"),
        ("upper", "Application/JSON"),
        ("charset", "application/json; charset=utf-8"),
        ("quoted", "application/json;charset=\"UTF-8\""),
        ("other_parameter", "application/json; profile=x"),
    ] {
        let answer = create(name, &[("Content-Type", content_type)]);
        assert_eq!(answer.status, 201, "{content_type}: {answer:?}");
    }
}

#[test]
fn what_is_no_json_is_answered_400() {
    let (_dir, service) = started();
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes();
    let long_word = format!("{{\"name\": {}", "x".repeat(200_000)).into_bytes();
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
        long_word,
    ];
    cases.extend([33, 127, 128, 1_000, 100_000].map(deep));
    cases.push(document("x", "y").to_string().encode_utf16().flat_map(u16::to_le_bytes).collect());
    for body in cases {
        let answer = service.send(&raw_post(body));
        answer.is_problem(400, "malformed-json");
        assert!(answer.body.len() < 2_048, "{} bytes", answer.body.len());
    }
    let answer = service.send(&raw_post(deep(32)));
    answer.is_problem(422, "invalid-template");
    service.is_well("after_all_of_that");
}

#[test]
fn a_request_whose_end_is_ambiguous_is_answered_400_and_the_connection_ends() {
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
        let answer = connection.answer().unwrap();
        assert_eq!(answer.status, 400, "{framing:?}: {answer:?}");
        let rest = connection.until_closed().unwrap();
        assert!(rest.is_empty(), "{framing:?}: {}", String::from_utf8_lossy(&rest));
    }
    // None of them made anything.
    assert_eq!(service.create(&document("smuggled", "Hello!")).status, 201);
}

#[test]
fn of_two_ends_the_chunks_count_and_nothing_behind_them_is_read_as_a_request() {
    let (_dir, service) = started();
    let body = document("in_chunks", "Hello!").to_string();
    let hidden = post(&document("hidden", "Hello!")).bytes();
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).into_bytes();
    for (name, length) in [("shorter", 5), ("equal", chunk.len()), ("longer", 100_000)] {
        let lengths = format!("Content-Length: {length}\r\n");
        for framing in [
            format!("{lengths}Transfer-Encoding: chunked\r\n"),
            format!("Transfer-Encoding: chunked\r\n{lengths}"),
        ] {
            let mut connection = Connection::open(service.address).unwrap();
            let request = [raw_post("").head(&framing), chunk.clone(), hidden.clone()].concat();
            connection.send(&request).unwrap();
            // Either refused or read by its chunks alone; the connection ends in both cases.
            let answer = connection.answer().unwrap();
            assert!(matches!(answer.status, 201 | 400 | 409), "{name}: {answer:?}");
            assert_eq!(answer.header("connection"), Some("close"), "{name}: {answer:?}");
            let rest = connection.until_closed().unwrap();
            assert!(rest.is_empty(), "{name}: {}", String::from_utf8_lossy(&rest));
        }
    }
    assert_eq!(service.create(&document("hidden", "Hello!")).status, 201, "it was never read");
}

#[test]
fn a_body_that_breaks_off_or_whose_chunks_make_no_sense_makes_nothing() {
    let (_dir, service) = started();
    for chunks in ["zz\r\n{}\r\n", "-5\r\n", "ffffffffffffffffff\r\n{}", "2;\nx\r\n{}\r\n"] {
        let head = raw_post("").head("Transfer-Encoding: chunked\r\n");
        let answer = send(&service, &[head, chunks.as_bytes().to_vec()].concat());
        answer.is_problem(400, "bad-request");
    }
    // The client is gone before its document is whole.
    let whole = post(&document("broken_off", "Hello!")).bytes();
    let mut connection = Connection::open(service.address).unwrap();
    connection.send(&whole[..whole.len() - 10]).unwrap();
    drop(connection);
    assert_eq!(service.create(&document("broken_off", "Hello!")).status, 201);
}

#[test]
fn too_many_or_too_large_headers_are_answered_431() {
    let (_dir, service) = started();
    let many = (0..150).fold(Request::get("/healthz"), |request, number| {
        request.header(&format!("X-Header-{number}"), "x")
    });
    assert_eq!(service.send(&many).status, 431);
    // The answer can come before all of it is sent.
    let mut connection = Connection::open(service.address).unwrap();
    let large = Request::get("/healthz").header("X-Large", &"x".repeat(1_024 * 1_024));
    let _ = connection.send(&large.bytes());
    match connection.answer() {
        Ok(answer) => assert_eq!(answer.status, 431, "{answer:?}"),
        Err(error) => assert!(is_closed(&error), "{error}"),
    }
    let some = (0..80).fold(Request::get("/healthz"), |request, number| {
        request.header(&format!("X-Header-{number}"), "x")
    });
    assert_eq!(service.send(&some).status, 200);
}

#[test]
fn what_is_no_http_is_answered_400_or_not_at_all() {
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
        match connection.answer() {
            Ok(answer) => assert_eq!(answer.status, 400, "{bytes:?}: {answer:?}"),
            Err(error) => assert!(is_closed(&error), "{bytes:?}: {error}"),
        }
    }
    service.is_well("after_nonsense");
}

#[test]
fn a_document_that_breaks_a_great_many_rules_gets_a_small_answer() {
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
    let twins = vec!["\"t\":0"; 10_000].join(",");
    let long_twins = vec![format!("\"{}\":0", "k".repeat(900)); 250].join(",");
    for body in [
        with(components.into()),
        with(braces.into()),
        with(buttons.into()),
        format!("{{{}}}", vec!["\"name\":1"; 20_000].join(",")),
        format!("{{\"{}\":1,\"{0}\":2}}", "n".repeat(120_000)),
        format!("{{{long_twins}}}"),
        format!("{nested}{{{twins}}}{}", "}".repeat(6)),
    ] {
        assert!(body.len() <= LARGEST_BODY, "{} bytes", body.len());
        let answer = service.send(&raw_post(body));
        answer.is_problem(422, "invalid-template");
        let told = answer.json()["violations"].as_array().unwrap().len();
        assert!((1..=100).contains(&told), "{told} violations");
        assert!(
            answer.body.len() < 64 * 1_024,
            "{} bytes: {}",
            answer.body.len(),
            &answer.text()[..600]
        );
    }
}
