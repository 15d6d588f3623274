//! Cross-origin requests: what a browser learns before and after a call of a page.

use axum::{
    body::Body,
    http::{Method, Request},
};
use serde_json::Value;

use super::app::{KEY, PHONE, TOKEN, TestApp, hello, path, post, request};
use crate::harness::{
    TestResponse, TestService,
    description::{all_operations, resolved},
};

const ORIGIN: &str = "https://console.example";

async fn start(origins: &str) -> TestApp {
    TestApp::start_built(TestService::builder().cors(origins)).await
}

fn from_origin(mut request: Request<Body>, origin: &str) -> Request<Body> {
    request.headers_mut().insert("origin", origin.parse().unwrap());
    request
}

/// A browser asks whether a page may send a request. It sends no credentials with this question.
async fn preflight(app: &TestApp, path: &str, origin: &str) -> TestResponse {
    let mut request = from_origin(request(Method::OPTIONS, path, "", ""), origin);
    let headers = request.headers_mut();
    headers.insert("access-control-request-method", "POST".parse().unwrap());
    headers.insert("access-control-request-headers", "authorization".parse().unwrap());
    app.send(request).await
}

/// The names in a list, in lower case.
fn names(response: &TestResponse, header: &str) -> Vec<String> {
    let list = response.header(header).unwrap_or_else(|| panic!("{header} in {response:?}"));
    list.split(',').map(|name| name.trim().to_lowercase()).collect()
}

fn cors_headers(response: &TestResponse) -> Vec<&str> {
    let names = response.headers.keys().map(axum::http::HeaderName::as_str);
    names.filter(|name| name.starts_with("access-control-")).collect()
}

#[tokio::test]
async fn without_the_setting_no_response_mentions_origins() {
    let app = TestApp::start().await;
    let created = app.send(from_origin(post(hello("t").to_string()), ORIGIN)).await;
    assert_eq!(created.status, 201);
    assert_eq!((cors_headers(&created), created.header("vary")), (vec![], None));
    let refused = preflight(&app, &path(PHONE, KEY), ORIGIN).await;
    let problem = refused.problem(405, "method-not-allowed");
    assert!(problem["detail"].as_str().unwrap().contains("`cors_origins`"), "{problem}");
    assert_eq!((cors_headers(&refused), refused.header("vary")), (vec![], None));
}

#[tokio::test]
async fn a_preflight_of_an_allowed_origin_needs_no_credentials() {
    let app = start(&format!("{ORIGIN} http://localhost:5173")).await;
    for path in [&*path(PHONE, "unknown"), "/v23.0/1/message_templates", "/1/message_templates"] {
        let response = preflight(&app, path, ORIGIN).await;
        assert_eq!((response.status.as_u16(), response.text()), (204, ""), "{path}");
        assert_eq!(response.header("access-control-allow-origin"), Some(ORIGIN));
        assert_eq!(response.header("access-control-max-age"), Some("7200"));
        assert_eq!(response.header("vary"), Some("origin"));
        assert_eq!(response.header("access-control-allow-credentials"), None);
        assert!(response.header("x-request-id").is_some());
    }
    let other = preflight(&app, &path(PHONE, KEY), "http://localhost:5173").await;
    assert_eq!(other.header("access-control-allow-origin"), Some("http://localhost:5173"));
}

