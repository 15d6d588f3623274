//! Cases about operations at a provider.

use galley_domain::{
    id::{AccountId, TemplateId},
    template::{Review, lifecycle::EventType},
    upstream::{
        CallDone, CallFailure, HeldReason, OperationState, ProbeResult, ProviderError,
        RemoteStatus, observation::Created,
    },
};
use galley_store::{
    DueWork, Fence, Fenced, ListQuery, MirrorCounts, StoredOperation, TemplateChange,
    UpstreamAction, UpstreamActionOutcome, UpstreamFilter,
};
use galley_test_macros::on_both_databases;
use jiff::SignedDuration;

use super::{
    emulator::{HOUR, MINUTE, stored},
    fixture::{Shared, change, create, done as changed, events, new, noon, times},
    sqlite_only::body_edit,
    upstream::{connected, done, header, id, kinds, mirror, remote, sweep, whatsapp},
    upstream_submission::{changing, submitted},
};

/// A person submits the newest version; returns the operation.
async fn submit(store: &Shared, account: AccountId, template: TemplateId, at: i64) -> u64 {
    match act(store, account, template, UpstreamAction::Submit, at).await {
        UpstreamActionOutcome::Queued(operation) => operation.id,
        other => panic!("{other:?}"),
    }
}

async fn act(
    store: &Shared,
    account: AccountId,
    template: TemplateId,
    action: UpstreamAction,
    at: i64,
) -> UpstreamActionOutcome {
    let change = TemplateChange { at: noon(at), ..changing(account, template, Review::Provider) };
    store.act_upstream(change, action).await.unwrap()
}

async fn newest(store: &Shared, account: AccountId, template: TemplateId) -> u64 {
    store.newest_operation(account, template).await.unwrap().unwrap().id
}

/// Edits a template; returns the operation that submits the version.
async fn edit(store: &Shared, account: AccountId, template: TemplateId, at: i64) -> u64 {
    let change = TemplateChange { at: noon(at), ..changing(account, template, Review::Provider) };
    let text = u32::try_from(at).unwrap();
    changed(store.edit_template(change, body_edit(text)).await.unwrap());
    newest(store, account, template).await
}

