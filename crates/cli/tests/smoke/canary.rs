//! A key and a token that are used in every way, right and wrong, and found nowhere afterwards.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    http::{BOUND, Connection, Request, find},
    service::{
        KEY, Launch, PHONE, Service, TOKEN, authorized, collection, document, galley, get, post,
        raw_post, until,
    },
};

/// Every secret used here holds this word; nothing else does.
const CANARY: &str = "canary";
const WRONG: &str = "canary-wrong-c7Xk20vQpLm49RtZy";

/// Requests of every kind, with secrets wherever a client might put them.
fn mixed_requests() -> Vec<Request> {
    let valid = document("kept", "Hello!").to_string();
    let with = |request: Request, token: &str| {
        request.header("Authorization", &format!("Bearer {token}")).body(&*valid)
    };
    let to = |key: &str| Request::new("POST", format!("/api/v1.0/{PHONE}/{key}/message_templates"));
    let long = KEY.repeat(800);
    vec![
        post(&document("kept", "Hello!")).header("Idempotency-Key", KEY),
        post(&document("kept", "Hello!")).header("Idempotency-Key", KEY),
        post(&document("other", "Hello!")).header("Idempotency-Key", KEY),
        post(&document("kept", "Hello!")),
        post(&document("broken", "Hello {{x}}!")),
        raw_post("{"),
        raw_post(vec![0xff; 100]),
        raw_post(valid.clone()).header("Content-Encoding", "gzip"),
        get("1"),
        get("no-number"),
        with(to(KEY), WRONG),
        with(to(WRONG), TOKEN),
        with(to(WRONG), WRONG),
        with(to(TOKEN), KEY),
        to(KEY).body(&*valid),
        to(KEY).header("Authorization", &format!("Basic {TOKEN}")).body(&*valid),
        to(KEY).header("Authorization", TOKEN).body(&*valid),
        with(Request::new("POST", format!("/api/v1.0/{WRONG}/{KEY}/message_templates")), TOKEN),
        authorized(Request::new("PUT", collection())),
        authorized(Request::new("canary", collection())),
        authorized(Request::get(format!("{}/", collection()))),
        authorized(Request::get(format!("/api/v1.0/{PHONE}/{KEY}/nowhere/{TOKEN}"))),
        authorized(Request::new("POST", format!("/api/v1.0/{PHONE}/{long}/message_templates"))),
        authorized(Request::get(format!("/api/v9.9/{PHONE}/{long}"))),
        authorized(Request::get(format!("/{}", KEY.repeat(3_000)))),
        authorized(Request::get(format!("/problems/{KEY}"))),
        authorized(Request::get(format!("/docs/{KEY}"))),
        authorized(Request::get(format!("/healthz?key={KEY}&token={TOKEN}"))),
        Request::get("/readyz").header("Referer", &collection()).header("User-Agent", KEY),
        Request::get("/healthz").header("X-Forwarded-For", TOKEN).header("Cookie", KEY),
        Request::get("/openapi.json")
            .header("Authorization", &format!("Bearer {}", TOKEN.repeat(50))),
        Request::get(format!("/%00{KEY}")),
    ]
}

/// Bytes that are no request at all.
fn nonsense() -> [Vec<u8>; 4] {
    [
        format!("POST {} HTTP/1.1\r\nAuthorization Bearer {TOKEN}\r\n\r\n", collection()).into(),
        format!("POST {} HTTP/7.7\r\n\r\n", collection()).into(),
        raw_post("").head("Content-Length: 9\r\nContent-Length: 8\r\n"),
        raw_post("").head("Transfer-Encoding: chunked\r\n\r\nnonsense"),
    ]
}

/// Sends all of them and answers everything that came back.
fn provoke(service: &Service) -> Vec<u8> {
    let mut heard = Vec::new();
    let mut statuses = Vec::new();
    for request in mixed_requests() {
        let answer = service.send(&request);
        assert!(answer.status < 500, "{request:?}: {answer:?}");
        statuses.push(answer.status);
        heard.extend_from_slice(answer.head.as_bytes());
        heard.extend_from_slice(&answer.body);
    }
    for status in [200, 201, 400, 401, 404, 405, 409, 414, 415, 422] {
        assert!(statuses.contains(&status), "nothing was answered {status}: {statuses:?}");
    }
    for bytes in nonsense() {
        let mut connection = Connection::open(service.address).unwrap();
        connection.send(&bytes).unwrap();
        let answer = connection.answer().unwrap();
        assert_eq!(answer.status, 400, "{answer:?}");
        heard.extend_from_slice(&connection.until_closed().unwrap());
    }
    heard
}

#[track_caller]
fn holds_no_canary(what: &str, bytes: &[u8]) {
    if let Some(place) = find(bytes, CANARY.as_bytes()) {
        let around = &bytes[place.saturating_sub(200)..bytes.len().min(place + 200)];
        panic!("a canary in {what}: {}", String::from_utf8_lossy(around));
    }
}

