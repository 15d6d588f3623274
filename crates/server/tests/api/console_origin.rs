//! Calls of the console that pages of other origins make a browser send, and phone numbers.

use axum::{
    body::Body,
    http::{Method, Request},
};
use serde_json::{Value, json};

use super::{
    app::{KEY, PHONE, TOKEN, TestApp, hello, path, request},
    console::{own, signed_in},
};
use crate::harness::{TestAccount, TestResponse, TestService};

const UNCLAIMED: &str = "15550009999";

/// A call with the cookie and with these headers only.
async fn call(
    app: &TestApp,
    (method, path): (Method, &str),
    cookie: &str,
    headers: &[(&str, &str)],
) -> TestResponse {
    let mut request = Request::builder().method(method).uri(path).header("cookie", cookie);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.send(request.body(Body::empty()).unwrap()).await
}

/// Every call of API v1.0 as a call of the console, with ids that belong to nothing, and `/console/session`.
async fn all_calls(app: &TestApp) -> Vec<(Method, String)> {
    let document =
        app.send(Request::get("/openapi.json").body(Body::empty()).unwrap()).await.json();
    let mut calls = vec![
        (Method::GET, "/console/session".to_owned()),
        (Method::POST, "/console/session".to_owned()),
        (Method::DELETE, "/console/session".to_owned()),
    ];
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(rest) = path.strip_prefix("/api/v1.0/{phone_number_id}/{key}/") else { continue };
        let segments = rest.split('/').map(|it| if it.starts_with('{') { "7" } else { it });
        let path = format!("/console/api/-/{}", segments.collect::<Vec<_>>().join("/"));
        let methods = item.as_object().unwrap().keys().map(|it| it.to_uppercase());
        let methods = methods.filter_map(|it| it.parse::<Method>().ok());
        let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        calls.extend(methods.filter(|it| known.contains(it)).map(|it| (it, path.clone())));
    }
    assert!(calls.len() > 35, "{calls:?}");
    calls
}

#[tokio::test]
async fn a_page_of_another_origin_cannot_make_any_call_of_the_console() {
    let app = TestApp::start().await;
    let cookie = signed_in(&app).await;
    let foreign: [&[(&str, &str)]; 7] = [
        // Another port of the host is the same site: the browser sends the cookie.
        &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors"), ("galley-console", "1")],
        &[("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "image")],
        // The address, typed or from a bookmark.
        &[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")],
        // Without TLS, browsers do not send `Sec-Fetch-Site`.
        &[("origin", "http://galley.test:8081")],
        &[("origin", "null"), ("galley-console", "1")],
        &[("referer", "https://galley.test/")],
        &[],
    ];
    let mut calls = all_calls(&app).await;
    calls.push((Method::HEAD, "/console/api/-/message_templates".to_owned()));
    for (method, path) in calls {
        for headers in foreign {
            let refused = call(&app, (method.clone(), &path), &cookie, headers).await;
            let what = format!("{method} {path} {headers:?}");
            assert_eq!(refused.status, 403, "{what}: {refused:?}");
            assert_eq!(refused.header("access-control-allow-origin"), None, "{what}");
            if method != Method::HEAD {
                refused.problem(403, "cross-site");
            }
        }
    }
    // The browser asks first whether the page may send the header of the console's pages.
    let preflight =
        [("origin", "http://galley.test:8081"), ("access-control-request-method", "GET")];
    let path = "/console/api/-/message_templates";
    let refused = call(&app, (Method::OPTIONS, path), &cookie, &preflight).await;
    assert_eq!(refused.status, 405, "{refused:?}");
    assert_eq!(refused.header("access-control-allow-headers"), None, "{refused:?}");
}

#[tokio::test]
async fn the_consoles_own_pages_read_with_and_without_tls() {
    let app = TestApp::start().await;
    let cookie = signed_in(&app).await;
    for headers in [
        [("sec-fetch-site", "same-origin")],
        [("origin", "https://galley.test")],
        [("galley-console", "1")],
    ] {
        for path in ["/console/session", "/console/api/-/message_templates"] {
            let read = call(&app, (Method::GET, path), &cookie, &headers).await;
            assert_eq!(read.status, 200, "{path} {headers:?}: {read:?}");
        }
    }
    // Every page may link to the console's pages: they contain no data.
    for site in ["none", "same-site", "cross-site"] {
        let headers = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate")];
        let page = call(&app, (Method::GET, "/console/review"), &cookie, &headers).await;
        assert_eq!(page.status, 200, "{site}");
    }
}

#[tokio::test]
async fn a_session_claims_no_phone_number() {
    let app = TestApp::start().await;
    app.account("second", &["15550002222"], "key-2", "token-2").await;
    let cookie = signed_in(&app).await;
    let mut details = Vec::new();
    for phone in [UNCLAIMED, "15550002222"] {
        let path = format!("/console/api/{phone}/message_templates");
        for (method, body) in
            [(Method::GET, Value::Null), (Method::HEAD, Value::Null), (Method::POST, hello("a"))]
        {
            let refused = app.send(own(method.clone(), &path, &cookie, &body)).await;
            assert_eq!(refused.status, 404, "{method} {phone}: {refused:?}");
            if method == Method::GET {
                refused.problem(404, "phone-unknown");
                details.push(refused.json()["detail"].clone());
            }
        }
    }
    assert_eq!(details[0], details[1], "the text tells free numbers from those of other accounts");
    let account = app.store.accounts().await.unwrap()[0].id;
    assert_eq!(app.store.phones(account).await.unwrap(), [PHONE]);
    // A program claims the number with the same token; then the session uses it, too.
    let claimed = app.send(request(Method::GET, &path(UNCLAIMED, KEY), TOKEN, "")).await;
    assert_eq!(claimed.status, 200, "{claimed:?}");
    let path = format!("/console/api/{UNCLAIMED}/message_templates");
    let created = app.send(own(Method::POST, &path, &cookie, &hello("a"))).await;
    assert_eq!(created.status, 201, "{created:?}");
}

#[tokio::test]
async fn a_session_of_an_account_with_listed_numbers_gets_the_usual_answer() {
    let service = TestService::builder().start();
    let account =
        TestAccount { phones: &[PHONE], token: "token-1", ..TestAccount::named("listed") };
    service.account(account).await;
    let sign_in = own(Method::POST, "/console/session", "", &json!({"token": "token-1"}));
    let cookie = service.send(sign_in).await.header("set-cookie").unwrap().to_owned();
    let cookie = cookie.split(';').next().unwrap();
    for (phone, expected) in [(PHONE, 200), (UNCLAIMED, 404)] {
        let path = format!("/console/api/{phone}/message_templates");
        let response = service.send(own(Method::GET, &path, cookie, &Value::Null)).await;
        assert_eq!(response.status, expected, "{phone}: {response:?}");
    }
}
