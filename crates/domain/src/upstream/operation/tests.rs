//! Every transition of an operation, and what no sequence of them does.

mod unknown_calls;

use proptest::prelude::*;

use super::*;
use crate::upstream::{RemoteId, RemoteStatus};

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn error() -> ProviderError {
    ProviderError { code: 100, subcode: None, title: None, message: "no".to_owned() }
}

const KINDS: [OperationKind; 5] = [
    OperationKind::Create,
    OperationKind::Edit,
    OperationKind::Delete,
    OperationKind::Archive,
    OperationKind::Unarchive,
];

fn done(kind: OperationKind) -> CallDone {
    match kind {
        OperationKind::Create => CallDone::Created(Created {
            id: RemoteId::parse("7").unwrap(),
            status: RemoteStatus::Pending,
            category: None,
        }),
        OperationKind::Edit => CallDone::Edited,
        OperationKind::Delete => CallDone::Deleted,
        OperationKind::Archive => CallDone::Archived,
        OperationKind::Unarchive => CallDone::Unarchived,
    }
}

fn failures() -> Vec<CallFailure> {
    let with_error: [fn(ProviderError) -> CallFailure; 11] = [
        CallFailure::Credentials,
        CallFailure::Forbidden,
        CallFailure::Restricted,
        CallFailure::Exists,
        CallFailure::NameLocked,
        CallFailure::TemplateLimit,
        CallFailure::EditNotAllowed,
        CallFailure::Gone,
        CallFailure::CursorExpired,
        CallFailure::TooMuchData,
        CallFailure::Refused,
    ];
    let mut failures: Vec<CallFailure> = with_error.iter().map(|it| it(error())).collect();
    failures.push(CallFailure::NotSent("refused connection".to_owned()));
    failures.push(CallFailure::Unknown("timeout".to_owned()));
    failures.push(CallFailure::Throttled { rest: SignedDuration::from_mins(7) });
    failures
}

fn sending(kind: OperationKind) -> Operation {
    Operation::new(kind).begin(now()).unwrap()
}

fn probing(kind: OperationKind) -> Operation {
    sending(kind).recovered().begin_probe(now()).unwrap()
}

/// The word of the state with the reason of a hold, and the seconds until the next step.
fn shown(operation: &Operation) -> (String, Option<i64>) {
    let reason = operation.state.held_reason().map_or("", HeldReason::as_str);
    let seconds = operation.held_until.map(|it| it.duration_since(now()).as_secs());
    (format!("{} {reason}", operation.state.as_str()).trim_end().to_owned(), seconds)
}

#[test]
fn a_call_that_succeeds_is_done() {
    for kind in KINDS {
        let queued = Operation::new(kind);
        assert_eq!((queued.state, queued.attempts), (OperationState::Queued, 0));
        let sending = queued.begin(now()).unwrap();
        assert_eq!((sending.state, sending.attempts), (OperationState::Sending, 1));
        let after = sending.after_call(Ok(done(kind)), now());
        assert_eq!(shown(&after), ("done".to_owned(), None));
        assert_eq!(after.error, None);
    }
}

#[test]
fn every_failure_of_a_call_leads_to_one_state() {
    const WEEK: i64 = 7 * 24 * 3_600;
    for (failure, states, seconds) in [
        ("not_sent", ["queued"; 4], Some(1)),
        ("unknown", ["unknown"; 4], Some(1)),
        ("too_much_data", ["unknown"; 4], Some(1)),
        ("throttled", ["held throttle"; 4], Some(420)),
        ("credentials", ["held credentials"; 4], None),
        ("forbidden", ["held credentials"; 4], Some(24 * 3_600)),
        ("restricted", ["held restricted"; 4], None),
        ("name_locked", ["held name_lock"; 4], Some(WEEK)),
        ("template_limit", ["held limit"; 4], Some(3_600)),
        ("edit_not_allowed", ["refused", "held quota", "refused", "refused"], Some(24 * 3_600)),
        ("exists", ["unknown", "unknown", "refused", "refused"], Some(1)),
        ("gone", ["held credentials", "unknown", "unknown", "refused"], Some(1)),
        ("cursor_expired", ["refused"; 4], None),
        ("refused", ["refused"; 4], None),
    ] {
        let found = failures().into_iter().find(|it| it.as_str() == failure).unwrap();
        let states = states.into_iter().chain([states[3]]);
        for (kind, expected) in KINDS.into_iter().zip(states) {
            let after = sending(kind).after_call(Err(found.clone()), now());
            let has_no_end = ["refused", "held restricted"].contains(&expected)
                || (expected == "held credentials" && failure != "forbidden");
            let expected = (expected.to_owned(), seconds.filter(|_| !has_no_end));
            assert_eq!(shown(&after), expected, "{kind:?} {failure}");
            assert_eq!(after.error.as_ref(), found.error(), "{kind:?} {failure}");
            assert_eq!(after.attempts, 1);
        }
    }
}

