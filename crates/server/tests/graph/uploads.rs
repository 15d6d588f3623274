//! Uploads of samples: declared, sent in chunks, resumed, and deleted.

use std::{
    future::{pending, ready},
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{self, Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{Method, Request, header},
};
use galley_server::{Clock as _, Limits};
use galley_store::{Author, BeginUploadOutcome, NewUpload};
use hyper::body::Frame;
use serde_json::{Value, json};

use super::service::{PUBLIC, STRANGER, Service, TOKEN, hello};
use crate::harness::TestResponse;

pub(crate) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and more of the picture";

pub(crate) async fn begin(service: &Service, length: usize) -> String {
    let path =
        format!("/v23.0/12345/uploads?file_name=a.png&file_length={length}&file_type=image/png");
    let begun = service.call(Method::POST, &path, &Value::Null).await.expect_success();
    let id = begun["id"].as_str().unwrap();
    assert!(id.starts_with("upload:"), "{id}");
    id.to_owned()
}

pub(crate) async fn send(
    service: &Service,
    id: &str,
    offset: Option<&str>,
    bytes: &[u8],
) -> TestResponse {
    let mut request = Request::builder().method(Method::POST).uri(format!("/v23.0/{id}"));
    if let Some(offset) = offset {
        request = request.header("file_offset", offset);
    }
    // Meta documents this scheme for uploads.
    let request = request.header(header::AUTHORIZATION, format!("OAuth {TOKEN}"));
    let request = request.header(header::CONTENT_TYPE, "image/png");
    service.send(request.body(Body::from(bytes.to_vec())).unwrap()).await
}

pub(crate) async fn fetch(service: &Service, address: &str) -> TestResponse {
    let path = address.strip_prefix(PUBLIC).unwrap();
    service.send(Request::builder().uri(path).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn an_uploaded_sample_is_shown_with_its_template_and_served_publicly() {
    let service = Service::start().await;
    let id = begin(&service, PNG.len()).await;
    let sent = send(&service, &id.replace(':', "%3A"), Some("0"), PNG).await.expect_success();
    let handle = sent["h"].as_str().unwrap();
    assert!(handle.starts_with("4::"), "{handle}");
    let mut document = hello("picture");
    let header =
        json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}});
    document["components"].as_array_mut().unwrap().insert(0, header);
    let template = service.create(&document).await.expect_success();
    let read =
        service.get(&format!("/v23.0/{}", template["id"].as_str().unwrap())).await.expect_success();
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
async fn a_foreign_handle_is_shown_unchanged() {
    let service = Service::start().await;
    let mut document = hello("picture");
    let header =
        json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::aW1n"]}});
    document["components"].as_array_mut().unwrap().push(header);
    let template = service.create(&document).await.expect_success();
    let read =
        service.get(&format!("/v23.0/{}", template["id"].as_str().unwrap())).await.expect_success();
    assert_eq!(read["components"][1]["example"]["header_handle"], json!(["4::aW1n"]));
}

#[tokio::test]
async fn an_upload_in_chunks_can_be_resumed() {
    let service = Service::start().await;
    let id = begin(&service, PNG.len()).await;
    let progress = |at: usize| json!({"id": id, "file_offset": at});
    assert_eq!(service.get(&format!("/v23.0/{id}")).await.expect_success(), progress(0));
    assert_eq!(send(&service, &id, None, &PNG[..10]).await.expect_success(), progress(10));
    assert_eq!(service.get(&format!("/v23.0/{id}")).await.expect_success(), progress(10));
    for wrong in ["0", "11"] {
        let error = send(&service, &id, Some(wrong), &PNG[10..]).await.expect_error(400, 100, None);
        assert!(error["message"].as_str().unwrap().contains("file_offset: 10"), "{error}");
    }
    send(&service, &id, Some("x"), &PNG[10..]).await.expect_error(400, 100, None);
    send(&service, &id, Some("10"), PNG).await.expect_error(413, 100, None);
    let sent = send(&service, &id, Some("10"), &PNG[10..]).await.expect_success();
    assert!(sent["h"].is_string(), "{sent}");
}

#[tokio::test]
async fn a_large_file_is_stored_completely() {
    let service = Service::start().await;
    let mut bytes = PNG.to_vec();
    bytes.extend((0..1_500_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]));
    let id = begin(&service, bytes.len()).await;
    let handle = send(&service, &id, Some("0"), &bytes).await.expect_success()["h"].clone();
    let name = handle.as_str().unwrap().strip_prefix("4::galley.").unwrap();
    let served = fetch(&service, &format!("{PUBLIC}/media/{name}")).await;
    assert!(served.bytes == bytes, "{} bytes", served.bytes.len());
    assert_eq!(served.headers[header::CONTENT_TYPE], "image/png");
}

