//! Messages to receivers that behave: what is sent, what is made of the answer, and connections
//! that are used again.

use std::time::Duration;

use galley_server::delivery::{Guard, HttpOutgoing, RetryAfter, Rules};
use rustls::RootCertStore;

use super::receiver::{Names, PATIENT, Receiver, Reply, answer, failure, nearby, ok, status};

fn say(text: &str) -> Reply {
    Reply::Say(text.to_owned())
}

/// An answer with this status and an empty body.
fn with_status(status: u16, headers: &str) -> Reply {
    Reply::Say(format!("HTTP/1.1 {status} Reason\r\n{headers}Content-Length: 0\r\n\r\n"))
}

#[tokio::test]
async fn a_message_arrives_as_it_was_given_with_who_sends_it() {
    let receiver = Receiver::start(vec![vec![ok()]]).await;
    let url = format!("http://Hooks.Example.com:{}/a/b?c=d%20e", receiver.port());
    assert_eq!(status(&nearby(PATIENT), &url).await, 200);
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "POST /a/b?c=d%20e HTTP/1.1\r\nwebhook-id: msg_1\r\nhost: hooks.example.com:{}\r\n\
         user-agent: Galley/{version}\r\ncontent-length: 9\r\n\r\n{{\"seq\":1}}",
        receiver.port()
    );
    assert_eq!(receiver.requests(), [expected]);
}

#[tokio::test]
async fn every_status_is_an_answer() {
    for expected in [200, 204, 400, 404, 410, 418, 429, 500, 502, 503, 599] {
        let receiver = Receiver::start(vec![vec![with_status(expected, "")]]).await;
        assert_eq!(answer(&nearby(PATIENT), &receiver.url()).await, (expected, None));
    }
}