#[tokio::test]
async fn a_preflight_of_another_origin_is_refused() {
    let app = start(ORIGIN).await;
    for origin in ["https://evil.example", "https://console.example.evil.example", "null"] {
        for path in [&*path(PHONE, KEY), "/v23.0/1/message_templates"] {
            let response = preflight(&app, path, origin).await;
            assert_eq!(response.status, 405);
            assert!(response.text().contains("`cors_origins`"), "{response:?}");
            assert_eq!(cors_headers(&response), [""; 0], "{origin}");
            assert_eq!(response.header("vary"), Some("origin"));
        }
    }
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_can_read_every_response() {
    let app = start(ORIGIN).await;
    let responses = [
        (201, post(hello("t").to_string())),
        (409, post(hello("t").to_string())),
        (400, post("{")),
        (401, request(Method::GET, &path(PHONE, KEY), "", "")),
        (401, request(Method::GET, &path(PHONE, KEY), "wrong", "")),
        (404, request(Method::GET, "/nothing", "", "")),
        (405, request(Method::PUT, &path(PHONE, KEY), TOKEN, "")),
        (200, request(Method::GET, "/openapi.json", "", "")),
        (200, request(Method::GET, "/problems", "", "")),
    ];
    for (status, request) in responses {
        let response = app.send(from_origin(request, ORIGIN)).await;
        assert_eq!(response.status, status, "{response:?}");
        assert_eq!(response.header("access-control-allow-origin"), Some(ORIGIN), "{status}");
        assert!(response.header("access-control-expose-headers").is_some(), "{status}");
        assert_eq!(response.header("access-control-allow-credentials"), None);
        let vary: Vec<_> = response.headers.get_all("vary").iter().collect();
        assert!(vary.iter().any(|it| *it == "origin"), "{vary:?}");
    }
    let stranger =
        app.send(from_origin(post(hello("u").to_string()), "https://evil.example")).await;
    assert_eq!(stranger.status, 201, "the browser keeps the response from the page");
    assert_eq!((cors_headers(&stranger), stranger.header("vary")), (vec![], Some("origin")));
}

#[tokio::test]
async fn every_origin_may_be_allowed_but_never_with_credentials() {
    let app = start("*").await;
    let asked = preflight(&app, &path(PHONE, KEY), "https://any.example").await;
    assert_eq!(asked.status, 204);
    let created = app.send(from_origin(post(hello("t").to_string()), "https://any.example")).await;
    for response in [asked, created] {
        assert_eq!(response.header("access-control-allow-origin"), Some("*"));
        assert_eq!(response.header("access-control-allow-credentials"), None);
        assert_eq!(response.header("vary"), None, "the same for every origin");
    }
}

#[tokio::test]
async fn no_page_of_another_origin_reads_the_paths_for_operators() {
    let app = start("*").await;
    for path in ["/healthz", "/readyz", "/metrics"] {
        let response = app.send(from_origin(request(Method::GET, path, "", ""), ORIGIN)).await;
        assert_eq!((response.status.as_u16(), cors_headers(&response)), (200, vec![]), "{path}");
        let asked = preflight(&app, path, ORIGIN).await;
        let detail = asked.json()["detail"].to_string();
        assert!(!detail.contains("cors_origins"), "no setting allows it: {path}: {detail}");
        asked.problem(405, "method-not-allowed");
    }
}

#[tokio::test]
async fn a_page_can_send_and_read_every_header_that_the_api_describes() {
    let app = start(ORIGIN).await;
    let asked = preflight(&app, &path(PHONE, KEY), ORIGIN).await;
    let (methods, sent) = (
        names(&asked, "access-control-allow-methods"),
        names(&asked, "access-control-allow-headers"),
    );
    let listed = app.send(from_origin(request(Method::GET, &path(PHONE, KEY), TOKEN, ""), ORIGIN));
    let exposed = names(&listed.await, "access-control-expose-headers");
    // Pages may read these in any case.
    let safe = ["cache-control", "content-length", "content-type"];
    assert!(sent.contains(&"authorization".to_owned()) && sent.contains(&"traceparent".to_owned()));
    let (mut parameters, mut headers) = (0, 0);
    // Providers call the address of webhooks, pages do not.
    for operation in all_operations().filter(|it| it.id() != "receiveProviderHook") {
        let name = operation.name();
        let method = operation.method.as_str().to_lowercase();
        assert!(methods.contains(&method), "{name}");
        for parameter in operation.description["parameters"].as_array().unwrap() {
            let parameter = resolved(operation.document, parameter);
            if parameter["in"] == "header" {
                let header = parameter["name"].as_str().unwrap().to_lowercase();
                assert!(sent.contains(&header), "{name} takes {header}: {sent:?}");
                parameters += 1;
            }
        }
        for response in operation.description["responses"].as_object().unwrap().values() {
            let described = response["headers"].as_object().into_iter().flat_map(|it| it.keys());
            for header in described.map(|header| header.to_lowercase()) {
                let is_readable = exposed.contains(&header) || safe.contains(&&*header);
                assert!(is_readable, "{name} has {header}: {exposed:?}");
                headers += 1;
            }
        }
    }
    assert!(parameters > 20 && headers > 100, "{parameters} parameters, {headers} headers");
    assert!(exposed.contains(&"location".to_owned()), "{:?}", Value::from(exposed));
}
