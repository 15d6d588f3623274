//! Cases about operations at a provider.

use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::EventType,
    upstream::{
        CallDone, CallFailure, HeldReason, OperationKind, OperationState, ProbeResult,
        ProviderError, RemoteStatus, observation::Created,
    },
};
use galley_store::{Fence, Fenced, NewOperation, StoredOperation, TemplateChange, UpstreamWork};
use jiff::SignedDuration;

use super::{
    emulator::{HOUR, stored},
    fixture::{Shared, change, create, done as changed, events, new, noon},
    upstream::{connected, done, header, id, kinds, lease, mirror, remote, sweep, whatsapp},
};

async fn queue(
    store: &Shared,
    account: AccountId,
    template: TemplateId,
    kind: OperationKind,
    at: i64,
) -> u64 {
    let new = NewOperation { account, template, version: 1, kind, replaces: None, at: noon(at) };
    store.queue_operation(new).await.unwrap().unwrap()
}

async fn begin(store: &Shared, fence: Fence, id: u64, at: i64) -> Option<OperationState> {
    let begun = done(store.begin_operation(fence, id, noon(at)).await.unwrap());
    begun.map(|it| it.operation.state)
}

async fn called(
    store: &Shared,
    fence: Fence,
    id: u64,
    outcome: Result<CallDone, CallFailure>,
    at: i64,
) -> StoredOperation {
    done(store.record_call(fence, id, outcome, noon(at)).await.unwrap()).unwrap()
}

async fn probed(
    store: &Shared,
    fence: Fence,
    id: u64,
    found: ProbeResult,
    at: i64,
) -> OperationState {
    let after = done(store.record_probe(fence, id, found, noon(at)).await.unwrap());
    after.unwrap().operation.state
}

async fn states(store: &Shared, account: AccountId) -> Vec<OperationState> {
    let operations = store.operations(account, None, 100).await.unwrap();
    operations.iter().map(|it| it.operation.state).collect()
}

fn error(code: u32) -> ProviderError {
    ProviderError { code, subcode: None, title: None, message: "No".to_owned() }
}

fn created() -> CallDone {
    CallDone::Created(Created {
        id: id("77"),
        status: RemoteStatus::Pending,
        category: Some("MARKETING".to_owned()),
    })
}

pub(crate) async fn a_queued_operation_supersedes_those_that_are_not_being_made(store: &Shared) {
    use OperationState::{Queued, Sending, Superseded};
    let fence = connected(store, "a").await;
    let account = fence.account;
    let [one, two] =
        [create(store, new(account, "a")).await, create(store, new(account, "b")).await];
    let first = queue(store, account, one, OperationKind::Create, 1).await;
    let other = queue(store, account, two, OperationKind::Create, 1).await;
    let second = queue(store, account, one, OperationKind::Edit, 2).await;
    assert_eq!(states(store, account).await, [Queued, Queued, Superseded]);
    assert_eq!(begin(store, fence, first, 3).await, None);
    assert_eq!(begin(store, fence, second, 3).await, Some(Sending));
    let third = queue(store, account, one, OperationKind::Edit, 4).await;
    assert_eq!(begin(store, fence, third, 5).await, None, "the earlier one is being made");
    let open = store.open_operations(account, 10).await.unwrap();
    assert_eq!(open.iter().map(|it| it.id).collect::<Vec<_>>(), [other, second]);
    assert_eq!(open[1].sent_at, Some(noon(3)));
    called(store, fence, second, Ok(CallDone::Edited), 6).await;
    assert_eq!(begin(store, fence, third, 7).await, Some(Sending));
    let page = store.operations(account, Some(third), 1).await.unwrap();
    assert_eq!(page.iter().map(|it| it.id).collect::<Vec<_>>(), [second]);
}

