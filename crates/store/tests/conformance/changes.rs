//! Cases about edits, reviews, deletions and versions.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Review, Status,
        edit::Edit,
        lifecycle::{EventType, Hold, Trigger},
    },
};
use galley_store::{
    Actor, ChangeOutcome, CreateOutcome, Decision, Event, NameConflict, NewTemplate,
    StoredTemplate, TemplateChange,
};
use galley_test_macros::on_both_databases;

use super::fixture::{
    ACTOR, Shared, account, change, create, created, done, events, new, noon, template,
    template_subject,
};

fn content(text: &str) -> Edit {
    Edit::Replace { content: Some(components(text)), category: None }
}

fn components(text: &str) -> String {
    format!(r#"{{"components":[{{"type":"BODY","text":"{text}"}}]}}"#)
}

fn category(category: Category) -> Edit {
    Edit::Replace { content: None, category: Some(category) }
}

async fn edited(store: &Shared, change: TemplateChange, edit: Edit) -> StoredTemplate {
    done(store.edit_template(change, edit).await.unwrap())
}

async fn transitioned(store: &Shared, change: TemplateChange, trigger: Trigger) -> StoredTemplate {
    done(store.review_template(change, trigger, None).await.unwrap())
}

/// Type, version and status of each event of an account.
async fn event_summaries(
    store: &Shared,
    account: AccountId,
) -> Vec<(&'static str, u64, &'static str)> {
    let events = events(store, account, 0, 1_000).await;
    assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq), "{events:?}");
    let summary = |event: &Event| {
        let (version, _, status) = template_subject(event);
        (event.kind.as_str(), version, status.as_str())
    };
    events.iter().map(summary).collect()
}

#[on_both_databases]
async fn an_edit_creates_a_new_version_and_keeps_the_old_one(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    let now = edited(store, change(account, id), content("second")).await;
    assert_eq!((now.template.content(), now.revision), (&*components("second"), 2));
    assert_eq!((now.state.version, now.state.status()), (2, Status::Pending));
    assert_eq!((now.state.live_version(), now.updated_at), (Some(1), noon(1_000)));
    assert_eq!(store.template(account, id).await.unwrap(), Some(now.into()));

    let first = store.version(account, id, 1).await.unwrap().unwrap();
    assert_eq!((first.number, first.status), (1, Status::Approved));
    assert_eq!((&*first.content, first.created_at), (template("hello").content(), noon(0)));
    assert_eq!((first.created_by, first.decision), (ACTOR, None));
    let second = store.version(account, id, 2).await.unwrap().unwrap();
    assert_eq!((second.status, second.created_at), (Status::Pending, noon(1_000)));
    assert_eq!(store.version(account, id, 3).await.unwrap(), None);
    assert_eq!(
        event_summaries(store, account).await,
        [("template.created", 1, "APPROVED"), ("template.edited", 2, "PENDING")]
    );
}

#[on_both_databases]
async fn a_category_change_has_its_own_event_and_stores_the_previous_category(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    let now = edited(store, change(account, id), category(Category::Marketing)).await;
    assert_eq!(now.template.category(), Category::Marketing);
    assert_eq!(now.template.content(), template("hello").content());
    assert_eq!((now.previous_category, now.revision), (Some(Category::Utility), 3));
    let version = store.version(account, id, 2).await.unwrap().unwrap();
    assert_eq!(version.previous_category, Some(Category::Utility));
    let again = edited(store, change(account, id), category(Category::Marketing)).await;
    assert_eq!((again.previous_category, again.revision), (None, 4));
    let kinds: Vec<&str> =
        event_summaries(store, account).await.into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(
        kinds,
        ["template.created", "template.edited", "template.category_changed", "template.edited"]
    );
}

