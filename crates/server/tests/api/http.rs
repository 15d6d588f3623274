//! Paths, methods, content types, sizes and malformed bodies.

use axum::{
    body::{Body, Bytes},
    http::Method,
};

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, path, post, request};

#[tokio::test]
async fn a_path_with_invalid_segments_is_404_for_every_method() {
    let app = TestApp::start().await;
    let long = "1".repeat(257);
    for invalid in ["", "%2e%2e%2f", "a%2Fb", "%00", "a%20b", "%C3%A4", "%ff", "a;b", "a:b", &long]
    {
        for base in [path(invalid, KEY), path(PHONE, invalid)] {
            for method in [Method::POST, Method::PUT, Method::GET] {
                let response =
                    app.send(request(method, &base, TOKEN, hello("t").to_string())).await;
                response.problem(404, "not-found");
            }
        }
    }
}

#[tokio::test]
async fn a_trailing_slash_makes_no_difference() {
    let app = TestApp::start().await;
    let created = app
        .send(request(
            Method::POST,
            &format!("{}/", path(PHONE, KEY)),
            TOKEN,
            hello("t").to_string(),
        ))
        .await;
    assert_eq!(created.status.as_u16(), 201);
    let one = format!("{}/{}/?version=1", path(PHONE, KEY), created.json()["id"].as_str().unwrap());
    assert_eq!(app.send(request(Method::GET, &one, TOKEN, "")).await.status.as_u16(), 200);
}

#[tokio::test]
async fn an_unsupported_method_is_405_with_allow_even_without_credentials() {
    let app = TestApp::start().await;
    let response = app.send(request(Method::PUT, &path(PHONE, "unknown"), "", "")).await;
    response.problem(405, "method-not-allowed");
    assert_eq!(response.header("allow"), Some("GET,HEAD,POST"));
    let response = app.send(request(Method::POST, "/healthz", "", "")).await;
    response.problem(405, "method-not-allowed");
    assert_eq!(response.header("allow"), Some("GET,HEAD"));
    app.send(request(Method::GET, "/nowhere", "", "")).await.problem(404, "not-found");
}

#[tokio::test]
async fn a_body_is_json_in_utf8_or_has_no_content_type() {
    let app = TestApp::start().await;
    let mut sent = 0;
    for (content_type, good) in [
        (Some("application/json"), true),
        (Some("Application/JSON; charset=UTF-8"), true),
        (Some("application/json; charset=\"utf-8\"; q=1"), true),
        (None, true),
        (Some("application/json; charset=utf-16"), false),
        (Some("application/vnd.api+json"), false),
        (Some("application/x-www-form-urlencoded"), false),
        (Some("text/plain"), false),
        (Some(""), false),
    ] {
        sent += 1;
        let mut request = post(hello(&format!("t{sent}")).to_string());
        request.headers_mut().remove("content-type");
        if let Some(content_type) = content_type {
            request.headers_mut().insert("content-type", content_type.parse().unwrap());
        }
        let response = app.send(request).await;
        if good {
            assert_eq!(response.status.as_u16(), 201, "{content_type:?}");
        } else {
            response.problem(415, "unsupported-media-type");
        }
    }
    let mut compressed = post(hello("z").to_string());
    compressed.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
    app.send(compressed).await.problem(415, "unsupported-media-type");
}

#[tokio::test]
async fn a_body_over_256_kib_is_413_with_or_without_a_length() {
    let app = TestApp::start().await;
    let fits = format!("{}{}", hello("t"), " ".repeat(256 * 1_024 - hello("t").to_string().len()));
    assert_eq!(fits.len(), 256 * 1_024);
    assert_eq!(app.send(post(fits.clone())).await.status.as_u16(), 201);
    app.send(post(format!("{fits} "))).await.problem(413, "too-large");
    let mut announced = post("{}");
    announced.headers_mut().insert("content-length", "9999999".parse().unwrap());
    app.send(announced).await.problem(413, "too-large");
    let chunks = Streamed { left: 300 };
    app.send(post(Body::new(chunks))).await.problem(413, "too-large");
}

#[tokio::test]
async fn malformed_json_is_400_with_its_position() {
    let app = TestApp::start().await;
    let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
    for bad in ["", "{", "{\"name\": nope}", "[1,]", "{} {}", &deep, "\u{feff}{}"] {
        let problem = app.send(post(bad.to_owned())).await.problem(400, "malformed-json");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("line") || detail.contains("nested"), "{bad}: {detail}");
    }
    app.send(post(Bytes::from_static(b"{\"name\":\"\xff\"}"))).await.problem(400, "malformed-json");
}

#[tokio::test]
async fn credentials_are_checked_before_the_body() {
    let app = TestApp::start().await;
    let mut request = request(Method::POST, &path(PHONE, KEY), "", "not json");
    request.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    app.send(request).await.problem(401, "token-missing");
}

#[tokio::test]
async fn duplicate_keys_and_nul_characters_are_violations() {
    let app = TestApp::start().await;
    let twice = r#"{"name":"a","name":"b"}"#;
    let problem = app.send(post(twice)).await.problem(422, "invalid-template");
    assert_eq!(problem["violations"][0]["rule"], "duplicate-key");
    let nul = hello("t").to_string().replace("Hello", "Hel\\u0000lo");
    let problem = app.send(post(nul)).await.problem(422, "invalid-template");
    assert_eq!(problem["violations"][0]["rule"], "control-character");
}

/// A body of `left` KiB without a declared length.
struct Streamed {
    left: usize,
}

impl axum::body::HttpBody for Streamed {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        self.left = self.left.saturating_sub(1);
        let chunk = Bytes::from(vec![b' '; 1_024]);
        let frame = (self.left > 0).then(|| Ok(hyper::body::Frame::data(chunk)));
        std::task::Poll::Ready(frame)
    }
}
