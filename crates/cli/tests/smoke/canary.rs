//! Secrets used in valid and invalid requests never appear in logs, responses, metrics or files.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    http::{Connection, Request, TIMEOUT, find},
    service::{
        KEY, Launch, PHONE, Service, TOKEN, authorized, collection, document, galley, get, post,
        raw_post, until,
    },
};

/// Every secret used here contains this text; nothing else does.
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

/// Bytes that are not valid requests.
fn invalid_requests() -> [Vec<u8>; 4] {
    [
        format!("POST {} HTTP/1.1\r\nAuthorization Bearer {TOKEN}\r\n\r\n", collection()).into(),
        format!("POST {} HTTP/7.7\r\n\r\n", collection()).into(),
        raw_post("").head("Content-Length: 9\r\nContent-Length: 8\r\n"),
        raw_post("").head("Transfer-Encoding: chunked\r\n\r\nnonsense"),
    ]
}

/// Sends all requests. Returns the bytes of all responses.
fn send_all(service: &Service) -> Vec<u8> {
    let mut received = Vec::new();
    let mut statuses = Vec::new();
    for request in mixed_requests() {
        let response = service.send(&request);
        assert!(response.status < 500, "{request:?}: {response:?}");
        statuses.push(response.status);
        received.extend_from_slice(response.head.as_bytes());
        received.extend_from_slice(&response.body);
    }
    for status in [200, 201, 400, 401, 404, 405, 409, 414, 415, 422] {
        assert!(statuses.contains(&status), "no response with {status}: {statuses:?}");
    }
    for bytes in invalid_requests() {
        let mut connection = Connection::open(service.address).unwrap();
        connection.send(&bytes).unwrap();
        let response = connection.read_response().unwrap();
        assert_eq!(response.status, 400, "{response:?}");
        received.extend_from_slice(&connection.read_until_closed().unwrap());
    }
    received
}

#[track_caller]
fn assert_no_canary(what: &str, bytes: &[u8]) {
    if let Some(position) = find(bytes, CANARY.as_bytes()) {
        let around = &bytes[position.saturating_sub(200)..bytes.len().min(position + 200)];
        panic!("found a canary in {what}: {}", String::from_utf8_lossy(around));
    }
}

fn run(dir: &Path, format: &str) {
    let flags = ["--log-format", format, "--set", "log_level=trace"];
    let service = Launch::new(dir).flags(&flags).start();
    assert_no_canary("responses", &send_all(&service));
    let metrics = service.send(&Request::get("/metrics"));
    assert_no_canary("metrics", &metrics.body);
    assert!(metrics.text().contains("{key}"), "the route label is its pattern");

    // While the service runs, the newest rows are in the WAL; after it stops, in the database file.
    let mut searched = 0;
    for file in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = std::fs::read(&file).unwrap();
        assert_no_canary(&file.display().to_string(), &bytes);
        searched += usize::from(find(&bytes, b"kept").is_some());
    }
    assert!(searched > 0, "some file contains the stored template");
    for arguments in [&["backup", "copy"][..], &["doctor"], &["account", "show", "default"]] {
        let output = galley(dir, arguments);
        assert!(output.status.success(), "{output:?}");
        assert_no_canary(arguments[0], &output.stdout);
        assert_no_canary(arguments[0], &output.stderr);
    }
    let copy = std::fs::read(dir.join("copy")).unwrap();
    assert!(find(&copy, b"kept").is_some());
    assert_no_canary("the backup", &copy);

    service.signal("TERM");
    let mut service = service;
    assert!(service.wait().success());
    assert_no_canary("the database file", &std::fs::read(dir.join("galley.db")).unwrap());
    let (log, printed) = (service.log.text(), service.printed.text());
    assert!(log.contains("/api/v1.0/{phone_number_id}/{key}/message_templates"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    assert_no_canary("the log", log.as_bytes());
    assert_no_canary("standard output", printed.as_bytes());
    if format == "json" {
        for line in log.lines() {
            let line = serde_json::from_str::<serde_json::Value>(line);
            assert!(line.is_ok_and(|line| line.is_object()), "one object per line: {log}");
        }
    }
}

#[test]
fn no_secret_leaks_with_the_human_log_format() {
    run(tempfile::tempdir().unwrap().path(), "human");
}

#[test]
fn no_secret_leaks_with_the_json_log_format() {
    run(tempfile::tempdir().unwrap().path(), "json");
}

const SECRET_KEY: &str = "canary-sealing-Tq8nB2xWm5Jr0LsV";

/// A secret path of the endpoint's URL.
const SECRET_PATH: &str = "hush-4d7Gk1Zt";

/// A webhook secret in Base64 and as decoded bytes.
fn encodings(secret: &str) -> [Vec<u8>; 2] {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let encoded = secret.strip_prefix("whsec_").unwrap().trim_end_matches('=');
    let (mut bytes, mut bits, mut bit_count) = (Vec::new(), 0_u32, 0);
    for letter in encoded.bytes() {
        let value = ALPHABET.iter().position(|it| *it == letter).unwrap();
        bits = (bits << 6 | u32::try_from(value).unwrap()) & 0xffff;
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push(u8::try_from(bits >> bit_count & 0xff).unwrap());
        }
    }
    assert_eq!(bytes.len(), 32);
    [encoded.as_bytes().to_vec(), bytes]
}

