//! Every row of the table of failures.

use super::*;
use crate::emulator::failures::{self, Failure, TEMPLATE_FAILURES};

/// An error body as the Graph surface of Galley writes it.
fn body(failure: &Failure) -> String {
    let Failure { code, subcode, kind, title, message, is_transient, .. } = *failure;
    let subcode = subcode.map_or_else(String::new, |it| format!(r#""error_subcode":{it},"#));
    format!(
        r#"{{"error":{{"message":"(#{code}) {title}","type":"{kind}","code":{code},{subcode}"error_user_title":"{title}","error_user_msg":"{message}","is_transient":{is_transient},"fbtrace_id":"x","galley_problem":"bad-request"}}}}"#
    )
}

fn classified(call: CallKind, failure: &Failure) -> CallFailure {
    let error = GraphErrorBody::read(body(failure).as_bytes(), &[]);
    assert!(error.is_some(), "{failure:?}");
    classify(call, failure.status, error, None)
}

#[test]
fn every_code_has_its_class() {
    let rows: [(&[u32], &str); 12] = [
        (&[4, 80_007, 80_008, 80_012], "throttled"),
        (&[0, 190, 3, 10, 200], "credentials"),
        (&[368, 131_031, 139_000], "restricted"),
        (&[1, 2], "unknown"),
        (&[2_388_024], "exists"),
        (&[2_388_023, 2_388_025], "name_locked"),
        (&[2_388_019], "template_limit"),
        (&[2_388_039, 2_388_124], "edit_not_allowed"),
        (&[33, 803], "gone"),
        (&[131_059], "cursor_expired"),
        (&[100, 192, 131_009, 200_002, 2_388_185], "refused"),
        (
            &[
                2_388_037, 2_388_040, 2_388_043, 2_388_046, 2_388_047, 2_388_050, 2_388_052,
                2_388_060, 2_388_072, 2_388_073, 2_388_081, 2_388_293, 2_388_299,
            ],
            "refused",
        ),
    ];
    let mut classified_rows = 0;
    for (numbers, expected) in rows {
        for number in numbers {
            let failure = failures::find(*number).unwrap();
            for call in [CallKind::Create, CallKind::Edit, CallKind::Delete, CallKind::Read] {
                let found = classified(call, &failure);
                assert_eq!(found.as_str(), expected, "{call:?} {number}");
                let has_error = !["throttled", "unknown"].contains(&expected);
                assert_eq!(found.error().map(|it| it.code), has_error.then_some(failure.code));
            }
            classified_rows += 1;
        }
    }
    assert_eq!(classified_rows, TEMPLATE_FAILURES.len(), "a failure has no row");
    for permission in 200..=299 {
        let failure = failures::find(permission).unwrap();
        assert_eq!(classified(CallKind::Read, &failure).as_str(), "credentials");
    }
}

#[test]
fn a_page_with_code_1_is_too_large() {
    let failure = failures::find(1).unwrap();
    assert_eq!(classified(CallKind::Page, &failure).as_str(), "too_much_data");
    assert_eq!(classified(CallKind::Create, &failure).as_str(), "unknown");
    assert_eq!(
        classified(CallKind::Page, &failures::find(2).unwrap()).as_str(),
        "unknown",
        "another code"
    );
}

#[test]
fn an_unknown_code_is_refused_unless_it_may_be_temporary() {
    let error = |is_transient| {
        let text = format!(r#"{{"error":{{"code":99999,"is_transient":{is_transient}}}}}"#);
        GraphErrorBody::read(text.as_bytes(), &[])
    };
    let class = |status, is_transient| {
        classify(CallKind::Create, status, error(is_transient), None).as_str()
    };
    assert_eq!(class(400, false), "refused");
    assert_eq!(class(400, true), "unknown");
    assert_eq!(class(500, false), "unknown");
    assert_eq!(class(429, false), "throttled");
    assert_eq!(class(200, false), "refused", "an error with a status of success");
}

#[test]
fn without_an_error_of_the_graph_api_the_status_decides() {
    for (status, expected) in [
        (200, "unknown"),
        (204, "unknown"),
        (301, "unknown"),
        (302, "unknown"),
        (307, "unknown"),
        (400, "refused"),
        (401, "credentials"),
        (403, "credentials"),
        (404, "gone"),
        (405, "refused"),
        (408, "unknown"),
        (413, "refused"),
        (429, "throttled"),
        (500, "unknown"),
        (502, "unknown"),
        (503, "unknown"),
        (504, "unknown"),
    ] {
        for call in [CallKind::Create, CallKind::Page] {
            assert_eq!(classify(call, status, None, None).as_str(), expected, "{status}");
        }
    }
}

#[test]
fn a_rest_lasts_as_long_as_the_provider_says() {
    let usage = |minutes: i64, percent: i64| {
        let header = format!(
            r#"{{"17":[{{"type":"whatsapp_business_management","call_count":{percent},"total_cputime":3,"total_time":5,"estimated_time_to_regain_access":{minutes}}}]}}"#
        );
        Usage::read(&header, "17").unwrap()
    };
    let failure = failures::find(80_008).unwrap();
    let rest = |usage| {
        let error = GraphErrorBody::read(body(&failure).as_bytes(), &[]);
        classify(CallKind::Create, 400, error, usage).rest().unwrap().as_mins()
    };
    assert_eq!(rest(None), 5);
    assert_eq!(rest(Some(usage(0, 100))), 5);
    assert_eq!(rest(Some(usage(12, 100))), 12);
    assert_eq!(rest(Some(usage(i64::from(u32::MAX), 100))), 24 * 60, "bounded");
    assert_eq!((usage(12, 94).rest(), usage(0, 95).rest()), (None, Some(DEFAULT_REST)));
    assert_eq!(usage(12, 95).rest(), Some(SignedDuration::from_mins(12)));
}

#[test]
fn a_used_budget_explains_a_failed_read_but_not_a_failed_write() {
    let usage = Usage { percent: 96, regain: Some(SignedDuration::from_mins(3)) };
    let class = |call, number| {
        let failure = failures::find(number).unwrap();
        let error = GraphErrorBody::read(body(&failure).as_bytes(), &[]);
        classify(call, failure.status, error, Some(usage)).as_str()
    };
    assert_eq!(class(CallKind::Read, 2), "throttled");
    assert_eq!(class(CallKind::Create, 2), "unknown", "it may have been created");
    assert_eq!(class(CallKind::Read, 190), "credentials");
    assert_eq!(class(CallKind::Create, 2_388_072), "refused");
}

#[test]
fn usage_is_the_largest_figure_of_the_account() {
    let header = r#"{"1":[{"call_count":99}],"17":[{"call_count":1,"total_cputime":40,"total_time":2},
        {"call_count":7,"total_cputime":0,"total_time":0,"estimated_time_to_regain_access":2}]}"#;
    let usage = Usage::read(header, "17").unwrap();
    assert_eq!((usage.percent, usage.regain), (40, Some(SignedDuration::from_mins(2))));
    assert_eq!(Usage::read_app(r#"{"call_count":97,"total_time":1}"#).unwrap().percent, 97);
    for other in ["", "[]", "{}", r#"{"17":[]}"#, r#"{"17":[{"call_count":"x"}]}"#] {
        assert_eq!(Usage::read(other, "17"), None, "{other}");
    }
}

#[test]
fn texts_are_bounded_and_lose_secrets() {
    let long = "a".repeat(290);
    let text = format!(
        r#"{{"error":{{"code":190,"message":"developer","error_user_title":"Token tok-123 is bad","error_user_msg":"{long}\nMalformed access token tok-123 and more"}}}}"#
    );
    let GraphErrorBody { error, .. } =
        GraphErrorBody::read(text.as_bytes(), &["", "tok-123"]).unwrap();
    assert_eq!(error.title.as_deref(), Some("Token [redacted] is bad"));
    assert_eq!(error.message.chars().count(), MAX_CHARS);
    assert!(error.message.starts_with(&long) && error.message.contains(" Malformed"));
    let shown = CallFailure::Credentials(error.clone()).to_string();
    assert!(shown.contains("190 Token [redacted]") && !shown.contains("tok-123"), "{shown}");
    let split = text.replace(&long, &"a".repeat(270));
    let GraphErrorBody { error, .. } =
        GraphErrorBody::read(split.as_bytes(), &["tok-123"]).unwrap();
    assert!(!error.message.contains("tok-"), "a secret is not cut in half: {}", error.message);
    let without = r#"{"error":{"code":1,"message":"developer"}}"#;
    let GraphErrorBody { error, .. } = GraphErrorBody::read(without.as_bytes(), &[]).unwrap();
    assert_eq!((error.title, &*error.message), (None, "developer"));
    for other in ["", "{}", r#"{"error":{}}"#, r#"{"error":{"code":-1}}"#, r#"{"error":"x"}"#] {
        assert_eq!(GraphErrorBody::read(other.as_bytes(), &[]), None, "{other}");
    }
}

/// The longest text of an error.
const MAX_CHARS: usize = 300;

#[test]
fn only_failures_of_the_whole_connection_rest() {
    let error =
        || ProviderError { code: 1, subcode: Some(2), title: None, message: "x".to_owned() };
    let rest = |failure: CallFailure| failure.rest().map(|it| it.as_mins());
    assert_eq!(rest(CallFailure::Credentials(error())), Some(15));
    assert_eq!(rest(CallFailure::Restricted(error())), Some(15));
    assert_eq!(rest(CallFailure::Forbidden(error())), None, "it is about one call");
    assert_eq!(rest(CallFailure::Refused(error())), None);
    assert_eq!(rest(CallFailure::Unknown(String::new())), None);
    assert_eq!(error().to_string(), "1/2: x");
    let titled = ProviderError { title: Some("Wait".to_owned()), ..error() };
    assert_eq!(titled.to_string(), "1/2 Wait: x");
}

#[test]
fn a_failure_without_an_error_of_the_provider_is_an_error_without_a_code() {
    let unreachable = CallFailure::NotSent(format!("Could not connect.\n{}", "a".repeat(400)));
    let error = unreachable.to_error();
    assert_eq!((error.code, error.message.chars().count()), (0, MAX_CHARS));
    assert!(error.to_string().starts_with("the request was not sent: Could not connect. aaa"));
    let throttled = CallFailure::Throttled { rest: SignedDuration::from_mins(5) };
    assert_eq!(throttled.to_error().to_string(), "the provider throttles calls for 300 s");
    let refused = ProviderError { code: 190, subcode: None, title: None, message: "x".to_owned() };
    assert_eq!(CallFailure::Credentials(refused.clone()).to_error(), refused);
}
