//! Serving samples, completely or in part, and their use in templates.

use galley_store::Author;
use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderName, Method, Request, header},
};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::{
    service::{PUBLIC, STRANGER, Service, TOKEN, hello},
    uploads::{PNG, fetch, send},
};
use crate::harness::TestResponse;

/// Uploads a sample and returns its name.
async fn sample(service: &Service, file_type: &str, bytes: &[u8]) -> String {
    let length = bytes.len();
    let path = format!("/v23.0/1/uploads?file_length={length}&file_type={file_type}");
    let begun = service.call(Method::POST, &path, &Value::Null).await.expect_success();
    let sent = send(service, begun["id"].as_str().unwrap(), None, bytes).await.expect_success();
    sent["h"].as_str().unwrap().strip_prefix("4::galley.").unwrap().to_owned()
}

async fn read(
    service: &Service,
    method: Method,
    name: &str,
    headers: &[(HeaderName, &str)],
) -> TestResponse {
    let mut request = Request::builder().method(method).uri(format!("/media/{name}"));
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    service.send(request.body(Body::empty()).unwrap()).await
}

fn with_header(name: &str, format: &str, handle: &str) -> Value {
    let mut document = hello(name);
    let header =
        json!({"type": "HEADER", "format": format, "example": {"header_handle": [handle]}});
    document["components"].as_array_mut().unwrap().insert(0, header);
    document
}

#[tokio::test]
async fn a_sample_is_served_completely_or_in_part() {
    let service = Service::start().await;
    let mut file = PNG.to_vec();
    file.extend((0..1_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]));
    let name = sample(&service, "image/png", &file).await;
    let length = file.len();

    let full = read(&service, Method::GET, &name, &[]).await;
    assert!(full.status == 200 && full.bytes == file);
    assert_eq!(full.headers[header::ACCEPT_RANGES], "bytes");
    assert_eq!(full.headers[header::CONTENT_LENGTH], *length.to_string());
    let head = read(&service, Method::HEAD, &name, &[(header::RANGE, "bytes=0-1")]).await;
    assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0));
    assert_eq!(head.headers[header::CONTENT_LENGTH], *length.to_string());
    assert_eq!(head.headers[header::CONTENT_TYPE], "image/png");

    for (first, last) in [(0, 0), (0, 300_000), (262_143, 262_144), (700_000, length - 1)] {
        let range = format!("bytes={first}-{last}");
        let part = read(&service, Method::GET, &name, &[(header::RANGE, &range)]).await;
        assert_eq!(part.status, 206, "{range}");
        assert!(part.bytes == file[first..=last], "{range}: {} bytes", part.bytes.len());
        let content_range = format!("bytes {first}-{last}/{length}");
        assert_eq!(part.headers[header::CONTENT_RANGE], *content_range);
    }
    let beyond_end = format!("bytes={length}-");
    let rejected = read(&service, Method::GET, &name, &[(header::RANGE, &beyond_end)]).await;
    assert_eq!(rejected.status, 416, "{rejected:?}");
    assert_eq!(rejected.headers[header::CONTENT_RANGE], *format!("bytes */{length}"));

    let tag = full.headers[header::ETAG].to_str().unwrap();
    let known = read(&service, Method::GET, &name, &[(header::IF_NONE_MATCH, tag)]).await;
    assert_eq!((known.status.as_u16(), known.bytes.len()), (304, 0));
    assert_eq!(known.headers[header::ETAG], full.headers[header::ETAG]);
    for (tags, status) in [(tag, 200), ("*", 200), ("\"other\"", 412)] {
        let response = read(&service, Method::GET, &name, &[(header::IF_MATCH, tags)]).await;
        assert_eq!(response.status, status, "{tags}");
        assert_eq!(response.headers[header::ETAG], full.headers[header::ETAG], "{tags}");
    }
}

#[tokio::test]
async fn a_sample_is_cached_for_minutes_and_a_pdf_is_an_attachment() {
    let service = Service::start().await;
    for (file_type, bytes, how) in
        [("image/png", PNG, "inline; "), ("application/pdf", b"%PDF-1.7", "attachment; ")]
    {
        let name = sample(&service, file_type, bytes).await;
        let served = read(&service, Method::GET, &name, &[]).await;
        assert_eq!(served.headers[header::CACHE_CONTROL], "public, max-age=300");
        let disposition = served.headers[header::CONTENT_DISPOSITION].to_str().unwrap();
        assert!(disposition.starts_with(how), "{disposition}");
        assert!(
            served.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().contains("sandbox")
        );
    }
}

