//! The memory of bodies: what clients have not read, and what they send in small pieces.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{Method, StatusCode},
    response::Response,
};
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use serde_json::{Value, json};

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, path, post, request};
use crate::harness::TestResponse;

/// A template of this many bytes.
fn large(name: &str, bytes: usize) -> Value {
    let mut document = hello(name);
    document["components"][0]["example"]["body_text"] = json!([["x".repeat(bytes)]]);
    document
}

#[tokio::test]
async fn an_account_that_does_not_read_its_responses_is_refused_until_it_does() {
    let app = TestApp::start().await;
    app.account("other", &["2"], "key-of-the-other", "token-of-the-other").await;
    let created = app.create(&large("large", 250_000)).await.json();
    let one = format!("{}/{}", path(PHONE, KEY), created["id"].as_str().unwrap());
    let show = async || app.handle(request(Method::GET, &one, TOKEN, "")).await;
    let mut other = post(large("others", 200_000).to_string());
    *other.uri_mut() = path("2", "key-of-the-other").parse().unwrap();
    other.headers_mut().insert("authorization", "Bearer token-of-the-other".parse().unwrap());
    assert_eq!(app.send(other).await.status, 201);
    let small = app.create_named("small").await;
    tokio::time::pause();
    let mut unread: Vec<Response> = Vec::new();
    let refused = loop {
        let response = show().await;
        if response.status() != StatusCode::OK {
            break TestResponse::read(response).await;
        }
        unread.push(response);
        assert!(unread.len() < 1_000, "the bodies in memory have no limit");
    };
    // 32 MiB of 245 KiB each.
    assert_eq!(unread.len(), 133);
    refused.problem(503, "too-much-in-flight");
    assert_eq!(refused.header("retry-after"), Some("1"));

    let write = app.create(&hello("write")).await;
    write.problem(503, "too-much-in-flight");
    let metrics = app.send(request(Method::GET, "/metrics", "", "")).await;
    let counted = "galley_http_throttled_total{limit=\"response-bytes\"} 2\n";
    assert!(metrics.text().contains(counted), "{}", metrics.text());

    assert_eq!(app.show(&small).await.status, 200, "small responses are sent");
    let others = path("2", "key-of-the-other");
    let list = app.send(request(Method::GET, &others, "token-of-the-other", "")).await;
    assert!(list.status == 200 && list.bytes.len() > 200_000, "other accounts are served");

    // A body counts until its last part is dropped.
    let mut first = unread.swap_remove(0).into_body();
    let frame = first.frame().await.unwrap().unwrap().into_data().unwrap();
    drop(first);
    let part = frame.slice(..1);
    drop(frame);
    assert_eq!(show().await.status(), 503);
    drop(part);
    assert_eq!(show().await.status(), 200);
}

/// A body of which only a part arrives.
struct Incomplete(Vec<Bytes>);

impl HttpBody for Incomplete {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.pop().map_or(Poll::Pending, |frame| Poll::Ready(Some(Ok(Frame::data(frame)))))
    }
}

#[tokio::test]
async fn an_account_that_sends_many_large_bodies_at_a_time_is_refused() {
    let app = TestApp::start().await;
    assert_eq!(app.create(&hello("first")).await.status, 201);
    let incomplete = || Body::new(Incomplete(vec![Bytes::from(vec![b' '; 20_000]); 2]));
    tokio::time::pause();
    // 32 MiB of 256 KiB each: the length is not declared, so the maximum is expected.
    let mut waiting: Vec<_> = (0..128).map(|_| Box::pin(app.handle(post(incomplete())))).collect();
    for call in &mut waiting {
        let is_pending = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending()));
        assert!(is_pending.await);
        // Otherwise the runtime lets the calls of one task wait after some of them.
        tokio::task::yield_now().await;
    }
    app.send(post(incomplete())).await.problem(503, "too-much-in-flight");
    let metrics = app.send(request(Method::GET, "/metrics", "", "")).await;
    let counted = "galley_http_throttled_total{limit=\"request-bytes\"} 1\n";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
    drop(waiting);
    app.send(post(incomplete())).await.problem(408, "body-timeout");
}

/// A body in frames of one byte. Counts the frames that are in memory.
struct SingleBytes {
    text: Vec<u8>,
    sent: usize,
    alive: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

/// The byte of a frame.
struct SingleByte([u8; 1], Arc<AtomicUsize>);

impl AsRef<[u8]> for SingleByte {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for SingleByte {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HttpBody for SingleBytes {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(byte) = self.text.get(self.sent).copied() else { return Poll::Ready(None) };
        self.sent += 1;
        let alive = self.alive.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(alive, Ordering::Relaxed);
        let byte = SingleByte([byte], Arc::clone(&self.alive));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(byte)))))
    }
}

#[tokio::test]
async fn a_body_in_single_bytes_is_gathered_in_one_buffer() {
    let app = TestApp::start().await;
    let (alive, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let text = large("gathered", 100_000).to_string().into_bytes();
    let body = SingleBytes { text, sent: 0, alive: Arc::clone(&alive), most: Arc::clone(&most) };
    let created = app.send(post(Body::new(body))).await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(most.load(Ordering::Relaxed), 1, "frames are in memory at the same time");
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}