#[on_both_databases]
async fn changing_a_locked_category_is_refused_and_changes_nothing(store: &Shared) {
    let account = account(store, "a").await;
    let mut locked = new(account, "hello");
    locked.template = fixed("hello");
    let id = create(store, locked).await;
    let before = store.template(account, id).await.unwrap();
    let refused =
        store.edit_template(change(account, id), category(Category::Marketing)).await.unwrap();
    assert_eq!(refused, ChangeOutcome::CategoryLocked(Category::Utility));
    assert_eq!(store.template(account, id).await.unwrap(), before);
    assert_eq!(event_summaries(store, account).await.len(), 1);
    let same = edited(store, change(account, id), category(Category::Utility)).await;
    assert_eq!((same.state.version, same.previous_category), (2, None));
}

fn fixed(name: &str) -> galley_domain::template::Template {
    use galley_domain::{document::Document, rulebook::V1, template::Template};
    let document = format!(
        r#"{{"name":"{name}","language":"en_US","category":"UTILITY","allow_category_change":false,
        "components":[{{"type":"BODY","text":"b"}}]}}"#
    );
    Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1).unwrap()
}

#[on_both_databases]
async fn restoring_a_version_creates_a_new_version(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    edited(store, change(account, id), category(Category::Marketing)).await;
    edited(store, change(account, id), content("third")).await;
    let back = edited(store, change(account, id), Edit::Restore(1)).await;
    assert_eq!((back.state.version, back.template.content()), (4, template("hello").content()));
    assert_eq!(back.template.category(), Category::Utility);
    assert_eq!(back.previous_category, Some(Category::Marketing));
    let unknown = store.edit_template(change(account, id), Edit::Restore(5)).await.unwrap();
    assert_eq!(unknown, ChangeOutcome::NoVersion);
    assert_eq!(store.template(account, id).await.unwrap(), Some(back.into()));
}

#[on_both_databases]
async fn a_change_that_expects_another_revision_is_refused(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    let at = |revisions: &[u64]| TemplateChange {
        expected: Some(revisions.to_vec()),
        ..change(account, id)
    };
    edited(store, at(&[7, 1]), content("second")).await;
    let edit = store.edit_template(at(&[1]), content("third")).await.unwrap();
    let review = store.review_template(at(&[1]), Trigger::Approve, None).await.unwrap();
    let delete = store.delete_template(at(&[])).await.unwrap();
    assert_eq!([edit, review, delete], [const { ChangeOutcome::RevisionMismatch(2) }; 3]);
    assert_eq!(event_summaries(store, account).await.len(), 2);
    a_decision_on_another_version_is_refused(store, account).await;
}

async fn a_decision_on_another_version_is_refused(store: &Shared, account: AccountId) {
    let id = create(store, NewTemplate { review: Review::Manual, ..new(account, "second") }).await;
    edited(store, change(account, id), content("second")).await;
    let at = |version| TemplateChange { version: Some(version), ..change(account, id) };
    for trigger in [Trigger::Approve, Trigger::Reject, Trigger::Pause, Trigger::Disable] {
        for version in [1, 3, u64::MAX] {
            let refused = store.review_template(at(version), trigger, None).await.unwrap();
            assert_eq!(refused, ChangeOutcome::RevisionMismatch(2));
        }
    }
    let outdated = TemplateChange { expected: Some(vec![1]), ..at(2) };
    let refused = store.review_template(outdated, Trigger::Approve, None).await.unwrap();
    assert_eq!(refused, ChangeOutcome::RevisionMismatch(2));
    let both = TemplateChange { expected: Some(vec![2]), ..at(2) };
    let approved = transitioned(store, both, Trigger::Approve).await;
    assert_eq!((approved.state.live_version(), approved.revision), (Some(2), 3));
}

