//! Cases about what a person decides on templates that the provider changed, and about what of their
//! state at the provider is listed and kept.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::{Category, WHATSAPP},
    template::{
        Review, Status, Template,
        lifecycle::{EventType, Hold, Trigger},
    },
    upstream::{CallFailure, OperationState, ProviderError, RemoteStatus, RemoteTemplate},
};
use galley_store::{
    Actor, Author, DueWork, Fence, ListQuery, OPERATION_DAYS, RetentionCursor, ReviewStatistics,
    StoredTemplate, TemplateChange, UpstreamAction, UpstreamActionOutcome, UpstreamFilter,
};
use galley_test_macros::on_both_databases;
use jiff::{SignedDuration, Timestamp};

use super::{
    emulator::{HOUR, stored},
    fixture::{ACTOR, Shared, create, done as changed, events, noon, times},
    sqlite_only::body_edit,
    upstream::{connected, done, header, kinds, mirror, read_record, remote, sweep},
    upstream_submission::{changing, queued, shown, submitted},
};

async fn read(store: &Shared, fence: Fence, template: &RemoteTemplate, at: i64) {
    let asked = store.mirrored_template(fence.account, &template.id).await.unwrap();
    let asked = asked.and_then(|row| row.dirty_at);
    done(
        store.record_read(fence, read_record(template.clone(), asked, at), noon(at)).await.unwrap(),
    );
}

/// A person accepts what the provider shows.
async fn accept(store: &Shared, fence: Fence, id: TemplateId, at: i64) -> StoredTemplate {
    let change = TemplateChange { at: noon(at), ..changing(fence.account, id, Review::Provider) };
    match store.act_upstream(change, UpstreamAction::Accept).await.unwrap() {
        UpstreamActionOutcome::Changed(template) => *template,
        other => panic!("{other:?}"),
    }
}

async fn is_refused(store: &Shared, fence: Fence, id: TemplateId, action: UpstreamAction) -> bool {
    let change = changing(fence.account, id, Review::InHouseThenProvider);
    let outcome = store.act_upstream(change, action).await.unwrap();
    matches!(outcome, UpstreamActionOutcome::NotPossible(_))
}

/// An imported template.
async fn imported(store: &Shared, fence: Fence, number: &str, name: &str) -> TemplateId {
    read(store, fence, &remote(number, name, "APPROVED", "Hi"), 1).await;
    mirror(store, fence.account, number).await.template.unwrap()
}