#[tokio::test]
async fn both_forms_of_retry_after_are_told() {
    let after = RetryAfter::After(Duration::from_mins(2));
    let at = RetryAfter::At("2030-01-02T03:04:05Z".parse().unwrap());
    for (status, header, expected) in [
        (429, "Retry-After: 120\r\n", Some(after)),
        (503, "Retry-After: Wed, 02 Jan 2030 03:04:05 GMT\r\n", Some(at)),
        (503, "Retry-After: when it suits\r\n", None),
    ] {
        let receiver = Receiver::start(vec![vec![with_status(status, header)]]).await;
        assert_eq!(answer(&nearby(PATIENT), &receiver.url()).await, (status, expected));
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let private = Receiver::start(vec![vec![ok()]; 8]).await;
    for code in [301, 302, 303, 307, 308] {
        let location = format!("Location: {}\r\n", private.url());
        let receiver = Receiver::start(vec![vec![with_status(code, &location)]]).await;
        assert_eq!(status(&nearby(PATIENT), &receiver.url()).await, code);
        assert_eq!(receiver.connections(), 1);
    }
    assert_eq!(private.connections(), 0);
}

#[tokio::test]
async fn a_connection_is_used_again_for_the_same_receiver() {
    let body = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nthanks";
    let chunks = "HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let failed = with_status(500, "");
    let receiver = Receiver::start(vec![vec![ok(), say(body), say(chunks), failed, ok()]]).await;
    let outgoing = nearby(PATIENT);
    for expected in [200, 200, 202, 500, 200] {
        assert_eq!(status(&outgoing, &receiver.url()).await, expected);
    }
    assert_eq!(receiver.connections(), 1);
    assert_eq!(receiver.requests().len(), 5);
}

#[tokio::test]
async fn a_connection_is_kept_only_after_a_short_body() {
    for (bytes, connections) in [(64 * 1_024, 1), (64 * 1_024 + 1, 2)] {
        let body = "x".repeat(bytes);
        let long = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{body}");
        let receiver = Receiver::start(vec![vec![Reply::Say(long), ok()], vec![ok()]]).await;
        let outgoing = nearby(PATIENT);
        for _ in 0..2 {
            assert_eq!(status(&outgoing, &receiver.url()).await, 200);
        }
        assert_eq!(receiver.connections(), connections, "{bytes} bytes");
    }
}

#[tokio::test]
async fn a_connection_is_not_used_for_another_name_at_the_same_address() {
    let receiver = Receiver::start(vec![vec![ok(), ok()]; 2]).await;
    let outgoing = nearby(PATIENT);
    for name in ["one.example.com", "two.example.com", "one.example.com", "two.example.com"] {
        let url = format!("http://{name}:{}/", receiver.port());
        assert_eq!(status(&outgoing, &url).await, 200);
    }
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn a_connection_that_the_receiver_gives_up_is_not_kept() {
    for last in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n",
    ] {
        let receiver = Receiver::start(vec![vec![say(last)], vec![ok()]]).await;
        let outgoing = nearby(PATIENT);
        status(&outgoing, &receiver.url()).await;
        assert_eq!(status(&outgoing, &receiver.url()).await, 200, "{last}");
        assert_eq!(receiver.connections(), 2, "{last}");
    }
}

#[tokio::test]
async fn a_kept_connection_that_was_dead_already_costs_no_attempt() {
    for dead in [Reply::SayAndClose(""), Reply::Reset] {
        let receiver = Receiver::start(vec![vec![ok(), dead], vec![ok()]]).await;
        let outgoing = nearby(PATIENT);
        assert_eq!(status(&outgoing, &receiver.url()).await, 200);
        assert_eq!(status(&outgoing, &receiver.url()).await, 200);
        assert_eq!(receiver.connections(), 2);
        let requests = receiver.requests();
        assert_eq!(requests.len(), 3);
        assert_eq!(requests[1], requests[2], "the very same message again");
    }
}

#[tokio::test]
async fn a_kept_connection_that_breaks_within_its_answer_is_a_failed_attempt() {
    let half = Reply::SayAndClose("HTTP/1.1 20");
    let receiver = Receiver::start(vec![vec![ok(), half], vec![ok()]]).await;
    let outgoing = nearby(PATIENT);
    assert_eq!(status(&outgoing, &receiver.url()).await, 200);
    assert_eq!(failure(&outgoing, &receiver.url()).await.kind.as_str(), "broken");
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn the_retry_after_a_dead_connection_happens_once() {
    let close = || vec![Reply::SayAndClose("")];
    let receiver =
        Receiver::start(vec![vec![ok(), Reply::SayAndClose("")], close(), close()]).await;
    let outgoing = nearby(PATIENT);
    assert_eq!(status(&outgoing, &receiver.url()).await, 200);
    assert_eq!(failure(&outgoing, &receiver.url()).await.kind.as_str(), "broken");
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn addresses_are_tried_in_turn() {
    // Nobody listens at the first.
    let receiver = Receiver::start(vec![vec![ok()]]).await;
    let guard = Guard::new(Rules { allow_private: true }, Names::at(&["127.0.0.2", "127.0.0.1"]));
    let outgoing = HttpOutgoing::new(guard, PATIENT, RootCertStore::empty());
    let url = format!("http://example.com:{}/", receiver.port());
    assert_eq!(status(&outgoing, &url).await, 200);
}

#[tokio::test]
async fn many_at_once_all_arrive() {
    let receiver = Receiver::start(vec![vec![ok(); 40]; 40]).await;
    let (outgoing, url) = (std::sync::Arc::new(nearby(PATIENT)), receiver.url());
    for _ in 0..3 {
        let mut posts = tokio::task::JoinSet::new();
        for _ in 0..12 {
            let (outgoing, url) = (outgoing.clone(), url.clone());
            posts.spawn(async move { status(&outgoing, &url).await });
        }
        assert_eq!(posts.join_all().await, [200; 12]);
    }
    assert_eq!(receiver.requests().len(), 36);
    assert!(receiver.connections() < 36, "{} connections", receiver.connections());
}