pub(crate) async fn a_created_template_is_linked_told_and_read(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = create(store, new(fence.account, "a")).await;
    let id = queue(store, fence.account, template, OperationKind::Create, 1).await;
    assert_eq!(begin(store, fence, id, 2).await, Some(OperationState::Sending));
    let after = called(store, fence, id, Ok(created()), 3).await;
    assert_eq!((after.operation.state, after.operation.attempts), (OperationState::Done, 1));
    let row = mirror(store, fence.account, "77").await;
    assert_eq!(
        (row.template, row.status, row.dirty_at),
        (Some(template), RemoteStatus::Pending, Some(noon(3)))
    );
    assert_eq!((&*row.name, &*row.category), ("a", "MARKETING"));
    assert_eq!(kinds(store, fence.account).await, [EventType::Created, EventType::Submitted]);
    assert_eq!(stored(store, fence.account, template).await.revision, 2);
    let again = store.record_call(fence, id, Ok(created()), noon(4)).await.unwrap();
    assert_eq!(done(again), None, "it is recorded once");
    assert_eq!(kinds(store, fence.account).await.len(), 2);
}

pub(crate) async fn a_call_with_an_unknown_outcome_is_probed_before_it_is_repeated(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = create(store, new(fence.account, "a")).await;
    let id = queue(store, fence.account, template, OperationKind::Create, 1).await;
    begin(store, fence, id, 2).await;
    let unknown =
        called(store, fence, id, Err(CallFailure::Unknown("timeout".to_owned())), 3).await;
    assert_eq!(unknown.operation.state, OperationState::Unknown);
    assert_eq!(begin(store, fence, id, 4).await, None, "it backs off");
    assert_eq!(begin(store, fence, id, HOUR).await, Some(OperationState::Probing));
    let state = probed(store, fence, id, ProbeResult::Absent, HOUR + 1).await;
    assert_eq!(state, OperationState::Queued);
    assert_eq!(begin(store, fence, id, 2 * HOUR).await, Some(OperationState::Sending));
    called(store, fence, id, Err(CallFailure::Exists(error(100))), 2 * HOUR).await;
    assert_eq!(begin(store, fence, id, 3 * HOUR).await, Some(OperationState::Probing));
    assert_eq!(probed(store, fence, id, ProbeResult::Equal, 3 * HOUR).await, OperationState::Done);
    assert_eq!(kinds(store, fence.account).await, [EventType::Created, EventType::Submitted]);
}

pub(crate) async fn a_new_lease_makes_interrupted_calls_unknown(store: &Shared) {
    let account = whatsapp(store, "a").await;
    super::upstream::connect(store, account).await;
    let template = create(store, new(account, "a")).await;
    let id = queue(store, account, template, OperationKind::Create, 1).await;
    let frozen = store.lease_connection(account, noon(1), noon(10)).await.unwrap().unwrap().fence;
    assert_eq!(begin(store, frozen, id, 2).await, Some(OperationState::Sending));
    let next = store.lease_connection(account, noon(10), noon(HOUR)).await.unwrap().unwrap().fence;
    assert_eq!(states(store, account).await, [OperationState::Unknown]);
    let late = store.record_call(frozen, id, Ok(created()), noon(11)).await.unwrap();
    assert_eq!(late, Fenced::LeaseLost, "a stale result is not stored");
    let begun = store.begin_operation(frozen, id, noon(11)).await.unwrap();
    assert_eq!(begun, Fenced::LeaseLost);
    assert_eq!(begin(store, next, id, 12).await, Some(OperationState::Probing));
}

pub(crate) async fn a_refusal_is_told_with_its_reason_and_a_person_retries_it(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = create(store, new(fence.account, "a")).await;
    let id = queue(store, fence.account, template, OperationKind::Create, 1).await;
    assert_eq!(store.retry_operation(fence.account, id, noon(1)).await.unwrap(), None);
    begin(store, fence, id, 2).await;
    let refused = called(store, fence, id, Err(CallFailure::Refused(error(100))), 3).await;
    assert_eq!(refused.operation.state, OperationState::Refused);
    assert_eq!(refused.operation.error, Some(error(100)));
    let last = events(store, fence.account, 0, 10).await.pop().unwrap();
    assert_eq!((last.kind, last.reason.as_deref()), (EventType::UpstreamRefused, Some("100: No")));
    let retried = store.retry_operation(fence.account, id, noon(4)).await.unwrap().unwrap();
    assert_eq!((retried.operation.state, retried.updated_at), (OperationState::Queued, noon(4)));
    let other = whatsapp(store, "b").await;
    assert_eq!(store.retry_operation(other, id, noon(5)).await.unwrap(), None);
}