#[test]
fn every_result_of_a_probe_leads_to_one_state() {
    for (result, states) in [
        (ProbeResult::Absent, ["queued", "conflict", "done", "conflict", "conflict"]),
        (ProbeResult::Equal, ["done", "done", "queued", "done", "done"]),
        (ProbeResult::Different, ["conflict", "queued", "queued", "queued", "queued"]),
    ] {
        for (kind, expected) in KINDS.into_iter().zip(states) {
            let after = probing(kind).after_probe(result.clone(), now());
            assert_eq!(after.state.as_str(), expected, "{kind:?} {result:?}");
            assert_eq!(after.held_until, None, "the provider answers: the call is made at once");
        }
    }
}

#[test]
fn a_probe_that_fails_leaves_the_outcome_unknown_and_waits() {
    for failure in failures() {
        let seconds = match failure.as_str() {
            // After the last two, the connection rests until the token is replaced or a person resumes it.
            "not_sent" | "unknown" | "credentials" | "restricted" => 2,
            "throttled" => 420,
            _ => 15 * 60,
        };
        for kind in KINDS {
            let after = probing(kind).after_probe(ProbeResult::Failed(failure.clone()), now());
            assert_eq!(shown(&after), ("unknown".to_owned(), Some(seconds)), "{failure:?}");
            assert!(!after.is_due(now()) && after.begin_probe(now()).is_none());
            let later = now() + SignedDuration::from_secs(seconds);
            assert!(after.begin(later).is_none(), "only a probe follows");
            assert_eq!(after.begin_probe(later).unwrap().attempts, 3);
        }
    }
}

#[test]
fn a_crash_makes_the_outcome_unknown() {
    for kind in KINDS {
        for crashed in [sending(kind), probing(kind)] {
            let recovered = crashed.recovered();
            assert_eq!(recovered.state, OperationState::Unknown);
            assert!(recovered.is_due(now()), "a probe follows at once");
        }
        let queued = Operation::new(kind);
        assert_eq!(queued.recovered(), queued);
    }
}

#[test]
fn waits_double_up_to_a_minute() {
    let seconds: Vec<i64> = (0..12).map(|attempts| backoff(attempts).as_secs()).collect();
    assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]);
    assert_eq!(backoff(u32::MAX), MAX_BACKOFF);
    let mut operation = Operation::new(OperationKind::Create);
    let mut at = now();
    for expected in [1, 2, 4] {
        let failure = CallFailure::NotSent(String::new());
        operation = operation.begin(at).unwrap().after_call(Err(failure), at);
        assert!(operation.begin(at).is_none(), "not before the wait is over");
        assert_eq!(operation.held_until, Some(at + SignedDuration::from_secs(expected)));
        at += SignedDuration::from_secs(expected);
    }
}

#[test]
fn a_hold_ends_at_its_time_or_by_a_person() {
    let held = |failure: &str| {
        let failure = failures().into_iter().find(|it| it.as_str() == failure).unwrap();
        sending(OperationKind::Create).after_call(Err(failure), now())
    };
    let throttled = held("throttled");
    assert!(!throttled.is_due(now()) && throttled.begin(now()).is_none());
    let later = now() + SignedDuration::from_mins(7);
    assert_eq!(throttled.begin(later).unwrap().state, OperationState::Sending);
    let credentials = held("credentials");
    assert!(!credentials.is_due(Timestamp::MAX), "only a new token ends it");
    assert_eq!(credentials.released(HeldReason::Restricted), None);
    let released = credentials.released(HeldReason::Credentials).unwrap();
    assert_eq!((released.state, released.held_until), (OperationState::Queued, None));
    assert_eq!(credentials.retry(), Some(released.clone()));
    assert_eq!(credentials.released_by_success(HeldReason::Credentials), Some(released));
}

#[test]
fn a_call_that_is_not_allowed_is_tried_once_a_day_whatever_else_succeeds() {
    let forbidden =
        sending(OperationKind::Create).after_call(Err(CallFailure::Forbidden(error())), now());
    assert_eq!(forbidden.error, Some(error()));
    assert_eq!(forbidden.released_by_success(HeldReason::Credentials), None);
    assert!(forbidden.released(HeldReason::Credentials).is_some(), "a new token ends it");
    assert!(!forbidden.is_due(now() + SignedDuration::from_hours(23)));
    assert!(forbidden.is_due(now() + SignedDuration::from_hours(24)));
}

