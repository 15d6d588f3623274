//! Liveness, readiness, metrics, problem pages, request ids and the access log.

use axum::http::Method;
use futures_util::FutureExt as _;
use galley_server::{
    LoggedRequests,
    workers::{Worker, run_supervised},
};
use serde_json::Value;

use super::app::{TestApp, hello, post, request};
use crate::harness::description::{V1, operations};
use crate::harness::{TestResponse, TestService};

#[tokio::test]
async fn draining_ends_readiness_but_not_liveness() {
    let app = TestApp::start().await;
    let get = |path| request(Method::GET, path, "", "");
    assert_eq!(app.send(get("/readyz")).await.status.as_u16(), 200);
    app.app.start_draining();
    app.send(get("/readyz")).await.problem(503, "not-ready");
    assert_eq!(app.send(get("/healthz")).await.status.as_u16(), 200);
    assert_eq!(app.create(&hello("t")).await.status.as_u16(), 201, "requests are still processed");
}

#[tokio::test]
async fn a_worker_that_panics_is_reported_by_readiness_and_metrics() {
    let app = TestApp::start().await;
    let get = async |path| app.send(request(Method::GET, path, "", "")).await;
    assert_eq!(get("/readyz").await.json()["warnings"], Value::Null);
    let panics = Box::new(|_| async { panic!("a bug in a worker") }.boxed());
    tokio::spawn(run_supervised(app.app.clone(), Worker::SearchIndexer, panics));
    let restarts = r#"galley_worker_restarts_total{worker="search_indexer"} "#;
    while !get("/metrics").await.text().contains(&format!("{restarts}1")) {
        tokio::task::yield_now().await;
    }
    let ready = get("/readyz").await;
    assert_eq!(ready.status.as_u16(), 200, "requests are still processed");
    let warning = &ready.json()["warnings"][0];
    assert_eq!(warning["name"], "worker-search-indexer");
    assert!(warning["detail"].as_str().unwrap().contains("searches do not find"), "{warning}");
    assert!(!ready.text().contains("a bug"), "the cause is in the log only: {}", ready.text());
}

