//! The HTTP client with well-behaved receivers: requests, responses and connection reuse.

use std::time::Duration;

use galley_server::delivery::{HttpWebhookClient, RetryAfter, SsrfGuard, SsrfPolicy};
use rustls::RootCertStore;

use super::receiver::{
    FixedResolver, LONG_TIMEOUT, Reply, ScriptedReceiver, failure, ok, private_client, response,
    status,
};

fn send(text: &str) -> Reply {
    Reply::Send(text.to_owned())
}

/// A response with this status and an empty body.
fn with_status(status: u16, headers: &str) -> Reply {
    Reply::Send(format!("HTTP/1.1 {status} Reason\r\n{headers}Content-Length: 0\r\n\r\n"))
}

#[tokio::test]
async fn a_request_arrives_unchanged_with_host_and_user_agent() {
    let receiver = ScriptedReceiver::start(vec![vec![ok()]]).await;
    let url = format!("http://Hooks.Example.com:{}/a/b?c=d%20e", receiver.port());
    assert_eq!(status(&private_client(LONG_TIMEOUT), &url).await, 200);
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "POST /a/b?c=d%20e HTTP/1.1\r\nwebhook-id: msg_1\r\nhost: hooks.example.com:{}\r\n\
         user-agent: Galley/{version}\r\ncontent-length: 9\r\n\r\n{{\"seq\":1}}",
        receiver.port()
    );
    assert_eq!(receiver.requests(), [expected]);
}

#[tokio::test]
async fn every_status_is_returned() {
    for expected in [200, 204, 400, 404, 410, 418, 429, 500, 502, 503, 599] {
        let receiver = ScriptedReceiver::start(vec![vec![with_status(expected, "")]]).await;
        assert_eq!(
            response(&private_client(LONG_TIMEOUT), &receiver.url()).await,
            (expected, None)
        );
    }
}

