//! Cases about what changes of templates queue at a provider.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::WHATSAPP,
    template::{
        Review, Status,
        edit::Edit,
        lifecycle::{EventType, Trigger},
    },
    upstream::{
        CallDone, CallFailure, HeldReason, OperationKind, OperationState, ProbeResult,
        ProviderError, RemoteStatus, RemoteTemplate, observation::Created,
    },
};
use galley_store::{
    Actor, Author, ChangeOutcome, ConnectionChange, Fence, NewTemplate, StoredOperation,
    StoredSecret, StoredTemplate, TemplateChange, TranslationGroup, UpsertOutcome, UpstreamAction,
    UpstreamActionOutcome,
};
use galley_test_macros::on_both_databases;

use super::{
    emulator::{HOUR, stored},
    fixture::{Shared, change, create, done as changed, new, noon},
    sqlite_only::body_edit,
    upstream::{connect, connected, done, id, kinds, mirror, read_record, remote, sweep, whatsapp},
};

use OperationKind as Kind;
use OperationState as State;

/// A template of a connected account.
pub(crate) fn submitted(account: AccountId, name: &str, review: Review) -> NewTemplate {
    NewTemplate {
        unique_key: (WHATSAPP.unique_key)(account, name, "en_US"),
        translation_group: Some(TranslationGroup::of(account, name)),
        review,
        ..new(account, name)
    }
}

pub(crate) fn changing(account: AccountId, id: TemplateId, review: Review) -> TemplateChange {
    TemplateChange { review, ..change(account, id) }
}

/// The operations of an account, oldest first: kind, version and state.
pub(crate) async fn queued(store: &Shared, account: AccountId) -> Vec<(Kind, u64, State)> {
    let mut operations = store.operations(account, None, 100).await.unwrap();
    operations.reverse();
    operations.iter().map(|it| (it.operation.kind, it.version, it.operation.state)).collect()
}

/// Makes the first due operation of the account; the provider answers this.
pub(crate) async fn make(
    store: &Shared,
    fence: Fence,
    outcome: Result<CallDone, CallFailure>,
    at: i64,
) -> StoredOperation {
    let first = store.open_operations(fence.account, 1).await.unwrap();
    let id = first.first().expect("an operation is open").id;
    done(store.begin_operation(fence, id, noon(at)).await.unwrap()).expect("it is due");
    done(store.record_call(fence, id, outcome, noon(at)).await.unwrap()).unwrap()
}

pub(crate) fn created_as(remote: &str) -> CallDone {
    let status = RemoteStatus::Pending;
    CallDone::Created(Created { id: id(remote), status, category: None })
}

/// The provider's view of a template's newest version.
pub(crate) fn shown(remote: &str, stored: &StoredTemplate, status: &str) -> RemoteTemplate {
    let members = stored.template.content().strip_prefix('{').unwrap();
    let document = format!(
        r#"{{"id":"{remote}","name":"{}","language":"en_US","status":"{status}","category":"UTILITY",{members}"#,
        stored.template.name()
    );
    RemoteTemplate::parse(&document).unwrap()
}

async fn edit(store: &Shared, account: AccountId, id: TemplateId, text: u32) -> StoredTemplate {
    let change = changing(account, id, Review::Provider);
    changed(store.edit_template(change, body_edit(text)).await.unwrap())
}

#[on_both_databases]
async fn a_connected_account_has_the_review_of_its_provider(store: &Shared) {
    let account = whatsapp(store, "a").await;
    let read = async || store.account(account).await.unwrap().unwrap();
    assert_eq!((read().await.is_connected, read().await.effective_review()), (false, Review::Auto));
    let epoch = store.credential_epoch().await.unwrap();
    connect(store, account).await;
    assert_eq!(read().await.effective_review(), Review::Provider);
    let connected = store.credential_epoch().await.unwrap();
    assert!(connected > epoch, "cached accounts are read again");
    let by = Author::operator(noon(1));
    store.set_account_review(account, Review::Manual, by).await.unwrap();
    assert_eq!(read().await.effective_review(), Review::InHouseThenProvider);
    assert_eq!(read().await.review, Review::Manual);
    let listed = store.accounts().await.unwrap();
    assert!(listed.iter().any(|it| it.id == account && it.is_connected));
    assert!(store.disconnect_upstream(account, by).await.unwrap());
    assert_eq!(read().await.effective_review(), Review::Manual);
    assert!(store.credential_epoch().await.unwrap() > connected);
}