#[tokio::test]
async fn a_slow_download_ends_at_its_timeout() {
    let service = Service::start().await;
    let mut file = PNG.to_vec();
    file.resize(1_000_000, 7);
    let name = sample(&service, "image/png", &file).await;
    let request = Request::builder().uri(format!("/media/{name}")).body(Body::empty()).unwrap();
    let mut body = service.handle(request).await.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(21)).await;
    tokio::time::resume();
    assert!(body.frame().await.unwrap().is_err());
}

#[tokio::test]
async fn a_sample_needs_its_exact_name_and_an_enabled_account() {
    let service = Service::start().await;
    let name = sample(&service, "image/png", PNG).await;
    for other in [&name[1..], "%2e%2e", "nothing", &format!("{name}0")] {
        let rejected = read(&service, Method::GET, other, &[]).await;
        assert!(rejected.status == 404 && rejected.text().contains("No sample"), "{other}");
    }
    let now = galley_server::Clock::now(&*service.clock);
    service.store.set_account_disabled(service.shop, true, Author::operator(now)).await.unwrap();
    assert_eq!(read(&service, Method::GET, &name, &[]).await.status, 404);
}

#[tokio::test]
async fn a_galley_handle_needs_a_suitable_file_of_the_account() {
    let service = Service::start().await;
    let png = format!("4::galley.{}", sample(&service, "image/png", PNG).await);
    let pdf = format!("4::galley.{}", sample(&service, "application/pdf", b"%PDF-1.7").await);
    let film = &b"\0\0\0\x18ftypmp42"[..];
    let film = format!("4::galley.{}", sample(&service, "video/mp4", film).await);
    let phone = &b"\0\0\0\x18ftyp3gp5"[..];
    let phone = format!("4::galley.{}", sample(&service, "video/3gpp", phone).await);
    let unknown = format!("4::galley.{}", "x".repeat(32));
    let files = [&*png, &pdf, &film, &phone, &unknown, "4::galley.x", "4::aW1n"];
    for (format, good) in [
        ("IMAGE", &["4::aW1n", &*png][..]),
        ("VIDEO", &["4::aW1n", &film, &phone]),
        ("GIF", &["4::aW1n", &film]),
        ("DOCUMENT", &["4::aW1n", &pdf]),
    ] {
        for (index, file) in files.iter().enumerate() {
            let name = format!("{}_{index}", format.to_lowercase());
            let response = service.create(&with_header(&name, format, file)).await;
            if good.contains(file) {
                response.expect_success();
                continue;
            }
            let error = response.expect_error(400, 100, Some(2_388_043));
            let violation = &error["galley_violations"][0];
            let known = ![&unknown, "4::galley.x"].contains(file);
            let rule = if known { "sample-unfit" } else { "sample-unknown" };
            assert_eq!(violation["rule"], rule, "{format} {file}");
            assert_eq!(violation["pointer"], "/components/0/example/header_handle/0");
            assert!(violation["hint"].is_string(), "{error}");
        }
    }
}

#[tokio::test]
async fn an_unknown_sample_is_listed_with_all_other_violations() {
    let service = Service::start().await;
    let unknown = format!("4::galley.{}", "x".repeat(32));
    let document = with_header("Bad Name", "IMAGE", &unknown);
    let template = service.create_named("hello", "en_US").await;
    let mut edit = json!({"components": document["components"]});
    edit["components"][1]["text"] = json!("");
    let node = format!("/v23.0/{template}");
    for (response, other) in [
        (service.create(&document).await, "name-form"),
        (service.call(Method::POST, &node, &edit).await, "empty"),
    ] {
        let error: Value = serde_json::from_str(response.text()).unwrap();
        let violations = error["error"]["galley_violations"].as_array().unwrap();
        let rules: Vec<&str> = violations.iter().map(|it| it["rule"].as_str().unwrap()).collect();
        assert_eq!(rules, [other, "sample-unknown"], "{error}");
    }
}