#[tokio::test]
async fn metrics_count_responses_by_route_and_status() {
    let app = TestApp::start().await;
    app.create(&hello("t")).await;
    app.create(&hello("t")).await;
    let page = app.send(request(Method::GET, "/metrics", "", "")).await;
    assert!(page.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let route = r#"route="/api/v1.0/{phone_number_id}/{key}/message_templates""#;
    for status in [201, 409] {
        let line =
            format!(r#"galley_http_requests_total{{method="POST",{route},status="{status}"}} 1"#);
        assert!(page.text().contains(&line), "{line} in {}", page.text());
    }
}

#[tokio::test]
async fn the_type_of_a_problem_leads_to_its_page() {
    let app = TestApp::start().await;
    let problem = app.create(&Value::Null).await.problem(422, "invalid-template");
    let page = app.send(request(Method::GET, problem["type"].as_str().unwrap(), "", "")).await;
    assert_eq!(page.status.as_u16(), 200);
    assert!(page.text().contains("<h1>The template is invalid</h1>"), "{}", page.text());
    for path in ["/problems/nothing", "/problems/%ff", "/docs/nothing", "/docs/%ff"] {
        app.send(request(Method::GET, path, "", "")).await.problem(404, "not-found");
    }
}

/// A GET request that accepts this type.
async fn get_as(app: &TestApp, path: &str, accept: &str) -> TestResponse {
    let mut request = request(Method::GET, path, "", "");
    request.headers_mut().insert("accept", accept.parse().unwrap());
    app.send(request).await
}

#[tokio::test]
async fn the_root_says_what_runs_here_as_a_page_or_as_json() {
    let app = TestApp::start().await;
    let page = get_as(&app, "/", "text/html,*/*").await;
    assert_eq!(page.status.as_u16(), 200);
    assert!(page.header("content-type").unwrap().starts_with("text/html"), "{page:?}");
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert_eq!(page.header("vary"), Some("accept"));
    let document = get_as(&app, "/", "application/json").await;
    assert_eq!(document.header("content-type"), Some("application/json"));
    let document = document.json();
    assert_eq!(
        (&document["service"], &document["version"]),
        (&Value::from("galley"), &Value::from(env!("CARGO_PKG_VERSION")))
    );
    let links = document["links"].as_object().unwrap();
    for name in ["console", "docs", "openapi", "problems", "healthz"] {
        assert!(links.contains_key(name), "{name}");
    }
    for link in links.values().map(|it| it.as_str().unwrap()) {
        assert_eq!(app.send(request(Method::GET, link, "", "")).await.status, 200, "{link}");
        assert!(page.text().contains(&format!("href=\"{link}\"")), "{link}");
    }
}

#[tokio::test]
async fn the_index_of_problems_lists_every_problem_and_its_page() {
    let app = TestApp::start().await;
    let (page, list) = (
        get_as(&app, "/problems", "*/*").await,
        get_as(&app, "/problems", "application/json").await,
    );
    let list = list.json();
    let problems = list["data"].as_array().unwrap();
    assert!(problems.len() > 40, "{} problems", problems.len());
    for problem in problems {
        let path = problem["type"].as_str().unwrap();
        assert!(page.text().contains(&format!("href=\"{path}\"")), "{path}");
        assert_eq!(&get_as(&app, path, "application/json").await.json(), problem);
    }
}

#[tokio::test]
async fn a_wrong_path_or_method_is_told_what_is_wrong() {
    let app = TestApp::start().await;
    for (method, path, status, expected) in [
        (Method::GET, "/nothing", 404, "`/` lists what this service offers"),
        (Method::POST, "/message_templates", 404, "The path lacks its beginning"),
        (
            Method::POST,
            "/api/v2/1555/key/message_templates",
            404,
            "begin the path with `/api/v1.0/`",
        ),
        (Method::GET, "/api/v1.0/1555/key/message_template", 404, "called `message_templates`"),
        (Method::GET, "/api/v1.0/key/message_templates", 404, "both come before the collection"),
        (Method::GET, "/api/v1.0/15 55/key/message_templates", 404, "The phone number id"),
        (Method::GET, "/shop/key/message_templates", 404, "The path lacks its beginning"),
        (Method::PUT, "/shop/key/message_templates", 404, "The path lacks its beginning"),
        (Method::PUT, "/api/v1.0/1555/key/message_templates/7", 405, "PATCH edits it"),
        (Method::POST, "/healthz", 405, "Allow header"),
    ] {
        let path = path.replace(' ', "%20");
        let slug = if status == 404 { "not-found" } else { "method-not-allowed" };
        let response = app.send(request(method, &path, "", "")).await.problem(status, slug);
        let detail = response["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{path}: {detail}");
    }
}

#[tokio::test]
async fn a_valid_request_id_of_the_client_is_used() {
    let app = TestApp::start().await;
    let request_id = async |id: &str| {
        let mut request = request(Method::GET, "/healthz", "", "");
        request.headers_mut().insert("x-request-id", id.parse().unwrap());
        app.send(request).await.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(request_id("order-77").await, "order-77");
    for invalid in ["", "two words", "{\"x\":1}", &"x".repeat(65)] {
        let id = request_id(invalid).await;
        assert!(id.starts_with("test-"), "{invalid:?} became {id}");
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
    for line in &lines {
        let [method, route, status] = ["method", "route", "status"].map(|it| &line[it]);
        let (method, route) = (method.as_str().unwrap(), route.as_str().unwrap());
        assert_eq!(line["message"], format!("{method} {route} {status}"), "{log}");
        let level = if status.as_u64().unwrap() >= 500 { "ERROR" } else { "INFO" };
        assert_eq!(line["level"], level, "{log}");
    }
    assert!(lines.iter().all(|it| it["trace_id"].is_null()), "no client named a trace: {log}");
}

/// The routes in the access log after a call of every path for operators, and one that fails.
async fn logged_routes(logged: LoggedRequests) -> Vec<String> {
    let app = TestApp::start_built(TestService::builder().logged(logged)).await;
    for path in ["/healthz", "/readyz", "/metrics", "/healthz/", "/problems"] {
        assert_eq!(app.send(request(Method::GET, path, "", "")).await.status, 200);
    }
    app.app.start_draining();
    app.send(request(Method::GET, "/readyz", "", "")).await.problem(503, "not-ready");
    let log = app.into_log();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| format!("{} {}", line["route"].as_str().unwrap(), line["status"])).collect()
}

#[tokio::test]
async fn successful_calls_of_monitoring_are_not_logged_unless_the_operator_wants_it() {
    assert_eq!(logged_routes(LoggedRequests::Calls).await, ["/problems 200", "/readyz 503"]);
    assert_eq!(logged_routes(LoggedRequests::None).await, [""; 0]);
    assert_eq!(logged_routes(LoggedRequests::All).await.len(), 6);
}

#[tokio::test]
async fn the_api_reference_is_served_from_the_binary() {
    let app = TestApp::start().await;
    for (path, kind) in [
        ("/docs", "text/html"),
        ("/docs/", "text/html"),
        ("/docs/index.html", "text/html"),
        ("/docs/docs.css", "text/css"),
        ("/docs/docs.js", "text/javascript"),
        ("/docs/swagger-ui.css", "text/css"),
        ("/docs/swagger-ui-bundle.js", "text/javascript"),
    ] {
        let response = app.send(request(Method::GET, path, "", "")).await;
        assert_eq!(response.status.as_u16(), 200, "{path}");
        assert!(response.header("content-type").unwrap().starts_with(kind), "{path}: {response:?}");
    }
    let page = app.send(request(Method::GET, "/docs", "", "")).await;
    let page = page.text();
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "nothing is loaded from elsewhere"
    );
}

#[tokio::test]
async fn every_page_has_a_content_security_policy() {
    let app = TestApp::start().await;
    let get = async |path: &str| app.send(request(Method::GET, path, "", "")).await;
    let slugs = &V1["components"]["parameters"]["Slug"]["schema"]["enum"];
    let slugs: Vec<&str> =
        slugs.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let files = ["index.html", "docs.css", "docs.js", "swagger-ui.css", "swagger-ui-bundle.js"];
    let mut pages = 0;
    for operation in operations(&V1) {
        let path = operation.pattern;
        if operation.description["responses"]["200"]["content"]["text/html"].is_null() {
            continue;
        }
        let paths: Vec<String> = match path.split_once('{') {
            None if path == "/" => vec![path.to_owned()],
            None => vec![path.to_owned(), format!("{path}/")],
            Some((base, "slug}")) => slugs.iter().map(|slug| format!("{base}{slug}")).collect(),
            Some((base, "file}")) => files.iter().map(|file| format!("{base}{file}")).collect(),
            Some(_) => panic!("the test does not know the values of {path}"),
        };
        for path in paths {
            let page = get(&path).await;
            assert_eq!(page.status, 200, "{path}");
            let is_html = page.header("content-type").unwrap().starts_with("text/html");
            pages += usize::from(is_html);
            let policy = page.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none'; "), "{path}: {policy}");
            assert!(policy.ends_with("frame-ancestors 'none'"), "{path}: {policy}");
            assert_eq!(page.header("x-content-type-options"), Some("nosniff"), "{path}");
            assert_eq!(page.header("referrer-policy"), Some("no-referrer"), "{path}");
            let inline = page.text().contains("<script>") || page.text().contains("<style");
            assert!(!is_html || !inline, "{path}");
        }
    }
    assert!(pages > 40, "{pages} pages");
}
