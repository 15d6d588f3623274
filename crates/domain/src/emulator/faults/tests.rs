//! How often a fault strikes, and the header of a single call.

use proptest::prelude::*;

use super::*;
use crate::document::Document;

fn fault(text: &str) -> CountedFault {
    let fault = Fault::read(&Document::parse(text.as_bytes()).unwrap()).unwrap();
    CountedFault { fault, matched: 0 }
}

/// Which of the next calls are struck, by which fault.
fn struck(faults: &mut [CountedFault], call: Call, name: &str, calls: usize) -> Vec<Option<usize>> {
    (0..calls).map(|_| decide(faults, call, Some(name))).collect()
}

#[test]
fn a_fault_strikes_its_call_and_names_so_many_times() {
    let mut faults =
        [fault(r#"{"call":"create","name":"order_*","times":2,"kind":"close_before"}"#)];
    assert_eq!(struck(&mut faults, Call::Edit, "order_1", 2), [None, None]);
    assert_eq!(struck(&mut faults, Call::Create, "other", 2), [None, None]);
    assert_eq!(decide(&mut faults, Call::Create, None), None, "the call has no name");
    assert_eq!(struck(&mut faults, Call::Create, "order_1", 3), [Some(0), Some(0), None]);
    assert!(faults[0].fault.is_spent(faults[0].matched));
    assert_eq!(faults[0].matched, 2, "a spent fault counts no further");
}

#[test]
fn the_first_fault_that_strikes_hides_the_later_ones() {
    let mut faults = [
        fault(r#"{"call":"send","share":0.5,"kind":"truncate"}"#),
        fault(r#"{"call":"send","times":3,"kind":"error","code":131026}"#),
    ];
    let expected = [Some(1), Some(0), Some(1), Some(0), Some(1), Some(0), None, Some(0)];
    assert_eq!(struck(&mut faults, Call::Send, "a", 8), expected);
    assert_eq!([faults[0].matched, faults[1].matched], [8, 3]);
}

#[test]
fn a_share_is_exact_and_a_part_of_all_calls() {
    for (share, calls, expected) in [
        (1.0, 10, 10),
        (0.5, 10, 5),
        (0.29, 100, 29),
        (0.1, 9, 0),
        (0.1, 10, 1),
        (0.000_001, 999_999, 0),
        (0.000_001, 1_000_000, 1),
    ] {
        let share = Share::new(share).unwrap();
        assert_eq!((1..=calls).filter(|nth| share.strikes(*nth)).count(), expected, "{share:?}");
    }
    for share in [0.0, -0.5, 1.000_000_1, 0.000_000_4, f64::NAN, f64::INFINITY, 2.0] {
        assert_eq!(Share::new(share), None, "{share}");
    }
}

#[test]
fn a_stored_fault_is_restored() {
    for text in [
        r#"{"call":"create","name":"a*","times":1000000,"kind":"error","code":2388024}"#,
        r#"{"call":"list","share":0.25,"kind":"delay","delay":"30s"}"#,
        r#"{"call":"webhook","share":1,"kind":"reorder"}"#,
    ] {
        let read = fault(text).fault;
        assert_eq!(read.as_json(), text);
        assert_eq!(Fault::restore(text), Some(read));
    }
    assert_eq!(Fault::restore("{}"), None);
    let upper = fault(r#"{"kind":"DROP","call":"Webhook","times":1.0,"x":2}"#).fault;
    assert_eq!(upper.as_json(), r#"{"call":"webhook","times":1,"kind":"drop"}"#);
}

#[test]
fn an_error_without_code_is_a_temporary_one() {
    let codes = |text: &str| match fault(text).fault.effect {
        FaultEffect::Error(failure) => (failure.code, failure.subcode),
        other => panic!("{other:?}"),
    };
    assert_eq!(codes(r#"{"call":"read","times":1,"kind":"error"}"#), (2, None));
    let exists = r#"{"call":"read","times":1,"kind":"error","code":2388024}"#;
    assert_eq!(codes(exists), (100, Some(2_388_024)));
    assert_eq!(codes(r#"{"call":"read","times":1,"kind":"error","code":0}"#), (0, None));
}

#[test]
fn a_header_names_a_kind_with_its_argument() {
    let error = |code| FaultEffect::Error(failures::find(code).unwrap());
    let delay = |seconds| FaultEffect::Delay(SignedDuration::from_secs(seconds));
    for (text, expected) in [
        ("error", error(2)),
        (" error = 131026 ", error(131_026)),
        ("Error=0", error(0)),
        ("delay=5s", delay(5)),
        ("delay=30s", delay(30)),
        ("delay=0s", delay(0)),
        ("close_before", FaultEffect::CloseBefore),
        ("CLOSE_AFTER_COMMIT", FaultEffect::CloseAfterCommit),
        ("truncate", FaultEffect::Truncate),
    ] {
        assert_eq!(FaultEffect::from_header(text), Ok(expected), "{text}");
    }
    for text in [
        "",
        "x",
        "error=",
        "error=7",
        "error=x",
        "delay",
        "delay=",
        "delay=31s",
        "delay=5",
        "truncate=1",
        "drop",
        "duplicate",
        "reorder",
        "=",
        "=5s",
    ] {
        assert!(FaultEffect::from_header(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn the_first_n_calls_contain_the_share_of_n(parts in 1_u32..=1_000_000, calls in 0_u64..3_000) {
        let share = Share(parts);
        let struck = (1..=calls).filter(|nth| share.strikes(*nth)).count() as u64;
        prop_assert_eq!(struck, calls * u64::from(parts) / 1_000_000);
    }
}