#[tokio::test]
async fn edits_other_accounts_and_validation_check_samples_too() {
    let service = Service::start().await;
    let png = format!("4::galley.{}", sample(&service, "image/png", PNG).await);
    let template = service.create_named("hello", "en_US").await;
    let path = format!("/v23.0/{template}");
    let edit =
        |format: &str| json!({"components": with_header("hello", format, &png)["components"]});
    let rejected = service.call(Method::POST, &path, &edit("VIDEO")).await;
    rejected.expect_error(400, 100, Some(2_388_043));
    service.call(Method::POST, &path, &edit("IMAGE")).await.expect_success();

    // The file of another account is unknown, like one that does not exist.
    let list = format!("/v23.0/{}/message_templates", service.stranger);
    let document = with_header("theirs", "IMAGE", &png);
    let rejected = service.call_as(STRANGER, Method::POST, &list, &document).await;
    let error = rejected.expect_error(400, 100, Some(2_388_043));
    assert_eq!(error["galley_violations"][0]["rule"], "sample-unknown");

    let dry = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/validate");
    let result =
        service.call(Method::POST, &dry, &with_header("dry", "VIDEO", &png)).await.expect_success();
    assert_eq!(result["violations"][0]["rule"], "sample-unfit", "{result}");
    let result =
        service.call(Method::POST, &dry, &with_header("dry", "IMAGE", &png)).await.expect_success();
    assert_eq!(result["valid"], true, "{result}");
}

#[tokio::test]
async fn a_document_with_sample_urls_can_be_sent_back() {
    let service = Service::start().await;
    let name = sample(&service, "image/png", PNG).await;
    let handle = format!("4::galley.{name}");
    let first = service.create(&with_header("first", "IMAGE", &handle)).await.expect_success();
    let path = format!("/v23.0/{}", first["id"].as_str().unwrap());
    let read = service.get(&path).await.expect_success();
    let address = format!("{PUBLIC}/media/{name}");
    assert_eq!(read["components"][0]["example"]["header_handle"], json!([address]));

    let mut second = read.clone();
    second["name"] = json!("second");
    let second = service.create(&second).await.expect_success();
    let edit = json!({"components": read["components"]}).to_string().replace('/', "\\/");
    let request = Request::builder().method(Method::POST).uri(&path);
    let request = request.header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
    let request = request.header(header::CONTENT_TYPE, "application/json");
    service.send(request.body(Body::from(edit)).unwrap()).await.expect_success();
    // The store contains the handle, which does not depend on the public URL.
    for id in [&first["id"], &second["id"]] {
        let id = id.as_str().unwrap().parse().unwrap();
        let stored = service.store.template(service.shop, id).await.unwrap().unwrap();
        assert!(stored.template.content().contains(&handle), "{}", stored.template.content());
    }
    let dry = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/validate");
    let third = with_header("third", "IMAGE", &address);
    let result = service.call(Method::POST, &dry, &third).await.expect_success();
    assert_eq!(result["valid"], true, "{result}");
    assert_eq!(fetch(&service, &address).await.bytes, PNG);
}

#[tokio::test]
async fn the_url_of_another_service_is_not_a_handle_except_in_an_edit() {
    let service = Service::start().await;
    let elsewhere = format!("https://elsewhere.example/media/{}", "x".repeat(32));
    let document = with_header("hello", "IMAGE", &elsewhere);
    let error = service.create(&document).await.expect_error(400, 100, Some(2_388_273));
    let violation = &error["galley_violations"][0];
    assert_eq!(violation["rule"], "handle-form", "{error}");
    assert_eq!(violation["pointer"], "/components/0/example/header_handle/0", "{error}");
    let dry = format!("/api/v1.0/15550001111/{TOKEN}/message_templates/validate");
    let result = service.call(Method::POST, &dry, &document).await.expect_success();
    assert_eq!(result["violations"][0]["rule"], "handle-form", "{result}");

    // A client may send back what it has read from Meta.
    let id = service.create_named("hello", "en_US").await;
    let edit = json!({"components": document["components"]});
    let result = service.call(Method::POST, &format!("{dry}?template={id}"), &edit).await;
    assert_eq!(result.expect_success()["valid"], true);
    let path = format!("/v23.0/{id}");
    service.call(Method::POST, &path, &edit).await.expect_success();
    let read = service.get(&path).await.expect_success();
    assert_eq!(read["components"][0]["example"]["header_handle"], json!([elsewhere]));
}
