//! What changes of a template and people cause at the provider.

use std::slice;

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{Template, lifecycle::State, quality::Quality},
    upstream::{HeldReason, Operation, OperationState, RemoteId, RemoteStatus},
};
use jiff::Timestamp;

use super::*;

const AT: Timestamp = Timestamp::UNIX_EPOCH;

/// A template whose second version waits for a decision.
fn stored() -> StoredTemplate {
    #[expect(clippy::disallowed_methods, reason = "a test needs no valid template")]
    let template =
        Template::restore("a".into(), "en".into(), Category::Utility, false, "{}".into());
    StoredTemplate {
        id: TemplateId::new(9).unwrap(),
        phone: None,
        template,
        state: State {
            version: 2,
            newest_status: Status::Pending,
            approved_version: None,
            hold: None,
        },
        previous_category: None,
        announced_category: None,
        quality: Quality::Unknown,
        reason: None,
        decided_by: None,
        revision: 4,
        created_at: AT,
        updated_at: AT,
    }
}

/// The row of a template with the content of a version.
fn row(version: Option<u64>) -> MirroredTemplate {
    MirroredTemplate {
        id: RemoteId::parse("5").unwrap(),
        template: TemplateId::new(9),
        name: "a".to_owned(),
        language: "en".to_owned(),
        status: RemoteStatus::Approved,
        category: "UTILITY".to_owned(),
        correct_category: None,
        quality: None,
        reason: None,
        remote_updated_at: None,
        content_key: Some([7; 32]),
        version,
        sent_version: None,
        drifted: false,
        observed_at: AT,
        changed_at: AT,
        sweep: 1,
        missing: 0,
        gone_at: None,
        dirty_at: None,
        info: None,
        source: None,
    }
}

fn operation(kind: OperationKind, state: OperationState, attempts: u32) -> StoredOperation {
    StoredOperation {
        id: 1,
        template: TemplateId::new(9).unwrap(),
        name: None,
        language: None,
        version: 2,
        operation: Operation { state, attempts, ..Operation::new(kind) },
        replaces: None,
        created_at: AT,
        sent_at: None,
        updated_at: AT,
    }
}

fn change(review: Review) -> TemplateChange {
    TemplateChange {
        account: AccountId::new(1).unwrap(),
        id: TemplateId::new(9).unwrap(),
        expected: None,
        version: None,
        review,
        actor: Actor::Operator,
        trace: None,
        at: AT,
    }
}

/// An operation that replaces nothing that was changed outside.
fn queue(kind: OperationKind) -> PlannedAction {
    PlannedAction::Queue { kind, replaces: None }
}

/// What an action does; `None` if it is not possible.
fn plan(
    action: UpstreamAction,
    review: Review,
    stored: &StoredTemplate,
    rows: &[MirroredTemplate],
    operations: &[StoredOperation],
) -> Option<PlannedAction> {
    let provided = Provided { rows: rows.to_vec(), operations: operations.to_vec() };
    let newest = operations.last();
    match plan_action(action, &change(review), Some(stored), &provided, newest) {
        Ok(planned) => Some(planned),
        Err(refusal) => match *refusal {
            UpstreamActionOutcome::NotPossible(_) => None,
            other => panic!("{other:?}"),
        },
    }
}

const STATES: [OperationState; 9] = [
    OperationState::Queued,
    OperationState::Sending,
    OperationState::Unknown,
    OperationState::Probing,
    OperationState::Done,
    OperationState::Refused,
    OperationState::Conflict,
    OperationState::Superseded,
    OperationState::Held(HeldReason::Throttle),
];

#[test]
fn a_version_is_an_edit_once_the_provider_may_have_the_template() {
    let gone = MirroredTemplate { gone_at: Some(AT), ..row(Some(1)) };
    for (rows, expected) in [
        (vec![], OperationKind::Create),
        (vec![gone], OperationKind::Create),
        (vec![row(None)], OperationKind::Edit),
    ] {
        assert_eq!(Provided { rows, operations: vec![] }.submission(), expected);
    }
    for state in STATES {
        let operations = vec![operation(OperationKind::Create, state, 1)];
        let kind = Provided { rows: vec![], operations }.submission();
        assert_eq!(kind == OperationKind::Edit, state.is_uncertain(), "{state:?}");
    }
}

#[test]
fn a_template_that_was_never_sent_is_not_deleted_at_the_provider() {
    let needs = |rows: &[MirroredTemplate], operations: &[StoredOperation]| {
        Provided { rows: rows.to_vec(), operations: operations.to_vec() }.needs_deletion()
    };
    assert!(needs(&[row(None)], &[]));
    assert!(!needs(&[MirroredTemplate { gone_at: Some(AT), ..row(None) }], &[]));
    assert!(!needs(&[], &[operation(OperationKind::Create, OperationState::Queued, 0)]));
    for state in STATES {
        let sent = operation(OperationKind::Create, state, 1);
        assert_eq!(needs(&[], &[sent]), !state.is_settled(), "{state:?}");
    }
}

