//! Unknown paths and methods return 404 and 405 as problem documents.

use tempfile::TempDir;

use crate::{
    http::{Request, Response},
    service::{KEY, Launch, PHONE, Service, authorized, document},
};

fn started() -> (TempDir, Service) {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    (dir, service)
}

fn post_to(service: &Service, path: &str) -> Response {
    let body = document("invalid_path", "Hello!").to_string();
    service.send(&authorized(Request::new("POST", path)).body(body))
}

/// Segments that are not valid as phone number ids or keys.
fn invalid_segments() -> Vec<String> {
    let invalid = [
        "",
        "%2F",
        "a%2Fb",
        "%00",
        "a%00b",
        "%ff",
        "%",
        "%zz",
        "%20",
        "%0d%0a",
        "%25",
        "a;b=c",
        "a:b",
        "a,b",
        "%C3%A4",
        "*",
        "@",
        "..%2F..",
        "%2e%2e%2f",
        "%5c..%5c",
    ];
    invalid.map(str::to_owned).into_iter().chain([257, 20_000].map(|n| "a".repeat(n))).collect()
}

#[test]
fn an_invalid_segment_returns_404_in_any_position() {
    let (_dir, service) = started();
    for invalid in invalid_segments() {
        let shown = invalid.chars().take(40).collect::<String>();
        for path in [
            format!("/api/v1.0/{invalid}/{KEY}/message_templates"),
            format!("/api/v1.0/{PHONE}/{invalid}/message_templates"),
        ] {
            let response = post_to(&service, &path);
            assert_eq!(response.status, 404, "{shown:?}: {response:?}");
            response.is_problem(404, "not-found");
            assert!(response.body.len() < 1_024);
        }
        if !invalid.is_empty() {
            let path = format!("/api/v1.0/{PHONE}/{KEY}/message_templates/{invalid}");
            let response = service.send(&authorized(Request::get(path)));
            assert_eq!(response.status, 404, "{shown:?}: {response:?}");
        }
    }
    service.assert_works("after_invalid_segments");
}

#[test]
fn dot_segments_are_not_resolved() {
    let (_dir, service) = started();
    for dots in ["..", "%2e%2e", ".", "%2E."] {
        let phone = format!("/api/v1.0/{dots}/{KEY}/message_templates");
        post_to(&service, &phone).is_problem(404, "not-found");
        let key = format!("/api/v1.0/{PHONE}/{dots}/message_templates");
        post_to(&service, &key).is_problem(404, "not-found");
        let id = format!("/api/v1.0/{PHONE}/{KEY}/message_templates/{dots}");
        service.send(&authorized(Request::get(id))).is_problem(404, "template-unknown");
    }
}

#[test]
fn an_unknown_path_returns_404() {
    let (_dir, service) = started();
    for path in [
        "/api".to_owned(),
        "/api/v1.0".to_owned(),
        format!("/api/v1.0/{PHONE}/{KEY}"),
        format!("/api/v1.0/{PHONE}/{KEY}/message_template"),
        format!("/api/v1/{PHONE}/{KEY}/message_templates"),
        format!("/api/v1.0//{PHONE}/{KEY}/message_templates"),
        format!("//api/v1.0/{PHONE}/{KEY}/message_templates"),
        format!("/api/v1.0/{PHONE}/{KEY}/message_templates;v=1"),
        format!("/api/v1.0/{PHONE}/{KEY}/message_templates//"),
        format!("/api/v1.0/{PHONE}/{KEY}/../message_templates"),
        format!("/api/v1.0/{PHONE}/{KEY}%2Fmessage_templates"),
        format!("/api/v1.0/{PHONE}/{KEY}/message_templates/1/2/3"),
        "/problems/no-such-problem".to_owned(),
        "/problems/..%2f..%2fetc%2fpasswd".to_owned(),
        "/docs/../../etc/passwd".to_owned(),
        "/docs/..%2f..%2fetc%2fpasswd".to_owned(),
        "/%00".to_owned(),
        format!("/{}", "a/".repeat(10_000)),
    ] {
        let response = post_to(&service, &path);
        let shown = path.chars().take(80).collect::<String>();
        assert!(matches!(response.status, 404 | 405), "{shown}: {response:?}");
        if path.starts_with("/api") {
            response.is_problem(404, "not-found");
        }
        let fetched = service.send(&Request::get(&*path));
        assert_eq!(fetched.status, 404, "{shown}: {fetched:?}");
        assert!(!fetched.text().contains("root:"), "{shown}");
    }
    // Longer URIs are rejected before routing.
    let endless = Request::get(format!("/{}", "a".repeat(70_000)));
    assert_eq!(service.send(&endless).status, 414);
    service.assert_works("after_unknown_paths");
}

#[test]
fn a_trailing_slash_is_ignored() {
    let (_dir, service) = started();
    let path = format!("/api/v1.0/{PHONE}/{KEY}/message_templates/");
    assert_eq!(post_to(&service, &path).status, 201);
    assert_eq!(service.send(&Request::get("/healthz/")).status, 200);
}

#[test]
fn a_request_target_in_absolute_form_is_routed_by_its_path() {
    let (_dir, service) = started();
    let path = format!("http://elsewhere.test/api/v1.0/{PHONE}/{KEY}/message_templates");
    let response = post_to(&service, &path);
    assert_eq!(response.status, 201, "{response:?}");
    assert!(!response.head.contains("elsewhere"), "{response:?}");
}

#[test]
fn an_unsupported_method_returns_405_with_an_allow_header() {
    let (_dir, service) = started();
    let path = format!("/api/v1.0/{PHONE}/{KEY}/message_templates");
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "post", "M-SEARCH"] {
        let response = service.send(&authorized(Request::new(method, &*path)));
        response.is_problem(405, "method-not-allowed");
        let allow = response.header("allow").unwrap_or_default();
        assert!(allow.split(',').any(|it| it.trim() == "POST"), "{method}: {response:?}");
    }
    // An unknown path takes precedence: it returns 404 without an Allow header.
    for invalid in ["%00", "%2F", ""] {
        let path = format!("/api/v1.0/{invalid}/{KEY}/message_templates");
        let response = service.send(&authorized(Request::new("PUT", path)));
        response.is_problem(404, "not-found");
        assert_eq!(response.header("allow"), None);
    }
    let posted = service.send(&Request::new("POST", "/healthz").body("{}"));
    posted.is_problem(405, "method-not-allowed");
}
