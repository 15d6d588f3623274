//! Failures, with the bodies that the Graph surface of Galley writes.

use jiff::SignedDuration;

use super::*;

/// An error body of Galley.
fn error(code: u32, subcode: Option<u32>) -> String {
    let subcode = subcode.map_or_else(String::new, |it| format!(r#""error_subcode":{it},"#));
    format!(
        r#"{{"error":{{"message":"(#{code}) /name: is already in use.","type":"OAuthException","code":{code},{subcode}"error_user_title":"The name is in use","error_user_msg":"/name: is already in use.","error_data":{{"blame_field_specs":[["name"]]}},"is_transient":false,"fbtrace_id":"01J","galley_problem":"name-taken","galley_existing_id":"7"}}}}"#
    )
}

async fn created(response: Result<Response, TransportError>) -> CallFailure {
    upstream(&Script::new([response])).create("{}").await.unwrap_err()
}

#[tokio::test]
async fn errors_of_a_create_are_classified_by_their_codes() {
    for (status, code, subcode, expected) in [
        (400, 100, Some(2_388_024), "exists"),
        (400, 100, Some(2_388_023), "name_locked"),
        (400, 100, Some(2_388_019), "template_limit"),
        (400, 100, Some(2_388_040), "refused"),
        (400, 100, Some(33), "gone"),
        (400, 80_008, None, "throttled"),
        (401, 190, None, "credentials"),
        (403, 10, None, "credentials"),
        (403, 131_031, None, "restricted"),
        (500, 1, None, "unknown"),
        (503, 2, None, "unknown"),
        (200, 100, Some(2_388_024), "exists"),
    ] {
        let failure = created(Ok(response(status, &error(code, subcode)))).await;
        assert_eq!(failure.as_str(), expected, "{status} {code} {subcode:?}");
        if let Some(error) = failure.error() {
            assert_eq!((error.code, error.subcode), (code, subcode));
            assert_eq!(error.title.as_deref(), Some("The name is in use"));
            assert_eq!(error.message, "/name: is already in use.");
        }
    }
}

#[tokio::test]
async fn a_response_that_breaks_off_leaves_the_outcome_unknown() {
    let full = r#"{"id":"55","status":"PENDING","category":"MARKETING"}"#;
    for length in [0, 1, 8, 40] {
        let failure = created(Ok(response(200, &full[..length]))).await;
        assert_eq!(failure.as_str(), "unknown", "{length}");
    }
    let list = page(&[template(1, "a", "en")], Some("c1"));
    let query = PageQuery { after: None, limit: 1, with_components: false };
    for length in [0, 20, list.len() - 1] {
        let script = Script::with_bodies(&[&list[..length]]);
        let failure = upstream(&script).page(query.clone()).await.unwrap_err();
        assert_eq!(failure.as_str(), "unknown", "{length}");
    }
    for body in ["[]", "{}", r#"{"data":{}}"#, "<html></html>"] {
        let failure = upstream(&Script::with_bodies(&[body])).page(query.clone()).await;
        assert_eq!(failure.unwrap_err().as_str(), "unknown", "{body}");
        let failure = upstream(&Script::with_bodies(&[body])).read(&id("7")).await;
        assert_eq!(failure.unwrap_err().as_str(), "unknown", "{body}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let mut redirect = response(status, "");
        redirect.headers.push(("location".to_owned(), "https://elsewhere.example/".to_owned()));
        let script = Script::new([Ok(redirect)]);
        let failure = upstream(&script).create("{}").await.unwrap_err();
        assert_eq!((failure.as_str(), script.requests().len()), ("unknown", 1));
    }
}

#[tokio::test]
async fn the_transport_tells_whether_a_request_left() {
    let text = || "refused connection".to_owned();
    let failure = created(Err(TransportError::NotSent(text()))).await;
    assert_eq!(failure, CallFailure::NotSent(text()));
    let failure = created(Err(TransportError::Unknown(text()))).await;
    assert_eq!(failure, CallFailure::Unknown(text()));
    let rest = SignedDuration::from_mins(3);
    let failure = created(Err(TransportError::Resting(rest))).await;
    assert_eq!(failure, CallFailure::Throttled { rest });
}

#[tokio::test]
async fn a_throttled_call_rests_as_long_as_the_header_says() {
    let mut throttled = response(400, &error(80_008, None));
    let usage = r#"{"17":[{"type":"whatsapp_business_management","call_count":100,"total_cputime":100,"total_time":100,"estimated_time_to_regain_access":11}]}"#;
    throttled.headers.push(("x-business-use-case-usage".to_owned(), usage.to_owned()));
    throttled.headers.push(("x-app-usage".to_owned(), r#"{"call_count":3}"#.to_owned()));
    let script = Script::new([Ok(throttled), Ok(response(400, &error(4, None)))]);
    let upstream = upstream(&script);
    let rest = SignedDuration::from_mins(11);
    assert_eq!(upstream.create("{}").await, Err(CallFailure::Throttled { rest }));
    assert_eq!(upstream.usage().and_then(Usage::rest), Some(rest));
    let rest = SignedDuration::from_mins(5);
    assert_eq!(upstream.create("{}").await, Err(CallFailure::Throttled { rest }));
}

#[tokio::test]
async fn failures_of_reads_tell_what_to_do() {
    let query = PageQuery { after: None, limit: 100, with_components: true };
    for (status, code, subcode, expected) in [
        (500, 1, None, "too_much_data"),
        (400, 131_059, None, "cursor_expired"),
        (400, 100, Some(33), "gone"),
        (404, 803, None, "gone"),
        (503, 2, None, "unknown"),
    ] {
        let script = Script::new([Ok(response(status, &error(code, subcode)))]);
        let failure = upstream(&script).page(query.clone()).await.unwrap_err();
        assert_eq!(failure.as_str(), expected, "{code}");
    }
    let script = Script::new([Ok(response(404, "<html>"))]);
    assert_eq!(upstream(&script).read(&id("7")).await.unwrap_err().as_str(), "gone");
}
