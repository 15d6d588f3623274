//! Faults that strike calls, seen by a client over a real connection.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use axum::http::Method;
use galley_domain::emulator::failures;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::emulator::{Emulator, TOKEN, message, order};

/// Sends a request over a new connection, and returns everything that arrives until it closes.
async fn exchange(address: SocketAddr, path: &str, body: &Value, fault: Option<&str>) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = body.to_string();
    let fault = fault.map(|it| format!("Galley-Fault: {it}\r\n")).unwrap_or_default();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: galley.test\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{fault}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut received).await;
    String::from_utf8(received).unwrap()
}

async fn names(emulator: &Emulator) -> Vec<String> {
    let list = emulator.get(&format!("{}?fields=name", emulator.templates())).await;
    let list = list.expect_success();
    let names = list["data"].as_array().unwrap().iter();
    names.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_connection_closes_before_or_after_the_change() {
    let emulator = Emulator::start().await;
    let address = emulator.listen().await;
    let path = emulator.templates();
    for (kind, expected) in [("close_before", &[][..]), ("close_after_commit", &["two"][..])] {
        let fault = json!({"call": "create", "times": 1, "kind": kind});
        emulator.add_fault(&fault).await;
        let name = if kind == "close_before" { "one" } else { "two" };
        assert_eq!(exchange(address, &path, &order(name), None).await, "", "{kind}");
        assert_eq!(names(&emulator).await, expected, "{kind}");
    }
    // The same with the header, which needs no fault.
    assert_eq!(exchange(address, &path, &order("three"), Some("close_before")).await, "");
    assert_eq!(exchange(address, &path, &order("four"), Some("close_after_commit")).await, "");
    assert_eq!(names(&emulator).await, ["four", "two"]);
    let response = exchange(address, &path, &order("five"), None).await;
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
}

#[tokio::test]
async fn a_response_breaks_off_in_the_middle() {
    let emulator = Emulator::start().await;
    let address = emulator.listen().await;
    let path = emulator.templates();
    let whole = exchange(address, &path, &order("one"), None).await;
    let cut = exchange(address, &path, &order("two"), Some("truncate")).await;
    let body = |response: &str| response.split_once("\r\n\r\n").unwrap().1.len();
    let length = |response: &str| -> usize {
        let lower = response.to_ascii_lowercase();
        let line = lower.lines().find_map(|it| it.strip_prefix("content-length: "));
        line.unwrap().parse().unwrap()
    };
    assert_eq!(body(&whole), length(&whole));
    assert_eq!((body(&cut), length(&cut)), (length(&whole) / 2, length(&whole)));
    assert_eq!(names(&emulator).await, ["two", "one"], "the change was made");
}

#[tokio::test]
async fn a_response_comes_late() {
    let emulator = Emulator::start().await;
    let path = emulator.templates();
    let started = Instant::now();
    let created = emulator.call_with(Method::POST, &path, &order("one"), Some("delay=1s")).await;
    created.expect_success();
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn every_failure_can_be_provoked() {
    let emulator = Emulator::start().await;
    let path = emulator.templates();
    for failure in failures::all() {
        let fault = format!("error={}", failure.number());
        let response = emulator.call_with(Method::POST, &path, &order("one"), Some(&fault)).await;
        let place = format!("{fault}: {response:?}");
        assert_eq!(response.status.as_u16(), failure.status, "{place}");
        let error = response.json()["error"].clone();
        assert_eq!(error["code"], failure.code, "{place}");
        assert_eq!(error["error_subcode"], json!(failure.subcode), "{place}");
        assert_eq!(error["type"], failure.kind, "{place}");
        assert_eq!(error["is_transient"], failure.is_transient, "{place}");
        assert_eq!(error["error_user_title"], failure.title, "{place}");
        assert_eq!(error["galley_problem"], "provoked-failure", "{place}");
        let usage = response.header("x-business-use-case-usage").map(str::to_owned);
        assert_eq!(usage.is_some(), failure.is_throttling, "{place}");
        if let Some(usage) = usage {
            let usage: Value = serde_json::from_str(&usage).unwrap();
            let [usage] = &usage[emulator.account.to_string()].as_array().unwrap()[..] else {
                panic!("{usage}")
            };
            assert_eq!(usage["call_count"], 100);
            assert!(usage["estimated_time_to_regain_access"].as_u64() > Some(0));
        }
    }
    assert_eq!(names(&emulator).await, [""; 0], "nothing was created");
}

#[tokio::test]
async fn a_fault_strikes_its_call_and_its_names_the_given_number_of_times() {
    let emulator = Emulator::start().await;
    let id = emulator.create_named("first").await;
    let node = format!("/v23.0/{id}");
    let list = emulator.templates();
    let uploads = "/v23.0/app/uploads?file_length=8&file_type=image/png".to_owned();
    let edit = json!({"components": [{"type": "BODY", "text": "Your order is on its way."}]});
    let messages = format!("/v23.0/{}/messages", super::emulator::PHONE);
    let send = message("first", &[]);
    let delete = format!("{list}?name=first");
    for (call, method, path, body) in [
        ("read", Method::GET, &node, &Value::Null),
        ("list", Method::GET, &list, &Value::Null),
        ("edit", Method::POST, &node, &edit),
        ("upload", Method::POST, &uploads, &Value::Null),
        ("send", Method::POST, &messages, &send),
        ("create", Method::POST, &list, &order("second")),
        ("delete", Method::DELETE, &delete, &Value::Null),
    ] {
        let mut fault = json!({"call": call, "times": 2, "kind": "error", "code": 80_008});
        if !["list", "upload"].contains(&call) {
            let mut other = fault.clone();
            other["name"] = json!("another_*");
            emulator.add_fault(&other).await;
            fault["name"] = json!(if call == "create" { "sec*" } else { "fir*" });
        }
        emulator.add_fault(&fault).await;
        for _ in 0..2 {
            let struck = emulator.call(method.clone(), path, body).await;
            assert_eq!(struck.json()["error"]["code"], 80_008, "{call}: {struck:?}");
        }
        emulator.call(method, path, body).await.expect_success();
    }
    let faults = emulator.store.faults(emulator.account).await.unwrap();
    let matched: Vec<u64> = faults.iter().map(|it| it.counted.matched).collect();
    assert_eq!(matched, [0, 2, 2, 0, 2, 2, 0, 2, 0, 2, 0, 2]);
}

#[tokio::test]
async fn the_header_of_a_normal_account_is_ignored_and_an_invalid_one_refused() {
    let emulator = Emulator::start().await;
    let path = emulator.templates();
    let invalid = emulator.call_with(Method::GET, &path, &Value::Null, Some("explode")).await;
    let error = invalid.expect_error(400, 100, None);
    let text = error["error_user_msg"].as_str().unwrap();
    assert!(text.contains("the fault is not one of error, delay, close_before"), "{text}");
    let request = axum::http::Request::get("/v23.0/1")
        .header("authorization", format!("Bearer {}", super::emulator::NORMAL))
        .header("galley-fault", "close_before")
        .body(axum::body::Body::empty())
        .unwrap();
    emulator.send(request).await.expect_error(400, 100, Some(33));
}
