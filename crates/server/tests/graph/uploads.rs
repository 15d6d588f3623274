//! Samples of attachments: announced, sent in pieces, shown and served.

use std::{
    future::{pending, ready},
    io,
    pin::Pin,
    task::{self, Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{Method, Request, header},
};
use galley_server::{Clock as _, Limits};
use galley_store::{BeginUploadOutcome, NewUpload};
use hyper::body::Frame;
use serde_json::{Value, json};

use super::service::{Answer, PUBLIC, STRANGER, Service, TOKEN, hello};

pub(crate) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and more of the picture";

pub(crate) async fn begin(service: &Service, length: usize) -> String {
    let path =
        format!("/v23.0/12345/uploads?file_name=a.png&file_length={length}&file_type=image/png");
    let begun = service.call(Method::POST, &path, &Value::Null).await.good();
    let id = begun["id"].as_str().unwrap();
    assert!(id.starts_with("upload:"), "{id}");
    id.to_owned()
}

pub(crate) async fn send(
    service: &Service,
    id: &str,
    offset: Option<&str>,
    bytes: &[u8],
) -> Answer {
    let mut request = Request::builder().method(Method::POST).uri(format!("/v23.0/{id}"));
    if let Some(offset) = offset {
        request = request.header("file_offset", offset);
    }
    // As Meta's pages have it, for uploads alone.
    let request = request.header(header::AUTHORIZATION, format!("OAuth {TOKEN}"));
    let request = request.header(header::CONTENT_TYPE, "image/png");
    service.send(request.body(Body::from(bytes.to_vec())).unwrap()).await
}

pub(crate) async fn fetch(service: &Service, address: &str) -> Answer {
    let path = address.strip_prefix(PUBLIC).unwrap();
    service.send(Request::builder().uri(path).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_sample_is_uploaded_shown_with_its_template_and_served_to_anybody() {
    let service = Service::start().await;
    let id = begin(&service, PNG.len()).await;
    let sent = send(&service, &id.replace(':', "%3A"), Some("0"), PNG).await.good();
    let handle = sent["h"].as_str().unwrap();
    assert!(handle.starts_with("4::"), "{handle}");
    let mut document = hello("picture");
    let header =
        json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}});
    document["components"].as_array_mut().unwrap().insert(0, header);
    let template = service.create(&document).await.good();
    let read = service.get(&format!("/v23.0/{}", template["id"].as_str().unwrap())).await.good();
    let address = read["components"][0]["example"]["header_handle"][0].as_str().unwrap();
    assert!(address.starts_with(&format!("{PUBLIC}/media/")), "{address}");
    let served = fetch(&service, address).await;
    assert_eq!((served.status.as_u16(), &*served.bytes), (200, PNG));
    assert_eq!(served.headers[header::CONTENT_TYPE], "image/png");
    assert_eq!(served.headers["x-content-type-options"], "nosniff");
    assert_eq!(served.headers[header::CACHE_CONTROL], "public, max-age=300");
    assert_eq!(fetch(&service, &format!("{PUBLIC}/media/nothing")).await.status, 404);
}

#[tokio::test]
async fn a_handle_from_elsewhere_is_shown_as_it_is() {
    let service = Service::start().await;
    let mut document = hello("picture");
    let header =
        json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::aW1n"]}});
    document["components"].as_array_mut().unwrap().push(header);
    let template = service.create(&document).await.good();
    let read = service.get(&format!("/v23.0/{}", template["id"].as_str().unwrap())).await.good();
    assert_eq!(read["components"][1]["example"]["header_handle"], json!(["4::aW1n"]));
}

#[tokio::test]
async fn a_file_comes_in_pieces_and_goes_on_where_it_stopped() {
    let service = Service::start().await;
    let id = begin(&service, PNG.len()).await;
    let progress = |at: usize| json!({"id": id, "file_offset": at});
    assert_eq!(service.get(&format!("/v23.0/{id}")).await.good(), progress(0));
    assert_eq!(send(&service, &id, None, &PNG[..10]).await.good(), progress(10));
    assert_eq!(service.get(&format!("/v23.0/{id}")).await.good(), progress(10));
    for odd in ["0", "11"] {
        let error = send(&service, &id, Some(odd), &PNG[10..]).await.refusal(400, 100, None);
        assert!(error["message"].as_str().unwrap().contains("file_offset: 10"), "{error}");
    }
    send(&service, &id, Some("x"), &PNG[10..]).await.refusal(400, 100, None);
    send(&service, &id, Some("10"), PNG).await.refusal(413, 100, None);
    let sent = send(&service, &id, Some("10"), &PNG[10..]).await.good();
    assert!(sent["h"].is_string(), "{sent}");
}