#[test]
fn a_version_is_submitted_unless_the_provider_has_it_or_it_is_under_way() {
    let submit = |rows: &[MirroredTemplate], operations: &[StoredOperation]| {
        plan(UpstreamAction::Submit, Review::Provider, &stored(), rows, operations)
    };
    let [create, edit] = [OperationKind::Create, OperationKind::Edit];
    assert_eq!(submit(&[], &[]), Some(queue(create)));
    assert_eq!(submit(&[row(Some(1))], &[]), Some(queue(edit)));
    assert_eq!(submit(&[row(Some(2))], &[]), None);
    let unread = MirroredTemplate { content_key: None, ..row(None) };
    assert_eq!(submit(&[unread], &[]), None, "it was just created");
    assert_eq!(submit(&[MirroredTemplate { drifted: true, ..row(None) }], &[]), None);
    for state in STATES {
        let submitted = submit(&[], &[operation(create, state, 1)]);
        assert_eq!(submitted.is_some(), state.is_settled(), "{state:?}");
    }
    let former = StoredOperation { version: 1, ..operation(create, OperationState::Queued, 0) };
    assert_eq!(submit(&[], &[former]), Some(queue(create)));
}

#[test]
fn only_another_content_or_a_missing_template_is_pushed() {
    let push = |rows: &[MirroredTemplate]| {
        plan(UpstreamAction::Push, Review::Provider, &stored(), rows, &[])
    };
    let drifted = MirroredTemplate { drifted: true, ..row(None) };
    let gone = MirroredTemplate { gone_at: Some(AT), ..row(Some(2)) };
    let replaced = PlannedAction::Queue { kind: OperationKind::Edit, replaces: Some([7; 32]) };
    assert_eq!(push(&[drifted]), Some(replaced), "the person has seen this content");
    assert_eq!(push(&[gone]), Some(queue(OperationKind::Create)));
    for rows in [vec![], vec![row(Some(1))], vec![row(Some(2))]] {
        assert_eq!(push(&rows), None, "{rows:?}");
    }
}

#[test]
fn an_edit_replaces_only_content_that_galley_sent_or_a_person_saw() {
    let edit = |replaces| StoredOperation {
        replaces,
        ..operation(OperationKind::Edit, OperationState::Queued, 0)
    };
    let drifted = MirroredTemplate { drifted: true, ..row(None) };
    assert!(edit(None).may_replace(&row(Some(1))));
    assert!(!edit(None).may_replace(&drifted));
    assert!(edit(Some([7; 32])).may_replace(&drifted));
    assert!(!edit(Some([8; 32])).may_replace(&drifted), "it was changed again");
    let unread = MirroredTemplate { content_key: None, ..drifted };
    assert!(!edit(None).may_replace(&unread), "what is there is not known");
}

#[test]
fn a_conflict_with_drift_is_pushed_accepted_or_tried_again() {
    let drifted = [MirroredTemplate { drifted: true, ..row(None) }];
    let conflict = [operation(OperationKind::Edit, OperationState::Conflict, 0)];
    for (action, is_possible) in [
        (UpstreamAction::Push, true),
        (UpstreamAction::Accept, true),
        (UpstreamAction::Retry, true),
        (UpstreamAction::Submit, false),
    ] {
        let planned = plan(action, Review::Provider, &stored(), &drifted, &conflict);
        assert_eq!(planned.is_some(), is_possible, "{action:?}");
    }
}

#[test]
fn no_action_bypasses_the_reviewers_of_the_account() {
    let reviewer = Some(Actor::Operator);
    for (newest_status, approved_version, decided_by, is_released) in [
        (Status::Pending, None, None, false),
        (Status::Pending, None, reviewer, true),
        (Status::Rejected, None, reviewer, false),
        // The status of a drifted template is about the content of the provider.
        (Status::Approved, None, None, false),
        (Status::Approved, None, Some(Actor::Service), true),
        (Status::Approved, Some(2), None, true),
        (Status::Pending, Some(1), None, false),
    ] {
        let mut stored = StoredTemplate { decided_by, ..stored() };
        stored.state.newest_status = newest_status;
        stored.state.approved_version = approved_version;
        let gone = [MirroredTemplate { gone_at: Some(AT), ..row(None) }];
        for action in [UpstreamAction::Submit, UpstreamAction::Push] {
            let planned = plan(action, Review::InHouseThenProvider, &stored, &gone, &[]);
            let case = format!("{newest_status:?} {approved_version:?} {decided_by:?} {action:?}");
            assert_eq!(planned.is_some(), is_released, "{case}");
            assert!(plan(action, Review::Provider, &stored, &gone, &[]).is_some(), "{case}");
        }
    }
}

#[test]
fn drift_or_a_held_category_is_accepted_and_nothing_else() {
    let accept = |stored: &StoredTemplate, rows: &[MirroredTemplate]| {
        plan(UpstreamAction::Accept, Review::Provider, stored, rows, &[])
    };
    let drifted = MirroredTemplate { drifted: true, ..row(None) };
    let expected = PlannedAction::Accept(Box::new(drifted.clone()));
    assert_eq!(accept(&stored(), std::slice::from_ref(&drifted)), Some(expected));
    let gone = MirroredTemplate { gone_at: Some(AT), ..drifted };
    assert_eq!(accept(&stored(), &[gone]), None);
    assert_eq!(accept(&stored(), &[row(Some(2))]), None);
    let held = StoredTemplate { previous_category: Some(Category::Marketing), ..stored() };
    let expected = PlannedAction::AcceptCategory(Box::new(row(Some(2))));
    assert_eq!(accept(&held, &[row(Some(2))]), Some(expected));
}