#[on_both_databases]
async fn an_accepted_content_is_a_version_with_the_status_of_the_provider(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = imported(store, fence, "5", "a").await;
    assert!(is_refused(store, fence, template, UpstreamAction::Accept).await, "nothing differs");
    let foreign = remote("5", "a", "APPROVED", "Else");
    read(store, fence, &foreign, 2).await;
    let drifted = stored(store, account, template).await;
    assert_eq!(drifted.state.live_version(), None);
    let push = changing(account, template, Review::Provider);
    store.act_upstream(push, UpstreamAction::Push).await.unwrap();
    let before = kinds(store, account).await.len();
    let accepted = accept(store, fence, template, 3).await;
    assert_eq!((accepted.state.version, accepted.state.live_version()), (2, Some(2)));
    let audited = store.audit_entries(Some(account), 0, 100).await.unwrap();
    let audited: Vec<_> =
        audited.iter().map(|it| (it.actor, it.details.get("action"), &*it.subject)).collect();
    let [push, accept] = ["push", "accept"].map(serde_json::Value::from);
    let id = template.to_string();
    assert!(
        audited.ends_with(&[(ACTOR, Some(&push), &*id), (ACTOR, Some(&accept), &*id)]),
        "{audited:?}"
    );
    assert!(accepted.template.content().contains(r#""text":"Else""#));
    assert!(accepted.template.content().contains("NOVELTY"), "what no rulebook knows is kept");
    let row = mirror(store, account, "5").await;
    assert_eq!((row.drifted, row.version), (false, Some(2)));
    let states: Vec<_> = queued(store, account).await.iter().map(|it| it.2).collect();
    assert_eq!(states, [OperationState::Superseded], "the push is not made");
    let told = events(store, account, 0, 100).await.split_off(before);
    let told: Vec<_> = told.iter().map(|it| (it.kind, it.actor)).collect();
    assert_eq!(told, [(EventType::Edited, ACTOR), (EventType::Approved, Actor::Service)]);
    let version = store.version(account, template, 2).await.unwrap().unwrap();
    assert_eq!((version.status, version.created_by), (Status::Approved, ACTOR));
    // The same observation again changes nothing.
    read(store, fence, &foreign, 4).await;
    assert_eq!(stored(store, account, template).await, accepted);
    let findings = store.check_integrity().await.unwrap();
    assert!(findings.iter().all(|finding| finding.ok), "{findings:?}");
}

#[on_both_databases]
async fn a_content_that_was_not_accepted_stays_at_the_provider(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = imported(store, fence, "5", "a").await;
    read(store, fence, &remote("5", "a", "PENDING", "Else"), 2).await;
    let expected = TemplateChange {
        expected: Some(vec![1]),
        ..changing(fence.account, template, Review::Provider)
    };
    let outcome = store.act_upstream(expected, UpstreamAction::Accept).await.unwrap();
    assert!(matches!(outcome, UpstreamActionOutcome::RevisionMismatch(_)), "{outcome:?}");
    assert!(mirror(store, fence.account, "5").await.drifted);
    let accepted = accept(store, fence, template, 3).await;
    assert_eq!((accepted.state.status(), accepted.state.live_version()), (Status::Pending, None));
}

#[on_both_databases]
async fn a_content_is_accepted_only_with_the_status_that_belongs_to_it(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = imported(store, fence, "5", "a").await;
    read(store, fence, &remote("5", "a", "PENDING", "Rejected later"), 2).await;
    // The provider is edited once more, and approves that. A page shows no content.
    let edited = remote("5", "a", "APPROVED", "Approved");
    sweep(store, fence, &[header(&edited)], 3).await;
    assert!(is_refused(store, fence, template, UpstreamAction::Accept).await);
    assert_eq!(stored(store, fence.account, template).await.state.live_version(), None);
    // Nor after a read that failed.
    let asked = mirror(store, fence.account, "5").await.dirty_at;
    done(store.postpone_read(fence, edited.id.clone(), asked, noon(HOUR)).await.unwrap());
    assert!(is_refused(store, fence, template, UpstreamAction::Accept).await);
    read(store, fence, &edited, 4).await;
    let accepted = accept(store, fence, template, 5).await;
    assert_eq!(accepted.state.live_version(), Some(2));
    assert!(accepted.template.content().contains("Approved"));
    // The look after the second of a change is no reason to wait: both were read together.
    let now = noon(10_000);
    let updated_at = Timestamp::from_second(now.as_second()).ok();
    let changed_now = RemoteTemplate { updated_at, ..remote("5", "a", "APPROVED", "Else") };
    read(store, fence, &changed_now, 10_300).await;
    assert_eq!(mirror(store, fence.account, "5").await.dirty_at, Some(noon(13_000)));
    assert_eq!(accept(store, fence, template, 20_000).await.state.live_version(), Some(3));
}

/// A template that does not allow another category, which the provider has.
async fn locked(store: &Shared, fence: Fence) -> (TemplateId, RemoteTemplate) {
    let mut new = submitted(fence.account, "a", Review::Auto);
    let document = r#"{"name":"a","language":"en_US","category":"UTILITY",
        "allow_category_change":false,"components":[{"type":"BODY","text":"Hi"}]}"#;
    let document = galley_domain::document::Document::parse(document.as_bytes()).unwrap();
    new.template = Template::read(&document, &WHATSAPP).unwrap();
    let template = create(store, new).await;
    let equal = shown("5", &stored(store, fence.account, template).await, "APPROVED");
    read(store, fence, &equal, 1).await;
    (template, equal)
}

fn recategorised(template: &RemoteTemplate, category: &str) -> RemoteTemplate {
    RemoteTemplate { category: category.to_owned(), ..template.clone() }
}

#[on_both_databases]
async fn another_category_holds_a_template_that_does_not_allow_it(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let (template, equal) = locked(store, fence).await;
    let read_state = async |shown: &RemoteTemplate, at| {
        read(store, fence, shown, at).await;
        let now = stored(store, account, template).await;
        (now.template.category(), now.state.hold)
    };
    let paused = (Category::Marketing, Some(Hold::Paused));
    let marketing = recategorised(&equal, "MARKETING");
    assert_eq!(read_state(&marketing, 2).await, paused);
    let last = events(store, account, 0, 100).await.pop().unwrap();
    let reason = "the provider changed the category from UTILITY to MARKETING";
    assert_eq!((last.kind, last.reason.as_deref()), (EventType::Paused, Some(reason)));
    let rejected = RemoteTemplate { status: RemoteStatus::Rejected, ..marketing.clone() };
    assert_eq!(read_state(&rejected, 3).await, paused, "later observations keep it");
    assert_eq!(read_state(&marketing, 4).await, paused);
    let change = changing(account, template, Review::Provider);
    changed(store.edit_template(change, body_edit(1)).await.unwrap());
    assert_eq!(read_state(&marketing, 5).await, paused, "an edit accepts no category");
    assert_eq!(read_state(&equal, 6).await, (Category::Utility, None), "the old one again");
    let kinds = kinds(store, account).await;
    assert!(kinds.ends_with(&[EventType::Resumed, EventType::CategoryChanged]), "{kinds:?}");
}

#[on_both_databases]
async fn an_accepted_category_ends_the_hold(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let (template, equal) = locked(store, fence).await;
    let marketing = recategorised(&equal, "MARKETING");
    read(store, fence, &marketing, 2).await;
    let accepted = accept(store, fence, template, 3).await;
    assert_eq!((accepted.state.live_version(), accepted.state.version), (Some(1), 1));
    assert_eq!(accepted.template.category(), Category::Marketing);
    let last = events(store, account, 0, 100).await.pop().unwrap();
    assert_eq!((last.kind, last.actor), (EventType::Resumed, ACTOR));
    read(store, fence, &marketing, 4).await;
    assert_eq!(stored(store, account, template).await, accepted, "it stays accepted");
    // Together with another content.
    let mut foreign = recategorised(&remote("5", "a", "APPROVED", "Else"), "UTILITY");
    foreign.updated_at = None;
    read(store, fence, &foreign, 5).await;
    let held = stored(store, account, template).await;
    assert_eq!(
        (held.state.hold, held.previous_category),
        (Some(Hold::Paused), Some(Category::Marketing))
    );
    let accepted = accept(store, fence, template, 6).await;
    assert_eq!((accepted.state.live_version(), accepted.previous_category), (Some(2), None));
}

#[on_both_databases]
async fn another_content_decides_nothing_about_a_reviewed_version(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let review = Review::InHouseThenProvider;
    let foreign = remote("5", "a", "APPROVED", "Else");
    for (trigger, status) in
        [(Trigger::Approve, Status::Pending), (Trigger::Reject, Status::Rejected)]
    {
        read(store, fence, &remote("5", "a", "APPROVED", "Hi"), 2).await;
        let template = mirror(store, account, "5").await.template.unwrap();
        let change = changing(account, template, review);
        changed(store.edit_template(change.clone(), body_edit(1)).await.unwrap());
        changed(store.review_template(change, trigger, None).await.unwrap());
        read(store, fence, &foreign, 3).await;
        let now = stored(store, account, template).await;
        assert_eq!((now.state.newest_status, now.decided_by), (status, Some(ACTOR)));
        let refused = is_refused(store, fence, template, UpstreamAction::Push).await;
        assert_eq!(refused, trigger == Trigger::Reject);
    }
    // A version without a review is not pushed, whatever status the provider shows.
    let other = imported(store, fence, "6", "b").await;
    let change = changing(account, other, review);
    changed(store.edit_template(change.clone(), body_edit(1)).await.unwrap());
    read(store, fence, &remote("6", "b", "APPROVED", "Else"), 3).await;
    assert!(is_refused(store, fence, other, UpstreamAction::Push).await);
    changed(store.review_template(change, Trigger::Approve, None).await.unwrap());
    // The provider had approved this one before its content was replaced.
    let third = imported(store, fence, "7", "c").await;
    read(store, fence, &remote("7", "c", "PENDING", "Else"), 3).await;
    assert!(!is_refused(store, fence, third, UpstreamAction::Push).await);
}

async fn listed(store: &Shared, account: AccountId, filter: UpstreamFilter) -> Vec<TemplateId> {
    let query = ListQuery { upstream: Some(filter), ..ListQuery::new(account, 10) };
    let ids: Vec<_> =
        store.list(query.clone()).await.unwrap().templates.iter().map(|it| it.id).collect();
    assert_eq!(store.count_templates(query.clone()).await.unwrap(), ids.len() as u64);
    let awaiting = ListQuery { awaiting_review: true, ..query };
    let awaiting_page = store.list(awaiting.clone()).await.unwrap().templates.len() as u64;
    assert_eq!(store.count_templates(awaiting).await.unwrap(), awaiting_page);
    ids
}

#[on_both_databases]
async fn templates_are_listed_by_their_state_at_the_provider(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let equal = imported(store, fence, "1", "a").await;
    let drifted = imported(store, fence, "2", "b").await;
    read(store, fence, &remote("2", "b", "APPROVED", "Else"), 2).await;
    let missing = imported(store, fence, "3", "c").await;
    read(store, fence, &remote("3", "c", "DELETED", "Hi"), 2).await;
    let failed = create(store, submitted(account, "d", Review::Provider)).await;
    let operation = store.newest_operation(account, failed).await.unwrap().unwrap().id;
    done(store.begin_operation(fence, operation, noon(3)).await.unwrap());
    let error = ProviderError { code: 100, subcode: None, title: None, message: "No".to_owned() };
    let refused = Err(CallFailure::Refused(error));
    done(store.record_call(fence, operation, refused, noon(3)).await.unwrap());
    create(store, submitted(account, "e", Review::Provider)).await;
    assert_eq!(listed(store, account, UpstreamFilter::Drifted).await, [drifted]);
    assert_eq!(listed(store, account, UpstreamFilter::Failed).await, [failed]);
    assert_eq!(listed(store, account, UpstreamFilter::Missing).await, [missing]);
    store.update_search_index().await.unwrap();
    let words = vec!["else".to_owned(), "hi".to_owned()];
    for (filter, words, expected) in [
        (UpstreamFilter::Drifted, words[1..].to_vec(), vec![drifted]),
        (UpstreamFilter::Missing, words, vec![]),
    ] {
        let query = ListQuery { upstream: Some(filter), words, ..ListQuery::new(account, 10) };
        let found = store.list(query.clone()).await.unwrap().templates;
        assert_eq!(found.iter().map(|it| it.id).collect::<Vec<_>>(), expected, "{filter:?}");
        assert_eq!(store.count_templates(query).await.unwrap(), expected.len() as u64);
    }
    let query =
        ListQuery { upstream: Some(UpstreamFilter::Drifted), ..ListQuery::new(account, 10) };
    let languages = store.languages(query, vec!["a".to_owned(), "b".to_owned()]).await.unwrap();
    let languages: Vec<_> = languages.iter().map(|it| (it.id, it.is_match)).collect();
    assert_eq!(languages, [(drifted, true), (equal, false)]);
    for filter in UpstreamFilter::ALL {
        assert_eq!(UpstreamFilter::parse(filter.as_str()), Some(filter));
    }
}

#[on_both_databases]
async fn only_versions_that_wait_for_the_reviewers_await_review(store: &Shared) {
    let fence = connected(store, "a").await;
    let (account, review) = (fence.account, Review::InHouseThenProvider);
    // The provider reviews this one, which it had first.
    read(store, fence, &remote("1", "a", "PENDING", "Hi"), 1).await;
    let waiting = create(store, submitted(account, "b", review)).await;
    let passed = create(store, submitted(account, "c", review)).await;
    let change = changing(account, passed, review);
    changed(store.review_template(change, Trigger::Approve, None).await.unwrap());
    assert_eq!(stored(store, account, passed).await.state.newest_status, Status::Pending);
    store.update_search_index().await.unwrap();
    let queue = |review| ListQuery { awaiting_review: true, review, ..ListQuery::new(account, 10) };
    let listed = async |query: ListQuery| {
        let found = store.list(query.clone()).await.unwrap().templates;
        assert_eq!(store.count_templates(query).await.unwrap(), found.len() as u64);
        found.iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(queue(review)).await, [waiting]);
    let words = vec!["grusse".to_owned()];
    assert_eq!(listed(ListQuery { words, ..queue(review) }).await, [waiting]);
    let languages = store.languages(queue(review), vec!["b".to_owned(), "c".to_owned()]).await;
    let languages: Vec<_> = languages.unwrap().iter().map(|it| (it.id, it.is_match)).collect();
    assert_eq!(languages, [(passed, false), (waiting, true)]);
    // With the review `auto`, the provider decides on everything.
    assert_eq!(listed(queue(Review::Provider)).await, []);
    let statistics = async || store.statistics().await.unwrap().reviews;
    assert_eq!(statistics().await, ReviewStatistics::default());
    store.set_account_review(account, Review::Manual, Author::operator(noon(20))).await.unwrap();
    let oldest = Some(stored(store, account, waiting).await.created_at);
    assert_eq!(statistics().await, ReviewStatistics { pending: 1, oldest });
    assert_eq!(listed(queue(Review::Manual)).await.len(), 3, "of an account without a provider");
}

#[on_both_databases]
async fn settled_operations_are_deleted_except_the_newest_of_a_template(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = create(store, submitted(account, "a", Review::Provider)).await;
    let deleted = create(store, submitted(account, "b", Review::Provider)).await;
    let change = changing(account, template, Review::Provider);
    for text in 0..3 {
        changed(store.edit_template(change.clone(), body_edit(text)).await.unwrap());
    }
    let change = changing(account, deleted, Review::Provider);
    changed(store.delete_template(change).await.unwrap());
    let at = |days| noon(days * 24 * HOUR + 2_000);
    let purge = async |at| {
        store.delete_expired_records(RetentionCursor::default(), at).await.unwrap();
        store.operations(account, None, 100).await.unwrap().len()
    };
    assert_eq!(purge(at(OPERATION_DAYS - 1)).await, 5);
    assert_eq!(purge(at(OPERATION_DAYS)).await, 1);
    let newest = store.newest_operation(account, template).await.unwrap().unwrap();
    assert_eq!((newest.version, newest.operation.state), (4, OperationState::Queued));
}

#[on_both_databases]
async fn a_template_that_changed_within_the_second_of_its_read_is_read_again(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let now = noon(0);
    let changed_now = RemoteTemplate {
        updated_at: Timestamp::from_second(now.as_second()).ok(),
        ..remote("5", "a", "APPROVED", "Hi")
    };
    read(store, fence, &changed_now, 300).await;
    assert_eq!(mirror(store, account, "5").await.dirty_at, Some(noon(3_000)));
    assert_eq!(kinds(store, account).await, [EventType::Created], "it is used at once");
    sweep(store, fence, &[], 400).await;
    done(store.finish_sweep(fence, noon(400)).await.unwrap());
    done(store.release_connection(fence).await.unwrap());
    let work = async |at| {
        let interval = SignedDuration::from_hours(9);
        store.connections_with_work(noon(at), interval, 200).await.unwrap()
    };
    let later = DueWork { now: Vec::new(), next_at: Some(noon(3_000)) };
    assert_eq!(work(500).await, later);
    assert_eq!(work(3_000).await.now, [account]);
    let fence = store.lease_connection(account, times(500, HOUR)).await.unwrap().unwrap().fence;
    let page = sweep(store, fence, &[header(&changed_now)], 600).await;
    assert_eq!(page.to_read, [], "the second is not over");
    let rejected = RemoteTemplate { status: RemoteStatus::Rejected, ..header(&changed_now) };
    let page = sweep(store, fence, &[rejected], 700).await;
    assert_eq!(page.to_read.len(), 1, "the header differs");
    read(store, fence, &changed_now, 3_100).await;
    assert_eq!(mirror(store, account, "5").await.dirty_at, None);
    assert_eq!(store.templates_to_read(account, 10).await.unwrap(), []);
}