#[tokio::test]
async fn a_large_file_is_taken_whole() {
    let service = Service::start().await;
    let mut bytes = PNG.to_vec();
    bytes.extend((0..1_500_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]));
    let id = begin(&service, bytes.len()).await;
    let handle = send(&service, &id, Some("0"), &bytes).await.good()["h"].clone();
    let name = handle.as_str().unwrap().strip_prefix("4::galley.").unwrap();
    let served = fetch(&service, &format!("{PUBLIC}/media/{name}")).await;
    assert!(served.bytes == bytes, "{} bytes", served.bytes.len());
    assert_eq!(served.headers[header::CONTENT_TYPE], "image/png");
}

#[tokio::test]
async fn what_cannot_be_a_sample_is_not_begun() {
    let service = Service::start().await;
    for query in [
        "",
        "file_length=10",
        "file_type=image/png",
        "file_length=0&file_type=image/png",
        "file_length=x&file_type=image/png",
        "file_length=99999999999&file_type=image/png",
        "file_length=10&file_type=text/html",
    ] {
        let path = format!("/v23.0/1/uploads?{query}");
        service.call(Method::POST, &path, &Value::Null).await.refusal(400, 100, None);
    }
    let body = json!({"file_length": 3, "file_type": "IMAGE/PNG", "file_name": "a.png"});
    service.call(Method::POST, "/v23.0/1/uploads", &body).await.good();
}

#[tokio::test]
async fn an_upload_is_its_accounts_alone() {
    let service = Service::start().await;
    let id = begin(&service, PNG.len()).await;
    let path = format!("/v23.0/{id}");
    for method in [Method::GET, Method::POST, Method::DELETE] {
        let answer = service.call_as(STRANGER, method, &path, &json!("a")).await;
        answer.refusal(400, 100, Some(33));
    }
    service.get("/v23.0/upload:unknown").await.refusal(400, 100, Some(33));
    assert!(send(&service, &id, None, PNG).await.good()["h"].is_string());
}

/// An upload that was announced to the store itself, where the service has no time for that.
async fn announced(service: &Service, id: &str, length: usize) -> String {
    let new = NewUpload {
        account: service.shop,
        id: id.to_owned(),
        handle: id.repeat(32),
        file_name: String::new(),
        file_type: "image/png".to_owned(),
        length: length as u64,
        room: 1 << 20,
        at: service.clock.now(),
    };
    assert_eq!(service.store.begin_upload(new).await.unwrap(), BeginUploadOutcome::Begun);
    format!("upload:{id}")
}

/// The first bytes of a body, and then the others, once they come.
struct Half {
    first: Option<&'static [u8]>,
    others: Option<Others>,
}

type Others = Pin<Box<dyn Future<Output = io::Result<&'static [u8]>> + Send>>;

impl Half {
    fn and(others: impl Future<Output = io::Result<&'static [u8]>> + Send + 'static) -> Body {
        Body::new(Self { first: Some(&PNG[..10]), others: Some(Box::pin(others)) })
    }
}

impl hyper::body::Body for Half {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = |bytes| Frame::data(Bytes::from_static(bytes));
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(frame(first))));
        }
        let Some(others) = &mut self.others else { return Poll::Ready(None) };
        let others = task::ready!(others.as_mut().poll(context));
        self.others = None;
        Poll::Ready(Some(others.map(frame)))
    }
}