#[on_both_databases]
async fn a_review_applies_the_transition_and_stores_its_reason(store: &Shared) {
    let account = account(store, "a").await;
    let pending = NewTemplate { review: Review::Manual, ..new(account, "hello") };
    let id = create(store, pending).await;
    let reason = Some("too loud".to_owned());
    let reject = store.review_template(change(account, id), Trigger::Reject, reason.clone());
    let rejected = done(reject.await.unwrap());
    assert_eq!((rejected.state.status(), &rejected.reason), (Status::Rejected, &reason));
    let version = store.version(account, id, 1).await.unwrap().unwrap();
    let decision = Decision { at: noon(1_000), by: ACTOR, reason: reason.clone() };
    assert_eq!(version.decision, Some(decision));

    let now = edited(store, change(account, id), content("better")).await;
    assert_eq!((now.reason, now.state.status()), (None, Status::Pending));
    let operator = TemplateChange { actor: Actor::Operator, ..change(account, id) };
    let approved = transitioned(store, operator, Trigger::Approve).await;
    assert_eq!(
        (approved.state.status(), approved.state.live_version()),
        (Status::Approved, Some(2))
    );
    let first = store.version(account, id, 1).await.unwrap().unwrap();
    assert_eq!(first.decision.and_then(|it| it.reason), reason);

    let events = events(store, account, 0, 10).await;
    assert_eq!((events[1].kind, &events[1].reason), (EventType::Rejected, &reason));
    assert_eq!((events[3].kind, events[3].actor), (EventType::Approved, Actor::Operator));
    assert_eq!(approved.revision, 4);
}

#[on_both_databases]
async fn an_invalid_transition_changes_nothing(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    let before = store.template(account, id).await.unwrap();
    let refused = store.review_template(change(account, id), Trigger::Approve, None).await.unwrap();
    let ChangeOutcome::InvalidTransition(refusal) = refused else { panic!("{refused:?}") };
    assert_eq!(refusal.status, Status::Approved);
    assert!(refusal.possible.contains(&Trigger::Pause), "{refusal:?}");
    assert_eq!(store.template(account, id).await.unwrap(), before);
    assert_eq!(event_summaries(store, account).await.len(), 1);
}

#[on_both_databases]
async fn a_hold_outlasts_edits_and_ends_when_it_is_lifted(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    let paused = transitioned(store, change(account, id), Trigger::Pause).await;
    assert_eq!((paused.state.hold, paused.state.live_version()), (Some(Hold::Paused), None));
    let edited = edited(store, change(account, id), content("second")).await;
    assert_eq!(edited.state.status(), Status::Paused);
    let resumed = transitioned(store, change(account, id), Trigger::Resume).await;
    assert_eq!((resumed.state.status(), resumed.state.live_version()), (Status::Pending, Some(1)));
    let disabled = transitioned(store, change(account, id), Trigger::Disable).await;
    assert_eq!(disabled.state.status(), Status::Disabled);
    assert_eq!(store.template(account, id).await.unwrap(), Some(disabled.into()));
}

#[on_both_databases]
async fn deleting_a_template_frees_its_name_and_keeps_its_events(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    edited(store, change(account, id), content("second")).await;
    let was = done(store.delete_template(change(account, id)).await.unwrap());
    assert_eq!((was.id, was.template.name()), (id, "hello"));
    assert_eq!(store.template(account, id).await.unwrap(), None);
    assert_eq!(store.version(account, id, 1).await.unwrap(), None);
    assert_eq!(store.versions(account, id, None, 10).await.unwrap(), None);
    let again = store.delete_template(change(account, id)).await.unwrap();
    let edit = store.edit_template(change(account, id), content("third")).await.unwrap();
    assert_eq!([again, edit], [const { ChangeOutcome::NoTemplate }; 2]);
    assert_eq!(store.name_conflict(account, "hello").await.unwrap(), None);
    let next = create(store, new(account, "hello")).await;
    assert_ne!(next, id);
    let kinds: Vec<&str> =
        event_summaries(store, account).await.into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(
        kinds,
        ["template.created", "template.edited", "template.deleted", "template.created"]
    );
}

