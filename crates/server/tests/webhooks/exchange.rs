//! Whole exchanges, as calls to providers need them: what was sent for certain, and what was not.

use std::time::{Duration, Instant};

use galley_domain::id::AccountId;
use galley_server::delivery::{ExchangeFailure, ExchangeRequest, FailureKind, FullResponse};
use hyper::{
    Method,
    body::Bytes,
    header::{AUTHORIZATION, HeaderValue},
};

use super::receiver::{LONG_TIMEOUT, Reply, SHORT_TIMEOUT, ScriptedReceiver, private_client};

async fn exchange(url: &str, timeout: Duration) -> Result<FullResponse, ExchangeFailure> {
    exchange_by(url, timeout, None).await
}

async fn exchange_by(
    url: &str,
    timeout: Duration,
    send_by: Option<Instant>,
) -> Result<FullResponse, ExchangeFailure> {
    let request = ExchangeRequest {
        account: AccountId::new(1).unwrap(),
        method: Method::DELETE,
        url: url.to_owned(),
        headers: vec![(AUTHORIZATION, HeaderValue::from_static("Bearer t"))],
        body: Bytes::from_static(b"{}"),
        timeout,
        send_by: send_by.map(Into::into),
        max_body_bytes: 1_000_000,
    };
    private_client(LONG_TIMEOUT).exchange(request).await
}

fn body_of(bytes: usize) -> Reply {
    let body = "x".repeat(bytes);
    Reply::Send(format!("HTTP/1.1 200 OK\r\nX-Usage: 7\r\nContent-Length: {bytes}\r\n\r\n{body}"))
}

#[tokio::test]
async fn a_response_is_read_to_its_end() {
    let receiver = ScriptedReceiver::start(vec![vec![body_of(1_000_000)]]).await;
    let response = exchange(&format!("{}?a=b", receiver.url()), LONG_TIMEOUT).await.unwrap();
    assert_eq!((response.status, response.body.len()), (200, 1_000_000));
    assert_eq!(response.headers["x-usage"], "7");
    let request = receiver.requests().remove(0);
    assert!(request.starts_with("DELETE /"), "{request}");
    assert!(request.contains("?a=b HTTP/1.1\r\nauthorization: Bearer t\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{}"), "{request}");
}

#[tokio::test]
async fn a_request_that_may_have_arrived_has_an_unknown_outcome() {
    let (cut_off, too_long) = ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", body_of(1_000_001));
    for reply in [Reply::Reset, Reply::SendAndClose(cut_off), too_long] {
        let receiver = ScriptedReceiver::start(vec![vec![reply]]).await;
        let failure = exchange(&receiver.url(), LONG_TIMEOUT).await.unwrap_err();
        let ExchangeFailure::Unknown(failure) = failure else { panic!("{failure:?}") };
        assert_eq!(failure.kind, FailureKind::Broken);
        assert_eq!(receiver.requests().len(), 1, "an exchange is made once");
    }
    let silent = ScriptedReceiver::start(vec![Vec::new()]).await;
    let failure = exchange(&silent.url(), SHORT_TIMEOUT).await.unwrap_err();
    let ExchangeFailure::Unknown(failure) = failure else { panic!("{failure:?}") };
    assert_eq!(failure.kind, FailureKind::Timeout);
}

#[tokio::test]
async fn a_request_whose_connection_was_opened_too_late_is_not_sent() {
    let receiver = ScriptedReceiver::start(vec![Vec::new(), vec![body_of(2)]]).await;
    let late = exchange_by(&receiver.url(), LONG_TIMEOUT, Some(Instant::now())).await.unwrap_err();
    let ExchangeFailure::NotSent(failure) = late else { panic!("{late:?}") };
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(receiver.requests().is_empty());
    let send_by = Instant::now() + LONG_TIMEOUT;
    exchange_by(&receiver.url(), LONG_TIMEOUT, Some(send_by)).await.unwrap();
}

#[tokio::test]
async fn a_request_without_a_connection_was_not_sent() {
    for (url, kind) in [
        ("http://127.0.0.1:1/", FailureKind::Unreachable),
        ("http://169.254.169.254/", FailureKind::Refused),
    ] {
        let failure = exchange(url, LONG_TIMEOUT).await.unwrap_err();
        let ExchangeFailure::NotSent(failure) = failure else { panic!("{failure:?}") };
        assert_eq!(failure.kind, kind);
    }
}