async fn send_slowly(service: &Service, id: &str, body: Body) -> Answer {
    let request = Request::builder().method(Method::POST).uri(format!("/v23.0/{id}"));
    let request = request.header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
    service.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn what_came_before_a_connection_broke_or_stalled_is_kept() {
    // Nobody waits for bytes that are not there.
    let limits = Limits { body: Duration::ZERO, ..Limits::default() };
    let service = Service::start_within(limits).await;
    let broken = Half::and(ready(Err(io::ErrorKind::ConnectionReset.into())));
    for (id, body, status) in [("b", broken, 400), ("s", Half::and(pending()), 408)] {
        let id = announced(&service, id, PNG.len()).await;
        let refused = send_slowly(&service, &id, body).await;
        let message = refused.refusal(status, 100, None)["message"].to_string();
        assert!(message.contains("file_offset: 10"), "{message}");
        let there = service.get(&format!("/v23.0/{id}")).await.good();
        assert_eq!(there["file_offset"], 10);
        assert!(send(&service, &id, Some("10"), &PNG[10..]).await.good()["h"].is_string());
    }
}

#[tokio::test]
async fn an_upload_may_take_longer_than_a_request() {
    let limits = Limits { body: Duration::from_mins(2), ..Limits::default() };
    let later = limits.request * 3;
    let service = Service::start_within(limits).await;
    let id = announced(&service, "u", PNG.len()).await;
    tokio::time::pause();
    let body = Half::and(async move {
        tokio::time::advance(later).await;
        tokio::time::resume();
        Ok(&PNG[10..])
    });
    assert!(send_slowly(&service, &id, body).await.good()["h"].is_string());
}

#[tokio::test]
async fn a_file_of_another_type_than_announced_is_refused_and_forgotten() {
    let service = Service::start().await;
    let id = begin(&service, 10).await;
    let refused = send(&service, &id, None, b"%PDF-1.7 a").await.refusal(400, 100, None);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("image/png") && message.contains("application/pdf"), "{message}");
    service.get(&format!("/v23.0/{id}")).await.refusal(400, 100, Some(33));
}

#[tokio::test]
async fn an_upload_can_be_taken_back_until_a_template_names_it() {
    let service = Service::start().await;
    let id = begin(&service, PNG.len()).await;
    send(&service, &id, None, &PNG[..10]).await.good();
    let path = format!("/v23.0/{id}");
    let cancel = || service.call(Method::DELETE, &path, &Value::Null);
    assert_eq!(cancel().await.good(), json!({"success": true}));
    cancel().await.refusal(400, 100, Some(33));
    service.get(&path).await.refusal(400, 100, Some(33));
    // What is whole goes as well, but for what a template has named.
    for named in [false, true] {
        let id = begin(&service, PNG.len()).await;
        let handle = send(&service, &id, None, PNG).await.good()["h"].clone();
        let mut document = hello("named");
        let example = json!({"header_handle": [handle]});
        let header = json!({"type": "HEADER", "format": "IMAGE", "example": example});
        document["components"].as_array_mut().unwrap().insert(0, header);
        if named {
            service.create(&document).await.good();
        }
        let gone = service.call(Method::DELETE, &format!("/v23.0/{id}"), &Value::Null).await;
        assert_eq!(gone.status, if named { 400 } else { 200 }, "{}", gone.text());
    }
    // Templates are not deleted this way.
    let template = service.made("hello", "en_US").await;
    let path = format!("/v23.0/{template}");
    let refused = service.call(Method::DELETE, &path, &Value::Null).await;
    let message = refused.refusal(400, 100, Some(33))["message"].to_string();
    assert!(message.contains("hsm_id"), "{message}");
    service.get(&path).await.good();
}

#[tokio::test]
async fn a_small_file_with_a_long_name_counts_with_both() {
    let limits = Limits { media_bytes: 2 * 4_096 + 128 + 60, ..Limits::default() };
    let service = Service::start_within(limits).await;
    let announce = |name: String| {
        let path = format!("/v23.0/1/uploads?file_length=1&file_type=image/png&file_name={name}");
        let service = &service;
        async move { service.call(Method::POST, &path, &Value::Null).await }
    };
    // 1020 bytes, of which 128 are kept, or fewer: not in the middle of a character.
    announce("%F0%9F%98%80".repeat(255)).await.good();
    let refused = announce("a".repeat(61)).await.refusal(400, 100, None);
    assert!(refused["message"].as_str().unwrap().contains("media_mib_per_account"), "{refused}");
    // Signs that nobody sees are not kept.
    announce("a".repeat(60) + "%00%0A").await.good();
}