#[on_both_databases]
async fn an_account_cannot_read_or_change_templates_of_another(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let id = create(store, new(mine, "hello")).await;
    let before = store.template(mine, id).await.unwrap();
    let theirs = change(theirs, id);
    let edit = store.edit_template(theirs.clone(), content("second")).await.unwrap();
    let review = store.review_template(theirs.clone(), Trigger::Pause, None).await.unwrap();
    let delete = store.delete_template(theirs.clone()).await.unwrap();
    assert_eq!([edit, review, delete], [const { ChangeOutcome::NoTemplate }; 3]);
    assert_eq!(store.version(theirs.account, id, 1).await.unwrap(), None);
    assert_eq!(store.versions(theirs.account, id, None, 10).await.unwrap(), None);
    assert_eq!(store.template(mine, id).await.unwrap(), before);
    assert_eq!(event_summaries(store, theirs.account).await, []);
}

#[on_both_databases]
async fn versions_are_paged_newest_first(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    for number in 2..=5 {
        edited(store, change(account, id), content(&number.to_string())).await;
    }
    let numbers = async |before, limit| -> Vec<u64> {
        let page = store.versions(account, id, before, limit).await.unwrap().unwrap();
        page.iter().map(|it| it.number).collect()
    };
    assert_eq!(numbers(None, 3).await, [5, 4, 3]);
    assert_eq!(numbers(Some(3), 3).await, [2, 1]);
    assert_eq!(numbers(Some(1), 3).await, [0; 0]);
}

/// Runs two operations concurrently, many times, and passes each pair of outcomes to `check`.
async fn race<A, B>(
    rounds: u32,
    mut begin: impl AsyncFnMut(u32) -> (A, B),
    mut check: impl AsyncFnMut(A::Output, B::Output),
) where
    A: Future<Output: Send> + Send + 'static,
    B: Future<Output: Send> + Send + 'static,
{
    for round in 0..rounds {
        let (one, other) = begin(round).await;
        // Alternate the order in which the tasks are spawned.
        let (one, other) = if round % 2 == 0 {
            let one = tokio::spawn(one);
            (one, tokio::spawn(other))
        } else {
            let other = tokio::spawn(other);
            (tokio::spawn(one), other)
        };
        check(one.await.unwrap(), other.await.unwrap()).await;
    }
}