#[on_both_databases]
async fn each_version_is_submitted_at_once_with_the_review_of_the_provider(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = create(store, submitted(account, "a", Review::Provider)).await;
    assert_eq!(stored(store, account, template).await.state.status(), Status::Pending);
    assert_eq!(queued(store, account).await, [(Kind::Create, 1, State::Queued)]);
    edit(store, account, template, 1).await;
    let superseded = (Kind::Create, 1, State::Superseded);
    let expected = [superseded, (Kind::Create, 2, State::Queued)];
    assert_eq!(queued(store, account).await, expected, "nothing was sent yet");
    make(store, fence, Ok(created_as("77")), 2_000).await;
    let restore = Edit::Restore(1);
    let change = changing(account, template, Review::Provider);
    changed(store.edit_template(change, restore).await.unwrap());
    let done = (Kind::Create, 2, State::Done);
    assert_eq!(queued(store, account).await, [superseded, done, (Kind::Edit, 3, State::Queued)]);
    make(store, fence, Ok(CallDone::Edited), 3_000).await;
    let newest = store.newest_operation(account, template).await.unwrap().unwrap();
    assert_eq!((newest.version, newest.operation.state), (3, State::Done));
    assert_eq!(stored(store, account, template).await.state.live_version(), None);
}

#[on_both_databases]
async fn an_edit_waits_for_a_create_whose_outcome_is_unknown(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = create(store, submitted(account, "a", Review::Provider)).await;
    make(store, fence, Err(CallFailure::Unknown("timeout".to_owned())), 1_000).await;
    edit(store, account, template, 1).await;
    let expected = [(Kind::Create, 1, State::Unknown), (Kind::Edit, 2, State::Queued)];
    assert_eq!(queued(store, account).await, expected);
    let open = store.open_operations(account, 10).await.unwrap();
    assert_eq!(open.len(), 1, "the create comes first");
    assert_eq!(open[0].operation.kind, Kind::Create);
    done(store.begin_operation(fence, open[0].id, noon(5_000)).await.unwrap()).unwrap();
    done(store.record_probe(fence, open[0].id, ProbeResult::Equal, noon(5_000)).await.unwrap());
    sweep(store, fence, &[remote("77", "a", "APPROVED", "Hi")], 5_001).await;
    make(store, fence, Err(CallFailure::Unknown("timeout".to_owned())), 5_002).await;
    let read = read_record(remote("77", "a", "APPROVED", "Hi"), None, 5_003);
    done(store.record_read(fence, read, noon(5_003)).await.unwrap());
    let row = mirror(store, account, "77").await;
    assert_eq!(row.sent_version, Some(0), "what the edit has done is not known");
}

#[on_both_databases]
async fn a_refused_change_and_a_replay_queue_nothing(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let new = NewTemplate {
        idempotency: super::fixture::with_key(account, "a", 1, 1).idempotency,
        ..submitted(account, "a", Review::Provider)
    };
    let template = create(store, new.clone()).await;
    store.create_template(new).await.unwrap();
    store.create_template(submitted(account, "a", Review::Provider)).await.unwrap();
    let change =
        TemplateChange { expected: Some(vec![9]), ..changing(account, template, Review::Provider) };
    store.edit_template(change, body_edit(1)).await.unwrap();
    assert_eq!(queued(store, account).await, [(Kind::Create, 1, State::Queued)]);
}