#[test]
fn a_person_retries_only_what_has_no_open_call() {
    for state in states() {
        let operation = Operation { state, ..Operation::new(OperationKind::Edit) };
        let expected = ["refused", "conflict", "held"].contains(&state.as_str());
        assert_eq!(operation.retry().is_some(), expected, "{state:?}");
        let expected = ["queued", "held"].contains(&state.as_str());
        assert_eq!(operation.unneeded().is_some(), expected, "{state:?}");
        let superseded = operation.superseded().state;
        let stays = matches!(state, OperationState::Done) || state.is_uncertain();
        assert_eq!(superseded, if stays { state } else { OperationState::Superseded });
    }
}

#[test]
fn only_a_call_in_progress_takes_an_outcome() {
    for state in states() {
        let operation = Operation { state, ..Operation::new(OperationKind::Create) };
        if state != OperationState::Sending {
            let outcome = Ok(done(OperationKind::Create));
            assert_eq!(operation.after_call(outcome, now()), operation, "{state:?}");
        }
        if state != OperationState::Probing {
            assert_eq!(operation.after_probe(ProbeResult::Absent, now()), operation, "{state:?}");
        }
        assert_eq!(operation.begin_probe(now()).is_some(), state == OperationState::Unknown);
        let is_begun = operation.begin(now()).is_some();
        assert_eq!(is_begun, state == OperationState::Queued, "{state:?}");
    }
}

fn states() -> Vec<OperationState> {
    let reasons = HeldReason::VALUES.iter().map(|it| HeldReason::parse(it).unwrap());
    let words = ["queued", "sending", "unknown", "probing", "done", "refused", "conflict"];
    let words = words.iter().chain(&["superseded"]);
    let states = words.map(|word| OperationState::parse(word, None).unwrap());
    states.chain(reasons.map(OperationState::Held)).collect()
}

#[test]
fn a_stored_state_is_read_again() {
    for state in states() {
        assert_eq!(OperationState::parse(state.as_str(), state.held_reason()), Some(state));
        let settled = ["done", "refused", "conflict", "superseded"].contains(&state.as_str());
        assert_eq!(state.is_settled(), settled, "{state:?}");
    }
    assert_eq!(OperationState::parse("held", None), None);
    assert_eq!(OperationState::parse("lost", None), None);
}

#[test]
fn versions_and_the_archive_replace_only_their_own_kind_and_a_delete_replaces_all() {
    for later in KINDS {
        for earlier in KINDS {
            let expected =
                later == OperationKind::Delete || later.is_archiving() == earlier.is_archiving();
            assert_eq!(later.supersedes(earlier), expected, "{later:?} {earlier:?}");
        }
    }
    assert!(!OperationKind::Archive.supersedes(OperationKind::Edit));
    assert!(!OperationKind::Edit.supersedes(OperationKind::Unarchive));
    assert!(OperationKind::Unarchive.supersedes(OperationKind::Archive));
}

/// Something that happens to an operation.
#[derive(Clone, Debug)]
enum Step {
    Begin,
    Call(usize),
    Crash,
    BeginProbe,
    Probe(usize),
    Supersede,
    Retry,
    Release(usize),
    Unneeded,
    Conflict,
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Begin),
        4 => (0..15_usize).prop_map(Step::Call),
        2 => Just(Step::Crash),
        4 => Just(Step::BeginProbe),
        4 => (0..17_usize).prop_map(Step::Probe),
        1 => Just(Step::Supersede),
        1 => Just(Step::Retry),
        1 => (0..6_usize).prop_map(Step::Release),
        1 => Just(Step::Unneeded),
        1 => Just(Step::Conflict),
        4 => (0..1_000_i64).prop_map(Step::Wait),
    ]
}

#[test]
fn an_operation_waits_for_its_call_or_for_a_probe() {
    let calls = [
        CallKind::Create,
        CallKind::Edit,
        CallKind::Delete,
        CallKind::Archive,
        CallKind::Unarchive,
    ];
    for (kind, call) in KINDS.into_iter().zip(calls) {
        let queued = Operation::new(kind);
        assert_eq!(queued.awaited_call(), Some(call));
        let sending = queued.begin(now()).unwrap();
        assert_eq!(sending.awaited_call(), None, "the call is being made");
        let unknown = sending.recovered();
        assert_eq!(unknown.awaited_call(), Some(CallKind::Read));
        assert_eq!(unknown.begin_probe(now()).unwrap().awaited_call(), None);
        assert_eq!(sending.after_call(Ok(done(kind)), now()).awaited_call(), None);
    }
}

