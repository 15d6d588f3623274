//! Paths and methods that are none of ours: 404 and 405, told as problems, whatever they hold.

use tempfile::TempDir;

use crate::{
    http::{Answer, Request},
    service::{KEY, Launch, PHONE, Service, authorized, document},
};

fn started() -> (TempDir, Service) {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    (dir, service)
}

fn post_to(service: &Service, path: &str) -> Answer {
    let body = document("odd_path", "Hello!").to_string();
    service.send(&authorized(Request::new("POST", path)).body(body))
}

/// Segments that the pattern of phone number ids and keys does not take.
fn odd_segments() -> Vec<String> {
    let odd = [
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
    odd.map(str::to_owned).into_iter().chain([257, 20_000].map(|n| "a".repeat(n))).collect()
}

#[test]
fn an_odd_segment_is_answered_404_wherever_it_stands() {
    let (_dir, service) = started();
    for odd in odd_segments() {
        let shown = odd.chars().take(40).collect::<String>();
        for path in [
            format!("/api/v1.0/{odd}/{KEY}/message_templates"),
            format!("/api/v1.0/{PHONE}/{odd}/message_templates"),
        ] {
            let answer = post_to(&service, &path);
            assert_eq!(answer.status, 404, "{shown:?}: {answer:?}");
            answer.is_problem(404, "not-found");
            assert!(answer.body.len() < 1_024);
        }
        if !odd.is_empty() {
            let path = format!("/api/v1.0/{PHONE}/{KEY}/message_templates/{odd}");
            let answer = service.send(&authorized(Request::get(path)));
            assert_eq!(answer.status, 404, "{shown:?}: {answer:?}");
        }
    }
    service.is_well("after_odd_segments");
}

#[test]
fn dots_lead_nowhere() {
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
fn a_path_of_no_route_is_answered_404() {
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
        let answer = post_to(&service, &path);
        let shown = path.chars().take(80).collect::<String>();
        assert!(matches!(answer.status, 404 | 405), "{shown}: {answer:?}");
        if path.starts_with("/api") {
            answer.is_problem(404, "not-found");
        }
        let read = service.send(&Request::get(&*path));
        assert_eq!(read.status, 404, "{shown}: {read:?}");
        assert!(!read.text().contains("root:"), "{shown}");
    }
    // Beyond this no URI is read at all.
    let endless = Request::get(format!("/{}", "a".repeat(70_000)));
    assert_eq!(service.send(&endless).status, 414);
    service.is_well("after_paths_of_no_route");
}

#[test]
fn a_slash_at_the_end_makes_no_difference() {
    let (_dir, service) = started();
    let path = format!("/api/v1.0/{PHONE}/{KEY}/message_templates/");
    assert_eq!(post_to(&service, &path).status, 201);
    assert_eq!(service.send(&Request::get("/healthz/")).status, 200);
}

#[test]
fn the_whole_address_in_the_request_line_is_read_as_its_path() {
    let (_dir, service) = started();
    let path = format!("http://elsewhere.test/api/v1.0/{PHONE}/{KEY}/message_templates");
    let answer = post_to(&service, &path);
    assert_eq!(answer.status, 201, "{answer:?}");
    assert!(!answer.head.contains("elsewhere"), "{answer:?}");
}

#[test]
fn a_method_that_a_path_does_not_take_is_answered_405_with_those_it_takes() {
    let (_dir, service) = started();
    let path = format!("/api/v1.0/{PHONE}/{KEY}/message_templates");
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "post", "M-SEARCH"] {
        let answer = service.send(&authorized(Request::new(method, &*path)));
        answer.is_problem(405, "method-not-allowed");
        let allow = answer.header("allow").unwrap_or_default();
        assert!(allow.split(',').any(|it| it.trim() == "POST"), "{method}: {answer:?}");
    }
    // The path comes first: what is no path has no methods.
    for odd in ["%00", "%2F", ""] {
        let path = format!("/api/v1.0/{odd}/{KEY}/message_templates");
        let answer = service.send(&authorized(Request::new("PUT", path)));
        answer.is_problem(404, "not-found");
        assert_eq!(answer.header("allow"), None);
    }
    let posted = service.send(&Request::new("POST", "/healthz").body("{}"));
    posted.is_problem(405, "method-not-allowed");
}
