//! Cases about templates that a provider puts aside and takes back.

use galley_domain::{
    id::TemplateId,
    template::{Review, Status, lifecycle::EventType},
    upstream::{
        CallDone, CallFailure, OperationKind, OperationState, ProbeResult, ProviderError,
        RemoteTemplate,
    },
};
use galley_store::{
    Fence, ListQuery, OPERATION_DAYS, RetentionCursor, StoredOperation, UpstreamAction,
    UpstreamActionOutcome, UpstreamFilter,
};
use galley_test_macros::on_both_databases;

use super::{
    emulator::{HOUR, stored},
    fixture::{Shared, create, done as changed, noon},
    sqlite_only::body_edit,
    upstream::{connected, done, kinds, mirror, read_record, remote, whatsapp},
    upstream_submission::{changing, queued, submitted},
};

use OperationKind as Kind;
use OperationState as State;

async fn read(store: &Shared, fence: Fence, template: &RemoteTemplate, at: i64) {
    let asked = store.mirrored_template(fence.account, &template.id).await.unwrap();
    let asked = asked.and_then(|row| row.dirty_at);
    done(
        store.record_read(fence, read_record(template.clone(), asked, at), noon(at)).await.unwrap(),
    );
}

/// An imported template with the id 5 at the provider.
async fn imported(store: &Shared, fence: Fence) -> TemplateId {
    read(store, fence, &remote("5", "a", "APPROVED", "Hi"), 1).await;
    mirror(store, fence.account, "5").await.template.unwrap()
}

async fn act(
    store: &Shared,
    fence: Fence,
    id: TemplateId,
    action: UpstreamAction,
) -> UpstreamActionOutcome {
    let change = changing(fence.account, id, Review::Provider);
    store.act_upstream(change, action).await.unwrap()
}

async fn queue(
    store: &Shared,
    fence: Fence,
    id: TemplateId,
    action: UpstreamAction,
) -> StoredOperation {
    match act(store, fence, id, action).await {
        UpstreamActionOutcome::Queued(operation) => *operation,
        other => panic!("{other:?}"),
    }
}

async fn edit(store: &Shared, fence: Fence, id: TemplateId) {
    let change = changing(fence.account, id, Review::Provider);
    changed(store.edit_template(change, body_edit(1)).await.unwrap());
}

/// Makes an operation; the provider answers this.
async fn make(
    store: &Shared,
    fence: Fence,
    id: u64,
    outcome: Result<CallDone, CallFailure>,
    at: i64,
) -> State {
    done(store.begin_operation(fence, id, noon(at)).await.unwrap()).expect("it is due");
    let after = done(store.record_call(fence, id, outcome, noon(at)).await.unwrap());
    after.unwrap().operation.state
}

fn refused() -> Result<CallDone, CallFailure> {
    let message = "A PENDING template cannot be archived.".to_owned();
    Err(CallFailure::Refused(ProviderError { code: 0, subcode: None, title: None, message }))
}

/// The kind and the state of the operation that tells the state of the template.
async fn told(store: &Shared, fence: Fence, id: TemplateId) -> Option<(Kind, State)> {
    let found = store.operations_of(fence.account, vec![id]).await.unwrap();
    assert!(found.len() < 2);
    found.first().map(|it| (it.operation.kind, it.operation.state))
}

#[on_both_databases]
async fn the_archive_follows_the_provider_after_a_call_and_a_read(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = imported(store, fence).await;
    let archive = queue(store, fence, template, UpstreamAction::Archive).await;
    assert_eq!(archive.operation.kind, Kind::Archive);
    assert_eq!(stored(store, account, template).await.state.status(), Status::Approved);
    assert_eq!(make(store, fence, archive.id, Ok(CallDone::Archived), 2_000).await, State::Done);
    let row = mirror(store, account, "5").await;
    assert_eq!((row.dirty_at, row.version), (Some(noon(2_000)), Some(1)), "it is to be read");
    assert_eq!(stored(store, account, template).await.state.status(), Status::Approved);
    read(store, fence, &remote("5", "a", "ARCHIVED", "Hi"), 2_001).await;
    assert_eq!(mirror(store, account, "5").await.dirty_at, None);
    assert_eq!(stored(store, account, template).await.state.status(), Status::Archived);
    assert_eq!(stored(store, account, template).await.state.live_version(), None);
    let unarchive = queue(store, fence, template, UpstreamAction::Unarchive).await;
    let unknown = Err(CallFailure::Unknown("timeout".to_owned()));
    assert_eq!(make(store, fence, unarchive.id, unknown, 3_000).await, State::Unknown);
    done(store.begin_operation(fence, unarchive.id, noon(HOUR)).await.unwrap()).unwrap();
    read(store, fence, &remote("5", "a", "APPROVED", "Hi"), HOUR).await;
    let found = ProbeResult::Equal;
    let probed = store.record_probe(fence, unarchive.id, found, noon(HOUR)).await.unwrap();
    assert_eq!(done(probed).unwrap().operation.state, State::Done);
    assert_eq!(stored(store, account, template).await.state.live_version(), Some(1));
    let [.., archived, unarchived] = kinds(store, account).await[..] else { panic!("two events") };
    assert_eq!((archived, unarchived), (EventType::Archived, EventType::Unarchived));
}