#[test]
fn a_change_of_the_archive_that_the_provider_does_not_make_is_refused_in_the_end() {
    let mut operation = Operation::new(OperationKind::Archive);
    let mut calls = 0;
    let mut at = now();
    while operation.state != OperationState::Refused {
        calls += 1;
        assert!(calls <= 10, "{operation:?}");
        at += SignedDuration::from_hours(1);
        let unknown = Err(CallFailure::Unknown(String::new()));
        operation = operation.begin(at).unwrap().after_call(unknown, at);
        at += SignedDuration::from_hours(1);
        operation = operation.begin_probe(at).unwrap().after_probe(ProbeResult::Different, at);
    }
    assert_eq!(calls, 10);
    assert!(operation.error.is_some() && operation.retry().is_some());
}

#[test]
fn a_person_decides_about_an_edit_that_would_replace_what_was_changed_outside() {
    let edit = Operation::new(OperationKind::Edit);
    let conflict = edit.conflicting(changed_outside()).unwrap();
    assert_eq!((conflict.state, conflict.attempts), (OperationState::Conflict, 0));
    assert_eq!(conflict.error, Some(changed_outside()));
    assert_eq!(conflict.conflicting(changed_outside()), None);
    assert_eq!(conflict.retry().unwrap().state, OperationState::Queued);
    let sending = sending(OperationKind::Edit);
    assert_eq!(sending.conflicting(changed_outside()), None, "its outcome has to be learned");
}

/// Whether the outcome of a call tells if the provider now has what the operation wants.
fn tells_effect(kind: OperationKind, outcome: &Result<CallDone, CallFailure>) -> bool {
    match outcome {
        Err(CallFailure::Unknown(_) | CallFailure::TooMuchData(_)) => false,
        // The provider may have the template from an earlier call of this operation.
        Err(CallFailure::Exists(_)) => !kind.is_submission(),
        // The account is unknown, or the template.
        Err(CallFailure::Gone(_)) => kind == OperationKind::Create || kind.is_archiving(),
        _ => true,
    }
}

proptest! {
    #[test]
    fn no_call_is_repeated_before_a_probe_told_what_became_of_it(
        kind in 0..KINDS.len(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let kind = KINDS[kind];
        let mut operation = Operation::new(kind);
        let mut at = now();
        // Whether the provider may have received a call whose effect is not known.
        let mut is_open = false;
        for step in steps {
            let before = operation.clone();
            match step {
                Step::Begin => if let Some(next) = operation.begin(at) {
                    prop_assert!(!is_open, "a second call without a probe");
                    is_open = true;
                    operation = next;
                },
                Step::Call(index) => {
                    let outcome = failures().get(index).cloned().map_or(Ok(done(kind)), Err);
                    if before.state == OperationState::Sending && tells_effect(kind, &outcome) {
                        is_open = false;
                    }
                    operation = operation.after_call(outcome, at);
                }
                Step::Crash => operation = operation.recovered(),
                Step::BeginProbe => if let Some(next) = operation.begin_probe(at) {
                    prop_assert!(is_open, "a probe without a call");
                    operation = next;
                },
                Step::Probe(index) => {
                    let results = [ProbeResult::Absent, ProbeResult::Equal, ProbeResult::Different];
                    let failed = || ProbeResult::Failed(failures()[(index - 3) % 14].clone());
                    let result = results.get(index).cloned().unwrap_or_else(failed);
                    if before.state == OperationState::Probing && index < 3 {
                        is_open = false;
                    }
                    operation = operation.after_probe(result, at);
                }
                Step::Supersede => operation = operation.superseded(),
                Step::Retry => operation = operation.retry().unwrap_or(operation),
                Step::Release(reason) => {
                    let reason = HeldReason::parse(HeldReason::VALUES[reason]).unwrap();
                    operation = operation.released(reason).unwrap_or(operation);
                }
                Step::Conflict => {
                    operation = operation.conflicting(changed_outside()).unwrap_or(operation);
                }
                Step::Unneeded => operation = operation.unneeded().unwrap_or(operation),
                Step::Wait(seconds) => at += SignedDuration::from_secs(seconds),
            }
            let is_final = matches!(before.state, OperationState::Done | OperationState::Superseded);
            prop_assert!(!is_final || operation == before, "{before:?} is final");
            prop_assert_eq!(is_open, operation.state.is_uncertain(), "{:?}", operation);
            prop_assert!(operation.attempts >= before.attempts);
            prop_assert_eq!(operation.kind, kind);
            let has_stalled = operation.state.is_uncertain()
                && !matches!(operation.state, OperationState::Sending | OperationState::Probing)
                && !operation.is_due(at + MAX_BACKOFF.max(PROBE_INTERVAL));
            prop_assert!(!has_stalled, "an unknown outcome is probed in the end: {:?}", operation);
        }
    }
}
