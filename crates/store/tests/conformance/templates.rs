//! Cases about templates and their events.

use galley_domain::{
    rulebook::Category,
    template::{
        Review, Status,
        lifecycle::{EventType, State},
    },
};
use galley_store::{CreateOutcome, NameConflict, NewTemplate};

use super::fixture::{
    ACTOR, Shared, account, create_concurrently, created, events, new, noon, template,
    template_subject,
};
use galley_test_macros::on_both_databases;

#[on_both_databases]
async fn a_created_template_reads_back_equal(store: &Shared) {
    let account = account(store, "a").await;
    let created_template = created(store.create_template(new(account, "hello")).await.unwrap());
    assert_eq!(
        (created_template.status, created_template.category),
        (Status::Approved, Category::Utility)
    );
    let stored = store.template(account, created_template.id).await.unwrap().unwrap();
    assert_eq!(stored.template, template("hello"));
    assert_eq!(
        (stored.id, stored.state, stored.revision, stored.previous_category, stored.reason.clone()),
        (created_template.id, State::initial(Review::Auto), 1, None, None)
    );
    assert_eq!((stored.created_at, stored.updated_at), (noon(0), noon(0)));
    assert_eq!(stored.phone.as_deref(), Some("15550001111"));
}

#[on_both_databases]
async fn a_template_is_visible_only_to_its_account(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let created_template = created(store.create_template(new(mine, "hello")).await.unwrap());
    assert!(store.template(mine, created_template.id).await.unwrap().is_some());
    assert_eq!(store.template(theirs, created_template.id).await.unwrap(), None);
    assert_eq!(events(store, theirs, 0, 10).await, []);
}

#[on_both_databases]
async fn a_name_conflict_reports_the_template_only_to_its_owner(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let created_template = created(store.create_template(new(mine, "hello")).await.unwrap());
    let again = store.create_template(new(mine, "hello")).await.unwrap();
    assert_eq!(
        again,
        CreateOutcome::NameInUse(NameConflict { existing_id: Some(created_template.id) })
    );
    let other = store.create_template(new(theirs, "hello")).await.unwrap();
    assert_eq!(other, CreateOutcome::NameInUse(NameConflict { existing_id: None }));
    for (account, existing_id) in [(mine, Some(created_template.id)), (theirs, None)] {
        assert_eq!(
            store.name_conflict(account, "hello").await.unwrap(),
            Some(NameConflict { existing_id })
        );
        assert_eq!(store.name_conflict(account, "free").await.unwrap(), None);
    }
}

#[on_both_databases]
async fn a_refused_creation_writes_nothing(store: &Shared) {
    let account = account(store, "a").await;
    created(store.create_template(new(account, "hello")).await.unwrap());
    store.create_template(new(account, "hello")).await.unwrap();
    created(store.create_template(new(account, "next")).await.unwrap());
    let events = events(store, account, 0, 10).await;
    assert_eq!(
        events.iter().map(|it| (it.seq, template_subject(it).1)).collect::<Vec<_>>(),
        [(1, "hello"), (2, "next")]
    );
}

#[on_both_databases]
async fn ids_increase_even_if_the_clock_goes_back(store: &Shared) {
    let account = account(store, "a").await;
    let mut ids = Vec::new();
    for (index, plus) in [0, 0, 5_000, -60_000, 5_001].into_iter().enumerate() {
        let new = NewTemplate { at: noon(plus), ..new(account, &format!("t{index}")) };
        ids.push(created(store.create_template(new).await.unwrap()).id);
    }
    assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
}

#[on_both_databases]
async fn events_are_numbered_without_gaps_in_each_account(store: &Shared) {
    let (one, two) = (account(store, "a").await, account(store, "b").await);
    for index in 0..5 {
        created(store.create_template(new(one, &format!("one{index}"))).await.unwrap());
        created(store.create_template(new(two, &format!("two{index}"))).await.unwrap());
    }
    for account in [one, two] {
        let events = events(store, account, 0, 100).await;
        assert_eq!(events.iter().map(|it| it.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!(events.iter().all(|it| it.kind == EventType::Created
            && template_subject(it).0 == 1
            && it.actor == ACTOR));
    }
    let rest = events(store, one, 3, 1).await;
    assert_eq!(
        rest.iter().map(|it| (it.seq, template_subject(it).1)).collect::<Vec<_>>(),
        [(4, "one3")]
    );
}

#[on_both_databases]
async fn one_of_many_concurrent_creations_of_a_name_succeeds(store: &Shared) {
    let account = account(store, "a").await;
    let outcomes = create_concurrently(store, vec![new(account, "wanted"); 64]).await;
    let winners: Vec<_> =
        outcomes.iter().filter(|it| matches!(it, CreateOutcome::Created(_))).collect();
    let [CreateOutcome::Created(winner)] = winners[..] else { panic!("{outcomes:?}") };
    let losers = outcomes
        .iter()
        .filter(|it| {
            **it == CreateOutcome::NameInUse(NameConflict { existing_id: Some(winner.id) })
        })
        .count();
    assert_eq!(losers, 63);
    assert_eq!(events(store, account, 0, 100).await.len(), 1);
}

#[on_both_databases]
async fn a_template_under_manual_review_has_no_live_version(store: &Shared) {
    let account = account(store, "a").await;
    let pending = NewTemplate { review: Review::Manual, ..new(account, "hello") };
    let created_template = created(store.create_template(pending).await.unwrap());
    let stored = store.template(account, created_template.id).await.unwrap().unwrap();
    assert_eq!((stored.state.status(), stored.state.live_version()), (Status::Pending, None));
}

#[on_both_databases]
async fn names_that_differ_in_one_byte_do_not_conflict(store: &Shared) {
    let account = account(store, "a").await;
    // Differences in case, in Unicode normalisation and in a trailing letter.
    for name in ["name", "Name", "n\u{e4}me", "na\u{308}me", "names"] {
        created(store.create_template(new(account, name)).await.unwrap());
    }
}
