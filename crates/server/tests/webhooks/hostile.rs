//! Receivers that are broken or mean harm: each costs an attempt, and no more.

use std::time::Duration;

use super::receiver::{HASTY, OK, PATIENT, Receiver, Reply, failure, nearby, ok, status};

#[tokio::test]
async fn a_receiver_that_never_answers_costs_the_timeout() {
    let silent = Receiver::start(vec![vec![Reply::Say(String::new())]]).await;
    let failure = failure(&nearby(HASTY), &silent.url()).await;
    assert_eq!(failure.kind.as_str(), "timeout");
    assert_eq!(failure.to_string(), "timeout: The receiver did not answer within 50ms.");
}

#[tokio::test]
async fn where_nobody_listens_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(failure(&nearby(PATIENT), &url).await.kind.as_str(), "unreachable");
}

#[tokio::test]
async fn an_end_before_the_answer_is_broken_and_is_not_tried_again() {
    for reply in [
        Reply::SayAndClose(""),
        Reply::Reset,
        Reply::SayAndClose("HTTP/1.1 200 OK\r\nContent-"),
        Reply::SayAndClose("SSH-2.0-OpenSSH_9.2\r\n"),
        Reply::SayAndClose("HTTP/1.1 200 OK\r\nBad Header: x\r\n\r\n"),
        Reply::SayAndClose("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    ] {
        let receiver = Receiver::start(vec![vec![reply.clone()], vec![ok()]]).await;
        let failure = failure(&nearby(PATIENT), &receiver.url()).await;
        assert_eq!(failure.kind.as_str(), "broken", "{reply:?}");
        assert_eq!(receiver.connections(), 1, "{reply:?}");
    }
}

#[tokio::test]
async fn a_header_without_end_is_cut_off() {
    for again in ["X-More: and more\r\n", "and more ", "\r\n"] {
        let first = if again == "\r\n" { "" } else { "HTTP/1.1 200 OK\r\nX: y" };
        let receiver = Receiver::start(vec![vec![Reply::Endless(first, again)]]).await;
        let failure = failure(&nearby(PATIENT), &receiver.url()).await;
        assert_eq!(failure.kind.as_str(), "broken", "{again:?}");
    }
}

#[tokio::test]
async fn interim_answers_without_end_cost_the_timeout() {
    let interim = Reply::Endless("", "HTTP/1.1 100 Continue\r\n\r\n");
    let receiver = Receiver::start(vec![vec![interim]]).await;
    assert_eq!(failure(&nearby(HASTY), &receiver.url()).await.kind.as_str(), "timeout");
}

#[tokio::test]
async fn a_body_without_end_is_left_unread_and_its_connection_dropped() {
    for (header, again) in [
        ("Content-Length: 10737418240", "0123456789abcdef"),
        ("Transfer-Encoding: chunked", "10\r\n0123456789abcdef\r\n"),
        ("Connection: keep-alive", "0123456789abcdef"),
        ("Transfer-Encoding: chunked", "this is no chunk\r\n"),
        ("Transfer-Encoding: chunked", "ffffffffffffffffff\r\n"),
    ] {
        let first = format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n");
        let endless = Reply::Endless(first.leak(), again);
        let receiver = Receiver::start(vec![vec![endless], vec![ok()]]).await;
        let outgoing = nearby(PATIENT);
        assert_eq!(status(&outgoing, &receiver.url()).await, 200, "{header} {again}");
        assert_eq!(status(&outgoing, &receiver.url()).await, 200, "{header} {again}");
        assert_eq!(receiver.connections(), 2, "{header} {again}");
    }
}

#[tokio::test]
async fn a_body_that_stops_half_way_changes_nothing_about_the_status() {
    let half = "HTTP/1.1 410 Gone\r\nContent-Length: 10\r\n\r\n01234".to_owned();
    let receiver = Receiver::start(vec![vec![Reply::Say(half)], vec![ok()]]).await;
    // The deadline comes while the rest is waited for, and must not take the status away.
    let outgoing = nearby(Duration::from_millis(500));
    assert_eq!(status(&outgoing, &receiver.url()).await, 410);
    assert_eq!(status(&outgoing, &receiver.url()).await, 200);
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_not_taken_for_the_next() {
    let both = format!("{OK}HTTP/1.1 500 Forged\r\nContent-Length: 0\r\n\r\n");
    let receiver = Receiver::start(vec![vec![Reply::Say(both)], vec![ok()]]).await;
    let outgoing = nearby(PATIENT);
    assert_eq!(status(&outgoing, &receiver.url()).await, 200);
    assert_eq!(status(&outgoing, &receiver.url()).await, 200);
    assert_eq!(receiver.connections(), 2);
}
