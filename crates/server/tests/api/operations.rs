//! For operators and people: health, readiness, metrics, problem pages, request ids, the log.

use axum::http::Method;
use serde_json::Value;

use super::app::{TestApp, hello, post, request};

#[tokio::test]
async fn readiness_ends_when_draining_begins_while_liveness_goes_on() {
    let app = TestApp::start().await;
    let get = |path| request(Method::GET, path, "", "");
    assert_eq!(app.send(get("/readyz")).await.status.as_u16(), 200);
    app.app.start_draining();
    app.send(get("/readyz")).await.problem(503, "not-ready");
    assert_eq!(app.send(get("/healthz")).await.status.as_u16(), 200);
    assert_eq!(app.create(&hello("t")).await.status.as_u16(), 201, "requests are still answered");
}

#[tokio::test]
async fn metrics_count_answers_by_route_and_status() {
    let app = TestApp::start().await;
    app.create(&hello("t")).await;
    app.create(&hello("t")).await;
    let page = app.send(request(Method::GET, "/metrics", "", "")).await;
    assert!(page.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let route = r#"route="/api/v1.0/{phone_number_id}/{key}/message_templates""#;
    for status in [201, 409] {
        let line =
            format!(r#"galley_http_requests_total{{method="POST",{route},status="{status}"}} 1"#);
        assert!(page.text.contains(&line), "{line} in {}", page.text);
    }
}

#[tokio::test]
async fn every_problem_type_leads_to_a_page_about_it() {
    let app = TestApp::start().await;
    let problem = app.create(&Value::Null).await.problem(422, "invalid-template");
    let page = app.send(request(Method::GET, problem["type"].as_str().unwrap(), "", "")).await;
    assert_eq!(page.status.as_u16(), 200);
    assert!(page.text.contains("<h1>The template breaks some rules</h1>"), "{}", page.text);
    for path in ["/problems/nothing", "/problems/%ff", "/docs/nothing", "/docs/%ff"] {
        app.send(request(Method::GET, path, "", "")).await.problem(404, "not-found");
    }
}

#[tokio::test]
async fn a_callers_request_id_is_taken_over_if_it_is_a_plain_word() {
    let app = TestApp::start().await;
    let asked = async |id: &str| {
        let mut request = request(Method::GET, "/healthz", "", "");
        request.headers_mut().insert("x-request-id", id.parse().unwrap());
        app.send(request).await.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(asked("order-77").await, "order-77");
    for odd in ["", "two words", "{\"x\":1}", &"x".repeat(65)] {
        let id = asked(odd).await;
        assert!(id.starts_with("test-"), "{odd:?} became {id}");
    }
}

#[tokio::test]
async fn the_access_log_has_one_json_line_per_request() {
    let app = TestApp::start().await;
    app.create(&hello("t")).await;
    app.send(post("{")).await;
    app.send(request(Method::GET, "/secret-path", "", "")).await;
    let log = app.into_log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let facts: Vec<_> = lines
        .iter()
        .map(|it| {
            (
                it["method"].as_str().unwrap(),
                it["route"].as_str().unwrap(),
                it["status"].as_u64().unwrap(),
            )
        })
        .collect();
    let route = "/api/v1.0/{phone_number_id}/{key}/message_templates";
    assert_eq!(facts, [("POST", route, 201), ("POST", route, 400), ("GET", "(none)", 404)]);
    assert!(lines[0]["token"].is_u64() && lines[1]["problem"] == "malformed-json");
    assert!(lines.iter().all(|it| it["request_id"].is_string() && it["took_us"].is_u64()));
}

#[tokio::test]
async fn the_api_is_browsable_from_files_inside_the_program() {
    let app = TestApp::start().await;
    for (path, kind) in [
        ("/docs", "text/html"),
        ("/docs/", "text/html"),
        ("/docs/swagger-ui.css", "text/css"),
        ("/docs/swagger-ui-bundle.js", "text/javascript"),
    ] {
        let answer = app.send(request(Method::GET, path, "", "")).await;
        assert_eq!(answer.status.as_u16(), 200, "{path}");
        assert!(answer.header("content-type").unwrap().starts_with(kind), "{path}: {answer:?}");
    }
    let page = app.send(request(Method::GET, "/docs", "", "")).await.text;
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "nothing is loaded from elsewhere"
    );
}