/// Registers an endpoint, rotates its secret, waits for a failed delivery and shows the endpoint.
/// Returns both secrets, and all output and stored files with their names.
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
    let secret = |response: &Value| response["secret"].as_str().unwrap().to_owned();
    let created =
        call("POST", "", &json!({"url": format!("http://127.0.0.1:9/{SECRET_PATH}")})).json();
    let id = created["id"].as_str().unwrap();
    let rotated = call("POST", &format!("/{id}/rotate"), &json!({})).json();
    service.assert_works("signed");
    until(TIMEOUT, "an attempt has failed", || {
        let found = call("GET", &format!("/{id}/deliveries"), &Value::Null).json();
        found["data"][0]["failure"].is_string()
    });
    let metrics = service.send(&Request::get("/metrics")).body;
    let shown = galley(dir, &["webhook", "show", "default", id]);
    assert!(shown.status.success(), "{shown:?}");
    service.signal("TERM");
    assert!(service.wait().success());
    let mut outputs = vec![
        ("the log".to_owned(), service.log.text().into_bytes()),
        ("the metrics".to_owned(), metrics),
        ("webhook show".to_owned(), [shown.stdout, shown.stderr].concat()),
    ];
    for file in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        outputs.push((file.display().to_string(), std::fs::read(&file).unwrap()));
    }
    (vec![secret(&created), secret(&rotated)], outputs)
}

#[test]
fn webhook_secrets_do_not_leak_and_are_stored_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    let (secrets, outputs) = with_webhooks(dir.path(), SECRET_KEY);
    assert_ne!(secrets[0], secrets[1]);
    for (source, bytes) in &outputs {
        assert_no_canary(source, bytes);
        for encoding in secrets.iter().flat_map(|secret| encodings(secret)) {
            assert!(find(bytes, &encoding).is_none(), "found a secret in {source}");
        }
    }
    assert!(
        find(&outputs[0].1, SECRET_PATH.as_bytes()).is_none(),
        "the path of the URL is in the log"
    );
}

#[test]
fn without_a_key_webhook_secrets_are_only_in_the_database_file() {
    let dir = tempfile::tempdir().unwrap();
    let (secrets, outputs) = with_webhooks(dir.path(), "");
    for secret in secrets {
        let [encoded, plain] = encodings(&secret);
        let mut places = Vec::new();
        for (source, bytes) in &outputs {
            assert!(find(bytes, &encoded).is_none(), "found a secret in {source}");
            places.extend(find(bytes, &plain).map(|_| source));
        }
        // The WAL counts as the file; it may not be checkpointed at exit.
        let is_file = |source: &&String| {
            ["galley.db", "galley.db-wal"].iter().any(|name| source.ends_with(name))
        };
        assert!(!places.is_empty() && places.iter().all(is_file), "{places:?}");
    }
}
