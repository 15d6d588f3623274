//! Calls that end with an unknown outcome again and again.

use super::*;

/// The operation after a call with this failure, at the time at which it is due.
fn called(operation: &Operation, failure: CallFailure) -> Operation {
    let at = operation.held_until.unwrap_or_else(now);
    operation.begin(at).unwrap().after_call(Err(failure), at)
}

/// The operation after a probe with this result, at the time at which it is due.
fn probed(operation: &Operation, result: ProbeResult) -> Operation {
    let at = operation.held_until.unwrap_or_else(now);
    operation.begin_probe(at).unwrap().after_probe(result, at)
}

fn unknown() -> CallFailure {
    CallFailure::Unknown("500".to_owned())
}

fn not_sent() -> CallFailure {
    CallFailure::NotSent("refused connection".to_owned())
}

/// What a probe shows if the call had no effect.
fn no_effect(kind: OperationKind) -> ProbeResult {
    if kind == OperationKind::Create { ProbeResult::Absent } else { ProbeResult::Different }
}

#[test]
fn a_call_that_never_tells_its_outcome_is_made_once_an_hour_in_the_end() {
    for kind in [OperationKind::Create, OperationKind::Edit, OperationKind::Delete] {
        let mut operation = Operation::new(kind);
        for calls in 1..10 {
            operation = probed(&called(&operation, unknown()), no_effect(kind));
            assert_eq!(shown(&operation), ("queued".to_owned(), None), "{kind:?}");
            assert_eq!(operation.unknown_calls, calls);
        }
        for calls in 10..13 {
            let probing = called(&operation, unknown());
            let at = probing.held_until.unwrap();
            operation = probed(&probing, no_effect(kind));
            let held = OperationState::Held(HeldReason::Throttle);
            assert_eq!((operation.state, operation.unknown_calls), (held, calls));
            let message = &operation.error.as_ref().unwrap().message;
            assert_eq!(message, "10 calls told nothing, and had no effect.");
            let until = at + SignedDuration::from_hours(1);
            assert_eq!(operation.held_until, Some(until), "{kind:?}");
            assert!(!operation.is_due(until - SignedDuration::from_secs(1)));
            assert!(operation.is_due(until));
        }
        let at = operation.held_until.unwrap();
        let done = operation.begin(at).unwrap().after_call(Ok(done(kind)), at);
        assert_eq!((done.state, done.unknown_calls), (OperationState::Done, 0));
    }
}

#[test]
fn a_create_that_exists_and_is_never_found_is_made_once_an_hour_in_the_end() {
    let mut operation = Operation::new(OperationKind::Create);
    for _ in 0..10 {
        assert_eq!(operation.held_until, None);
        operation = probed(&called(&operation, CallFailure::Exists(error())), ProbeResult::Absent);
    }
    assert!(operation.held_until.is_some());
}

#[test]
fn only_calls_with_an_unknown_outcome_are_counted() {
    for kind in KINDS {
        for failure in failures() {
            let after = sending(kind).after_call(Err(failure.clone()), now());
            let is_unknown = after.state == OperationState::Unknown;
            assert_eq!(after.unknown_calls, u32::from(is_unknown), "{kind:?} {failure:?}");
            let probed = probing(kind).after_probe(ProbeResult::Failed(failure.clone()), now());
            assert_eq!(probed.unknown_calls, 0, "a probe is not a call: {kind:?} {failure:?}");
        }
        assert_eq!(sending(kind).recovered().unknown_calls, 0, "a crash is not the provider's");
    }
}

#[test]
fn a_change_of_the_archive_is_not_refused_because_of_an_outage() {
    let mut operation = Operation::new(OperationKind::Archive);
    for _ in 0..30 {
        operation = called(&operation, not_sent());
    }
    assert!(operation.attempts >= 30);
    operation = called(&operation, unknown());
    for _ in 0..30 {
        operation = probed(&operation, ProbeResult::Failed(not_sent()));
    }
    operation = probed(&operation, ProbeResult::Different);
    assert_eq!((operation.state, operation.held_until), (OperationState::Queued, None));
}

#[test]
fn a_retry_of_a_person_begins_to_count_again() {
    let mut operation = Operation::new(OperationKind::Unarchive);
    while operation.state != OperationState::Refused {
        operation = probed(&called(&operation, unknown()), ProbeResult::Different);
    }
    assert_eq!(operation.unknown_calls, 10);
    let retried = operation.retry().unwrap();
    assert_eq!((retried.unknown_calls, retried.attempts), (0, operation.attempts));
    let again = probed(&called(&retried, unknown()), ProbeResult::Different);
    assert_eq!((again.state, again.unknown_calls), (OperationState::Queued, 1));
}