#[on_both_databases]
async fn upserts_submit_what_they_create_and_edit(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = create(store, submitted(account, "a", Review::Provider)).await;
    make(store, fence, Ok(created_as("77")), 1).await;
    let provider = Review::Provider;
    let other = submitted(account, "b", provider);
    let changed_text = NewTemplate {
        template: super::fixture::translation(
            account,
            "a",
            "en_US",
            galley_domain::rulebook::Category::Utility,
        )
        .template,
        ..submitted(account, "a", provider)
    };
    let upserted = store.upsert_templates(vec![changed_text, other.clone(), other]).await.unwrap();
    let UpsertOutcome::Done(upserted) = upserted else { panic!("{upserted:?}") };
    assert_eq!(upserted[0].id, template);
    let expected = [
        (Kind::Create, 1, State::Done),
        (Kind::Edit, 2, State::Queued),
        (Kind::Create, 1, State::Queued),
    ];
    assert_eq!(queued(store, account).await, expected, "an equal template is not submitted again");
}

#[on_both_databases]
async fn a_reviewer_of_a_connected_account_submits_a_version_once(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let review = Review::InHouseThenProvider;
    let template = create(store, submitted(account, "a", review)).await;
    assert_eq!(queued(store, account).await, []);
    let act = async |action| {
        store.act_upstream(changing(account, template, review), action).await.unwrap()
    };
    let submitted = act(UpstreamAction::Submit).await;
    assert!(matches!(submitted, UpstreamActionOutcome::NotPossible(_)), "{submitted:?}");
    let decide = async |trigger, reason: Option<&str>| {
        let change = TemplateChange {
            actor: Actor::Operator,
            at: noon(5),
            ..changing(account, template, review)
        };
        store.review_template(change, trigger, reason.map(str::to_owned)).await.unwrap()
    };
    let passed = changed(decide(Trigger::Approve, Some("fine")).await);
    assert_eq!((passed.state.status(), passed.state.live_version()), (Status::Pending, None));
    assert_eq!(
        (passed.decided_by, passed.reason.as_deref()),
        (Some(Actor::Operator), Some("fine"))
    );
    let version = store.version(account, template, 1).await.unwrap().unwrap();
    let decision = version.decision.unwrap();
    assert_eq!((decision.by, decision.at), (Actor::Operator, noon(5)));
    assert_eq!(kinds(store, account).await, [EventType::Created, EventType::ReviewPassed]);
    assert_eq!(queued(store, account).await, [(Kind::Create, 1, State::Queued)]);
    for trigger in [Trigger::Approve, Trigger::Reject] {
        let ChangeOutcome::InvalidTransition(refusal) = decide(trigger, None).await else {
            panic!("it is decided")
        };
        assert_eq!(refusal.possible, [Trigger::Edit, Trigger::Delete], "{trigger:?}");
    }
    // The next version is undecided, and what is queued stays.
    let next = changing(account, template, review);
    let edited = changed(store.edit_template(next, body_edit(1)).await.unwrap());
    assert_eq!(edited.decided_by, None);
    changed(decide(Trigger::Reject, Some("no")).await);
    let submitted = act(UpstreamAction::Submit).await;
    assert!(matches!(submitted, UpstreamActionOutcome::NotPossible(_)), "it is rejected");
    assert_eq!(queued(store, account).await, [(Kind::Create, 1, State::Queued)]);
}

#[on_both_databases]
async fn clients_do_not_hold_templates_of_a_connected_account(store: &Shared) {
    let fence = connected(store, "a").await;
    sweep(store, fence, &[remote("5", "a", "APPROVED", "Hi")], 1).await;
    let template = mirror(store, fence.account, "5").await.template.unwrap();
    for trigger in [Trigger::Pause, Trigger::Disable, Trigger::Archive, Trigger::Approve] {
        for review in [Review::Provider, Review::InHouseThenProvider] {
            let change = changing(fence.account, template, review);
            let outcome = store.review_template(change, trigger, None).await.unwrap();
            assert!(matches!(outcome, ChangeOutcome::InvalidTransition(_)), "{outcome:?}");
        }
    }
}