#[test]
fn the_last_operation_is_retried_if_it_failed_or_waits() {
    for state in STATES {
        let last = operation(OperationKind::Edit, state, 1);
        let operations = std::slice::from_ref(&last);
        let retried = plan(UpstreamAction::Retry, Review::Provider, &stored(), &[], operations);
        let is_possible = state.held_reason().is_some()
            || matches!(state, OperationState::Refused | OperationState::Conflict);
        assert_eq!(retried.is_some(), is_possible, "{state:?}");
    }
    let retry_former = |kind| {
        let failed = operation(kind, OperationState::Refused, 1);
        let former = [StoredOperation { version: 1, ..failed }];
        plan(UpstreamAction::Retry, Review::Provider, &stored(), &[], &former)
    };
    assert_eq!(retry_former(OperationKind::Edit), None, "the newest version is another one");
    assert!(retry_former(OperationKind::Delete).is_some(), "a delete has no version");
    let provided = Provided { rows: vec![], operations: vec![] };
    let delete = operation(OperationKind::Delete, OperationState::Refused, 1);
    let of_deleted = |newest| {
        plan_action(UpstreamAction::Retry, &change(Review::Provider), None, &provided, newest)
    };
    assert!(of_deleted(Some(&delete)).is_ok(), "a refused delete is retried");
    assert_eq!(of_deleted(None), Err(Box::new(UpstreamActionOutcome::NoTemplate)));
}

#[test]
fn an_operation_about_the_archive_is_none_about_a_version() {
    for (kind, action) in [
        (OperationKind::Archive, UpstreamAction::Archive),
        (OperationKind::Unarchive, UpstreamAction::Unarchive),
    ] {
        let open = vec![operation(kind, OperationState::Unknown, 1)];
        let without_row = Provided { rows: vec![], operations: open.clone() };
        assert_eq!(without_row.submission(), OperationKind::Create);
        assert!(!without_row.needs_deletion());
        let provided = Provided { rows: vec![row(Some(1))], operations: open };
        let plan = |action, provided| {
            plan_action(action, &change(Review::Provider), Some(&stored()), provided, None)
        };
        let submitted = plan(UpstreamAction::Submit, &provided);
        assert_eq!(submitted, Ok(queue(OperationKind::Edit)), "it is not under way");
        assert_eq!(plan(action, &provided), Ok(queue(kind)));
        let refusal =
            UpstreamActionOutcome::NotPossible("The provider does not have the template.");
        assert_eq!(plan(action, &without_row), Err(Box::new(refusal)));
    }
}

#[test]
fn an_unexpected_revision_is_refused_before_everything_else() {
    let expected = TemplateChange { expected: Some(vec![3]), ..change(Review::Provider) };
    let provided = Provided { rows: vec![], operations: vec![] };
    let actions = [
        UpstreamAction::Submit,
        UpstreamAction::Accept,
        UpstreamAction::Push,
        UpstreamAction::Retry,
        UpstreamAction::Archive,
        UpstreamAction::Unarchive,
    ];
    for action in actions {
        let planned = plan_action(action, &expected, Some(&stored()), &provided, None);
        let refusal = UpstreamActionOutcome::RevisionMismatch(4);
        assert_eq!(planned, Err(Box::new(refusal)), "{action:?}");
    }
}

#[test]
fn a_call_notes_what_it_replaces_and_never_decides_to_replace_what_was_changed_outside() {
    let drifted = MirroredTemplate { drifted: true, ..row(None) };
    let gone = MirroredTemplate { gone_at: Some(AT), ..row(Some(1)) };
    let decided = |replaces| StoredOperation {
        replaces,
        ..operation(OperationKind::Edit, OperationState::Queued, 0)
    };
    let (seen, other) = (Some([7; 32]), Some([8; 32]));
    for (rows, before, expected) in [
        (&[row(Some(1))][..], None, seen),
        (&[row(Some(1))], other, seen),
        (&[MirroredTemplate { content_key: None, ..row(Some(1)) }], other, None),
        (slice::from_ref(&drifted), None, None),
        (slice::from_ref(&drifted), seen, seen),
        (&[gone], None, None),
        (&[], None, None),
    ] {
        let begun = decided(before).begun(rows, AT).unwrap();
        assert_eq!((begun.operation.state, begun.replaces), (OperationState::Sending, expected));
        let unknown = Operation { state: OperationState::Unknown, ..begun.operation.clone() };
        let probed = StoredOperation { operation: unknown, ..begun }.begun(&[row(None)], AT);
        assert_eq!(probed.unwrap().replaces, expected, "a probe replaces nothing");
    }
}