#[tokio::test]
async fn an_invalid_declaration_does_not_start_an_upload() {
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
        service.call(Method::POST, &path, &Value::Null).await.expect_error(400, 100, None);
    }
    let body = json!({"file_length": 3, "file_type": "IMAGE/PNG", "file_name": "a.png"});
    service.call(Method::POST, "/v23.0/1/uploads", &body).await.expect_success();
}

#[tokio::test]
async fn an_upload_belongs_to_one_account() {
    let service = Service::start().await;
    let id = begin(&service, PNG.len()).await;
    let path = format!("/v23.0/{id}");
    for method in [Method::GET, Method::POST, Method::DELETE] {
        let response = service.call_as(STRANGER, method, &path, &json!("a")).await;
        response.expect_error(400, 100, Some(33));
    }
    service.get("/v23.0/upload:unknown").await.expect_error(400, 100, Some(33));
    assert!(send(&service, &id, None, PNG).await.expect_success()["h"].is_string());
}

/// Starts an upload directly in the store, for services with limits that are too short for it.
async fn begin_in_store(service: &Service, id: &str, length: usize) -> String {
    let new = NewUpload {
        account: service.shop,
        id: id.to_owned(),
        handle: id.repeat(32),
        file_name: String::new(),
        file_type: "image/png".to_owned(),
        length: length as u64,
        quota: 1 << 20,
        at: service.clock.now(),
        emulated_at: None,
    };
    assert_eq!(service.store.begin_upload(new).await.unwrap(), BeginUploadOutcome::Begun);
    format!("upload:{id}")
}

/// A body that sends its first bytes immediately and the rest when the future is ready.
struct DelayedBody {
    first: Option<&'static [u8]>,
    rest: Option<Rest>,
}

type Rest = Pin<Box<dyn Future<Output = io::Result<&'static [u8]>> + Send>>;

impl DelayedBody {
    fn with_rest(rest: impl Future<Output = io::Result<&'static [u8]>> + Send + 'static) -> Body {
        Body::new(Self { first: Some(&PNG[..10]), rest: Some(Box::pin(rest)) })
    }
}

impl hyper::body::Body for DelayedBody {
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
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        let rest = task::ready!(rest.as_mut().poll(context));
        self.rest = None;
        Poll::Ready(Some(rest.map(frame)))
    }
}