#[on_both_databases]
async fn one_of_many_concurrent_edits_of_a_revision_succeeds(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    let tasks: Vec<_> = (0..24)
        .map(|number| {
            let store = std::sync::Arc::clone(store);
            let change = TemplateChange { expected: Some(vec![1]), ..change(account, id) };
            tokio::spawn(async move {
                store.edit_template(change, content(&number.to_string())).await.unwrap()
            })
        })
        .collect();
    let (mut won, mut lost) = (Vec::new(), 0);
    for task in tasks {
        match task.await.unwrap() {
            ChangeOutcome::Done(template) => won.push(template),
            ChangeOutcome::RevisionMismatch(2) => lost += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((won.len(), lost), (1, 23));
    assert_eq!(store.template(account, id).await.unwrap().as_deref(), Some(&*won[0]));
    assert_eq!(event_summaries(store, account).await.len(), 2);
}

#[on_both_databases]
async fn a_concurrent_review_and_edit_are_serialised(store: &Shared) {
    let account = account(store, "a").await;
    let mut last = TemplateId::new(1).unwrap();
    let begin = async |round: u32| {
        let pending =
            NewTemplate { review: Review::Manual, ..new(account, &format!("hello{round}")) };
        let id = create(store, pending).await;
        let (one, other) = (std::sync::Arc::clone(store), std::sync::Arc::clone(store));
        (
            async move {
                (
                    id,
                    one.review_template(change(account, id), Trigger::Approve, None).await.unwrap(),
                )
            },
            async move { other.edit_template(change(account, id), content("second")).await.unwrap() },
        )
    };
    let check = async |(id, review): (TemplateId, ChangeOutcome), edit: ChangeOutcome| {
        last = id;
        let (review, edit) = (done(review), done(edit));
        let end = store.template(account, id).await.unwrap().unwrap();
        // Review first: the edit is pending. Edit first: the review approved the edit.
        if review.revision < edit.revision {
            assert_eq!((review.state.version, review.state.status()), (1, Status::Approved));
            assert_eq!((end.state.status(), end.state.live_version()), (Status::Pending, Some(1)));
        } else {
            assert_eq!((review.state.version, review.state.status()), (2, Status::Approved));
            assert_eq!((end.state.status(), end.state.live_version()), (Status::Approved, Some(2)));
        }
        assert_eq!((end.state.version, end.revision), (2, 3));
    };
    race(40, begin, check).await;
    assert!(last.get() > 1);
}

#[on_both_databases]
async fn a_decision_never_approves_a_concurrent_edit(store: &Shared) {
    let account = account(store, "a").await;
    let begin = async |round: u32| {
        let pending =
            NewTemplate { review: Review::Manual, ..new(account, &format!("hello{round}")) };
        let id = create(store, pending).await;
        let seen = TemplateChange { version: Some(1), ..change(account, id) };
        let (one, other) = (std::sync::Arc::clone(store), std::sync::Arc::clone(store));
        (
            async move { (id, one.review_template(seen, Trigger::Approve, None).await.unwrap()) },
            async move { other.edit_template(change(account, id), content("second")).await.unwrap() },
        )
    };
    let check = async |(id, review): (TemplateId, ChangeOutcome), edit: ChangeOutcome| {
        done(edit);
        let live = match review {
            ChangeOutcome::Done(_) => Some(1),
            ChangeOutcome::RevisionMismatch(2) => None,
            other => panic!("{other:?}"),
        };
        let end = store.template(account, id).await.unwrap().unwrap();
        assert_eq!((end.state.status(), end.state.live_version()), (Status::Pending, live));
    };
    race(100, begin, check).await;
}

#[on_both_databases]
async fn a_concurrent_deletion_and_edit_are_serialised(store: &Shared) {
    let account = account(store, "a").await;
    let begin = async |round: u32| {
        let id = create(store, new(account, &format!("hello{round}"))).await;
        let (one, other) = (std::sync::Arc::clone(store), std::sync::Arc::clone(store));
        (async move { (id, one.delete_template(change(account, id)).await.unwrap()) }, async move {
            other.edit_template(change(account, id), content("second")).await.unwrap()
        })
    };
    let check = async |(id, delete): (TemplateId, ChangeOutcome), edit: ChangeOutcome| {
        let was = done(delete);
        match edit {
            ChangeOutcome::Done(edited) => {
                assert_eq!((was.state.version, was.revision), (2, edited.revision));
            }
            ChangeOutcome::NoTemplate => assert_eq!(was.state.version, 1),
            other => panic!("{other:?}"),
        }
        assert_eq!(store.template(account, id).await.unwrap(), None);
    };
    race(40, begin, check).await;
}

#[on_both_databases]
async fn a_concurrent_creation_and_deletion_of_a_name_are_serialised(store: &Shared) {
    let account = account(store, "a").await;
    let begin = async |round: u32| {
        let name = format!("hello{round}");
        let id = create(store, new(account, &name)).await;
        let (one, other) = (std::sync::Arc::clone(store), std::sync::Arc::clone(store));
        (async move { (id, one.delete_template(change(account, id)).await.unwrap()) }, async move {
            other.create_template(new(account, &name)).await.unwrap()
        })
    };
    let check = async |(id, delete): (TemplateId, ChangeOutcome), creation: CreateOutcome| {
        assert_eq!(done(delete).id, id);
        let name = match creation {
            CreateOutcome::NameInUse(NameConflict { existing_id }) => {
                assert_eq!(existing_id, Some(id));
                return;
            }
            creation => store.template(account, created(creation).id).await.unwrap().unwrap(),
        };
        assert_eq!(
            store.name_conflict(account, name.template.name()).await.unwrap().unwrap().existing_id,
            Some(name.id)
        );
    };
    race(40, begin, check).await;
}
