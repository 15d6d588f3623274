//! Samples of attachments: announced, sent in pieces, shown and served.

use axum::{
    body::Body,
    http::{Method, Request, header},
};
use serde_json::{Value, json};

use super::service::{Answer, PUBLIC, STRANGER, Service, TOKEN, hello};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and more of the picture";

async fn begin(service: &Service, length: usize) -> String {
    let path =
        format!("/v23.0/12345/uploads?file_name=a.png&file_length={length}&file_type=image/png");
    let begun = service.call(Method::POST, &path, &Value::Null).await.good();
    let id = begun["id"].as_str().unwrap();
    assert!(id.starts_with("upload:"), "{id}");
    id.to_owned()
}

async fn send(service: &Service, id: &str, offset: Option<&str>, bytes: &[u8]) -> Answer {
    let mut request = Request::builder().method(Method::POST).uri(format!("/v23.0/{id}"));
    if let Some(offset) = offset {
        request = request.header("file_offset", offset);
    }
    // As Meta's pages have it, for uploads alone.
    let request = request.header(header::AUTHORIZATION, format!("OAuth {TOKEN}"));
    let request = request.header(header::CONTENT_TYPE, "image/png");
    service.send(request.body(Body::from(bytes.to_vec())).unwrap()).await
}

async fn fetch(service: &Service, address: &str) -> Answer {
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
    assert!(served.headers[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));
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
    let bytes: Vec<u8> = (0..1_500_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    let id = begin(&service, bytes.len()).await;
    let handle = send(&service, &id, Some("0"), &bytes).await.good()["h"].clone();
    let name = handle.as_str().unwrap().strip_prefix("4::galley.").unwrap();
    let served = fetch(&service, &format!("{PUBLIC}/media/{name}")).await;
    assert!(served.bytes == bytes, "{} bytes", served.bytes.len());
    assert_eq!(served.headers[header::CONTENT_TYPE], "application/octet-stream");
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
    let id = begin(&service, 3).await;
    let path = format!("/v23.0/{id}");
    for method in [Method::GET, Method::POST] {
        let answer = service.call_as(STRANGER, method, &path, &json!("a")).await;
        answer.refusal(400, 100, Some(33));
    }
    service.get("/v23.0/upload:unknown").await.refusal(400, 100, Some(33));
    assert!(send(&service, &id, None, b"abc").await.good()["h"].is_string());
}