async fn send_slowly(service: &Service, id: &str, body: Body) -> TestResponse {
    let request = Request::builder().method(Method::POST).uri(format!("/v23.0/{id}"));
    let request = request.header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
    service.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn bytes_before_a_broken_or_stalled_connection_are_stored() {
    // With this limit, a body that is not ready times out immediately.
    let limits = Limits { body: Duration::ZERO, ..Limits::default() };
    let service = Service::start_with(limits).await;
    let broken = DelayedBody::with_rest(ready(Err(io::ErrorKind::ConnectionReset.into())));
    for (id, body, status) in [("b", broken, 400), ("s", DelayedBody::with_rest(pending()), 408)] {
        let id = begin_in_store(&service, id, PNG.len()).await;
        let rejected = send_slowly(&service, &id, body).await;
        let message = rejected.expect_error(status, 100, None)["message"].to_string();
        assert!(message.contains("file_offset: 10"), "{message}");
        let progress = service.get(&format!("/v23.0/{id}")).await.expect_success();
        assert_eq!(progress["file_offset"], 10);
        assert!(
            send(&service, &id, Some("10"), &PNG[10..]).await.expect_success()["h"].is_string()
        );
    }
}

#[tokio::test]
async fn an_upload_can_take_longer_than_a_request() {
    let limits = Limits { body: Duration::from_mins(2), ..Limits::default() };
    let later = limits.request * 3;
    let service = Service::start_with(limits).await;
    let id = begin_in_store(&service, "u", PNG.len()).await;
    tokio::time::pause();
    let body = DelayedBody::with_rest(async move {
        tokio::time::advance(later).await;
        tokio::time::resume();
        Ok(&PNG[10..])
    });
    assert!(send_slowly(&service, &id, body).await.expect_success()["h"].is_string());
}

#[tokio::test]
async fn an_upload_ends_when_its_token_is_revoked_or_its_account_disabled() {
    for (disabled, status, code) in [(false, 401, 190), (true, 403, 131_031)] {
        let service = Service::start().await;
        let id = begin_in_store(&service, "u", PNG.len()).await;
        let (store, clock, shop) =
            (Arc::clone(&service.store), Arc::clone(&service.clock), service.shop);
        // Time of the runtime at which the upload lost its authorisation.
        let lost = Arc::new(OnceLock::new());
        let record = Arc::clone(&lost);
        let body = DelayedBody::with_rest(async move {
            if disabled {
                store
                    .set_account_disabled(shop, true, Author::operator(clock.now()))
                    .await
                    .unwrap();
            } else {
                for credential in store.credentials(shop).await.unwrap() {
                    store
                        .revoke_credential(credential.id, Author::operator(clock.now()))
                        .await
                        .unwrap();
                }
            }
            clock.advance(Duration::from_secs(2));
            tokio::time::pause();
            record.set(tokio::time::Instant::now()).unwrap();
            pending().await
        });
        send_slowly(&service, &id, body).await.expect_error(status, code, None);
        assert!(lost.get().unwrap().elapsed() <= Duration::from_secs(5), "{lost:?}");
        tokio::time::resume();
        let upload = service.store.upload(shop, "u", service.clock.now()).await.unwrap();
        assert_eq!(upload.unwrap().received, 0, "bytes after the revocation are not stored");
    }
}

#[tokio::test]
async fn a_file_of_another_type_than_declared_is_rejected_and_deleted() {
    let service = Service::start().await;
    let id = begin(&service, 10).await;
    let rejected = send(&service, &id, None, b"%PDF-1.7 a").await.expect_error(400, 100, None);
    let message = rejected["message"].as_str().unwrap();
    assert!(message.contains("image/png") && message.contains("application/pdf"), "{message}");
    service.get(&format!("/v23.0/{id}")).await.expect_error(400, 100, Some(33));
}

#[tokio::test]
async fn an_upload_can_be_deleted_until_a_template_uses_it() {
    let service = Service::start().await;
    let id = begin(&service, PNG.len()).await;
    send(&service, &id, None, &PNG[..10]).await.expect_success();
    let path = format!("/v23.0/{id}");
    let cancel = || service.call(Method::DELETE, &path, &Value::Null);
    assert_eq!(cancel().await.expect_success(), json!({"success": true}));
    cancel().await.expect_error(400, 100, Some(33));
    service.get(&path).await.expect_error(400, 100, Some(33));
    // A complete upload can be deleted, too, unless a template uses it.
    for named in [false, true] {
        let id = begin(&service, PNG.len()).await;
        let handle = send(&service, &id, None, PNG).await.expect_success()["h"].clone();
        let mut document = hello("named");
        let example = json!({"header_handle": [handle]});
        let header = json!({"type": "HEADER", "format": "IMAGE", "example": example});
        document["components"].as_array_mut().unwrap().insert(0, header);
        if named {
            service.create(&document).await.expect_success();
        }
        let deleted = service.call(Method::DELETE, &format!("/v23.0/{id}"), &Value::Null).await;
        assert_eq!(deleted.status, if named { 400 } else { 200 }, "{}", deleted.text());
    }
    // Templates cannot be deleted with this call.
    let template = service.create_named("hello", "en_US").await;
    let path = format!("/v23.0/{template}");
    let rejected = service.call(Method::DELETE, &path, &Value::Null).await;
    let message = rejected.expect_error(400, 100, Some(33))["message"].to_string();
    assert!(message.contains("hsm_id"), "{message}");
    service.get(&path).await.expect_success();
}

#[tokio::test]
async fn the_quota_counts_file_and_name() {
    let limits = Limits { media_bytes: 2 * 4_096 + 128 + 60, ..Limits::default() };
    let service = Service::start_with(limits).await;
    let begin_named = |name: String| {
        let path = format!("/v23.0/1/uploads?file_length=1&file_type=image/png&file_name={name}");
        let service = &service;
        async move { service.call(Method::POST, &path, &Value::Null).await }
    };
    // 1,020 bytes, of which at most 128 are stored, without splitting a character.
    begin_named("%F0%9F%98%80".repeat(255)).await.expect_success();
    let rejected = begin_named("a".repeat(61)).await.expect_error(400, 100, None);
    assert!(rejected["message"].as_str().unwrap().contains("media_mib_per_account"), "{rejected}");
    // Control characters are not stored.
    begin_named("a".repeat(60) + "%00%0A").await.expect_success();
}