#[on_both_databases]
async fn a_person_submits_pushes_and_retries(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let review = Review::Provider;
    let act = async |template, action| {
        let change = TemplateChange { at: noon(9), ..changing(account, template, review) };
        match store.act_upstream(change, action).await.unwrap() {
            UpstreamActionOutcome::Queued(it) => Some((it.operation.kind, it.version)),
            UpstreamActionOutcome::NotPossible(_) => None,
            other => panic!("{other:?}"),
        }
    };
    // Created before the account was connected.
    let own = create(store, submitted(account, "a", Review::Auto)).await;
    assert_eq!(act(own, UpstreamAction::Push).await, None, "it was never there");
    assert_eq!(act(own, UpstreamAction::Submit).await, Some((Kind::Create, 1)));
    assert_eq!(act(own, UpstreamAction::Submit).await, None, "it is under way");
    let error = ProviderError { code: 100, subcode: None, title: None, message: "No".to_owned() };
    make(store, fence, Err(CallFailure::Refused(error)), 10).await;
    assert_eq!(act(own, UpstreamAction::Retry).await, Some((Kind::Create, 1)));
    assert_eq!(act(own, UpstreamAction::Retry).await, None);
    make(store, fence, Ok(created_as("77")), 11).await;
    let equal = shown("77", &stored(store, account, own).await, "APPROVED");
    done(store.record_read(fence, read_record(equal, Some(noon(11)), 12), noon(12)).await.unwrap());
    assert_eq!(act(own, UpstreamAction::Submit).await, None, "the provider has it");
    assert_eq!(act(own, UpstreamAction::Push).await, None);
    done(
        store
            .record_read(
                fence,
                read_record(remote("77", "a", "APPROVED", "Else"), None, 13),
                noon(13),
            )
            .await
            .unwrap(),
    );
    assert_eq!(act(own, UpstreamAction::Submit).await, None, "a person decides about drift");
    assert_eq!(act(own, UpstreamAction::Push).await, Some((Kind::Edit, 1)));
    let expected = TemplateChange { expected: Some(vec![1]), ..changing(account, own, review) };
    let outcome = store.act_upstream(expected, UpstreamAction::Push).await.unwrap();
    assert!(matches!(outcome, UpstreamActionOutcome::RevisionMismatch(_)), "{outcome:?}");
    let missing = changing(account, TemplateId::new(1).unwrap(), review);
    let outcome = store.act_upstream(missing, UpstreamAction::Submit).await.unwrap();
    assert_eq!(outcome, UpstreamActionOutcome::NoTemplate);
    let other = whatsapp(store, "b").await;
    let outcome = store.act_upstream(changing(other, own, review), UpstreamAction::Submit).await;
    assert_eq!(outcome.unwrap(), UpstreamActionOutcome::NotConnected);
}

#[on_both_databases]
async fn the_newest_operation_of_each_template_is_found(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let one = create(store, submitted(account, "a", Review::Provider)).await;
    edit(store, account, one, 1).await;
    let two = create(store, submitted(account, "b", Review::Provider)).await;
    let none = create(store, submitted(account, "c", Review::Auto)).await;
    let found = store.operations_of(account, vec![two, none, one]).await.unwrap();
    let found: Vec<_> = found.iter().map(|it| (it.template, it.version)).collect();
    assert_eq!(found, [(two, 1), (one, 2)]);
    assert_eq!(store.newest_operation(account, none).await.unwrap(), None);
    let other = whatsapp(store, "b").await;
    assert_eq!(store.newest_operation(other, one).await.unwrap(), None);
    assert_eq!(store.operations_of(other, vec![one, two]).await.unwrap(), []);
}