#[tokio::test]
async fn both_forms_of_retry_after_are_returned() {
    let after = RetryAfter::After(Duration::from_mins(2));
    let at = RetryAfter::At("2030-01-02T03:04:05Z".parse().unwrap());
    for (status, header, expected) in [
        (429, "Retry-After: 120\r\n", Some(after)),
        (503, "Retry-After: Wed, 02 Jan 2030 03:04:05 GMT\r\n", Some(at)),
        (503, "Retry-After: when it suits\r\n", None),
    ] {
        let receiver = ScriptedReceiver::start(vec![vec![with_status(status, header)]]).await;
        assert_eq!(
            response(&private_client(LONG_TIMEOUT), &receiver.url()).await,
            (status, expected)
        );
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let private = ScriptedReceiver::start(vec![vec![ok()]; 8]).await;
    for code in [301, 302, 303, 307, 308] {
        let location = format!("Location: {}\r\n", private.url());
        let receiver = ScriptedReceiver::start(vec![vec![with_status(code, &location)]]).await;
        assert_eq!(status(&private_client(LONG_TIMEOUT), &receiver.url()).await, code);
        assert_eq!(receiver.connections(), 1);
    }
    assert_eq!(private.connections(), 0);
}

#[tokio::test]
async fn a_connection_is_reused_for_the_same_receiver() {
    let body = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nthanks";
    let chunks = "HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let failed = with_status(500, "");
    let receiver =
        ScriptedReceiver::start(vec![vec![ok(), send(body), send(chunks), failed, ok()]]).await;
    let client = private_client(LONG_TIMEOUT);
    for expected in [200, 200, 202, 500, 200] {
        assert_eq!(status(&client, &receiver.url()).await, expected);
    }
    assert_eq!(receiver.connections(), 1);
    assert_eq!(receiver.requests().len(), 5);
}

#[tokio::test]
async fn a_connection_is_reused_only_after_a_short_body() {
    for (bytes, connections) in [(64 * 1_024, 1), (64 * 1_024 + 1, 2)] {
        let body = "x".repeat(bytes);
        let long = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{body}");
        let receiver =
            ScriptedReceiver::start(vec![vec![Reply::Send(long), ok()], vec![ok()]]).await;
        let client = private_client(LONG_TIMEOUT);
        for _ in 0..2 {
            assert_eq!(status(&client, &receiver.url()).await, 200);
        }
        assert_eq!(receiver.connections(), connections, "{bytes} bytes");
    }
}

#[tokio::test]
async fn a_connection_is_not_reused_for_another_name_at_the_same_address() {
    let receiver = ScriptedReceiver::start(vec![vec![ok(), ok()]; 2]).await;
    let client = private_client(LONG_TIMEOUT);
    for name in ["one.example.com", "two.example.com", "one.example.com", "two.example.com"] {
        let url = format!("http://{name}:{}/", receiver.port());
        assert_eq!(status(&client, &url).await, 200);
    }
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn a_connection_that_the_receiver_closes_is_not_reused() {
    for last in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n",
    ] {
        let receiver = ScriptedReceiver::start(vec![vec![send(last)], vec![ok()]]).await;
        let client = private_client(LONG_TIMEOUT);
        status(&client, &receiver.url()).await;
        assert_eq!(status(&client, &receiver.url()).await, 200, "{last}");
        assert_eq!(receiver.connections(), 2, "{last}");
    }
}

#[tokio::test]
async fn a_dead_pooled_connection_costs_no_attempt() {
    for dead in [Reply::SendAndClose(""), Reply::Reset] {
        let receiver = ScriptedReceiver::start(vec![vec![ok(), dead], vec![ok()]]).await;
        let client = private_client(LONG_TIMEOUT);
        assert_eq!(status(&client, &receiver.url()).await, 200);
        assert_eq!(status(&client, &receiver.url()).await, 200);
        assert_eq!(receiver.connections(), 2);
        let requests = receiver.requests();
        assert_eq!(requests.len(), 3);
        assert_eq!(requests[1], requests[2], "the client resends the same message");
    }
}

#[tokio::test]
async fn a_pooled_connection_that_breaks_during_the_response_fails_the_attempt() {
    let half = Reply::SendAndClose("HTTP/1.1 20");
    let receiver = ScriptedReceiver::start(vec![vec![ok(), half], vec![ok()]]).await;
    let client = private_client(LONG_TIMEOUT);
    assert_eq!(status(&client, &receiver.url()).await, 200);
    assert_eq!(failure(&client, &receiver.url()).await.kind.as_str(), "broken");
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn a_dead_connection_causes_only_one_resend() {
    let close = || vec![Reply::SendAndClose("")];
    let receiver =
        ScriptedReceiver::start(vec![vec![ok(), Reply::SendAndClose("")], close(), close()]).await;
    let client = private_client(LONG_TIMEOUT);
    assert_eq!(status(&client, &receiver.url()).await, 200);
    assert_eq!(failure(&client, &receiver.url()).await.kind.as_str(), "broken");
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn addresses_are_tried_in_order() {
    // The first address has no listener.
    let receiver = ScriptedReceiver::start(vec![vec![ok()]]).await;
    let guard = SsrfGuard::new(
        SsrfPolicy { allow_private: true },
        FixedResolver::at(&["127.0.0.2", "127.0.0.1"]),
    );
    let client = HttpWebhookClient::new(guard, LONG_TIMEOUT, RootCertStore::empty());
    let url = format!("http://example.com:{}/", receiver.port());
    assert_eq!(status(&client, &url).await, 200);
}

#[tokio::test]
async fn concurrent_requests_all_arrive_over_few_connections() {
    let receiver = ScriptedReceiver::start(vec![vec![ok(); 40]; 40]).await;
    let (client, url) = (std::sync::Arc::new(private_client(LONG_TIMEOUT)), receiver.url());
    for _ in 0..3 {
        let mut posts = tokio::task::JoinSet::new();
        for _ in 0..12 {
            let (client, url) = (client.clone(), url.clone());
            posts.spawn(async move { status(&client, &url).await });
        }
        assert_eq!(posts.join_all().await, [200; 12]);
    }
    assert_eq!(receiver.requests().len(), 36);
    assert!(receiver.connections() < 36, "{} connections", receiver.connections());
}