fn run(dir: &Path, format: &str) {
    let flags = ["--log-format", format, "--set", "log_level=trace"];
    let service = Launch::new(dir).flags(&flags).start();
    holds_no_canary("answers", &provoke(&service));
    let metrics = service.send(&Request::get("/metrics"));
    holds_no_canary("metrics", &metrics.body);
    assert!(metrics.text().contains("{key}"), "the route is told by its pattern");

    // While it runs the newest rows stand in the log of the database, afterwards in its file.
    let mut searched = 0;
    for file in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = std::fs::read(&file).unwrap();
        holds_no_canary(&file.display().to_string(), &bytes);
        searched += usize::from(find(&bytes, b"kept").is_some());
    }
    assert!(searched > 0, "what was kept stands in some file");
    for arguments in [&["backup", "copy"][..], &["doctor"], &["account", "show", "default"]] {
        let output = galley(dir, arguments);
        assert!(output.status.success(), "{output:?}");
        holds_no_canary(arguments[0], &output.stdout);
        holds_no_canary(arguments[0], &output.stderr);
    }
    let copy = std::fs::read(dir.join("copy")).unwrap();
    assert!(find(&copy, b"kept").is_some());
    holds_no_canary("the copy", &copy);

    service.signal("TERM");
    let mut service = service;
    assert!(service.wait().success());
    holds_no_canary("the file", &std::fs::read(dir.join("galley.db")).unwrap());
    let (log, printed) = (service.log.text(), service.printed.text());
    assert!(log.contains("/api/v1.0/{phone_number_id}/{key}/message_templates"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    holds_no_canary("the log", log.as_bytes());
    holds_no_canary("what was printed", printed.as_bytes());
    if format == "json" {
        for line in log.lines() {
            let line = serde_json::from_str::<serde_json::Value>(line);
            assert!(line.is_ok_and(|line| line.is_object()), "one object a line: {log}");
        }
    }
}

#[test]
fn secrets_are_found_nowhere_after_a_mixed_run_with_a_log_for_people() {
    run(tempfile::tempdir().unwrap().path(), "human");
}

#[test]
fn secrets_are_found_nowhere_after_a_mixed_run_with_a_log_for_programs() {
    run(tempfile::tempdir().unwrap().path(), "json");
}

const SEALING: &str = "canary-sealing-Tq8nB2xWm5Jr0LsV";

/// A path that only the endpoint knows, as it is usual.
const HUSH: &str = "hush-4d7Gk1Zt";

/// What an endpoint's secret looks like outside, and what it is.
fn spellings(secret: &str) -> [Vec<u8>; 2] {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let encoded = secret.strip_prefix("whsec_").unwrap().trim_end_matches('=');
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for letter in encoded.bytes() {
        let value = LETTERS.iter().position(|it| *it == letter).unwrap();
        bits = (bits << 6 | u32::try_from(value).unwrap()) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap());
        }
    }
    assert_eq!(bytes.len(), 32);
    [encoded.as_bytes().to_vec(), bytes]
}

/// Registers an endpoint, rotates its secret, and lets it fail and be listed. Answers both secrets
/// and everything that was said and kept, by where.
fn with_webhooks(dir: &Path, key: &str) -> (Vec<String>, Vec<(String, Vec<u8>)>) {
    let mut service = Launch::new(dir)
        .flags(&["--log-format", "json", "--set", "log_level=trace"])
        .variable("GALLEY_WEBHOOKS_ALLOW_PRIVATE", "true")
        .variable("GALLEY_SECRET_KEY", key)
        .start();
    let call = |method, rest: &str, body: &Value| {
        let path = format!("/api/v1.0/{PHONE}/{KEY}/webhooks{rest}");
        let request = authorized(Request::new(method, path));
        let request = request.header("Content-Type", "application/json");
        service.send(&if body.is_null() { request } else { request.body(body.to_string()) })
    };
    let secret = |answer: &Value| answer["secret"].as_str().unwrap().to_owned();
    let made = call("POST", "", &json!({"url": format!("http://127.0.0.1:9/{HUSH}")})).json();
    let id = made["id"].as_str().unwrap();
    let rotated = call("POST", &format!("/{id}/rotate"), &json!({})).json();
    service.is_well("signed");
    until(BOUND, "an attempt has failed", || {
        let found = call("GET", &format!("/{id}/deliveries"), &Value::Null).json();
        found["data"][0]["failure"].is_string()
    });
    let metrics = service.send(&Request::get("/metrics")).body;
    let shown = galley(dir, &["webhook", "show", "default", id]);
    assert!(shown.status.success(), "{shown:?}");
    service.signal("TERM");
    assert!(service.wait().success());
    let mut said = vec![
        ("the log".to_owned(), service.log.text().into_bytes()),
        ("the metrics".to_owned(), metrics),
        ("webhook show".to_owned(), [shown.stdout, shown.stderr].concat()),
    ];
    for file in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        said.push((file.display().to_string(), std::fs::read(&file).unwrap()));
    }
    (vec![secret(&made), secret(&rotated)], said)
}

#[test]
fn secrets_of_webhooks_are_found_nowhere_and_those_that_are_kept_are_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let (secrets, said) = with_webhooks(dir.path(), SEALING);
    assert_ne!(secrets[0], secrets[1]);
    for (place, bytes) in &said {
        holds_no_canary(place, bytes);
        for spelling in secrets.iter().flat_map(|secret| spellings(secret)) {
            assert!(find(bytes, &spelling).is_none(), "a secret in {place}");
        }
    }
    assert!(find(&said[0].1, HUSH.as_bytes()).is_none(), "a part of the address in the log");
}

#[test]
fn without_a_key_secrets_of_webhooks_are_in_the_file_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let (secrets, said) = with_webhooks(dir.path(), "");
    for secret in secrets {
        let [encoded, plain] = spellings(&secret);
        let mut places = Vec::new();
        for (place, bytes) in &said {
            assert!(find(bytes, &encoded).is_none(), "a secret in {place}");
            places.extend(find(bytes, &plain).map(|_| place));
        }
        // The log belongs to the file; a busy machine may not have folded it at the end.
        let is_file = |place: &&String| {
            ["galley.db", "galley.db-wal"].iter().any(|name| place.ends_with(name))
        };
        assert!(!places.is_empty() && places.iter().all(is_file), "{places:?}");
    }
}