pub(crate) async fn operations_that_wait_for_credentials_continue_after_their_release(
    store: &Shared,
) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    for (number, failure) in
        [CallFailure::Credentials(error(190)), CallFailure::Restricted(error(368))]
            .into_iter()
            .enumerate()
    {
        let template = create(store, new(account, &format!("t{number}"))).await;
        let id = queue(store, account, template, OperationKind::Create, 1).await;
        begin(store, fence, id, 2).await;
        called(store, fence, id, Err(failure), 3).await;
    }
    let held = OperationState::Held;
    let before = [held(HeldReason::Restricted), held(HeldReason::Credentials)];
    assert_eq!(states(store, account).await, before);
    let released = store.release_operations(fence, HeldReason::Credentials, noon(4)).await.unwrap();
    assert_eq!(done(released), 1);
    assert_eq!(states(store, account).await, [before[0], OperationState::Queued]);
    sweep(store, fence, &[], 5).await;
    done(store.finish_sweep(fence, noon(5)).await.unwrap());
    done(store.release_connection(fence).await.unwrap());
    let interval = SignedDuration::from_hours(9);
    let work = store.connections_with_work(noon(6), interval, 200).await.unwrap();
    assert_eq!(work, UpstreamWork { now: vec![account], next_at: None }, "an operation is due");
}

pub(crate) async fn a_template_that_is_being_deleted_is_not_imported_again(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let shown = remote("5", "a", "APPROVED", "Hi");
    sweep(store, fence, std::slice::from_ref(&shown), 1).await;
    let template = mirror(store, account, "5").await.template.unwrap();
    let delete = TemplateChange { at: noon(2), ..change(account, template) };
    changed(store.delete_template(delete).await.unwrap());
    let id = queue(store, account, template, OperationKind::Delete, 3).await;
    for shown in [header(&shown), shown.clone()] {
        let page = sweep(store, fence, &[shown], 4).await;
        assert_eq!((page.imported, page.to_read), (0, Vec::new()));
    }
    begin(store, fence, id, 5).await;
    called(store, fence, id, Ok(CallDone::Deleted), 6).await;
    assert_eq!(states(store, account).await, [OperationState::Done]);
    assert!(store.mirror_of(account, vec![template]).await.unwrap().is_empty());
}

pub(crate) async fn operations_of_an_account_that_is_not_connected_are_not_queued(store: &Shared) {
    let account = whatsapp(store, "a").await;
    let template = create(store, new(account, "a")).await;
    let kind = OperationKind::Create;
    let new = NewOperation { account, template, version: 1, kind, replaces: None, at: noon(1) };
    assert_eq!(store.queue_operation(new).await.unwrap(), None);
    super::upstream::connect(store, account).await;
    lease(store, account).await;
    assert!(store.queue_operation(new).await.unwrap().is_some());
}

pub(crate) async fn a_delete_that_a_probe_confirms_ends_the_mirror_of_the_template(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &[remote("5", "a", "APPROVED", "Hi")], 1).await;
    let template = mirror(store, account, "5").await.template.unwrap();
    changed(store.delete_template(change(account, template)).await.unwrap());
    let id = queue(store, account, template, OperationKind::Delete, 3).await;
    let stored = store.operation_template(account, template, 1).await.unwrap().unwrap();
    assert_eq!(stored.template.name(), "a", "a deleted template is found, too");
    assert_eq!(store.operation_template(account, template, 2).await.unwrap(), None);
    begin(store, fence, id, 4).await;
    called(store, fence, id, Err(CallFailure::Unknown("timeout".to_owned())), 5).await;
    begin(store, fence, id, HOUR).await;
    let state = probed(store, fence, id, ProbeResult::Absent, HOUR + 1).await;
    assert_eq!(state, OperationState::Done);
    let row = mirror(store, account, "5").await;
    assert_eq!((row.template, row.gone_at), (None, Some(noon(HOUR + 1))));
}