/// Deletes a template; returns the operation.
async fn delete(store: &Shared, account: AccountId, template: TemplateId, at: i64) -> u64 {
    let change = TemplateChange { at: noon(at), ..changing(account, template, Review::Provider) };
    changed(store.delete_template(change).await.unwrap());
    newest(store, account, template).await
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

#[on_both_databases]
async fn a_queued_operation_supersedes_those_that_are_not_being_made(store: &Shared) {
    use OperationState::{Queued, Sending, Superseded};
    let fence = connected(store, "a").await;
    let account = fence.account;
    let [one, two] =
        [create(store, new(account, "a")).await, create(store, new(account, "b")).await];
    let first = submit(store, account, one, 1).await;
    let other = submit(store, account, two, 1).await;
    let second = edit(store, account, one, 2).await;
    assert_eq!(states(store, account).await, [Queued, Queued, Superseded]);
    assert_eq!(begin(store, fence, first, 3).await, None);
    assert_eq!(begin(store, fence, second, 3).await, Some(Sending));
    let third = edit(store, account, one, 4).await;
    assert_eq!(begin(store, fence, third, 5).await, None, "the earlier one is being made");
    let open = store.open_operations(account, 10).await.unwrap();
    assert_eq!(open.iter().map(|it| it.id).collect::<Vec<_>>(), [other, second]);
    assert_eq!(open[1].sent_at, Some(noon(3)));
    called(store, fence, second, Ok(created()), 6).await;
    assert_eq!(begin(store, fence, third, 7).await, Some(Sending));
    let page = store.operations(account, Some(third), 1).await.unwrap();
    assert_eq!(page.iter().map(|it| it.id).collect::<Vec<_>>(), [second]);
}

#[on_both_databases]
async fn a_created_template_is_linked_told_and_read(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = create(store, new(fence.account, "a")).await;
    let id = submit(store, fence.account, template, 1).await;
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

#[on_both_databases]
async fn a_call_with_an_unknown_outcome_is_probed_before_it_is_repeated(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = create(store, new(fence.account, "a")).await;
    let id = submit(store, fence.account, template, 1).await;
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

#[on_both_databases]
async fn a_call_that_never_tells_its_outcome_waits_for_an_hour(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = create(store, new(account, "a")).await;
    let id = submit(store, account, template, 1).await;
    let newest = async || store.newest_operation(account, template).await.unwrap().unwrap();
    for call in 1..=10 {
        let at = 10 * call * MINUTE;
        assert_eq!(begin(store, fence, id, at).await, Some(OperationState::Sending));
        let unknown = Err(CallFailure::Unknown("timeout".to_owned()));
        called(store, fence, id, unknown, at).await;
        assert_eq!(i64::from(newest().await.operation.unknown_calls), call);
        assert_eq!(begin(store, fence, id, at + MINUTE).await, Some(OperationState::Probing));
        probed(store, fence, id, ProbeResult::Absent, at + MINUTE).await;
    }
    let waiting = newest().await.operation;
    let held = OperationState::Held(HeldReason::Throttle);
    assert_eq!((waiting.state, waiting.unknown_calls), (held, 10));
    let until = 101 * MINUTE + HOUR;
    assert_eq!(waiting.held_until, Some(noon(until)));
    assert_eq!(begin(store, fence, id, until - 1).await, None);
    assert_eq!(begin(store, fence, id, until).await, Some(OperationState::Sending));
    called(store, fence, id, Ok(created()), until).await;
    assert_eq!(newest().await.operation.unknown_calls, 0);
}

#[on_both_databases]
async fn a_new_lease_makes_interrupted_calls_unknown(store: &Shared) {
    let account = whatsapp(store, "a").await;
    super::upstream::connect(store, account).await;
    let template = create(store, new(account, "a")).await;
    let id = submit(store, account, template, 1).await;
    let frozen = store.lease_connection(account, times(1, 10)).await.unwrap().unwrap().fence;
    assert_eq!(begin(store, frozen, id, 2).await, Some(OperationState::Sending));
    let next = store.lease_connection(account, times(10, HOUR)).await.unwrap().unwrap().fence;
    assert_eq!(states(store, account).await, [OperationState::Unknown]);
    let late = store.record_call(frozen, id, Ok(created()), noon(11)).await.unwrap();
    assert_eq!(late, Fenced::LeaseLost, "a stale result is not stored");
    let begun = store.begin_operation(frozen, id, noon(11)).await.unwrap();
    assert_eq!(begun, Fenced::LeaseLost);
    assert_eq!(begin(store, next, id, 12).await, Some(OperationState::Probing));
}

#[on_both_databases]
async fn a_refusal_is_told_with_its_reason_and_a_person_retries_it(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = create(store, new(fence.account, "a")).await;
    let id = submit(store, fence.account, template, 1).await;
    let retry = async |account, at| act(store, account, template, UpstreamAction::Retry, at).await;
    let too_early = retry(fence.account, 1).await;
    assert!(matches!(too_early, UpstreamActionOutcome::NotPossible(_)), "{too_early:?}");
    begin(store, fence, id, 2).await;
    let refused = called(store, fence, id, Err(CallFailure::Refused(error(100))), 3).await;
    assert_eq!(refused.operation.state, OperationState::Refused);
    assert_eq!(refused.operation.error, Some(error(100)));
    let last = events(store, fence.account, 0, 10).await.pop().unwrap();
    assert_eq!((last.kind, last.reason.as_deref()), (EventType::UpstreamRefused, Some("100: No")));
    let UpstreamActionOutcome::Queued(retried) = retry(fence.account, 4).await else {
        panic!("it is retried");
    };
    assert_eq!((retried.id, retried.operation.state), (id, OperationState::Queued));
    assert_eq!(retried.updated_at, noon(4));
    let other = connected(store, "b").await.account;
    assert_eq!(retry(other, 5).await, UpstreamActionOutcome::NoTemplate);
    // The next version is another one: its predecessor is not sent any more.
    begin(store, fence, id, 6).await;
    called(store, fence, id, Err(CallFailure::Refused(error(100))), 7).await;
    let edit = TemplateChange { at: noon(8), ..change(fence.account, template) };
    changed(store.edit_template(edit, body_edit(1)).await.unwrap());
    let former = retry(fence.account, 9).await;
    assert!(matches!(former, UpstreamActionOutcome::NotPossible(_)), "{former:?}");
    let failed =
        ListQuery { upstream: Some(UpstreamFilter::Failed), ..ListQuery::new(fence.account, 10) };
    assert!(store.list(failed).await.unwrap().templates.is_empty(), "nor has the next one failed");
}

#[on_both_databases]
async fn operations_that_wait_for_credentials_continue_after_their_release(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let forbidden = CallFailure::Forbidden(error(10));
    for (number, failure) in
        [CallFailure::Credentials(error(190)), CallFailure::Restricted(error(368)), forbidden]
            .into_iter()
            .enumerate()
    {
        let template = create(store, new(account, &format!("t{number}"))).await;
        let id = submit(store, account, template, 1).await;
        begin(store, fence, id, 2).await;
        called(store, fence, id, Err(failure), 3).await;
    }
    let held = OperationState::Held;
    let (credentials, restricted) = (held(HeldReason::Credentials), held(HeldReason::Restricted));
    assert_eq!(states(store, account).await, [credentials, restricted, credentials]);
    let released = store.release_operations(fence, HeldReason::Credentials, noon(4)).await.unwrap();
    assert_eq!(done(released), 1);
    let after = [credentials, restricted, OperationState::Queued];
    assert_eq!(states(store, account).await, after, "a hold with an end of its own stays");
    sweep(store, fence, &[], 5).await;
    done(store.finish_sweep(fence, noon(5)).await.unwrap());
    done(store.release_connection(fence).await.unwrap());
    let interval = SignedDuration::from_hours(9);
    let work = store.connections_with_work(noon(6), interval, 200).await.unwrap();
    assert_eq!(work, DueWork { now: vec![account], next_at: None }, "an operation is due");
}

#[on_both_databases]
async fn a_template_that_is_being_deleted_is_not_imported_again(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let shown = remote("5", "a", "APPROVED", "Hi");
    sweep(store, fence, std::slice::from_ref(&shown), 1).await;
    let template = mirror(store, account, "5").await.template.unwrap();
    let id = delete(store, account, template, 3).await;
    for shown in [header(&shown), shown.clone()] {
        let page = sweep(store, fence, &[shown], 4).await;
        assert_eq!((page.imported, page.to_read), (0, Vec::new()));
    }
    begin(store, fence, id, 5).await;
    called(store, fence, id, Ok(CallDone::Deleted), 6).await;
    assert_eq!(states(store, account).await, [OperationState::Done]);
    assert!(store.mirror_of(account, vec![template]).await.unwrap().is_empty());
}

#[on_both_databases]
async fn operations_of_an_account_that_is_not_connected_are_not_queued(store: &Shared) {
    let account = whatsapp(store, "a").await;
    let template = create(store, submitted(account, "a", Review::Provider)).await;
    let refused = act(store, account, template, UpstreamAction::Submit, 1).await;
    assert_eq!(refused, UpstreamActionOutcome::NotConnected);
    assert_eq!(states(store, account).await, []);
    super::upstream::connect(store, account).await;
    submit(store, account, template, 2).await;
    assert_eq!(states(store, account).await, [OperationState::Queued]);
}

#[on_both_databases]
async fn a_delete_that_a_probe_confirms_ends_the_mirror_of_the_template(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &[remote("5", "a", "APPROVED", "Hi")], 1).await;
    let template = mirror(store, account, "5").await.template.unwrap();
    let id = delete(store, account, template, 3).await;
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

#[on_both_databases]
async fn a_template_that_the_account_deleted_is_not_counted_as_gone(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let counts = async || store.mirror_counts(account).await.unwrap();
    assert_eq!(counts().await, MirrorCounts::default());
    let all: Vec<_> = (1..=8)
        .map(|number| remote(&number.to_string(), &format!("t{number}"), "APPROVED", "Hi"))
        .collect();
    sweep(store, fence, &all, 1_000).await;
    done(store.finish_sweep(fence, noon(1_000)).await.unwrap());
    let own = mirror(store, account, "8").await.template.unwrap();
    let operation = delete(store, account, own, 1_100).await;
    begin(store, fence, operation, 1_200).await;
    called(store, fence, operation, Ok(CallDone::Deleted), 1_300).await;
    assert_eq!(counts().await, MirrorCounts { present: 7, ..MirrorCounts::default() });

    // The provider deletes the first one.
    for (at, unseen) in [(2_000, 1), (3_000, 0)] {
        sweep(store, fence, &all[1..7], at).await;
        done(store.finish_sweep(fence, noon(at)).await.unwrap());
        let (present, missing) = (7, 1);
        let expected = MirrorCounts { present, missing, unseen, ..MirrorCounts::default() };
        assert_eq!(counts().await, expected);
    }
    done(store.record_absent(fence, id("1"), None, noon(4_000)).await.unwrap());
    assert_eq!(counts().await, MirrorCounts { present: 6, gone: 1, ..MirrorCounts::default() });
    // The provider has it again, under another id.
    let again = remote("9", "t1", "APPROVED", "Hi");
    sweep(store, fence, &[&all[1..7], &[again]].concat(), 5_000).await;
    assert_eq!(counts().await, MirrorCounts { present: 7, ..MirrorCounts::default() });
    // The account deletes what the provider no longer has.
    let gone = mirror(store, account, "2").await.template.unwrap();
    for at in [6_000, 7_000] {
        sweep(store, fence, &all[2..7], at).await;
        done(store.finish_sweep(fence, noon(at)).await.unwrap());
    }
    done(store.record_absent(fence, id("2"), None, noon(8_000)).await.unwrap());
    assert_eq!(counts().await.gone, 1);
    let delete = TemplateChange { at: noon(9_000), ..changing(account, gone, Review::Provider) };
    changed(store.delete_template(delete).await.unwrap());
    assert_eq!(counts().await.gone, 0);
}