#[on_both_databases]
async fn versions_and_the_archive_do_not_supersede_each_other(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = imported(store, fence).await;
    let archive = queue(store, fence, template, UpstreamAction::Archive).await;
    edit(store, fence, template).await;
    let edited = (Kind::Edit, 2, State::Queued);
    assert_eq!(queued(store, account).await, [(Kind::Archive, 1, State::Queued), edited]);
    let open = store.open_operations(account, 10).await.unwrap();
    assert_eq!(open.iter().map(|it| it.id).collect::<Vec<_>>(), [archive.id], "one by one");
    let newest = store.newest_operation(account, template).await.unwrap().unwrap();
    assert_eq!(newest.operation.kind, Kind::Edit);
    queue(store, fence, template, UpstreamAction::Unarchive).await;
    let replaced = (Kind::Archive, 1, State::Superseded);
    let unarchive = (Kind::Unarchive, 2, State::Queued);
    assert_eq!(queued(store, account).await, [replaced, edited, unarchive]);
    let newest = store.newest_operation(account, template).await.unwrap().unwrap();
    assert_eq!(newest.operation.kind, Kind::Edit, "the edit is not replaced");
    changed(store.delete_template(changing(account, template, Review::Provider)).await.unwrap());
    let states: Vec<State> = queued(store, account).await.iter().map(|it| it.2).collect();
    assert_eq!(states, [State::Superseded, State::Superseded, State::Superseded, State::Queued]);
}

#[on_both_databases]
async fn a_template_that_the_provider_does_not_have_is_not_archived(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = create(store, submitted(fence.account, "a", Review::Provider)).await;
    for action in [UpstreamAction::Archive, UpstreamAction::Unarchive] {
        let outcome = act(store, fence, template, action).await;
        assert!(matches!(outcome, UpstreamActionOutcome::NotPossible(_)), "{outcome:?}");
        let unknown = act(store, fence, TemplateId::new(7).unwrap(), action).await;
        assert_eq!(unknown, UpstreamActionOutcome::NoTemplate);
    }
    assert_eq!(queued(store, fence.account).await, [(Kind::Create, 1, State::Queued)]);
}

#[on_both_databases]
async fn a_change_of_the_archive_does_not_hide_what_became_of_a_version(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = imported(store, fence).await;
    edit(store, fence, template).await;
    let edited = store.newest_operation(account, template).await.unwrap().unwrap();
    assert_eq!(make(store, fence, edited.id, refused(), 2_000).await, State::Refused);
    let archive = queue(store, fence, template, UpstreamAction::Archive).await;
    assert_eq!(told(store, fence, template).await, Some((Kind::Archive, State::Queued)));
    assert_eq!(make(store, fence, archive.id, Ok(CallDone::Archived), 2_000).await, State::Done);
    assert_eq!(told(store, fence, template).await, Some((Kind::Edit, State::Refused)));
    let listed = async || {
        let query =
            ListQuery { upstream: Some(UpstreamFilter::Failed), ..ListQuery::new(account, 10) };
        store.list(query).await.unwrap().templates.len()
    };
    assert_eq!(listed().await, 1);
    let later = noon((OPERATION_DAYS + 1) * 24 * HOUR);
    store.delete_expired_records(RetentionCursor::default(), later).await.unwrap();
    assert_eq!(store.operations(account, None, 10).await.unwrap().len(), 2, "both are the newest");
    let retried = queue(store, fence, template, UpstreamAction::Retry).await;
    assert_eq!((retried.id, retried.operation.state), (edited.id, State::Queued));
    assert_eq!(listed().await, 0);
}

#[on_both_databases]
async fn a_refused_change_of_the_archive_is_told_and_retried(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = imported(store, fence).await;
    let archive = queue(store, fence, template, UpstreamAction::Archive).await;
    assert_eq!(make(store, fence, archive.id, refused(), 2_000).await, State::Refused);
    assert_eq!(kinds(store, account).await.last(), Some(&EventType::UpstreamRefused));
    assert_eq!(told(store, fence, template).await, Some((Kind::Archive, State::Refused)));
    assert_eq!(store.newest_operation(account, template).await.unwrap(), None);
    let found = store.operation(account, archive.id).await.unwrap().unwrap();
    let message = found.operation.error.unwrap().message;
    assert_eq!(message, "A PENDING template cannot be archived.");
    let other = whatsapp(store, "b").await;
    assert_eq!(store.operation(other, archive.id).await.unwrap(), None);
    let retried = queue(store, fence, template, UpstreamAction::Retry).await;
    assert_eq!((retried.id, retried.operation.state), (archive.id, State::Queued));
}

#[on_both_databases]
async fn a_version_that_is_held_does_not_keep_the_archive_waiting(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = imported(store, fence).await;
    edit(store, fence, template).await;
    let held = store.newest_operation(fence.account, template).await.unwrap().unwrap().id;
    let message = "Wait".to_owned();
    let error = ProviderError { code: 100, subcode: None, title: None, message };
    let quota = Err(CallFailure::EditNotAllowed(error));
    assert!(matches!(make(store, fence, held, quota, 2_000).await, State::Held(_)));
    let archive = queue(store, fence, template, UpstreamAction::Archive).await;
    let open = store.open_operations(fence.account, 10).await.unwrap();
    let open: Vec<_> = open.iter().map(|it| it.id).collect();
    assert_eq!(open, [archive.id, held], "what is held comes last");
    edit(store, fence, template).await;
    let open = store.open_operations(fence.account, 10).await.unwrap();
    assert_eq!(open.first().map(|it| it.id), Some(archive.id), "the order stays otherwise");
}