#[on_both_databases]
async fn an_unneeded_operation_ends_without_a_call(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let imported = remote("5", "a", "APPROVED", "Hi");
    sweep(store, fence, std::slice::from_ref(&imported), 1).await;
    let template = mirror(store, account, "5").await.template.unwrap();
    let change = changing(account, template, Review::Provider);
    changed(store.edit_template(change.clone(), body_edit(1)).await.unwrap());
    changed(store.edit_template(change, Edit::Restore(1)).await.unwrap());
    let operation = store.newest_operation(account, template).await.unwrap().unwrap();
    let skipped = done(store.skip_operation(fence, operation.id, noon(2_000)).await.unwrap());
    let skipped = skipped.unwrap().operation;
    assert_eq!((skipped.state, skipped.attempts), (State::Done, 0));
    let again = store.skip_operation(fence, operation.id, noon(2_000)).await.unwrap();
    assert_eq!(done(again), None);
    assert_eq!(mirror(store, account, "5").await.dirty_at, Some(noon(2_000)), "it is read");
    done(
        store
            .record_read(fence, read_record(imported, Some(noon(2_000)), 2_001), noon(2_001))
            .await
            .unwrap(),
    );
    let read = stored(store, account, template).await;
    assert_eq!(read.state.live_version(), Some(3), "the newest version is the approved one");
    assert!(!kinds(store, account).await.contains(&EventType::Submitted), "nothing was sent");
    done(store.release_connection(fence).await.unwrap());
    let lost = store.skip_operation(fence, operation.id, noon(3_000)).await.unwrap();
    assert_eq!(lost, galley_store::Fenced::LeaseLost);
}

#[on_both_databases]
async fn abandoned_operations_are_not_made(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let by = Author::operator(noon(5));
    let template = create(store, submitted(account, "a", Review::Provider)).await;
    let error = ProviderError { code: 100, subcode: None, title: None, message: "No".to_owned() };
    make(store, fence, Err(CallFailure::Refused(error)), 1).await;
    assert_eq!(store.abandon_operations(account, template, by).await.unwrap(), 1);
    let entry = store.audit_entries(Some(account), 0, 100).await.unwrap().pop().unwrap();
    assert_eq!((entry.subject, entry.actor), (template.to_string(), Actor::Operator));
    assert_eq!(entry.details["action"], "adopt");
    assert_eq!(store.abandon_operations(account, template, by).await.unwrap(), 0);
    edit(store, account, template, 1).await;
    make(store, fence, Err(CallFailure::Unknown("timeout".to_owned())), 2_000).await;
    assert_eq!(
        store.abandon_operations(account, template, by).await.unwrap(),
        0,
        "it is uncertain"
    );
    let expected = [(Kind::Create, 1, State::Superseded), (Kind::Create, 2, State::Unknown)];
    assert_eq!(queued(store, account).await, expected);
}

#[on_both_databases]
async fn a_new_token_continues_what_waits_for_it(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let by = Author::operator(noon(5));
    let error = ProviderError { code: 190, subcode: None, title: None, message: "No".to_owned() };
    let template = create(store, submitted(account, "a", Review::Provider)).await;
    let token = ConnectionChange::Token(StoredSecret(vec![9]), None);
    for (change, failure, reason) in [
        (token.clone(), CallFailure::Credentials(error.clone()), HeldReason::Credentials),
        (token, CallFailure::Forbidden(error.clone()), HeldReason::Credentials),
        (ConnectionChange::Resumed, CallFailure::Restricted(error.clone()), HeldReason::Restricted),
    ] {
        let held = make(store, fence, Err(failure), HOUR).await.operation.state;
        assert_eq!(held, State::Held(reason));
        assert!(store.change_connection(account, ConnectionChange::Paused, by).await.unwrap());
        let newest = store.newest_operation(account, template).await.unwrap().unwrap();
        assert_eq!(newest.operation.state, held, "a pause releases nothing");
        assert!(store.change_connection(account, change, by).await.unwrap());
        let newest = store.newest_operation(account, template).await.unwrap().unwrap();
        assert_eq!(newest.operation.state, State::Queued);
    }
}

#[on_both_databases]
async fn nothing_is_queued_after_the_account_was_disconnected(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &[remote("5", "a", "APPROVED", "Hi")], 1).await;
    let template = mirror(store, account, "5").await.template.unwrap();
    store.disconnect_upstream(account, Author::operator(noon(2))).await.unwrap();
    // A request that was admitted before.
    edit(store, account, template, 1).await;
    let change = changing(account, template, Review::Provider);
    changed(store.delete_template(change).await.unwrap());
    create(store, submitted(account, "b", Review::Provider)).await;
    assert_eq!(queued(store, account).await, []);
}
