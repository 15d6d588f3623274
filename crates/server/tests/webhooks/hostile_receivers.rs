//! Broken and hostile receivers: each costs one attempt and nothing more.

use std::time::Duration;

use galley_server::delivery::{ResponseStart, WebhookClient as _};

use super::receiver::{
    LONG_TIMEOUT, OK, Reply, SHORT_TIMEOUT, ScriptedReceiver, account, failure, ok, private_client,
    private_guard, status,
};

#[tokio::test]
async fn a_request_to_a_silent_receiver_times_out() {
    let silent = ScriptedReceiver::start(vec![vec![Reply::Send(String::new())]]).await;
    let failure = failure(&private_client(SHORT_TIMEOUT), &silent.url()).await;
    assert_eq!(failure.kind.as_str(), "timeout");
    assert_eq!(failure.to_string(), "timeout: The server did not respond within 50ms.");
}

#[tokio::test]
async fn a_port_without_a_listener_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(failure(&private_client(LONG_TIMEOUT), &url).await.kind.as_str(), "unreachable");
}

#[tokio::test]
async fn a_connection_that_ends_before_the_response_fails_without_a_second_try() {
    for reply in [
        Reply::SendAndClose(""),
        Reply::Reset,
        Reply::SendAndClose("HTTP/1.1 200 OK\r\nContent-"),
        Reply::SendAndClose("SSH-2.0-OpenSSH_9.2\r\n"),
        Reply::SendAndClose("HTTP/1.1 200 OK\r\nBad Header: x\r\n\r\n"),
        Reply::SendAndClose("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    ] {
        let receiver = ScriptedReceiver::start(vec![vec![reply.clone()], vec![ok()]]).await;
        let failure = failure(&private_client(LONG_TIMEOUT), &receiver.url()).await;
        assert_eq!(failure.kind.as_str(), "broken", "{reply:?}");
        assert_eq!(receiver.connections(), 1, "{reply:?}");
    }
}

#[tokio::test]
async fn an_endless_response_header_fails() {
    for repeated in ["X-More: and more\r\n", "and more ", "\r\n"] {
        let first = if repeated == "\r\n" { "" } else { "HTTP/1.1 200 OK\r\nX: y" };
        let receiver = ScriptedReceiver::start(vec![vec![Reply::Endless(first, repeated)]]).await;
        let failure = failure(&private_client(LONG_TIMEOUT), &receiver.url()).await;
        assert_eq!(failure.kind.as_str(), "broken", "{repeated:?}");
    }
}

#[tokio::test]
async fn endless_interim_responses_fail_after_64_kib() {
    for interim in
        ["HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"]
    {
        let endless = Reply::Endless("", interim);
        let receiver = ScriptedReceiver::start(vec![vec![endless]]).await;
        // Without the limit, this test waits for the long timeout.
        let failure = failure(&private_client(LONG_TIMEOUT), &receiver.url()).await;
        assert_eq!(
            failure.to_string(),
            "broken: The server sent more than 64 KiB before its final status.",
        );
    }
}

#[tokio::test]
async fn a_few_interim_responses_precede_the_final_status() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(1_000);
    let receiver =
        ScriptedReceiver::start(vec![vec![Reply::Send(format!("{interim}{OK}")), ok()]]).await;
    let client = private_client(LONG_TIMEOUT);
    assert_eq!(status(&client, &receiver.url()).await, 200);
    assert_eq!(status(&client, &receiver.url()).await, 200, "each request has its own limit");
}

#[tokio::test]
async fn an_endless_body_is_not_read_and_its_connection_is_closed() {
    for (header, repeated) in [
        ("Content-Length: 10737418240", "0123456789abcdef"),
        ("Transfer-Encoding: chunked", "10\r\n0123456789abcdef\r\n"),
        ("Connection: keep-alive", "0123456789abcdef"),
        ("Transfer-Encoding: chunked", "this is not a chunk\r\n"),
        ("Transfer-Encoding: chunked", "ffffffffffffffffff\r\n"),
    ] {
        let first = format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n");
        let endless = Reply::Endless(first.leak(), repeated);
        let receiver = ScriptedReceiver::start(vec![vec![endless], vec![ok()]]).await;
        let client = private_client(LONG_TIMEOUT);
        assert_eq!(status(&client, &receiver.url()).await, 200, "{header} {repeated}");
        assert_eq!(status(&client, &receiver.url()).await, 200, "{header} {repeated}");
        assert_eq!(receiver.connections(), 2, "{header} {repeated}");
    }
}

/// The beginning of a response whose first chunk size has any number of leading zeros.
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_chunk_size_with_very_many_zeros_costs_the_connection() {
    let zeros = format!("{}\r\n\r\n", "0".repeat(300 * 1_024));
    let reply = Reply::SendInTwo(CHUNKED, zeros);
    let receiver = ScriptedReceiver::start(vec![vec![reply, ok()], vec![ok()]]).await;
    let client = private_client(LONG_TIMEOUT);
    assert_eq!(status(&client, &receiver.url()).await, 200);
    assert_eq!(status(&client, &receiver.url()).await, 200);
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn an_endless_chunk_size_ends_a_verification_request() {
    let reply = Reply::SendInTwo(CHUNKED, "0".repeat(300 * 1_024));
    let receiver = ScriptedReceiver::start(vec![vec![reply]]).await;
    let target = private_guard().resolve(account(), &receiver.url()).await.unwrap();
    // Without the limit, this test waits for the long timeout and fails.
    let response = private_client(LONG_TIMEOUT).get(target).await.unwrap();
    assert_eq!(response, ResponseStart { status: 200, body: Vec::new() });
}

#[tokio::test]
async fn a_truncated_body_does_not_change_the_status() {
    let half = "HTTP/1.1 410 Gone\r\nContent-Length: 10\r\n\r\n01234".to_owned();
    let receiver = ScriptedReceiver::start(vec![vec![Reply::Send(half)], vec![ok()]]).await;
    // The deadline passes while the client waits for the rest of the body. The status remains.
    let client = private_client(Duration::from_millis(500));
    assert_eq!(status(&client, &receiver.url()).await, 410);
    assert_eq!(status(&client, &receiver.url()).await, 200);
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn an_unrequested_response_is_not_used_for_the_next_request() {
    let both = format!("{OK}HTTP/1.1 500 Forged\r\nContent-Length: 0\r\n\r\n");
    let receiver = ScriptedReceiver::start(vec![vec![Reply::Send(both)], vec![ok()]]).await;
    let client = private_client(LONG_TIMEOUT);
    assert_eq!(status(&client, &receiver.url()).await, 200);
    assert_eq!(status(&client, &receiver.url()).await, 200);
    assert_eq!(receiver.connections(), 2);
}
